package wal

import (
	"context"
	"errors"
	"math"
	"time"
)

// The log is cleaned instead of compacted: while it is more than twice as
// large as what lives in it, each batch also copies the records that need the
// oldest entries to the log's end, at most 9/8 of what the batch itself
// writes, and then one segment that nobody needs any more is removed. The
// work for a mutation does not depend on how many records there are, nothing
// ever stops to rewrite the log, and as less than half of a log of that size
// is alive, less is copied on average than was written.
//
// Why a crash at any moment is harmless:
//
//  1. A copy is the same record with the same version in a later entry, and
//     reading the log takes the last. Only the committer writes, so a copy
//     never carries an older version. If the copy is lost, the entries that it
//     replaces are still there: nothing is removed before the copy is durable.
//  2. A sweep's entry is never copied. It is needed as long as an entry of a
//     record that it removed is in the log; all of those come before it, and
//     as only the front of the log is cut, they go first or together.
//  3. An update whose base has been cut belongs to a record that was copied
//     or removed later, because the front that is cut ends before the lowest
//     base of all records. Reading the log skips it.
//  4. Removal itself is argued at journal.drop.

// slackSegments is by how much the log may outgrow twice the live records before it
// is cleaned.
const slackSegments = 4

// dropLimit is how many segments are removed at once when there is no batch
// to be held up. A removal takes milliseconds.
const dropLimit = 8

// cleanBytes is how much is copied at once when there is no batch to be held
// up.
const cleanBytes = 256 << 10

// After cleaning has failed, it is tried again after a pause that doubles.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// overgrown reports whether the log is larger than its records justify.
func (s *Store) overgrown() bool {
	return s.journal.length() > 2*s.ledger.live+slackSegments*int64(s.journal.seam.segmentSize)
}

// copyOld appends copies of the oldest records, as many as a batch of so many
// bytes has to pay for. What a large record costs is saved up over batches.
func (s *Store) copyOld(bytes int64) error {
	if !s.overgrown() {
		s.credit = 0
		return nil
	}
	s.credit += bytes + bytes/8
	for n := s.ledger.ends.newer; n != &s.ledger.ends && int64(n.size) <= s.credit && s.overgrown(); n = n.newer {
		if n.gone { // this batch replaces it
			continue
		}
		o, err := s.copyOp(n)
		if err != nil {
			s.cleanFailed(err)
			return nil
		}
		if err := s.append(o); err != nil {
			return err
		}
		s.credit -= int64(n.size)
		s.accepted = append(s.accepted, o)
	}
	return nil
}

// copyOp makes the op that moves a record to the end of the log.
func (s *Store) copyOp(n *node) (*op, error) {
	st, err := n.decoded(n.st.Load())
	if err != nil {
		return nil, errUndecodable
	}
	if n.staged != nil {
		st = n.staged.next // the copy comes after the update
	}
	return &op{kind: kindCopy, node: n, frame: appendWhole(startFrame(nil, kindCopy), st)}, nil
}

var errUndecodable = errors.New("wal: a record holds JSON that this library does not accept")

// retire tells the journal what the records still need.
func (s *Store) retire() {
	needed := s.journal.next
	if n := s.ledger.oldest(); n != nil {
		needed = n.base
	}
	s.journal.retire(needed)
}

// dropDead removes one dead segment, if there is one, after a batch.
func (s *Store) dropDead() {
	if s.failure.Load() != nil {
		return
	}
	s.retire()
	if !s.journal.droppable() || time.Now().Before(s.cleanAfter) {
		return
	}
	_ = s.drop(1) // it has been reported
}

// drop removes up to limit dead segments and reports its failure.
func (s *Store) drop(limit int) error {
	broken, err := s.journal.drop(limit)
	switch {
	case err == nil:
		s.cleanPause = 0
	case broken:
		return s.fail(err)
	default:
		s.cleanFailed(err)
	}
	return err
}

// cleanFailed reports that cleaning did not succeed and makes it pause.
func (s *Store) cleanFailed(err error) {
	s.cleanPause = min(max(2*s.cleanPause, firstPause), lastPause)
	s.cleanAfter = time.Now().Add(s.cleanPause)
	s.opts.cleanFailed(err)
}

// shrink gives space back while nobody writes: what may be dropped, and as
// many copies as the credit allows. The steps are small, so that writers get
// their turn in between.
func (s *Store) shrink(ctx context.Context) error {
	for more := true; more; {
		err := s.alone(ctx, func() (err error) {
			more, err = s.shrinkStep(&s.credit, s.journal.next, s.overgrown)
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// shrinkStep copies some of the records whose base is below limit, as long as
// wanted says so and the credit lasts, and drops what is dead. It reports
// whether there is more to do.
func (s *Store) shrinkStep(credit *int64, limit uint64, wanted func() bool) (more bool, err error) {
	var copies []*op
	bytes := int64(0)
	for n := s.ledger.ends.newer; n != &s.ledger.ends; n = n.newer {
		if bytes >= cleanBytes || n.base >= limit || int64(n.size) > *credit || !wanted() {
			break
		}
		o, err := s.copyOp(n)
		if err != nil {
			s.cleanFailed(err)
			return false, err
		}
		if err := s.append(o); err != nil {
			return false, s.fail(err)
		}
		copies = append(copies, o)
		*credit -= int64(n.size)
		bytes += int64(n.size)
	}
	if len(copies) > 0 {
		if err := s.flush(); err != nil {
			return false, s.fail(err)
		}
		for _, o := range copies {
			s.show(o)
		}
	}
	s.retire()
	if s.journal.droppable() {
		return true, s.drop(dropLimit)
	}
	return len(copies) > 0, nil
}

// Compact removes the records that are expired and gives back the disk space
// of all that is not needed, down to about two segments (of 1 MiB) more than
// the records take. The store does the same by itself, bit by bit, as it is
// written to; Compact is for a moment of quiet. Other calls go on meanwhile.
//
// Errors: [durabletasks.ErrClosed], [ErrFailed], ctx's, or what kept the space
// from being given back, which harms nothing.
func (s *Store) Compact(ctx context.Context) error {
	if _, err := s.Sweep(ctx, s.opts.Now()); err != nil {
		return err
	}
	var limit uint64
	credit := int64(math.MaxInt64)
	for more := true; more; {
		err := s.alone(ctx, func() (err error) {
			j := s.journal
			if limit == 0 {
				limit = j.segments[len(j.segments)-1].first
			}
			spare := int64(j.seam.segmentSize)
			more, err = s.shrinkStep(&credit, limit, func() bool { return j.length() > s.ledger.live+spare })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
