package durabletasks

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// What is durable of a task lives in its record. What only this process knows
// of it lives here: whose turn it is to write, which contexts end with the
// task, who waits for a change, when its expiry is looked at. It is rebuilt
// from records after a restart and decides nothing: whoever is notified reads
// the record again.

// localTasks finds the process-local half of a task. An entry exists while
// somebody in this process writes, works on, waits for or watches the task; an
// idle task costs nothing here.
type localTasks struct {
	mu    sync.Mutex // guards the map and the entries; held for moments only
	tasks map[string]*localTask
}

// localTask is the process-local half of one task.
type localTask struct {
	id  string
	all *localTasks

	// turn is held by the one goroutine that reads, decides and commits. The
	// others queue for it in order of arrival, so writers of one process do
	// not defeat each other's compare-and-swap.
	turn chan struct{}

	// Guarded by all.mu.
	users     int                       // calls between acquire and release
	contexts  map[*taskContext]struct{} // end with the task
	listeners map[*listener]struct{}    // are notified of each change
	asking    bool                      // a RequestInput is under way
	running   bool                      // the engine runs a worker
	expired   bool                      // the store has reported the task as gone
	timer     *time.Timer               // looks at the expiry; armed only while somebody holds on to the task
}

// taskContext is a context that ends with its task.
type taskContext struct {
	context.Context
	cancel context.CancelCauseFunc
}

// listener collects which tasks have changed, for one goroutine that waits.
// Changes that come faster than they are taken count once.
type listener struct {
	ready chan struct{} // has capacity 1: something has changed

	mu      sync.Mutex
	changed map[string]struct{}
}

func newListener() *listener {
	return &listener{ready: make(chan struct{}, 1), changed: make(map[string]struct{})}
}

func (l *listener) notify(id string) {
	l.mu.Lock()
	l.changed[id] = struct{}{}
	l.mu.Unlock()
	select {
	case l.ready <- struct{}{}:
	default:
	}
}

// take returns the ids of the tasks that have changed since the last take.
func (l *listener) take() map[string]struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	changed := l.changed
	l.changed = make(map[string]struct{})
	return changed
}

// acquire returns the entry of a task, for a call that releases it.
func (a *localTasks) acquire(id string) *localTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tasks[id]
	if t == nil {
		t = &localTask{id: id, all: a, turn: make(chan struct{}, 1)}
		if a.tasks == nil {
			a.tasks = make(map[string]*localTask)
		}
		a.tasks[id] = t
	}
	t.users++
	return t
}

// find is acquire for a task that has an entry already; nil if it has none.
func (a *localTasks) find(id string) *localTask {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.tasks[id]
	if t != nil {
		t.users++
	}
	return t
}

// each calls f with every entry, without holding the lock.
func (a *localTasks) each(f func(*localTask)) {
	a.mu.Lock()
	tasks := slices.Collect(maps.Values(a.tasks))
	for _, t := range tasks {
		t.users++
	}
	a.mu.Unlock()
	for _, t := range tasks {
		f(t)
		t.release()
	}
}

// running returns the ids of the tasks whose worker runs, sorted.
func (a *localTasks) running() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	ids := []string{}
	for id, t := range a.tasks {
		if t.running {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

func (t *localTask) lock() { t.all.mu.Lock() }

// unlock also stops a timer that nobody needs any more, and removes an entry
// that nobody uses.
func (t *localTask) unlock() {
	defer t.all.mu.Unlock()
	if t.isHeld() {
		return
	}
	t.stopTimer()
	if t.users == 0 && !t.running && t.all.tasks[t.id] == t {
		delete(t.all.tasks, t.id)
	}
}

// isHeld reports whether somebody holds on to the task beyond a single call.
// The caller has the lock.
func (t *localTask) isHeld() bool { return len(t.contexts)+len(t.listeners) > 0 }

// stopTimer stops the timer. The caller has the lock.
func (t *localTask) stopTimer() {
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
	}
}

// release ends what acquire, find or each began.
func (t *localTask) release() {
	t.lock()
	defer t.unlock()
	t.users--
}

// begin waits for the turn to write; end passes it on.
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

func (t *localTask) end() { <-t.turn }

// listen adds a listener, until ignore.
func (t *localTask) listen(l *listener) {
	t.lock()
	defer t.unlock()
	if t.listeners == nil {
		t.listeners = make(map[*listener]struct{})
	}
	t.listeners[l] = struct{}{}
}

func (t *localTask) ignore(l *listener) {
	t.lock()
	defer t.unlock()
	delete(t.listeners, l)
}

// notify wakes everybody who listens to the task.
func (t *localTask) notify() {
	t.lock()
	defer t.unlock()
	for l := range t.listeners {
		l.notify(t.id)
	}
}

// attach adds a context that ends with the task, until detach or endContexts.
func (t *localTask) attach(c *taskContext) {
	t.lock()
	defer t.unlock()
	if t.contexts == nil {
		t.contexts = make(map[*taskContext]struct{})
	}
	t.contexts[c] = struct{}{}
}

// detach forgets a context that its owner no longer needs, and ends it.
func (t *localTask) detach(c *taskContext, cause error) {
	t.lock()
	defer t.unlock()
	delete(t.contexts, c)
	c.cancel(cause)
}

// interrupt ends the task's contexts without forgetting them: a worker still
// has to settle the task. The first cause stays.
func (t *localTask) interrupt(cause error) {
	t.lock()
	defer t.unlock()
	for c := range t.contexts {
		c.cancel(cause)
	}
}

// endContexts ends the task's contexts for good: the task is over, or out of
// reach. When it returns they have ended, even if another goroutine was about
// to end them.
func (t *localTask) endContexts(cause error) {
	t.lock()
	defer t.unlock()
	for c := range t.contexts {
		c.cancel(cause)
	}
	t.contexts = nil
}

// expire marks the task as gone. It reports true the first time, if somebody
// holds on to it.
func (t *localTask) expire() bool {
	t.lock()
	defer t.unlock()
	first := !t.expired
	t.expired = true
	return first && t.isHeld()
}

// startAsking marks that a RequestInput is under way, and reports false if one
// already was; stopAsking ends it.
func (t *localTask) startAsking() bool { return t.mark(&t.asking) }

func (t *localTask) stopAsking() { t.unmark(&t.asking) }

// startRunning marks that the engine runs a worker, and reports false if it
// already did; stopRunning ends it.
func (t *localTask) startRunning() bool { return t.mark(&t.running) }

func (t *localTask) stopRunning() { t.unmark(&t.running) }

func (t *localTask) mark(flag *bool) bool {
	t.lock()
	defer t.unlock()
	was := *flag
	*flag = true
	return !was
}

func (t *localTask) unmark(flag *bool) {
	t.lock()
	defer t.unlock()
	*flag = false
}

// held, hasContexts and isRunning report who holds on to the task.
func (t *localTask) held() bool {
	t.lock()
	defer t.unlock()
	return t.isHeld()
}

func (t *localTask) hasContexts() bool {
	t.lock()
	defer t.unlock()
	return len(t.contexts) > 0
}

func (t *localTask) isRunning() bool {
	t.lock()
	defer t.unlock()
	return t.running
}

// arm makes the timer call fire after some time, instead of what it was armed
// for before. A task that nobody holds on to needs no timer.
func (t *localTask) arm(after time.Duration, fire func()) {
	t.lock()
	defer t.unlock()
	t.stopTimer()
	t.timer = time.AfterFunc(after, fire)
}

// disarm stops the timer: the task has no limit, or has ended.
func (t *localTask) disarm() {
	t.lock()
	defer t.unlock()
	t.stopTimer()
}
