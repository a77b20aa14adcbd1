package durabletasks_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// grown reports whether there are more goroutines than before, by more than
// those that the runtime and the tests before this one may have: what leaks
// here leaks by the thousand. A bubble does not end before all of its
// goroutines have.
func grown(before int) bool {
	for range 1000 {
		if runtime.NumGoroutine() <= before+100 {
			return false
		}
		runtime.Gosched()
	}
	return true
}

// Idle tasks cost no goroutine, no timer and no entry, and neither do tasks
// that have ended in one of many ways.
func TestNothingIsLeft(t *testing.T) {
	const tasks = 20_000
	bubble(t, func(t *testing.T) {
		store := newShared()
		before := runtime.NumGoroutine()
		l := open(t, store, &durabletasks.Options{SweepInterval: durabletasks.NoLimit, Logger: silent})
		empty := func(when string) {
			t.Helper()
			synctest.Wait()
			if h := l.Held(); h != (durabletasks.Held{}) {
				t.Errorf("%s: held %+v", when, h)
			}
			if grown(before) {
				t.Errorf("%s: %d goroutines, before %d", when, runtime.NumGoroutine(), before)
			}
		}
		var idle []string
		for range tasks / 10 {
			idle = append(idle, create(t, l, &durabletasks.CreateOptions{TTL: time.Hour}))
		}
		empty("idle tasks")

		at := func(i int) *durabletasks.CreateOptions {
			return &durabletasks.CreateOptions{TTL: time.Duration(1+i%3) * time.Minute}
		}
		for i := range tasks {
			switch i % 10 {
			case 0, 1: // a worker that completes
				_, err := l.StartTask(ctx, at(i), func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil })
				check(t, err)
			case 2: // a worker that panics
				_, err := l.StartTask(ctx, at(i), func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic("x") })
				check(t, err)
			case 3: // a round
				c, err := l.StartTask(ctx, at(i), func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
					_, err := h.RequestInput(ctx, forms("a"), nil)
					return done, err
				})
				check(t, err)
				synctest.Wait()
				_, err = l.UpdateTask(ctx, c.TaskID, accepts("a"))
				check(t, err)
			case 4: // a cancel while it waits
				c, err := l.StartTask(ctx, at(i), func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
					_, err := h.RequestInput(ctx, forms("a"), nil)
					return wire.JSON{}, err
				})
				check(t, err)
				synctest.Wait()
				check(t, l.CancelTask(ctx, c.TaskID))
			case 5: // a host's own worker, with a context
				h := handle(t, l, create(t, l, at(i)))
				h.Context()
				check(t, h.Progress(ctx, "m", nil))
				check(t, h.Fail(ctx, &wire.Error{Message: "m"}))
			case 6: // a host's own worker that never ends its task
				handle(t, l, create(t, l, at(i))).Context()
			case 7: // a waiter that gives up
				h := handle(t, l, create(t, l, at(i)))
				own, cancel := context.WithCancel(ctx)
				ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, forms("a"), nil) })
				cancel()
			case 8: // a waiter that nobody answers
				request(handle(t, l, create(t, l, at(i))), "a")
			case 9: // watches that are left, and failing calls
				id := create(t, l, at(i))
				for range l.Watch(ctx, id, "unknown") {
					break
				}
				l.Go(ctx, "unknown", sleeping)
				l.CancelTask(ctx, "unknown")
				handle(t, l, id).RequestInput(ctx, map[string]wire.JSON{"a": aText}, nil)
			}
		}
		time.Sleep(4 * time.Minute) // what waits for nobody expires
		empty("all kinds of tasks")
		for _, id := range idle {
			get(t, l, id)
		}
		empty("reads")
		l.Close()
		empty("the end")
	})
}

