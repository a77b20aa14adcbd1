package wal

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// What one commit passes through:
//
//	Create, Update       on the caller's goroutine: check the version, encode the change (newOp)
//	      |
//	   submit ---------- another caller commits: the op joins the queue, its caller waits
//	      |                                                      |
//	      | nobody commits: the caller leads                     |
//	      v                                                      |
//	   takeBatch  <---------- the ops of those who wait ---------+
//	      |
//	   stage             each op in order; refuses taken ids, old versions and contexts that have ended
//	      |
//	   journal.add       each op becomes an entry of the log; copyOld adds copies of old records (clean.go)
//	   journal.flush     one write for all entries
//	   journal.sync      one sync for all entries, with Options.Sync only
//	      |
//	   publish           each op goes to the index and the live records: readers see it from now on
//	      |
//	   signalBatch       every caller of the batch returns
//	      |
//	   dropDead          removes a dead segment, if there is one
//	      |
//	   handOver          the caller that waits longest leads the next batch
//
// Everything from takeBatch to handOver is done by one caller at a time, the
// committer, and needs no lock. A failure between journal.add and publish is
// the end of all writing (Store.fail).

// op is one call's way into the log. It belongs to its caller until it is
// submitted, then to the committer, and to the caller again once it is done.
type op struct {
	ctx   context.Context
	frame []byte // what to write; its place in the log is filled in when it is written
	next  *state // what to publish when it is written
	size  uint32 // of next, as one whole entry

	kind      kind         // create, update or copy
	node      *node        // of an update or a copy
	replaced  *node        // by a create: the expired record with its id
	exclusive func() error // instead of all this: run it with no commit in progress

	index  uint64 // the entry that it became; 0 if it was refused
	err    error
	signal chan signal
	now    moment // the time by which a create replaces an expired record
}

// signal tells a waiting caller how to go on.
type signal byte

const (
	committed signal = iota // the op is done
	lead                    // the op is not done: its caller is now the committer
)

// A batch has at most this many ops and bytes, which bounds how long each of
// its callers waits.
const (
	batchOps   = 1024
	batchBytes = 1 << 20
)

// submit commits an op and returns its error. There is no committing
// goroutine: a caller who finds nobody committing does it at once, alone and
// without any hand-off. Callers who come meanwhile queue up, and the first of
// them commits for all of them next, so that they share one write and one
// sync. Where commits are synced, which takes long, and the last one had
// company, whoever comes first waits a moment for the others.
//
// A caller whose context ends while it queues leaves nothing behind; once it
// is taken from the queue it waits for the outcome.
func (s *Store) submit(o *op) error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return durabletasks.ErrClosed
	}
	if !s.busy {
		s.busy = true
		s.mu.Unlock()
		if s.expected > 1 {
			s.takeBatch(o)
		} else {
			s.batch = append(s.batch[:0], o)
		}
		s.lead(o)
		return o.err
	}
	if o.signal == nil {
		o.signal = make(chan signal, 1)
	}
	s.queue = append(s.queue, o)
	s.mu.Unlock()

	var sig signal
	select {
	case sig = <-o.signal:
	case <-o.ctx.Done():
		s.mu.Lock()
		i := slices.Index(s.queue, o)
		if i >= 0 {
			s.queue = slices.Delete(s.queue, i, i+1)
		}
		s.mu.Unlock()
		if i >= 0 {
			return o.ctx.Err()
		}
		sig = <-o.signal
	}
	if sig == lead {
		s.takeBatch(o)
		s.lead(o)
	}
	return o.err
}

// takeBatch makes a batch of own, which is no longer queued, and of the ops
// that wait.
func (s *Store) takeBatch(own *op) {
	s.batch = append(s.batch[:0], own)
	if own.exclusive != nil {
		return
	}
	s.awaitOthers()
	s.mu.Lock()
	size, n := len(own.frame), 0
	for _, o := range s.queue {
		if o.exclusive != nil || len(s.batch) == batchOps || size+len(o.frame) > batchBytes {
			break
		}
		size += len(o.frame)
		s.batch = append(s.batch, o)
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	s.mu.Unlock()
}

// awaitOthers gives callers whose last commit has just finished a moment to
// return with their next one, so that the batch is full. The moment is
// short compared to what the batch itself will take.
func (s *Store) awaitOthers() {
	for range 3 {
		runtime.Gosched()
	}
	if !s.opts.Sync {
		return
	}
	for start := time.Now(); time.Since(start) < s.syncTook/8; {
		s.mu.Lock()
		all := len(s.queue)+1 >= s.expected
		s.mu.Unlock()
		if all {
			return
		}
		runtime.Gosched()
	}
}

// lead commits the batch, signals every caller in it but own's, and hands
// over. If it panics, nobody knows what became of the batch, as after any
// other failure, and its callers are told so.
func (s *Store) lead(own *op) {
	done := false
	defer func() {
		if !done {
			err := s.fail(errPanic)
			s.signalBatch(own, func(o *op) { o.err = err })
		}
		s.handOver()
	}()
	s.leadBatch(own)
	done = true
}

var errPanic = errors.New("panic while committing")

func (s *Store) leadBatch(own *op) {
	if own.exclusive != nil {
		if own.err = s.commitErr(own.ctx); own.err == nil {
			own.err = own.exclusive()
		}
		return
	}
	s.commit(s.batch)
	if s.opts.Sync {
		s.mu.Lock()
		s.expected = len(s.batch) + len(s.queue)
		s.mu.Unlock()
	}
	s.signalBatch(own, nil)
	s.dropDead()
}

// signalBatch tells every caller in the batch but own's that its op is done,
// after it has called set on the op, if set is not nil.
func (s *Store) signalBatch(own *op, set func(*op)) {
	for i, o := range s.batch {
		s.batch[i] = nil
		if o == nil || o == own {
			continue
		}
		if set != nil {
			set(o)
		}
		o.signal <- committed
	}
}

// handOver makes the caller that waits longest the next committer.
func (s *Store) handOver() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.queue) > 0 {
		o := s.queue[0]
		s.queue = slices.Delete(s.queue, 0, 1)
		o.signal <- lead
		return
	}
	s.busy = false
	if s.closed {
		close(s.idle)
	}
}

