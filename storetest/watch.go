package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var watchChecks = []check{
	{watcher, "reports-other-instances", needsWatcher | needsShare, watchTells},
	{watcher, "changed-may-call-the-store", needsWatcher | needsShare, watchMayCall},
	{watcher, "ends-with-its-context", needsWatcher, watchEndsWithContext},
	{watcher, "ends-with-close", needsWatcher, watchEndsWithClose},
}

// watch is a running Watch.
type watch struct {
	changed  chan string // the ids that changed was called with
	returned chan error  // what Watch returned
}

// watch starts a Watch. It calls changed, if that is not nil, with each id.
func (t *trial) watch(ctx context.Context, changed func(id string)) *watch {
	w := &watch{changed: make(chan string, 1000), returned: make(chan error, 1)}
	go func() {
		w.returned <- t.store.Watch(ctx, func(id string) {
			if changed != nil {
				changed(id)
			}
			select {
			case w.changed <- id:
			default: // nobody reads them any more
			}
		})
	}()
	return w
}

// patience is how long a Watch may take to report a change.
func (t *trial) patience() <-chan time.Time { return time.After(t.subject.Timeout / 2) }

// await waits until the Watch calls changed with the id.
func (w *watch) await(t *trial, id, of string) {
	patience := t.patience()
	for {
		select {
		case changed := <-w.changed:
			if changed == id {
				return
			}
		case err := <-w.returned:
			t.fatalf("Watch returned before its context ended: %s", quoteError(err))
		case <-patience:
			t.fatalf("Watch did not call changed with task %s within %v after %s", clip(id), t.subject.Timeout/2, of)
		}
	}
}

// begun returns when the Watch reports changes by another instance. There is no
// other way to know that it has begun, so that instance updates a task until
// then.
func (w *watch) begun(t, other *trial) {
	patience := t.patience()
	other.create(t.record("first"))
	for version := int64(0); ; version++ {
		select {
		case <-w.changed:
			return
		case err := <-w.returned:
			t.fatalf("Watch returned before its context ended: %s", quoteError(err))
		case <-patience:
			t.fatalf("Watch did not call changed while another instance updated a task %d times", version)
		case <-time.After(10 * time.Millisecond):
			other.update(at(version, t.record("first")))
		}
	}
}

// end cancels the watch's context, which must end it.
func (w *watch) end(t *trial, cancel context.CancelFunc) {
	cancel()
	select {
	case err := <-w.returned:
		t.wants(err, context.Canceled, "Watch whose context was cancelled")
	case <-t.patience():
		t.fatalf("Watch did not return after its context was cancelled")
	}
}

func watchTells(t *trial) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	other := t.on(t.share())
	w := t.watch(ctx, nil)
	w.begun(t, other)
	for i := range 3 {
		id := fmt.Sprint("task ", i)
		other.create(t.expiring(id, time.Hour))
		w.await(t, id, "another instance created it")
		other.update(t.expiring(id, 2*time.Hour))
		w.await(t, id, "another instance updated it")
		other.sweep(t.began.Add(2*time.Hour), 1)
		w.await(t, id, "another instance removed it")
	}
	w.end(t, cancel)
}

// watchMayCall reads and writes each task that changed is called with, as the
// engine does. A store that holds a lock during changed hangs here.
func watchMayCall(t *trial) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	other := t.on(t.share())
	w := t.watch(ctx, func(id string) {
		r, err := t.store.Get(ctx, id)
		if err != nil {
			t.errorf("Get by changed: %v", err)
		}
		if id == "task" && r.Version == 0 {
			if err := t.store.Update(ctx, t.full(id, 1)); err != nil {
				t.errorf("Update by changed: %v", err)
			}
		}
	})
	w.begun(t, other)
	other.create(t.record("task"))
	w.await(t, "task", "another instance created it")
	w.end(t, cancel)
	t.stored(at(1, t.full("task", 1)), "after changed updated it")
}

func watchEndsWithContext(t *trial) {
	ctx, cancel := context.WithCancel(context.Background())
	t.watch(ctx, nil).end(t, cancel)
	t.done(func(ctx context.Context, want error, kind string) {
		err := t.store.Watch(ctx, func(string) {})
		t.wants(err, want, "Watch with %s", kind)
	})
	t.create(t.record("task"))
}

func watchEndsWithClose(t *trial) {
	w := t.watch(context.Background(), nil)
	if err := t.store.Close(); err != nil {
		t.fatalf("Close during a Watch: %v", err)
	}
	select {
	case err := <-w.returned:
		t.wants(err, durabletasks.ErrClosed, "Watch during which the store was closed")
	case <-t.patience():
		t.fatalf("Watch did not return after the store was closed")
	}
	err := t.store.Watch(context.Background(), func(string) {})
	t.wants(err, durabletasks.ErrClosed, "Watch after Close")
}
