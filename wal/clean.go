package wal

import (
	"context"
	"errors"
	"math"
	"time"
)

// The log is cleaned bit by bit instead of compacted at once. While it is more
// than twice as large as its live records, each batch also copies the records
// that need the oldest entries to the log's end, at most 9/8 of what the batch
// itself writes, and then one segment that no record needs is removed. The
// work for a mutation does not depend on the number of records, nothing ever
// stops to rewrite the log, and as less than half of a log of that size is
// alive, less is copied on average than was written.
//
// Why a crash at any moment is harmless:
//
//  1. A copy is the same record with the same version in a later entry, and
//     a reader of the log uses the last. Only the committer writes, so a copy
//     never has an older version. If the copy is lost, the entries that it
//     replaces are still there: nothing is removed before the copy is durable.
//  2. A sweep's entry is never copied. It is needed as long as the log has an
//     entry of a record that it removed. All of those come before it, and as
//     only the front of the log is cut, they go first or together with it.
//  3. An update whose base has been cut belongs to a record that was copied
//     or removed later, because the front that is cut ends before the lowest
//     base of all records. A reader of the log skips it.
//  4. Removal itself is argued at journal.drop.

// slackSegments is how many segments the log may be larger than twice its live
// records before it is cleaned.
const slackSegments = 4

// One step of cleaning without a batch removes at most dropLimit segments,
// each of which takes milliseconds, and copies at most about cleanBytes, so
// that the batches of others do not wait for long.
const (
	dropLimit  = 8
	cleanBytes = 256 << 10
)

// After a failure, cleaning pauses before it tries again. The pause doubles
// with each failure.
const (
	firstPause = time.Second
	lastPause  = time.Minute
)

// overgrown reports whether the log is larger than its records justify.
func (s *Store) overgrown() bool {
	return s.journal.length() > 2*s.live.bytes+slackSegments*int64(s.journal.seam.segmentSize)
}

// copyOld appends copies of the oldest records, as many as a batch of so many
// bytes pays for. Batches save up until they can pay for a large record.
func (s *Store) copyOld(bytes int64) error {
	if !s.overgrown() {
		s.credit = 0
		return nil
	}
	s.credit += bytes + bytes/8
	for n := range s.live.fromOldest() {
		if int64(n.size) > s.credit || !s.overgrown() {
			break
		}
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

// retire tells the journal which entries the records still need.
func (s *Store) retire() {
	needed := s.journal.next
	if n := s.live.oldest(); n != nil {
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
	_ = s.drop(1) // has reported its error
}

// drop removes up to limit dead segments, and reports its error to the user.
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

// cleanFailed reports that cleaning failed, and makes it pause.
func (s *Store) cleanFailed(err error) {
	s.cleanPause = min(max(2*s.cleanPause, firstPause), lastPause)
	s.cleanAfter = time.Now().Add(s.cleanPause)
	s.opts.cleanFailed(err)
}

// shrink gives space back without a batch: it drops what may be dropped, and
// makes as many copies as the credit allows. Its steps are small, so that
// writers get their turn in between.
func (s *Store) shrink(ctx context.Context) error {
	for more := true; more; {
		err := s.exclusively(ctx, func() (err error) {
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
// wanted returns true and the credit lasts, and drops dead segments. It
// reports whether there is more to do.
func (s *Store) shrinkStep(credit *int64, limit uint64, wanted func() bool) (more bool, err error) {
	var copies []*op
	bytes := int64(0)
	for n := range s.live.fromOldest() {
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
			s.publish(o)
		}
	}
	s.retire()
	if s.journal.droppable() {
		return true, s.drop(dropLimit)
	}
	return len(copies) > 0, nil
}

// Compact removes the expired records and gives back the disk space of
// everything that is not needed, down to about two segments (of 1 MiB) more
// than the records take. The store does the same bit by bit as it is written
// to; Compact is for quiet times. Other calls go on meanwhile.
//
// Errors: [durabletasks.ErrClosed], [ErrFailed], ctx's, or why the space could
// not be given back, which does no harm.
func (s *Store) Compact(ctx context.Context) error {
	if _, err := s.Sweep(ctx, s.opts.Now()); err != nil {
		return err
	}
	var limit uint64
	credit := int64(math.MaxInt64)
	for more := true; more; {
		err := s.exclusively(ctx, func() (err error) {
			j := s.journal
			if limit == 0 {
				limit = j.segments[len(j.segments)-1].first
			}
			spare := int64(j.seam.segmentSize)
			more, err = s.shrinkStep(&credit, limit, func() bool { return j.length() > s.live.bytes+spare })
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
