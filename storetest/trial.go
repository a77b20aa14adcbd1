package storetest

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// trial is one run of a check against one store. Its methods may be called by
// the goroutines that the check starts.
type trial struct {
	tb      testing.TB
	subject Subject
	short   bool
	began   time.Time // the store's time at the start, in whole milliseconds
	store   *watched
	shares  []*watched // its other instances
	calls   *calls
	failed  *failures
	stop    func() // ends the calling goroutine after a failure
	timeout *time.Timer
	skip    string

	given     func() time.Time // the subject's own Now
	elsewhere func() time.Time // the clock that a store uses if it uses the wrong one
	hurried   bool             // go test's -timeout leaves less than the subject's Timeout
	hung      *atomic.Bool     // the check did not end

	reopenedSame bool // Reopen returned its argument
}

// failures are the failures of a check. The check's goroutines add to them.
type failures struct {
	mu    sync.Mutex
	texts []string
	hint  string
}

// add adds a failure, unless there are several: a check that repeats something
// also repeats its failure.
func (f *failures) add(text string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.texts) < 5 {
		f.texts = append(f.texts, "\t"+strings.ReplaceAll(text, "\n", "\n\t"))
	}
}

// explain adds a hint to the failures.
func (f *failures) explain(hint string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.hint = "\n\tHint: " + hint
}

// String returns the failures, or "".
func (f *failures) String() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return strings.Join(f.texts, "\n") + f.hint
}

// newTrial returns a trial of the subject for the test tb. If short is set,
// checks repeat less.
func newTrial(tb testing.TB, s Subject, short bool) *trial {
	given, elsewhere := s.Now, time.Now
	if s.Now == nil {
		s.Now = time.Now
		elsewhere = new(Clock).Now
	}
	if s.Timeout == 0 {
		s.Timeout = time.Minute
	}
	t := &trial{tb: tb, subject: s, short: short, calls: new(calls), failed: new(failures), hung: new(atomic.Bool), stop: runtime.Goexit}
	t.given, t.elsewhere = given, elsewhere
	// When go test's own -timeout ends the process, failures are not printed.
	if tb, ok := tb.(interface{ Deadline() (time.Time, bool) }); ok {
		if deadline, ok := tb.Deadline(); ok {
			left := max(time.Until(deadline)/2, time.Millisecond)
			t.hurried = left < s.Timeout
			t.subject.Timeout = min(left, s.Timeout)
		}
	}
	return t
}

// run runs the check and reports the result to the trial's test.
func (c check) run(t *trial) {
	t.tb.Helper()
	t.attempt(c, func() { t.perform(c) })
}

// attempt calls perform, which performs the check, and reports the result.
func (t *trial) attempt(c check, perform func()) {
	tb := t.tb
	tb.Helper()
	if t.skip = t.subject.missing(c.needs); t.skip != "" {
		tb.Skip(t.skip)
		return
	}
	t.await(perform)
	if failures := t.failed.String(); failures != "" {
		tb.Errorf("%s: %s\n%s", c.clause, clauses[c.clause], failures)
	} else if t.skip != "" {
		tb.Skip(t.skip)
	}
}

// await calls f and returns when f has returned or timed out. Nothing can end a
// goroutine that hangs, so await leaves it behind.
func (t *trial) await(f func()) {
	t.timeout = time.NewTimer(t.subject.Timeout)
	defer t.timeout.Stop()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		f()
	}()
	select {
	case <-ended:
	case <-t.timeout.C:
		t.hung.Store(true) // not a plain field: what hangs may still use the trial
		t.errorf("the check did not end within %v; calls that have not returned: %s\n\n%s", t.subject.Timeout, t.calls.names(), stacks(""))
	}
}

// stacks returns the stacks of the goroutines whose first line contains text.
func stacks(text string) string {
	all := make([]byte, 256<<10)
	all = all[:runtime.Stack(all, true)]
	var found []string
	for stack := range strings.SplitSeq(string(all), "\n\n") {
		if first, _, _ := strings.Cut(stack, "\n"); strings.Contains(first, text) {
			found = append(found, stack)
		}
	}
	return strings.Join(found, "\n\n")
}

// perform runs the check's function on a new store and closes the store.
func (t *trial) perform(c check) {
	defer func() {
		if t.failed.String() != "" {
			t.explain(c.needs)
		}
	}()
	t.began = t.now()
	t.store = t.open("New", t.subject.New)
	defer t.close()
	if c.needs&needsScanner != 0 && t.store.scanner == nil {
		t.skip = "skipped, because the store does not implement durabletasks.Scanner"
		return
	}
	if c.needs&needsWatcher != 0 && t.store.watcher == nil {
		t.skip = "skipped, because the store does not implement durabletasks.Watcher"
		return
	}
	if c.needs&needsRewind != 0 && !t.canGoBack() {
		t.skip = "skipped, because Subject.Advance does not set the time back"
		return
	}
	c.f(t)
}

// open calls f, the subject's function of this name, which returns a store.
func (t *trial) open(name string, f func(testing.TB) durabletasks.TaskStore) *watched {
	ended := t.calls.begin("%s", name)
	defer func() {
		if p := recover(); p != nil {
			t.fatalf("Subject.%s panicked: %v\n%s", name, p, debug.Stack())
		}
	}()
	store := f(t.tb)
	ended()
	if store == nil {
		t.fatalf("Subject.%s returned nil", name)
	}
	return newWatched(t, store)
}

