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
	"github.com/mcp-durable-tasks/durabletasks/wal"
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

// restart ends the engine and goes on with another over the same store.
func (k *task) restart() {
	k.l.Close()
	synctest.Wait()
	k.l = open(k.t, k.store, k.opts)
	k.h = handle(k.t, k.l, k.id)
}

func (k *task) update(responses map[string]wire.JSON) {
	k.t.Helper()
	_, err := k.l.UpdateTask(ctx, k.id, responses)
	check(k.t, err)
}

func (k *task) resume() <-chan answer {
	return ask(func() (map[string]wire.JSON, error) { return k.h.ResumeInput(ctx) })
}

// Case 18: what was acknowledged stays with the task, whatever dies between,
// until its worker has moved on.
func TestAnswersSurvive(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "a", "b")
		k.update(map[string]wire.JSON{"a": accept})
		k.restart()
		wantError(t, "waiter", (<-w).err, durabletasks.ErrClosed)
		if v := get(t, k.l, k.id); v.Status != durabletasks.StatusInputRequired || !reflect.DeepEqual(v.InputRequests, forms("b")) {
			t.Errorf("after the first answer: %+v", v)
		}
		w = k.resume()
		k.update(map[string]wire.JSON{"a": decline, "b": decline})
		want := map[string]wire.JSON{"a": accept, "b": decline}
		if a := <-w; !reflect.DeepEqual(a.values, want) {
			t.Errorf("answers %v", a)
		}
		// The worker had them, and died before it wrote anything.
		for range 2 {
			k.restart()
			if a := <-k.resume(); !reflect.DeepEqual(a.values, want) {
				t.Errorf("answers after a restart: %v", a)
			}
		}
		// It can have them as often as it likes, and change its copy.
		a := <-k.resume()
		clear(a.values)
		check(t, k.h.Progress(ctx, "thinking", nil))
		k.restart()
		// A checkpoint of a worker that has not had the answers keeps them.
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: aText}))
		if a := <-k.resume(); !reflect.DeepEqual(a.values, want) {
			t.Errorf("answers after a checkpoint: %v", a)
		}
		// A round that is refused makes it forget nothing.
		_, err := k.h.RequestInput(ctx, forms("a"), nil)
		wantError(t, "a used key", err, durabletasks.ErrDuplicateKey)
		if r := stored(t, k.store, k.id); !reflect.DeepEqual(r.InputResponses, want) {
			t.Errorf("answers in the record: %v", r.InputResponses)
		}
		// Having had them, its next checkpoint drops them.
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: done}))
		if r := stored(t, k.store, k.id); r.InputResponses != nil {
			t.Errorf("answers kept: %v", r.InputResponses)
		}
		_, err = k.h.ResumeInput(ctx)
		wantError(t, "nothing to resume", err, durabletasks.ErrNoInput)
	})
}

// A worker that runs again asks again, and takes up what its predecessor has
// asked: before an answer, between answers, and after them.
func TestAskAgain(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		asks := func(keys ...string) <-chan answer {
			return ask(func() (map[string]wire.JSON, error) { return k.h.Ask(ctx, forms(keys...)) })
		}
		asks("a", "b")
		asked := stored(t, k.store, k.id)
		k.restart()
		w := asks("a", "b")
		if r := stored(t, k.store, k.id); !reflect.DeepEqual(r, asked) {
			t.Errorf("asking again changed the record:\n%+v\n%+v", asked, r)
		}
		wantError(t, "beside another", (<-asks("a", "b")).err, durabletasks.ErrInputPending)
		k.update(accepts("a"))
		k.restart()
		wantError(t, "the waiter of the process before", (<-w).err, durabletasks.ErrClosed)
		// What is answered is answered, what is not is waited for.
		if a := <-asks("a"); !reflect.DeepEqual(a.values, accepts("a")) {
			t.Errorf("part of the round: %v, %v", a.values, a.err)
		}
		w = asks("a", "b")
		k.update(accepts("b"))
		for range 2 {
			if a := <-w; !reflect.DeepEqual(a.values, accepts("a", "b")) {
				t.Errorf("answers %v, %v", a.values, a.err)
			}
			k.restart()
			w = asks("a", "b")
		}
		<-w

		// What the worker has saved it does not ask again.
		wantError(t, "absent checkpoint", k.h.SaveCheckpoint(ctx, wire.JSON{}), durabletasks.ErrInvalid)
		check(t, k.h.Progress(ctx, "thinking", nil))
		check(t, k.h.SaveCheckpoint(ctx, done))
		if r := stored(t, k.store, k.id); r.InputResponses != nil || r.Checkpoint != done || r.StatusMessage != "thinking" {
			t.Errorf("after the checkpoint: %+v", r)
		}
		for _, keys := range [][]string{{"a"}, {"a", "b"}, {"b", "c"}} {
			wantError(t, "what is gone", (<-asks(keys...)).err, durabletasks.ErrDuplicateKey)
		}

		// A new round is a new round.
		w = asks("c")
		if v := get(t, k.l, k.id); !reflect.DeepEqual(v.InputRequests, forms("c")) {
			t.Errorf("new round: %+v", v)
		}
		check(t, k.l.CancelTask(ctx, k.id))
		wantError(t, "cancelled", (<-w).err, durabletasks.ErrCancelled)
		wantError(t, "cancelled before", (<-asks("c")).err, durabletasks.ErrCancelled)
		_, err := k.h.Ask(ctx, nil)
		wantError(t, "nothing", err, durabletasks.ErrInvalid)
	})
}

