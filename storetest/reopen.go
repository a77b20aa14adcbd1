package storetest

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var reopenChecks = []check{
	{"S11", "created-records-survive", needsReopen, createdSurvive},
	{"S11", "updated-records-survive", needsReopen, updatedSurvive},
	{"S11", "removed-fields-stay-removed", needsReopen, removedStaysRemoved},
	{"S11", "versions-survive", needsReopen, versionsSurvive},
	{"S11", "hostile-strings-and-json-survive", needsReopen, hostileSurvives},
	{"S11", "one-mebibyte-survives", needsReopen, mebibyteSurvives},
	{"S11", "long-strings-and-many-keys-survive", needsReopen, longSurvives},
	{"S11", "swept-records-stay-away", needsReopen, sweptStayAway},
	{"S11", "refused-calls-leave-nothing", needsReopen, refusedLeaveNothing},
	{"S11", "reopened-store-works", needsReopen, reopenedWorks},
	{"S11", "acknowledged-during-close-survives", needsReopen, acknowledgedSurvives},
}

func createdSurvive(t *trial) {
	for i := range statuses {
		t.create(t.full(fmt.Sprint("task ", i), i))
	}
	t.create(t.record("plain"))
	for range 2 {
		t.reopen()
		for i := range statuses {
			t.stored(t.full(fmt.Sprint("task ", i), i), "after a reopen")
		}
		t.stored(t.record("plain"), "after a reopen")
	}
}

func updatedSurvive(t *trial) {
	const tasks, updates = 4, 6
	for i := range tasks {
		t.create(t.full(fmt.Sprint("task ", i), i))
	}
	for version := range updates {
		for i := range tasks {
			t.update(at(int64(version), t.full(fmt.Sprint("task ", i), i+version+1)))
		}
	}
	t.reopen()
	for i := range tasks {
		want := t.full(fmt.Sprint("task ", i), i+updates)
		t.stored(at(updates, want), "updated several times, after a reopen")
	}
}

// removedStaysRemoved goes through an input round: asked, partly answered, over.
func removedStaysRemoved(t *trial) {
	asked := t.full("task", 1)
	t.create(asked)
	t.reopen()
	over := t.record("task")
	over.Questions = asked.Questions
	over = t.update(over)
	t.reopen()
	t.stored(over, "after an Update that omitted most fields, and a reopen")
	bare := t.update(at(1, t.record("task")))
	t.reopen()
	t.stored(bare, "after an Update that omitted every optional field, and a reopen")
}

func versionsSurvive(t *trial) {
	r := t.record("task")
	t.create(r)
	r = t.update(t.update(r))
	t.reopen()
	for _, version := range []int64{0, 1, 3} {
		t.refused(at(version, t.full("task", 1)), r)
	}
	r.StatusMessage = "updated"
	r = t.update(r)
	t.reopen()
	t.stored(r, "after a reopen")
}

func hostileSurvives(t *trial) {
	var want []durabletasks.Record
	for i, s := range hostile {
		r := t.record(s)
		r.StatusMessage, r.Owner, r.Tool = s, hostile[len(hostile)-1-i], s
		want = append(want, r)
	}
	keys := t.record("all keys")
	keys.InputRequests, keys.InputResponses = hostileMap(), hostileMap()
	keys.Questions = questions(hostile...)
	want = append(want, keys)
	for i, fragile := range fragileJSON {
		r := t.record(fmt.Sprint("json ", i))
		r.Result, r.Checkpoint = wire.MustParse(fragile), wire.MustParse(fragile)
		want = append(want, r)
	}
	for _, r := range want {
		t.create(r)
	}
	t.reopen()
	for _, r := range want {
		t.stored(r, "after a reopen")
	}
}

func mebibyteSurvives(t *trial) {
	r := t.record("large")
	r.Payload = mebibytes()[0]
	t.create(r)
	r.Checkpoint = mebibytes()[1]
	r = t.update(r)
	t.create(t.record("small"))
	t.reopen()
	t.stored(r, "after a reopen")
	t.stored(t.record("small"), "after a reopen")
}

