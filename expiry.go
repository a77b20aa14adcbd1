package durabletasks

import (
	"errors"
	"log/slog"
	"math"
	"time"
)

// Stores decide when a task has expired. The code here tells those in this
// process who work on it or wait for it, and keeps it alive while its worker
// runs. Only a task that somebody holds on to has a timer.

// While a task's worker runs, its TTL is raised when less than keepAhead is
// left, so that it lasts another [Options].TTL, or keepFor if that is longer.
// This goes by the wall clock if that is ahead, and is checked more often than
// it takes to believe a forward jump: when a machine has slept for longer than
// its tasks were to live, they go on.
const (
	keepAhead = 30 * time.Second
	keepFor   = time.Minute
)

// refreshDelay is how soon a task is read again that should be gone and is
// not, or that could not be read.
const refreshDelay = time.Second

// expire ends the local half of a task that the store has reported as gone.
// For any other error it does nothing.
func (l *TaskLifecycle) expire(t *localTask, err error) {
	if !errors.Is(err, ErrNotFound) {
		return
	}
	if t.expire() {
		l.report(EventExpired, t.id, nil)
	}
	t.endContexts(ErrExpired)
	t.notify()
}

// armExpiry arms the timer that looks at the expiry of a task, if somebody in
// this process holds on to it: early for a task whose worker runs, to raise its
// TTL, but not sooner than atLeast.
func (l *TaskLifecycle) armExpiry(t *localTask, r *Record, atLeast time.Duration) {
	if !t.held() {
		return
	}
	after, limited := refreshDelay, true
	l.guard("Options.Now", func() { after, limited = l.untilExpiry(t, r) })
	if limited {
		l.armRefresh(t, max(after, atLeast))
	} else {
		t.disarm()
	}
}

// untilExpiry returns how long it is until the expiry of a task has to be
// looked at, and whether it has to be at all.
func (l *TaskLifecycle) untilExpiry(t *localTask, r *Record) (time.Duration, bool) {
	at, limited := r.ExpiresAt()
	left := at.Sub(l.steadyNow())
	if !l.opts.ExpireRunning && t.isRunning() {
		left = min(left-keepAhead, clockPatience/2)
	}
	return left, limited && !r.Status.Terminal()
}

// armRefresh arms the timer to keep a task alive and refresh its local half.
func (l *TaskLifecycle) armRefresh(t *localTask, after time.Duration) {
	t.arm(after, func() {
		completed := false
		l.guard("expiry", func() {
			l.checkExpiry(t.id)
			completed = true
		})
		if !completed {
			l.armRefresh(t, refreshDelay)
		}
	})
}

// checkExpiry raises the TTL of a task whose worker runs, and refreshes the
// task's local half.
func (l *TaskLifecycle) checkExpiry(id string) {
	t := l.local.acquire(id)
	defer t.release()
	if !t.held() {
		return
	}
	if !l.opts.ExpireRunning && t.isRunning() {
		err := l.mutate(l.life, id, func(r *Record) (change, error) {
			if at, limited := r.ExpiresAt(); limited && !r.Status.Terminal() {
				now := l.steadyNow()
				if wall := l.now(); wall.After(now) {
					now = wall // the machine may have slept; the steady clock will follow
				}
				if at.Sub(now) <= keepAhead && extend(r, now, max(keepFor, l.opts.TTL)) {
					return stamped, nil
				}
			}
			return nothing, nil
		})
		if err != nil && !isOver(err) {
			l.logWarning("time to live of a running task not extended", slog.Any("error", err))
		}
	}
	l.refresh(t, refreshDelay) // the TTL may not have been extended, or the store's clock may be behind
}

// refresh applies a task's record as it is now, and with it what other
// processes have committed. A task that cannot be read is read again later.
// See armExpiry for atLeast.
func (l *TaskLifecycle) refresh(t *localTask, atLeast time.Duration) {
	worked := t.hasContexts()
	switch r, err := l.get(l.life, t.id); {
	case l.errIfClosed() != nil:
		t.endContexts(ErrClosed)
	case errors.Is(err, ErrNotFound) && !worked:
		// A context that is there now may be that of a task which was created
		// only after the store was read.
		t.notify()
	case errors.Is(err, ErrNotFound):
		l.expire(t, err)
	case err != nil:
		l.armRefresh(t, refreshDelay)
	default:
		l.apply(t, &r, atLeast)
	}
}

// extend makes a record live until now+d, in whole milliseconds, or without
// limit if d is NoLimit or the sum exceeds what a duration can hold. It reports
// whether that is a change.
func extend(r *Record, now time.Time, d time.Duration) bool {
	if r.TTL == NoLimit {
		return false
	}
	ttl := NoLimit
	if d != NoLimit {
		const most = math.MaxInt64 / time.Millisecond * time.Millisecond
		if age := max(now.Sub(r.CreatedAt), 0); d <= most-age {
			ttl = roundUp(age + d)
		}
	}
	if ttl != NoLimit && ttl <= r.TTL {
		return false
	}
	r.TTL = ttl
	return true
}
