package wal

// expiryHeap is a binary heap of the records that expire, the earliest at the
// front. Each record's node knows its place in the heap, its slot.
type expiryHeap struct{ entries []expiry }

type expiry struct {
	at moment
	n  *node
}

// smallHeap is the capacity at which a heap no longer gives memory back.
const smallHeap = 1024

// add adds n, which must not be in the heap, if it expires.
func (h *expiryHeap) add(n *node) {
	n.slot = noSlot
	if at, ok := n.st.Load().expiry(); ok {
		h.appendUnordered(n, at)
		h.up(len(h.entries) - 1)
	}
}

// appendUnordered adds n at the end, where it may be out of order until the
// next call of heapify.
func (h *expiryHeap) appendUnordered(n *node, at moment) {
	n.slot = int32(len(h.entries))
	h.entries = append(h.entries, expiry{at, n})
}

// remove removes n, if it is in the heap.
func (h *expiryHeap) remove(n *node) {
	if n.slot == noSlot {
		return
	}
	i, last := int(n.slot), len(h.entries)-1
	h.swap(i, last)
	h.entries[last] = expiry{}
	h.entries = h.entries[:last]
	if i < last {
		h.down(i)
		h.up(i)
	}
	n.slot = noSlot
	if c := cap(h.entries); c > smallHeap && last < c/4 {
		h.entries = append(make([]expiry, 0, c/2), h.entries...)
	}
}

// heapify puts all entries in order.
func (h *expiryHeap) heapify() {
	for i := len(h.entries)/2 - 1; i >= 0; i-- {
		h.down(i)
	}
}

func (h *expiryHeap) swap(i, j int) {
	e := h.entries
	e[i], e[j] = e[j], e[i]
	e[i].n.slot, e[j].n.slot = int32(i), int32(j)
}

func (h *expiryHeap) up(i int) {
	for i > 0 {
		parent := (i - 1) / 2
		if !h.entries[i].at.before(h.entries[parent].at) {
			return
		}
		h.swap(i, parent)
		i = parent
	}
}

func (h *expiryHeap) down(i int) {
	for {
		child := 2*i + 1
		if child >= len(h.entries) {
			return
		}
		if right := child + 1; right < len(h.entries) && h.entries[right].at.before(h.entries[child].at) {
			child = right
		}
		if !h.entries[child].at.before(h.entries[i].at) {
			return
		}
		h.swap(i, child)
		i = child
	}
}
