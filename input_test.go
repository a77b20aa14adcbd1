package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// How a worker asks its client: a key stands for one question, in one run and
// over all runs.

// question returns a request with its own words.
func question(words string) wire.JSON {
	request, err := wire.FormRequest{Message: words, Fields: []wire.Field{{Name: "name"}}}.JSON()
	if err != nil {
		panic(err)
	}
	return request
}

// questions returns requests with their own words by key: "a" asks "a?".
func questions(keys ...string) map[string]wire.JSON {
	m := make(map[string]wire.JSON)
	for _, key := range keys {
		m[key] = question(key + "?")
	}
	return m
}

// asks asks with options.
func (k *task) asks(requests map[string]wire.JSON, opts *durabletasks.InputOptions) <-chan answer {
	h := k.h
	return ask(func() (map[string]wire.JSON, error) { return h.RequestInput(ctx, requests, opts) })
}

// ignores checks that the client's answers to these keys are acknowledged and
// change nothing.
func (k *task) ignores(keys ...string) {
	k.t.Helper()
	before := stored(k.t, k.store, k.id)
	ignored, err := k.l.UpdateTask(ctx, k.id, accepts(keys...))
	if err != nil || !slices.Equal(ignored, slices.Sorted(slices.Values(keys))) {
		k.t.Errorf("late answers to %v: ignored %v, %v", keys, ignored, err)
	}
	if after := stored(k.t, k.store, k.id); !reflect.DeepEqual(before, after) {
		k.t.Errorf("late answers changed the task: %+v", after)
	}
}

// The error says which of the reasons it is: each has another remedy.
func TestReasonsOfDuplicateKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		reason := func(requests map[string]wire.JSON, want string) {
			t.Helper()
			var duplicate *durabletasks.DuplicateKeyError
			if _, err := k.h.RequestInput(ctx, requests, nil); !errors.As(err, &duplicate) || !strings.Contains(duplicate.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
		w := k.asks(questions("a"), nil)
		k.update(accepts("a"))
		k.returns("the answer", w, accepts("a"), "ok")
		reason(questions("a"), "a key of its own")
		k.restart()
		reason(map[string]wire.JSON{"a": question("b?")}, "a different question")
		k.returns("a later run", k.asks(questions("a"), nil), accepts("a"), "ok")
		check(t, k.h.SaveCheckpoint(ctx, 1))
		k.restart()
		reason(questions("a"), "a checkpoint was saved")
	})
}

// A worker that asks "confirm" for each of some files in a loop, under one key,
// gets one yes, for the first file, and never for another: not with the same
// words, not after a restart, not from a checkpoint.
func TestOneYesIsOneYes(t *testing.T) {
	confirm := func(h *durabletasks.Handle, words string) (bool, error) { return h.Confirm(ctx, "confirm", words) }
	raw := func(h *durabletasks.Handle, words string) (bool, error) {
		a, err := h.RequestInput(ctx, map[string]wire.JSON{"confirm": question(words)}, nil)
		return wire.ElicitResult(a["confirm"]).Accepted(), err
	}
	for way, call := range map[string]func(*durabletasks.Handle, string) (bool, error){"Confirm": confirm, "RequestInput": raw} {
		for name, row := range map[string]struct {
			words      func(file string) string
			checkpoint bool // after each file
			restart    bool // after the first file
			want       string
		}{
			"other words":                           {func(f string) string { return "Delete " + f + "?" }, false, false, "a, Duplicate b, Duplicate c"},
			"same words":                            {func(string) string { return "Continue?" }, false, false, "a, Duplicate b, Duplicate c"},
			"other words, checkpoint":               {func(f string) string { return "Delete " + f + "?" }, true, false, "a, Duplicate b, Duplicate c"},
			"same words, checkpoint":                {func(string) string { return "Continue?" }, true, false, "a, Duplicate b, Duplicate c"},
			"other words, restart":                  {func(f string) string { return "Delete " + f + "?" }, false, true, "a, a, Duplicate b, Duplicate c"},
			"same words, restart":                   {func(string) string { return "Continue?" }, false, true, "a, a, Duplicate b, Duplicate c"},
			"other words, checkpoint and a restart": {func(f string) string { return "Delete " + f + "?" }, true, true, "a, Duplicate b, Duplicate c"},
			"same words, checkpoint and a restart":  {func(string) string { return "Continue?" }, true, true, "a, Duplicate b, Duplicate c"},
		} {
			t.Run(way+"/"+name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					var log events
					k := newTask(t, newShared(), &durabletasks.Options{OnEvent: log.hook})
					var got []string
					run := func(h *durabletasks.Handle, upTo int) {
						next, err := durabletasks.Checkpoint[int](ctx, h)
						check(t, err)
						for i := next; i < upTo; i++ {
							file := string(rune('a' + i))
							yes, err := call(h, row.words(file))
							switch {
							case yes && err == nil:
								got = append(got, file)
							case yes:
								t.Errorf("a yes with %v", err)
							default:
								got = append(got, errorName(err)+" "+file)
							}
							if row.checkpoint {
								check(t, h.SaveCheckpoint(ctx, i+1))
							}
						}
					}
					upTo := 3
					if row.restart {
						upTo = 1
					}
					ended := make(chan struct{})
					go func() { run(k.h, upTo); close(ended) }()
					synctest.Wait()
					k.update(map[string]wire.JSON{"confirm": wire.MustParse(`{"action":"accept","content":{"confirm":true}}`)})
					synctest.Wait()
					if row.restart {
						k.restart()
						go run(k.h, 3)
					}
					<-ended
					synctest.Wait()
					if got := strings.Join(got, ", "); got != row.want {
						t.Errorf("got %s, want %s", got, row.want)
					}
					if n := strings.Count(log.String(), "input_required ("); n != 1 {
						t.Errorf("asked %d times: %s", n, &log)
					}
					k.shows()
				})
			})
		}
	}
}

