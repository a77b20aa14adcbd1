package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var sweepChecks = []check{
	{"S10", "empty-store-sweeps-nothing", 0, sweepOfEmpty},
	{"S10", "expired-are-counted-and-removed", 0, sweepCounts},
	{"S10", "expired-by-the-clock-are-counted", needsAdvance, sweepByClock},
	{"S10", "argument-decides", 0, sweepGoesByItsArgument},
	{"S10", "any-time-is-accepted", 0, sweepAcceptsAnyTime},
	{"S10", "earlier-time-keeps-what-expired-later", 0, earlierSweepKeeps},
	{"S10", "changed-ttl-counts", 0, sweepGoesByCurrentTTL},
	{"S10", "swept-ids-are-free", 0, sweptIDsAreFree},
	{"S10", "no-limit-is-never-swept", 0, noLimitIsNeverSwept},
	{"S10", "many-are-swept-at-once", 0, manyAreSwept},
	{"S10", "concurrent-sweeps-count-once", 0, concurrentSweepsCountOnce},
	{"S10", "update-and-sweep-agree", 0, updateAndSweepAgree},
	{"S10", "reopen-removes-nothing", needsReopen, reopenRemovesNothing},
	{"S10", "clock-set-back-finds-all", needsAdvance | needsRewind, clockSetBack},
	{"S10", "clock-set-back-finds-all-after-a-reopen", needsAdvance | needsRewind | needsReopen, clockSetBackReopened},
}

func sweepOfEmpty(t *trial) {
	t.sweep(t.now(), 0)
	t.sweep(t.now().Add(time.Hour), 0)
}

func sweepCounts(t *trial) {
	var live []durabletasks.Record
	for i, status := range statuses {
		r := t.expiring(fmt.Sprint("short ", i), time.Hour)
		r.Status = status
		t.create(r)
		r = t.full(fmt.Sprint("long ", i), i)
		r.Status, r.TTL = status, 48*time.Hour
		t.create(r)
		live = append(live, r)
	}
	at := t.began.Add(24 * time.Hour)
	t.sweep(at, len(statuses))
	for i := range statuses {
		t.gone(fmt.Sprint("short ", i), "which was swept")
	}
	for _, r := range live {
		t.stored(r, "after a Sweep before its expiry")
	}
	t.sweep(at, 0)
}

func sweepByClock(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.create(t.expiring("other", time.Minute))
	t.sweep(t.now(), 0)
	t.advance(time.Second - time.Millisecond)
	t.sweep(t.now(), 0)
	t.advance(time.Millisecond)
	t.sweep(t.now(), 1)
	t.fresh("other", "after a Sweep before its expiry")
	t.create(t.record("task"))
}

// sweepGoesByItsArgument sweeps at times other than the store's own.
func sweepGoesByItsArgument(t *trial) {
	r := t.expiring("task", time.Hour)
	t.create(r)
	at := r.CreatedAt.Add(time.Hour)
	t.sweep(at.Add(-48*time.Hour), 0)
	t.sweep(at.Add(-time.Millisecond), 0)
	t.stored(r, "after Sweeps before its expiry")
	t.sweep(at, 1)
	t.expired("task", "which was swept at exactly its expiry")
}

// sweepAcceptsAnyTime sweeps at times that are not in UTC, not whole
// milliseconds, or far away.
func sweepAcceptsAnyTime(t *trial) {
	r := t.expiring("task", time.Hour)
	t.create(r)
	at := r.CreatedAt.Add(time.Hour)
	ahead, behind := time.FixedZone("ahead", 14*3600), time.FixedZone("behind", -12*3600)
	for _, early := range []time.Time{
		{},
		at.Add(-time.Millisecond).In(ahead),
		at.Add(-time.Millisecond).In(behind),
		at.Add(-time.Millisecond / 2),
		at.Add(-time.Nanosecond),
	} {
		if n, err := t.store.Sweep(context.Background(), early); err != nil || n != 0 {
			t.fatalf("Sweep at %v of a record that expires at %v: got %d and %s, want 0", early, at, n, quoteError(err))
		}
		t.stored(r, fmt.Sprintf("after a Sweep at %v, before its expiry", early))
	}
	for _, late := range []time.Time{
		at.In(ahead),
		at.In(behind),
		at.Add(time.Nanosecond),
		time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC),
	} {
		if n, err := t.store.Sweep(context.Background(), late); err != nil || n != 1 {
			t.fatalf("Sweep at %v of a record that expires at %v: got %d and %s, want 1", late, at, n, quoteError(err))
		}
		t.create(r)
	}
}

