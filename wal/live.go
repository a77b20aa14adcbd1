package wal

import "iter"

// liveRecords are the records that exist, expired ones that were not swept
// included, in the order of the oldest log entry that each of them still
// needs: all of the log before the first record's entry is dead. They belong
// to the committer.
type liveRecords struct {
	ends     node  // sentinel of a ring: ends.newer is the oldest record, ends.older the newest
	bytes    int64 // the sum of all sizes
	expiries expiryHeap
}

func newLiveRecords() *liveRecords {
	l := new(liveRecords)
	l.ends.older, l.ends.newer = &l.ends, &l.ends
	return l
}

// oldest returns the record with the lowest base, or nil.
func (l *liveRecords) oldest() *node {
	if n := l.ends.newer; n != &l.ends {
		return n
	}
	return nil
}

// fromOldest returns all records, the oldest first. The loop may remove the
// record that it is at.
func (l *liveRecords) fromOldest() iter.Seq[*node] {
	return func(yield func(*node) bool) {
		for n := l.ends.newer; n != &l.ends; {
			next := n.newer
			if !yield(n) {
				return
			}
			n = next
		}
	}
}

// append adds n as the newest record. Its base must be the highest.
func (l *liveRecords) append(n *node) {
	n.older, n.newer = l.ends.older, &l.ends
	n.older.newer, l.ends.older = n, n
}

func (l *liveRecords) unlink(n *node) {
	n.older.newer, n.newer.older = n.newer, n.older
	n.older, n.newer = nil, nil
}

// rebase makes base, which is the highest of all, the base of n.
func (l *liveRecords) rebase(n *node, base uint64) {
	n.base = base
	l.unlink(n)
	l.append(n)
}

// resize sets the size of n. The size of a new node is 0.
func (l *liveRecords) resize(n *node, size uint32) {
	l.bytes += int64(size) - int64(n.size)
	n.size = size
}

// remove removes n.
func (l *liveRecords) remove(n *node) {
	l.unlink(n)
	l.resize(n, 0)
	l.expiries.remove(n)
	n.gone = true
}