// The engine's memory and side tables follow what lives, not what has lived:
// after any number of tasks, questions, watches and failures nothing is left in
// the tables, no timer is armed, and the heap is what it was.
func TestMemoryIsBounded(t *testing.T) {
	large := wire.MustParse(`{"content":[{"type":"text","text":"` + strings.Repeat("x", 4<<10) + `"}]}`)
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{TTL: time.Minute, SweepInterval: durabletasks.NoLimit, Logger: silent})
		long := create(t, l, &durabletasks.CreateOptions{TTL: 1000 * time.Hour}) // timers that are not stopped stay
		brief := func() *durabletasks.CreateOptions { return &durabletasks.CreateOptions{TTL: second, Tool: "t"} }
		kinds := map[string]struct {
			n  int
			do func(i int)
		}{
			"a question that is answered": {2000, func(i int) {
				c, err := l.StartTask(ctx, brief(), func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
					_, err := h.RequestInput(ctx, forms(strings.Repeat("k", 1000)+fmt.Sprint(i)), nil)
					if err == nil {
						err = h.SaveCheckpoint(ctx, i)
					}
					return done, err
				})
				check(t, err)
				synctest.Wait()
				_, err = l.UpdateTask(ctx, c.TaskID, accepts(strings.Repeat("k", 1000)+fmt.Sprint(i)))
				check(t, err)
			}},
			"a question that is withdrawn": {2000, func(i int) {
				h := handle(t, l, create(t, l, brief()))
				own, cancel := context.WithTimeout(ctx, time.Millisecond)
				defer cancel()
				h.RequestInput(own, forms(strings.Repeat("k", 1000)), &durabletasks.InputOptions{Timeout: time.Hour})
			}},
			"a wait that is cancelled": {2000, func(i int) {
				h := handle(t, l, create(t, l, brief()))
				own, cancel := context.WithCancel(ctx)
				ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, forms("a"), nil) })
				cancel()
			}},
			"a cancel": {2000, func(i int) {
				c, err := l.StartTask(ctx, brief(), sleeping)
				check(t, err)
				check(t, l.CancelTask(ctx, c.TaskID))
			}},
			"a panic": {500, func(i int) {
				_, err := l.StartTask(ctx, brief(), func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic("x") })
				check(t, err)
			}},
			"a context whose task expires": {2000, func(i int) { handle(t, l, create(t, l, brief())).Context() }},
			"a watch that is left": {5000, func(i int) { // of a task that stays
				for range l.Watch(ctx, long) {
					break
				}
			}},
			"a wait for input of a task that stays": {2000, func(i int) {
				own, cancel := context.WithCancel(ctx)
				h := handle(t, l, long)
				ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, forms("same"), nil) })
				cancel()
				synctest.Wait()
			}},
			"unknown tasks": {5000, func(i int) {
				id := fmt.Sprint("unknown", i)
				l.GetTask(ctx, id)
				l.UpdateTask(ctx, id, accepts("a"))
				l.CancelTask(ctx, id)
				l.Go(ctx, id, sleeping)
				l.Handle(ctx, id)
				for range l.Watch(ctx, id) {
				}
			}},
			"a task that is left again and again": {1000, func(i int) {
				check(t, l.Go(ctx, long, func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
					return wire.JSON{}, durabletasks.ErrLost
				}))
				synctest.Wait()
			}},
		}
		for name, kind := range kinds {
			round := func(n int) int {
				for i := range n {
					kind.do(i)
					time.Sleep(time.Millisecond) // few goroutines live at a time: the runtime keeps what it allocates for them
				}
				time.Sleep(2 * time.Minute) // short tasks expire
				synctest.Wait()
				if _, err := l.Sweep(ctx); err != nil {
					t.Fatal(err)
				}
				if h := l.Held(); h != (durabletasks.Held{}) {
					t.Fatalf("%s: held %+v", name, h)
				}
				return heap()
			}
			// Maps and the runtime's own tables reach their size, sooner or
			// later; what leaks grows in each round.
			growth := 0
			before := round(kind.n)
			for range 3 {
				after := round(kind.n)
				if growth = (after - before) / kind.n; growth <= 100 {
					break
				}
				before = after
			}
			if growth > 100 {
				t.Errorf("%s: the heap grows by %d bytes each time", name, growth)
			}
		}

		// One watch that stays while others leave it.
		const tasks = 1000
		var ids []string
		for range tasks {
			ids = append(ids, create(t, l, brief()))
		}
		own, cancel := context.WithCancel(ctx)
		w := make(chan int, 1)
		go func() {
			n := 0
			for v := range l.Watch(own, append(slices.Clone(ids), long)...) {
				if v.Status.Terminal() {
					n++
				}
			}
			w <- n
		}()
		synctest.Wait()
		before := heap()
		for _, id := range ids {
			check(t, handle(t, l, id).Complete(ctx, wire.MustParse(strings.Replace(large.String(), "x", id, 1))))
			synctest.Wait()
		}
		time.Sleep(2 * time.Minute)
		if n, err := l.Sweep(ctx); n != tasks || err != nil {
			t.Fatalf("swept %d, %v", n, err)
		}
		if h := l.Held(); h.Tasks != 1 || h.Listeners != 1 {
			t.Errorf("held by a watch of one task: %+v", h)
		}
		if after := heap(); after > before+1<<20 {
			t.Errorf("a watch keeps %d bytes of tasks that have left it", after-before)
		}
		cancel()
		if n := <-w; n != tasks {
			t.Errorf("%d tasks have left the watch", n)
		}
		synctest.Wait()
		if h := l.Held(); h != (durabletasks.Held{}) {
			t.Errorf("held %+v", h)
		}
	})
}