// A later run that asks the same question waits for it or gets its answer. Another
// question under the same key is always refused: the digest of the request
// decides, to the byte.
func TestSameQuestionOtherQuestion(t *testing.T) {
	other := map[string]wire.JSON{
		"other words":     question("b?"),
		"one more member": question("a?").With("x", wire.MustParse("1")),
		"other kind":      wire.MustParse(`{"method":"roots/list"}`),
	}
	same := questions("a")
	for name, row := range map[string]struct {
		then func(k *task, w <-chan answer)
		want string // of the same question
	}{
		"outstanding": {func(k *task, w <-chan answer) {}, "waits"},
		"answered":    {func(k *task, w <-chan answer) { k.update(accepts("a")) }, "ok"},
		"declined":    {func(k *task, w <-chan answer) { k.update(map[string]wire.JSON{"a": decline}) }, "declined"},
		"withdrawn":   {func(k *task, w <-chan answer) { check(k.t, k.h.Withdraw(ctx)) }, "Unanswered"},
		"checkpointed": {func(k *task, w <-chan answer) {
			k.update(accepts("a"))
			<-w
			check(k.t, k.h.SaveCheckpoint(ctx, 1))
		}, "Duplicate"},
		"withdrawn and checkpointed": {func(k *task, w <-chan answer) {
			check(k.t, k.h.Withdraw(ctx))
			<-w
			check(k.t, k.h.SaveCheckpoint(ctx, 1))
		}, "Duplicate"},
		"withdrawn by another question": {func(k *task, w <-chan answer) {
			k.rerunDuring(w)
			<-ask(func() (map[string]wire.JSON, error) {
				own, cancel := context.WithCancel(ctx)
				time.AfterFunc(second, cancel)
				return k.h.RequestInput(own, questions("z"), nil)
			})
		}, "Unanswered"},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %v", name, restart), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					k := newTask(t, newShared(), nil)
					own, cancel := context.WithCancel(ctx)
					h := k.h
					w := ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, same, nil) })
					row.then(k, w)
					synctest.Wait()
					cancel()
					synctest.Wait()
					again := func() {
						if restart {
							k.restart()
						} else {
							k.rerun()
						}
					}
					for what, request := range other {
						again()
						before := stored(t, k.store, k.id)
						k.returns(what, k.asks(map[string]wire.JSON{"a": request}, nil), nil, "Duplicate")
						if after := stored(t, k.store, k.id); !reflect.DeepEqual(before, after) {
							t.Errorf("%s: changed: %+v", what, after)
						}
					}
					again()
					before := stored(t, k.store, k.id)
					w = k.asks(same, nil)
					switch row.want {
					case "ok":
						k.returns("the same", w, accepts("a"), "ok")
					case "declined":
						k.returns("the same", w, map[string]wire.JSON{"a": decline}, "ok")
					case "waits":
						if v := get(t, k.l, k.id); !maps.Equal(v.InputRequests, same) {
							t.Errorf("the client sees %v", v.InputRequests)
						}
						k.waits("the same", w)
						k.update(accepts("a"))
						k.returns("the same", w, accepts("a"), "ok")
						return
					default:
						k.returns("the same", w, nil, row.want)
					}
					if after := stored(t, k.store, k.id); !reflect.DeepEqual(before, after) {
						t.Errorf("asked again: %+v", after)
					}
				})
			})
		}
	}
}

// rerunDuring begins another run after the wait of this one was cancelled from
// outside, by an engine that closes.
func (k *task) rerunDuring(w <-chan answer) {
	k.restart()
	<-w
}

