package durabletasks_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// The cost of the engine is the difference between the two sub-benchmarks of
// each mutation: the same calls to the bare store, and through the engine.

func BenchmarkCreate(b *testing.B) {
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		store := &durabletasks.MemStore{}
		l := open(b, newShared(), nil)
		c, err := l.CreateTask(ctx, nil)
		check(b, err)
		r := durabletasks.Record{Status: "working", CreatedAt: c.CreatedAt, LastUpdatedAt: c.CreatedAt, TTL: durabletasks.NoLimit, PollInterval: c.PollInterval}
		ids := make([]string, b.N)
		for i := range ids {
			ids[i] = fmt.Sprint("task-", i)
		}
		b.ResetTimer()
		for _, r.ID = range ids {
			if err := store.Create(ctx, r); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine", func(b *testing.B) {
		b.ReportAllocs()
		n := 0
		l := open(b, &durabletasks.MemStore{}, &durabletasks.Options{NewID: func() string { return fmt.Sprint("task-", n) }})
		opts := &durabletasks.CreateOptions{TTL: durabletasks.NoLimit}
		for n = range b.N {
			if _, err := l.CreateTask(ctx, opts); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine/uuid", func(b *testing.B) {
		b.ReportAllocs()
		l := open(b, &durabletasks.MemStore{}, nil)
		for b.Loop() {
			if _, err := l.CreateTask(ctx, nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

func BenchmarkUpdate(b *testing.B) {
	b.Run("store", func(b *testing.B) {
		b.ReportAllocs()
		store := newShared()
		l := open(b, store, nil)
		id := create(b, l, nil)
		for b.Loop() {
			r, err := store.Get(ctx, id)
			if err == nil {
				err = store.Update(ctx, r)
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine/idle", func(b *testing.B) {
		b.ReportAllocs()
		l := open(b, newShared(), nil)
		h := handle(b, l, create(b, l, nil))
		for b.Loop() {
			if err := h.Progress(ctx, "m", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine/worker", func(b *testing.B) { // a context to end, an expiry to watch
		b.ReportAllocs()
		l := open(b, newShared(), nil)
		h := handle(b, l, create(b, l, nil))
		h.Context()
		for b.Loop() {
			if err := h.Progress(ctx, "m", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("engine/events", func(b *testing.B) {
		b.ReportAllocs()
		l := open(b, newShared(), &durabletasks.Options{OnEvent: func(durabletasks.Event) {}})
		h := handle(b, l, create(b, l, nil))
		for b.Loop() {
			if err := h.Progress(ctx, "m", nil); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// A whole round of input: asked, answered, taken.
func BenchmarkRound(b *testing.B) {
	b.ReportAllocs()
	l := open(b, newShared(), nil)
	for b.Loop() {
		h := handle(b, l, create(b, l, nil))
		asked := make(chan error)
		go func() {
			_, err := h.RequestInput(ctx, forms("a"), nil)
			asked <- err
		}()
		for v, err := range l.Watch(ctx, h.ID()) {
			check(b, err)
			if v.Status == "input_required" {
				break
			}
		}
		_, err := l.UpdateTask(ctx, h.ID(), accepts("a"))
		check(b, err)
		check(b, <-asked)
	}
}

func BenchmarkGetTask(b *testing.B) {
	for _, size := range []struct {
		name  string
		bytes int
	}{{"small", 0}, {"result=8MiB", 8 << 20}} {
		for _, tasks := range []int{1, 100_000} {
			store := newShared()
			l := open(b, store, nil)
			id := create(b, l, nil)
			if size.bytes > 0 {
				text := wire.MustParse(`{"content":[{"type":"text","text":"` + strings.Repeat("x", size.bytes) + `"}]}`)
				check(b, handle(b, l, id).Complete(ctx, text))
			}
			for range tasks - 1 {
				create(b, l, nil)
			}
			name := fmt.Sprintf("%s/tasks=%d", size.name, tasks)
			b.Run(name+"/store", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := store.Get(ctx, id); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/engine", func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := l.GetTask(ctx, id); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(name+"/parallel", func(b *testing.B) {
				b.ReportAllocs()
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						if _, err := l.GetTask(ctx, id); err != nil {
							b.Fatal(err)
						}
					}
				})
			})
		}
	}
}
