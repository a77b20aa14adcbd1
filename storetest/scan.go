package storetest

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var scanChecks = []check{
	{scanner, "shows-the-unfinished", needsScanner, scanShowsUnfinished},
	{scanner, "shows-every-id", needsScanner, scanShowsEveryID},
	{scanner, "shows-each-of-many", needsScanner, scanShowsMany},
	{scanner, "shows-each-of-many-that-visit-updates", needsScanner, scanShowsUpdated},
	{scanner, "shows-current-records", needsScanner, scanShowsCurrent},
	{scanner, "omits-expired", needsScanner | needsAdvance, scanLeavesExpiredOut},
	{scanner, "stops-when-visit-returns-false", needsScanner, scanStops},
	{scanner, "visits-one-at-a-time", needsScanner, scanVisitsInTurn},
	{scanner, "visit-may-call-the-store", needsScanner, scanVisitMayCall},
	{scanner, "continues-while-tasks-end", needsScanner, scanContinues},
	{scanner, "records-do-not-alias", needsScanner, aliasOfScan},
	{scanner, "changes-nothing", needsScanner, scanChangesNothing},
	{scanner, "done-context-stops-it", needsScanner, doneStopsScan},
	{scanner, "context-done-during-scan-stops-it", needsScanner, cancelledStopsScan},
	{scanner, "reports-closed", needsScanner, scanReportsClosed},
	{scanner, "reports-close-during-scan", needsScanner, scanReportsClose},
	{scanner, "sees-whole-updates", needsScanner, scanSeesWhole},
	{scanner, "shows-the-unfinished-after-a-reopen", needsScanner | needsReopen, scanAfterReopen},
	{scanner, "instances-show-only-their-own", needsScanner | needsShare, scanShowsOwn},
	{scanner, "tasks-of-a-closed-instance-go-to-one", needsScanner | needsShare, scanShowsLeft},
}

// scan returns the records that a Scan shows, by id, and checks that it shows
// each once.
func (t *trial) scan() map[string]durabletasks.Record {
	shown := make(map[string]durabletasks.Record)
	err := t.store.Scan(context.Background(), func(r durabletasks.Record) bool {
		if _, ok := shown[r.ID]; ok {
			t.fatalf("Scan showed task %s twice", clip(r.ID))
		}
		shown[r.ID] = r
		return true
	})
	if err != nil {
		t.fatalf("Scan: %v", err)
	}
	return shown
}

// shows checks that a Scan shows exactly these records.
func (t *trial) shows(when string, want ...durabletasks.Record) {
	shown := t.scan()
	for _, r := range want {
		got, ok := shown[r.ID]
		if !ok {
			t.fatalf("Scan %s did not show task %s", when, clip(r.ID))
		}
		t.same(got, r, "as Scan showed it "+when)
		delete(shown, r.ID)
	}
	for id := range shown {
		t.fatalf("Scan %s showed task %s", when, clip(id))
	}
}

func scanShowsUnfinished(t *trial) {
	t.shows("of an empty store")
	var unfinished []durabletasks.Record
	for i := range 2 * len(statuses) {
		r := t.full(fmt.Sprint("task ", i), i)
		t.create(r)
		if !r.Status.Terminal() {
			unfinished = append(unfinished, r)
		}
	}
	t.shows("of tasks in every status", unfinished...)
}

// scanShowsEveryID uses ids that a store may mistake for the start or the end of
// the scan.
func scanShowsEveryID(t *trial) {
	var want []durabletasks.Record
	for _, id := range append(slices.Clone(hostile), broken...) {
		if r := t.record(id); !slices.ContainsFunc(want, func(r durabletasks.Record) bool { return r.ID == id }) {
			t.create(r)
			want = append(want, r)
		}
	}
	t.shows("of arbitrary ids", want...)
}

// unfinished returns a plain record for crowd.
func (t *trial) unfinished(i int) durabletasks.Record { return t.record(fmt.Sprint("task ", i)) }