// Some questions of a round are new, some are answered, some are open, some are
// withdrawn. Open questions that the new round does not ask are withdrawn.
func TestMixedRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "done", "gone", "left", "open")
		k.update(accepts("done"))
		check(t, k.h.Withdraw(ctx, "gone"))
		k.restart()
		k.returns("the first run", w, nil, "Closed")
		k.shows("left", "open")
		w = request(k.h, "done", "gone", "new", "open")
		k.shows("new", "open")
		k.ignores("left", "gone")
		k.update(accepts("open"))
		k.waits("the second run", w)
		k.update(accepts("new"))
		k.returns("the second run", w, accepts("done", "new", "open"), "Unanswered")
		k.shows()
		k.rerun()
		k.returns("what was left", request(k.h, "left"), nil, "Unanswered")
		k.rerun()
		for range 2 { // the error names what has no answer, sorted
			_, err := k.h.RequestInput(ctx, forms("left", "done", "gone"), nil)
			var unanswered *durabletasks.UnansweredError
			if !errors.As(err, &unanswered) || !slices.Equal(unanswered.Keys, []string{"gone", "left"}) {
				t.Errorf("got %v", err)
			}
			k.restart()
		}
	})
	// A round of open questions only withdraws the others as well.
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		request(k.h, "a", "b", "c")
		k.restart()
		w := request(k.h, "b")
		k.shows("b")
		k.update(accepts("b"))
		k.returns("b", w, accepts("b"), "ok")
	})
}

// A key that was refused, or a round that could not be stored, is not used.
func TestRefusedKeysAreNotUsed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		k := newTask(t, store, nil)
		request(k.h, "used")
		k.restart()
		k.returns("a round with a used key", k.asks(map[string]wire.JSON{"a": form, "used": question("?")}, nil), nil, "Duplicate")
		store.onUpdate = func(durabletasks.Record) error { return errBroken }
		k.returns("a round that is not stored", request(k.h, "a"), nil, "Broken")
		store.onUpdate = nil
		w := request(k.h, "a")
		k.update(accepts("a"))
		k.returns("a", w, accepts("a"), "ok")
	})
}

// A worker withdraws questions: the client no longer sees them, the task works
// again, an answer that comes too late is ignored, and the call that waits
// returns what was answered.
func TestWithdraw(t *testing.T) {
	for name, row := range map[string]struct {
		answered []string
		withdraw []string
		shows    []string
		returned bool
	}{
		"one of two":              {nil, []string{"a"}, []string{"b"}, false},
		"by key":                  {nil, []string{"a", "b"}, nil, true},
		"all":                     {nil, nil, nil, true},
		"the one that is left":    {[]string{"b"}, []string{"a"}, nil, true},
		"what was answered, too":  {[]string{"b"}, nil, nil, true},
		"what does not wait":      {[]string{"b"}, []string{"b", "x", "", "\xff"}, []string{"a"}, false},
		"unknown keys and a real": {nil, []string{"x", "a", "b"}, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log events
				k := newTask(t, newShared(), &durabletasks.Options{OnEvent: log.hook})
				w := request(k.h, "a", "b")
				if row.answered != nil {
					k.update(accepts(row.answered...))
				}
				time.Sleep(second)
				for range 2 { // the second time nothing is left to withdraw
					check(t, handle(t, k.l, k.id).Withdraw(ctx, row.withdraw...))
				}
				k.shows(row.shows...)
				if !row.returned {
					k.waits("the waiter", w)
					if len(row.shows) == 1 && row.answered == nil {
						k.update(accepts(row.shows...))
						k.returns("the waiter", w, accepts(row.shows...), "Unanswered")
						if !strings.HasSuffix(log.String(), "input_withdrawn (input_required), input_received (working)") {
							t.Errorf("events: %s", &log)
						}
					}
					return
				}
				k.returns("the waiter", w, accepts(row.answered...), "Unanswered")
				if got := strings.Count(log.String(), "input_withdrawn (working)"); got != 1 {
					t.Errorf("events: %s", &log)
				}
				if v := get(t, k.l, k.id); v.LastUpdatedAt.Sub(v.CreatedAt) != second {
					t.Errorf("updated at %v, created at %v", v.LastUpdatedAt, v.CreatedAt)
				}
				k.ignores("a", "b")
				k.restart()
				k.ignores("a")
				k.returns("the next run", request(k.h, "a", "b"), accepts(row.answered...), "Unanswered")
				check(t, k.h.SaveCheckpoint(ctx, 1))
				if r := stored(t, k.store, k.id); r.InputResponses != nil || r.InputRequests != nil {
					t.Errorf("after a checkpoint: %v, %v", r.InputResponses, r.InputRequests)
				}
				k.ignores("a", "b")
				w = request(k.h, "c") // the task can ask again
				k.update(accepts("c"))
				k.returns("another question", w, accepts("c"), "ok")
			})
		})
	}
}

