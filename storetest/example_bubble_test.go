package storetest_test

import (
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// A store that lives in the process needs no clock of its own in a bubble: there
// time.Now stands still until the suite moves it.
func ExampleRunInBubble() {
	TestMemStore := func(t *testing.T) {
		storetest.RunInBubble(t, storetest.Subject{
			New: func(testing.TB) durabletasks.TaskStore { return new(durabletasks.MemStore) },
		})
	}
	_ = TestMemStore
}