// heap returns the size of what is reachable.
func heap() int {
	runtime.GC()
	runtime.GC() // what finalizers and pools have held on to
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapAlloc)
}

// A task has a timer while somebody holds on to it, and only one, even if the
// task is written often. A timer that fires reads the record.
func TestTimersEndWithTheirHolders(t *testing.T) {
	for name, hold := range map[string]struct {
		do    func(l *durabletasks.TaskLifecycle, id string)
		looks int64 // at the time when the task expires
	}{
		"a waiter that gives up": {func(l *durabletasks.TaskLifecycle, id string) {
			own, cancel := context.WithCancel(ctx)
			h := handle(t, l, id)
			ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, forms("a"), nil) })
			cancel()
		}, 0},
		"a watch that is left": {func(l *durabletasks.TaskLifecycle, id string) {
			for range l.Watch(ctx, id) {
				break
			}
		}, 0},
		"a worker that leaves its task unfinished": {func(l *durabletasks.TaskLifecycle, id string) {
			check(t, l.Go(ctx, id, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) { return aText, nil }))
		}, 0},
		"a task that ends": {func(l *durabletasks.TaskLifecycle, id string) {
			h := handle(t, l, id)
			h.Context()
			check(t, h.Complete(ctx, done))
		}, 0},
		"a context that stays": {func(l *durabletasks.TaskLifecycle, id string) {
			h := handle(t, l, id)
			h.Context()
			for range 100 {
				check(t, h.Progress(ctx, "m", nil))
			}
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var gets atomic.Int64
				store := &flawed{shared: newShared(), onGet: func(string) error { gets.Add(1); return nil }}
				store.onUpdate = func(next durabletasks.Record) error {
					if next.Status == durabletasks.StatusFailed {
						return errBroken
					}
					return nil
				}
				l := open(t, store, &durabletasks.Options{ExpireRunning: true, SweepInterval: durabletasks.NoLimit, Logger: silent})
				hold.do(l, create(t, l, nil))
				time.Sleep(10 * second) // an outcome that is refused is tried again
				gets.Store(0)
				time.Sleep(3 * time.Hour)
				if n := gets.Load(); n != hold.looks {
					t.Errorf("%d looks, want %d", n, hold.looks)
				}
				if h := l.Held(); h != (durabletasks.Held{}) {
					t.Errorf("held: %+v", h)
				}
			})
		})
	}
}

// Contexts, waiters, watches and workers end with the engine.
func TestNothingIsLeftAfterClose(t *testing.T) {
	const tasks = 1000
	for name, end := range map[string]func(l *durabletasks.TaskLifecycle) error{
		"Close":    (*durabletasks.TaskLifecycle).Close,
		"Shutdown": func(l *durabletasks.TaskLifecycle) error { return l.Shutdown(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				before := runtime.NumGoroutine()
				l := open(t, newWatchable(), nil)
				ended := make(chan struct{})
				for i := range tasks {
					_, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
						_, err := h.RequestInput(ctx, forms(fmt.Sprint(i)), nil)
						return wire.JSON{}, err
					})
					check(t, err)
					id := create(t, l, nil)
					handle(t, l, id).Context()
					go func() {
						for range l.Watch(ctx, id) {
						}
						ended <- struct{}{}
					}()
				}
				synctest.Wait()
				h := l.Held()
				if h.Timers != 2*tasks || h.Contexts != 2*tasks || h.Listeners != 2*tasks || h.Slots != tasks || h.Running != tasks {
					t.Errorf("held: %+v", h)
				}
				check(t, end(l))
				for range tasks {
					<-ended
				}
				synctest.Wait()
				if h := l.Held(); h != (durabletasks.Held{}) {
					t.Errorf("held: %+v", h)
				}
				if grown(before) {
					t.Errorf("%d goroutines, before %d", runtime.NumGoroutine(), before)
				}
			})
		})
	}
}
