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

// Open reads the log's newest entry after it has locked its lock file. Without
// any entry it fails there, and its number is not committed.
const (
	breakOpen  = "DELETE FROM change"
	repairOpen = "INSERT OR IGNORE INTO change (number, id, process) VALUES (1, x'', 0)"
)

// TestFailedOpenLeavesItsFile lets an Open fail. Its number is used again, so by
// the time it cleans up, the lock file may be another store's. It must not remove
// the file.
func TestFailedOpenLeavesItsFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := openStore(t, path, nil)
	if err := sqlitestore.Exec(first, breakOpen); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlitestore.Open(path, nil); err == nil {
		t.Fatal("Open of a database without a log succeeded")
	}
	if err := sqlitestore.Exec(first, repairOpen); err != nil {
		t.Fatal(err)
	}
	if !exists(t, path+"-process-2") {
		t.Error("an Open that failed removed a lock file that may be another store's")
	}
	next := openStore(t, path, nil)
	if got := sqlitestore.LockPath(next); got != path+"-process-2" {
		t.Errorf("the next store has the lock file %s, want that of the failed Open", filepath.Base(got))
	}
	create(t, next, newRecord("task"))
	if got := shown(t, first); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that is open", got)
	}
	if err := next.Close(); err != nil {
		t.Fatal(err)
	}
	if exists(t, path+"-process-2") {
		t.Error("a store that was closed left its lock file")
	}
}

// TestOpensAmongFailures opens stores while other Opens fail. Every open store
// must have its lock file.
func TestOpensAmongFailures(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first := openStore(t, path, nil)
	const enough = 50 // of both
	var opened, failed atomic.Int64
	end := time.Now().Add(30 * time.Second)
	going := func() bool {
		return (opened.Load() < enough || failed.Load() < enough) && !t.Failed() && time.Now().Before(end)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for going() {
			for _, statement := range []string{breakOpen, repairOpen} {
				if err := sqlitestore.Exec(first, statement); err != nil && !strings.Contains(err.Error(), "locked") {
					t.Error(err)
				}
				time.Sleep(time.Millisecond)
			}
		}
	})
	for range 4 {
		group.Go(func() {
			for going() {
				s, err := sqlitestore.Open(path, nil)
				if err != nil {
					failed.Add(1)
					continue
				}
				opened.Add(1)
				time.Sleep(time.Millisecond)
				if file := sqlitestore.LockPath(s); !exists(t, file) {
					t.Errorf("the lock file %s of an open store is gone", filepath.Base(file))
				}
				if err := s.Close(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	group.Wait()
	if opened.Load() < enough || failed.Load() < enough {
		t.Errorf("%d Opens succeeded and %d failed, want %d of both", opened.Load(), failed.Load(), enough)
	}
}

// TestOpenSkipsALockedFile locks the file of the next number, as an Open that
// fails does for a moment.
func TestOpenSkipsALockedFile(t *testing.T) {
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
		t.Error("a locked file was removed")
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, first); len(got) != 0 || exists(t, held) {
		t.Errorf("after the file was unlocked, Scan shows %q, and the file exists: %v", got, exists(t, held))
	}
}

// TestMovedDirectory renames the directory of an open store. The store looks for
// lock files at the old place, so it must not take tasks over from stores that
// have opened the database at the new one.
func TestMovedDirectory(t *testing.T) {
	parent := t.TempDir()
	dir := filepath.Join(parent, "old")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	moved := openStore(t, filepath.Join(dir, "tasks.db"), nil)
	create(t, moved, newRecord("moved"))
	if err := os.Rename(dir, filepath.Join(parent, "new")); err != nil {
		t.Skip("skipped, because the system cannot move a directory of open files: ", err)
	}
	path := filepath.Join(parent, "new", "tasks.db")
	live := openStore(t, path, nil)
	create(t, live, newRecord("live"))
	scanFails(t, "of the moved store", moved, sqlitestore.ErrMoved)
	if got := shown(t, live); !slices.Equal(got, []string{"live"}) {
		t.Errorf("Scan next to a moved store shows %q, want only its own task", got)
	}
	if err := moved.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, live); !slices.Equal(got, []string{"live", "moved"}) {
		t.Errorf("Scan after a moved store was closed shows %q", got)
	}
	if len(entries(t, filepath.Join(parent, "new"))) != 4 {
		t.Errorf("a moved store left its lock file: %v", entries(t, filepath.Join(parent, "new")))
	}
}

// TestMovedWhileOpening renames the directory while an Open waits for a lock, and
// makes another in its place. Nothing shows that the Open waits, so it is given
// more and more time to get there.
func TestMovedWhileOpening(t *testing.T) {
	for wait := 50 * time.Millisecond; wait < 10*time.Second; wait *= 2 {
		if moveWhileOpening(t, wait) {
			return
		}
	}
	t.Fatal("Open did not begin to wait")
}

// moveWhileOpening reports false if the Open began too late, and so made a new
// database at the old path.
func moveWhileOpening(t *testing.T, wait time.Duration) bool {
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
	time.Sleep(wait)
	moveErr := os.Rename(dir, filepath.Dir(path))
	if moveErr == nil {
		moveErr = os.Mkdir(dir, 0o700)
	}
	unlock()
	err := <-opened
	if moveErr != nil {
		t.Skip("skipped, because the system cannot move a directory of open files: ", moveErr)
	}
	if exists(t, old) {
		return false
	}
	if !errors.Is(err, sqlitestore.ErrMoved) {
		t.Errorf("Open of a database that is moved meanwhile: got error %v, want %v", err, sqlitestore.ErrMoved)
	}
	if got := shown(t, openStore(t, path, nil)); len(got) != 0 {
		t.Errorf("after an Open at its old path, Scan shows %q of a store that is open", got)
	}
	return true
}

// TestRemovedDatabase removes the files of an open store. The next Open makes a
// new database, and its store gets the same number.
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
					t.Skip("skipped, because the system cannot remove open files: ", err)
				}
			}
			scanFails(t, "without a database", removed, sqlitestore.ErrMoved)
			if c.name == "alone" {
				for _, file := range []string{path + "-wal", path + "-shm"} { // SQLite refuses those of another database
					if err := os.Remove(file); err != nil {
						t.Fatal(err)
					}
				}
			}
			live, third := openStore(t, path, nil), openStore(t, path, nil)
			create(t, live, newRecord("live"))
			scanFails(t, "next to a new database", removed, sqlitestore.ErrMoved)
			if err := removed.Close(); err != nil {
				t.Fatal(err)
			}
			if !exists(t, sqlitestore.LockPath(live)) {
				t.Error("closing the store of a removed database removed the lock file of an open store")
			}
			if got := shown(t, third); len(got) != 0 {
				t.Errorf("after the store of a removed database was closed, Scan shows %q, whose store is open", got)
			}
		})
	}
}

