package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var sweepChecks = []check{
	{"S10", "empty-store-sweeps-nothing", 0, sweepOfEmpty},
	{"S10", "expired-are-counted-and-removed", 0, sweepCounts},
	{"S10", "expired-by-the-clock-are-counted", needsAdvance, sweepByClock},
	{"S10", "time-given-decides", 0, sweepGoesByItsArgument},
	{"S10", "changed-ttl-counts", 0, sweepGoesByCurrentTTL},
	{"S10", "swept-ids-are-free", 0, sweptIDsAreFree},
	{"S10", "no-limit-is-never-swept", 0, noLimitIsNeverSwept},
	{"S10", "many-are-swept-at-once", 0, manyAreSwept},
	{"S10", "concurrent-sweeps-count-once", 0, concurrentSweepsCountOnce},
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
	t.expired("task", "swept at exactly its expiry")
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
	t.expired("shorter", "swept after its TTL was lowered")
	t.expired("given", "swept after it was given a TTL")
	t.fresh("longer", "after a Sweep before its raised TTL")
	t.fresh("taken away", "with NoLimit, after a Sweep")
}

func sweptIDsAreFree(t *trial) {
	ctx := context.Background()
	r := t.full("task", 1)
	t.create(r)
	t.update(r, 0)
	at, _ := r.ExpiresAt()
	t.sweep(at, 1)
	next := t.record("task")
	if err := t.store.Create(ctx, next); err != nil {
		t.fatalf("Create with the id of a task that was swept: %v", err)
	}
	t.stored(next, "created with the id of a task that was swept")
	next.StatusMessage = "updated"
	t.update(next, 0)
	t.sweep(at, 0)
	next.Version = 1
	t.stored(next, "created with the id of a task that was swept, after another Sweep")
}

func noLimitIsNeverSwept(t *trial) {
	t.create(t.record("task"))
	t.sweep(time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC), 0)
	t.fresh("task", "with NoLimit, after a Sweep in the year 9999")
}

// manyAreSwept has more records than a store removes in one batch.
func manyAreSwept(t *trial) {
	n := t.rounds(300)
	for i := range n {
		t.create(t.expiring(fmt.Sprint("short ", i), time.Hour))
	}
	t.create(t.expiring("long", 48*time.Hour))
	t.sweep(t.began.Add(24*time.Hour), n)
	for i := range n {
		t.expired(fmt.Sprint("short ", i), "which was swept")
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
				t.fatalf("Sweep beside others: %v", err)
			}
			swept.Add(int64(k))
		})
		if got := swept.Load(); got != n {
			t.fatalf("%d concurrent Sweeps of %d records counted %d", sweepers, n, got)
		}
	}
}
