package durabletasks

import (
	"errors"
	"log/slog"
	"math"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Stores decide when a task has expired. What is here tells those in this
// process who work on it or wait for it, and keeps it alive under its worker.
// An idle task costs no timer: only one that somebody holds on to is looked
// at.

// A live worker's task is kept from expiring: when less than keepAhead is
// left, its time to live is raised so that it lasts another [Options].TTL, or
// keepFor if that is less. This goes by the wall clock, if that is ahead, and
// is looked at more often than a jump of it takes to be believed: when a
// machine has slept for longer than its tasks were to live, they go on.
const (
	keepAhead = 30 * time.Second
	keepFor   = time.Minute
)

// lost ends the local half of a task that an operation found out of reach.
func (l *TaskLifecycle) lost(t *localTask, err error) {
	if errors.Is(err, ErrNotFound) {
		if t.missed() {
			l.happened(EventExpired, t.id, nil)
		}
		l.local.end(t, ErrExpired)
		t.tell()
	}
}

// watchExpiry arms the timer that looks at the expiry of a task that somebody
// in this process works on or waits for. It fires early for a task whose
// worker is alive, to raise its time to live, but not sooner than atLeast.
func (l *TaskLifecycle) watchExpiry(t *localTask, r *Record, atLeast time.Duration) {
	if !t.held() {
		return
	}
	after, limited := lookLater, true
	l.guard("Options.Now", func() { after, limited = l.untilLook(t, r) })
	l.lookAgain(t, max(after, atLeast), limited)
}

// lookLater is how soon a task is looked at again that should be gone and is
// not, or that could not be read.
const lookLater = time.Second

// untilLook returns how long it is until the expiry of a task has to be
// looked at, and whether it has to be at all.
func (l *TaskLifecycle) untilLook(t *localTask, r *Record) (time.Duration, bool) {
	at, limited := r.ExpiresAt()
	left := at.Sub(l.steadyNow())
	if !l.opts.KeepExpiry && t.isRunning() {
		left = min(left-keepAhead, clockPatience/2)
	}
	return left, limited && !r.Status.Terminal()
}

func (l *TaskLifecycle) lookAgain(t *localTask, after time.Duration, limited bool) {
	t.arm(after, limited, func() {
		checked := false
		l.guard("expiry", func() {
			l.checkExpiry(t.id)
			checked = true
		})
		if !checked {
			l.lookAgain(t, lookLater, true)
		}
	})
}

// checkExpiry raises the time to live of a task whose worker is alive, and
// looks whether a task is gone.
func (l *TaskLifecycle) checkExpiry(id string) {
	t := l.local.acquire(id)
	defer l.local.release(t, 1)
	if !l.opts.KeepExpiry && t.isRunning() {
		err := l.mutate(l.life, id, func(r *Record) (change, error) {
			if at, limited := r.ExpiresAt(); limited && !r.Status.Terminal() {
				now := l.steadyNow()
				if wall := l.now(); wall.After(now) {
					now = wall // ahead, perhaps since the machine has slept, and soon believed
				}
				if at.Sub(now) <= keepAhead && extend(r, now, max(keepFor, l.opts.TTL)) {
					return stamped, nil
				}
			}
			return nothing, nil
		})
		if err != nil && !over(err) {
			l.report(slog.LevelWarn, "time to live of a running task not extended", slog.Any("error", err))
		}
	}
	l.look(t, lookLater) // it may not have been extended, or the store's clock may be behind
}

// look lets everything in this process that holds on to a task follow its
// record as it is now: also what other processes have committed. A task that
// cannot be read is looked at again. See watchExpiry for atLeast.
func (l *TaskLifecycle) look(t *localTask, atLeast time.Duration) {
	worked := t.hasContexts()
	switch r, err := l.get(l.life, t.id); {
	case l.live() != nil:
		l.local.end(t, ErrClosed)
	case errors.Is(err, ErrNotFound) && !worked:
		// A context that is here now may be that of a task which was created
		// only after the store was read.
		t.tell()
	case errors.Is(err, ErrNotFound):
		l.lost(t, err)
	case err != nil:
		l.lookAgain(t, lookLater, true)
	default:
		l.follow(t, &r, atLeast)
	}
}

// extend makes a record live until now+d, in whole milliseconds, or without
// limit if d is NoLimit or the sum more than a duration can hold. It reports
// whether that is a change.
func extend(r *Record, now time.Time, d time.Duration) bool {
	if r.TTL == NoLimit {
		return false
	}
	ttl := NoLimit
	if d != NoLimit {
		const most = math.MaxInt64 / time.Millisecond * time.Millisecond
		if age := max(now.Sub(r.CreatedAt), 0); d <= most-age {
			ttl = time.Duration(wire.Milliseconds(age+d)) * time.Millisecond
		}
	}
	if ttl != NoLimit && ttl <= r.TTL {
		return false
	}
	r.TTL = ttl
	return true
}
