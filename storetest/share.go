package storetest

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var shareChecks = []check{
	{"S01", "commits-are-visible-to-other-instances", needsShare, visibleToOthers},
	{"S02", "one-of-many-instances-creates", needsShare, oneInstanceCreates},
	{"S06", "one-of-many-instances-updates", needsShare, oneInstanceUpdates},
	{"S10", "sweeps-of-instances-count-once", needsShare, instancesSweepOnce},
	{"S12", "instances-close-alone", needsShare, instancesCloseAlone},
}

// on returns a trial that uses this instance of the store.
func (t *trial) on(store *watched) *trial {
	other := *t
	other.store = store
	return &other
}

func visibleToOthers(t *trial) {
	r := t.full("task", 0)
	t.create(r)
	other := t.on(t.share())
	other.stored(r, "created before this instance was opened")
	for version := range int64(6) {
		next := t.full("task", int(version)+1)
		from, to := t, other
		if version%2 == 1 {
			from, to = other, t
		}
		next = from.update(at(version, next))
		to.stored(next, "after another instance's Update")
		from.stored(next, "after its own Update")
		to.refused(at(version, t.full("task", 9)), next)
	}
	other.create(t.expiring("new", time.Hour))
	t.stored(t.expiring("new", time.Hour), "after another instance's Create")
	err := t.store.Create(context.Background(), t.record("new"))
	t.wants(err, durabletasks.ErrExists, "Create with the id of another instance's task")
	t.sweep(t.began.Add(time.Hour), 1)
	other.gone("new", "which another instance swept")
}

// instances returns trials of the store and of two other instances.
func (t *trial) instances() []*trial {
	return []*trial{t, t.on(t.share()), t.on(t.share())}
}

func oneInstanceCreates(t *trial) {
	instances := t.instances()
	for round := range t.rounds(20) {
		t.oneCreates(fmt.Sprint("round ", round), instances)
	}
}

func oneInstanceUpdates(t *trial) {
	instances := t.instances()
	t.create(t.record("task"))
	for version := range int64(t.rounds(30)) {
		t.oneUpdates("task", version, instances)
	}
}

func instancesSweepOnce(t *trial) {
	const tasks = 12
	instances := t.instances()
	for round := range t.rounds(10) {
		for i := range tasks {
			t.create(t.expiring(fmt.Sprint("task ", round, " ", i), time.Hour))
		}
		var swept atomic.Int64
		t.parallel(len(instances), func(i int) {
			n, err := instances[i].store.Sweep(context.Background(), t.began.Add(time.Hour))
			if err != nil {
				t.fatalf("Sweep concurrent with other instances: %v", err)
			}
			swept.Add(int64(n))
		})
		if got := swept.Load(); got != tasks {
			t.fatalf("concurrent Sweeps by %d instances returned %d in total, but %d records had expired", len(instances), got, tasks)
		}
	}
}

func instancesCloseAlone(t *trial) {
	r := t.record("task")
	t.create(r)
	other := t.on(t.share())
	if err := other.store.Close(); err != nil {
		t.fatalf("Close of another instance: %v", err)
	}
	other.allClosed("task")
	t.stored(r, "after another instance was closed")
	r.StatusMessage = "updated"
	r = t.update(r)
	other = t.on(t.share())
	if err := t.store.Close(); err != nil {
		t.fatalf("Close with another instance open: %v", err)
	}
	other.stored(r, "after the instance that wrote it was closed")
	other.update(r)
}
