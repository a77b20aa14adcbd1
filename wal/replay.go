package wal

import (
	"encoding/binary"
	"fmt"
)

// replay builds the index from the log's entries in their order. Nobody else
// uses the index meanwhile, so it changes states in place.
type replay struct {
	index  *index
	ledger *ledger
	first  uint64 // the first entry of the log
	sweeps []moment
}

func newReplay(x *index) *replay { return &replay{index: x, ledger: newLedger()} }

// begin forgets everything that was replayed: the log begins here.
func (r *replay) begin(first uint64) {
	if r.ledger.oldest() != nil {
		r.index.clear()
		r.ledger = newLedger()
	}
	r.first = first
	r.sweeps = nil
}

// maxPending is how many updates may wait to be decoded; beyond it decoding
// is cheaper than holding on to what they superseded.
const maxPending = 8

// entry replays one entry. Its error says why the entry cannot be.
func (r *replay) entry(f *frame) error {
	switch f.kind {
	case kindCreate, kindCopy:
		body := reader{rest: string(f.body)}
		st := &state{id: body.text(), version: int64(body.uvarint())}
		if body.bad {
			return errBody
		}
		if f.kind == kindCreate && st.version != 0 {
			return errBody
		}
		if err := st.apply(body.rest); err != nil {
			return err
		}
		return r.whole(f, st)
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

// whole replays a create or a copy. Whatever the log said of the record
// before is dead, and so is an expired record whose id a create has taken.
func (r *replay) whole(f *frame, st *state) error {
	n := r.index.get(st.id)
	if n == nil {
		n = new(node)
		n.st.Store(st)
		r.index.put(n, nil)
		n.base = f.index
		r.ledger.append(n)
	} else {
		if was := n.st.Load().version; f.kind == kindCopy && st.version != was {
			return fmt.Errorf("copy of version %d, but the record is at version %d", st.version, was)
		}
		n.st.Store(st)
		r.index.put(n, n)
		r.ledger.renew(n, f.index)
	}
	r.ledger.resize(n, uint32(entrySize(headerSize+len(f.body))))
	n.slot = int32(len(r.sweeps))
	return nil
}

func (r *replay) update(f *frame) error {
	if len(f.body) < baseSize {
		return errBody
	}
	base := binary.LittleEndian.Uint64(f.body)
	if base < r.first {
		return nil // see the third argument at cleaning
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
	if len(st.pending) > maxPending {
		if _, err := n.decoded(st); err != nil {
			return errUndecodable
		}
	}
	n.slot = int32(len(r.sweeps))
	r.ledger.resize(n, 0) // finish measures it
	return nil
}

// finish removes what was swept and returns the ledger of what is left.
//
// A record that was expired at a sweep was removed by it, unless an entry of
// the record came later: then it was not expired at that time, or it is a new
// record under the id. So only the sweeps after a record's newest entry
// count, and of those the latest time.
func (r *replay) finish() *ledger {
	latest := r.sweeps // latest[i] is to be the latest time of sweeps[i:]
	for i := len(latest) - 2; i >= 0; i-- {
		if latest[i].before(latest[i+1]) {
			latest[i] = latest[i+1]
		}
	}
	l := r.ledger
	for n := l.ends.newer; n != &l.ends; {
		next := n.newer
		st := n.st.Load()
		since := int(n.slot)
		n.slot = noSlot
		at, expires := st.expiry()
		if expires && since < len(latest) && !latest[since].before(at) {
			r.index.remove(n)
			l.remove(n)
		} else {
			if expires {
				n.slot = int32(len(l.expires))
				l.expires = append(l.expires, expiry{at, n})
			}
			if n.size == 0 {
				l.resize(n, uint32(entrySize(headerSize+wholeSize(st)+pendingSize(st.pending))))
			}
		}
		n = next
	}
	l.heapify()
	return l
}
