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

// task is a task in an engine that can be restarted.
type task struct {
	t     *testing.T
	store durabletasks.TaskStore
	opts  *durabletasks.Options
	l     *durabletasks.TaskLifecycle
	id    string
	h     *durabletasks.Handle
}

func newTask(t *testing.T, store durabletasks.TaskStore, opts *durabletasks.Options) *task {
	k := &task{t: t, store: store, opts: opts}
	k.l = open(t, store, opts)
	k.id = create(t, k.l, nil)
	k.h = handle(t, k.l, k.id)
	return k
}

// restart ends the engine and continues with another over the same store.
func (k *task) restart() {
	k.l.Close()
	synctest.Wait()
	k.l = open(k.t, k.store, k.opts)
	k.rerun()
}

// rerun begins another run of the task's worker.
func (k *task) rerun() {
	k.t.Helper()
	k.h = handle(k.t, k.l, k.id)
}

func (k *task) update(responses map[string]wire.JSON) {
	k.t.Helper()
	_, err := k.l.UpdateTask(ctx, k.id, responses)
	check(k.t, err)
}

// returns checks that a call for input has returned these values and error.
func (k *task) returns(what string, w <-chan answer, values map[string]wire.JSON, err string) {
	k.t.Helper()
	synctest.Wait()
	select {
	case a := <-w:
		if !maps.Equal(a.values, values) || errorName(a.err) != err {
			k.t.Errorf("%s: got %v, %v, want %v, %s", what, a.values, a.err, values, err)
		}
	default:
		k.t.Errorf("%s: still waits", what)
	}
}

// waits checks that a call for input has not returned.
func (k *task) waits(what string, w <-chan answer) {
	k.t.Helper()
	synctest.Wait()
	select {
	case a := <-w:
		k.t.Errorf("%s: returned %v, %v", what, a.values, a.err)
	default:
	}
}

// shows checks which questions the client sees.
func (k *task) shows(keys ...string) {
	k.t.Helper()
	v := get(k.t, k.l, k.id)
	if !maps.Equal(v.InputRequests, forms(keys...)) || (v.Status == durabletasks.StatusInputRequired) != (len(keys) > 0) {
		k.t.Errorf("the client sees %s with %v, want %v", v.Status, v.InputRequests, keys)
	}
}

// An acknowledged answer stays with the task until its worker has moved on,
// even if processes die in between.
func TestAnswersSurvive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "a", "b")
		k.update(map[string]wire.JSON{"a": accept})
		k.restart()
		k.returns("the waiter of a closed engine", w, nil, "Closed")
		k.shows("b")
		w = request(k.h, "a", "b")
		k.update(map[string]wire.JSON{"a": decline, "b": decline})
		want := map[string]wire.JSON{"a": accept, "b": decline}
		k.returns("both", w, want, "ok")
		// The worker had them, and died before it wrote anything.
		for range 2 {
			k.restart()
			k.returns("after a restart", request(k.h, "a", "b"), want, "ok")
		}
		// Its copy is its own to change.
		k.rerun()
		a := <-request(k.h, "a", "b")
		clear(a.values)
		check(t, k.h.Progress(ctx, "thinking", nil))
		// A checkpoint of a run that was not given the answers keeps them.
		k.restart()
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: aText}))
		k.returns("after a checkpoint", request(k.h, "a", "b"), want, "ok")
		// A call that is refused loses none of them.
		k.returns("a used key", request(k.h, "a"), nil, "Duplicate")
		if r := stored(t, k.store, k.id); !reflect.DeepEqual(r.InputResponses, want) {
			t.Errorf("answers in the record: %v", r.InputResponses)
		}
		// Having been given them, its next checkpoint drops them.
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: done}))
		if r := stored(t, k.store, k.id); r.InputResponses != nil {
			t.Errorf("answers kept: %v", r.InputResponses)
		}
		k.rerun()
		k.returns("after the checkpoint", request(k.h, "a", "b"), nil, "Duplicate")
	})
}

// A worker that runs again asks again, and continues where an earlier run
// stopped: before an answer, between answers, and after them.
func TestRunAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		request(k.h, "a", "b")
		asked := stored(t, k.store, k.id)
		time.Sleep(second)
		k.restart()
		w := request(k.h, "a", "b")
		if r := stored(t, k.store, k.id); !reflect.DeepEqual(r, asked) {
			t.Errorf("asking again changed the record:\n%+v\n%+v", asked, r)
		}
		k.returns("next to a call that waits", request(handle(t, k.l, k.id), "a", "b"), nil, "Pending")
		k.update(accepts("a"))
		k.restart()
		k.returns("the waiter of a closed engine", w, nil, "Closed")
		// What is answered is returned, what is not is waited for.
		k.returns("the answered part", request(k.h, "a"), accepts("a"), "ok")
		k.shows("b")
		w = request(k.h, "b")
		k.update(accepts("b"))
		k.returns("the other part", w, accepts("b"), "ok")
		for range 2 {
			k.restart()
			k.returns("both", request(k.h, "a", "b"), accepts("a", "b"), "ok")
		}

		// What the worker has saved it does not ask again.
		check(t, k.h.Progress(ctx, "thinking", nil))
		check(t, k.h.SaveCheckpoint(ctx, done))
		if r := stored(t, k.store, k.id); r.InputResponses != nil || r.Checkpoint != done || r.StatusMessage != "thinking" {
			t.Errorf("after the checkpoint: %+v", r)
		}
		for range 2 {
			for _, keys := range [][]string{{"a"}, {"a", "b"}, {"b", "c"}} {
				k.returns("what is gone", request(k.h, keys...), nil, "Duplicate")
			}
			k.restart()
		}

		// New questions are a new round.
		w = request(k.h, "c")
		k.shows("c")
		check(t, k.l.CancelTask(ctx, k.id))
		k.returns("cancelled", w, nil, "Cancelled")
		k.rerun()
		k.returns("cancelled before", request(k.h, "c"), nil, "Cancelled")
		k.returns("nothing", request(k.h), nil, "Invalid")
	})
}