// crowd creates n tasks, which it returns, and between them some that are
// finished and never expire. If the store is slow, it creates only a few
// hundred.
func (t *trial) crowd(n int, record func(i int) durabletasks.Record) []durabletasks.Record {
	const creators, least, patience = 4, 300, time.Second
	var mu sync.Mutex
	var crowd []durabletasks.Record
	var next atomic.Int64
	began := time.Now()
	t.parallel(creators, func(int) {
		for {
			i := int(next.Add(1))
			if i > n || i > least && time.Since(began) > patience {
				return
			}
			r := record(i)
			t.create(r)
			mu.Lock()
			crowd = append(crowd, r)
			mu.Unlock()
			if i%10 == 0 {
				r := t.record(fmt.Sprint("finished ", i))
				r.Status = durabletasks.StatusCompleted
				t.create(r)
			}
		}
	})
	return crowd
}

// scanShowsMany creates more tasks than stores read at a time.
func scanShowsMany(t *trial) {
	t.shows("of many tasks", t.crowd(1100, t.unfinished)...)
}

// scanShowsUpdated is for stores that read page by page in an order that
// updates change.
func scanShowsUpdated(t *trial) {
	crowd := t.crowd(300, t.unfinished)
	var want []durabletasks.Record
	shown := make(map[string]bool)
	err := t.store.Scan(context.Background(), func(r durabletasks.Record) bool {
		if shown[r.ID] {
			t.fatalf("Scan showed task %s again after visit updated it", clip(r.ID))
		}
		shown[r.ID] = true
		r.StatusMessage, r.LastUpdatedAt = "updated", r.LastUpdatedAt.Add(time.Second)
		if len(shown)%3 == 0 {
			r.Status = durabletasks.StatusCompleted
		}
		if r = t.update(r); !r.Status.Terminal() {
			want = append(want, r)
		}
		return true
	})
	if err != nil {
		t.fatalf("Scan whose visit updates each task: %v", err)
	}
	if len(shown) != len(crowd) {
		t.fatalf("Scan whose visit updates each task showed %d of %d unfinished tasks", len(shown), len(crowd))
	}
	t.shows("after visit updated each task and completed some", want...)
}

func scanShowsCurrent(t *trial) {
	r := t.record("task")
	t.create(r)
	r.Status = durabletasks.StatusInputRequired
	r = t.update(r)
	t.shows("after an Update", r)
	r.Status = durabletasks.StatusCompleted
	t.update(r)
	t.shows("after the task was completed")
	t.create(t.expiring("swept", time.Hour))
	t.sweep(t.began.Add(time.Hour), 1)
	t.shows("after the task was swept")
}

func scanLeavesExpiredOut(t *trial) {
	t.create(t.expiring("short", time.Second))
	long := t.expiring("long", time.Hour)
	t.create(long)
	t.advance(time.Second)
	t.shows("with one of two tasks expired", long)
}

