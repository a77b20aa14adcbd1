package durabletasks_test

import (
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

func TestMemStore(t *testing.T) {
	var clock storetest.Clock
	storetest.Run(t, storetest.Subject{
		New:     func(testing.TB) durabletasks.TaskStore { return &durabletasks.MemStore{Now: clock.Now} },
		Now:     clock.Now,
		Advance: clock.Advance,
	})
}

func TestMemStoreInBubble(t *testing.T) {
	storetest.RunInBubble(t, storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore { return new(durabletasks.MemStore) },
	})
}
