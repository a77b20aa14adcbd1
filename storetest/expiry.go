package storetest

import (
	"context"
	"math"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var expiryChecks = []check{
	{"S09", "expiry-includes-its-moment", needsAdvance, expiryIncludesMoment},
	{"S09", "expiry-is-exact-to-the-millisecond", needsAdvance, expiryIsExact},
	{"S09", "ttl-counts-from-created-at", needsAdvance, ttlCountsFromCreatedAt},
	{"S09", "updates-do-not-postpone-expiry", needsAdvance, updatesDoNotPostpone},
	{"S09", "ttl-raised", needsAdvance, ttlRaised},
	{"S09", "ttl-lowered", needsAdvance, ttlLowered},
	{"S09", "ttl-lowered-below-the-age", 0, ttlLoweredBelowAge},
	{"S09", "ttl-of-zero-expires-at-once", 0, ttlOfZero},
	{"S09", "ttl-removed", needsAdvance, ttlRemoved},
	{"S09", "ttl-added", needsAdvance, ttlAdded},
	{"S09", "no-limit-never-expires", needsAdvance, noLimitNeverExpires},
	{"S09", "longest-ttl-has-not-expired", 0, longestHasNotExpired},
	{"S09", "every-status-expires", needsAdvance, everyStatusExpires},
	{"S09", "expiry-holds-across-a-reopen", needsAdvance | needsReopen, expiryAcrossReopen},
}

// fresh checks that Get finds the task.
func (t *trial) fresh(id, when string) {
	if _, err := t.store.Get(context.Background(), id); err != nil {
		t.fatalf("Get of task %s %s: %v", clip(id), when, err)
	}
}

// expired checks that Get does not find the task.
func (t *trial) expired(id, when string) {
	_, err := t.store.Get(context.Background(), id)
	t.wants(err, durabletasks.ErrNotFound, "Get of task %s %s", clip(id), when)
}

// setTTL updates the task's TTL.
func (t *trial) setTTL(id string, ttl time.Duration) {
	r := t.get(id)
	r.TTL = ttl
	t.update(r)
}

func expiryIncludesMoment(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.fresh("task", "with a TTL of 1s at once")
	t.advance(time.Second - time.Millisecond)
	t.fresh("task", "with a TTL of 1s after 999ms")
	t.advance(time.Millisecond)
	t.expired("task", "with a TTL of 1s after exactly 1s")
	t.advance(time.Hour)
	t.expired("task", "with a TTL of 1s after an hour")
}

// expiryIsExact uses times that are not whole seconds.
func expiryIsExact(t *trial) {
	defer func() { // the next check starts at a whole second
		now := t.subject.Now()
		t.subject.Advance(now.Truncate(time.Second).Add(time.Second).Sub(now))
	}()
	t.advance(137 * time.Millisecond)
	r := t.expiring("task", 1789*time.Millisecond)
	r.CreatedAt = t.now()
	t.create(r)
	t.advance(1788 * time.Millisecond)
	t.fresh("task", "with a TTL of 1.789s after 1.788s, not at a whole second")
	t.advance(time.Millisecond)
	t.expired("task", "with a TTL of 1.789s after exactly 1.789s, not at a whole second")
}

// ttlCountsFromCreatedAt creates a record with an earlier CreatedAt.
func ttlCountsFromCreatedAt(t *trial) {
	r := t.expiring("task", time.Minute)
	r.CreatedAt = r.CreatedAt.Add(-45 * time.Second)
	t.create(r)
	t.advance(15*time.Second - time.Millisecond)
	t.fresh("task", "1ms before its CreatedAt + TTL")
	t.advance(time.Millisecond)
	t.expired("task", "at its CreatedAt + TTL, which is earlier than TTL after Create")
}

func updatesDoNotPostpone(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.advance(time.Second / 2)
	r := t.get("task")
	r.LastUpdatedAt = t.now()
	t.update(r)
	t.advance(time.Second / 2)
	t.expired("task", "at its CreatedAt + TTL, which is earlier than TTL after its Update")
}

func ttlRaised(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.advance(time.Second / 2)
	t.setTTL("task", 2*time.Second)
	t.advance(time.Second)
	t.fresh("task", "with a TTL raised from 1s to 2s, after 1.5s")
	t.advance(time.Second/2 - time.Millisecond)
	t.fresh("task", "with a TTL raised from 1s to 2s, after 1.999s")
	t.advance(time.Millisecond)
	t.expired("task", "with a TTL raised from 1s to 2s, after exactly 2s")
}

func ttlLowered(t *trial) {
	t.create(t.expiring("task", time.Hour))
	t.advance(time.Second)
	t.setTTL("task", 2*time.Second)
	t.advance(time.Second - time.Millisecond)
	t.fresh("task", "with a TTL lowered from 1h to 2s, after 1.999s")
	t.advance(time.Millisecond)
	t.expired("task", "with a TTL lowered from 1h to 2s, after exactly 2s")
}

// ttlLoweredBelowAge needs no clock.
func ttlLoweredBelowAge(t *trial) {
	r := t.record("task")
	r.CreatedAt = r.CreatedAt.Add(-2 * time.Hour)
	t.create(r)
	t.fresh("task", "created two hours ago with NoLimit")
	r.TTL = 3 * time.Hour
	r = t.update(r)
	t.fresh("task", "created two hours ago, with a TTL set to 3h")
	r.TTL = time.Hour
	t.update(r)
	t.expired("task", "created two hours ago, with a TTL lowered to 1h")
}

// ttlOfZero uses a zero that is easily mistaken for NoLimit. It needs no clock.
func ttlOfZero(t *trial) {
	t.create(t.expiring("swept", 0))
	t.create(t.record("task"))
	t.sweep(t.began, 1)
	t.fresh("task", "with NoLimit, after a Sweep of a task with a TTL of zero")
	t.create(t.expiring("created", 0))
	t.gone("created", "created with a TTL of zero")
	for _, ttl := range []time.Duration{time.Hour, durabletasks.NoLimit} {
		id := "updated from " + ttl.String()
		t.create(t.expiring(id, ttl))
		t.setTTL(id, 0)
		t.gone(id, "with a TTL lowered to zero")
	}
}

func ttlRemoved(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.setTTL("task", durabletasks.NoLimit)
	t.advance(time.Hour)
	t.fresh("task", "with its TTL of 1s changed to NoLimit, after an hour")
}

func ttlAdded(t *trial) {
	t.create(t.record("task"))
	t.advance(time.Second)
	t.setTTL("task", 2*time.Second)
	t.fresh("task", "with its NoLimit changed to a TTL of 2s, after 1s")
	t.advance(time.Second)
	t.expired("task", "with its NoLimit changed to a TTL of 2s, after exactly 2s")
}

func noLimitNeverExpires(t *trial) {
	t.create(t.record("task"))
	for range 3 {
		t.advance(100 * 24 * time.Hour)
		t.fresh("task", "with NoLimit after months")
	}
}

// longestHasNotExpired uses TTLs with which a sum in nanoseconds or in 32 bits
// of milliseconds overflows.
func longestHasNotExpired(t *trial) {
	for id, ttl := range map[string]time.Duration{
		"longest":  math.MaxInt64 / time.Millisecond * time.Millisecond,
		"300 days": 300 * 24 * time.Hour,
		"32 bits":  1 << 32 * time.Millisecond,
	} {
		t.create(t.expiring(id, ttl))
		t.fresh(id, "with a TTL of "+ttl.String()+", at once")
	}
}

func everyStatusExpires(t *trial) {
	for _, status := range statuses {
		r := t.expiring(string(status), time.Second)
		r.Status = status
		t.create(r)
	}
	t.advance(time.Second)
	for _, status := range statuses {
		t.expired(string(status), "with a TTL of 1s after exactly 1s")
	}
}

func expiryAcrossReopen(t *trial) {
	t.create(t.expiring("early", time.Second))
	t.create(t.expiring("middle", 2*time.Second))
	t.create(t.expiring("late", time.Second))
	t.advance(time.Second / 2)
	t.setTTL("late", 3*time.Second)
	t.reopen()
	for _, id := range []string{"early", "middle", "late"} {
		t.fresh(id, "before its expiry, after a reopen")
	}
	t.advance(time.Second / 2)
	t.expired("early", "with a TTL of 1s after exactly 1s and a reopen")
	t.fresh("late", "with a TTL raised from 1s to 3s, after 1s and a reopen")
	t.reopen()
	t.expired("early", "expired before a reopen")
	t.advance(time.Second)
	t.expired("middle", "with a TTL of 2s after exactly 2s and two reopens")
	t.advance(time.Second - time.Millisecond)
	t.fresh("late", "with a TTL raised from 1s to 3s, after 2.999s and two reopens")
	t.advance(time.Millisecond)
	t.expired("late", "with a TTL raised from 1s to 3s, after exactly 3s and two reopens")
}
