package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// explain looks for mistakes in the subject that make unrelated checks fail, and
// adds a hint to the failures if it finds one.
func (t *trial) explain(needs seam) {
	probe := *t
	probe.store, probe.shares = nil, nil
	probe.failed = new(failures) // failures of the probe are not the check's
	if needs&needsReopen != 0 && probe.loses() {
		t.failed.explain(probe.reopenHint())
	} else if hint := probe.clockHint(); hint != "" {
		t.failed.explain(hint)
	}
}

// clockHint detects a store that uses another clock than the subject. It creates
// a record that is expired by only one of the two.
func (t *trial) clockHint() string {
	own, other := t.now(), t.elsewhere().UTC().Truncate(time.Millisecond)
	early, late := own, other
	if other.Before(own) {
		early, late = other, own
	}
	if late.Sub(early) < time.Minute {
		return ""
	}
	store := t.open("New", t.subject.New)
	defer store.Close()
	// found reports whether Get finds a record with this expiry.
	found := func(id string, expiry time.Time) (bool, error) {
		r := t.record(id)
		r.CreatedAt, r.TTL = expiry.Add(-time.Hour), time.Hour
		r.LastUpdatedAt = r.CreatedAt
		if err := store.Create(context.Background(), r); err != nil {
			return false, err
		}
		_, err := store.Get(context.Background(), id)
		if errors.Is(err, durabletasks.ErrNotFound) {
			return false, nil
		}
		return err == nil, err
	}
	past, err1 := found("past", early.Add(-time.Hour))
	between, err2 := found("between", early.Add(late.Sub(early)/2))
	future, err3 := found("future", late.Add(time.Hour))
	if errors.Join(err1, err2, err3) != nil || past || !future || between == own.Before(other) {
		return "" // it uses the subject's clock, or none
	}
	return fmt.Sprintf("the clock of the Subject says %v, but the store uses one that says about %v; give both the same clock (for Run: Subject.Now, for RunInBubble: time.Now)",
		own, other)
}

// loses reports whether a reopen loses all records.
func (t *trial) loses() bool {
	t.began = t.now()
	t.store = t.open("New", t.subject.New)
	defer t.close()
	if t.store.Create(context.Background(), t.record("task")) != nil {
		return false
	}
	t.reopen()
	_, err := t.store.Get(context.Background(), "task")
	return errors.Is(err, durabletasks.ErrNotFound) || t.reopenedSame
}

func (t *trial) reopenHint() string {
	if t.reopenedSame {
		return "Subject.Reopen returned the store that was closed; it must return a new store on the same data"
	}
	return "the store that Subject.Reopen returned has none of the records; does it open the same data?"
}

// sameStore reports whether a and b are the same store.
func sameStore(a, b durabletasks.TaskStore) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
