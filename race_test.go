package durabletasks_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var rounds = flag.Int("rounds", 500, "how often the racing tests race; 10,000 is the long version")

// together starts all functions at once and waits for them.
func together(fs ...func()) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for _, f := range fs {
		wg.Go(func() {
			<-begin
			f()
		})
	}
	close(begin)
	wg.Wait()
}

// Of several ends of one task exactly one wins, through either of two engines,
// and what is stored is the winner's.
func TestRaceToTheEnd(t *testing.T) {
	for name, store := range map[string]durabletasks.TaskStore{"watching": newWatchable(), "not watching": newShared()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a, b := open(t, store, unswept), open(t, store, unswept)
				for round := range *rounds {
					id := create(t, a, &durabletasks.CreateOptions{TTL: 24 * time.Hour})
					mine, theirs := handle(t, a, id), handle(t, b, id)
					hctx := mine.Context()
					waiter := make(chan error, 1)
					go func() {
						_, err := mine.RequestInput(ctx, forms("a"), nil)
						waiter <- err
					}()
					var wins atomic.Int64
					var winner atomic.Pointer[string]
					sweeps := round%4 == 0
					end := func(name string, f func() error) func() {
						return func() {
							switch err := f(); {
							case err == nil:
								wins.Add(1)
								winner.Store(&name)
							case errors.Is(err, durabletasks.ErrTerminal):
							case errors.Is(err, durabletasks.ErrNotFound) && sweeps:
							default:
								t.Errorf("%s: %v", name, err)
							}
						}
					}
					fs := []func(){
						end("completed", func() error { return mine.Complete(hctx, done) }),
						end("failed", func() error { return theirs.Fail(ctx, &wire.Error{Message: "m"}) }),
						end("cancelled", func() error { return theirs.Cancelled(ctx, "m") }),
						func() { // a recovery that has an outcome of its own
							_, err := b.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
								if r.ID != id {
									return nil
								}
								return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
									end("failed", func() error { return h.Fail(ctx, &wire.Error{Message: "m"}) })()
									return wire.JSON{}, nil
								}
							})
							check(t, err)
						},
						func() { a.CancelTask(ctx, id) },
						func() { b.UpdateTask(ctx, id, accepts("a")) },
						func() { mine.Progress(ctx, "on", nil) },
					}
					if sweeps {
						fs = append(fs, func() { store.Sweep(ctx, time.Now().Add(48*time.Hour)) })
					}
					rand.Shuffle(len(fs), func(i, j int) { fs[i], fs[j] = fs[j], fs[i] })
					together(fs...)
					synctest.Wait()
					if n := wins.Load(); n > 1 || n == 0 && !sweeps {
						t.Fatalf("round %d: %d winners", round, n)
					}
					r, err := store.Get(ctx, id)
					if sweeps && errors.Is(err, durabletasks.ErrNotFound) {
						mine.Progress(ctx, "", nil) // so that this process learns of it
						if err := <-waiter; !slices.Contains([]string{"Expired", "NotFound", "Terminal", "Cancelled", "ok"}, errorName(err)) {
							t.Errorf("waiter: %v", err)
						}
						continue
					}
					check(t, err)
					if string(r.Status) != *winner.Load() || (r.Status == "completed") != (r.Result == done) || (r.Status == "failed") != !r.Error.IsZero() {
						t.Fatalf("round %d: %s has won, stored is %+v", round, *winner.Load(), r)
					}
					if v, err := b.GetTask(ctx, id); err != nil || v.Status != r.Status {
						t.Errorf("the other engine sees %v, %v", v, err)
					}
					mine.Progress(ctx, "", nil)
					if err := <-waiter; !slices.Contains([]string{"Terminal", "Cancelled", "ok"}, errorName(err)) {
						t.Errorf("waiter: %v", err)
					}
					if hctx.Err() == nil {
						t.Errorf("the worker's context lives")
					}
				}
				for _, l := range []*durabletasks.TaskLifecycle{a, b} {
					if h := l.Held(); h != (durabletasks.Held{}) {
						t.Errorf("held: %+v", h)
					}
				}
			})
		})
	}
}

