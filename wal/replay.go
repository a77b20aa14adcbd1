package wal

import (
	"encoding/binary"
	"fmt"
)

// replay builds the index and the live records from the log's entries in their
// order. Nobody else uses the index meanwhile, so it changes states in place.
type replay struct {
	index  *index
	live   *liveRecords
	first  uint64 // the first entry of the log
	sweeps []moment
	gaps   bool // entries may be missing: a copy may be newer than the record
}

func newReplay(x *index) *replay { return &replay{index: x, live: newLiveRecords()} }

// begin forgets everything that was replayed: the log begins here.
func (r *replay) begin(first uint64) {
	if r.live.oldest() != nil {
		r.index.clear()
		r.live = newLiveRecords()
	}
	r.first = first
	r.sweeps = nil
}

// At most maxPending entries of a record, and at most maxPendingBytes of its
// updates, wait to be decoded. With more of them it is cheaper to decode than
// to keep the values that were replaced.
const (
	maxPending      = 8
	maxPendingBytes = 64 << 10
)

// pendingTooMuch reports whether the fields must be decoded now.
func pendingTooMuch(pending []string) bool {
	if len(pending) < 2 {
		return false
	}
	bytes := 0
	for _, fields := range pending[1:] {
		bytes += len(fields)
	}
	return len(pending) > maxPending || bytes > maxPendingBytes
}

// entry replays one entry. Its error says why a right log cannot have it.
func (r *replay) entry(f *frame) error {
	switch f.kind {
	case kindCreate, kindCopy:
		body := newReader(string(f.body))
		st := &state{id: body.kept(), version: int64(body.uvarint())}
		if body.bad {
			return errBody
		}
		if f.kind == kindCreate && st.version != 0 {
			return errBody
		}
		if err := st.apply(body.rest); err != nil {
			return err
		}
		return r.wholeRecord(f, st)
	case kindUpdate:
		return r.update(f)
	case kindSweep:
		body := reader{rest: string(f.body)}
		at := body.instant()
		if body.bad || body.rest != "" {
			return errBody
		}
		r.sweeps = append(r.sweeps, at)
		return nil
	case kindCut:
		return nil
	default:
		return fmt.Errorf("entry kind %d is unknown, perhaps of a newer version", f.kind)
	}
}

// wholeRecord replays a create or a copy. All earlier entries of the record are
// dead, and so is an expired record that a create has replaced.
func (r *replay) wholeRecord(f *frame, st *state) error {
	n := r.index.get(st.id)
	if n == nil {
		n = new(node)
		n.st.Store(st)
		r.index.put(n, nil)
		n.base = f.index
		r.live.append(n)
	} else {
		was := n.st.Load().version
		if f.kind == kindCopy && st.version != was && !(r.gaps && st.version > was) {
			return fmt.Errorf("copy of version %d, but the record is at version %d", st.version, was)
		}
		n.st.Store(st)
		r.index.put(n, n)
		r.live.rebase(n, f.index)
	}
	r.live.resize(n, uint32(entrySize(headerSize+len(f.body))))
	n.slot = int32(len(r.sweeps))
	return nil
}

func (r *replay) update(f *frame) error {
	if len(f.body) < baseSize {
		return errBody
	}
	base := binary.LittleEndian.Uint64(f.body)
	if base < r.first {
		return nil // see the third argument in clean.go
	}
	body := reader{rest: string(f.body[baseSize:])}
	id, version := body.text(), int64(body.uvarint())
	if body.bad {
		return errBody
	}
	n := r.index.get(id)
	if n == nil || n.base != base {
		return fmt.Errorf("update builds on entry %d, which does not hold its record", base)
	}
	st := n.st.Load()
	if version != st.version+1 {
		return fmt.Errorf("update to version %d follows version %d", version, st.version)
	}
	st.version = version
	if err := st.apply(body.rest); err != nil {
		return err
	}
	if pendingTooMuch(st.pending) {
		if _, err := n.decoded(st); err != nil {
			return errUndecodable
		}
	}
	n.slot = int32(len(r.sweeps))
	r.live.resize(n, 0) // finish sets it
	return nil
}

// finish removes the records that were swept and returns the others.
//
// A sweep removed a record that was expired at its time, unless an entry of
// the record came later: then the record was not expired at that time, or it
// is a new one with the same id. So only the sweeps after a record's newest
// entry count, and of those the latest time.
func (r *replay) finish() *liveRecords {
	latest := r.sweeps // latest[i] becomes the latest time of sweeps[i:]
	for i := len(latest) - 2; i >= 0; i-- {
		if latest[i].before(latest[i+1]) {
			latest[i] = latest[i+1]
		}
	}
	l := r.live
	for n := range l.fromOldest() {
		st := n.st.Load()
		since := int(n.slot)
		n.slot = noSlot
		at, expires := st.expiry()
		if expires && since < len(latest) && !latest[since].before(at) {
			r.index.remove(n)
			l.remove(n)
		} else {
			if expires {
				l.expiries.appendUnordered(n, at)
			}
			if n.size == 0 {
				l.resize(n, uint32(entrySize(headerSize+wholeSize(st)+pendingSize(st.pending))))
			}
		}
	}
	l.expiries.heapify()
	return l
}
