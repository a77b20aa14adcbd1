package durabletasks_test

import (
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// memSubject returns a MemStore by the clock; its records end with it.
func memSubject(clock *storetest.Clock) storetest.Subject {
	return storetest.Subject{
		New:     func(testing.TB) durabletasks.TaskStore { return &durabletasks.MemStore{Now: clock.Now} },
		Now:     clock.Now,
		Advance: clock.Advance,
	}
}

func TestMemStore(t *testing.T) {
	storetest.Run(t, memSubject(new(storetest.Clock)))
}

func TestMemStoreInBubble(t *testing.T) {
	storetest.RunInBubble(t, storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore { return new(durabletasks.MemStore) },
	})
}

func TestMemStoreModel(t *testing.T) {
	storetest.Model(t, memSubject(new(storetest.Clock)))
}

func BenchmarkMemStore(b *testing.B) {
	storetest.Benchmark(b, storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore { return new(durabletasks.MemStore) },
	})
}
