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

// op is one call's way into the log. It belongs to its caller until it is
// submitted, then to whoever commits it, and to the caller again afterwards.
type op struct {
	ctx   context.Context
	frame []byte // what to write; its place is filled in when it is written
	next  *state // what to show when it is written
	size  uint32 // of next, as one whole entry

	kind     kind         // create, update or copy
	node     *node        // of an update or a copy
	replaced *node        // by a create: the expired record with its id
	alone    func() error // instead of all this: run with the log at rest

	index  uint64 // the entry that it became; 0 if it was refused
	err    error
	signal chan signal
	now    moment // by which a create takes an expired record's place
}

// signal tells a waiting caller how it goes on.
type signal byte

const (
	committed signal = iota // the op is done
	lead                    // the op is not done, and its caller commits now
)

// At most this many ops and bytes are committed at once, which bounds how
// long each of them waits.
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
			s.take(o)
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
		s.take(o)
		s.lead(o)
	}
	return o.err
}

// take makes a batch of own, which is not queued any more, and of those that
// wait.
func (s *Store) take(own *op) {
	s.batch = append(s.batch[:0], own)
	if own.alone != nil {
		return
	}
	s.await()
	s.mu.Lock()
	size, n := len(own.frame), 0
	for _, o := range s.queue {
		if o.alone != nil || len(s.batch) == batchOps || size+len(o.frame) > batchBytes {
			break
		}
		size += len(o.frame)
		s.batch = append(s.batch, o)
		n++
	}
	s.queue = slices.Delete(s.queue, 0, n)
	s.mu.Unlock()
}

// await lets those come who were just told of their commit and are about to
// return with the next one, so that the batch is full. It gives up after a
// moment that is short beside what the batch itself will take.
func (s *Store) await() {
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

// lead commits the batch, tells everybody in it but own, and passes the lead
// on. Only one caller is in here at a time: whatever belongs to the committer
// needs no lock. Should it panic, nobody knows what has become of the batch,
// and that is said like after any other failure.
func (s *Store) lead(own *op) {
	through := false
	defer func() {
		if !through {
			err := s.fail(errPanic)
			s.tell(own, func(o *op) { o.err = err })
		}
		s.passOn()
	}()
	s.leadOn(own)
	through = true
}

var errPanic = errors.New("panic while committing")

func (s *Store) leadOn(own *op) {
	if own.alone != nil {
		if own.err = s.usable(own.ctx); own.err == nil {
			own.err = own.alone()
		}
		return
	}
	s.commit(s.batch)
	if s.opts.Sync {
		s.mu.Lock()
		s.expected = len(s.batch) + len(s.queue)
		s.mu.Unlock()
	}
	s.tell(own, nil)
	s.dropDead()
}

// tell tells everybody in the batch but own that their op is done, after it
// has called set, if that is not nil.
func (s *Store) tell(own *op, set func(*op)) {
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

// passOn makes the caller who waits longest the next to lead.
func (s *Store) passOn() {
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

// usable reports why an op cannot be committed any more.
func (s *Store) usable(ctx context.Context) error {
	if err := s.failure.Load(); err != nil {
		return *err
	}
	return ctx.Err()
}

// commit decides each op in the order of the batch, writes those that may be,
// and shows them to readers once they are as durable as they must be. It sets
// the error of every op.
//
// Records are changed by nobody else, so what is decided here on the state of
// the index holds until it is written: at most one update of a record and one
// create of an id are accepted in a batch.
func (s *Store) commit(batch []*op) {
	accepted := s.accepted[:0]
	for _, o := range batch {
		if o.err = s.usable(o.ctx); o.err == nil {
			o.err = s.decide(o, accepted)
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
			s.show(o)
		}
		s.accepted[i] = nil
	}
}

// decide reports why an op must be refused.
func (s *Store) decide(o *op, accepted []*op) error {
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
// log has grown too large, and syncs if commits are to be durable. Its error
// is the end of all writing.
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

// flush writes what was appended, and syncs it if commits are to be durable.
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
// It returns the error for those whose outcome is unknown.
func (s *Store) fail(cause error) error {
	err := fmt.Errorf("%w: %w", ErrFailed, cause)
	s.failure.Store(&err)
	s.opts.log(slog.LevelError, "wal: writing failed, the store takes no more writes", "error", cause)
	return fmt.Errorf("%w: %w", ErrOutcomeUnknown, cause)
}

// show makes a committed op visible to readers.
func (s *Store) show(o *op) {
	switch o.kind {
	case kindCreate:
		if o.replaced != nil {
			s.ledger.remove(o.replaced)
		}
		n := &node{base: o.index, slot: noSlot}
		n.st.Store(o.next)
		s.index.put(n, o.replaced)
		s.ledger.append(n)
		s.ledger.resize(n, o.size)
		s.ledger.schedule(n)
	case kindUpdate:
		n := o.node
		old := n.st.Load()
		n.st.Store(o.next)
		n.staged = nil
		s.ledger.resize(n, o.size)
		if old.created != o.next.created || old.ttl != o.next.ttl {
			s.ledger.unschedule(n)
			s.ledger.schedule(n)
		}
	case kindCopy:
		s.ledger.renew(o.node, o.index)
	}
}

// ops are reused for the sake of their frames and channels.
var ops = sync.Pool{New: func() any { return new(op) }}

// keptFrame is the largest frame whose memory is kept for another op.
const keptFrame = 64 << 10

// newOp returns an op with the beginning of its frame.
func newOp(ctx context.Context, k kind, next *state, size uint32) *op {
	o := ops.Get().(*op)
	*o = op{ctx: ctx, kind: k, next: next, size: size, signal: o.signal, frame: startFrame(o.frame, k)}
	return o
}

// free gives back an op that nobody refers to any more.
func (o *op) free() {
	if cap(o.frame) > keptFrame {
		o.frame = nil
	}
	*o = op{frame: o.frame, signal: o.signal}
	ops.Put(o)
}