// A worker of several rounds that runs again, from its start or from its
// checkpoint, gets what it has been answered, and asks on.
func TestAskSeveralRounds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		asks := func(keys ...string) <-chan answer {
			return ask(func() (map[string]wire.JSON, error) { return k.h.Ask(ctx, forms(keys...)) })
		}
		gets := func(keys ...string) {
			t.Helper()
			select {
			case a := <-asks(keys...):
				if !reflect.DeepEqual(a.values, accepts(keys...)) {
					t.Errorf("asked for %v: %v, %v", keys, a.values, a.err)
				}
			default:
				t.Errorf("waits for %v", keys)
			}
		}
		shows := func(keys ...string) {
			t.Helper()
			if v := get(t, k.l, k.id); !reflect.DeepEqual(v.InputRequests, forms(keys...)) {
				t.Errorf("the client sees %v, want %v", v.InputRequests, keys)
			}
		}
		asks("a")
		k.update(accepts("a"))
		k.restart()
		gets("a")
		asks("b", "c")
		shows("b", "c")
		k.update(accepts("c"))
		k.restart()
		gets("a")
		gets("c")
		w := asks("b")
		shows("b")
		k.update(accepts("b"))
		<-w
		// Some of it is new.
		asks("c", "d", "a")
		shows("d")
		k.restart()
		w = asks("d", "c", "e")
		shows("d", "e")
		k.update(accepts("d"))
		shows("e")
		k.update(accepts("e"))
		if a := <-w; !reflect.DeepEqual(a.values, accepts("c", "d", "e")) {
			t.Errorf("old and new: %v, %v", a.values, a.err)
		}
		// The checkpoint stands for what this worker was handed.
		check(t, k.h.SaveCheckpoint(ctx, done))
		gets("a")
		gets("b")
		wantError(t, "before the checkpoint", (<-asks("c")).err, durabletasks.ErrDuplicateKey)
		k.restart()
		if a := <-k.resume(); !reflect.DeepEqual(a.values, accepts("a", "b")) {
			t.Errorf("what is left: %v, %v", a.values, a.err)
		}
		check(t, k.h.SaveCheckpoint(ctx, done))
		_, err := k.h.ResumeInput(ctx)
		wantError(t, "nothing is left", err, durabletasks.ErrNoInput)
		if r := stored(t, k.store, k.id); r.InputResponses != nil || !slices.Equal(r.UsedInputKeys, []string{"a", "b", "c", "d", "e"}) {
			t.Errorf("%+v", r)
		}
	})
}

// A checkpoint between two answers of a round keeps the first, which would be
// asked for again otherwise.
func TestCheckpointWithinARound(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		w := request(k.h, "a", "b")
		k.update(accepts("a"))
		if a := <-ask(func() (map[string]wire.JSON, error) { return handle(t, k.l, k.id).Ask(ctx, forms("a")) }); a.err != durabletasks.ErrInputPending {
			t.Errorf("beside the waiter: %v", a.err)
		}
		k.restart()
		wantError(t, "the waiter of the process before", (<-w).err, durabletasks.ErrClosed)
		if _, err := k.h.Ask(ctx, forms("a")); err != nil {
			t.Error(err)
		}
		check(t, k.h.SaveCheckpoint(ctx, done))
		if v := get(t, k.l, k.id); !reflect.DeepEqual(v.InputRequests, forms("b")) {
			t.Errorf("asked for: %v", v.InputRequests)
		}
		k.update(accepts("b"))
		if a := <-k.resume(); !reflect.DeepEqual(a.values, accepts("a", "b")) {
			t.Errorf("answers: %v, %v", a.values, a.err)
		}
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

// A checkpoint through one handle does not drop what another has asked.
func TestCheckpointBesideAnotherRound(t *testing.T) {
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
		values, err := other.ResumeInput(ctx)
		if err != nil || values["b"] != accept {
			t.Errorf("answers %v, %v", values, err)
		}
	})
}

