package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
)

// exists reports whether a file is there.
func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return err == nil
}

// scanFails checks that a Scan shows nothing and reports an error.
func scanFails(t *testing.T, when string, s *sqlitestore.Store, want error) {
	t.Helper()
	err := s.Scan(t.Context(), func(r durabletasks.Record) bool {
		t.Errorf("%s: Scan shows %q", when, r.ID)
		return true
	})
	if !errors.Is(err, want) {
		t.Errorf("%s: Scan reports %v, want %v", when, err, want)
	}
}

// Open reads the log's newest entry when its store has locked its file. Without
// any entry it fails there, and its number is not committed.
const (
	breakOpen = "DELETE FROM change"
	mendOpen  = "INSERT OR IGNORE INTO change (number, id, process) VALUES (1, x'', 0)"
)

// TestFailedOpenLeavesItsFile lets an Open fail whose number is given again. The
// file of that number may be another store's by the time the failed one cleans
// up, so it must not be removed.
func TestFailedOpenLeavesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := openStore(t, path, nil)
	if err := sqlitestore.Exec(first, breakOpen); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(path, nil); err == nil {
		t.Fatal("Open of a database without a log succeeded")
	}
	if err := sqlitestore.Exec(first, mendOpen); err != nil {
		t.Fatal(err)
	}
	if !exists(t, path+"-process-2") {
		t.Error("an Open that failed has removed a file that may be another store's")
	}
	next := openStore(t, path, nil)
	if got := sqlitestore.LockPath(next); got != path+"-process-2" {
		t.Errorf("the store that is opened next has the file %s, want that of the failed one", filepath.Base(got))
	}
	create(t, next, newRecord("task"))
	if got := shown(t, first); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that is open", got)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if exists(t, path+"-process-2") {
		t.Error("a store that was closed has left its file")
	}
}

// TestFailingOpens opens stores while others fail to open: whoever is open must
// have its file.
func TestFailingOpens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := openStore(t, path, nil)
	end := time.Now().Add(time.Second)
	var opened, failed atomic.Int64
	var group sync.WaitGroup
	group.Go(func() {
		for time.Now().Before(end) {
			for _, statement := range []string{breakOpen, mendOpen} {
				if err := sqlitestore.Exec(first, statement); err != nil && !strings.Contains(err.Error(), "locked") {
					t.Error(err)
					return
				}
				time.Sleep(time.Millisecond)
			}
		}
	})
	for range 4 {
		group.Go(func() {
			for time.Now().Before(end) {
				s, err := sqlitestore.Open(path, nil)
				if err != nil {
					failed.Add(1)
					continue
				}
				opened.Add(1)
				time.Sleep(time.Millisecond)
				if file := sqlitestore.LockPath(s); !exists(t, file) {
					t.Errorf("the file %s of an open store is gone", filepath.Base(file))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if opened.Load() == 0 || failed.Load() == 0 {
		t.Errorf("%d stores were opened, %d failed, want some of both", opened.Load(), failed.Load())
	}
}

// TestOpenPassesOverAFileThatIsHeld holds the file of the next number, as an
// Open that fails does for a moment.
func TestOpenPassesOverAFileThatIsHeld(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := openStore(t, path, nil)
	held := path + "-process-2"
	if err := os.WriteFile(held, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", held)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	second := openStore(t, path, nil)
	create(t, second, newRecord("task"))
	if got := shown(t, first); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that is open", got)
	}
	if !exists(t, held) {
		t.Error("a file that is held was removed")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, first); len(got) != 0 || exists(t, held) {
		t.Errorf("when nobody holds the file any more, Scan shows %q, and the file is there: %v", got, exists(t, held))
	}
}

// TestMovedDirectory renames the directory of a store that is open. It must not
// take over from those that have opened the database at its new place, only
// because it looks for them at the old one.
func TestMovedDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "old")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := openStore(t, filepath.Join(dir, "tasks.db"), nil)
	create(t, moved, newRecord("moved"))
	if err := os.Rename(dir, filepath.Join(parent, "new")); err != nil {
		t.Skip("skipped, because the system moves no directory of open files: ", err)
	}
	path := filepath.Join(parent, "new", "tasks.db")
	live := openStore(t, path, nil)
	create(t, live, newRecord("live"))
	scanFails(t, "of the moved store", moved, sqlitestore.ErrMoved)
	if got := shown(t, live); !slices.Equal(got, []string{"live"}) {
		t.Errorf("Scan beside a moved store shows %q, want what is its own", got)
	}
	if err := moved.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, live); !slices.Equal(got, []string{"live", "moved"}) {
		t.Errorf("Scan after a moved store was closed shows %q", got)
	}
	if len(entries(t, filepath.Join(parent, "new"))) != 4 {
		t.Errorf("a moved store has left its file: %v", entries(t, filepath.Join(parent, "new")))
	}
}

// TestMovedWhileOpening renames the directory while an Open waits, and puts
// another at its place.
func TestMovedWhileOpening(t *testing.T) {
	parent := t.TempDir()
	dir, path := filepath.Join(parent, "old"), filepath.Join(parent, "new", "tasks.db")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	old := filepath.Join(dir, "tasks.db")
	live := openStore(t, old, nil)
	create(t, live, newRecord("live"))
	unlock := lockDatabase(t, old)
	opened := make(chan error)
	go func() {
		s, err := sqlitestore.Open(old, nil)
		if err == nil {
			err = s.Close()
		}
		opened <- err
	}()
	time.Sleep(100 * time.Millisecond) // it comes to wait
	moveErr := os.Rename(dir, filepath.Dir(path))
	if moveErr == nil {
		moveErr = os.Mkdir(dir, 0o700)
	}
	unlock()
	err := <-opened
	if moveErr != nil {
		t.Skip("skipped, because the system moves no directory of open files: ", moveErr)
	}
	if exists(t, old) {
		t.Skip("skipped, because Open began too late and has made another database")
	}
	if !errors.Is(err, sqlitestore.ErrMoved) {
		t.Errorf("Open of a database that was moved meanwhile: got error %v, want %v", err, sqlitestore.ErrMoved)
	}
	if got := shown(t, openStore(t, path, nil)); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that is open, after an Open at its old path", got)
	}
}

