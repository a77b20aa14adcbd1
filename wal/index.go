package wal

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
)

// node is one record's place in the index, in the list of the log's live
// records and in the heap of expiries. Its state is replaced, never changed;
// everything else belongs to whoever commits.
type node struct {
	st atomic.Pointer[state]

	older, newer *node  // neighbours in the ledger's list
	base         uint64 // the oldest entry that is still needed: the newest create or copy

	size   uint32 // what one whole entry of the record takes in a segment
	slot   int32  // place in the expiry heap, or noSlot; while replaying: how many sweeps came before its newest entry
	gone   bool   // it is not in the index any more, or will not be after this batch
	staged *op    // the update in the batch that is being committed, or nil
}

const noSlot = -1

// index finds records by id. Reads lock one shard for the look-up alone.
type index struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu    sync.RWMutex
	nodes map[string]*node
	_     [32]byte // a cache line for each
}

func newIndex() *index {
	x := &index{seed: maphash.MakeSeed()}
	x.clear()
	return x
}

func (x *index) shard(id string) *shard {
	return &x.shards[maphash.String(x.seed, id)%uint64(len(x.shards))]
}

// get returns the node with this id, or nil.
func (x *index) get(id string) *node {
	sh := x.shard(id)
	sh.mu.RLock()
	n := sh.nodes[id]
	sh.mu.RUnlock()
	return n
}

// put adds a node under its record's id, in the place of old, if that is not
// nil.
func (x *index) put(n, old *node) {
	id := n.st.Load().id
	sh := x.shard(id)
	sh.mu.Lock()
	if old != nil {
		delete(sh.nodes, id) // or the old node's id stays as the key, with all that it is a piece of
	}
	sh.nodes[id] = n
	sh.mu.Unlock()
}

// remove takes out the node, unless another has its id by now.
func (x *index) remove(n *node) {
	id := n.st.Load().id
	sh := x.shard(id)
	sh.mu.Lock()
	if sh.nodes[id] == n {
		delete(sh.nodes, id)
	}
	sh.mu.Unlock()
}

// clear takes out everything.
func (x *index) clear() {
	for i := range x.shards {
		sh := &x.shards[i]
		sh.mu.Lock()
		sh.nodes = make(map[string]*node)
		sh.mu.Unlock()
	}
}

// collect returns the nodes of one shard for which keep says yes.
func (sh *shard) collect(keep func(*state) bool) []*node {
	sh.mu.RLock()
	defer sh.mu.RUnlock()
	var nodes []*node
	for _, n := range sh.nodes {
		if keep(n.st.Load()) {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// decoded returns st, which the node holds or held, with nothing pending, and
// has the node keep it so.
func (n *node) decoded(st *state) (*state, error) {
	if st.pending == nil {
		return st, nil
	}
	done, err := st.decoded()
	if err != nil {
		return nil, err
	}
	n.st.CompareAndSwap(st, done) // or somebody decoded or replaced it meanwhile
	return done, nil
}
