package storetest_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// fileStore is the store that you are writing.
type fileStore struct {
	durabletasks.MemStore
	path string
}

// openFileStore opens a store that uses this clock; nil means time.Now.
func openFileStore(path string, now func() time.Time) (*fileStore, error) {
	return &fileStore{MemStore: durabletasks.MemStore{Now: now}, path: path}, nil
}

// In the tests of a store, call this function TestStore. The clock makes the
// checks of expiry possible, and Reopen those of durability.
func ExampleRun() {
	TestStore := func(t *testing.T) {
		var clock storetest.Clock
		open := func(tb testing.TB, path string) durabletasks.TaskStore {
			s, err := openFileStore(path, clock.Now)
			if err != nil {
				tb.Fatal(err)
			}
			return s
		}
		storetest.Run(t, storetest.Subject{
			New: func(tb testing.TB) durabletasks.TaskStore {
				return open(tb, filepath.Join(tb.TempDir(), "tasks"))
			},
			Reopen: func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore {
				return open(tb, old.(*fileStore).path)
			},
			Now:     clock.Now,
			Advance: clock.Advance,
		})
	}
	_ = TestStore
}
