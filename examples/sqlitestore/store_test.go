package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// fileStore is a store that remembers its path, to be opened again.
type fileStore struct {
	*sqlitestore.Store
	path string
}

// TestStore checks the contract. A store's author need write no more, except
// tests of what the contract does not cover, such as the others in this package.
func TestStore(t *testing.T) { storetest.Run(t, subject()) }

// TestModel compares the store with a model, in random sequences of calls.
func TestModel(t *testing.T) { storetest.Model(t, subject()) }

func subject() storetest.Subject {
	var clock storetest.Clock
	open := func(tb testing.TB, path string) durabletasks.TaskStore {
		store, err := sqlitestore.Open(path, &sqlitestore.Options{Now: clock.Now})
		if err != nil {
			tb.Fatal(err)
		}
		return fileStore{store, path} // the suite closes it
	}
	return storetest.Subject{
		New: func(tb testing.TB) durabletasks.TaskStore {
			return open(tb, filepath.Join(tb.TempDir(), "tasks.db"))
		},
		Reopen: func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore {
			return open(tb, old.(fileStore).path)
		},
		Share: func(tb testing.TB, other durabletasks.TaskStore) durabletasks.TaskStore {
			return open(tb, other.(fileStore).path)
		},
		Now:     clock.Now,
		Advance: clock.Advance,
	}
}

// openStore opens a store that is closed when the test ends.
func openStore(tb testing.TB, path string, opts *sqlitestore.Options) *sqlitestore.Store {
	tb.Helper()
	s, err := sqlitestore.Open(path, opts)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
	})
	return s
}

// newRecord returns a new task that lives for an hour.
func newRecord(id string) durabletasks.Record {
	now := time.Now().UTC().Truncate(time.Millisecond)
	return durabletasks.Record{
		ID:            id,
		Status:        durabletasks.StatusWorking,
		CreatedAt:     now,
		LastUpdatedAt: now,
		TTL:           time.Hour,
		PollInterval:  time.Second,
	}
}

func create(t *testing.T, s *sqlitestore.Store, r durabletasks.Record) {
	t.Helper()
	if err := s.Create(t.Context(), r); err != nil {
		t.Fatal(err)
	}
}

// entries returns the names in a directory, each with its mode.
func entries(t *testing.T, dir string) map[string]os.FileMode {
	t.Helper()
	found, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	modes := make(map[string]os.FileMode)
	for _, e := range found {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		modes[e.Name()] = info.Mode()
	}
	return modes
}