// A worker of several rounds that runs again, from its start or from its
// checkpoint, gets what has been answered, and asks the rest.
func TestSeveralRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		gets := func(keys ...string) {
			t.Helper()
			k.returns(fmt.Sprint(keys), request(k.h, keys...), accepts(keys...), "ok")
		}
		request(k.h, "a")
		k.update(accepts("a"))
		k.restart()
		gets("a")
		request(k.h, "b", "c")
		k.shows("b", "c")
		// Being given the answers of an earlier round leaves the next one open.
		k.restart()
		gets("a")
		k.shows("b", "c")
		k.update(accepts("c"))
		k.restart()
		gets("a")
		gets("c")
		k.shows("b")
		w := request(k.h, "b")
		k.shows("b")
		k.update(accepts("b"))
		k.returns("b", w, accepts("b"), "ok")
		// Some of it is new.
		k.rerun()
		request(k.h, "c", "d", "a")
		k.shows("d")
		k.restart()
		w = request(k.h, "d", "c", "e")
		k.shows("d", "e")
		k.update(accepts("d"))
		k.shows("e")
		k.update(accepts("e"))
		k.returns("old and new", w, accepts("c", "d", "e"), "ok")
		// The checkpoint covers what this run was given, and nothing else.
		check(t, k.h.SaveCheckpoint(ctx, done))
		gets("a")
		gets("b")
		k.rerun()
		k.returns("before the checkpoint", request(k.h, "c"), nil, "Duplicate")
		k.restart()
		gets("a", "b")
		check(t, k.h.SaveCheckpoint(ctx, done))
		r := stored(t, k.store, k.id)
		if r.InputResponses != nil || !slices.Equal(asked(r), []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("%+v", r)
		}
	})
}

// asked returns the keys of a record's questions.
func asked(r durabletasks.Record) []string {
	var keys []string
	for _, q := range r.Questions {
		keys = append(keys, q.Key)
	}
	return keys
}

// A checkpoint between two answers of a round keeps the first, which would be
// asked for again otherwise.
func TestCheckpointWithinARound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "a", "b")
		k.update(accepts("a"))
		k.returns("next to the waiter", request(handle(t, k.l, k.id), "a"), nil, "Pending")
		k.restart()
		k.returns("the waiter of a closed engine", w, nil, "Closed")
		k.returns("the answer", request(k.h, "a"), accepts("a"), "ok")
		check(t, k.h.SaveCheckpoint(ctx, done))
		k.shows("b")
		k.update(accepts("b"))
		k.rerun()
		k.returns("both", request(k.h, "a", "b"), accepts("a", "b"), "ok")
	})
}

// A task that has ended has no use for answers.
func TestAnswersAreDropped(t *testing.T) {
	for name, next := range map[string]func(k *task) error{
		"complete":  func(k *task) error { return k.h.Complete(ctx, done) },
		"fail":      func(k *task) error { return k.h.Fail(ctx, &wire.Error{Message: "m"}) },
		"cancelled": func(k *task) error { return k.h.Cancelled(ctx, "") },
	} {
		bubble(t, func(t *testing.T) {
			k := newTask(t, newShared(), nil)
			w := request(k.h, "a")
			k.update(accepts("a"))
			check(t, (<-w).err)
			synctest.Wait()
			check(t, next(k))
			if r := stored(t, k.store, k.id); r.InputResponses != nil {
				t.Errorf("%s: %v", name, r.InputResponses)
			}
		})
	}
}

// A checkpoint through one handle does not drop the answers of another.
func TestCheckpointNextToAnotherRound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "a")
		k.update(accepts("a"))
		check(t, (<-w).err)
		other := handle(t, k.l, k.id)
		gone, cancel := context.WithCancel(ctx)
		w = ask(func() (map[string]wire.JSON, error) { return other.RequestInput(gone, forms("b"), nil) })
		cancel()
		<-w
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: aText}))
		k.update(accepts("b"))
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: aText}))
		k.returns("b", request(handle(t, k.l, k.id), "b"), accepts("b"), "ok")
	})
}

// A wait that its caller cancels leaves its questions open for the next run.
// A wait that ends by its caller's deadline withdraws them.
func TestWaitIsGivenUp(t *testing.T) {
	mine := errors.New("mine")
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		refused := func(c context.Context, want error) {
			t.Helper()
			synctest.Wait()
			k.rerun()
			_, err := k.h.RequestInput(c, forms("other"), nil)
			wantError(t, "asking with a context that is done", err, want)
		}
		for _, end := range []func() (context.Context, func()){
			func() (context.Context, func()) {
				c, cancel := context.WithCancelCause(ctx)
				return c, func() { cancel(mine) }
			},
			func() (context.Context, func()) {
				c, cancel := context.WithTimeoutCause(ctx, second, mine)
				t.Cleanup(cancel)
				return c, func() { time.Sleep(second) }
			},
		} {
			c, end := end()
			_, timed := c.Deadline()
			key := fmt.Sprint("key", timed)
			w := ask(func() (map[string]wire.JSON, error) { return k.h.RequestInput(c, forms(key), nil) })
			k.shows(key)
			k.returns("a second waiter", request(handle(t, k.l, k.id), key), nil, "Pending")
			k.returns("a second asker", request(k.h, "other"), nil, "Pending")
			end()
			synctest.Wait()
			a := <-w
			wantError(t, "the waiter", a.err, mine)
			if errors.Is(a.err, durabletasks.ErrUnanswered) != timed {
				t.Errorf("the waiter: %v", a.err)
			}
			refused(c, mine)
			k.rerun()
			if !timed {
				k.shows(key)
				w = request(k.h, key)
				k.update(accepts(key))
				k.returns("the next run", w, accepts(key), "ok")
				continue
			}
			k.shows()
			ignored, err := k.l.UpdateTask(ctx, k.id, accepts(key))
			if err != nil || !slices.Equal(ignored, []string{key}) {
				t.Errorf("a late answer: ignored %q, %v", ignored, err)
			}
			k.returns("the next run", request(k.h, key), nil, "Unanswered")
		}
	})
}