// The time to answer is durable: it is counted from the commit that asked,
// across restarts.
func TestTimeout(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		begin := time.Now()
		timeout := &durabletasks.InputOptions{Timeout: 10 * second}
		w := k.asks(forms("a", "b"), timeout)
		time.Sleep(6 * second)
		k.update(accepts("b"))
		k.restart()
		k.returns("the first run", w, nil, "Closed")
		// What the second run says of the time does not matter.
		w = k.asks(forms("a", "b"), &durabletasks.InputOptions{Timeout: time.Hour})
		time.Sleep(4*second - time.Nanosecond)
		k.waits("just before the end", w)
		k.shows("a")
		time.Sleep(time.Nanosecond)
		k.returns("at the end", w, accepts("b"), "Unanswered")
		k.shows()
		k.ignores("a")
		if d := time.Since(begin); d != 10*second {
			t.Errorf("waited %v", d)
		}
		k.restart()
		k.returns("a later run", k.asks(forms("a", "b"), timeout), accepts("b"), "Unanswered")

		// A question whose time is over while nobody runs is withdrawn by the next run.
		k.asks(forms("c"), timeout)
		k.l.Close()
		time.Sleep(time.Minute)
		k.restart()
		k.shows("c")
		k.returns("after the end", k.asks(forms("c"), timeout), nil, "Unanswered")
		k.shows()
		// An answer that comes later is late, even if nobody has withdrawn the
		// question yet; one that came before counts.
		k.asks(forms("d", "e"), timeout)
		k.l.Close()
		time.Sleep(second)
		k.restart()
		k.update(accepts("e"))
		k.l.Close()
		time.Sleep(time.Minute)
		k.restart()
		if ignored, err := k.l.UpdateTask(ctx, k.id, accepts("d")); err != nil || !slices.Equal(ignored, []string{"d"}) {
			t.Errorf("a late answer: ignored %v, %v", ignored, err)
		}
		if v := get(t, k.l, k.id); v.Status != durabletasks.StatusWorking {
			t.Errorf("after a late answer: %+v", v)
		}
		k.returns("answered late", k.asks(forms("d", "e"), timeout), accepts("e"), "Unanswered")
	})
}

// Questions of one round may have different times, and each ends by its own.
func TestTimeoutsOfOneRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		k.asks(forms("a"), &durabletasks.InputOptions{Timeout: 10 * second})
		time.Sleep(5 * second)
		k.restart()
		w := k.asks(forms("a", "b"), &durabletasks.InputOptions{Timeout: 10 * second})
		time.Sleep(5 * second)
		synctest.Wait()
		k.shows("b")
		k.waits("b has time", w)
		time.Sleep(5*second - time.Nanosecond)
		k.waits("b has time", w)
		time.Sleep(time.Nanosecond)
		k.returns("both are over", w, nil, "Unanswered")

		// A question of a round without a time waits on.
		k.restart()
		k.asks(forms("c"), &durabletasks.InputOptions{Timeout: 10 * second})
		k.restart()
		w = k.asks(forms("c", "d"), nil)
		time.Sleep(30 * time.Minute)
		k.waits("d has no time", w)
		k.shows("d")
		k.update(accepts("d"))
		k.returns("d", w, accepts("d"), "Unanswered")
	})
}

// The longest times to answer are not over at once.
func TestLongestTimeouts(t *testing.T) {
	const longest = math.MaxInt64 / time.Millisecond * time.Millisecond
	for _, timeout := range []time.Duration{longest, durabletasks.NoLimit} {
		bubble(t, func(t *testing.T) {
			k := newTask(t, newShared(), &durabletasks.Options{TTL: durabletasks.NoLimit})
			w := k.asks(forms("a"), &durabletasks.InputOptions{Timeout: timeout})
			time.Sleep(1000 * time.Hour)
			k.waits(timeout.String(), w)
			k.update(accepts("a"))
			k.returns(timeout.String(), w, accepts("a"), "ok")
		})
	}
}

// A worker may have a deadline that does not move with its runs. If it is over
// when the worker runs again, what was answered in time counts, and the rest is
// withdrawn.
func TestDeadlineOverBeforeALaterRun(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		k.asks(forms("a", "b"), nil)
		k.update(accepts("b"))
		over, cancel := context.WithDeadline(ctx, time.Now().Add(-second))
		defer cancel()
		late := func(requests map[string]wire.JSON) <-chan answer {
			return ask(func() (map[string]wire.JSON, error) { return k.h.RequestInput(over, requests, nil) })
		}
		k.restart()
		before := stored(t, k.store, k.id)
		for name, requests := range map[string]map[string]wire.JSON{"never asked": forms("new"), "another question": {"a": question("other?")}} {
			if a := <-late(requests); a.err != context.DeadlineExceeded || a.values != nil {
				t.Errorf("%s: %v, %v", name, a.values, a.err)
			}
		}
		if after := stored(t, k.store, k.id); !reflect.DeepEqual(before, after) {
			t.Errorf("changed: %+v", after)
		}
		a := <-late(forms("a", "b", "new"))
		if !reflect.DeepEqual(a.values, accepts("b")) || errorName(a.err) != "Unanswered" || !errors.Is(a.err, context.DeadlineExceeded) {
			t.Errorf("got %v, %v", a.values, a.err)
		}
		k.shows()
		k.ignores("a")
		if a := <-late(forms("b")); errorName(a.err) != "Duplicate" {
			t.Errorf("again in this run: %v", a.err)
		}
		k.restart()
		if a := <-late(forms("b")); !reflect.DeepEqual(a.values, accepts("b")) || a.err != nil {
			t.Errorf("all answered: %v, %v", a.values, a.err)
		}
		k.restart()
		a = <-late(forms("b", "new"))
		var unanswered *durabletasks.UnansweredError
		if !reflect.DeepEqual(a.values, accepts("b")) || !errors.As(a.err, &unanswered) || !slices.Equal(unanswered.Keys, []string{"new"}) {
			t.Errorf("some never asked: %v, %v", a.values, a.err)
		}
	})
}

