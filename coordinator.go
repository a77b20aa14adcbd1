package durabletasks

import (
	"context"
	"sync"
	"time"
)

// The process-local half of the engine. What is durable of a task lives in
// its record; what only this process knows of it lives here: whose turn it is
// to write, which contexts its workers hold, who wants to hear of a change.
// It is rebuilt from records after a restart and decides nothing by itself:
// whoever is woken reads the record again.

// coordinator finds the local half of a task. An entry exists while somebody
// in this process writes, works on, waits for or watches the task; an idle
// task costs nothing here.
type coordinator struct {
	mu    sync.Mutex
	tasks map[string]*localTask
}

// localTask is the process-local half of one task.
type localTask struct {
	id   string
	refs int // guarded by coordinator.mu

	// turn is held by the one goroutine that reads, decides and commits. The
	// others queue for it in order of arrival, so writers of one process do
	// not defeat each other's compare-and-swap.
	turn chan struct{}

	mu        sync.Mutex
	contexts  map[*workerContext]struct{} // each holds a reference
	listeners map[*listener]struct{}      // each holds a reference
	asking    bool                        // a RequestInput or ResumeInput is under way
	running   bool                        // a worker started by the engine is alive
	gone      bool                        // the task was found to have expired
	timer     *time.Timer                 // looks at the expiry; armed only while contexts or listeners exist
}

// workerContext is one context that ends with its task.
type workerContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// listener collects which tasks have changed, for one goroutine that waits.
// Changes that come faster than they are looked at count once.
type listener struct {
	ready chan struct{} // has capacity 1: something is dirty

	mu    sync.Mutex
	dirty map[string]struct{}
}

func newListener() *listener {
	return &listener{ready: make(chan struct{}, 1), dirty: make(map[string]struct{})}
}

func (l *listener) notify(id string) {
	l.mu.Lock()
	l.dirty[id] = struct{}{}
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take returns the ids that have changed since the last take.
func (l *listener) take() map[string]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	dirty := l.dirty
	l.dirty = make(map[string]struct{})
	return dirty
}

// acquire returns the local half of a task, to be released.
func (c *coordinator) acquire(id string) *localTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tasks[id]
	if t == nil {
		t = &localTask{id: id, turn: make(chan struct{}, 1)}
		if c.tasks == nil {
			c.tasks = make(map[string]*localTask)
		}
		c.tasks[id] = t
	}
	t.refs++
	return t
}

// find is acquire for a task that has a local half already; nil if not.
func (c *coordinator) find(id string) *localTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := c.tasks[id]
	if t != nil {
		t.refs++
	}
	return t
}

// release gives back n references.
func (c *coordinator) release(t *localTask, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t.refs -= n; t.refs == 0 {
		delete(c.tasks, t.id)
	}
}

// all returns every local half, each to be released.
func (c *coordinator) all() []*localTask {
	c.mu.Lock()
	defer c.mu.Unlock()
	tasks := make([]*localTask, 0, len(c.tasks))
	for _, t := range c.tasks {
		t.refs++
		tasks = append(tasks, t)
	}
	return tasks
}

// begin waits for the turn to write.
func (t *localTask) begin(ctx context.Context) error {
	select {
	case t.turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case t.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done passes the turn on.
func (t *localTask) done() { <-t.turn }

// listen adds a listener. The caller hands over a reference, which ignore
// gives back.
func (t *localTask) listen(l *listener) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.listeners == nil {
		t.listeners = make(map[*listener]struct{})
	}
	t.listeners[l] = struct{}{}
}

func (c *coordinator) ignore(t *localTask, l *listener) {
	t.mu.Lock()
	delete(t.listeners, l)
	t.disarmIfIdle()
	t.mu.Unlock()
	c.release(t, 1)
}

// attach adds a context that ends with the task. The caller hands over a
// reference, which detach or end gives back.
func (t *localTask) attach(w *workerContext) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.contexts == nil {
		t.contexts = make(map[*workerContext]struct{})
	}
	t.contexts[w] = struct{}{}
}

// hasContexts reports whether anybody has a context that ends with the task.
func (t *localTask) hasContexts() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.contexts) > 0
}

// detach forgets a context that its owner no longer needs, and ends it.
func (c *coordinator) detach(t *localTask, w *workerContext, cause error) {
	t.mu.Lock()
	_, held := t.contexts[w]
	delete(t.contexts, w)
	t.disarmIfIdle()
	t.mu.Unlock()
	w.cancel(cause)
	if held {
		c.release(t, 1)
	}
}

// tell wakes everybody who listens to the task.
func (t *localTask) tell() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for l := range t.listeners {
		l.notify(t.id)
	}
}

// interrupt ends the contexts of the task's workers without forgetting them:
// a worker still has to settle the task. The first cause stays.
func (t *localTask) interrupt(cause error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for w := range t.contexts {
		w.cancel(cause)
	}
}

// end ends the contexts of the task's workers for good: the task is over, or
// out of reach. When it returns they have ended, also if another goroutine was
// just about it.
func (c *coordinator) end(t *localTask, cause error) {
	t.mu.Lock()
	n := len(t.contexts)
	for w := range t.contexts {
		w.cancel(cause)
	}
	t.contexts = nil
	t.disarmIfIdle()
	t.mu.Unlock()
	c.release(t, n)
}

// missed notes that the task is gone. It reports true the first time, if
// anybody holds on to it.
func (t *localTask) missed() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.gone
	t.gone = true
	return first && len(t.contexts)+len(t.listeners) > 0
}

// held reports whether anybody holds on to the task beyond a single write.
func (t *localTask) held() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return len(t.contexts)+len(t.listeners) > 0
}

// arm sets the timer that looks at the expiry of a task that somebody holds
// on to; a task without a limit needs none.
func (t *localTask) arm(after time.Duration, limited bool, fire func()) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
	if limited && len(t.contexts)+len(t.listeners) > 0 {
		t.timer = time.AfterFunc(after, fire)
	}
}

// disarmIfIdle stops the timer when nobody holds on to the task any more. The
// caller holds mu.
func (t *localTask) disarmIfIdle() {
	if t.timer != nil && len(t.contexts)+len(t.listeners) == 0 {
		t.timer.Stop()
		t.timer = nil
	}
}
