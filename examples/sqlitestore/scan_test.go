package sqlitestore_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// shown returns the tasks that a Scan shows, sorted.
func shown(t *testing.T, s *sqlitestore.Store) []string {
	t.Helper()
	ids := make(map[string]bool)
	err := s.Scan(t.Context(), func(r durabletasks.Record) bool {
		ids[r.ID] = true
		return true
	})
	if err != nil {
		t.Error(err)
	}
	return slices.Sorted(maps.Keys(ids))
}

func TestScanTakesOverFromClosedStores(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	first, second, third := openStore(t, path, nil), openStore(t, path, nil), openStore(t, path, nil)
	create(t, first, newRecord("a"))
	create(t, second, newRecord("b"))
	ended := newRecord("ended")
	ended.Status = durabletasks.StatusCompleted
	create(t, first, ended)
	check := func(when string, s *sqlitestore.Store, want ...string) {
		t.Helper()
		if got := shown(t, s); !slices.Equal(got, want) {
			t.Errorf("%s: Scan shows %q, want %q", when, got, want)
		}
	}
	check("with all stores open", first, "a")
	check("with all stores open", second, "b")
	check("with all stores open", third)
	if err := third.Update(t.Context(), newRecord("a")); err != nil {
		t.Fatal(err)
	}
	check("after another store's update", first, "a")
	check("after an update", third)
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	check("after a store was closed", third, "a")
	check("after the first scan", third, "a")
	check("after another's scan", second, "b")
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	check("after both were closed", second, "a", "b")
	if r, err := second.Get(t.Context(), "a"); err != nil || r.Version != 1 {
		t.Errorf("Get of a task that was taken over twice: version %d, error %v", r.Version, err)
	}
}

func TestScanFollowsSymbolicLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "tasks.db"), filepath.Join(dir, "link.db")
	first := openStore(t, path, nil)
	create(t, first, newRecord("task"))
	if err := os.Symlink(path, link); err != nil {
		t.Skip("skipped, because the system cannot make symbolic links: ", err)
	}
	second := openStore(t, link, nil)
	if got := shown(t, second); len(got) != 0 {
		t.Errorf("Scan of a store that was opened by a link shows the task of an open store")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, second); len(got) != 1 {
		t.Errorf("Scan of a store that was opened by a link does not show the task of a closed store")
	}
}

func TestConcurrentScansShareTheTasks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	gone := openStore(t, path, nil)
	const tasks = 50
	for i := range tasks {
		create(t, gone, newRecord(fmt.Sprint(i)))
	}
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	scans := make([][]string, 4)
	var group sync.WaitGroup
	for i := range scans {
		s := openStore(t, path, nil)
		group.Go(func() { scans[i] = shown(t, s) })
	}
	group.Wait()
	all := slices.Concat(scans...)
	slices.Sort(all)
	if len(all) != tasks || len(slices.Compact(all)) != tasks {
		t.Errorf("%d concurrent scans of %d tasks showed %v", len(scans), tasks, scans)
	}
}

// TestScanDuringSweep removes a task that a Scan is about to show, and gives its
// row to another store's task: SQLite reuses the number of the last row.
func TestScanDuringSweep(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	scanning, other := openStore(t, path, nil), openStore(t, path, nil)
	create(t, scanning, newRecord("first"))
	create(t, scanning, newRecord("last"))
	var got []string
	err := scanning.Scan(t.Context(), func(r durabletasks.Record) bool {
		if got = append(got, r.ID); len(got) == 1 {
			next := newRecord("last")
			next.TTL = time.Minute
			if err := other.Update(t.Context(), next); err != nil {
				t.Fatal(err)
			}
			if n, err := other.Sweep(t.Context(), time.Now().Add(30*time.Minute)); n != 1 || err != nil {
				t.Fatal(n, err)
			}
			create(t, other, newRecord("other's"))
		}
		return true
	})
	if err != nil || !slices.Equal(got, []string{"first"}) {
		t.Errorf("Scan during a sweep and another store's Create shows %q, error %v", got, err)
	}
}

func TestScanContinuesAfterDamage(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	const tasks, damaged = 40, 30
	for i := range tasks {
		r := newRecord(fmt.Sprintf("secret %d", i))
		r.Payload = wire.MustParse(`"secret"`)
		create(t, s, r)
	}
	if err := sqlitestore.Exec(s, fmt.Sprintf(`UPDATE task SET payload = '{"secret"' WHERE row <= %d`, damaged)); err != nil {
		t.Fatal(err)
	}
	visited := 0
	err := s.Scan(t.Context(), func(durabletasks.Record) bool {
		visited++
		return true
	})
	if visited != tasks-damaged {
		t.Errorf("Scan of %d records, of which the first %d are damaged, showed %d", tasks, damaged, visited)
	}
	text := fmt.Sprint(err)
	for _, want := range []string{"row 1:", "row 10:", "20 more"} {
		if !strings.Contains(text, want) {
			t.Errorf("the error of a Scan of damaged records does not contain %q: %s", want, text)
		}
	}
	if strings.Contains(text, "secret") {
		t.Errorf("the error of a Scan of damaged records quotes what is stored: %s", text)
	}
	err = s.Scan(t.Context(), func(durabletasks.Record) bool { return false })
	if err != nil {
		t.Errorf("Scan that visit ends: got error %v", err)
	}
}

func TestScanEndsWithItsContext(t *testing.T) {
	s := openStore(t, filepath.Join(t.TempDir(), "tasks.db"), nil)
	create(t, s, newRecord("a"))
	create(t, s, newRecord("b"))
	ctx, cancel := context.WithCancel(t.Context())
	err := s.Scan(ctx, func(durabletasks.Record) bool {
		cancel()
		return true
	})
	if err != context.Canceled {
		t.Errorf("Scan whose context ends: got error %v, want %v", err, context.Canceled)
	}
}