// A store that commits and reports an error all the same, as one behind a
// network may, keeps nobody waiting for what is committed.
func TestWakesAfterACommitThatWasReportedAsFailed(t *testing.T) {
	for name, write := range map[string]func(k *task) error{
		"an answer":    func(k *task) error { _, err := k.l.UpdateTask(ctx, k.id, accepts("a")); return err },
		"a withdrawal": func(k *task) error { return handle(k.t, k.l, k.id).Withdraw(ctx, "a") },
		"a cancel":     func(k *task) error { return k.l.CancelTask(ctx, k.id) },
	} {
		bubble(t, func(t *testing.T) {
			store := &flawed{shared: newShared()}
			k := newTask(t, store, &durabletasks.Options{TTL: durabletasks.NoLimit})
			w := k.asks(forms("a"), nil)
			store.onUpdate = func(next durabletasks.Record) error {
				store.onUpdate = nil
				check(t, store.shared.Update(ctx, next))
				return errBroken
			}
			wantError(t, name, write(k), errBroken)
			synctest.Wait()
			select {
			case <-w:
			default:
				t.Errorf("%s: the worker still waits", name)
			}
			k.l.Close()
		})
	}
}

func TestTimeoutIsChecked(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		for _, bad := range []time.Duration{-2, -second, math.MinInt64, math.MaxInt64} {
			k.returns(bad.String(), k.asks(forms("a"), &durabletasks.InputOptions{Timeout: bad}), nil, "Invalid")
		}
		if r := stored(t, k.store, k.id); r.Version != 0 {
			t.Errorf("asked all the same: %+v", r)
		}
		// Whole milliseconds, and never less time than was said.
		time.Sleep(300 * time.Microsecond)
		now := time.Now()
		for i, row := range []struct{ in, want time.Duration }{
			{1, 2 * time.Millisecond}, {time.Millisecond, 2 * time.Millisecond}, {1500 * time.Microsecond, 3 * time.Millisecond}, {0, 0},
		} {
			k.rerun()
			own, cancel := context.WithCancel(ctx)
			key := fmt.Sprint(i)
			w := ask(func() (map[string]wire.JSON, error) {
				return k.h.RequestInput(own, forms(key), &durabletasks.InputOptions{Timeout: row.in})
			})
			cancel()
			<-w
			q := stored(t, k.store, k.id).Questions[i]
			want := time.Time{}
			if row.in != 0 {
				want = now.Truncate(time.Millisecond).Add(row.want).UTC()
			}
			if q.Key != key || q.Deadline != want {
				t.Errorf("timeout %v: %+v, want %v", row.in, q, want)
			}
		}
	})
}

// The time to answer goes by Options.Now. A clock that stands still withdraws
// nothing and keeps nobody busy; a clock that jumps is seen at the next look.
func TestTimeoutByTheHostsClock(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var offset atomic.Int64 // of the clock from a fixed time
		start := time.Now()
		clock := func() time.Time { return start.Add(time.Duration(offset.Load())) }
		var gets atomic.Int64
		store := &flawed{shared: newShared(), onGet: func(string) error { gets.Add(1); return nil }}
		k := newTask(t, store, &durabletasks.Options{Now: clock, TTL: durabletasks.NoLimit, SweepInterval: durabletasks.NoLimit})
		w := k.asks(forms("a"), &durabletasks.InputOptions{Timeout: 10 * second})
		gets.Store(0)
		time.Sleep(time.Hour)
		k.waits("a clock that stands still", w)
		if n := gets.Load(); n > 360 {
			t.Errorf("%d looks in an hour", n)
		}
		offset.Store(int64(-time.Hour))
		time.Sleep(time.Hour)
		k.waits("a clock that was set back", w)
		offset.Store(int64(10*second - time.Nanosecond))
		time.Sleep(2 * time.Hour)
		k.waits("just before the end", w)
		offset.Store(int64(10 * second))
		time.Sleep(time.Hour)
		k.returns("at the end", w, nil, "Unanswered")

		k.rerun()
		w = k.asks(forms("b"), &durabletasks.InputOptions{Timeout: 10 * second})
		offset.Store(int64(time.Hour))
		time.Sleep(10 * second)
		k.returns("a clock that jumped", w, nil, "Unanswered")
	})
}

