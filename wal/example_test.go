package wal_test

import (
	"errors"
	"fmt"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// A server opens its directory and gives the store to the engine, which closes
// it. A second server on the same directory fails at once.
func ExampleOpen() {
	serve := func() error {
		dir, err := wal.UserDir("my-server") // such as ~/.local/state/my-server/tasks
		if err != nil {
			return err
		}
		store, err := wal.Open(dir, nil)
		if err != nil {
			return err
		}
		defer store.Close()
		tasks, err := durabletasks.New(store, nil)
		if err != nil {
			return err
		}
		return tasks.Close()
	}
	var locked *wal.LockedError
	if err := serve(); errors.As(err, &locked) {
		fmt.Printf("process %d uses %s\n", locked.PID, locked.Dir)
	}
}
