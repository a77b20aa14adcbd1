package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Defaults of [Options].
const (
	DefaultMaxRecordBytes = 8 << 20
	DefaultBusyTimeout    = 10 * time.Second
	DefaultWatchInterval  = 50 * time.Millisecond
)

// maxRecordBytes is below what SQLite can hold in a row, a billion bytes.
const maxRecordBytes = 900_000_000

// Options are the settings of a [Store]. The zero value of a field is its
// default.
type Options struct {
	// Sync makes every commit wait until the disk has it
	// (PRAGMA synchronous=FULL): it then survives a loss of power. Without it
	// (NORMAL), commits survive the death of every process, but those of the
	// last moments may be gone after a loss of power or a crash of the
	// operating system; the database is whole then, too. All processes that
	// share a file should agree.
	Sync bool

	// MaxRecordBytes bounds the texts and payloads of one record together;
	// beyond it, Create and Update report a [*durabletasks.TooLargeError]. Records that are
	// stored already are read whatever their size. Zero means
	// [DefaultMaxRecordBytes].
	MaxRecordBytes int

	// BusyTimeout is how long a call waits for others that write, in this
	// process and in others, before it gives up with [ErrBusy]. Zero means
	// [DefaultBusyTimeout].
	BusyTimeout time.Duration

	// WatchInterval is how often [Store.Watch] looks for changes. Zero means
	// [DefaultWatchInterval].
	WatchInterval time.Duration

	// Now is the clock for expiry. Nil means a [durabletasks.Clock], which
	// does not believe a jump ahead at once.
	Now func() time.Time
}

// Store is a [durabletasks.TaskStore] in a SQLite database. It is safe for
// concurrent use, and several stores, in one process or many, may have the
// same file open. Make one with [Open].
type Store struct {
	path string
	file fs.FileInfo // what was at path when the database was opened
	opts Options

	own    int64       // this store's number among the processes
	sign   *presence   // changes in turn
	buried atomic.Bool // others took this store for gone, and Scan has not told so yet

	turn   chan struct{} // held by the one goroutine that uses writer
	writer *sql.Conn
	write  struct{ insert, update, version, logChange, logSweep, sweep, trimLog *sql.Stmt }
	read   struct{ byID, byRow, log *sql.Stmt } // for several connections

	opened []io.Closer

	seen atomic.Int64 // the newest change that Watch has told, or that was there before this store

	calls   sync.RWMutex  // read-held by every call that runs
	closing chan struct{} // closed when Close begins
	close   sync.Once
}

var (
	_ durabletasks.TaskStore = (*Store)(nil)
	_ durabletasks.Scanner   = (*Store)(nil)
	_ durabletasks.Watcher   = (*Store)(nil)
)

// Open opens the database file at path, or makes it, with mode 0600, in a
// directory that must exist. Other processes may have it open. Nil opts mean
// the defaults.
//
// Errors: [durabletasks.ErrInvalid], naming the field; [ErrFormat];
// [ErrLinked]; [ErrBusy]; [ErrMoved]; those of the file system and of SQLite, as text.
func Open(path string, opts *Options) (*Store, error) {
	s := &Store{turn: make(chan struct{}, 1), closing: make(chan struct{})}
	if opts != nil {
		s.opts = *opts
	}
	if err := s.opts.complete(); err != nil {
		return nil, err
	}
	if err := s.open(path); err != nil {
		if hasCode(err, sqlite3.SQLITE_NOTADB) {
			err = ErrFormat
		}
		ctx := context.Background()
		return nil, errors.Join(explained(ctx, "open", err), explained(ctx, "close", s.release()))
	}
	return s, nil
}

func (o *Options) complete() error {
	if o.MaxRecordBytes == 0 {
		o.MaxRecordBytes = DefaultMaxRecordBytes
	}
	if o.BusyTimeout == 0 {
		o.BusyTimeout = DefaultBusyTimeout
	}
	if o.WatchInterval == 0 {
		o.WatchInterval = DefaultWatchInterval
	}
	if o.Now == nil {
		o.Now = new(durabletasks.Clock).Now
	}
	switch {
	case o.MaxRecordBytes < 0 || o.MaxRecordBytes > maxRecordBytes:
		return fmt.Errorf("%w: Options.MaxRecordBytes is not within 1 and %d", durabletasks.ErrInvalid, maxRecordBytes)
	case o.BusyTimeout < 0:
		return fmt.Errorf("%w: Options.BusyTimeout is negative", durabletasks.ErrInvalid)
	case o.WatchInterval < 0:
		return fmt.Errorf("%w: Options.WatchInterval is negative", durabletasks.ErrInvalid)
	}
	return nil
}

