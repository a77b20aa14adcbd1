package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var closeChecks = []check{
	{"S12", "every-call-reports-closed", 0, everyCallReportsClosed},
	{"S12", "close-of-an-unused-store", 0, closeOfUnused},
	{"S12", "close-is-idempotent", 0, closeIsIdempotent},
	{"S12", "close-while-calls-run", 0, closeWhileCallsRun},
}

// allClosed checks that every call on the closed store reports ErrClosed.
func (t *trial) allClosed(id string) {
	ctx := context.Background()
	err := t.store.Create(ctx, t.record("new"))
	t.wants(err, durabletasks.ErrClosed, "Create after Close")
	err = t.store.Create(ctx, t.record(id))
	t.wants(err, durabletasks.ErrClosed, "Create with a taken id after Close")
	for _, id := range []string{id, "unknown"} {
		_, err = t.store.Get(ctx, id)
		t.wants(err, durabletasks.ErrClosed, "Get of task %q after Close", id)
		err = t.store.Update(ctx, t.record(id))
		t.wants(err, durabletasks.ErrClosed, "Update of task %q after Close", id)
	}
	_, err = t.store.Sweep(ctx, t.now())
	t.wants(err, durabletasks.ErrClosed, "Sweep after Close")
}

func everyCallReportsClosed(t *trial) {
	t.create(t.record("task"))
	if err := t.store.Close(); err != nil {
		t.fatalf("Close: %v", err)
	}
	t.allClosed("task")
}

func closeOfUnused(t *trial) {
	if err := t.store.Close(); err != nil {
		t.fatalf("Close of a store that was never used: %v", err)
	}
	t.allClosed("task")
}

func closeIsIdempotent(t *trial) {
	t.create(t.record("task"))
	for n := range 3 {
		if err := t.store.Close(); err != nil {
			t.fatalf("Close, call %d: %v", n+1, err)
		}
	}
	t.parallel(4, func(int) {
		if err := t.store.Close(); err != nil {
			t.fatalf("concurrent Close: %v", err)
		}
	})
}

// closeUnder has n goroutines make calls, passing each its count, until one
// fails, which must be with ErrClosed. In the meantime two others close the
// store.
func (t *trial) closeUnder(n int, call func(i, count int) error) {
	const closers = 2
	var running sync.WaitGroup
	running.Add(n)
	var closed atomic.Bool
	t.parallel(n+closers, func(i int) {
		if i >= n {
			running.Wait()
			if err := t.store.Close(); err != nil {
				t.fatalf("Close while other calls run: %v", err)
			}
			closed.Store(true)
			return
		}
		var once sync.Once
		defer once.Do(running.Done)
		for count := 0; ; count++ {
			late := closed.Load()
			err := call(i, count)
			if errors.Is(err, durabletasks.ErrClosed) {
				return
			}
			if err != nil {
				t.fatalf("a call during Close: got error %q, want none or %q", err, durabletasks.ErrClosed)
			}
			if late {
				t.fatalf("a call after Close returned: got no error, want %q", durabletasks.ErrClosed)
			}
			if count == 2 {
				once.Do(running.Done)
			}
			if count%100 == 99 {
				time.Sleep(time.Millisecond) // time for a Close that sleeps in a bubble
			}
			runtime.Gosched() // let the closers run
		}
	})
}

func closeWhileCallsRun(t *trial) {
	ctx := context.Background()
	t.create(t.record("read"))
	for i := range 2 {
		t.create(t.record(fmt.Sprint("updated ", i)))
	}
	t.closeUnder(6, func(i, count int) (err error) {
		switch i {
		case 0:
			_, err = t.store.Get(ctx, "read")
		case 1, 2:
			err = t.store.Update(ctx, at(int64(count), t.record(fmt.Sprint("updated ", i-1))))
		case 3, 4:
			err = t.store.Create(ctx, t.record(fmt.Sprint("created ", i, " ", count)))
		case 5:
			_, err = t.store.Sweep(ctx, t.now())
		}
		return err
	})
	t.allClosed("read")
}