// A key is used once in a task's lifetime, however it is spelled.
func TestKeysAreNeverReused(t *testing.T) {
	keys := []string{"", " ", "__proto__", "constructor", "a\x00b", "\u00e9", "e\u0301", strings.Repeat("k", 10_000)}
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		for _, key := range keys {
			w := request(k.h, key)
			k.update(accepts(key))
			if a := <-w; a.err != nil || a.values[key] != accept {
				t.Errorf("key %.10q: %v", key, a)
			}
		}
		w := request(k.h, "y", "x") // one round's keys are kept in order
		k.update(accepts("x", "y"))
		check(t, (<-w).err)
		keys := append(slices.Clone(keys), "x", "y")
		other := wire.MustParse(`{"method":"roots/list"}`)
		for range 2 {
			for _, key := range keys {
				requests := forms("new")
				requests[key] = other
				_, err := k.h.RequestInput(ctx, requests, nil)
				var again *durabletasks.DuplicateKeyError
				if !errors.As(err, &again) || again.Key != key {
					t.Errorf("key %.10q again: %.100v", key, err)
				}
			}
			k.restart()
		}
		// Of several, the first in order is named.
		for _, row := range []struct {
			keys []string
			want string
		}{{keys, slices.Min(keys)}, {[]string{"constructor", "a\x00b"}, "a\x00b"}, {[]string{"y", "x"}, "x"}} {
			requests := make(map[string]wire.JSON)
			for _, key := range row.keys {
				requests[key] = other
			}
			_, err := k.h.RequestInput(ctx, requests, nil)
			var again *durabletasks.DuplicateKeyError
			if !errors.As(err, &again) || again.Key != row.want {
				t.Errorf("keys %.10q again: %.100v", row.keys, err)
			}
		}
		if r := stored(t, k.store, k.id); !slices.Equal(asked(r), keys) {
			t.Errorf("asked %.10q", asked(r))
		}
	})
}

// The maps that go in and come out belong to their callers.
func TestRequestsAreCopied(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		requests := forms("a")
		w := ask(func() (map[string]wire.JSON, error) { return k.h.RequestInput(ctx, requests, nil) })
		clear(requests)
		v := get(t, k.l, k.id)
		if !reflect.DeepEqual(v.InputRequests, forms("a")) {
			t.Errorf("requests %v", v.InputRequests)
		}
		clear(v.InputRequests)
		answers := accepts("a")
		k.update(answers)
		clear(answers)
		a := <-w
		if !reflect.DeepEqual(a.values, accepts("a")) {
			t.Errorf("answers %v", a)
		}
		clear(a.values)
		if r := stored(t, k.store, k.id); !reflect.DeepEqual(r.InputResponses, accepts("a")) {
			t.Errorf("stored %v", r.InputResponses)
		}
	})
}

// A cancellation reaches every kind of worker and outlives every process. A
// worker that asks after it asks nobody.
func TestCancelIsDurable(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		hctx := k.h.Context()
		w := request(k.h, "a")
		before := get(t, k.l, k.id)
		time.Sleep(second)
		check(t, k.l.CancelTask(ctx, k.id))
		wantError(t, "waiter", (<-w).err, durabletasks.ErrCancelled)
		synctest.Wait()
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrCancelled)
		for range 2 {
			k.restart()
			wantError(t, "context", context.Cause(k.h.Context()), durabletasks.ErrCancelled)
			_, err := k.h.RequestInput(ctx, forms("b"), nil)
			wantError(t, "RequestInput", err, durabletasks.ErrCancelled)
			_, err = k.h.RequestInput(ctx, forms("a"), nil)
			wantError(t, "RequestInput of what is open", err, durabletasks.ErrCancelled)
			if v := get(t, k.l, k.id); !reflect.DeepEqual(v, before) {
				t.Errorf("a cancel shows: %+v", v)
			}
			version := stored(t, k.store, k.id).Version
			check(t, k.l.CancelTask(ctx, k.id))
			if v := stored(t, k.store, k.id).Version; v != version {
				t.Errorf("a second cancel was committed")
			}
		}
		check(t, k.l.Go(ctx, k.id, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			_, err := h.RequestInput(ctx, forms("a"), nil)
			return wire.JSON{}, err
		}))
		synctest.Wait()
		if v := get(t, k.l, k.id); v.Status != durabletasks.StatusCancelled {
			t.Errorf("status %s", v.Status)
		}
	})
}

