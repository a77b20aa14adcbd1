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

// Errors of this store, beside those of the contract; compare with
// [errors.Is].
var (
	// ErrBusy: other calls, of this process or another, have kept the database
	// locked for longer than [Options].BusyTimeout. Nothing was changed.
	ErrBusy = errors.New("sqlitestore: database is locked")

	// ErrMoved: the database, or the store's file beside it, was moved or
	// removed while the store was open; see [Store.Scan].
	ErrMoved = errors.New("sqlitestore: files were moved or removed while they were open")

	// ErrLinked: the database file has another name, a hard link. SQLite puts
	// the rest of a database beside the name by which it is opened, so those
	// who come by different names destroy it. It was not changed.
	ErrLinked = errors.New("sqlitestore: the database file has several names")

	// ErrFormat: the file is not a database of this package, or one of a newer
	// version. It was not changed.
	ErrFormat = errors.New("sqlitestore: not a task database")
)

// lockWait lets SQLite itself wait for a lock, for 20 ms. Nothing can interrupt
// it meanwhile, so it is short, and patiently asks again.
const lockWait = "busy_timeout(20)"

// logLimit is to what SQLite cuts its write-ahead log when a reader that stayed
// for long has let it grow: 8 MiB, about twice what it has otherwise.
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

// creating guards the moment between the creation of a file and its closing.
// When a process closes a file, POSIX drops all its locks on it, also those of
// a store that another goroutine has just opened.
var creating sync.Mutex

// create makes an empty file, unless there is one, that is the user's alone:
// SQLite would make it readable for everybody. The files that SQLite adds to it
// get its mode and owner, and so does a file that is to be like another.
func create(path string, like fs.FileInfo) error {
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
		// keeps tasks waiting, but nothing runs twice.
		_ = f.Chmod(like.Mode().Perm())
	}
	return f.Close()
}

// hasCode reports whether SQLite says this.
func hasCode(err error, code int) bool {
	var e *sqlite.Error
	return errors.As(err, &e) && e.Code()&0xff == code
}

// patiently calls f again while the database is locked: until the store
// closes, ctx ends, or Options.BusyTimeout is over.
func (s *Store) patiently(ctx context.Context, f func() error) error {
	return s.until(ctx, time.Now().Add(s.opts.BusyTimeout), f)
}

// until is patiently with the time at which to give up.
func (s *Store) until(ctx context.Context, deadline time.Time, f func() error) error {
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

// stopped reports why a call must not go on.
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

// takeTurn waits until this goroutine alone may use the writer, which
// <-s.turn ends.
func (s *Store) takeTurn(ctx context.Context, deadline time.Time) error {
	select {
	case s.turn <- struct{}{}:
		return nil
	default: // only who waits needs a timer
	}
	late := time.NewTimer(time.Until(deadline))
	defer late.Stop()
	select {
	case s.turn <- struct{}{}:
		return nil
	case <-late.C:
		return ErrBusy
	case <-ctx.Done():
		return ctx.Err()
	case <-s.closing:
		return durabletasks.ErrClosed
	}
}

// transact runs f in a transaction, which is committed if f returns nil and
// undone otherwise, also if f panics. It holds the only lock for writing that
// the database has, so f sees what it changes without anybody in between.
//
// ctx ends the waiting and stops what has not begun to commit. The driver never
// sees it: it would report the context's error for a statement that has already
// taken effect.
func (s *Store) transact(ctx context.Context, f func() error) error {
	// One time for both: who waits in a queue waits no longer than its head.
	deadline := time.Now().Add(s.opts.BusyTimeout)
	if err := s.takeTurn(ctx, deadline); err != nil {
		return err
	}
	defer func() { <-s.turn }()
	if err := s.until(ctx, deadline, func() error { return s.exec("BEGIN IMMEDIATE") }); err != nil {
		return err
	}
	committed := false
	defer func() {
		if !committed {
			// After some failures SQLite has undone everything by itself, and
			// says now that there is nothing to undo. If this should fail for
			// another reason, the next BEGIN does too.
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

func (s *Store) exec(statement string) error {
	_, err := s.writer.ExecContext(context.Background(), statement)
	return err
}

// rows returns how many rows a statement has changed.
func rows(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// explained returns the error of a call as the caller sees it: the contract's
// and the store's own as they are, ctx's if ctx has ended, and what the driver
// says as text only, so that its errors do not become part of this package.
func explained(ctx context.Context, doing string, err error) error {
	var conflict *durabletasks.ConflictError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &conflict):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	}
	for _, own := range []error{durabletasks.ErrExists, durabletasks.ErrNotFound, durabletasks.ErrClosed, ErrBusy, ErrMoved, ErrLinked, ErrFormat, ErrMissed} {
		if errors.Is(err, own) {
			return err
		}
	}
	switch {
	case hasCode(err, sqlite3.SQLITE_BUSY):
		return ErrBusy // of a statement that nobody repeats; its transaction was undone
	case hasCode(err, sqlite3.SQLITE_CANTOPEN):
		return fmt.Errorf("sqlitestore: %s: SQLite cannot open the database, or a file that it needs beside it: %v", doing, err)
	}
	return fmt.Errorf("sqlitestore: %s: %v", doing, err)
}