func longSurvives(t *trial) {
	long, many := t.long("a"), t.many("many")
	t.create(long)
	t.create(many)
	t.reopen()
	t.stored(long, "with long strings, after a reopen")
	t.stored(many, "with many keys, after a reopen")
}

func sweptStayAway(t *trial) {
	t.create(t.expiring("swept", time.Hour))
	t.create(t.expiring("created again", time.Hour))
	t.create(t.record("kept"))
	t.sweep(t.began.Add(time.Hour), 2)
	again := t.full("created again", 2)
	t.create(again)
	t.reopen()
	t.gone("swept", "which was swept before a reopen")
	t.stored(again, "after a reopen")
	t.stored(t.record("kept"), "after a reopen")
	t.create(t.record("swept"))
	t.reopen()
	t.stored(t.record("swept"), "created with the id of a task that was swept before a reopen")
}

// refusedLeaveNothing is for stores that write before they check.
func refusedLeaveNothing(t *trial) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	r := t.record("task")
	t.create(r)
	r.StatusMessage = "updated"
	r = t.update(r)

	err := t.store.Create(context.Background(), t.full("task", 1))
	t.wants(err, durabletasks.ErrExists, "second Create")
	err = t.store.Update(context.Background(), t.full("task", 2))
	t.conflicts(err, "Update from version 0 of a task at version 1")
	err = t.store.Update(ctx, at(1, t.full("task", 3)))
	t.wants(err, context.Canceled, "Update with a cancelled context")
	err = t.store.Create(ctx, t.full("never", 4))
	t.wants(err, context.Canceled, "Create with a cancelled context")
	err = t.store.Update(context.Background(), t.full("never", 5))
	t.wants(err, durabletasks.ErrNotFound, "Update of an unknown task")

	t.reopen()
	t.stored(r, "after refused calls and a reopen")
	t.gone("never", "which was never created, after a reopen")
}

// reopenedWorks calls every method on a store that was opened on existing data.
func reopenedWorks(t *trial) {
	t.reopen() // without any data
	t.create(t.expiring("first", time.Hour))
	t.create(t.full("second", 0))
	t.reopen()
	t.update(t.expiring("first", 2*time.Hour))
	t.create(t.record("third"))
	err := t.store.Create(context.Background(), t.record("second"))
	t.wants(err, durabletasks.ErrExists, "Create with an id that was taken before a reopen")
	t.reopen()
	t.sweep(t.began.Add(time.Hour), 0)
	t.sweep(t.began.Add(2*time.Hour), 1)
	t.reopen()
	t.gone("first", "which was swept before a reopen")
	t.stored(t.full("second", 0), "after several reopens")
	t.stored(t.record("third"), "after several reopens")
}

// acknowledgedSurvives closes the store while others write. What a call
// committed must be there after a reopen.
func acknowledgedSurvives(t *trial) {
	const writers = 4
	var mu sync.Mutex
	acknowledged := make(map[string]int64)
	t.closeUnder(writers, func(i, n int) error {
		id := fmt.Sprint("writer ", i, " task ", n/2)
		var version int64
		var err error
		if n%2 == 0 {
			err = t.store.Create(context.Background(), t.stamped(id, 0))
		} else {
			version = 1
			err = t.store.Update(context.Background(), at(0, t.stamped(id, 1)))
		}
		if err == nil {
			mu.Lock()
			defer mu.Unlock()
			acknowledged[id] = version
		}
		return err
	})
	t.reopen()
	for id, version := range acknowledged {
		r := t.get(id)
		if r.Version < version {
			t.fatalf("task %s is at version %d after a reopen, but an Update to version %d succeeded before Close", clip(id), r.Version, version)
		}
		if d := t.unstamped(r); d != "" {
			t.fatalf("task %s after a reopen: %s", clip(id), d)
		}
	}
}
