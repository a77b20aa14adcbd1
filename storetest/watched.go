package storetest

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// watched is the store under test. It records the calls that are running.
type watched struct {
	durabletasks.TaskStore
	scanner     durabletasks.Scanner // nil if the store does not implement it
	watcher     durabletasks.Watcher // nil if the store does not implement it
	trial       *trial
	closeCalled atomic.Bool
}

func newWatched(t *trial, store durabletasks.TaskStore) *watched {
	scanner, _ := store.(durabletasks.Scanner)
	watcher, _ := store.(durabletasks.Watcher)
	return &watched{TaskStore: store, scanner: scanner, watcher: watcher, trial: t}
}

func (w *watched) Create(ctx context.Context, r durabletasks.Record) error {
	defer w.call("Create of task %v", quoted(r.ID))()
	return w.TaskStore.Create(ctx, r)
}

func (w *watched) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	defer w.call("Get of task %v", quoted(id))()
	return w.TaskStore.Get(ctx, id)
}

func (w *watched) Update(ctx context.Context, next durabletasks.Record) error {
	defer w.call("Update of task %v from version %d", quoted(next.ID), next.Version)()
	return w.TaskStore.Update(ctx, next)
}

func (w *watched) Sweep(ctx context.Context, now time.Time) (int, error) {
	defer w.call("Sweep at %v", now)()
	return w.TaskStore.Sweep(ctx, now)
}

func (w *watched) Close() error {
	defer w.call("Close")()
	w.closeCalled.Store(true)
	return w.TaskStore.Close()
}

func (w *watched) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	defer w.call("Scan")()
	var visiting atomic.Int32
	return w.scanner.Scan(ctx, func(r durabletasks.Record) bool {
		defer visiting.Add(-1)
		if visiting.Add(1) > 1 {
			w.trial.errorf("Scan called visit with task %v while another call of visit was running", quoted(r.ID))
			return false // the visits of checks are not made for this
		}
		return visit(r)
	})
}

func (w *watched) Watch(ctx context.Context, changed func(id string)) error {
	defer w.call("Watch")()
	return w.watcher.Watch(ctx, changed)
}

// call records the start of a call. The function that it returns must be
// deferred: it records the end, and turns a panic of the store into a failure.
func (w *watched) call(format string, args ...any) func() {
	ended := w.trial.calls.begin(format, args...)
	return func() {
		if p := recover(); p != nil {
			w.trial.fatalf("%s panicked: %v\n%s", fmt.Sprintf(format, args...), p, debug.Stack())
		}
		ended()
	}
}

// calls are the running calls. The zero value has none.
type calls struct {
	mu   sync.Mutex
	next int
	open map[int]running
}

// running describes a call. It is formatted only if the call hangs.
type running struct {
	format string
	args   []any
}

// begin records a call until the function that it returns is called.
func (c *calls) begin(format string, args ...any) (ended func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = make(map[int]running)
	}
	n := c.next
	c.next++
	c.open[n] = running{format, args}
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, n)
	}
}

// names lists the running calls in the order in which they began.
func (c *calls) names() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.open) == 0 {
		return "none"
	}
	var order []int
	for n := range c.open {
		order = append(order, n)
	}
	slices.Sort(order)
	var names []string
	for _, n := range order {
		names = append(names, fmt.Sprintf(c.open[n].format, c.open[n].args...))
	}
	return strings.Join(names, "; ")
}