// close closes the stores that the check has not closed.
func (t *trial) close() {
	for _, store := range append(t.shares, t.store) {
		if store.closeCalled.Load() {
			continue
		}
		if err := store.Close(); err != nil {
			t.errorf("Close at the end of the check: %v", err)
		}
	}
}

// share returns another instance of the store.
func (t *trial) share() *watched {
	store := t.open("Share", func(tb testing.TB) durabletasks.TaskStore { return t.subject.Share(tb, t.store.TaskStore) })
	t.shares = append(t.shares, store)
	return store
}

// reopen closes the store and continues with one on the same data.
func (t *trial) reopen() {
	if !t.store.closeCalled.Load() {
		if err := t.store.Close(); err != nil {
			t.fatalf("Close before a reopen: %v", err)
		}
	}
	old := t.store.TaskStore
	t.store = t.open("Reopen", func(tb testing.TB) durabletasks.TaskStore { return t.subject.Reopen(tb, old) })
	t.reopenedSame = sameStore(old, t.store.TaskStore)
}

// now returns the store's time in UTC and whole milliseconds, as in records.
func (t *trial) now() time.Time {
	return t.subject.Now().UTC().Truncate(time.Millisecond)
}

// advance moves the store's time by exactly d.
func (t *trial) advance(d time.Duration) {
	want := t.subject.Now().Add(d)
	t.subject.Advance(d)
	if now := t.subject.Now(); !now.Equal(want) {
		t.fatalf("Subject.Advance(%v) moved Subject.Now by %v; only Advance may move the time", d, d+now.Sub(want))
	}
}

// canGoBack reports whether the store's time can be set back.
func (t *trial) canGoBack() bool {
	before := t.subject.Now()
	t.subject.Advance(-time.Millisecond)
	if !t.subject.Now().Before(before) {
		return false
	}
	t.subject.Advance(time.Millisecond)
	return true
}

// rounds returns how often a check repeats something: n times, or less if the
// trial is short.
func (t *trial) rounds(n int) int {
	if t.short {
		return max(n/5, 6)
	}
	return n
}

// errorf records a failure.
func (t *trial) errorf(format string, args ...any) {
	t.failed.add(fmt.Sprintf(format, args...))
}

// fatalf records a failure and ends the calling goroutine.
func (t *trial) fatalf(format string, args ...any) {
	t.errorf(format, args...)
	t.stop()
}

// parallel calls f(0) to f(n-1) at the same time and waits for all of them. If
// anything has failed by then, it ends the calling goroutine.
func (t *trial) parallel(n int, f func(i int)) {
	start := make(chan struct{})
	var group sync.WaitGroup
	for i := range n {
		group.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	group.Wait()
	if t.failed.String() != "" {
		t.stop()
	}
}

// create stores a record, which must succeed.
func (t *trial) create(r durabletasks.Record) {
	if err := t.store.Create(context.Background(), r); err != nil {
		hint := ""
		if errors.Is(err, durabletasks.ErrExists) {
			hint = " (Subject.New must return an empty store)"
		}
		t.fatalf("Create of task %s: %v%s", clip(r.ID), err, hint)
	}
}

// get returns the record with this id, which must be there.
func (t *trial) get(id string) durabletasks.Record {
	r, err := t.store.Get(context.Background(), id)
	if err != nil {
		t.fatalf("Get of task %s: %v", clip(id), err)
	}
	return r
}

// update replaces the record of a task, which must succeed, and returns the
// record that must now be stored.
func (t *trial) update(next durabletasks.Record) durabletasks.Record {
	if err := t.store.Update(context.Background(), next); err != nil {
		t.fatalf("Update of task %s from version %d: %v", clip(next.ID), next.Version, err)
	}
	return at(next.Version+1, next)
}

// sweep sweeps, which must succeed and remove n records.
func (t *trial) sweep(now time.Time, n int) {
	if got, err := t.store.Sweep(context.Background(), now); err != nil {
		t.fatalf("Sweep: %v", err)
	} else if got != n {
		t.fatalf("Sweep returned %d, want %d", got, n)
	}
}

// stored checks that Get returns exactly this record; when describes the
// situation.
func (t *trial) stored(want durabletasks.Record, when string) {
	r, err := t.store.Get(context.Background(), want.ID)
	if err != nil {
		t.fatalf("Get of task %s %s: %v", clip(want.ID), when, err)
	}
	t.same(r, want, when)
}

// same checks that got, which the store returned, is equal to want.
func (t *trial) same(got, want durabletasks.Record, when string) {
	if d := diff(got, want); d != "" {
		t.fatalf("task %s %s: %s", clip(want.ID), when, d)
	}
}

// gone checks that neither Get nor Update finds the task.
func (t *trial) gone(id, when string) {
	_, err := t.store.Get(context.Background(), id)
	t.wants(err, durabletasks.ErrNotFound, "Get of task %s %s", clip(id), when)
	err = t.store.Update(context.Background(), t.record(id))
	t.wants(err, durabletasks.ErrNotFound, "Update of task %s %s", clip(id), when)
}

// wants checks the error of a call that must fail.
func (t *trial) wants(err, want error, call string, args ...any) {
	if errors.Is(err, want) {
		return
	}
	t.fatalf("%s: got %s, want %q", fmt.Sprintf(call, args...), quoteError(err), want)
}

func quoteError(err error) string {
	if err == nil {
		return "no error"
	}
	return fmt.Sprintf("error %q", err)
}
