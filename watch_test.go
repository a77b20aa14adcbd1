package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// watcher collects what a watch yields, one line each.
type watcher struct {
	lines []string
	ended chan struct{}
}

func watch(ctx context.Context, l *durabletasks.TaskLifecycle, ids ...string) *watcher {
	w := &watcher{ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		for v, err := range l.Watch(ctx, ids...) {
			w.lines = append(w.lines, line(v, err))
		}
	}()
	synctest.Wait()
	return w
}

func line(v wire.Task, err error) string {
	if err != nil {
		return errorName(err)
	}
	return strings.TrimSpace(fmt.Sprintf("%s %s %s", v.TaskID, v.Status, v.StatusMessage))
}

// expect checks what the watch has yielded since the last call and whether it
// has ended.
func (w *watcher) expect(t *testing.T, ended bool, want ...string) {
	t.Helper()
	synctest.Wait()
	got := w.lines
	w.lines = nil
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	select {
	case <-w.ended:
		if !ended {
			t.Error("the watch has ended")
		}
	default:
		if ended {
			t.Error("the watch goes on")
		}
	}
}

// A watch yields what tasks/get shows, from committed states, in order, up to
// the end of the task.
func TestWatch(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), &durabletasks.Options{NewID: numbered()})
		id := create(t, l, nil)
		h := handle(t, l, id)
		w := watch(ctx, l, id)
		w.expect(t, false, "t1 working")
		for _, message := range []string{"one", "two", ""} {
			check(t, h.Progress(ctx, message, nil))
			w.expect(t, false, strings.TrimSpace("t1 working "+message))
		}
		check(t, h.Progress(ctx, "", nil))
		w.expect(t, false) // the same view in the same millisecond
		time.Sleep(second)
		check(t, h.Progress(ctx, "", nil))
		w.expect(t, false, "t1 working")
		check(t, h.ExtendTTL(ctx, 2*time.Hour))
		w.expect(t, false, "t1 working")
		check(t, h.Progress(ctx, "", &durabletasks.ProgressOptions{PollInterval: 3 * second}))
		w.expect(t, false, "t1 working")
		check(t, l.CancelTask(ctx, id)) // no change that a client sees
		_, err := l.UpdateTask(ctx, id, accepts("x"))
		check(t, err)
		w.expect(t, false)
		check(t, h.Complete(ctx, done))
		w.expect(t, true, "t1 completed")

		watch(ctx, l, id).expect(t, true, "t1 completed")
		watch(ctx, l, "unknown").expect(t, true)
		watch(ctx, l).expect(t, true)
		watch(durabletasks.WithOwner(ctx, "other"), l, id).expect(t, true)
	})
}

func TestWatchInput(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), nil)
		id := create(t, l, nil)
		var open []int
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for v, err := range l.Watch(ctx, id) {
				check(t, err)
				open = append(open, len(v.InputRequests))
				if g, err := l.GetTask(ctx, id); err != nil || string(wire.GetTaskResult{Task: g}.AppendJSON(nil)) != string(wire.GetTaskResult{Task: v}.AppendJSON(nil)) {
					t.Errorf("tasks/get shows something else: %v", err)
				}
			}
		}()
		synctest.Wait()
		h := handle(t, l, id)
		request(h, "a", "b")
		for _, key := range []string{"a", "b"} {
			_, err := l.UpdateTask(ctx, id, accepts(key))
			check(t, err)
			synctest.Wait()
		}
		check(t, h.Fail(ctx, &wire.Error{Message: "m"}))
		<-ended
		if want := []int{0, 2, 1, 0, 0}; !slices.Equal(open, want) {
			t.Errorf("open requests %v", open)
		}
	})
}