// TestScanRestoresTheLockFile removes a store's lock file, as a program that
// cleans up might.
func TestScanRestoresTheLockFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first, second := openStore(t, path, nil), openStore(t, path, nil)
	create(t, first, newRecord("a"))
	file := sqlitestore.LockPath(first)
	remove := func() {
		t.Helper()
		if err := os.Remove(file); err != nil {
			t.Skip("skipped, because the system cannot remove open files: ", err)
		}
	}

	remove()
	if got := shown(t, first); !slices.Equal(got, []string{"a"}) || !exists(t, file) {
		t.Errorf("Scan of a store whose lock file was removed shows %q; the file exists: %v", got, exists(t, file))
	}
	if got := shown(t, second); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that has restored its lock file", got)
	}

	remove()
	if got := shown(t, second); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Scan shows %q, want the task of a store without a lock file", got)
	}
	scanFails(t, "after others took the store for gone", first, sqlitestore.ErrMoved)
	create(t, first, newRecord("b"))
	if got := shown(t, second); !slices.Equal(got, []string{"a"}) {
		t.Errorf("Scan shows %q, want none of a store that has restored its lock file", got)
	}
	if got := shown(t, first); !slices.Equal(got, []string{"b"}) {
		t.Errorf("Scan of a store that has lost a task shows %q, want the task it created since", got)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if exists(t, file) {
		t.Error("a store that was closed left the lock file that it had restored")
	}
	if got := shown(t, second); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("Scan after the other store was closed shows %q", got)
	}
}

func TestWatchRestoresTheLockFile(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), &sqlitestore.Options{WatchInterval: time.Millisecond})
	watch(t, s)
	file := sqlitestore.LockPath(s)
	if err := os.Remove(file); err != nil {
		t.Skip("skipped, because the system cannot remove open files: ", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for !exists(t, file) {
		if ctx.Err() != nil {
			t.Fatal("Watch has not restored the lock file")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestScanUpdatesTheLockFilesTime(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	file := sqlitestore.LockPath(s)
	old := time.Now().Add(-1000 * time.Hour)
	if err := os.Chtimes(file, old, old); err != nil {
		t.Fatal(err)
	}
	shown(t, s)
	if info, err := os.Stat(file); err != nil || time.Since(info.ModTime()) > time.Hour {
		t.Errorf("after a Scan, the lock file has the time %v, error %v", info.ModTime(), err)
	}
}
