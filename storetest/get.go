package storetest

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var getChecks = []check{
	{"S03", "unknown-id-is-not-found", 0, unknownIsNotFound},
	{"S03", "update-never-creates", 0, updateNeverCreates},
	{"S03", "expired-is-not-found", needsAdvance, expiredIsNotFound},
	{"S03", "swept-is-not-found", 0, sweptIsNotFound},

	{"S04", "reads-change-nothing", 0, readsChangeNothing},
	{"S04", "reads-of-expired-remove-nothing", needsAdvance, readsRemoveNothing},
	{"S04", "scans-of-expired-remove-nothing", needsScanner, scansRemoveNothing},
}

func unknownIsNotFound(t *trial) {
	ctx := context.Background()
	_, err := t.store.Get(ctx, "task")
	t.wants(err, durabletasks.ErrNotFound, "Get from an empty store")
	t.create(t.record("Task-é"))
	for _, near := range []string{
		"", "Task-", "Task-é ", " Task-é", "task-é", "Task-e\u0301", "Task-e", "Task-é\x00", "Task-é/x", "Task-_", "%", "*",
		strings.Repeat("Task-é", 2000),
	} {
		_, err := t.store.Get(ctx, near)
		t.wants(err, durabletasks.ErrNotFound, "Get of task %s, where only %q exists", clip(near), "Task-é")
	}
}

func updateNeverCreates(t *trial) {
	ctx := context.Background()
	for _, version := range []int64{0, 1, -1} {
		err := t.store.Update(ctx, at(version, t.record("task")))
		t.wants(err, durabletasks.ErrNotFound, "Update of an unknown task from version %d", version)
		_, err = t.store.Get(ctx, "task")
		t.wants(err, durabletasks.ErrNotFound, "Get of a task that was updated but never created")
	}
	r := t.record("task")
	t.create(r)
	t.stored(r, "created after Updates that did not find it")
}

func expiredIsNotFound(t *trial) {
	ctx := context.Background()
	r := t.expiring("task", time.Second)
	t.create(r)
	r.StatusMessage = "updated"
	t.update(r)
	t.advance(time.Second)

	_, err := t.store.Get(ctx, "task")
	t.wants(err, durabletasks.ErrNotFound, "Get of an expired task")
	next := t.record("task") // never expires
	for _, version := range []int64{0, 1, 2} {
		err := t.store.Update(ctx, at(version, next))
		t.wants(err, durabletasks.ErrNotFound, "Update of an expired task at version 1 from version %d", version)
	}
	_, err = t.store.Get(ctx, "task")
	t.wants(err, durabletasks.ErrNotFound, "Get of an expired task after refused Updates")
}

func sweptIsNotFound(t *trial) {
	r := t.expiring("task", time.Hour)
	t.create(r)
	t.sweep(r.CreatedAt.Add(time.Hour), 1)
	t.gone("task", "which was swept")
}

func readsChangeNothing(t *trial) {
	r := t.full("task", 1)
	t.create(r)
	for range 3 {
		t.stored(r, "read again")
	}
	next := r
	next.StatusMessage = "updated"
	next = t.update(next)
	for range 3 {
		t.stored(next, "read again after Update")
	}
	_, err := t.store.Get(context.Background(), "unknown")
	t.wants(err, durabletasks.ErrNotFound, "Get of an unknown task")
	t.create(t.record("unknown"))
}

// readsRemoveNothing uses the count of Sweep, which lacks what a read removed.
func readsRemoveNothing(t *trial) {
	t.create(t.expiring("task", time.Second))
	t.create(t.expiring("task 2", time.Second))
	t.advance(time.Second)
	for range 3 {
		_, err := t.store.Get(context.Background(), "task")
		t.wants(err, durabletasks.ErrNotFound, "Get of an expired task")
	}
	t.sweep(t.now(), 2)
}

// scansRemoveNothing needs no clock: the tasks expired an hour ago.
func scansRemoveNothing(t *trial) {
	for i, status := range statuses {
		r := t.expiring(fmt.Sprint("task ", i), time.Hour)
		r.CreatedAt = r.CreatedAt.Add(-2 * time.Hour)
		r.Status = status
		t.create(r)
	}
	for range 3 {
		t.shows("of expired tasks")
	}
	t.sweep(t.now(), len(statuses))
}