// In whatever order a round is asked, answered, cancelled and given up, its
// waiter returns what the record says. A lost wake-up shows as ErrExpired, an
// hour later.
func TestRaceForAnswers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, unswept)
		seen := map[string]int{}
		for round := range *rounds {
			id := create(t, l, nil)
			var outcome string
			worker := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				a, err := h.RequestInput(ctx, forms("a", "b"), nil)
				outcome = errorName(err)
				if err != nil {
					return wire.JSON{}, err
				}
				if !maps.Equal(a, accepts("a", "b")) {
					t.Errorf("answers %v", a)
				}
				return done, nil
			}
			answer := func(keys ...string) func() {
				return func() {
					for { // as a client does: poll, then answer
						v, err := l.GetTask(ctx, id)
						if err != nil || v.Status.Terminal() || len(v.InputRequests) > 0 {
							break
						}
						time.Sleep(time.Millisecond)
					}
					_, err := l.UpdateTask(ctx, id, accepts(keys...))
					check(t, err)
				}
			}
			cancels := round%2 == 0
			fs := []func(){answer("a"), answer("b"), answer("b", "a"), func() {
				check(t, l.Go(ctx, id, worker))
			}}
			if cancels {
				fs = append(fs, func() {
					time.Sleep(time.Duration(rand.N(3)) * time.Millisecond)
					check(t, l.CancelTask(ctx, id))
				})
			}
			rand.Shuffle(len(fs), func(i, j int) { fs[i], fs[j] = fs[j], fs[i] })
			together(fs...)
			synctest.Wait()
			v := get(t, l, id)
			seen[outcome]++
			switch {
			case outcome == "ok" && v.Status == "completed":
			case outcome == "Cancelled" && v.Status == "cancelled" && cancels:
			default:
				t.Fatalf("round %d: outcome %q, status %s %s", round, outcome, v.Status, v.Result)
			}
		}
		if h := l.Held(); h != (durabletasks.Held{}) {
			t.Errorf("held: %+v", h)
		}
		if seen["ok"] == 0 || seen["Cancelled"] == 0 {
			t.Errorf("the race is always won by the same: %v", seen)
		}
	})
}

// A wait that is cancelled and continued by another run loses nothing either.
func TestRaceToWaitAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, unswept)
		for round := range *rounds {
			id := create(t, l, nil)
			h := handle(t, l, id)
			request := func(ctx context.Context) error {
				_, err := h.RequestInput(ctx, forms("a"), nil)
				if errors.Is(err, context.Canceled) {
					_, err = handle(t, l, id).RequestInput(context.Background(), forms("a"), nil)
				}
				return err
			}
			own, cancel := context.WithCancel(ctx)
			var err error
			together(
				func() { err = request(own) },
				cancel,
				func() {
					for get(t, l, id).Status != "input_required" {
						time.Sleep(time.Millisecond)
						if round%2 == 0 {
							return
						}
					}
					_, err := l.UpdateTask(ctx, id, accepts("a"))
					check(t, err)
				},
				func() {
					time.Sleep(3 * time.Millisecond)
					_, err := l.UpdateTask(ctx, id, accepts("a"))
					check(t, err)
				},
			)
			if err != nil {
				t.Fatalf("round %d: %v", round, err)
			}
			if stored(t, store, id).InputResponses["a"] != accept {
				t.Fatalf("round %d: no answer", round)
			}
			check(t, h.Complete(ctx, done))
		}
	})
}

// 64 writers of one task all succeed, in the order in which they came, and
// nobody polls.
func TestWritersQueue(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const n = 64
		store := &flawed{shared: newShared()}
		l := open(t, store, nil)
		id := create(t, l, nil)
		h := handle(t, l, id)
		begin := time.Now()
		gate := make(chan struct{})
		var order []string
		store.onUpdate = func(next durabletasks.Record) error {
			<-gate
			order = append(order, next.StatusMessage)
			return nil
		}
		var want []string
		var wg sync.WaitGroup
		for i := range n {
			want = append(want, fmt.Sprint(i))
			wg.Go(func() { check(t, h.Progress(ctx, fmt.Sprint(i), nil)) })
			synctest.Wait() // it is in the queue
		}
		close(gate)
		wg.Wait()
		if !slices.Equal(order, want) {
			t.Errorf("order %q", order)
		}
		if r := stored(t, store, id); r.Version != n {
			t.Errorf("version %d", r.Version)
		}
		if d := time.Since(begin); d != 0 {
			t.Errorf("waited %v", d)
		}
	})
}

