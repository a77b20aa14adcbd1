package sqlitestore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
)

// watch returns what a Watch tells. It ends with the test, with the error want.
func watch(t *testing.T, s *sqlitestore.Store) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan string, 100)
	ended := make(chan error)
	go func() { ended <- s.Watch(ctx, func(id string) { told <- id }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch whose context has ended: got error %v", err)
		}
	})
	return told
}

// tells checks what a Watch tells next.
func tells(t *testing.T, told <-chan string, want, of string) {
	t.Helper()
	select {
	case id := <-told:
		if id != want {
			t.Fatalf("Watch told of %q, want %s of %q", id, of, want)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("Watch did not tell of %s of %q", of, want)
	}
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	watching := openStore(t, path, nil)
	other := openStore(t, path, nil)
	create(t, other, newRecord("early"))
	told := watch(t, watching)
	tells(t, told, "early", "a creation before Watch was called")

	create(t, watching, newRecord("own"))
	create(t, other, newRecord("task"))
	tells(t, told, "task", "the creation")
	next := newRecord("task")
	next.TTL = time.Minute
	if err := other.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	tells(t, told, "task", "an update")
	if err := other.Update(t.Context(), next); !errors.Is(err, durabletasks.ErrConflict) {
		t.Fatal(err)
	}
	if n, err := other.Sweep(t.Context(), time.Now().Add(30*time.Minute)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	tells(t, told, "task", "the removal")
	next = newRecord("own")
	for next.Version < 3 {
		if err := other.Update(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		next.Version++
	}
	tells(t, told, "own", "an update by another store")
}

func TestWatchThatMissesChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	watching := openStore(t, path, nil)
	other := openStore(t, path, nil)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const many = 1 << 15
	_, err = db.Exec(`WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
		INSERT INTO change (id, process) SELECT CAST(n AS BLOB), 0 FROM n`, many)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1 << 10 {
		create(t, other, newRecord(fmt.Sprint(i)))
	}
	var logged int
	if err := db.QueryRow(`SELECT count(*) FROM change`).Scan(&logged); err != nil {
		t.Fatal(err)
	}
	if logged >= many {
		t.Errorf("the log of changes has %d entries and grows", logged)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err = watching.Watch(ctx, func(string) { t.Error("Watch told of a change, though it had missed others") })
	if !errors.Is(err, sqlitestore.ErrMissed) {
		t.Errorf("Watch after more changes than the log keeps: got error %v, want %v", err, sqlitestore.ErrMissed)
	}
	create(t, other, newRecord("task"))
	tells(t, watch(t, watching), "task", "the creation after changes were missed")
}

func TestWatchEndsWithTheStore(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	time.AfterFunc(20*time.Millisecond, func() { s.Close() })
	for range 2 {
		if err := s.Watch(t.Context(), func(string) {}); !errors.Is(err, durabletasks.ErrClosed) {
			t.Errorf("Watch of a store that is closed: got error %v, want %v", err, durabletasks.ErrClosed)
		}
	}
}
