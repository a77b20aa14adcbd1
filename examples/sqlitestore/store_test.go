package sqlitestore_test

import (
	"path/filepath"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// opened is a store that remembers its file, to be opened again.
type opened struct {
	*sqlitestore.Store
	path string
}

func TestStore(t *testing.T) {
	var clock storetest.Clock
	open := func(tb testing.TB, path string) durabletasks.TaskStore {
		store, err := sqlitestore.Open(path, &sqlitestore.Options{Now: clock.Now})
		if err != nil {
			tb.Fatal(err)
		}
		return opened{store, path}
	}
	storetest.Run(t, storetest.Subject{
		New: func(tb testing.TB) durabletasks.TaskStore {
			return open(tb, filepath.Join(tb.TempDir(), "tasks.db"))
		},
		Reopen: func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore {
			return open(tb, old.(opened).path)
		},
		Now:     clock.Now,
		Advance: clock.Advance,
	})
}