// 64 clients answer 64 keys while as many progress reports are written, and the
// task can end afterwards.
func TestWritersRush(t *testing.T) {
	const n = 64
	store := newShared()
	l := open(t, store, nil)
	for range max(1, *rounds/50) {
		id := create(t, l, nil)
		h := handle(t, l, id)
		var keys []string
		for i := range n {
			keys = append(keys, fmt.Sprint("k", i))
		}
		answers := make(chan error, 1)
		asked := make(chan struct{})
		go func() {
			a, err := h.RequestInput(ctx, forms(keys...), nil)
			if err == nil && !maps.Equal(a, accepts(keys...)) {
				err = fmt.Errorf("%d answers", len(a))
			}
			answers <- err
		}()
		go func() {
			defer close(asked)
			for v, err := range l.Watch(ctx, id) {
				check(t, err)
				if v.Status == "input_required" {
					return
				}
			}
		}()
		<-asked
		var fs []func()
		for _, key := range keys {
			fs = append(fs, func() {
				ignored, err := l.UpdateTask(ctx, id, accepts(key))
				if err != nil || ignored != nil {
					t.Errorf("answer: %v, %v", ignored, err)
				}
			}, func() { check(t, h.Progress(ctx, key, nil)) })
		}
		together(fs...)
		check(t, <-answers)
		if r := stored(t, store, id); r.Version != 1+2*n || r.Status != "working" || len(r.InputResponses) != n {
			t.Errorf("%+v", r)
		}
		check(t, h.Complete(ctx, done))
	}
}

// Two engines over one store: every write of both succeeds, none is lost.
func TestTwoEnginesWrite(t *testing.T) {
	for name, store := range map[string]durabletasks.TaskStore{"watching": newWatchable(), "not watching": newShared()} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				const writers, each = 8, 20
				a, b := open(t, store, nil), open(t, store, nil)
				id := create(t, a, nil)
				var fs []func()
				for i, l := range []*durabletasks.TaskLifecycle{a, b} {
					h := handle(t, l, id)
					h.Context()
					for w := range writers {
						fs = append(fs, func() {
							for n := range each {
								check(t, h.Progress(ctx, fmt.Sprint(i, w, n), nil))
							}
						})
					}
				}
				begin := time.Now()
				together(fs...)
				if r := stored(t, store, id); r.Version != 2*writers*each {
					t.Errorf("version %d", r.Version)
				}
				if d := time.Since(begin); d > 10*second {
					t.Errorf("took %v", d)
				}
			})
		})
	}
}

// A conversation in which each side acts only when it is notified. A lost
// notification would cost an hour and end it with ErrExpired.
func TestConversation(t *testing.T) {
	for name, row := range map[string]struct {
		store durabletasks.TaskStore
		two   bool
	}{"one engine": {newShared(), false}, "two engines": {newWatchable(), true}} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				a := open(t, row.store, unswept)
				b := a
				if row.two {
					b = open(t, row.store, unswept)
				}
				synctest.Wait() // the stores' watches run
				begin := time.Now()
				c, err := a.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
					for i := range *rounds {
						key := fmt.Sprint(i)
						if a, err := h.RequestInput(ctx, forms(key), nil); err != nil || !maps.Equal(a, accepts(key)) {
							return wire.JSON{}, fmt.Errorf("round %d: %v, %w", i, a, err)
						}
					}
					return done, nil
				})
				check(t, err)
				var last wire.Task
				for v, err := range b.Watch(ctx, c.TaskID) {
					check(t, err)
					last = v
					for key := range v.InputRequests {
						ignored, err := b.UpdateTask(ctx, c.TaskID, accepts(key))
						if err != nil || ignored != nil {
							t.Errorf("answer %s: %v, %v", key, ignored, err)
						}
					}
				}
				if last.Status != "completed" || !reflect.DeepEqual(last.Result, done) {
					t.Errorf("ended with %s %s", last.Status, last.Result)
				}
				if d := time.Since(begin); d > second*time.Duration(*rounds)/100 {
					t.Errorf("took %v", d) // conflicts of two engines cost milliseconds
				}
			})
		})
	}
}

