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

// maxRecordBytes is the largest Options.MaxRecordBytes. SQLite takes a billion
// bytes in a row, so its own limit is never reached.
const maxRecordBytes = 900_000_000

// Options are the settings of a [Store]. The zero value of a field is its
// default.
type Options struct {
	// Sync makes every commit wait until it is on the disk
	// (PRAGMA synchronous=FULL), so that it survives a loss of power. Without
	// Sync (NORMAL), commits survive the death of every process, but a loss of
	// power or a crash of the operating system may undo the latest; the database
	// stays consistent. All processes that share a file should use the same
	// setting.
	Sync bool

	// MaxRecordBytes limits the texts and payloads of one record together.
	// Create and Update return a [*durabletasks.TooLargeError] for a larger
	// record. Stored records are read whatever their size. Zero means
	// [DefaultMaxRecordBytes].
	MaxRecordBytes int

	// BusyTimeout is how long a call waits for other writers, in this process
	// and in others, before it returns [ErrBusy]. Zero means
	// [DefaultBusyTimeout].
	BusyTimeout time.Duration

	// WatchInterval is how often [Store.Watch] looks for changes. Zero means
	// [DefaultWatchInterval].
	WatchInterval time.Duration

	// Now is the clock for expiry. Nil means a [durabletasks.Clock], which
	// does not follow a jump ahead at once.
	Now func() time.Time
}

// Store is a [durabletasks.TaskStore] in a SQLite database. It is safe for
// concurrent use, and several stores, in one process or many, may have the
// same file open. Make one with [Open].
type Store struct {
	path string
	file fs.FileInfo // the file at path when the database was opened
	opts Options

	process int64       // this store's number in the table process
	lock    *lockFile   // changes only while writing is held
	lost    atomic.Bool // others removed this store's number, and Scan has not reported it yet

	writing chan struct{} // holds a value while a goroutine uses writer
	writer  *sql.Conn
	write   struct{ insert, update, version, logChange, logExpired, deleteExpired, trimLog *sql.Stmt }
	read    struct{ byID, byRow, changes *sql.Stmt } // on a pool of connections

	opened []io.Closer // what Close closes, in the order of opening

	seen atomic.Int64 // the last entry of the log that Watch has read

	calls     sync.RWMutex  // read-locked by every call while it runs
	closing   chan struct{} // closed when Close begins
	closeOnce sync.Once
}

var (
	_ durabletasks.TaskStore = (*Store)(nil)
	_ durabletasks.Scanner   = (*Store)(nil)
	_ durabletasks.Watcher   = (*Store)(nil)
)

// Open opens the database file at path. If there is none, Open makes it, with
// mode 0600, in a directory that must exist. Other processes may have the file
// open. Nil opts mean the defaults.
//
// Errors: [durabletasks.ErrInvalid] for an empty path or a wrong field of opts;
// [ErrFormat]; [ErrLinked]; [ErrBusy]; [ErrMoved]; those of the file system and of
// SQLite, as text.
func Open(path string, opts *Options) (*Store, error) {
	if path == "" {
		return nil, fmt.Errorf("%w: path is empty", durabletasks.ErrInvalid)
	}
	s := &Store{writing: make(chan struct{}, 1), closing: make(chan struct{})}
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
		return nil, errors.Join(callError(ctx, "open", err), callError(ctx, "close", s.release()))
	}
	return s, nil
}