// A worker settles its task with the context that it has, even after the task
// has ended that context, and learns how the task ended. A context that the
// worker itself has ended stops a write.
func TestWritesOfEndedContexts(t *testing.T) {
	writes := map[string]func(ctx context.Context, h *durabletasks.Handle) error{
		"Complete":   func(ctx context.Context, h *durabletasks.Handle) error { return h.Complete(ctx, done) },
		"Fail":       func(ctx context.Context, h *durabletasks.Handle) error { return h.Fail(ctx, &wire.Error{Message: "m"}) },
		"Cancelled":  func(ctx context.Context, h *durabletasks.Handle) error { return h.Cancelled(ctx, "") },
		"Progress":   func(ctx context.Context, h *durabletasks.Handle) error { return h.Progress(ctx, "m", nil) },
		"ExtendTTL":  func(ctx context.Context, h *durabletasks.Handle) error { return h.ExtendTTL(ctx, 9*time.Hour) },
		"Checkpoint": func(ctx context.Context, h *durabletasks.Handle) error { _, err := h.Checkpoint(ctx); return err },
	}
	for name, write := range writes {
		for end, row := range map[string]struct {
			do   func(k *task)
			want string
		}{
			"cancel":    {func(k *task) { check(t, k.l.CancelTask(ctx, k.id)) }, "ok"},
			"ended":     {func(k *task) { check(t, handle(t, k.l, k.id).Complete(ctx, done)) }, "Terminal"},
			"expired":   {func(k *task) { time.Sleep(time.Hour); synctest.Wait() }, "NotFound"},
			"closed":    {func(k *task) { k.l.Close() }, "Closed"},
			"shut down": {func(k *task) { go k.l.Shutdown(ctx); synctest.Wait() }, "ok"},
		} {
			bubble(t, func(t *testing.T) {
				k := newTask(t, newShared(), unswept)
				if end == "shut down" { // somebody must hold it up
					stop := make(chan struct{})
					defer close(stop)
					_, err := k.l.StartTask(ctx, nil, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { <-stop; return done, nil })
					check(t, err)
				}
				derived, cancel := context.WithTimeout(k.h.Context(), 3*time.Hour)
				defer cancel()
				row.do(k)
				if derived.Err() == nil {
					t.Fatal("context did not end")
				}
				if got := errorName(write(derived, k.h)); got != row.want {
					t.Errorf("%s, %s: got %s, want %s", name, end, got, row.want)
				}
			})
		}
		bubble(t, func(t *testing.T) {
			k := newTask(t, newShared(), nil)
			mine, cancel := context.WithCancel(k.h.Context())
			cancel()
			wantError(t, name+" of a caller who has left", write(mine, k.h), context.Canceled)
			if r := stored(t, k.store, k.id); r.Version != 0 {
				t.Errorf("%s was committed", name)
			}
		})
	}
}

// A context that the task has ended asks nothing.
func TestAskingWithAnEndedContext(t *testing.T) {
	for want, end := range map[string]func(k *task){
		"Cancelled": func(k *task) { check(k.t, k.l.CancelTask(ctx, k.id)) },
		"Terminal":  func(k *task) { check(k.t, handle(k.t, k.l, k.id).Complete(ctx, done)) },
		"Expired":   func(k *task) { time.Sleep(time.Hour); synctest.Wait() },
		"Closed":    func(k *task) { k.l.Close() },
		"Shutdown":  func(k *task) { go k.l.Shutdown(ctx); synctest.Wait() },
	} {
		bubble(t, func(t *testing.T) {
			store := newShared()
			k := newTask(t, store, unswept)
			stop := make(chan struct{})
			defer close(stop)
			_, err := k.l.StartTask(ctx, nil, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { <-stop; return done, nil })
			check(t, err)
			hctx := k.h.Context()
			end(k)
			version := int64(-1)
			if r, err := store.Get(ctx, k.id); err == nil {
				version = r.Version
			}
			_, err = k.h.RequestInput(hctx, forms("a"), nil)
			if errorName(err) != want {
				t.Errorf("got %v, want %s", err, want)
			}
			if r, err := store.Get(ctx, k.id); err == nil && r.Version != version {
				t.Errorf("%s: asked all the same", want)
			}
		})
	}
}

// If the context ends before anything is asked, the error is its cause.
func TestContextEndsWhileAsking(t *testing.T) {
	mine := errors.New("mine")
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		k := newTask(t, store, nil)
		own, cancel := context.WithCancelCause(ctx)
		store.onGet = func(string) error { cancel(mine); return nil }
		_, err := k.h.RequestInput(own, forms("a"), nil)
		wantError(t, "RequestInput", err, mine)
		store.onGet = nil
		if r := stored(t, store, k.id); r.Version != 0 {
			t.Errorf("asked all the same")
		}
	})
}

// A write that waits for its turn is not lost when the task ends the worker's
// context meanwhile.
func TestWritesThatWaitTheirTurn(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		k := newTask(t, store, nil)
		slow := make(chan struct{})
		store.onUpdate = func(durabletasks.Record) error { <-slow; return nil }
		cancelled := make(chan error, 1)
		go func() { cancelled <- k.l.CancelTask(ctx, k.id) }()
		synctest.Wait()
		hctx := k.h.Context()
		completed, own := make(chan error, 1), make(chan error, 1)
		go func() { completed <- k.h.Complete(hctx, done) }()
		short, stop := context.WithTimeout(hctx, second)
		defer stop()
		go func() { own <- k.h.Progress(short, "never", nil) }()
		time.Sleep(2 * second)
		wantError(t, "a write that waited too long", <-own, context.DeadlineExceeded)
		close(slow)
		check(t, <-cancelled)
		check(t, <-completed)
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrCancelled)
		if v := get(t, k.l, k.id); v.Status != durabletasks.StatusCompleted {
			t.Errorf("status %s", v.Status)
		}
	})
}

func TestCheckpoint(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		if saved, err := k.h.Checkpoint(ctx); err != nil || !saved.IsZero() {
			t.Errorf("at first: %v, %v", saved, err)
		}
		var want wire.JSON
		for i := range 3 {
			want = wire.MustParse(fmt.Sprintf(`{"page":%d}`, i))
			check(t, k.h.Progress(ctx, "m", &durabletasks.ProgressOptions{Checkpoint: want}))
			if r := stored(t, k.store, k.id); r.Version != int64(i+1) || r.StatusMessage != "m" || r.Checkpoint != want {
				t.Errorf("not one commit: %+v", r)
			}
		}
		check(t, k.h.Progress(ctx, "", nil))
		k.restart()
		if saved, err := k.h.Checkpoint(ctx); err != nil || saved != want {
			t.Errorf("after a restart: %v, %v", saved, err)
		}
		if text := string(wire.GetTaskResult{Task: get(t, k.l, k.id)}.AppendJSON(nil)); strings.Contains(text, "page") {
			t.Errorf("a client sees it: %s", text)
		}
	})
}