// Watching from before, during and after the end shows the end, once.
func TestRaceToWatchTheEnd(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), unswept)
		for range *rounds {
			id := create(t, l, nil)
			h := handle(t, l, id)
			see := func() {
				ends, seen := 0, time.Time{}
				for v, err := range l.Watch(ctx, id) {
					check(t, err)
					if v.Status.Terminal() {
						ends++
					}
					if ends > 1 || v.LastUpdatedAt.Before(seen) {
						t.Errorf("out of order: %+v", v)
					}
					seen = v.LastUpdatedAt
				}
				if ends != 1 {
					t.Errorf("seen %d ends", ends)
				}
			}
			together(see, see, see, func() {
				h.Progress(ctx, "a", nil)
				h.Progress(ctx, "b", nil)
				check(t, h.Complete(ctx, done))
			})
		}
		if h := l.Held(); h != (durabletasks.Held{}) {
			t.Errorf("held: %+v", h)
		}
	})
}

// A shutdown names a worker that began just after another had left.
func TestRaceOfStragglers(t *testing.T) {
	broken := durabletasks.ErrInvalid // with which an outcome is not tried again
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for range *rounds / 5 {
		store := &flawed{shared: newShared(), onUpdate: func(durabletasks.Record) error { return broken }}
		l := open(t, store, &durabletasks.Options{Logger: silent})
		id := create(t, l, nil)
		check(t, l.Go(ctx, id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil }))
		stay := make(chan struct{})
		for {
			err := l.Go(ctx, id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { <-stay; return done, nil })
			if err == nil {
				break
			}
			wantError(t, "Go", err, durabletasks.ErrRunning)
		}
		var stragglers *durabletasks.ShutdownError
		if err := l.Shutdown(gone); !errors.As(err, &stragglers) || !slices.Equal(stragglers.TaskIDs, []string{id}) {
			t.Fatalf("Shutdown: %v, %+v", err, stragglers)
		}
		close(stay)
	}
}

// Everything at once, and the engine ends in the middle of it: nothing hangs,
// nothing panics, nothing is left.
func TestRaceToClose(t *testing.T) {
	for round := range max(10, *rounds/10) {
		bubble(t, func(t *testing.T) {
			store := newShared()
			l := open(t, store, &durabletasks.Options{MaxWorkers: 4})
			var ids []string
			for range 4 {
				ids = append(ids, create(t, l, nil))
			}
			id := func() string { return ids[rand.N(len(ids))] }
			work := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(ctx, forms(fmt.Sprint(rand.N(1000))), nil)
				return done, err
			}
			steps := []func() error{
				func() error { _, err := l.CreateTask(ctx, nil); return err },
				func() error { _, err := l.StartTask(ctx, nil, work); return err },
				func() error { return l.Go(ctx, id(), work) },
				func() error { _, err := l.GetTask(ctx, id()); return err },
				func() error { return l.CancelTask(ctx, id()) },
				func() error {
					k := id()
					v, err := l.GetTask(ctx, k)
					if err == nil {
						_, err = l.UpdateTask(ctx, k, accepts(slices.Collect(maps.Keys(v.InputRequests))...))
					}
					return err
				},
				func() error {
					h, err := l.Handle(ctx, id())
					if err == nil {
						h.Context()
						err = h.Progress(h.Context(), "m", nil)
					}
					return err
				},
				func() error {
					for _, err := range l.Watch(ctx, id(), id()) {
						if rand.N(3) == 0 || err != nil {
							return err
						}
					}
					return nil
				},
				func() error {
					_, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker { return work })
					return err
				},
			}
			var fs []func()
			for range 8 {
				fs = append(fs, func() {
					for {
						err := steps[rand.N(len(steps))]()
						switch errorName(err) {
						case "ok", "Terminal", "Running", "Busy", "Cancelled", "Pending":
						case "Closed":
							return
						case "Shutdown":
							if rand.N(4) == 0 {
								return
							}
						default:
							t.Errorf("round %d: %v", round, err)
							return
						}
					}
				})
			}
			fs = append(fs, func() {
				for range rand.N(500) {
					get(t, l, ids[0])
				}
				var err error
				if round%2 == 0 {
					err = l.Close()
				} else {
					err = l.Shutdown(ctx)
				}
				check(t, err)
			})
			together(fs...)
			synctest.Wait()
			if h := l.Held(); h != (durabletasks.Held{}) {
				t.Errorf("round %d: held: %+v", round, h)
			}
		})
	}
}