func (s *Store) open(path string) (err error) {
	if s.path, err = filepath.Abs(path); err != nil {
		return err
	}
	if err := create(s.path, nil); err != nil {
		return err
	}
	// Stores that come by different links must look for each other at one place.
	if s.path, err = filepath.EvalSymlinks(s.path); err != nil {
		return err
	}
	// Before SQLite opens it: should it be another file by then, this store
	// takes nothing over.
	if s.file, err = os.Lstat(s.path); err != nil {
		return err
	}
	switch {
	case !s.file.Mode().IsRegular():
		return errors.New("what is at the path is no file")
	case isLinked(s.file):
		return ErrLinked
	}
	if err := s.openWriter(); err != nil {
		return err
	}
	return s.openReaders()
}

// openWriter opens the connection that writes.
func (s *Store) openWriter() error {
	synchronous := "synchronous(NORMAL)"
	if s.opts.Sync {
		synchronous = "synchronous(FULL)"
	}
	db, err := openDatabase(s.path, lockWait, synchronous, logLimit)
	if err != nil {
		return err
	}
	s.opened = append(s.opened, db)
	ctx := context.Background()
	err = s.patiently(ctx, func() (err error) {
		s.writer, err = db.Conn(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, s.writer)
	if err := s.prepareFile(ctx); err != nil {
		return err
	}
	return s.prepare(s.writer, []statement{
		{&s.write.insert, insertTask},
		{&s.write.update, updateTask},
		{&s.write.version, storedVersion},
		{&s.write.logChange, logChange},
		{&s.write.logSweep, logSweep},
		{&s.write.sweep, sweepTasks},
		{&s.write.trimLog, trimLog},
	})
}

// openReaders opens the connections that read.
func (s *Store) openReaders() error {
	db, err := openDatabase(s.path, lockWait, "query_only(1)")
	if err != nil {
		return err
	}
	s.opened = append(s.opened, db)
	const most = 8
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(most)
	return s.prepare(db, []statement{
		{&s.read.byID, taskByID},
		{&s.read.byRow, taskByRow},
		{&s.read.log, changes},
	})
}

type statement struct {
	prepared **sql.Stmt
	text     string
}

func (s *Store) prepare(on interface {
	PrepareContext(context.Context, string) (*sql.Stmt, error)
}, statements []statement) error {
	ctx := context.Background()
	for _, st := range statements {
		err := s.patiently(ctx, func() (err error) {
			*st.prepared, err = on.PrepareContext(ctx, st.text)
			return err
		})
		if err != nil {
			return err
		}
		s.opened = append(s.opened, *st.prepared)
	}
	return nil
}

// prepareFile makes the tables of a new file, and enters this store among the
// processes that have it open.
func (s *Store) prepareFile(ctx context.Context) error {
	// Before anything is changed: the file may belong to another program.
	if _, err := s.isNew(ctx); err != nil {
		return err
	}
	var mode string
	err := s.patiently(ctx, func() error {
		return s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	})
	if err != nil {
		return err
	}
	if mode != "wal" {
		return errors.New("the file system does not allow SQLite's write-ahead log")
	}
	err = s.transact(ctx, func() error {
		fresh, err := s.isNew(ctx)
		if err != nil {
			return err
		}
		if fresh {
			header := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, formatVersion)
			if err := s.exec(header + schema); err != nil {
				return err
			}
		}
		if err := s.enter(); err != nil {
			return err
		}
		var seen int64
		if err := s.writer.QueryRowContext(ctx, newest).Scan(&seen); err != nil {
			return err
		}
		s.seen.Store(seen)
		return nil
	})
	if err == nil {
		s.sign.entered = true
	}
	return err
}

// isNew reports whether the file is an empty database. If it is neither that
// nor one of this package's, the error is ErrFormat.
func (s *Store) isNew(ctx context.Context) (bool, error) {
	var application, version, tables int
	err := s.patiently(ctx, func() error {
		return s.writer.QueryRowContext(ctx, `SELECT application_id, user_version, (SELECT count(*) FROM sqlite_schema)
			FROM pragma_application_id, pragma_user_version`).Scan(&application, &version, &tables)
	})
	switch {
	case err != nil:
		return false, err
	case application == 0 && version == 0 && tables == 0:
		return true, nil
	case application != applicationID:
		return false, ErrFormat
	case version != formatVersion:
		return false, fmt.Errorf("%w of version %d, but of version %d", ErrFormat, formatVersion, version)
	}
	return false, nil
}

func (s *Store) now() int64 { return millis(s.opts.Now()) }

// columns returns what a record's columns hold, if it is not too large.
func (s *Store) columns(r *durabletasks.Record) ([]any, error) {
	columns := fieldsOf(r)
	if size := sizeOf(r.ID, columns); size > s.opts.MaxRecordBytes {
		return nil, &durabletasks.TooLargeError{Size: size, Limit: s.opts.MaxRecordBytes}
	}
	return columns, nil
}

// Create implements [durabletasks.TaskStore]. The task is for this store's
// process to run; see [Store.Scan].
//
// Errors: [durabletasks.ErrExists]; [*durabletasks.TooLargeError]; [ErrBusy];
// [durabletasks.ErrClosed]; ctx's; SQLite's, as text.
func (s *Store) Create(ctx context.Context, r durabletasks.Record) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	columns, err := s.columns(&r)
	if err != nil {
		return err
	}
	err = s.transact(ctx, func() error {
		n, err := rows(s.write.insert.Exec(append(columns, []byte(r.ID), s.own)...))
		if err == nil && n == 0 {
			err = durabletasks.ErrExists
		}
		if err != nil {
			return err
		}
		return s.changed(r.ID)
	})
	return explained(ctx, "create", err)
}

