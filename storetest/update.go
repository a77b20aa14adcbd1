package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var updateChecks = []check{
	{"S05", "create-stores-version-zero", 0, createStoresZero},
	{"S05", "each-update-adds-one", 0, eachUpdateAddsOne},
	{"S05", "unchanged-update-adds-one", 0, unchangedAddsOne},
	{"S05", "recreated-task-starts-at-zero", 0, recreatedStartsAtZero},
	{"S05", "hundreds-of-updates-are-counted", 0, hundredsAreCounted},

	{"S06", "stale-version-changes-nothing", 0, staleChangesNothing},
	{"S06", "version-ahead-changes-nothing", 0, aheadChangesNothing},
	{"S06", "conflict-names-both-versions", 0, conflictNamesVersions},
	{"S06", "times-decide-nothing", 0, timesDecideNothing},
	{"S06", "one-of-many-updates-wins", 0, oneUpdateWins},
	{"S06", "no-update-is-lost", 0, noUpdateIsLost},
}

func createStoresZero(t *trial) {
	for i, version := range []int64{0, 1, 7, -1, 1 << 62} {
		r := t.record(fmt.Sprint("task ", i))
		r.Version = version
		t.create(r)
		if got := t.get(r.ID).Version; got != 0 {
			t.fatalf("Create of a record with version %d stored version %d, want 0", version, got)
		}
		t.update(at(0, r))
	}
}

func eachUpdateAddsOne(t *trial) {
	t.create(t.record("task"))
	t.create(t.record("other"))
	for version := range int64(12) {
		r := t.record("task")
		r.StatusMessage = fmt.Sprint(version)
		t.update(at(version, r))
		if got := t.get("task").Version; got != version+1 {
			t.fatalf("Update from version %d stored version %d, want %d", version, got, version+1)
		}
	}
	if got := t.get("other").Version; got != 0 {
		t.fatalf("Updates of another task raised the version to %d", got)
	}
}

func unchangedAddsOne(t *trial) {
	r := t.record("task")
	t.create(r)
	for version := range int64(3) {
		r = t.update(r)
		if got := t.get("task").Version; got != version+1 {
			t.fatalf("Update from version %d that changes nothing stored version %d, want %d", version, got, version+1)
		}
	}
}

func recreatedStartsAtZero(t *trial) {
	r := t.expiring("task", time.Hour)
	t.create(r)
	t.update(t.update(r))
	t.sweep(r.CreatedAt.Add(time.Hour), 1)
	t.create(r)
	if got := t.get("task").Version; got != 0 {
		t.fatalf("Create with the id of a task that was swept stored version %d, want 0", got)
	}
}

// hundredsAreCounted goes beyond what a byte can count.
func hundredsAreCounted(t *trial) {
	r := t.record("task")
	t.create(r)
	for range 300 {
		r = t.update(r)
	}
	t.stored(r, "after 300 Updates")
}

// refused checks that an Update from a version other than the stored one is a
// conflict and changes nothing.
func (t *trial) refused(next, stored durabletasks.Record) {
	err := t.store.Update(context.Background(), next)
	t.conflicts(err, "Update from version %d of a task at version %d", next.Version, stored.Version)
	t.stored(stored, "after a refused Update")
}

// conflicts checks that err is a *ConflictError and wraps ErrConflict.
func (t *trial) conflicts(err error, call string, args ...any) {
	if conflict(err) == nil || !errors.Is(err, durabletasks.ErrConflict) {
		t.fatalf("%s: got %s, want a *ConflictError", fmt.Sprintf(call, args...), quoteError(err))
	}
}

// conflict returns the conflict that err reports, or nil.
func conflict(err error) *durabletasks.ConflictError {
	var c *durabletasks.ConflictError
	errors.As(err, &c)
	return c
}

func staleChangesNothing(t *trial) {
	r := t.record("task")
	t.create(r)
	for version := range int64(3) {
		r.StatusMessage = fmt.Sprint("from version ", version)
		r = t.update(r)
		for stale := range version + 1 {
			t.refused(at(stale, t.full("task", int(stale))), r)
		}
	}
}

