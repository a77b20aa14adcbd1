package storetest

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var concurrencyChecks = []check{
	{"S14", "tasks-do-not-mix", 0, tasksDoNotMix},
	{"S14", "every-method-at-once", 0, everyMethodAtOnce},
}

// tasksDoNotMix has each goroutine use its own task, which must behave as if it
// were the only one.
func tasksDoNotMix(t *trial) {
	const tasks = 6
	updates := int64(t.rounds(20))
	t.parallel(tasks, func(i int) {
		id := fmt.Sprint("task ", i)
		t.create(t.stamped(id, 0))
		for version := range updates {
			want := t.update(at(version, t.stamped(id, version+1)))
			for range 4 {
				t.stored(want, "after Update, while other tasks are updated")
			}
		}
	})
	for i := range tasks {
		t.stored(t.stamped(fmt.Sprint("task ", i), updates), "after it and other tasks were updated concurrently")
	}
}

// everyMethodAtOnce calls all methods at the same time on the same tasks. It
// gives the race detector a lot to see.
func everyMethodAtOnce(t *trial) {
	ctx := context.Background()
	rounds := t.rounds(30)
	t.create(t.stamped("shared", 0))
	var commits, swept, short atomic.Int64
	t.parallel(8, func(i int) {
		for n := range rounds {
			switch i {
			case 0, 1, 2:
				r := t.get("shared")
				err := t.store.Update(ctx, at(r.Version, t.stamped("shared", r.Version+1)))
				if err == nil {
					commits.Add(1)
				} else {
					t.conflicts(err, "Update concurrent with other calls")
				}
			case 3, 4:
				t.create(t.expiring(fmt.Sprint("short ", i, " ", n), time.Hour))
				short.Add(1)
			case 5, 6:
				k, err := t.store.Sweep(ctx, t.began.Add(time.Hour))
				if err != nil {
					t.fatalf("Sweep concurrent with other calls: %v", err)
				}
				swept.Add(int64(k))
			case 7:
				_, err := t.store.Get(ctx, fmt.Sprint("short 3 ", n))
				if err != nil && !errors.Is(err, durabletasks.ErrNotFound) {
					t.fatalf("Get of a task that is created and swept concurrently: %v", err)
				}
				if t.store.scanner == nil {
					continue
				}
				if err := t.store.Scan(ctx, func(durabletasks.Record) bool { return true }); err != nil {
					t.fatalf("Scan concurrent with other calls: %v", err)
				}
			}
		}
	})
	n, err := t.store.Sweep(ctx, t.began.Add(time.Hour))
	if err != nil {
		t.fatalf("Sweep: %v", err)
	}
	if got, want := swept.Load()+int64(n), short.Load(); got != want {
		t.fatalf("concurrent Sweeps returned %d in total, but %d records had expired", got, want)
	}
	t.stored(t.stamped("shared", commits.Load()), "after concurrent calls of every method")
}