// Several tasks in one watch: each leaves on its own, and a task that is named
// twice is watched once.
func TestWatchSeveral(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), &durabletasks.Options{NewID: numbered(), SweepInterval: durabletasks.NoLimit})
		a, b := create(t, l, nil), create(t, l, &durabletasks.CreateOptions{TTL: time.Minute})
		theirs, err := l.CreateTask(durabletasks.WithOwner(ctx, "other"), nil)
		check(t, err)
		w := watch(ctx, l, a, b, a, "unknown", theirs.TaskID)
		slices.Sort(w.lines)
		w.expect(t, false, "t1 working", "t2 working")
		check(t, handle(t, l, a).Cancelled(ctx, "enough"))
		w.expect(t, false, "t1 cancelled enough")
		check(t, handle(t, l, theirs.TaskID).Cancelled(ctx, ""))
		w.expect(t, false)
		time.Sleep(time.Minute)
		w.expect(t, true) // expired: it leaves without a word
	})
}

// A task that expires while it is only watched is one event for any number of
// watches; a task that never existed is none.
func TestWatchedTaskExpires(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		l := open(t, newShared(), &durabletasks.Options{NewID: numbered(), OnEvent: log.hook, SweepInterval: durabletasks.NoLimit})
		id := create(t, l, nil)
		first, second := watch(ctx, l, id), watch(ctx, l, id)
		first.expect(t, false, "t1 working")
		second.expect(t, false, "t1 working")
		watch(ctx, l, "unknown").expect(t, true)
		time.Sleep(time.Hour)
		first.expect(t, true)
		second.expect(t, true)
		if got, want := log.String(), "created (working), expired"; got != want {
			t.Errorf("events: %s", got)
		}
	})
}

// A slow consumer misses states in between, never the end.
func TestWatchSlowly(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), &durabletasks.Options{NewID: numbered()})
		id := create(t, l, nil)
		h := handle(t, l, id)
		var lines []string
		for v, err := range l.Watch(ctx, id) {
			lines = append(lines, line(v, err))
			if len(lines) < 3 {
				for i := range 10 {
					check(t, h.Progress(ctx, fmt.Sprint(len(lines), ".", i), nil))
				}
			} else if v.Status == durabletasks.StatusWorking {
				check(t, h.Progress(ctx, "last", nil))
				check(t, h.Complete(ctx, done))
			}
		}
		if want := []string{"t1 working", "t1 working 1.9", "t1 working 2.9", "t1 completed last"}; !slices.Equal(lines, want) {
			t.Errorf("got %q", lines)
		}
	})
}

func TestWatchEnds(t *testing.T) {
	mine := errors.New("mine")
	broken := errors.New("broken")
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		l := open(t, store, &durabletasks.Options{NewID: numbered()})
		id := create(t, l, nil)
		h := handle(t, l, id)

		own, cancel := context.WithCancelCause(ctx)
		w := watch(own, l, id)
		w.expect(t, false, "t1 working")
		cancel(mine)
		w.expect(t, true, "mine")

		w = watch(ctx, l, id)
		w.expect(t, false, "t1 working")
		store.onGet = func(string) error { return broken }
		h.Progress(ctx, "", nil)
		store.onGet = nil
		w.expect(t, false) // nothing was committed, nothing is told
		store.onUpdate = func(durabletasks.Record) error {
			store.onUpdate = nil
			store.onGet = func(string) error { store.onGet = nil; return broken }
			return nil
		}
		check(t, h.Progress(ctx, "", nil))
		w.expect(t, true, "broken")

		// A break leaves nothing behind, and the sequence can be used again.
		views := l.Watch(ctx, id)
		for range 2 {
			for v, err := range views {
				check(t, err)
				if v.TaskID != id {
					t.Errorf("view %v", v)
				}
				break
			}
		}

		w = watch(ctx, l, id)
		w.expect(t, false, "t1 working")
		l.Close()
		w.expect(t, true, "Closed")
		w = watch(ctx, l, id)
		w.expect(t, true, "Closed")

		r := stored(t, store, id)
		r.Result = done
		check(t, store.Update(ctx, r))
		l = open(t, store, nil)
		for _, err := range l.Watch(ctx, id) {
			wantError(t, "an inconsistent record", err, durabletasks.ErrInconsistent)
		}
	})
}