// What ends a wait, and whether the questions stay open for the next run.
func TestWhatWithdraws(t *testing.T) {
	mine := errors.New("mine")
	for name, row := range map[string]struct {
		derive func(context.Context) (context.Context, context.CancelFunc)
		end    func(k *task, cancel context.CancelFunc)
		want   string
		open   bool
	}{
		"the worker's own deadline": {
			func(c context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(c, second) },
			func(k *task, _ context.CancelFunc) { time.Sleep(second) }, "Unanswered", false},
		"the worker's own deadline, with a cause": {
			func(c context.Context) (context.Context, context.CancelFunc) {
				return context.WithTimeoutCause(c, second, mine)
			},
			func(k *task, _ context.CancelFunc) { time.Sleep(second) }, "Unanswered", false},
		"the worker's own cancel": {context.WithCancel,
			func(_ *task, cancel context.CancelFunc) { cancel() }, context.Canceled.Error(), true},
		"a cancel before the deadline": {
			func(c context.Context) (context.Context, context.CancelFunc) { return context.WithTimeout(c, second) },
			func(_ *task, cancel context.CancelFunc) { cancel() }, context.Canceled.Error(), true},
		"the client's cancel": {context.WithCancel,
			func(k *task, _ context.CancelFunc) { check(k.t, k.l.CancelTask(ctx, k.id)) }, "Cancelled", true},
		"the end of the task": {context.WithCancel,
			func(k *task, _ context.CancelFunc) { check(k.t, handle(k.t, k.l, k.id).Complete(ctx, done)) }, "Terminal", false},
		"the expiry": {context.WithCancel,
			func(k *task, _ context.CancelFunc) { time.Sleep(time.Hour) }, "Expired", false},
		"Close": {context.WithCancel,
			func(k *task, _ context.CancelFunc) { k.l.Close() }, "Closed", true},
		"Shutdown": {context.WithCancel,
			func(k *task, _ context.CancelFunc) { k.l.Shutdown(ctx) }, "Shutdown", true},
	} {
		for _, base := range []string{"the task's context", "another context"} {
			t.Run(name+"/"+base, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					store := newShared()
					k := newTask(t, store, unswept)
					c := ctx
					if base == "the task's context" {
						c = k.h.Context()
					}
					own, cancel := row.derive(c)
					defer cancel()
					h := k.h
					w := ask(func() (map[string]wire.JSON, error) { return h.RequestInput(own, forms("a"), nil) })
					row.end(k, cancel)
					synctest.Wait()
					a := <-w
					if got := errorName(a.err); got != row.want || len(a.values) != 0 {
						t.Errorf("got %v, %v, want %s", a.values, a.err, row.want)
					}
					if row.want == "Unanswered" {
						if cause := context.Cause(own); !errors.Is(a.err, cause) {
							t.Errorf("%v does not hold the cause %v", a.err, cause)
						}
					}
					r, err := store.Get(ctx, k.id)
					if open := err == nil && r.Status == durabletasks.StatusInputRequired && len(r.InputResponses) == 0; open != row.open {
						t.Errorf("open %v, want %v: %v", open, row.open, r)
					}
				})
			})
		}
	}
}

// A store that fails while questions are withdrawn is reported, and the
// questions stay open.
func TestWithdrawalIsNotStored(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var refusing atomic.Bool
		store := &flawed{shared: newShared(), onUpdate: func(durabletasks.Record) error {
			if refusing.CompareAndSwap(true, false) {
				return errBroken
			}
			return nil
		}}
		k := newTask(t, store, nil)
		refuse := func() { refusing.Store(true) }
		own, cancel := context.WithTimeout(ctx, second)
		defer cancel()
		w := ask(func() (map[string]wire.JSON, error) { return k.h.RequestInput(own, forms("a"), nil) })
		refuse()
		wantError(t, "Withdraw", k.h.Withdraw(ctx), errBroken)
		k.waits("the waiter", w)
		refuse()
		time.Sleep(second)
		a := <-w
		wantError(t, "the worker's own deadline", a.err, errBroken)
		wantError(t, "the worker's own deadline", a.err, context.DeadlineExceeded)
		k.shows("a")

		k.rerun()
		w = k.asks(forms("a", "b"), &durabletasks.InputOptions{Timeout: second})
		refuse()
		time.Sleep(second)
		k.returns("the question's deadline", w, nil, "Broken")
		k.shows("a", "b")
		k.rerun()
		k.update(accepts("a"))
		k.returns("the next run", request(k.h, "a", "b"), accepts("a"), "Unanswered")
	})
}