// TestRemovedDatabase removes the files of a store that is open. Who opens the
// path next begins a new database, and gets the same number.
func TestRemovedDatabase(t *testing.T) {
	for _, c := range []struct{ name, pattern string }{
		{"with-everything", "tasks.db*"},
		{"alone", "tasks.db"},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "tasks.db")
			removed := openStore(t, path, nil)
			create(t, removed, newRecord("removed"))
			found, err := filepath.Glob(filepath.Join(filepath.Dir(path), c.pattern))
			if err != nil || len(found) == 0 {
				t.Fatal(found, err)
			}
			for _, file := range found {
				if err := os.Remove(file); err != nil {
					t.Skip("skipped, because the system removes no open files: ", err)
				}
			}
			scanFails(t, "without a database", removed, sqlitestore.ErrMoved)
			if c.name == "alone" {
				for _, file := range []string{path + "-wal", path + "-shm"} { // SQLite takes no other's
					if err := os.Remove(file); err != nil {
						t.Fatal(err)
					}
				}
			}
			live, third := openStore(t, path, nil), openStore(t, path, nil)
			create(t, live, newRecord("live"))
			scanFails(t, "beside a new database", removed, sqlitestore.ErrMoved)
			if err := removed.Close(); err != nil {
				t.Fatal(err)
			}
			if !exists(t, sqlitestore.LockPath(live)) {
				t.Error("the Close of another database's store has removed the file of an open one")
			}
			if got := shown(t, third); len(got) != 0 {
				t.Errorf("Scan after the Close of another database's store shows %q, whose store is open", got)
			}
		})
	}
}

// TestFileIsMadeAnew removes a store's file, as programs do that clean up.
func TestFileIsMadeAnew(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first, second := openStore(t, path, nil), openStore(t, path, nil)
	create(t, first, newRecord("a"))
	file := sqlitestore.LockPath(first)
	remove := func() {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Skip("skipped, because the system removes no open files: ", err)
		}
	}

	remove()
	if got := shown(t, first); !slices.Equal(got, []string{"a"}) || !exists(t, file) {
		t.Errorf("Scan of a store whose file was removed shows %q; its file is there: %v", got, exists(t, file))
	}
	if got := shown(t, second); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that has made its file anew", got)
	}

	remove()
	if got := shown(t, second); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Scan shows %q of a store without a file", got)
	}
	scanFails(t, "after others took the store for gone", first, sqlitestore.ErrMoved)
	create(t, first, newRecord("b"))
	if got := shown(t, second); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Scan shows %q, of which one is the task of a store that has made its file anew", got)
	}
	if got := shown(t, first); !slices.Equal(got, []string{"b"}) {
		t.Errorf("Scan of a store that has lost a task shows %q, want what it has created since", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if exists(t, file) {
		t.Error("a store that was closed has left the file that it had made anew")
	}
	if got := shown(t, second); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Scan after the other store was closed shows %q", got)
	}
}

func TestWatchMakesTheFileAnew(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), &sqlitestore.Options{WatchInterval: time.Millisecond})
	watch(t, s)
	file := sqlitestore.LockPath(s)
	if err := os.Remove(file); err != nil {
		t.Skip("skipped, because the system removes no open files: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !exists(t, file) {
		if ctx.Err() != nil {
			t.Fatal("a store that watches has not made its file anew")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestScanKeepsTheFileYoung(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	file := sqlitestore.LockPath(s)
	old := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	shown(t, s)
	if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("the file of a store that scans is of %v, error %v", info.ModTime(), err)
	}
}
