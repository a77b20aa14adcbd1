package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"

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
// a file that is named by it, <path>-process-<number>: an empty SQLite database
// in an exclusive transaction, since SQLite's locks work on every system that
// SQLite works on. Numbers are never used twice, so neither are the files, and
// a file that is missing is a store that is gone.
//
// A number is entered, and those of the dead are removed, only under the
// database's one lock for writing: nobody can look at a file whose store has
// made it but not yet locked it.

// presence is the lock by which others know that a store is open.
type presence struct {
	file string
	db   *sql.DB
	conn *sql.Conn
}

func (s *Store) fileOf(process int64) string { return fmt.Sprintf("%s-process-%d", s.path, process) }

// enter gives this store its number, and shows its presence. It is part of a
// transaction.
func (s *Store) enter() error {
	if err := s.bury(); err != nil {
		return err
	}
	result, err := s.writer.ExecContext(context.Background(), addProcess)
	if err != nil {
		return err
	}
	if s.own, err = result.LastInsertId(); err != nil {
		return err
	}
	file := s.fileOf(s.own)
	if err := createPrivate(file); err != nil {
		return err
	}
	sign, err := lock(file)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, sign)
	return nil
}

// bury removes the numbers and files of stores that are no longer open. It is
// part of a transaction.
func (s *Store) bury() error {
	others, err := s.others()
	if err != nil {
		return err
	}
	for _, process := range others {
		file := s.fileOf(process)
		if isOpen(file) {
			continue
		}
		if err := os.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
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

// lock locks a file that exists, or fails at once. Without a journal in memory,
// SQLite would put one beside the file.
func lock(file string) (*presence, error) {
	db, err := openDatabase(file, "journal_mode(MEMORY)")
	if err != nil {
		return nil, err
	}
	p := &presence{file: file, db: db}
	ctx := context.Background()
	if p.conn, err = db.Conn(ctx); err == nil {
		_, err = p.conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	return p, nil
}

// unlock unlocks the file.
func (p *presence) unlock() error {
	var err error
	if p.conn != nil {
		err = p.conn.Close()
	}
	return errors.Join(err, p.db.Close())
}

// Close unlocks the file and removes it. If another is looking at it, it
// may stay; then they remove it.
func (p *presence) Close() error {
	err := p.unlock()
	_ = os.Remove(p.file)
	return err
}

// isOpen reports whether a store that has this file is open. In doubt it is:
// that keeps tasks waiting, where the opposite would run them twice.
func isOpen(file string) bool {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	p, err := lock(file)
	return err != nil || p.unlock() != nil
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
// Errors: [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as text.
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
