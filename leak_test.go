package durabletasks_test

import (
	"context"
	"fmt"
	"runtime"
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
// that are over, however they lived and ended.
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

// A timer lives as long as somebody holds on to the task, and there is one,
// however often the task is written. What a timer does when it fires is to
// look at the record.
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
				l := open(t, store, &durabletasks.Options{KeepExpiry: true, SweepInterval: durabletasks.NoLimit, Logger: silent})
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

// What lives when the engine ends, ends with it.
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