// An answer that is committed at the very moment of the deadline is returned.
func TestAnswerAtTheDeadline(t *testing.T) {
	for _, own := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			store := &flawed{shared: newShared()}
			k := newTask(t, store, nil)
			c, opts := ctx, &durabletasks.InputOptions{Timeout: second}
			if own {
				var cancel context.CancelFunc
				c, cancel = context.WithTimeout(ctx, second)
				defer cancel()
				opts = nil
			}
			h := k.h
			w := ask(func() (map[string]wire.JSON, error) { return h.RequestInput(c, forms("a"), opts) })
			// The answer has the turn to write when the time is over.
			store.onUpdate = func(durabletasks.Record) error {
				store.onUpdate = nil
				time.Sleep(2 * second)
				return nil
			}
			k.update(accepts("a"))
			k.returns(fmt.Sprintf("own deadline %v", own), w, accepts("a"), "ok")
		})
	}
	// The same race, decided by the scheduler: an acknowledged answer is returned.
	bubble(t, func(t *testing.T) {
		answered, ignored := 0, 0
		l := open(t, newShared(), unswept)
		for round := range 200 {
			id := create(t, l, nil)
			h := handle(t, l, id)
			c, cancel := context.WithTimeout(ctx, second)
			var opts *durabletasks.InputOptions
			if round%2 == 0 {
				c, opts = ctx, &durabletasks.InputOptions{Timeout: second}
			}
			w := ask(func() (map[string]wire.JSON, error) { return h.RequestInput(c, forms("a"), opts) })
			time.Sleep(second)
			left, err := l.UpdateTask(ctx, id, accepts("a"))
			check(t, err)
			a := <-w
			if (len(left) == 0) != (a.err == nil) || (a.err == nil) != (a.values["a"] == accept) {
				t.Fatalf("acknowledged %v, returned %v, %v", len(left) == 0, a.values, a.err)
			}
			if a.err == nil {
				answered++
			} else {
				ignored++
			}
			cancel()
		}
		t.Logf("%d answered, %d ignored", answered, ignored)
	})
}

// A run learns that another engine's worker has taken over: its answers are
// gone with the checkpoint that the other saved. What it returns then does not
// settle the task.
func TestAnotherWorkerTakesOver(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		a, b := open(t, store, nil), open(t, store, nil)
		var got error
		c, err := a.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			values, err := h.RequestInput(ctx, forms("a"), nil)
			got = err
			if values != nil {
				t.Errorf("answers %v", values)
			}
			return wire.JSON{}, fmt.Errorf("ask: %w", err)
		})
		check(t, err)
		synctest.Wait()
		other := handle(t, b, c.TaskID)
		w := request(other, "a")
		_, err = b.UpdateTask(ctx, c.TaskID, accepts("a"))
		check(t, err)
		check(t, (<-w).err)
		check(t, other.SaveCheckpoint(ctx, 1))
		check(t, handle(t, a, c.TaskID).Progress(ctx, "", nil)) // so that the first engine reads the task
		synctest.Wait()
		wantError(t, "the first worker", got, durabletasks.ErrLost)
		if v := get(t, a, c.TaskID); v.Status != durabletasks.StatusWorking {
			t.Errorf("the first worker has settled the task: %s", v.Status)
		}
		check(t, other.Complete(ctx, done))
	})
}

