package wal_test

import (
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// The store keeps the contract of stores, whether commits are synced or not.
func TestContract(t *testing.T) {
	for name, sync := range map[string]bool{"sync off": false, "sync on": true} {
		t.Run(name, func(t *testing.T) {
			clock := new(storetest.Clock)
			dirs := map[durabletasks.TaskStore]string{}
			open := func(tb testing.TB, dir string) durabletasks.TaskStore {
				s, err := wal.Open(dir, &wal.Options{Sync: sync, Now: clock.Now})
				if err != nil {
					tb.Fatal(err)
				}
				dirs[s] = dir
				return s
			}
			storetest.Run(t, storetest.Subject{
				New:     func(tb testing.TB) durabletasks.TaskStore { return open(tb, ramDir(tb)) },
				Reopen:  func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore { return open(tb, dirs[old]) },
				Now:     clock.Now,
				Advance: clock.Advance,
				Timeout: time.Minute,
			})
		})
	}
}
