package storetest

import (
	"context"
	"fmt"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var wholenessChecks = []check{
	{"S08", "update-replaces-the-whole-record", 0, updateReplacesWhole},
	{"S08", "omitted-keys-disappear", 0, omittedKeysDisappear},
	{"S08", "empty-containers-replace-full-ones", 0, emptyReplaces},
	{"S08", "readers-see-whole-updates", 0, readersSeeWhole},
}

// updateReplacesWhole replaces a record in which everything is set by one in
// which nothing is.
func updateReplacesWhole(t *trial) {
	r := t.full("task", 1)
	t.create(r)
	t.stored(t.update(t.record("task")), "after an Update that omits every optional field")
}

func omittedKeysDisappear(t *trial) {
	r := t.full("task", 1)
	t.create(r)
	next := t.full("task", 2)
	delete(next.InputRequests, "name")
	next.InputResponses = map[string]wire.JSON{"root": text("answer")}
	next.Questions = questions("z")
	t.stored(t.update(next), "after an Update with other keys")
}

// emptyReplaces is for stores that distinguish an empty container from an absent
// one.
func emptyReplaces(t *trial) {
	t.create(t.full("task", 1))
	next := t.record("task")
	next.InputRequests, next.InputResponses = map[string]wire.JSON{}, map[string]wire.JSON{}
	next.Questions = []durabletasks.Question{}
	t.stored(t.update(next), "after an Update with containers that are empty, not nil")
}

// stamped returns a record of version n in which every field depends on n, and
// some fields are only in some versions. It does not expire for days.
func (t *trial) stamped(id string, n int64) durabletasks.Record {
	r := t.record(id)
	r.Version = n
	stamp, step := fmt.Sprint(n), time.Duration(n)*time.Millisecond
	r.StatusMessage, r.Owner, r.Tool = stamp, "owner "+stamp, "tool "+stamp
	r.LastUpdatedAt = r.CreatedAt.Add(step)
	r.TTL = 100*time.Hour + step
	r.PollInterval = time.Second + step
	r.Questions = questions(stamp, "also "+stamp)
	r.CancelRequested = n%2 == 1
	r.UnsupportedInput = wire.InputKinds(n)
	r.Error = text("error " + stamp)
	r.Payload = text("payload " + stamp)
	r.Checkpoint = bulk()[n%3]
	switch n % 3 {
	case 0:
		r.InputResponses = map[string]wire.JSON{"last": text(stamp)}
	case 1:
		r.Status = durabletasks.StatusInputRequired
		r.InputRequests = map[string]wire.JSON{"next": text(stamp)}
	case 2:
		r.Status = durabletasks.StatusCompleted
		r.Result = text(stamp)
	}
	return r
}

// unstamped returns how the record differs from the stamped record of its
// version.
func (t *trial) unstamped(r durabletasks.Record) string {
	return diff(r, t.stamped(r.ID, r.Version))
}

func readersSeeWhole(t *trial) {
	t.create(t.stamped("task", 0))
	t.updateUnderReaders("task", func() {
		last := int64(-1)
		for range 5 {
			r, err := t.store.Get(context.Background(), "task")
			if err != nil {
				t.fatalf("Get during an Update: %v", err)
			}
			if d := t.unstamped(r); d != "" {
				t.fatalf("Get returned a mix of two versions: at version %d, %s", r.Version, d)
			}
			if r.Version < last {
				t.fatalf("Get returned version %d after it had returned version %d", r.Version, last)
			}
			last = r.Version
		}
	})
}

// updateUnderReaders updates a stamped task from version 0 on while other
// goroutines read it. Each update waits until a read begins or ends, so that the
// updates of a fast store meet reads.
func (t *trial) updateUnderReaders(id string, read func()) {
	const updates, readers = 60, 3
	begun, ended := make(chan struct{}), make(chan struct{})
	notify := func(writer chan<- struct{}) {
		select {
		case writer <- struct{}{}:
		default: // the writer does not wait for it
		}
		runtime.Gosched()
	}
	var reading atomic.Int64
	reading.Store(readers)
	left := make(chan struct{}) // closed when every reader has failed
	var done atomic.Bool
	t.parallel(1+readers, func(i int) {
		if i > 0 {
			defer func() {
				if reading.Add(-1) == 0 {
					close(left)
				}
			}()
			for n := 1; !done.Load(); n++ {
				notify(begun)
				read()
				notify(ended)
				if n%20 == 0 {
					time.Sleep(time.Millisecond) // time for an Update that sleeps in a bubble
				}
			}
			return
		}
		defer done.Store(true)
		for version := range int64(updates) {
			reads := begun
			if version%2 == 0 {
				reads = ended
			}
			select {
			case <-reads:
			case <-left:
			}
			t.update(at(version, t.stamped(id, version+1)))
		}
	})
	t.stored(t.stamped(id, updates), "after it was updated while others read it")
}
