package wal

// ledger knows what of the log is alive: every record in the order of the
// entries they need (the list's oldest record says how much of the log's
// front is dead), what all would take if each were one whole entry, and who
// expires when. It belongs to whoever commits.
type ledger struct {
	ends    node  // sentinel: ends.newer is the oldest record, ends.older the newest
	live    int64 // sum of all sizes
	expires []expiry
}

// expiry is an element of a binary heap with the earliest at the front.
type expiry struct {
	at moment
	n  *node
}

func newLedger() *ledger {
	l := new(ledger)
	l.ends.older, l.ends.newer = &l.ends, &l.ends
	return l
}

// oldest returns the record with the lowest base, or nil.
func (l *ledger) oldest() *node {
	if n := l.ends.newer; n != &l.ends {
		return n
	}
	return nil
}

// append adds n as the newest record. Its base must be the highest.
func (l *ledger) append(n *node) {
	n.older, n.newer = l.ends.older, &l.ends
	n.older.newer, l.ends.older = n, n
}

func (l *ledger) unlink(n *node) {
	n.older.newer, n.newer.older = n.newer, n.older
	n.older, n.newer = nil, nil
}

// renew makes base, the highest of all, the new base of n.
func (l *ledger) renew(n *node, base uint64) {
	n.base = base
	l.unlink(n)
	l.append(n)
}

// resize sets the size of n; that of a new node is 0.
func (l *ledger) resize(n *node, size uint32) {
	l.live += int64(size) - int64(n.size)
	n.size = size
}

// remove takes n out of everything.
func (l *ledger) remove(n *node) {
	l.unlink(n)
	l.resize(n, 0)
	l.unschedule(n)
	n.gone = true
}

// schedule puts n, which must be in no slot, where its expiry belongs.
func (l *ledger) schedule(n *node) {
	n.slot = noSlot
	if at, ok := n.st.Load().expiry(); ok {
		n.slot = int32(len(l.expires))
		l.expires = append(l.expires, expiry{at, n})
		l.up(len(l.expires) - 1)
	}
}

// unschedule takes n out of the heap, if it is there.
func (l *ledger) unschedule(n *node) {
	if n.slot == noSlot {
		return
	}
	i, last := int(n.slot), len(l.expires)-1
	l.swap(i, last)
	l.expires[last] = expiry{}
	l.expires = l.expires[:last]
	if i < last {
		l.down(i)
		l.up(i)
	}
	n.slot = noSlot
}

// heapify orders a heap whose elements were appended freely.
func (l *ledger) heapify() {
	for i := len(l.expires)/2 - 1; i >= 0; i-- {
		l.down(i)
	}
}

func (l *ledger) swap(i, j int) {
	e := l.expires
	e[i], e[j] = e[j], e[i]
	e[i].n.slot, e[j].n.slot = int32(i), int32(j)
}

func (l *ledger) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !l.expires[i].at.before(l.expires[parent].at) {
			return
		}
		l.swap(i, parent)
		i = parent
	}
}

func (l *ledger) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(l.expires) {
			return
		}
		if right := child + 1; right < len(l.expires) && l.expires[right].at.before(l.expires[child].at) {
			child = right
		}
		if !l.expires[child].at.before(l.expires[i].at) {
			return
		}
		l.swap(i, child)
		i = child
	}
}
