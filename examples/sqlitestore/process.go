package sqlitestore

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	sqlite3 "modernc.org/sqlite/lib"
)

// Which store runs a task? Every task belongs to one of the stores that have the
// file open: the one that created it, or the one that took it over from a store
// that is gone. Only an open store can own live workers, so it suffices to know
// which stores are open. Leases and heartbeats can only guess: a process that is
// stopped, or a machine that sleeps, looks dead and is not, and then two
// processes run one task. On one machine the operating system knows: a lock ends
// with its process, neither earlier nor later.
//
// So each open store has a number in the table process, and holds the lock of a
// file that is named after the number. A number that was committed is never used
// twice, so its file isn't either, and a file that is missing or not locked means
// that its store is gone.
//
// Numbers are added and removed only in a transaction, under the database's one
// lock for writing. So no store can look at a file that another has made but not
// yet locked.
//
// All this holds as long as the files are where everybody looks for them. A store
// that looks at the wrong place sees no other store alive. So before it takes
// anything over, a store checks that the database at its path is still the one
// that it has open.

func (s *Store) lockPath(process int64) string { return fmt.Sprintf("%s-process-%d", s.path, process) }

// inPlace reports whether the database, and so the files next to it, are where
// others look for them.
func (s *Store) inPlace() bool { return isAt(s.path, s.file) }

// register gives this store its number, and opens its lock file. It runs in a
// transaction.
func (s *Store) register() error {
	if err := s.removeDead(); err != nil {
		return err
	}
	const attempts = 100
	for range attempts {
		result, err := s.writer.ExecContext(context.Background(), addProcess)
		if err != nil {
			return err
		}
		if s.process, err = result.LastInsertId(); err != nil {
			return err
		}
		s.lock, err = openLockFile(s.lockPath(s.process), s.file)
		if err == nil {
			s.opened = append(s.opened, s.lock)
			return nil
		}
		if !hasCode(err, sqlite3.SQLITE_BUSY) {
			return err
		}
		// The file is held by a store whose number was not committed: by an Open
		// that fails at this moment, or a store whose database was removed alone.
		// The number stays in the table, so that removeDead removes the file.
	}
	return ErrBusy
}

// ensureRegistered makes this store's lock file again if another program has
// removed it, and its number if other stores have removed that since. It runs in
// a transaction.
func (s *Store) ensureRegistered() error {
	if !s.inPlace() {
		return ErrMoved
	}
	if err := s.lock.refresh(); err != nil {
		return err
	}
	n, err := rowsAffected(s.writer.ExecContext(context.Background(), insertProcess, s.process))
	if n > 0 {
		s.lost.Store(true)
	}
	return err
}

// restoreLockFile calls ensureRegistered if the lock file is missing. Scan does
// the same, but a host may call Scan seldom, and others can look for the file at
// any time.
func (s *Store) restoreLockFile(ctx context.Context) {
	if _, err := os.Lstat(s.lockPath(s.process)); errors.Is(err, fs.ErrNotExist) && s.inPlace() {
		_ = s.transact(ctx, s.ensureRegistered) // the next call tries again, and Scan reports the error
	}
}

// removeDead removes the numbers and lock files of stores that are no longer
// open. It runs in a transaction.
func (s *Store) removeDead() error {
	dead, err := readIntegers(s.writer.QueryContext(context.Background(), selectOthers, s.process))
	if err != nil {
		return err
	}
	dead = slices.DeleteFunc(dead, func(process int64) bool { return isLocked(s.lockPath(process)) })
	// This check must come last: the directory may be moved during the others.
	if !s.inPlace() {
		return ErrMoved
	}
	for _, process := range dead {
		// In a directory like /tmp it may be another user's file. If it stays,
		// it no longer matters.
		_ = os.Remove(s.lockPath(process))
		if err := s.exec(deleteProcess, process); err != nil {
			return err
		}
	}
	return nil
}