// A wait that its caller gives up can be taken up again.
func TestWaitIsGivenUp(t *testing.T) {
	mine := errors.New("mine")
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), nil)
		for i, give := range []func() (context.Context, func(), error){
			func() (context.Context, func(), error) {
				c, cancel := context.WithCancelCause(ctx)
				return c, func() { cancel(mine) }, mine
			},
			func() (context.Context, func(), error) {
				c, cancel := context.WithTimeout(ctx, second)
				t.Cleanup(cancel)
				return c, func() { time.Sleep(second) }, context.DeadlineExceeded
			},
		} {
			c, end, want := give()
			key := fmt.Sprint("k", i)
			w := ask(func() (map[string]wire.JSON, error) { return k.h.RequestInput(c, forms(key), nil) })
			_, err := k.h.ResumeInput(ctx)
			wantError(t, "a second waiter", err, durabletasks.ErrInputPending)
			_, err = k.h.RequestInput(ctx, forms("other"), nil)
			wantError(t, "a second asker", err, durabletasks.ErrInputPending)
			end()
			synctest.Wait()
			wantError(t, "the waiter", (<-w).err, want)
			_, err = k.h.RequestInput(c, forms("other"), nil)
			wantError(t, "an asker whose context is done", err, want)
			if v := get(t, k.l, k.id); v.Status != durabletasks.StatusInputRequired {
				t.Errorf("status %s", v.Status)
			}
			w = k.resume()
			k.update(accepts(key))
			check(t, (<-w).err)
		}
	})
}

// Case 25: a key is used once in a task's lifetime, whatever it looks like.
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
		for range 2 {
			for _, key := range keys {
				_, err := k.h.RequestInput(ctx, forms(key, "new"), nil)
				var again *durabletasks.DuplicateKeyError
				if !errors.As(err, &again) || again.Key != key {
					t.Errorf("key %.10q again: %.100v", key, err)
				}
			}
			k.restart()
		}
		_, err := k.h.RequestInput(ctx, forms(keys...), nil)
		var again *durabletasks.DuplicateKeyError
		if !errors.As(err, &again) || again.Key != slices.Min(keys) {
			t.Errorf("all keys again: %.100v", err)
		}
		_, err = k.h.RequestInput(ctx, forms("constructor", "a\x00b"), nil) // the second was used first
		if !errors.As(err, &again) || again.Key != "a\x00b" {
			t.Errorf("two keys again: %v", err)
		}
		_, err = k.h.RequestInput(ctx, forms("y", "x"), nil)
		if !errors.As(err, &again) || again.Key != "x" {
			t.Errorf("two keys again: %v", err)
		}
		if r := stored(t, k.store, k.id); !slices.Equal(r.UsedInputKeys, keys) {
			t.Errorf("used keys %.10q", r.UsedInputKeys)
		}
	})
}

// What the worker hands in is its own to change afterwards (case 35).
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

// Case 21 and 27: a cancel reaches every kind of worker, outlives every
// process, and a worker that asks after it asks nobody.
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
			_, err = k.h.ResumeInput(ctx)
			wantError(t, "ResumeInput", err, durabletasks.ErrCancelled)
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
			_, err := h.ResumeInput(ctx)
			return wire.JSON{}, err
		}))
		synctest.Wait()
		if v := get(t, k.l, k.id); v.Status != durabletasks.StatusCancelled {
			t.Errorf("status %s", v.Status)
		}
	})
}

// A worker settles its task with the context that it has, however that ended
// and whenever, and is told what became of the task. Its own reasons stop it.
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

// Nobody is asked anything with a context that has ended.
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
			_, err2 := k.h.ResumeInput(hctx)
			if errorName(err) != want || errorName(err2) != want {
				t.Errorf("got %v and %v, want %s", err, err2, want)
			}
			if r, err := store.Get(ctx, k.id); err == nil && r.Version != version {
				t.Errorf("%s: asked all the same", want)
			}
		})
	}
}

// A context that ends before anything is asked gives its cause.
func TestContextEndsWhileAsking(t *testing.T) {
	mine := errors.New("mine")
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		k := newTask(t, store, nil)
		for name, call := range map[string]func(ctx context.Context) error{
			"RequestInput": func(ctx context.Context) error { _, err := k.h.RequestInput(ctx, forms("a"), nil); return err },
			"ResumeInput":  func(ctx context.Context) error { _, err := k.h.ResumeInput(ctx); return err },
		} {
			own, cancel := context.WithCancelCause(ctx)
			store.onGet = func(string) error { cancel(mine); return nil }
			wantError(t, name, call(own), mine)
			store.onGet = nil
		}
		if r := stored(t, store, k.id); r.Version != 0 {
			t.Errorf("asked all the same")
		}
	})
}

// The end of a worker's context does not take away a write that waits its
// turn behind it.
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

