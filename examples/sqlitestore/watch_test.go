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

// watch runs a Watch until the test ends, and returns the ids that it reports.
func watch(t *testing.T, s *sqlitestore.Store) <-chan string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ids := make(chan string, 100)
	ended := make(chan error)
	go func() { ended <- s.Watch(ctx, func(id string) { ids <- id }) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Watch whose context ended: got error %v", err)
		}
	})
	return ids
}

// reports checks which task a Watch reports next, after an event.
func reports(t *testing.T, ids <-chan string, want, event string) {
	t.Helper()
	select {
	case id := <-ids:
		if id != want {
			t.Fatalf("after %s of %q, Watch reports %q", event, want, id)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("Watch does not report %s of %q", event, want)
	}
}

func TestWatch(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	watching := openStore(t, path, nil)
	other := openStore(t, path, nil)
	create(t, other, newRecord("early"))
	ids := watch(t, watching)
	reports(t, ids, "early", "a creation before Watch was called")

	create(t, watching, newRecord("own"))
	create(t, other, newRecord("task"))
	reports(t, ids, "task", "the creation")
	next := newRecord("task")
	next.TTL = time.Minute
	if err := other.Update(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	reports(t, ids, "task", "an update")
	if err := other.Update(t.Context(), next); !errors.Is(err, durabletasks.ErrConflict) {
		t.Fatal(err)
	}
	if n, err := other.Sweep(t.Context(), time.Now().Add(30*time.Minute)); n != 1 || err != nil {
		t.Fatal(n, err)
	}
	reports(t, ids, "task", "the removal")
	next = newRecord("own")
	for next.Version < 3 {
		if err := other.Update(t.Context(), next); err != nil {
			t.Fatal(err)
		}
		next.Version++
	}
	reports(t, ids, "own", "an update by another store")
}

func TestWatchMissesChanges(t *testing.T) {
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
	err = watching.Watch(ctx, func(string) { t.Error("Watch reports a change, though it missed others") })
	if !errors.Is(err, sqlitestore.ErrMissed) {
		t.Errorf("Watch after more changes than the log keeps: got error %v, want %v", err, sqlitestore.ErrMissed)
	}
	create(t, other, newRecord("task"))
	reports(t, watch(t, watching), "task", "the creation after changes were missed")
}

func TestWatchEndsWithTheStore(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	time.AfterFunc(20*time.Millisecond, func() { s.Close() })
	for range 2 {
		if err := s.Watch(t.Context(), func(string) {}); !errors.Is(err, durabletasks.ErrClosed) {
			t.Errorf("Watch of a closed store: got error %v, want %v", err, durabletasks.ErrClosed)
		}
	}
}