// earlierSweepKeeps needs no clock: the task expired an hour ago.
func earlierSweepKeeps(t *trial) {
	r := t.expiring("task", time.Hour)
	r.CreatedAt = r.CreatedAt.Add(-2 * time.Hour)
	t.create(r)
	at := r.CreatedAt.Add(time.Hour)
	for _, early := range []time.Time{{}, r.CreatedAt, at.Add(-time.Millisecond)} {
		if n, err := t.store.Sweep(context.Background(), early); err != nil || n != 0 {
			t.fatalf("Sweep at %v of a record that expired at %v, an hour ago: got %d and %s, want 0", early, at, n, quoteError(err))
		}
	}
	t.sweep(at, 1)
}

func sweepGoesByCurrentTTL(t *trial) {
	for id, ttl := range map[string]time.Duration{"longer": time.Hour, "shorter": 48 * time.Hour, "taken away": time.Hour, "given": durabletasks.NoLimit} {
		t.create(t.expiring(id, ttl))
	}
	t.setTTL("longer", 48*time.Hour)
	t.setTTL("shorter", time.Hour)
	t.setTTL("taken away", durabletasks.NoLimit)
	t.setTTL("given", time.Hour)
	t.sweep(t.began.Add(24*time.Hour), 2)
	t.expired("shorter", "which was swept after its TTL was lowered")
	t.expired("given", "which was swept after it got a TTL")
	t.fresh("longer", "after a Sweep before its new, later expiry")
	t.fresh("taken away", "with NoLimit, after a Sweep")
}

func sweptIDsAreFree(t *trial) {
	ctx := context.Background()
	r := t.full("task", 1)
	t.create(r)
	t.update(r)
	expiry, _ := r.ExpiresAt()
	t.sweep(expiry, 1)
	next := t.record("task")
	if err := t.store.Create(ctx, next); err != nil {
		t.fatalf("Create with the id of a task that was swept: %v", err)
	}
	t.stored(next, "created with the id of a task that was swept")
	next.StatusMessage = "updated"
	next = t.update(next)
	t.sweep(expiry, 0)
	t.stored(next, "created with the id of a task that was swept, after another Sweep")
}

func noLimitIsNeverSwept(t *trial) {
	t.create(t.record("task"))
	t.sweep(time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC), 0)
	t.fresh("task", "with NoLimit, after a Sweep in the year 9999")
}

// manyAreSwept creates more records than stores remove in one batch.
func manyAreSwept(t *trial) {
	crowd := t.crowd(1100, func(i int) durabletasks.Record { return t.expiring(fmt.Sprint("short ", i), time.Hour) })
	t.create(t.expiring("long", 48*time.Hour))
	t.sweep(t.began.Add(24*time.Hour), len(crowd))
	for i := range len(crowd) / 10 {
		t.expired(crowd[i*10].ID, "which was swept")
	}
	t.fresh("long", "after a Sweep before its expiry")
	t.sweep(t.began.Add(24*time.Hour), 0)
}