func aheadChangesNothing(t *trial) {
	r := t.record("task")
	t.create(r)
	for _, version := range []int64{1, 2, -1, 1 << 62} {
		t.refused(at(version, t.full("task", 1)), r)
	}
}

func conflictNamesVersions(t *trial) {
	r := t.record("task")
	t.create(r)
	t.update(t.update(r))
	for _, version := range []int64{0, 1, 5} {
		err := t.store.Update(context.Background(), at(version, r))
		t.conflicts(err, "Update from version %d of a task at version 2", version)
		if c := conflict(err); c.Expected != version || c.Actual != 2 {
			t.fatalf("Update from version %d of a task at version 2: the *ConflictError has Expected %d and Actual %d, want %d and 2",
				version, c.Expected, c.Actual, version)
		}
	}
}

// timesDecideNothing updates with times that do not change or go back. The
// stored version must win and another must lose, whatever the times are.
func timesDecideNothing(t *trial) {
	r := t.record("task")
	t.create(r)
	base := r.LastUpdatedAt
	for version, shift := range []time.Duration{0, 0, time.Hour, -time.Hour, time.Millisecond} {
		r.LastUpdatedAt = base.Add(shift)
		r.StatusMessage = fmt.Sprint("from version ", version)
		stale := r
		r = t.update(r)
		t.stored(r, fmt.Sprintf("updated with a LastUpdatedAt moved by %v", shift))

		stale.StatusMessage = "stale"
		t.refused(stale, r)
		stale.LastUpdatedAt = r.LastUpdatedAt.Add(time.Hour)
		t.refused(stale, r)
	}
}

func oneUpdateWins(t *trial) {
	t.create(t.record("task"))
	for version := range int64(t.rounds(30)) {
		t.oneUpdates("task", version, []*trial{t})
	}
}

// oneUpdates has several callers, spread over the instances, race to update a
// task from one version. The whole record of the winner must be stored.
func (t *trial) oneUpdates(id string, version int64, instances []*trial) {
	const writers = 8
	var errs [writers]error
	t.parallel(writers, func(i int) {
		errs[i] = instances[i%len(instances)].store.Update(context.Background(), at(version, t.full(id, i)))
	})
	winner := -1
	for i, err := range errs {
		if err != nil {
			t.conflicts(err, "concurrent Update from version %d", version)
		} else if winner >= 0 {
			t.fatalf("two concurrent Updates from version %d succeeded, want one", version)
		} else {
			winner = i
		}
	}
	if winner < 0 {
		t.fatalf("none of %d concurrent Updates from version %d succeeded, want one", writers, version)
	}
	want := at(version+1, t.full(id, winner))
	for _, t := range instances {
		t.stored(want, "after concurrent Updates")
	}
}

// noUpdateIsLost has writers increment one counter by Get and Update.
func noUpdateIsLost(t *trial) {
	const writers = 4
	increments := t.rounds(20)
	r := t.record("task")
	r.Checkpoint = number("%d", 0)
	t.create(r)
	var conflicts atomic.Int64
	t.parallel(writers, func(int) {
		for done := 0; done < increments; {
			r := t.get("task")
			var n int
			if err := r.Checkpoint.Decode(&n); err != nil {
				t.fatalf("Checkpoint is %v: %v", clipJSON(r.Checkpoint), err)
			}
			r.Checkpoint = number("%d", n+1)
			if err := t.store.Update(context.Background(), r); err == nil {
				done++
			} else {
				t.conflicts(err, "concurrent Update from version %d", r.Version)
				if conflicts.Add(1) > int64(writers*writers*increments) {
					t.fatalf("%d writers had more conflicts than %d Updates can cause", writers, writers*increments)
				}
			}
		}
	})
	want := r
	want.Checkpoint = number("%d", writers*increments)
	want.Version = int64(writers * increments)
	t.stored(want, "after concurrent increments")
}
