package sqlitestore

import (
	"context"
	"errors"
	"fmt"

	"github.com/mcp-durable-tasks/durabletasks"
)

// errTasksLost is what Scan reports once, after others removed this store's
// number while its lock file was missing.
var errTasksLost = fmt.Errorf("%w: other stores took this one for gone, and its tasks over", ErrMoved)

// Scan implements [durabletasks.Scanner] for a file that several processes have
// open. It shows the tasks that this store runs: those that it created, those that
// an earlier Scan has shown, and those of stores that are no longer open, because
// they were closed or their process died. It takes the latter over before it
// shows them, so of several processes that scan, only one is shown a task. It
// never shows the tasks of stores that are open elsewhere.
//
// A task that was taken over stays with this store until the store is closed, even
// if visit does nothing with it. Its record and version do not change.
//
// A record that cannot be read does not keep others from being shown. Scan then
// shows the others first, and returns an error that names the damaged rows by
// number, since ids must not be logged. If visit ends the scan, there is no error.
//
// The database and the files next to it must stay at their place. If the database
// is no longer at its path, Scan takes nothing over, shows nothing and returns
// [ErrMoved]: this store and those that open the path no longer see each other.
// Close it then, and open it where the database is. If only the store's own lock
// file is missing, Scan makes it again. If another store has looked for the file
// in the meantime, that store now runs this store's tasks: Scan then returns
// ErrMoved once, and the next Scan shows the tasks that are left.
//
// Errors: [ErrMoved]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as
// text.
func (s *Store) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	own, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	var damaged readErrors
	for _, row := range own {
		r, err := s.readRow(ctx, row)
		switch {
		case errors.Is(err, durabletasks.ErrNotFound):
		case err != nil && (errors.Is(err, ErrBusy) || s.stopped(ctx) != nil):
			return err // every other record would fail too
		case err != nil:
			damaged.add(err)
		case !r.Status.Terminal() && !visit(r):
			return nil
		}
	}
	return damaged.err()
}

// takeOver makes the tasks of stores that are gone this store's, and returns the
// rows of all its unfinished tasks.
func (s *Store) takeOver(ctx context.Context) (own []int64, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	err = s.transact(ctx, func() error {
		if err := s.ensureRegistered(); err != nil {
			return err
		}
		if err := s.removeDead(); err != nil {
			return err
		}
		if err := s.exec(takeOverOrphans, s.process); err != nil {
			return err
		}
		own, err = readIntegers(s.writer.QueryContext(context.Background(), selectOwn, s.process))
		return err
	})
	if err == nil && s.lost.Swap(false) {
		err = errTasksLost
	}
	return own, callError(ctx, "scan", err)
}

func (s *Store) readRow(ctx context.Context, row int64) (durabletasks.Record, error) {
	if err := s.begin(ctx); err != nil {
		return durabletasks.Record{}, err
	}
	defer s.end()
	r, err := s.find(ctx, s.read.byRow, row, s.process)
	return r, callError(ctx, fmt.Sprintf("scan: row %d", row), err)
}

// readErrors collects the errors of records that cannot be read.
type readErrors struct {
	first []error
	more  int
}

func (e *readErrors) add(err error) {
	const limit = 10 // enough to begin a search; more would flood a log
	if len(e.first) == limit {
		e.more++
		return
	}
	e.first = append(e.first, err)
}

func (e *readErrors) err() error {
	all := errors.Join(e.first...)
	if e.more > 0 {
		return errors.Join(all, fmt.Errorf("sqlitestore: scan: %d more records cannot be read", e.more))
	}
	return all
}