func concurrentSweepsCountOnce(t *trial) {
	const n, sweepers = 12, 4
	for round := range t.rounds(10) {
		for i := range n {
			t.create(t.expiring(fmt.Sprint("task ", round, " ", i), time.Hour))
		}
		var swept atomic.Int64
		t.parallel(sweepers, func(int) {
			k, err := t.store.Sweep(context.Background(), t.began.Add(time.Hour))
			if err != nil {
				t.fatalf("concurrent Sweep: %v", err)
			}
			swept.Add(int64(k))
		})
		if got := swept.Load(); got != n {
			t.fatalf("%d concurrent Sweeps returned %d in total, but %d records had expired", sweepers, got, n)
		}
	}
}

// updateAndSweepAgree removes TTLs while a Sweep removes the records that had
// expired with them. For each record one of the two comes first, and the results
// of both must agree.
func updateAndSweepAgree(t *trial) {
	const tasks = 8
	for round := range t.rounds(30) {
		id := func(i int) string { return fmt.Sprint("round ", round, " task ", i) }
		for i := range tasks {
			t.create(t.expiring(id(i), time.Hour))
		}
		swept := 0
		var errs [tasks]error
		begins := make(chan struct{}) // closed when the Sweep begins
		t.parallel(tasks+1, func(i int) {
			if i < tasks {
				if round%2 == 1 {
					<-begins
				}
				errs[i] = t.store.Update(context.Background(), t.record(id(i)))
				return
			}
			for range round {
				runtime.Gosched() // let some of the others run
			}
			close(begins)
			var err error
			if swept, err = t.store.Sweep(context.Background(), t.began.Add(time.Hour)); err != nil {
				t.fatalf("Sweep concurrent with Updates: %v", err)
			}
		})
		gone := 0
		for i, err := range errs {
			if err != nil {
				t.wants(err, durabletasks.ErrNotFound, "Update that removes the TTL, concurrent with a Sweep")
				t.gone(id(i), "whose Update, concurrent with a Sweep, reported that it was not found")
				gone++
				continue
			}
			t.stored(at(1, t.record(id(i))), "whose TTL was removed by an Update concurrent with a Sweep")
		}
		if swept != gone {
			t.fatalf("Sweep returned %d, but %d concurrent Updates did not find their record", swept, gone)
		}
	}
}

// reopenRemovesNothing needs no clock: the tasks expired an hour ago.
func reopenRemovesNothing(t *trial) {
	for i, status := range statuses {
		r := t.expiring(fmt.Sprint("task ", i), time.Hour)
		r.CreatedAt = r.CreatedAt.Add(-2 * time.Hour)
		r.Status = status
		t.create(r)
	}
	for range 2 {
		t.reopen()
	}
	if n, err := t.store.Sweep(context.Background(), t.now()); err != nil || n != len(statuses) {
		t.fatalf("Sweep of %d records that had expired before a reopen: got %d and %s", len(statuses), n, quoteError(err))
	}
}

func clockSetBack(t *trial) { t.setClockBack(func() {}) }

func clockSetBackReopened(t *trial) { t.setClockBack(t.reopen) }

// setClockBack sets the clock ahead, uses the store, and sets the clock back.
// Nothing was swept, so the records that seemed expired must be there again.
func (t *trial) setClockBack(between func()) {
	ctx := context.Background()
	var want []durabletasks.Record
	for i := range statuses {
		r := t.full(fmt.Sprint("task ", i), i)
		t.create(r)
		want = append(want, t.update(r))
	}
	const ahead = 1000 * 24 * time.Hour
	t.advance(ahead)
	between()
	for _, r := range want {
		t.expired(r.ID, "while the clock was ahead")
		err := t.store.Update(ctx, at(1, t.record(r.ID)))
		t.wants(err, durabletasks.ErrNotFound, "Update of an expired task while the clock was ahead")
	}
	t.create(t.record("new"))
	t.update(t.record("new"))
	t.sweep(t.began, 0)
	between()
	t.advance(-ahead)
	for _, r := range want {
		t.stored(r, "after the clock was ahead and was set back")
	}
	between()
	for _, r := range want {
		t.stored(r, "after the clock was ahead and was set back")
	}
	t.sweep(t.began.Add(ahead), len(want))
}
