package storetest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// explain looks for a mistake in the subject that makes checks fail which are
// not about it, and adds what it finds to the failures.
func (t *trial) explain(needs seam) {
	probe := *t
	probe.store, probe.shares = nil, nil
	probe.failed = new(failures) // what fails in here is no failure of the check
	if needs&needsReopen != 0 && probe.loses() {
		t.failed.explain(probe.reopenHint())
	} else if hint := probe.clockHint(); hint != "" {
		t.failed.explain(hint)
	}
}

// clockHint tells of a store that goes by another time than the subject. It
// looks at a record that is expired by one of the two and not by the other.
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
	// found reports whether the store shows a record that expires then.
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
		return "" // it goes by the subject's time, or by none
	}
	return fmt.Sprintf("the store does not go by the time of the Subject, %v, but by one near %v; give it the same (Run: Subject.Now, RunInBubble: time.Now)",
		own, other)
}

// loses reports whether a reopen gives back nothing of what was stored.
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
		return "Subject.Reopen returned the store that was closed; it must open another on the same data"
	}
	return "what Subject.Reopen opens has nothing of what was stored before; does it open the same data?"
}

// sameStore reports whether two stores are one.
func sameStore(a, b durabletasks.TaskStore) bool {
	return reflect.TypeOf(a) == reflect.TypeOf(b) && reflect.TypeOf(a).Comparable() && a == b
}