// complete sets the defaults and checks the rest.
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
		return fmt.Errorf("%w: Options.MaxRecordBytes is not between 1 and %d", durabletasks.ErrInvalid, maxRecordBytes)
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
	if err := createFile(s.path, nil); err != nil {
		return err
	}
	// Stores that use different symbolic links must look for each other at one
	// place.
	if s.path, err = filepath.EvalSymlinks(s.path); err != nil {
		return err
	}
	// This must come before SQLite opens the file: if that is another file by
	// then, inPlace reports false and this store takes nothing over.
	if s.file, err = os.Lstat(s.path); err != nil {
		return err
	}
	switch {
	case !s.file.Mode().IsRegular():
		return errors.New("the path is not a regular file")
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
	err = s.retryBusy(ctx, func() (err error) {
		s.writer, err = db.Conn(ctx)
		return err
	})
	if err != nil {
		return err
	}
	s.opened = append(s.opened, s.writer)
	if err := s.initialize(ctx); err != nil {
		return err
	}
	return s.prepare(s.writer, []statement{
		{&s.write.insert, insertTask},
		{&s.write.update, updateTask},
		{&s.write.version, selectVersion},
		{&s.write.logChange, logChange},
		{&s.write.logExpired, logExpired},
		{&s.write.deleteExpired, deleteExpired},
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
	const limit = 8
	db.SetMaxOpenConns(limit)
	db.SetMaxIdleConns(limit)
	return s.prepare(db, []statement{
		{&s.read.byID, selectByID},
		{&s.read.byRow, selectByRow},
		{&s.read.changes, selectChanges},
	})
}

type statement struct {
	prepared **sql.Stmt
	text     string
}

// preparer is a *sql.DB or a *sql.Conn.
type preparer interface {
	PrepareContext(ctx context.Context, text string) (*sql.Stmt, error)
}

func (s *Store) prepare(on preparer, statements []statement) error {
	ctx := context.Background()
	for _, st := range statements {
		err := s.retryBusy(ctx, func() (err error) {
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

// initialize makes the tables of a new file, and registers this store among those
// that have the file open.
func (s *Store) initialize(ctx context.Context) error {
	// This must come before any change: the file may be another program's.
	if _, err := s.isEmpty(ctx); err != nil {
		return err
	}
	var mode string
	err := s.retryBusy(ctx, func() error {
		return s.writer.QueryRowContext(ctx, "PRAGMA journal_mode = WAL").Scan(&mode)
	})
	if err != nil {
		return err
	}
	if mode != "wal" {
		return errors.New("the file system does not allow SQLite's write-ahead log")
	}
	err = s.transact(ctx, func() error {
		empty, err := s.isEmpty(ctx)
		if err != nil {
			return err
		}
		if empty {
			header := fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d;", applicationID, formatVersion)
			if err := s.exec(header + schema); err != nil {
				return err
			}
		}
		if err := s.register(); err != nil {
			return err
		}
		var newest int64
		if err := s.writer.QueryRowContext(ctx, selectNewest).Scan(&newest); err != nil {
			return err
		}
		s.seen.Store(newest)
		return nil
	})
	if err == nil {
		s.lock.registered = true
	}
	return err
}

// isEmpty reports whether the file is an empty database. If it is neither empty
// nor a database of this package, the error is ErrFormat.
func (s *Store) isEmpty(ctx context.Context) (bool, error) {
	var application, version, tables int
	err := s.retryBusy(ctx, func() error {
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

// Create implements [durabletasks.TaskStore]. The task is this store's to run; see
// [Store.Scan].
//
// Errors: [durabletasks.ErrExists]; [*durabletasks.TooLargeError]; [ErrBusy];
// [durabletasks.ErrClosed]; ctx's; SQLite's, as text.
func (s *Store) Create(ctx context.Context, r durabletasks.Record) error {
	return s.put(ctx, "create", &r, func(id []byte, fields []any) error {
		n, err := rowsAffected(s.write.insert.Exec(append(fields, id, s.process)...))
		if err == nil && n == 0 {
			err = durabletasks.ErrExists
		}
		return err
	})
}

// Update implements [durabletasks.TaskStore].
//
// Errors: [*durabletasks.ConflictError]; [durabletasks.ErrNotFound];
// [*durabletasks.TooLargeError]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's;
// SQLite's, as text.
func (s *Store) Update(ctx context.Context, next durabletasks.Record) error {
	return s.put(ctx, "update", &next, func(id []byte, fields []any) error {
		now := s.now()
		n, err := rowsAffected(s.write.update.Exec(append(fields, id, next.Version, now)...))
		if err != nil || n > 0 {
			return err
		}
		// No row has this id and version. In the same transaction, find out why.
		conflict := &durabletasks.ConflictError{Expected: next.Version}
		switch err := s.write.version.QueryRow(id, now).Scan(&conflict.Actual); {
		case errors.Is(err, sql.ErrNoRows):
			return durabletasks.ErrNotFound
		case err != nil:
			return err
		}
		return conflict
	})
}

// put commits one record, if it is not too large, and its entry in the log of
// changes. write executes the statement that stores the record's fields.
func (s *Store) put(ctx context.Context, doing string, r *durabletasks.Record, write func(id []byte, fields []any) error) error {
	if err := s.begin(ctx); err != nil {
		return err
	}
	defer s.end()
	fields := encodeFields(r)
	if size := sizeOf(r.ID, fields); size > s.opts.MaxRecordBytes {
		return &durabletasks.TooLargeError{Size: size, Limit: s.opts.MaxRecordBytes}
	}
	err := s.transact(ctx, func() error {
		if err := write([]byte(r.ID), fields); err != nil {
			return err
		}
		return s.logChanged(r.ID)
	})
	return callError(ctx, doing, err)
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
	return r, callError(ctx, "get", err)
}

// find returns the record that a statement finds by a key, unless it has
// expired.
func (s *Store) find(ctx context.Context, statement *sql.Stmt, key ...any) (r durabletasks.Record, err error) {
	err = s.retryBusy(ctx, func() (err error) {
		args := append(slices.Clone(key), s.now())
		r, err = readRecord(statement.QueryRowContext(ctx, args...).Scan)
		return err
	})
	if errors.Is(err, sql.ErrNoRows) {
		err = durabletasks.ErrNotFound
	}
	return r, err
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
		if _, err := s.write.logExpired.Exec(s.process, millis(now)); err != nil {
			return err
		}
		if n, err = rowsAffected(s.write.deleteExpired.Exec(millis(now))); err != nil {
			return err
		}
		return s.trimLog()
	})
	if err != nil {
		return 0, callError(ctx, "sweep", err)
	}
	return int(n), nil
}

// Close implements [durabletasks.TaskStore]. Other stores may now take over the
// tasks that this one ran.
func (s *Store) Close() (err error) {
	s.closeOnce.Do(func() {
		close(s.closing)
		s.calls.Lock() // waits for the calls that run
		defer s.calls.Unlock()
		err = callError(context.Background(), "close", s.release())
	})
	return err
}

// release closes everything that open has opened, in reverse order, even if open
// failed midway. That includes the writer's statements: database/sql forgets
// those of a single connection, and SQLite keeps a connection open that has
// statements left. The file's last connection moves the content of the
// write-ahead log into the file.
func (s *Store) release() error {
	var errs []error
	for _, c := range slices.Backward(s.opened) {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}