// One simple question: what the client sees, and what each answer means.
func TestSimpleQuestions(t *testing.T) {
	const yes = `{"action":"accept","content":{"confirm":true}}`
	confirm := func(h *durabletasks.Handle) (string, error) {
		v, err := h.Confirm(ctx, "key", "Sure?")
		return fmt.Sprint(v), err
	}
	choose := func(h *durabletasks.Handle) (string, error) {
		return h.Choose(ctx, "key", "Which?", wire.Option{Value: "r", Title: "Red"}, wire.Option{Value: "g"})
	}
	prompt := func(h *durabletasks.Handle) (string, error) { return h.Prompt(ctx, "key", "Name?") }
	for name, row := range map[string]struct {
		call      func(*durabletasks.Handle) (string, error)
		answer    string
		want, err string
	}{
		"Confirm, yes":                {confirm, yes, "true", "ok"},
		"Confirm, no":                 {confirm, `{"action":"accept","content":{"confirm":false}}`, "false", "ok"},
		"Confirm, declined":           {confirm, `{"action":"decline"}`, "false", "ok"},
		"Confirm, dismissed":          {confirm, `{"action":"cancel"}`, "false", "ok"},
		"Confirm, declined, yet true": {confirm, `{"action":"decline","content":{"confirm":true}}`, "false", "ok"},
		"Confirm, nothing":            {confirm, `{"action":"accept"}`, "false", "Shape"},
		"Confirm, empty":              {confirm, `{"action":"accept","content":{}}`, "false", "Shape"},
		"Confirm, a text":             {confirm, `{"action":"accept","content":{"confirm":"true"}}`, "false", "Shape"},
		"Confirm, other case":         {confirm, `{"action":"accept","content":{"CONFIRM":true}}`, "false", "Shape"},
		"Choose, one":                 {choose, `{"action":"accept","content":{"choice":"r"}}`, "r", "ok"},
		"Choose, without a title":     {choose, `{"action":"accept","content":{"choice":"g"}}`, "g", "ok"},
		"Choose, a title":             {choose, `{"action":"accept","content":{"choice":"Red"}}`, "", "Shape"},
		"Choose, no option":           {choose, `{"action":"accept","content":{"choice":"b"}}`, "", "Shape"},
		"Choose, a number":            {choose, `{"action":"accept","content":{"choice":1}}`, "", "Shape"},
		"Choose, nothing":             {choose, `{"action":"accept"}`, "", "Shape"},
		"Choose, declined":            {choose, `{"action":"decline"}`, "", "Declined"},
		"Choose, dismissed":           {choose, `{"action":"cancel"}`, "", "Declined"},
		"Prompt, a text":              {prompt, `{"action":"accept","content":{"text":"Ada \u00e9"}}`, "Ada é", "ok"},
		"Prompt, empty":               {prompt, `{"action":"accept","content":{"text":""}}`, "", "ok"},
		"Prompt, a number":            {prompt, `{"action":"accept","content":{"text":1}}`, "", "Shape"},
		"Prompt, nothing":             {prompt, `{"action":"accept"}`, "", "Shape"},
		"Prompt, declined":            {prompt, `{"action":"decline"}`, "", "Declined"},
		"Prompt, dismissed":           {prompt, `{"action":"cancel"}`, "", "Declined"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				k := newTask(t, newShared(), nil)
				type result struct {
					value string
					err   error
				}
				back := make(chan result, 1)
				run := func() {
					v, err := row.call(k.h)
					back <- result{v, err}
				}
				go run()
				synctest.Wait()
				v := get(t, k.l, k.id)
				request := v.InputRequests["key"]
				if err := wire.CheckInputRequest(request); err != nil || len(v.InputRequests) != 1 {
					t.Fatalf("the client sees %v: %v", v.InputRequests, err)
				}
				if kinds := wire.KindsOf(request); kinds != wire.InputForm {
					t.Errorf("kinds %v", kinds)
				}
				k.update(map[string]wire.JSON{"key": wire.MustParse(row.answer)})
				for range 2 {
					got := <-back
					if got.value != row.want || errorName(got.err) != row.err {
						t.Errorf("got %q, %v, want %q, %s", got.value, got.err, row.want, row.err)
					}
					var shape *wire.ShapeError
					if errors.As(got.err, &shape) && (shape.Key != "key" || !strings.HasPrefix(shape.Pointer, "/content")) {
						t.Errorf("the error tells key %q at %q", shape.Key, shape.Pointer)
					}
					k.restart() // a later run gets the same
					go run()
				}
			})
		})
	}

	l := open(t, newShared(), nil)
	h := handle(t, l, create(t, l, &durabletasks.CreateOptions{UnsupportedInput: wire.InputForm}))
	for name, call := range map[string]func(*durabletasks.Handle) (string, error){"Confirm": confirm, "Choose": choose, "Prompt": prompt} {
		_, err := call(h)
		var rpc *wire.Error
		if errorName(err) != "Unsupported" || !errors.As(err, &rpc) || rpc.Code != wire.CodeMissingCapability {
			t.Errorf("%s, unsupported: %v", name, err)
		}
	}
	bad := map[string]error{}
	_, bad["Confirm without a message"] = h.Confirm(ctx, "k", "")
	_, bad["Choose without options"] = h.Choose(ctx, "k", "Which?")
	_, bad["Choose among equal options"] = h.Choose(ctx, "k", "Which?", wire.Options("a", "a")...)
	_, bad["Prompt under a key that is no text"] = h.Prompt(ctx, "\xff", "Name?")
	for name, err := range bad {
		wantError(t, name, err, durabletasks.ErrInvalid)
	}
}

// Two requests that are simple questions under one key are as different as
// their words.
func TestSimpleQuestionsShareKeys(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		go k.h.Choose(ctx, "k", "Which?", wire.Options("a", "b")...)
		synctest.Wait()
		k.update(map[string]wire.JSON{"k": wire.MustParse(`{"action":"accept","content":{"choice":"a"}}`)})
		synctest.Wait()
		k.rerun()
		_, err := k.h.Choose(ctx, "k", "Which?", wire.Options("b", "a")...)
		wantError(t, "other options", err, durabletasks.ErrDuplicateKey)
		_, err = k.h.Prompt(ctx, "k", "Which?")
		wantError(t, "another kind", err, durabletasks.ErrDuplicateKey)
		if got, err := k.h.Choose(ctx, "k", "Which?", wire.Options("a", "b")...); got != "a" || err != nil {
			t.Errorf("the same: %q, %v", got, err)
		}
	})
}