// A checkpoint is any Go value that has a JSON encoding, and comes back as one.
func TestTypedCheckpoints(t *testing.T) {
	type state struct {
		Page int               `json:"page"`
		Seen map[string]string `json:"seen,omitempty"`
	}
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		if v, err := durabletasks.Checkpoint[state](ctx, k.h); v.Page != 0 || v.Seen != nil || err != nil {
			t.Errorf("at first: %+v, %v", v, err)
		}
		if v, err := durabletasks.Checkpoint[*state](ctx, k.h); v != nil || err != nil {
			t.Errorf("at first: %+v, %v", v, err)
		}
		saves := map[string]func(v any) error{
			"SaveCheckpoint": func(v any) error { return k.h.SaveCheckpoint(ctx, v) },
			"Progress": func(v any) error {
				return k.h.Progress(ctx, "m", &durabletasks.ProgressOptions{Checkpoint: v})
			},
		}
		for name, save := range saves {
			check(t, save(state{Page: 7, Seen: map[string]string{"<a>": "&"}}))
			if r := stored(t, k.store, k.id); r.Checkpoint.String() != `{"page":7,"seen":{"<a>":"&"}}` {
				t.Errorf("%s: a struct became %s", name, r.Checkpoint)
			}
			k.restart()
			v, err := durabletasks.Checkpoint[state](ctx, k.h)
			if v.Page != 7 || v.Seen["<a>"] != "&" || err != nil {
				t.Errorf("%s: a struct came back as %+v, %v", name, v, err)
			}
			// What does not fit is an error that quotes nothing, and no half value.
			_, err = durabletasks.Checkpoint[int](ctx, k.h)
			if !errors.Is(err, durabletasks.ErrInvalid) || !strings.Contains(err.Error(), "int") || strings.Contains(err.Error(), "<a>") {
				t.Errorf("%s: a struct as an int: %v", name, err)
			}
			check(t, save(wire.MustParse(`{"page":8,"seen":{"secret":1}}`)))
			v, err = durabletasks.Checkpoint[state](ctx, k.h)
			if !errors.Is(err, durabletasks.ErrInvalid) || strings.Contains(err.Error(), "secret") || v.Page != 0 || v.Seen != nil {
				t.Errorf("%s: what fits in part: %+v, %v", name, v, err)
			}
			check(t, save(42))
			if v, err := durabletasks.Checkpoint[int](ctx, k.h); v != 42 || err != nil {
				t.Errorf("%s: an int came back as %v, %v", name, v, err)
			}
			if v, err := durabletasks.Checkpoint[string](ctx, k.h); v != "" || !errors.Is(err, durabletasks.ErrInvalid) || strings.Contains(err.Error(), "42") {
				t.Errorf("%s: an int as a string: %q, %v", name, v, err)
			}
			odd := wire.MustParse(`{"n":12345678901234567890,"f":1.0}`)
			check(t, save(odd))
			if v, err := durabletasks.Checkpoint[wire.JSON](ctx, k.h); v != odd || err != nil {
				t.Errorf("%s: JSON came back as %v, %v", name, v, err)
			}
			if v, err := k.h.Checkpoint(ctx); v != odd || err != nil {
				t.Errorf("%s: JSON came back raw as %v, %v", name, v, err)
			}
			// A nil pointer is a value: JSON null.
			check(t, save((*state)(nil)))
			if v, err := durabletasks.Checkpoint[*state](ctx, k.h); v != nil || err != nil || stored(t, k.store, k.id).Checkpoint.String() != "null" {
				t.Errorf("%s: a nil pointer came back as %v, %v", name, v, err)
			}
			check(t, save("kept"))
			before := stored(t, k.store, k.id)
			for what, bad := range map[string]any{
				"a channel": make(chan int), "a function": func() {}, "NaN": math.NaN(), "a cycle": cycle(),
				"an error with the value": leaky{"secret"}, "too deep": nested(wire.MaxDepth + 1),
			} {
				err := save(bad)
				if !errors.Is(err, durabletasks.ErrInvalid) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "NaN") {
					t.Errorf("%s: %s: %v", name, what, err)
				}
			}
			if after := stored(t, k.store, k.id); !reflect.DeepEqual(before, after) {
				t.Errorf("%s: changed: %+v", name, after)
			}
		}
		// Nothing is no checkpoint to save, and leaves it alone in Progress.
		for what, nothing := range map[string]any{"nil": nil, "absent JSON": wire.JSON{}} {
			wantError(t, what, saves["SaveCheckpoint"](nothing), durabletasks.ErrInvalid)
			check(t, saves["Progress"](nothing))
			if v, err := durabletasks.Checkpoint[string](ctx, k.h); v != "kept" || err != nil {
				t.Errorf("after %s: %q, %v", what, v, err)
			}
		}
		check(t, k.h.Complete(ctx, done))
		_, err := durabletasks.Checkpoint[int](ctx, k.h)
		wantError(t, "of a task that has ended", err, durabletasks.ErrTerminal)
	})
}

// leaky has an encoding that fails and quotes its value.
type leaky struct{ text string }

func (v leaky) MarshalJSON() ([]byte, error) { return nil, errors.New(v.text) }

func cycle() any {
	var v []any
	v = append(v, &v)
	return &v
}

func nested(depth int) any {
	var v any = 1
	for range depth {
		v = []any{v}
	}
	return v
}

func TestProgressOptions(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		for _, step := range []struct {
			message  string
			poll     time.Duration
			wantPoll time.Duration
		}{
			{"a", 0, second}, {"", 1500 * time.Microsecond, 2 * time.Millisecond}, {"b", durabletasks.NoLimit, durabletasks.NoLimit},
			{"c", 0, durabletasks.NoLimit}, {"", 7 * second, 7 * second},
		} {
			check(t, k.h.Progress(ctx, step.message, &durabletasks.ProgressOptions{PollInterval: step.poll}))
			if v := get(t, k.l, k.id); v.StatusMessage != step.message || v.PollInterval != step.wantPoll || v.Status != durabletasks.StatusWorking {
				t.Errorf("after %+v: %+v", step, v)
			}
		}
	})
}

