package storetest

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Benchmark measures each method with small and large records, with one caller
// and with many, and with few and many stored tasks. Each sub-benchmark uses a
// new store. Of the subject, only New and Now are used.
func Benchmark(b *testing.B, s Subject) {
	b.Helper()
	if s.New == nil {
		b.Fatal("storetest: Subject.New is nil")
	}
	for _, size := range []int{100, 64 << 10} {
		payload := sized(size)
		name := "/payload=" + sizeName(size)
		s.bench(b, "Create"+name, func(b *bench) {
			for n := 0; b.Loop(); n++ {
				b.create(n, payload)
			}
		})
		s.bench(b, "CreateParallel"+name, func(b *bench) {
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					b.create(int(n.Add(1)), payload)
				}
			})
		})
		s.bench(b, "Update"+name, func(b *bench) {
			b.create(0, payload)
			for r := b.record(0, payload); b.Loop(); r.Version++ {
				b.update(r)
			}
		})
		s.bench(b, "UpdateParallel"+name, func(b *bench) {
			var n atomic.Int64
			b.RunParallel(func(pb *testing.PB) { // each has its own task
				r := b.record(int(n.Add(1)), payload)
				b.createRecord(r)
				for ; pb.Next(); r.Version++ {
					b.update(r)
				}
			})
		})
	}
	for _, size := range []int{100, 1 << 20} {
		s.bench(b, "Get/result="+sizeName(size), func(b *bench) {
			r := b.record(0, sized(size))
			b.createRecord(r)
			for b.Loop() {
				b.get(r.ID)
			}
		})
	}
	for _, tasks := range []int{1, 1000} {
		name := fmt.Sprintf("/tasks=%d", tasks)
		s.bench(b, "GetParallel"+name, func(b *bench) {
			ids := b.createAll(tasks)
			b.ResetTimer()
			b.RunParallel(func(pb *testing.PB) {
				for n := 0; pb.Next(); n++ {
					b.get(ids[n%tasks])
				}
			})
		})
		s.bench(b, "GetUnknown"+name, func(b *bench) {
			b.createAll(tasks)
			for b.Loop() {
				if _, err := b.store.Get(context.Background(), "unknown"); err == nil {
					b.Fatal("Get of an unknown task succeeded")
				}
			}
		})
		s.bench(b, "SweepOfNothing"+name, func(b *bench) {
			b.createAll(tasks)
			for b.Loop() {
				b.sweep(b.now, 0)
			}
		})
		s.bench(b, "Scan"+name, func(b *bench) {
			scanner, ok := b.store.(durabletasks.Scanner)
			if !ok {
				b.Skip("skipped, because the store does not implement durabletasks.Scanner")
			}
			b.createAll(tasks)
			for b.Loop() {
				seen := 0
				err := scanner.Scan(context.Background(), func(durabletasks.Record) bool {
					seen++
					return true
				})
				if err != nil || seen != tasks {
					b.Fatalf("Scan of %d tasks called visit %d times: %v", tasks, seen, err)
				}
			}
		})
	}
	s.bench(b, "CreateAndSweep/tasks=100", func(b *bench) {
		for b.Loop() {
			b.createAll(100)
			b.sweep(b.now.Add(time.Hour), 100)
		}
	})
}

// bench is a benchmark of one store. Every call must succeed.
type bench struct {
	*testing.B
	store durabletasks.TaskStore
	now   time.Time
}

func (s Subject) bench(b *testing.B, name string, f func(*bench)) {
	b.Run(name, func(b *testing.B) {
		now := time.Now
		if s.Now != nil {
			now = s.Now
		}
		store := s.New(b)
		b.ReportAllocs()
		b.ResetTimer() // opening is not measured
		f(&bench{b, store, now().UTC().Truncate(time.Millisecond)})
		b.StopTimer()
		if err := store.Close(); err != nil {
			b.Fatal(err)
		}
	})
}

// record returns a task that expires in an hour.
func (b *bench) record(n int, result wire.JSON) durabletasks.Record {
	return durabletasks.Record{
		ID:            fmt.Sprintf("task-%032d", n), // as long as the engine's ids
		Status:        durabletasks.StatusWorking,
		CreatedAt:     b.now,
		LastUpdatedAt: b.now,
		TTL:           time.Hour,
		PollInterval:  time.Second,
		Result:        result,
	}
}

func (b *bench) create(n int, result wire.JSON) { b.createRecord(b.record(n, result)) }

func (b *bench) createRecord(r durabletasks.Record) {
	if err := b.store.Create(context.Background(), r); err != nil {
		b.Error(err)
	}
}

// createAll creates small tasks and returns their ids.
func (b *bench) createAll(tasks int) []string {
	ids := make([]string, tasks)
	result := sized(100)
	for n := range ids {
		r := b.record(n, result)
		b.createRecord(r)
		ids[n] = r.ID
	}
	return ids
}

func (b *bench) get(id string) {
	if _, err := b.store.Get(context.Background(), id); err != nil {
		b.Error(err)
	}
}

func (b *bench) update(r durabletasks.Record) {
	if err := b.store.Update(context.Background(), r); err != nil {
		b.Error(err)
	}
}

func (b *bench) sweep(now time.Time, want int) {
	if n, err := b.store.Sweep(context.Background(), now); err != nil || n != want {
		b.Fatalf("Sweep returned %d, want %d: %v", n, want, err)
	}
}

// sized returns a JSON object of about n bytes.
func sized(n int) wire.JSON {
	return wire.MustParse(`{"content":"` + strings.Repeat("x", n) + `"}`)
}

func sizeName(n int) string {
	switch {
	case n >= 1<<20:
		return fmt.Sprintf("%dMiB", n>>20)
	case n >= 1<<10:
		return fmt.Sprintf("%dKiB", n>>10)
	}
	return fmt.Sprintf("%dB", n)
}