func TestFilesArePrivateAndFew(t *testing.T) {
	dir := t.TempDir()
	s := openStore(t, filepath.Join(dir, "tasks.db"), nil)
	create(t, s, newRecord("task"))
	open := entries(t, dir)
	if len(open) != 4 {
		t.Errorf("an open store has the files %v, want the database, two of SQLite's and the lock file", open)
	}
	for name, mode := range open {
		if mode != 0o600 {
			t.Errorf("%s has mode %v", name, mode)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if closed := entries(t, dir); len(closed) != 1 {
		t.Errorf("a closed store has the files %v, want the database alone", closed)
	}
}

func TestOpenTakesAnyPath(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, path := range []string{"a b.db", "100%.db", "what?mode=memory", "c#d.db", "é.db", ":memory:", "file:e.db", filepath.Join(dir, "[f]*.db")} {
		s := openStore(t, path, nil)
		create(t, s, newRecord("task"))
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if info, err := os.Stat(path); err != nil || info.Size() == 0 {
			t.Errorf("%s: there is no database: %v", path, err)
		}
	}
	if got := entries(t, dir); len(got) != 8 {
		t.Errorf("8 closed databases have the files %v", got)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	statement := func(path, text string) {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("This is not a database. ", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	foreign := filepath.Join(dir, "foreign")
	statement(foreign, "CREATE TABLE task (id)")
	newer := filepath.Join(dir, "newer")
	if err := openStore(t, newer, nil).Close(); err != nil {
		t.Fatal(err)
	}
	statement(newer, "PRAGMA user_version = 999")
	for _, path := range []string{text, foreign, newer} {
		before, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlitestore.Open(path, nil); !errors.Is(err, sqlitestore.ErrFormat) {
			t.Errorf("Open of %s: got error %v, want %v", filepath.Base(path), err, sqlitestore.ErrFormat)
		}
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			t.Errorf("Open of %s changed the file, or it cannot be read: %v", filepath.Base(path), err)
		}
	}
	for path, reason := range map[string]string{filepath.Join(dir, "none", "tasks.db"): "no such", dir: "directory"} {
		if _, err := sqlitestore.Open(path, nil); err == nil || errors.Is(err, sqlitestore.ErrFormat) {
			t.Errorf("Open of a path with %s: got error %v", reason, err)
		}
	}
	inTheWay := filepath.Join(dir, "in-the-way")
	if err := os.Mkdir(inTheWay+"-process-1", 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(inTheWay, nil); err == nil || !strings.Contains(err.Error(), "next to it") {
		t.Errorf("Open of a database with a directory in place of its lock file: got error %v", err)
	}
	if _, err := sqlitestore.Open("", nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Errorf("Open of an empty path: got error %v, want %v", err, durabletasks.ErrInvalid)
	}
	for field, opts := range map[string]sqlitestore.Options{
		"MaxRecordBytes": {MaxRecordBytes: 1_000_000_000},
		"BusyTimeout":    {BusyTimeout: -1},
		"WatchInterval":  {WatchInterval: -1},
	} {
		_, err := sqlitestore.Open(filepath.Join(dir, "never"), &opts)
		if !errors.Is(err, durabletasks.ErrInvalid) || !strings.Contains(err.Error(), field) {
			t.Errorf("Open with a wrong %s: got error %v", field, err)
		}
	}
}

func TestRecordLimit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path, &sqlitestore.Options{MaxRecordBytes: 1000})
	record := func(bytes int) durabletasks.Record {
		r := newRecord("task")
		const rest = len("task") + len("working") + len(`""`)
		r.Payload = wire.MustParse(`"` + strings.Repeat("x", bytes-rest) + `"`)
		return r
	}
	tooLarge := func(call string, err error) {
		t.Helper()
		var e *durabletasks.TooLargeError
		if !errors.As(err, &e) || *e != (durabletasks.TooLargeError{Size: 1001, Limit: 1000}) {
			t.Errorf("%s of 1001 bytes: got error %v", call, err)
		}
	}
	tooLarge("Create", s.Create(t.Context(), record(1001)))
	create(t, s, record(1000))
	tooLarge("Update", s.Update(t.Context(), record(1001)))
	if r, err := s.Get(t.Context(), "task"); err != nil || r.Version != 0 {
		t.Errorf("Get after an Update that was refused: version %d, error %v", r.Version, err)
	}
	lower := openStore(t, path, &sqlitestore.Options{MaxRecordBytes: 10})
	if r, err := lower.Get(t.Context(), "task"); err != nil || r.Payload != record(1000).Payload {
		t.Errorf("Get of a record beyond a limit that was lowered: %v", err)
	}
}

// lockDatabase takes the lock for writing, as another process would.
func lockDatabase(t *testing.T, path string) (unlock func()) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.ExecContext(t.Context(), "BEGIN IMMEDIATE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := conn.ExecContext(context.Background(), "ROLLBACK"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestWaitingForALock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path, nil)
	hasty := openStore(t, path, &sqlitestore.Options{BusyTimeout: time.Millisecond})
	closed := openStore(t, path, nil)
	create(t, s, newRecord("task"))
	unlock := lockDatabase(t, path)

	if _, err := s.Get(t.Context(), "task"); err != nil {
		t.Errorf("Get while another process holds the lock for writing: %v", err)
	}
	if err := hasty.Create(t.Context(), newRecord("hasty")); !errors.Is(err, sqlitestore.ErrBusy) {
		t.Errorf("Create with a timeout of 1ms: got error %v, want %v", err, sqlitestore.ErrBusy)
	}
	if _, err := sqlitestore.Open(path, &sqlitestore.Options{BusyTimeout: time.Millisecond}); !errors.Is(err, sqlitestore.ErrBusy) {
		t.Errorf("Open with a timeout of 1ms: got error %v, want %v", err, sqlitestore.ErrBusy)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := s.Create(ctx, newRecord("late")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Create whose context ends while it waits: got error %v", err)
	}

	waiting := make(chan error)
	go func() { waiting <- closed.Create(context.Background(), newRecord("closed")) }()
	go func() { waiting <- s.Create(context.Background(), newRecord("patient")) }()
	time.AfterFunc(50*time.Millisecond, func() { closed.Close() })
	if err := <-waiting; !errors.Is(err, durabletasks.ErrClosed) {
		t.Errorf("Create whose store is closed while it waits: got error %v, want %v", err, durabletasks.ErrClosed)
	}
	unlock()
	if err := <-waiting; err != nil {
		t.Errorf("Create that waits until the lock is free: %v", err)
	}
	for id, want := range map[string]error{"patient": nil, "hasty": durabletasks.ErrNotFound, "late": durabletasks.ErrNotFound, "closed": durabletasks.ErrNotFound} {
		if _, err := s.Get(t.Context(), id); !errors.Is(err, want) {
			t.Errorf("Get of the task %q: got error %v, want %v", id, err, want)
		}
	}
}

// TestBusyStatement checks that SQLite's error for a lock is ErrBusy, even from a
// statement that is not retried.
func TestBusyStatement(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path, nil)
	unlock := lockDatabase(t, path)
	defer unlock()
	busy := sqlitestore.Exec(s, "DELETE FROM task")
	if busy == nil || errors.Is(busy, sqlitestore.ErrBusy) {
		t.Fatalf("SQLite's own error is %v", busy)
	}
	if err := sqlitestore.CallError(errors.Join(busy, nil)); !errors.Is(err, sqlitestore.ErrBusy) {
		t.Errorf("%v became %v, want %v", busy, err, sqlitestore.ErrBusy)
	}
}

// TestWaitingInAQueue lets calls of one store wait for each other and for another
// process. If a call's time began only when it is the first in the queue, the last
// would wait 40 times as long.
func TestWaitingInAQueue(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	const timeout = 200 * time.Millisecond
	s := openStore(t, path, &sqlitestore.Options{BusyTimeout: timeout})
	unlock := lockDatabase(t, path)
	defer unlock()
	began := time.Now()
	var group sync.WaitGroup
	for i := range 40 {
		group.Go(func() {
			if err := s.Create(t.Context(), newRecord(fmt.Sprint(i))); !errors.Is(err, sqlitestore.ErrBusy) {
				t.Errorf("Create in a queue for a lock: got error %v, want %v", err, sqlitestore.ErrBusy)
			}
		})
	}
	group.Wait()
	if waited := time.Since(began); waited > 20*timeout {
		t.Errorf("Create in a queue for a lock gave up after %v, want about %v", waited, timeout)
	}
}

// TestPanicRollsBack lets the host's clock panic in the middle of a transaction.
func TestPanicRollsBack(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	broken := false
	s := openStore(t, path, &sqlitestore.Options{Now: func() time.Time {
		if broken {
			panic("no time")
		}
		return time.Now()
	}})
	create(t, s, newRecord("task"))
	func() {
		broken = true
		defer func() {
			broken = false
			if recover() == nil {
				t.Error("Update with a clock that panics did not panic")
			}
		}()
		_ = s.Update(t.Context(), newRecord("task"))
	}()
	other := openStore(t, path, &sqlitestore.Options{BusyTimeout: 100 * time.Millisecond})
	if err := other.Update(t.Context(), newRecord("task")); err != nil {
		t.Errorf("another store's Update after a panic: %v", err)
	}
	next := newRecord("task")
	next.Version = 1
	if err := s.Update(t.Context(), next); err != nil {
		t.Errorf("Update after a panic: %v", err)
	}
}

// TestErrorsKeepSecrets damages the database such that errors of SQLite or of the
// JSON parser may quote what is stored.
func TestErrorsKeepSecrets(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path, nil)
	r := newRecord("secret")
	r.Payload = wire.MustParse(`{"secret":true}`)
	create(t, s, r)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, damage := range []string{
		`UPDATE task SET payload = '{"secret":secret}'`,
		`UPDATE task SET payload = '', input_requests = x'06736563726574'`,
		`UPDATE task SET input_requests = x'ff'`,
		`UPDATE task SET questions = x'0a736563726574'`,
		`UPDATE task SET questions = x'06736563726574'`,
		`UPDATE task SET questions = x'0673656372657400000000000000000000000000000000ff'`,
		`DROP TABLE task`,
	} {
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
		_, err := s.Get(t.Context(), "secret")
		if err == nil || errors.Is(err, durabletasks.ErrNotFound) {
			t.Errorf("Get after %s: got error %v", damage, err)
		}
		if again := s.Update(t.Context(), r); damage == "DROP TABLE task" {
			err = errors.Join(err, again, s.Create(t.Context(), r))
		}
		if text := fmt.Sprint(err); strings.Contains(text, "secret") {
			t.Errorf("an error quotes what is stored: %s", text)
		}
	}
}

// TestFullDisk limits the size of the database.
func TestFullDisk(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	limit := func(pages int) {
		if err := sqlitestore.Exec(s, fmt.Sprintf("PRAGMA max_page_count = %d", pages)); err != nil {
			t.Fatal(err)
		}
	}
	limit(100)
	stored, refused := 0, 0
	record := func(i int) durabletasks.Record {
		r := newRecord(fmt.Sprint(i))
		r.Payload = wire.MustParse(`"` + strings.Repeat("x", 10_000) + `"`)
		return r
	}
	for i := range 50 {
		err := s.Create(t.Context(), record(i))
		if refused == 0 && err == nil {
			stored++
			continue
		}
		refused++
		if err == nil || !strings.Contains(err.Error(), "full") {
			t.Fatalf("Create %d in a full database: got error %v", i, err)
		}
	}
	if stored == 0 || refused == 0 {
		t.Fatalf("%d records were stored, %d refused", stored, refused)
	}
	grown := record(0)
	grown.Payload = wire.MustParse(`"` + strings.Repeat("y", 20_000) + `"`)
	if err := s.Update(t.Context(), grown); err == nil {
		t.Error("Update to a larger record in a full database succeeded")
	}
	for i := range stored + refused {
		switch r, err := s.Get(t.Context(), fmt.Sprint(i)); {
		case i < stored && (err != nil || r.Payload != record(i).Payload || r.Version != 0):
			t.Errorf("record %d, which was stored: version %d, error %v", i, r.Version, err)
		case i >= stored && !errors.Is(err, durabletasks.ErrNotFound):
			t.Errorf("record %d, which was refused: got error %v", i, err)
		}
	}
	limit(1000)
	create(t, s, record(stored))
}

// TestWriteAheadLogShrinks lets the write-ahead log grow while a reader stays in
// one transaction.
func TestWriteAheadLogShrinks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	s := openStore(t, path, nil)
	r := newRecord("task")
	create(t, s, r)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	reader, err := db.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var tasks int
	if err := reader.QueryRow("SELECT count(*) FROM task").Scan(&tasks); err != nil {
		t.Fatal(err)
	}
	update := func(times int) int64 {
		t.Helper()
		for range times {
			// SQLite does not write pages that have not changed.
			r.Payload = wire.MustParse(`"` + strings.Repeat(fmt.Sprint(r.Version%10), 1<<20) + `"`)
			if err := s.Update(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			r.Version++
		}
		info, err := os.Stat(path + "-wal")
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	const large, small = 20 << 20, 10 << 20
	if size := update(25); size < large {
		t.Fatalf("the write-ahead log has only %d bytes while a reader stays", size)
	}
	if err := reader.Rollback(); err != nil {
		t.Fatal(err)
	}
	if size := update(3); size > small {
		t.Errorf("the write-ahead log has %d bytes after the reader has left", size)
	}
}
