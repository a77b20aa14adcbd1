package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Errors of this store, in addition to those of the contract; compare with
// [errors.Is].
var (
	// ErrBusy is returned when other calls, of this process or another, kept
	// the database locked for longer than [Options].BusyTimeout. Nothing was
	// changed.
	ErrBusy = errors.New("sqlitestore: database is locked")

	// ErrMoved is returned when the database, or the store's lock file next to
	// it, was moved or removed while the store was open; see [Store.Scan].
	ErrMoved = errors.New("sqlitestore: files were moved or removed while they were open")

	// ErrLinked is returned for a database file that has another name, a hard
	// link. SQLite puts its other files next to the name by which the database
	// is opened, so two names destroy it. It was not changed.
	ErrLinked = errors.New("sqlitestore: the database file has several names")

	// ErrFormat is returned for a file that is not a database of this package,
	// or one of another version. It was not changed.
	ErrFormat = errors.New("sqlitestore: not a task database")
)

// lockWait makes SQLite itself wait 20 ms for a lock. Nothing can interrupt this
// wait, so it is short, and retryBusy repeats it.
const lockWait = "busy_timeout(20)"

// logLimit is the size to which SQLite cuts its write-ahead log after a
// long-lived reader has let it grow: 8 MiB, about twice the usual size.
const logLimit = "journal_size_limit(8388608)"

// openDatabase opens a database file that exists, with pragmas for each
// connection. Nothing is read before the first use.
func openDatabase(path string, pragmas ...string) (*sql.DB, error) {
	query := url.Values{"mode": {"rw"}, "_pragma": pragmas}
	path = filepath.ToSlash(path)
	if !strings.HasPrefix(path, "/") {
		path = "/" + path // of a path such as C:/tasks.db
	}
	name := url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}
	return sql.Open("sqlite", name.String())
}

// creating is held from the creation of a file until it is closed. When a
// process closes a file, POSIX drops all its locks on that file, including those
// of a store that another goroutine has just opened.
var creating sync.Mutex

// createFile makes an empty file with mode 0600, unless the file exists: SQLite
// would make it readable for everybody. If like is not nil, the new file gets
// its mode and owner.
func createFile(path string, like fs.FileInfo) error {
	creating.Lock()
	defer creating.Unlock()
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if like != nil {
		giveTo(f, like)
		// File systems without modes refuse. A file that others cannot lock
		// keeps tasks waiting, but no task runs twice.
		_ = f.Chmod(like.Mode().Perm())
	}
	return f.Close()
}

// hasCode reports whether err is SQLite's error with this primary code.
func hasCode(err error, code int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == code
}

// retryBusy repeats f while the database is locked: until the store closes, ctx
// ends, or Options.BusyTimeout has passed.
func (s *Store) retryBusy(ctx context.Context, f func() error) error {
	return s.retryBusyUntil(ctx, time.Now().Add(s.opts.BusyTimeout), f)
}

func (s *Store) retryBusyUntil(ctx context.Context, deadline time.Time, f func() error) error {
	for {
		err := f()
		if !hasCode(err, sqlite3.SQLITE_BUSY) {
			return err
		}
		if time.Now().After(deadline) {
			return ErrBusy
		}
		time.Sleep(rand.N(2 * time.Millisecond))
		if err := s.stopped(ctx); err != nil {
			return err
		}
	}
}

// stopped returns the error of a call that must not go on, or nil.
func (s *Store) stopped(ctx context.Context) error {
	select {
	case <-s.closing:
		return durabletasks.ErrClosed
	default:
		return ctx.Err()
	}
}

// begin begins a call, which ends with end. Close waits for it.
func (s *Store) begin(ctx context.Context) error {
	s.calls.RLock()
	err := s.stopped(ctx)
	if err != nil {
		s.calls.RUnlock()
	}
	return err
}

func (s *Store) end() { s.calls.RUnlock() }

// lockWriter waits until this goroutine alone may use the writer.
func (s *Store) lockWriter(ctx context.Context, deadline time.Time) error {
	select {
	case s.writing <- struct{}{}:
		return nil
	default: // only a call that waits needs a timer
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case s.writing <- struct{}{}:
		return nil
	case <-late.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return durabletasks.ErrClosed
	}
}

func (s *Store) unlockWriter() { <-s.writing }

// transact runs f in a transaction. It commits if f returns nil, and rolls back
// otherwise, even if f panics. It holds the database's one lock for writing, so
// nothing changes between what f reads and what it writes.
//
// ctx ends the waiting, and stops a transaction that has not begun to commit. The
// driver never sees ctx: it would report the context's error for a statement
// that has already taken effect.
func (s *Store) transact(ctx context.Context, f func() error) error {
	// Both waits share one deadline: a call at the end of the queue waits no
	// longer than the one at its head.
	deadline := time.Now().Add(s.opts.BusyTimeout)
	if err := s.lockWriter(ctx, deadline); err != nil {
		return err
	}
	defer s.unlockWriter()
	if err := s.retryBusyUntil(ctx, deadline, func() error { return s.exec("BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// After some failures SQLite has rolled back already, and reports
			// that there is no transaction. After any other error the next
			// BEGIN fails.
			_ = s.exec("ROLLBACK")
		}
	}()
	err := f()
	if err == nil {
		err = ctx.Err()
	}
	if err == nil {
		err = s.exec("COMMIT")
	}
	committed = err == nil
	return err
}

// exec runs statements on the connection that writes.
func (s *Store) exec(statements string, args ...any) error {
	_, err := s.writer.ExecContext(context.Background(), statements, args...)
	return err
}

// rowsAffected returns how many rows a statement has changed.
func rowsAffected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// readIntegers returns the only column of a query's rows.
func readIntegers(rows *sql.Rows, err error) ([]int64, error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var numbers []int64
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		numbers = append(numbers, n)
	}
	return numbers, rows.Err()
}

// callError returns the error of a call as its caller sees it: errors of the
// contract and of this package unchanged, ctx's if ctx has ended, and the
// driver's as text only, so that its errors do not become part of this API.
func callError(ctx context.Context, doing string, err error) error {
	var conflict *durabletasks.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	for _, known := range []error{durabletasks.ErrExists, durabletasks.ErrNotFound, durabletasks.ErrClosed, ErrBusy, ErrMoved, ErrLinked, ErrFormat, ErrMissed} {
		if errors.Is(err, known) {
			return err
		}
	}
	switch {
	case hasCode(err, sqlite3.SQLITE_BUSY):
		return ErrBusy // of a statement that is not retried; its transaction was rolled back
	case hasCode(err, sqlite3.SQLITE_CANTOPEN):
		return fmt.Errorf("sqlitestore: %s: SQLite cannot open the database or a file next to it: %v", doing, err)
	}
	return fmt.Errorf("sqlitestore: %s: %v", doing, err)
}