// ExtendTTL counts from now and never shortens.
func TestExtendTTL(t *testing.T) {
	const h = time.Hour
	const most = math.MaxInt64 / time.Millisecond * time.Millisecond
	for _, row := range []struct{ ttl, age, d, want time.Duration }{
		{h, 0, 2 * h, 2 * h},
		{h, h / 2, h, h + h/2},
		{h, h / 2, h / 2, h},
		{h, h / 2, h / 4, h},
		{h, h / 2, h/2 + 1, h + time.Millisecond},
		{h, 0, durabletasks.NoLimit, durabletasks.NoLimit},
		{durabletasks.NoLimit, 0, h, durabletasks.NoLimit},
		{h, second, most, durabletasks.NoLimit}, // more than a Duration holds
		{h, 0, most, most},
		{h, -h, 2 * h, 2 * h}, // a clock behind the creation
		{h, -h, h, h},
		{h, h/2 + 1, h, h + h/2 + time.Millisecond}, // whole milliseconds
	} {
		now := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
		clock := func() time.Time { return now }
		store := shared{&durabletasks.MemStore{Now: clock}}
		l := open(t, store, &durabletasks.Options{Now: clock, TTL: row.ttl, SweepInterval: durabletasks.NoLimit})
		id := create(t, l, nil)
		hd := handle(t, l, id)
		now = now.Add(row.age)
		check(t, hd.ExtendTTL(ctx, row.d))
		r := stored(t, store, id)
		if r.TTL != row.want || (r.Version == 0) != (row.want == row.ttl) {
			t.Errorf("ttl %v, age %v, extended by %v: %v, version %d, want %v", row.ttl, row.age, row.d, r.TTL, r.Version, row.want)
		}
	}
	l := open(t, newShared(), nil)
	wantError(t, "too long", handle(t, l, create(t, l, nil)).ExtendTTL(ctx, 1<<63-1), durabletasks.ErrInvalid)
}

// A client is not asked for what it did not declare: nothing is stored, and a
// worker that leaves with the error fails its task with the code for it, even
// if it runs in a later process.
func TestUnsupportedInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, nil)
		params := wire.MustParse(`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}`)
		id := create(t, l, &durabletasks.CreateOptions{UnsupportedInput: wire.UnsupportedInput(params)})
		h := handle(t, l, id)
		before := stored(t, store, id)
		requests := forms("a", "z")
		requests["m"] = wire.MustParse(`{"method":"roots/list"}`)
		requests["n"] = wire.MustParse(`{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"tools":[]}}`)
		_, err := h.RequestInput(ctx, requests, nil)
		var unsupported *durabletasks.UnsupportedInputError
		if !errors.As(err, &unsupported) || unsupported.Key != "m" || unsupported.Kinds != wire.InputRoots {
			t.Errorf("RequestInput: %v", err)
		}
		wantError(t, "RequestInput", err, durabletasks.ErrUnsupportedInput)
		if got := stored(t, store, id); !reflect.DeepEqual(got, before) {
			t.Errorf("RequestInput has changed the task: %+v", got)
		}
		w := request(h, "a") // a key that was refused was not used
		_, err = l.UpdateTask(ctx, id, accepts("a"))
		check(t, err)
		check(t, (<-w).err)

		check(t, l.Close())
		l = open(t, store, nil)
		n, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
			return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(ctx, map[string]wire.JSON{"n": requests["n"]}, nil)
				return wire.JSON{}, fmt.Errorf("crawl: %w", err)
			}
		})
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		want := `{"code":-32021,"message":"Missing required client capability: sampling, sampling.tools","data":{"requiredCapabilities":{"sampling":{"tools":{}}}}}`
		if got := get(t, l, id); got.Status != durabletasks.StatusFailed || got.Error.String() != want {
			t.Errorf("%s %s", got.Status, got.Error)
		}
	})
}

// Results and errors come out as they went in, and what is no result or error
// is refused.
func TestPayloads(t *testing.T) {
	const odd = `{"id":9007199254740993,"big":1e400,"f":1.0,"long":123456789012345678901234567890,"__proto__":null,"l":"\ud800","nul":"\u0000"}`
	l := open(t, newShared(), nil)
	for in, want := range map[string]string{
		odd:                                 `{"resultType":"complete",` + odd[1:],
		`{}`:                                `{"resultType":"complete"}`,
		`{"resultType":"complete"}`:         `{"resultType":"complete"}`,
		`{"a":1,"resultType" : "complete"}`: `{"a":1,"resultType":"complete"}`,
		`{"isError":true,"content":[]}`:     `{"resultType":"complete","isError":true,"content":[]}`,
	} {
		id := create(t, l, nil)
		check(t, handle(t, l, id).Complete(ctx, wire.MustParse(in)))
		if v := get(t, l, id); v.Result.String() != want {
			t.Errorf("%s became %s", in, v.Result)
		}
	}
	for _, bad := range []string{`[]`, `null`, `1`, `"x"`, `true`, `{"resultType":"input_required"}`, `{"resultType":null}`, `{"resultType":"Complete"}`} {
		id := create(t, l, nil)
		wantError(t, bad, handle(t, l, id).Complete(ctx, wire.MustParse(bad)), durabletasks.ErrInvalid)
	}
	deep := wire.MustParse(strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth))
	id := create(t, l, nil)
	wantError(t, "an error with data that is too deep in it", handle(t, l, id).Fail(ctx, &wire.Error{Message: "m", Data: deep}), durabletasks.ErrInvalid)
	for want, in := range map[string]*wire.Error{
		"{\"code\":-9223372036854775808,\"message\":\"\\\"<\u2028\\u0000\"}": {Code: -1 << 63, Message: "\"<\u2028\x00"},
		`{"code":0,"message":"m","data":` + odd + `}`:                        {Message: "m", Data: wire.MustParse(odd)},
		`{"code":0,"message":"m","data":null}`:                               {Message: "m", Data: wire.MustParse("null")},
	} {
		id := create(t, l, nil)
		h := handle(t, l, id)
		check(t, h.Progress(ctx, "before", nil))
		check(t, h.Fail(ctx, in))
		if v := get(t, l, id); v.Error.String() != want || v.StatusMessage != in.Message {
			t.Errorf("got %s, %q, want %s", v.Error, v.StatusMessage, want)
		}
	}
}

