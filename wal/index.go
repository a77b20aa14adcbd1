package wal

import (
	"hash/maphash"
	"maps"
	"sync"
	"sync/atomic"
)

// node is one record's place in the index, in the list of live records and in
// the expiry heap. Its state is replaced, never changed. All other fields
// belong to the committer.
type node struct {
	st atomic.Pointer[state]

	older, newer *node  // neighbours in the list of live records
	base         uint64 // the oldest entry that the record still needs: its newest create or copy

	size   uint32 // bytes that one whole entry of the record takes in a segment
	slot   int32  // in the expiry heap, or noSlot; during replay: how many sweeps came before the record's newest entry
	gone   bool   // the node is no longer in the index, or will not be after this batch
	staged *op    // the record's update in the batch that is being committed, or nil
}

const noSlot = -1

// index finds records by id. A read locks one shard, for the look-up only.
type index struct {
	seed   maphash.Seed
	shards [64]shard
}

type shard struct {
	mu    sync.RWMutex
	nodes map[string]*node
	most  int      // largest length of the map since it was made
	_     [24]byte // one cache line for each shard
}

// smallShard is the number of records at which a shard no longer gives memory
// back.
const smallShard = 64

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

// put adds a node under its record's id. It replaces old, if that is not nil.
func (x *index) put(n, old *node) {
	id := n.st.Load().id
	sh := x.shard(id)
	sh.mu.Lock()
	if old != nil {
		delete(sh.nodes, id) // or the old record's id stays in memory as the key, and the text that it is a part of
	}
	sh.nodes[id] = n
	sh.most = max(sh.most, len(sh.nodes))
	sh.mu.Unlock()
}

// remove removes the node, unless another one has replaced it.
func (x *index) remove(n *node) {
	id := n.st.Load().id
	sh := x.shard(id)
	sh.mu.Lock()
	if sh.nodes[id] == n {
		delete(sh.nodes, id)
		sh.shrink()
	}
	sh.mu.Unlock()
}

// shrink makes a smaller map of one that has become nearly empty: a map keeps
// the memory of what was deleted from it. The caller holds mu.
func (sh *shard) shrink() {
	if sh.most <= smallShard || len(sh.nodes) >= sh.most/4 {
		return
	}
	nodes := make(map[string]*node, len(sh.nodes))
	maps.Copy(nodes, sh.nodes)
	sh.nodes, sh.most = nodes, len(nodes)
}

// clear removes everything.
func (x *index) clear() {
	for i := range x.shards {
		sh := &x.shards[i]
		sh.mu.Lock()
		sh.nodes, sh.most = make(map[string]*node), 0
		sh.mu.Unlock()
	}
}

// collect returns the nodes of one shard for which keep returns true.
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

// decoded returns st, which the node holds or held, with nothing pending. The
// node keeps the decoded state.
func (n *node) decoded(st *state) (*state, error) {
	if st.pending == nil {
		return st, nil
	}
	done, err := st.decoded()
	if err != nil {
		return nil, err
	}
	n.st.CompareAndSwap(st, done) // fails if st was decoded or replaced meanwhile
	return done, nil
}
