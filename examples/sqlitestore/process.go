package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Whose task is it to run? Every task belongs to one of the stores that have
// the file open: the one that created it, or the one that took it over when
// the former had gone. Only a store that is open can be the owner of live
// workers, so what has to be known is which stores are open. Leases and
// heartbeats can only guess it: a process that is stopped, or a machine that
// sleeps, looks dead and is not, and then two run one task. On one machine the
// operating system knows: a lock ends with its process, not earlier, not later.
//
// So each open store has a number in the table process, and holds the lock of
// a file that is named by it, its presence. Numbers that were committed are
// never used twice, so neither are their files, and a file that is missing is a
// store that is gone.
//
// A number is entered, and those of the dead are removed, only under the
// database's one lock for writing: nobody can look at a file whose store has
// made it but not yet locked it.
//
// All this holds as long as the files are where everybody looks for them. Who
// looks at the wrong place sees nobody alive; so before it takes over, a store
// makes sure that the database which it has open is still the one at its path.

func (s *Store) fileOf(process int64) string { return fmt.Sprintf("%s-process-%d", s.path, process) }

// inPlace reports whether the database is where others look for it, and so are
// the files beside it.
func (s *Store) inPlace() bool { return isAt(s.path, s.file) }

// errBuried is what Scan reports once, if others took this store for gone while
// its file was missing.
var errBuried = fmt.Errorf("%w: other stores took this one for gone, and its tasks", ErrMoved)

// enter gives this store its number, and shows its presence. It is part of a
// transaction.
func (s *Store) enter() error {
	if err := s.bury(); err != nil {
		return err
	}
	const most = 100
	for range most {
		result, err := s.writer.ExecContext(context.Background(), addProcess)
		if err != nil {
			return err
		}
		if s.own, err = result.LastInsertId(); err != nil {
			return err
		}
		s.sign, err = show(s.fileOf(s.own), s.file)
		if err == nil {
			s.opened = append(s.opened, s.sign)
			return nil
		}
		// Somebody holds this file whose number was not committed: an Open that
		// fails at this moment, or a store whose database was removed alone.
		// The number stays entered, so that the file is removed after them.
		if !hasCode(err, sqlite3.SQLITE_BUSY) {
			return err
		}
	}
	return ErrBusy
}

// appear makes sure that others see this store, since somebody may have removed
// its file. It is part of a transaction.
func (s *Store) appear() error {
	if !s.inPlace() {
		return ErrMoved
	}
	if err := s.sign.renew(); err != nil {
		return err
	}
	ctx := context.Background()
	var entered bool
	if err := s.writer.QueryRowContext(ctx, isEntered, s.own).Scan(&entered); err != nil || entered {
		return err
	}
	s.buried.Store(true)
	_, err := s.writer.ExecContext(ctx, enterAgain, s.own)
	return err
}

// reappear is appear for a store whose file is missing. Scan does the same, but
// a host may call it seldom, and others can look for the file at any time.
func (s *Store) reappear(ctx context.Context) {
	if _, err := os.Lstat(s.fileOf(s.own)); errors.Is(err, fs.ErrNotExist) && s.inPlace() {
		_ = s.transact(ctx, s.appear) // the next look tries again, and Scan tells
	}
}

// bury removes the numbers and files of stores that are no longer open. It is
// part of a transaction.
func (s *Store) bury() error {
	others, err := s.others()
	if err != nil {
		return err
	}
	gone := slices.DeleteFunc(others, func(process int64) bool { return isOpen(s.fileOf(process)) })
	// Not before: it could be moved while the others are looked for.
	if !s.inPlace() {
		return ErrMoved
	}
	for _, process := range gone {
		// It may be another user's, in a directory like /tmp. If it stays, it
		// means nothing any more.
		_ = os.Remove(s.fileOf(process))
		if _, err := s.writer.ExecContext(context.Background(), dropProcess, process); err != nil {
			return err
		}
	}
	return nil
}