// What is too large for the store is refused with its size and limit, from the
// worker and from the client, and the task continues.
func TestTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		const limit = 64 << 10
		store := &limited{newShared(), limit}
		l := open(t, store, nil)
		large := wire.MustParse(`{"action":"accept","content":{"x":"` + strings.Repeat("x", limit) + `"}}`)
		id := create(t, l, nil)
		h := handle(t, l, id)
		refused := func(what string, err error) {
			t.Helper()
			var tooLarge *durabletasks.TooLargeError
			if !errors.As(err, &tooLarge) || tooLarge.Limit != limit || tooLarge.Size <= limit {
				t.Errorf("%s: %v", what, err)
			}
		}
		_, err := l.CreateTask(ctx, &durabletasks.CreateOptions{Payload: large})
		refused("a payload", err)
		refused("a checkpoint", h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: large}))
		refused("a result", h.Complete(ctx, large))
		refused("an error", h.Fail(ctx, &wire.Error{Message: "m", Data: large}))
		_, err = h.RequestInput(ctx, map[string]wire.JSON{"a": wire.MustParse(`{"method":"roots/list","params":{"x":` + large.String() + `}}`)}, nil)
		refused("a request", err)
		if r := stored(t, store, id); r.Version != 0 || r.Questions != nil {
			t.Errorf("changed: version %d, %d questions", r.Version, len(r.Questions))
		}
		w := request(h, "a")
		_, err = l.UpdateTask(ctx, id, map[string]wire.JSON{"a": large})
		refused("an answer", err)
		_, err = l.UpdateTask(ctx, id, accepts("a"))
		check(t, err)
		check(t, (<-w).err)
		check(t, h.Complete(ctx, done))
	})
}

// Cancelled keeps the message unless it has another.
func TestCancelledMessage(t *testing.T) {
	for message, want := range map[string]string{"": "before", "after": "after"} {
		l := open(t, newShared(), nil)
		id := create(t, l, &durabletasks.CreateOptions{StatusMessage: "before"})
		check(t, handle(t, l, id).Cancelled(ctx, message))
		if v := get(t, l, id); v.StatusMessage != want || v.Status != durabletasks.StatusCancelled {
			t.Errorf("%q: %+v", message, v)
		}
	}
}

// A waiter ends when its task expires, even if the engine does not run its
// worker, and not before: extending the task prolongs the wait.
func TestWaitersExpire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		k := newTask(t, newShared(), &durabletasks.Options{SweepInterval: durabletasks.NoLimit, OnEvent: log.hook})
		w := request(k.h, "a", "b")
		hctx := k.h.Context()
		time.Sleep(59 * time.Minute)
		check(t, k.h.ExtendTTL(ctx, time.Hour))
		time.Sleep(30 * time.Minute)
		k.update(accepts("a"))
		time.Sleep(30*time.Minute - 1)
		synctest.Wait()
		if len(w) != 0 || hctx.Err() != nil {
			t.Fatalf("ended early: %v", context.Cause(hctx))
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		wantError(t, "waiter", (<-w).err, durabletasks.ErrExpired)
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrExpired)
		_, err := k.l.UpdateTask(ctx, k.id, accepts("b"))
		wantError(t, "a late answer", err, durabletasks.ErrNotFound)
		wantError(t, "a late end", k.h.Complete(ctx, done), durabletasks.ErrNotFound)
		if got, want := log.String(), "created (working), input_required (input_required), input_received (input_required), expired"; got != want {
			t.Errorf("events: %s", got)
		}
	})
}

// The same holds for the waiter of a run after a restart.
func TestWaitersExpireAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), unswept)
		request(k.h, "a")
		k.restart()
		w := request(k.h, "a")
		time.Sleep(time.Hour - time.Nanosecond)
		synctest.Wait()
		if len(w) != 0 {
			t.Fatal("ended early:", <-w)
		}
		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if len(w) != 1 {
			t.Fatal("still waits")
		}
		wantError(t, "waiter", (<-w).err, durabletasks.ErrExpired)
	})
}

// A sweep by another engine, or a store whose clock is ahead, ends a waiter
// at the next look.
func TestRecordVanishes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		k := newTask(t, store, unswept)
		hctx := k.h.Context()
		w := request(k.h, "a")
		n, err := store.Sweep(ctx, time.Now().Add(2*time.Hour))
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		wantError(t, "the next write", k.h.Progress(ctx, "", nil), durabletasks.ErrNotFound)
		wantError(t, "waiter", (<-w).err, durabletasks.ErrExpired)
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrExpired)
	})
}

// Two engines over one store. If the store reports changes, each engine learns
// of the other's commits at once.
func TestTwoEnginesWatching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newWatchable()
		a, b := open(t, store, nil), open(t, store, nil)
		synctest.Wait()
		id := create(t, a, nil)
		h := handle(t, a, id)
		hctx := h.Context()

		w := request(h, "x", "y")
		_, err := b.UpdateTask(ctx, id, map[string]wire.JSON{"x": accept})
		check(t, err)
		synctest.Wait()
		if len(w) != 0 {
			t.Fatal("woken too early:", <-w)
		}
		_, err = b.UpdateTask(ctx, id, map[string]wire.JSON{"y": decline})
		check(t, err)
		if got, want := <-w, (map[string]wire.JSON{"x": accept, "y": decline}); got.err != nil || !maps.Equal(got.values, want) {
			t.Errorf("answers %v", got)
		}

		w = request(h, "z")
		other := request(handle(t, b, id), "other")                           // a second worker, in another process
		if a := <-w; errorName(a.err) != "Unanswered" || len(a.values) != 0 { // its question was withdrawn
			t.Errorf("the first worker: %v", a)
		}

		check(t, b.CancelTask(ctx, id))
		synctest.Wait()
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrCancelled)
		wantError(t, "second round", (<-other).err, durabletasks.ErrCancelled)

		var views []string
		seen := make(chan struct{})
		go func() {
			defer close(seen)
			for v, err := range a.Watch(ctx, id) {
				views = append(views, string(v.Status)+errorName(err))
			}
		}()
		synctest.Wait()
		check(t, handle(t, b, id).Complete(ctx, done))
		<-seen
		if want := []string{"input_requiredok", "completedok"}; !slices.Equal(views, want) {
			t.Errorf("views %q", views)
		}

		id = create(t, a, nil)
		h = handle(t, a, id)
		w = request(h, "x")
		hctx = h.Context()
		check(t, handle(t, b, id).Complete(ctx, done))
		wantError(t, "waiter", (<-w).err, durabletasks.ErrTerminal)
		synctest.Wait()
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrTerminal)
	})
}