// Get implements [durabletasks.TaskStore].
//
// Errors: [durabletasks.ErrNotFound]; [ErrBusy]; [durabletasks.ErrClosed];
// ctx's; SQLite's, as text.
func (s *Store) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	if err := s.begin(ctx); err != nil {
		return durabletasks.Record{}, err
	}
	defer s.end()
	r, err := s.find(ctx, s.read.byID, []byte(id))
	return r, explained(ctx, "get", err)
}

// find returns the record that a statement finds by a key, unless it has
// expired.
func (s *Store) find(ctx context.Context, statement *sql.Stmt, key ...any) (r durabletasks.Record, err error) {
	err = s.patiently(ctx, func() (err error) {
		r, err = readRecord(statement.QueryRowContext(ctx, append(key[:len(key):len(key)], s.now())...).Scan)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = durabletasks.ErrNotFound
	}
	return r, err
}

// Update implements [durabletasks.TaskStore].
//
// Errors: [*durabletasks.ConflictError]; [durabletasks.ErrNotFound];
// [*durabletasks.TooLargeError]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as
// text.
func (s *Store) Update(ctx context.Context, next durabletasks.Record) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	columns, err := s.columns(&next)
	if err != nil {
		return err
	}
	err = s.transact(ctx, func() error {
		id, now := []byte(next.ID), s.now()
		n, err := rows(s.write.update.Exec(append(columns, id, next.Version, now)...))
		if err != nil {
			return err
		}
		if n == 0 {
			return s.whyNot(id, next.Version, now)
		}
		return s.changed(next.ID)
	})
	return explained(ctx, "update", err)
}

// whyNot tells why an update found nothing to change, in the same transaction,
// so that the answer is still true.
func (s *Store) whyNot(id []byte, expected, now int64) error {
	conflict := &durabletasks.ConflictError{Expected: expected}
	switch err := s.write.version.QueryRow(id, now).Scan(&conflict.Actual); {
	case errors.Is(err, sql.ErrNoRows):
		return durabletasks.ErrNotFound
	case err != nil:
		return err
	}
	return conflict
}

// Sweep implements [durabletasks.TaskStore]. It is one transaction, during
// which no other process can write.
//
// Errors: [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as text.
func (s *Store) Sweep(ctx context.Context, now time.Time) (int, error) {
	if err := s.begin(ctx); err != nil {
		return 0, err
	}
	defer s.end()
	var n int64
	err := s.transact(ctx, func() (err error) {
		n, err = s.sweep(millis(now))
		return err
	})
	if err != nil {
		return 0, explained(ctx, "sweep", err)
	}
	return int(n), nil
}

func (s *Store) sweep(now int64) (int64, error) {
	if _, err := s.write.logSweep.Exec(s.own, now); err != nil {
		return 0, err
	}
	n, err := rows(s.write.sweep.Exec(now))
	if err != nil {
		return 0, err
	}
	return n, s.trimLog()
}

// Close implements [durabletasks.TaskStore]. The tasks that were this store's
// to run are now for others to take over.
func (s *Store) Close() (err error) {
	s.close.Do(func() {
		close(s.closing)
		s.calls.Lock() // when the calls that run have ended
		defer s.calls.Unlock()
		err = explained(context.Background(), "close", s.release())
	})
	return err
}

// release closes what open has opened, as far as it came, in reverse. The
// writer's statements are among it: database/sql forgets those of a connection
// of its own, and SQLite keeps a connection open that has statements left. The
// file's last connection moves what the write-ahead log holds into the file.
func (s *Store) release() error {
	var errs []error
	for _, c := range slices.Backward(s.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