func scanStops(t *trial) {
	for i := range 5 {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	for _, limit := range []int{1, 3} {
		visits := 0
		err := t.store.Scan(context.Background(), func(durabletasks.Record) bool {
			visits++
			return visits < limit
		})
		if err != nil {
			t.fatalf("Scan whose visit returned false: %v", err)
		}
		if visits != limit {
			t.fatalf("Scan called visit %d times, though call %d returned false", visits, limit)
		}
	}
}

// scanVisitMayCall does what recovery does: it reads each task and changes some.
// A store that holds a lock during visit hangs here.
func scanVisitMayCall(t *trial) {
	ctx := context.Background()
	for i := range 4 {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	visits := 0
	err := t.store.Scan(ctx, func(r durabletasks.Record) bool {
		visits++
		t.stored(r, "read by visit")
		r.Status = durabletasks.StatusFailed
		t.update(r)
		if err := t.store.Create(ctx, t.full(r.ID+" finished", 2)); err != nil {
			t.fatalf("Create by visit: %v", err)
		}
		t.sweep(t.began, 0)
		if err := t.store.Scan(ctx, func(durabletasks.Record) bool { return false }); err != nil {
			t.fatalf("Scan by visit: %v", err)
		}
		return true
	})
	if err != nil {
		t.fatalf("Scan: %v", err)
	}
	if visits != 4 {
		t.fatalf("Scan of 4 unfinished tasks called visit %d times", visits)
	}
	t.shows("after every task was failed")
}

// scanVisitsInTurn yields in visit, so that watched sees another call of visit
// if there is one.
func scanVisitsInTurn(t *trial) {
	for i := range 8 {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	visits := 0
	err := t.store.Scan(context.Background(), func(durabletasks.Record) bool {
		visits++
		for range 100 {
			runtime.Gosched()
		}
		return true
	})
	if err != nil {
		t.fatalf("Scan: %v", err)
	}
	if visits != 8 {
		t.fatalf("Scan of 8 unfinished tasks called visit %d times one after the other", visits)
	}
}

// scanContinues ends some tasks during a Scan. These may be shown as they were
// before; all others must be shown.
func scanContinues(t *trial) {
	steady := make(map[string]durabletasks.Record)
	for i := range 9 {
		r := t.full(fmt.Sprint("steady ", i), i%2)
		t.create(r)
		steady[r.ID] = r
	}
	ended := make(map[string]durabletasks.Record)
	for i := range 2 {
		for _, r := range []durabletasks.Record{t.expiring(fmt.Sprint("swept ", i), time.Hour), t.record(fmt.Sprint("completed ", i))} {
			t.create(r)
			ended[r.ID] = r
		}
	}
	shown := make(map[string]bool)
	err := t.store.Scan(context.Background(), func(r durabletasks.Record) bool {
		if shown[r.ID] {
			t.fatalf("Scan showed task %s twice", clip(r.ID))
		}
		shown[r.ID] = true
		want, ok := steady[r.ID]
		if !ok {
			want = ended[r.ID]
		}
		t.same(r, want, "as Scan showed it, while other tasks ended")
		if len(shown) == 1 {
			t.sweep(t.began.Add(time.Hour), 2)
			for i := range 2 {
				r := t.record(fmt.Sprint("completed ", i))
				r.Status = durabletasks.StatusCompleted
				t.update(r)
			}
		}
		return true
	})
	if err != nil {
		t.fatalf("Scan while tasks are swept and completed: %v", err)
	}
	for id := range steady {
		if !shown[id] {
			t.fatalf("Scan did not show task %s while other tasks ended", clip(id))
		}
	}
}

func aliasOfScan(t *trial) {
	t.create(t.roomy("task", 1))
	for _, r := range t.scan() {
		scribble(r)
	}
	t.stored(t.full("task", 1), "after visit wrote to its record")
	t.shows("after visit wrote to its record", t.full("task", 1))
}

func scanChangesNothing(t *trial) {
	want := []durabletasks.Record{t.full("a", 0), t.full("b", 1)}
	for _, r := range want {
		t.create(r)
	}
	for range 3 {
		t.shows("repeated", want...)
	}
	for _, r := range want {
		t.stored(r, "after Scans")
	}
}

func doneStopsScan(t *trial) {
	t.create(t.record("task"))
	t.done(func(ctx context.Context, want error, kind string) {
		err := t.store.Scan(ctx, func(durabletasks.Record) bool {
			t.fatalf("Scan with %s called visit", kind)
			return true
		})
		t.wants(err, want, "Scan with %s", kind)
	})
}

func cancelledStopsScan(t *trial) {
	for i := range 8 {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	for _, at := range []int{1, 4} {
		ctx, cancel := context.WithCancel(context.Background())
		visits := 0
		err := t.store.Scan(ctx, func(durabletasks.Record) bool {
			if visits++; visits == at {
				cancel()
			} else if visits > at {
				t.fatalf("Scan called visit again after visit %d of 8 cancelled the context", at)
			}
			return true
		})
		cancel()
		t.wants(err, context.Canceled, "Scan whose context was cancelled by visit %d of 8", at)
	}
	if n := len(t.scan()); n != 8 {
		t.fatalf("Scan showed %d of 8 tasks after Scans whose context was cancelled", n)
	}
}

func scanReportsClosed(t *trial) {
	t.create(t.record("task"))
	if err := t.store.Close(); err != nil {
		t.fatalf("Close: %v", err)
	}
	err := t.store.Scan(context.Background(), func(durabletasks.Record) bool {
		t.fatalf("Scan after Close called visit")
		return true
	})
	t.wants(err, durabletasks.ErrClosed, "Scan after Close")
}

// scanReportsClose closes the store during a visit. Close may end the Scan or
// wait for it.
func scanReportsClose(t *trial) {
	const tasks = 8
	for i := range tasks {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	closed := make(chan error, 1)
	visits := 0
	err := t.store.Scan(context.Background(), func(durabletasks.Record) bool {
		if visits++; visits == 1 {
			go func() { closed <- t.store.Close() }()
			for spins := 0; len(closed) == 0 && spins < 10_000; spins++ { // Close may wait for the Scan
				runtime.Gosched()
			}
		}
		return true
	})
	if visits == 0 {
		t.fatalf("Scan of %d unfinished tasks did not call visit: %s", tasks, quoteError(err))
	}
	if err := <-closed; err != nil {
		t.fatalf("Close during a Scan: %v", err)
	}
	if err == nil && visits < tasks {
		t.fatalf("Scan during which the store was closed showed %d of %d tasks: got no error, want %q", visits, tasks, durabletasks.ErrClosed)
	}
	if err != nil {
		t.wants(err, durabletasks.ErrClosed, "Scan during which the store was closed")
	}
}

// scanSeesWhole scans while a task is updated and finished.
func scanSeesWhole(t *trial) {
	t.create(t.stamped("task", 0))
	t.create(t.stamped("still", 0))
	t.updateUnderReaders("task", func() {
		shown := t.scan()
		for id, r := range shown {
			if d := t.unstamped(r); d != "" {
				t.fatalf("Scan showed a mix of two versions of task %s: at version %d, %s", clip(id), r.Version, d)
			}
			if r.Status.Terminal() {
				t.fatalf("Scan showed task %s, which is %s", clip(id), r.Status)
			}
		}
		if _, ok := shown["still"]; !ok {
			t.fatalf("Scan during updates of another task did not show task %s", clip("still"))
		}
	})
}

func scanAfterReopen(t *trial) {
	working, asking, finished := t.full("working", 0), t.full("asking", 1), t.full("finished", 0)
	for _, r := range []durabletasks.Record{working, asking, finished} {
		t.create(r)
	}
	t.update(t.full("finished", 2))
	t.reopen()
	t.shows("after a reopen", working, asking)
}

func scanShowsOwn(t *trial) {
	one, other := t.record("of one"), t.record("of the other")
	t.create(one)
	second := t.on(t.share())
	second.create(other)
	t.shows("with another instance open", one)
	second.shows("with another instance open", other)
	one.StatusMessage = "updated by the other"
	one = second.update(one)
	second.shows("after an Update of a task that another instance created", other)
	t.shows("after another instance's Update", one)
}

func scanShowsLeft(t *trial) {
	const tasks = 12
	others := t.instances()[1:]
	for i := range tasks {
		t.create(t.record(fmt.Sprint("task ", i)))
	}
	if err := t.store.Close(); err != nil {
		t.fatalf("Close of one of several instances: %v", err)
	}
	shown := make([]map[string]durabletasks.Record, len(others))
	t.parallel(len(others), func(i int) { shown[i] = others[i].scan() })
	for id := range shown[0] {
		if _, again := shown[1][id]; again {
			t.fatalf("concurrent Scans by two instances both showed task %s, whose instance was closed", clip(id))
		}
	}
	if n := len(shown[0]) + len(shown[1]); n != tasks {
		t.fatalf("concurrent Scans by two instances showed %d of the %d tasks whose instance was closed", n, tasks)
	}
}
