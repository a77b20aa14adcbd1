package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"
)

var contextChecks = []check{
	{"S13", "done-context-stops-create", 0, doneStopsCreate},
	{"S13", "done-context-stops-get", 0, doneStopsGet},
	{"S13", "done-context-stops-update", 0, doneStopsUpdate},
	{"S13", "done-context-stops-sweep", 0, doneStopsSweep},
	{"S13", "cancelled-after-return-undoes-nothing", 0, cancelledAfterReturn},
	{"S13", "cancelled-call-is-all-or-nothing", 0, cancelledCall},
	{"S13", "cancelled-sweep-is-all-or-nothing", 0, cancelledSweep},
}

// done calls f with contexts that are done for different reasons, and with the
// error that the store must report.
func (t *trial) done(f func(ctx context.Context, want error, kind string)) {
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	f(cancelled, context.Canceled, "a cancelled context")
	late, cancel := context.WithDeadline(context.Background(), time.Unix(0, 0))
	defer cancel()
	f(late, context.DeadlineExceeded, "a context past its deadline")
	caused, cancelCause := context.WithCancelCause(context.Background())
	cancelCause(errors.New("the cause"))
	f(caused, context.Canceled, "a context cancelled with a cause")
}

func doneStopsCreate(t *trial) {
	t.done(func(ctx context.Context, want error, kind string) {
		err := t.store.Create(ctx, t.record(kind))
		t.wants(err, want, "Create with %s", kind)
		t.gone(kind, "whose Create had a context that was done")
		t.create(t.record(kind))
	})
}

func doneStopsGet(t *trial) {
	t.create(t.record("task"))
	t.done(func(ctx context.Context, want error, kind string) {
		_, err := t.store.Get(ctx, "task")
		t.wants(err, want, "Get with %s", kind)
		t.stored(t.record("task"), "after a Get with a context that was done")
	})
}

func doneStopsUpdate(t *trial) {
	r := t.record("task")
	t.create(r)
	t.done(func(ctx context.Context, want error, kind string) {
		err := t.store.Update(ctx, t.full("task", 1))
		t.wants(err, want, "Update with %s", kind)
		t.stored(r, "after an Update with a context that was done")
	})
	t.update(r)
}

func doneStopsSweep(t *trial) {
	t.done(func(ctx context.Context, want error, kind string) {
		_, err := t.store.Sweep(ctx, t.began)
		t.wants(err, want, "Sweep of an empty store with %s", kind)
	})
	r := t.expiring("task", time.Hour)
	t.create(r)
	at := r.CreatedAt.Add(time.Hour)
	t.done(func(ctx context.Context, want error, kind string) {
		n, err := t.store.Sweep(ctx, at)
		t.wants(err, want, "Sweep with %s", kind)
		if n != 0 {
			t.fatalf("Sweep with %s returned %d with its error, want 0", kind, n)
		}
		t.stored(r, "after a Sweep with a context that was done")
	})
	t.sweep(at, 1)
}

// cancelledAfterReturn is for stores that keep using the context after a call,
// for example by a transaction that ends with it.
func cancelledAfterReturn(t *trial) {
	call := func(f func(ctx context.Context) error) {
		ctx, cancel := context.WithCancel(context.Background())
		err := f(ctx)
		cancel()
		if err != nil {
			t.fatalf("a call with a context that is cancelled only later: %v", err)
		}
		for range 100 {
			runtime.Gosched() // let the store notice
		}
	}
	r := t.record("task")
	call(func(ctx context.Context) error { return t.store.Create(ctx, r) })
	t.stored(r, "after the context of its Create was cancelled")
	call(func(ctx context.Context) error {
		_, err := t.store.Get(ctx, "task")
		return err
	})
	call(func(ctx context.Context) error { return t.store.Update(ctx, t.full("task", 1)) })
	want := at(1, t.full("task", 1))
	t.stored(want, "after the context of its Update was cancelled")
	call(func(ctx context.Context) error {
		_, err := t.store.Sweep(ctx, t.began)
		return err
	})
	t.stored(want, "after the context of a Sweep was cancelled")
}

// cancelledCall cancels the context at different moments of a call. An error
// means that the call had no effect, and no error that it had its full effect.
func cancelledCall(t *trial) {
	for round := range t.rounds(100) {
		id := fmt.Sprint("round ", round)
		created := t.cancelling(round, func(ctx context.Context) error {
			return t.store.Create(ctx, t.stamped(id, 0))
		})
		if !created {
			t.gone(id, "whose Create reported its context's error")
			t.create(t.stamped(id, 0))
		}
		t.stored(t.stamped(id, 0), "after a Create whose context was cancelled during the call")

		updated := t.cancelling(round, func(ctx context.Context) error {
			return t.store.Update(ctx, at(0, t.stamped(id, 1)))
		})
		if updated {
			t.stored(t.stamped(id, 1), "after an Update that reported success, though its context was cancelled during the call")
		} else {
			t.stored(t.stamped(id, 0), "after an Update that reported its context's error")
		}
	}
}

// cancelledSweep cancels the context at different moments of a Sweep. It must
// remove and count all expired records, or report the context's error and
// remove none.
func cancelledSweep(t *trial) {
	const tasks = 10
	at := t.began.Add(time.Hour)
	var ids []string // of the stored tasks
	for round := range t.rounds(60) {
		for i := 0; len(ids) < tasks; i++ {
			ids = append(ids, fmt.Sprint("round ", round, " task ", i))
			t.create(t.expiring(ids[i], time.Hour))
		}
		n := 0
		swept := t.cancelling(round, func(ctx context.Context) (err error) {
			n, err = t.store.Sweep(ctx, at)
			return err
		})
		if !swept {
			if n != 0 {
				t.fatalf("Sweep that reported its context's error returned %d, want 0", n)
			}
			for _, id := range ids {
				t.fresh(id, "after a Sweep that reported its context's error")
			}
			continue
		}
		if n != tasks {
			t.fatalf("Sweep of %d records whose context was cancelled during the call returned %d and no error", tasks, n)
		}
		for _, id := range ids {
			t.expired(id, "which was swept")
		}
		ids = nil
	}
}

// countedContext is cancelled after its Err has been called some times.
type countedContext struct {
	context.Context
	cancel context.CancelFunc
	calls  atomic.Int64 // until it is cancelled
}

func (c *countedContext) Err() error {
	if c.calls.Add(-1) < 0 {
		c.cancel()
	}
	return c.Context.Err()
}

// cancelling makes a call and cancels its context during the call, later in
// later rounds. In every other round it cancels the context when the store has
// called Err often enough. It reports whether the call succeeded.
func (t *trial) cancelling(round int, call func(ctx context.Context) error) bool {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if round%2 == 1 {
		counted := &countedContext{Context: ctx, cancel: cancel}
		counted.calls.Store(int64(round / 2))
		err := call(counted)
		if err != nil {
			t.wants(err, context.Canceled, "a call whose context is cancelled during the call")
		}
		return err == nil
	}
	var returned atomic.Bool
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		for spins := round * round; spins > 0 && !returned.Load(); spins-- {
			runtime.Gosched()
		}
		cancel()
	}()
	err := call(ctx)
	returned.Store(true)
	<-cancelled
	if err != nil {
		t.wants(err, context.Canceled, "a call whose context is cancelled during the call")
	}
	return err == nil
}