// others returns the numbers of the other stores that are, or were, open.
func (s *Store) others() ([]int64, error) {
	found, err := s.writer.QueryContext(context.Background(), otherProcess, s.own)
	return integers(found, err)
}

// integers returns the only column of what a query has found.
func integers(found *sql.Rows, err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	defer found.Close()
	var numbers []int64
	for found.Next() {
		var n int64
		if err := found.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, found.Err()
}

// Scan implements [durabletasks.Scanner] for a file that other processes have
// open, too. It shows the tasks that are this process's to run: those that
// this store has created, or an earlier Scan of it has shown, and those of
// stores that are no longer open, be it that they were closed or that their
// process has died. These it takes over before it shows them, so that of
// several processes that scan only one is shown a task. The tasks of stores
// that are open elsewhere it does not show.
//
// A task that was taken over stays with this store until it is closed, also if
// visit does nothing for it. Versions and everything else that a record says
// stay as they are.
//
// A record that cannot be read keeps no other from being shown. What is wrong
// with those is reported when the others have been shown, by their rows, since
// ids are not for logs. If visit ends the scan, there is no error.
//
// All this needs the database and the files beside it to stay at their place. If
// the database is no longer at its path, Scan takes nothing over, shows nothing
// and reports [ErrMoved]: this store and those that open the path no longer see
// each other. Close it then, and open it where the database is. If only the
// store's own file is missing, it is made anew. Should others have looked in
// the meantime, they run this store's tasks now; Scan reports ErrMoved once, and
// shows the next time what was not taken.
//
// Errors: [ErrMoved]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as
// text.
func (s *Store) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	own, err := s.takeOver(ctx)
	if err != nil {
		return err
	}
	var bad unreadable
	for _, row := range own {
		r, err := s.readRow(ctx, row)
		switch {
		case errors.Is(err, durabletasks.ErrNotFound):
		case s.concernsAll(ctx, err):
			return err
		case err != nil:
			bad.add(err)
		case !r.Status.Terminal() && !visit(r):
			return nil
		}
	}
	return bad.err()
}

// concernsAll reports whether an error would come again for every record.
func (s *Store) concernsAll(ctx context.Context, err error) bool {
	return err != nil && (errors.Is(err, ErrBusy) || s.stopped(ctx) != nil)
}

// unreadable is what keeps records from being read.
type unreadable struct {
	first []error
	more  int
}

func (u *unreadable) add(err error) {
	const most = 10 // enough for somebody to go and look; a log is not flooded
	if len(u.first) == most {
		u.more++
		return
	}
	u.first = append(u.first, err)
}

func (u *unreadable) err() error {
	all := errors.Join(u.first...)
	if u.more > 0 {
		return errors.Join(all, fmt.Errorf("sqlitestore: scan: %d more records cannot be read", u.more))
	}
	return all
}

// takeOver makes the tasks of stores that are gone this store's, and returns
// the rows of all unfinished tasks that are.
func (s *Store) takeOver(ctx context.Context) (own []int64, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, err
	}
	defer s.end()
	err = s.transact(ctx, func() error {
		if err := s.appear(); err != nil {
			return err
		}
		if err := s.bury(); err != nil {
			return err
		}
		if _, err := s.writer.ExecContext(context.Background(), adoptOrphans, s.own); err != nil {
			return err
		}
		found, err := s.writer.QueryContext(context.Background(), ownUnfinished, s.own)
		own, err = integers(found, err)
		return err
	})
	if err == nil && s.buried.Swap(false) {
		err = errBuried
	}
	return own, explained(ctx, "scan", err)
}

func (s *Store) readRow(ctx context.Context, row int64) (durabletasks.Record, error) {
	if err := s.begin(ctx); err != nil {
		return durabletasks.Record{}, err
	}
	defer s.end()
	r, err := s.find(ctx, s.read.byRow, row, s.own)
	return r, explained(ctx, fmt.Sprintf("scan: row %d", row), err)
}
