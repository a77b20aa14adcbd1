package wal

import (
	"context"
	"time"
)

// sweepRecords is about how many records one step removes.
const sweepRecords = 10_000

// Sweep implements [durabletasks.TaskStore]. If no record is expired, it reads
// one time and writes nothing. Otherwise it writes one small entry for each
// few thousand records, and then gives back the disk space that they took.
//
// If ctx ends before a record was removed, none is; later it stops only the
// giving back of space. If the store is closed meanwhile, or fails, Sweep
// returns the number of records that it has removed with the error.
//
// Errors: [durabletasks.ErrClosed], [ErrFailed], [ErrOutcomeUnknown], or
// ctx's.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	total := 0
	removing := ctx
	for more := true; more; {
		err := s.exclusively(removing, func() (err error) {
			var n int
			n, more, err = s.sweepStep(instant(now))
			total += n
			return err
		})
		if err != nil {
			return total, err
		}
		// The first step is committed, so the sweep must not fail any more.
		removing = context.WithoutCancel(ctx)
	}
	// The records are gone. A failure to give their space back is not an error
	// of the sweep, and shrink has reported it.
	_ = s.shrink(ctx)
	return total, nil
}

// exclusively runs step with no commit in progress.
func (s *Store) exclusively(ctx context.Context, step func() error) error {
	if err := s.callErr(ctx); err != nil {
		return err
	}
	return s.submit(&op{ctx: ctx, exclusive: step})
}

// sweepStep removes some of the records that are expired at now, the earliest
// first. A sweep's entry holds a time and removes all records that are expired
// then, so a step never ends between two records that expire at one moment.
func (s *Store) sweepStep(now moment) (n int, more bool, err error) {
	l := s.live
	var expired []*node
	var upTo moment
	for len(l.expiries.entries) > 0 && !now.before(l.expiries.entries[0].at) {
		first := l.expiries.entries[0]
		if len(expired) >= sweepRecords && upTo.before(first.at) {
			more = true
			break
		}
		upTo = first.at
		expired = append(expired, first.n)
		l.expiries.remove(first.n)
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
		s.credit += int64(n.size) // for shrink to give the space back
		s.index.remove(n)
		l.remove(n)
	}
	return len(expired), more, nil
}