// commitErr returns why an op can no longer be committed, or nil.
func (s *Store) commitErr(ctx context.Context) error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// commit stages each op in the order of the batch, writes those that were not
// refused, and publishes them once they are as durable as they must be. It
// sets the error of every op.
//
// Nobody else changes records, so what is decided here on the state of the
// index holds until it is written: a batch has at most one accepted update of
// a record and at most one accepted create of an id.
func (s *Store) commit(batch []*op) {
	accepted := s.accepted[:0]
	for _, o := range batch {
		if o.err = s.commitErr(o.ctx); o.err == nil {
			o.err = s.stage(o, accepted)
		}
		if o.err == nil {
			accepted = append(accepted, o)
		}
	}
	s.accepted = accepted
	if len(accepted) == 0 {
		return
	}
	err := s.write(accepted)
	for i, o := range s.accepted {
		if err != nil {
			o.err = err
		} else {
			s.publish(o)
		}
		s.accepted[i] = nil
	}
}

// stage marks the record that an op changes as changed by this batch, or
// returns why the op is refused.
func (s *Store) stage(o *op, accepted []*op) error {
	switch o.kind {
	case kindCreate:
		for _, other := range accepted {
			if other.kind == kindCreate && other.next.id == o.next.id {
				return durabletasks.ErrExists
			}
		}
		o.replaced = s.index.get(o.next.id)
		if n := o.replaced; n != nil {
			if n.staged != nil || !n.st.Load().expired(o.now) {
				return durabletasks.ErrExists
			}
			n.gone = true
		}
	case kindUpdate:
		if o.node.gone {
			return durabletasks.ErrNotFound
		}
		actual := o.node.st.Load().version
		if o.node.staged != nil {
			actual++
		}
		if expected := o.next.version - 1; actual != expected {
			return &durabletasks.ConflictError{Expected: expected, Actual: actual}
		}
		o.node.staged = o
	}
	return nil
}

// write appends the ops' frames to the log, and copies of old records if the
// log has grown too large, and syncs if commits must be durable. After an
// error the store takes no more writes.
func (s *Store) write(ops []*op) error {
	bytes := int64(0)
	for _, o := range ops {
		if err := s.append(o); err != nil {
			return s.fail(err)
		}
		bytes += int64(entrySize(len(o.frame)))
	}
	if err := s.copyOld(bytes); err != nil {
		return s.fail(err)
	}
	if err := s.flush(); err != nil {
		return s.fail(err)
	}
	return nil
}

// append adds one op's frame to the log.
func (s *Store) append(o *op) (err error) {
	if o.kind == kindUpdate {
		setBase(o.frame, o.node.base)
	}
	o.index, err = s.journal.add(o.frame)
	return err
}

// flush writes what was appended, and syncs it if commits must be durable.
func (s *Store) flush() error {
	if err := s.journal.flush(); err != nil || !s.opts.Sync {
		return err
	}
	start := time.Now()
	err := s.journal.sync()
	s.syncTook = time.Since(start)
	return err
}

// fail ends all writing: after a failed write or sync nobody knows what the
// disk holds, and another attempt might be acknowledged without being there.
// It returns the error for the callers whose outcome is unknown.
func (s *Store) fail(cause error) error {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	s.failure.Store(&err)
	s.opts.log(slog.LevelError, "wal: writing failed, the store takes no more writes", "error", cause)
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
}

// publish makes a committed op visible to readers.
func (s *Store) publish(o *op) {
	switch o.kind {
	case kindCreate:
		if o.replaced != nil {
			s.live.remove(o.replaced)
		}
		n := &node{base: o.index, slot: noSlot}
		n.st.Store(o.next)
		s.index.put(n)
		s.live.append(n)
		s.live.resize(n, o.size)
		s.live.expiries.add(n)
	case kindUpdate:
		n := o.node
		old := n.st.Load()
		n.st.Store(o.next)
		n.staged = nil
		s.live.resize(n, o.size)
		if old.created != o.next.created || old.ttl != o.next.ttl {
			s.live.expiries.remove(n)
			s.live.expiries.add(n)
		}
	case kindCopy:
		s.live.rebase(o.node, o.index)
	}
}

// ops are reused for their frames and channels.
var ops = sync.Pool{New: func() any { return new(op) }}

// keptFrame is the largest frame whose memory is kept for another op.
const keptFrame = 64 << 10

// newOp returns an op with the beginning of its frame.
func newOp(ctx context.Context, k kind, next *state, size uint32) *op {
	o := ops.Get().(*op)
	*o = op{ctx: ctx, kind: k, next: next, size: size, signal: o.signal, frame: startFrame(o.frame, k)}
	return o
}

// free makes an op that nobody refers to available to newOp.
func (o *op) free() {
	if cap(o.frame) > keptFrame {
		o.frame = nil
	}
	*o = op{frame: o.frame, signal: o.signal}
	ops.Put(o)
}