// If the store reports nothing, a worker learns of the other engine's commits by
// its next write.
func TestTwoEnginesNotWatching(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		a, b := open(t, store, nil), open(t, store, nil)
		id := create(t, a, nil)
		h := handle(t, a, id)
		hctx := h.Context()
		check(t, b.CancelTask(ctx, id))
		if hctx.Err() != nil {
			t.Fatal("how does it know?")
		}
		check(t, h.Progress(ctx, "", nil))
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrCancelled)

		id = create(t, a, nil)
		h = handle(t, a, id)
		hctx = h.Context()
		w := request(h, "x")
		check(t, handle(t, b, id).Complete(ctx, done))
		wantError(t, "the next write", h.Progress(hctx, "", nil), durabletasks.ErrTerminal)
		wantError(t, "waiter", (<-w).err, durabletasks.ErrTerminal)
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrTerminal)

		// So does a worker whose next call asks a question.
		for _, key := range []string{"new", "open"} {
			id = create(t, a, nil)
			gone, stop := context.WithCancel(ctx)
			ask(func() (map[string]wire.JSON, error) { return handle(t, a, id).RequestInput(gone, forms("open"), nil) })
			stop()
			synctest.Wait()
			begin := make(chan struct{})
			check(t, a.Go(ctx, id, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-begin
				_, err := h.RequestInput(ctx, forms(key), nil)
				return wire.JSON{}, err
			}))
			synctest.Wait()
			check(t, b.CancelTask(ctx, id))
			close(begin)
			synctest.Wait()
			if v := get(t, a, id); v.Status != durabletasks.StatusCancelled {
				t.Errorf("status %s, result %v", v.Status, v.Result)
			}
		}
	})
}

// A store whose watch fails is watched again, and nothing is missed in between.
func TestStoreWatchFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &failingWatch{shared: newShared(), fail: make(chan error)}
		var log logbook
		a, b := open(t, store, &durabletasks.Options{Logger: log.logger()}), open(t, store.shared, nil)
		id := create(t, a, nil)
		hctx := handle(t, a, id).Context()
		for i, end := range []error{errors.New("broken"), nil, errPanic} {
			store.fail <- end
			synctest.Wait()
			if i == 0 {
				check(t, b.CancelTask(ctx, id))
			}
			time.Sleep(second)
			synctest.Wait()
		}
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrCancelled)
		if got := log.String(); strings.Count(got, "store watch ended, begins again") != 1 || strings.Count(got, "panic survived") != 1 {
			t.Errorf("log: %s", got)
		}
	})
}

// A watch that ends at once is begun again only after a pause.
func TestStoreWatchEndsAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &failingWatch{shared: newShared(), fail: make(chan error)}
		close(store.fail)
		open(t, store, nil)
		time.Sleep(10*second + time.Millisecond)
		if n := store.watches.Load(); n != 11 {
			t.Errorf("%d watches in ten seconds", n)
		}
	})
}

// A record that another process has removed ends its waiter here.
func TestWatchedRecordVanishes(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newWatchable()
		k := newTask(t, store, unswept)
		hctx := k.h.Context()
		synctest.Wait()
		n, err := store.Sweep(ctx, time.Now().Add(2*time.Hour))
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		store.tell(k.id)
		synctest.Wait()
		wantError(t, "context", context.Cause(hctx), durabletasks.ErrExpired)
	})
}

var errPanic = errors.New("panic")

type failingWatch struct {
	shared
	fail    chan error
	watches atomic.Int64
}

func (s *failingWatch) Watch(ctx context.Context, changed func(id string)) error {
	s.watches.Add(1)
	select {
	case err := <-s.fail:
		if err == errPanic {
			panic(err)
		}
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// A message may be the output of some program: it never ends the work.
func TestProgressTakesAnyText(t *testing.T) {
	l := open(t, newShared(), nil)
	id := create(t, l, nil)
	h := handle(t, l, id)
	const most = durabletasks.MaxProgress
	for name, row := range map[string]struct{ message, want string }{
		"empty":             {"", ""},
		"text":              {"4 of 10", "4 of 10"},
		"not UTF-8":         {"caf\xe9 \xf0\x9f", "caf\uFFFD \uFFFD"},
		"as long as can be": {strings.Repeat("a", most), strings.Repeat("a", most)},
		"too long":          {strings.Repeat("a", most+1), strings.Repeat("a", most-3) + "…"},
		"cut in a rune":     {strings.Repeat("é", most), strings.Repeat("é", most/2-2) + "…"},
		"grows by repair":   {strings.Repeat("\xffa", most/2), strings.Repeat("\uFFFDa", most/4-1) + "…"},
	} {
		check(t, h.Progress(ctx, row.message, nil))
		if got := get(t, l, id).StatusMessage; got != row.want {
			t.Errorf("%s: got %d bytes %.40q, want %d bytes %.40q", name, len(got), got, len(row.want), row.want)
		}
	}
}