// Results and errors come out as they went in (cases 11 and 17).
// A client is not asked for what it did not declare: nothing is stored, and a
// worker that leaves with the error fails its task with the code for it, also
// one that runs in a later process.
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
		for name, call := range map[string]func(context.Context, map[string]wire.JSON) (map[string]wire.JSON, error){"RequestInput": h.RequestInput, "Ask": h.Ask} {
			_, err := call(ctx, requests)
			var undeclared *durabletasks.UnsupportedInputError
			if !errors.As(err, &undeclared) || undeclared.Key != "m" || undeclared.Kinds != wire.InputRoots {
				t.Errorf("%s: %v", name, err)
			}
			wantError(t, name, err, durabletasks.ErrUnsupportedInput)
			if got := stored(t, store, id); !reflect.DeepEqual(got, before) {
				t.Errorf("%s has changed the task: %+v", name, got)
			}
		}
		w := request(h, "a")
		_, err := l.UpdateTask(ctx, id, accepts("a"))
		check(t, err)
		check(t, (<-w).err)

		check(t, l.Close())
		l = open(t, store, nil)
		n, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
			return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.Ask(ctx, map[string]wire.JSON{"n": requests["n"]})
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
	deep := wire.MustParse(strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth)) // case 12
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

// Case 55: what is too large for the store is refused with its size and
// limit, whoever brings it, and the task goes on.
func TestTooLarge(t *testing.T) {
	const limit = 64 << 10
	store, err := wal.Open(t.TempDir(), &wal.Options{MaxRecordBytes: limit})
	check(t, err)
	l := open(t, store, nil)
	large := wire.MustParse(`{"action":"accept","content":{"x":"` + strings.Repeat("x", limit) + `"}}`)
	id := create(t, l, nil)
	h := handle(t, l, id)
	refused := func(what string, err error) {
		t.Helper()
		var tooLarge *wal.TooLargeError
		if !errors.As(err, &tooLarge) || tooLarge.Limit != limit || tooLarge.Size <= limit {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err = l.CreateTask(ctx, &durabletasks.CreateOptions{Payload: large})
	refused("a payload", err)
	refused("a message", h.Progress(ctx, strings.Repeat("x", limit), nil))
	refused("a checkpoint", h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: large}))
	refused("a result", h.Complete(ctx, large))
	refused("an error", h.Fail(ctx, &wire.Error{Message: "m", Data: large}))
	_, err = h.RequestInput(ctx, map[string]wire.JSON{"a": wire.MustParse(`{"method":"roots/list","params":{"x":` + large.String() + `}}`)})
	refused("a request", err)
	if r := stored(t, store, id); r.Version != 0 || r.UsedInputKeys != nil {
		t.Errorf("changed: %+v", r)
	}
	answers := make(chan error, 1)
	go func() {
		_, err := h.RequestInput(ctx, forms("a"), nil)
		answers <- err
	}()
	for v, err := range l.Watch(ctx, id) {
		check(t, err)
		if v.Status == durabletasks.StatusInputRequired {
			break
		}
	}
	_, err = l.UpdateTask(ctx, id, map[string]wire.JSON{"a": large})
	refused("an answer", err)
	_, err = l.UpdateTask(ctx, id, accepts("a"))
	check(t, err)
	check(t, <-answers)
	check(t, h.Complete(ctx, done))
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

// A waiter ends when its task does, though no worker of the engine's runs it,
// and not before: extending the task prolongs the wait.
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
		if got, want := log.String(), "created (working), input required (input_required), input received (input_required), expired"; got != want {
			t.Errorf("events: %s", got)
		}
	})
}

// So does one that takes up a round after a restart.
func TestResumedWaitersExpire(t *testing.T) {
	bubble(t, func(t *testing.T) {
		k := newTask(t, newShared(), unswept)
		request(k.h, "a")
		k.restart()
		w := k.resume()
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

// Case 22: two engines over one store. Where the store tells of changes, each
// hears of the other's commits at once.
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
		other := request(handle(t, b, id), "other") // a second worker, in another process
		wantError(t, "first round", (<-w).err, durabletasks.ErrSuperseded)

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

// Where the store tells nothing, the next write of the worker does.
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

		// A worker that learns of it by asking is cancelled all the same.
		for _, asks := range []durabletasks.Worker{
			func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(ctx, forms("x"), nil)
				return wire.JSON{}, err
			},
			func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.ResumeInput(ctx)
				return wire.JSON{}, err
			},
		} {
			id = create(t, a, nil)
			gone, stop := context.WithCancel(ctx)
			ask(func() (map[string]wire.JSON, error) { return handle(t, a, id).RequestInput(gone, forms("w"), nil) })
			stop()
			synctest.Wait()
			begin := make(chan struct{})
			check(t, a.Go(ctx, id, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-begin
				return asks(ctx, h)
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

// A store whose watch fails is watched again, and nothing is missed between.
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

// A watch that ends at once is not begun again and again without a pause.
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
