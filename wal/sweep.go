package wal

import (
	"context"
	"time"
)

// sweepRecords is about how many records are removed at once.
const sweepRecords = 10_000

// Sweep implements [durabletasks.TaskStore]. When nothing is expired it costs
// one look and writes nothing; otherwise it writes one small entry for some
// thousand records, and then gives back the disk space that they took.
//
// If ctx ends before anything is removed, nothing is; later it stops only the
// giving back. If the store is closed meanwhile, or fails, the number of those
// that were removed comes with the error.
//
// Errors: [durabletasks.ErrClosed], [ErrFailed], [ErrOutcomeUnknown], or
// ctx's.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	total := 0
	removing := ctx
	for more := true; more; {
		err := s.alone(removing, func() (err error) {
			var n int
			n, more, err = s.sweepStep(instant(now))
			total += n
			return err
		})
		if err != nil {
			return total, err
		}
		// The first step is committed, and what is committed is success.
		removing = context.WithoutCancel(ctx)
	}
	// The records are gone; what happens to their space is no error of the
	// sweep, and it has been reported.
	_ = s.shrink(ctx)
	return total, nil
}

// alone runs step with nobody else committing.
func (s *Store) alone(ctx context.Context, step func() error) error {
	if err := s.check(ctx); err != nil {
		return err
	}
	return s.submit(&op{ctx: ctx, alone: step})
}

// sweepStep removes the records that expired first, up to now. An entry that
// holds a time stands for all records that are expired then, so the step ends
// between two moments.
func (s *Store) sweepStep(now moment) (n int, more bool, err error) {
	l := s.ledger
	var expired []*node
	var upTo moment
	for len(l.expires) > 0 && !now.before(l.expires[0].at) {
		first := l.expires[0]
		if len(expired) >= sweepRecords && upTo.before(first.at) {
			more = true
			break
		}
		upTo = first.at
		expired = append(expired, first.n)
		l.unschedule(first.n)
	}
	if len(expired) == 0 {
		return 0, false, nil
	}
	_, err = s.journal.add(appendInstant(startFrame(nil, kindSweep), upTo))
	if err == nil {
		err = s.flush()
	}
	if err != nil {
		return 0, false, s.fail(err)
	}
	for _, n := range expired {
		s.credit += int64(n.size) // their space is to be given back
		s.index.remove(n)
		l.remove(n)
	}
	return len(expired), more, nil
}
