package storetest

import (
	"context"
	"fmt"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var watchChecks = []check{
	{watcher, "tells-of-other-instances", needsWatcher | needsShare, watchTells},
	{watcher, "changed-may-call-the-store", needsWatcher | needsShare, watchMayCall},
	{watcher, "ends-with-its-context", needsWatcher, watchEndsWithContext},
	{watcher, "ends-with-close", needsWatcher, watchEndsWithClose},
}

// watch is a Watch that runs.
type watch struct {
	told  chan string // the ids that changed was called with
	ended chan error  // what Watch returned
}

// watch starts a Watch that calls changed, if it is not nil, beside telling.
func (t *trial) watch(ctx context.Context, changed func(id string)) *watch {
	w := &watch{told: make(chan string, 1000), ended: make(chan error, 1)}
	go func() {
		w.ended <- t.store.Watch(ctx, func(id string) {
			if changed != nil {
				changed(id)
			}
			select {
			case w.told <- id:
			default: // nobody looks any more
			}
		})
	}()
	return w
}

// patience is how long a watch may take to tell of something.
func (t *trial) patience() <-chan time.Time { return time.After(t.subject.Timeout / 2) }

// await waits until the watch tells of the task.
func (w *watch) await(t *trial, id, of string) {
	patience := t.patience()
	for {
		select {
		case told := <-w.told:
			if told == id {
				return
			}
		case err := <-w.ended:
			t.fatalf("Watch ended before its context: %s", quoteError(err))
		case <-patience:
			t.fatalf("Watch did not call changed with task %s after %s", clip(id), of)
		}
	}
}

// begun returns when the watch tells of what another instance does. Nobody
// can know when a Watch has begun, so that instance updates a task until then.
func (w *watch) begun(t, other *trial) {
	patience := t.patience()
	other.create(t.record("first"))
	for version := int64(0); ; version++ {
		select {
		case <-w.told:
			return
		case err := <-w.ended:
			t.fatalf("Watch ended before its context: %s", quoteError(err))
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
	case err := <-w.ended:
		t.wants(err, context.Canceled, "Watch whose context was cancelled")
	case <-t.patience():
		t.fatalf("Watch did not return when its context was cancelled")
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

// watchMayCall reads and writes each task that changed is called with, as an
// engine does. A store that holds a lock meanwhile hangs here.
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
	t.stored(at(1, t.full("task", 1)), "after it was updated by changed")
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
		t.fatalf("Close beside a Watch: %v", err)
	}
	select {
	case err := <-w.ended:
		t.wants(err, durabletasks.ErrClosed, "Watch of a store that was closed")
	case <-t.patience():
		t.fatalf("Watch did not return when the store was closed")
	}
	err := t.store.Watch(context.Background(), func(string) {})
	t.wants(err, durabletasks.ErrClosed, "Watch after Close")
}
