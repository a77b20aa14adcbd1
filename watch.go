package durabletasks

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"maps"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Watch yields what [TaskLifecycle.GetTask] would return, for each of the
// tasks: its present view first, then a view after each commit that changes
// it, in commit order. A consumer that is slower than the commits sees the
// newest view and misses older ones, but never the one that ends a task.
//
// A task leaves the watch with its terminal view; one that is unknown,
// expired, or belongs to another owner than ctx carries leaves it without
// any. The sequence ends when no task is left, or with an error and a zero
// view: ctx's cause, [ErrClosed], [ErrInconsistent] or the store's own. It
// may be used by one goroutine at a time, and more than once.
//
// Commits of other processes over the same store are seen if the store
// implements [Watcher].
func (l *TaskLifecycle) Watch(ctx context.Context, ids ...string) iter.Seq2[wire.Task, error] {
	return func(yield func(wire.Task, error) bool) {
		changes := newListener()
		watched := make(map[string]*localTask, len(ids))
		shown := make(map[string]wire.Task, len(ids))
		leave := func(id string) {
			watched[id].ignore(changes)
			delete(watched, id)
			delete(shown, id) // it may hold a large result
		}
		defer func() {
			for id := range watched {
				leave(id)
			}
		}()
		for _, id := range ids {
			if watched[id] == nil {
				t := l.local.acquire(id)
				t.listen(changes)
				t.release()
				watched[id] = t
				changes.notify(id)
			}
		}
		for len(watched) > 0 {
			select {
			case <-changes.ready:
			case <-ctx.Done():
				yield(wire.Task{}, context.Cause(ctx))
				return
			case <-l.life.Done():
				yield(wire.Task{}, ErrClosed)
				return
			}
			for id := range changes.take() {
				t, ok := watched[id]
				if !ok {
					continue
				}
				r, err := l.read(ctx, id)
				if errors.Is(err, ErrNotFound) {
					if _, known := shown[id]; known {
						l.expire(t, err)
					}
					leave(id)
					continue
				}
				var now wire.Task
				if err == nil {
					l.armExpiry(t, &r, 0)
					now, err = view(&r)
				}
				if err != nil {
					yield(wire.Task{}, err)
					return
				}
				if before, again := shown[id]; again && sameView(&before, &now) {
					continue
				}
				if shown[id] = now; now.Status.Terminal() {
					leave(id)
				}
				if !yield(now, nil) {
					return
				}
			}
		}
	}
}

// sameView reports whether two views of a task that may still change are
// alike.
func sameView(a, b *wire.Task) bool {
	return a.Status == b.Status && a.StatusMessage == b.StatusMessage && a.LastUpdatedAt.Equal(b.LastUpdatedAt) &&
		a.TTL == b.TTL && a.PollInterval == b.PollInterval && maps.Equal(a.InputRequests, b.InputRequests)
}

// followStore applies what other processes commit to a shared store. It is not
// known when a watch of the store has begun, so what may have been missed
// before is read a moment after its start.
func (l *TaskLifecycle) followStore(w Watcher) {
	defer l.background.Done()
	for {
		missed := time.AfterFunc(refreshDelay, func() {
			l.local.each(func(t *localTask) { l.guard("store", func() { l.refresh(t, 0) }) })
		})
		l.guard("store watch", func() {
			if err := w.Watch(l.life, l.changedElsewhere); err != nil && l.life.Err() == nil {
				l.logWarning("store watch ended, begins again", slog.Any("error", err))
			}
		})
		if l.sleep(l.life, refreshDelay) != nil {
			missed.Stop()
			return
		}
	}
}

// changedElsewhere refreshes a task that another process may have changed, if
// somebody in this process holds on to it.
func (l *TaskLifecycle) changedElsewhere(id string) {
	if t := l.local.find(id); t != nil {
		defer t.release()
		l.refresh(t, 0)
	}
}
