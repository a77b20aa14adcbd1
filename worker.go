package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Worker does the work of one task. ctx is the handle's context. What it
// returns ends the task:
//
//   - a result and no error: completed, as by [Handle.Complete]. A result
//     that cannot be stored fails the task with -32603.
//   - an error that wraps a [*wire.Error]: failed, with that error.
//   - any other error after the context ended with [ErrCancelled]: cancelled.
//   - any error after the context ended with [ErrShutdown] or [ErrClosed]: the
//     task stays as it is, to be resumed by the next process. So it does after
//     [ErrExpired], if it is there again because a clock was set back.
//   - any other error: completed with a result whose isError is true and
//     whose text is the error's, as MCP has it for tools.
//   - a panic, or runtime.Goexit: failed with -32603, without details; the
//     stack goes to the log.
//
// What a store refuses, such as one that is busy, is tried again for some
// seconds; if it still cannot be stored, the task is failed with -32603.
//
// A worker that ends its task itself returns a zero result and no error. So
// may one that leaves because its context has ended: that counts as returning
// the context's cause.
type Worker func(ctx context.Context, h *Handle) (wire.JSON, error)

// workers counts the goroutines that the engine runs workers in.
type workers struct {
	drain chan struct{} // closed when a shutdown begins

	mu      sync.Mutex
	alive   map[string]struct{} // ids of the tasks whose worker is alive
	slots   int                 // alive, or about to be
	drained bool                // drain is closed: slots are only given back
	idle    chan struct{}       // made by a shutdown, closed with the last slot
}

func (w *workers) draining() <-chan struct{} { return w.drain }

// open reports whether new work may begin.
func (w *workers) open() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.drained {
		return ErrShutdown
	}
	return nil
}

// reserve takes one of limit slots; no limit if 0.
func (w *workers) reserve(limit int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.drained:
		return ErrShutdown
	case limit > 0 && w.slots >= limit:
		return ErrBusy
	}
	w.slots++
	return nil
}

func (w *workers) started(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.alive == nil {
		w.alive = make(map[string]struct{})
	}
	w.alive[id] = struct{}{}
}

func (w *workers) ended(id string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.alive, id)
}

// free gives a slot back.
func (w *workers) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots--; w.slots == 0 && w.drained {
		close(w.idle)
	}
}

// shut refuses new work and returns a channel that is closed when the last
// worker has ended.
func (w *workers) shut() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.drained {
		w.drained = true
		close(w.drain)
		w.idle = make(chan struct{})
		if w.slots == 0 {
			close(w.idle)
		}
	}
	return w.idle
}

func (w *workers) stragglers() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	ids := make([]string, 0, len(w.alive))
	for id := range w.alive {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Start creates a task and runs its worker: [TaskLifecycle.CreateTask] and
// [TaskLifecycle.Go] in one. With [Options].MaxWorkers reached it reports
// [ErrBusy] before anything is stored. A [TaskLifecycle.Recover] that runs at
// the same time leaves the task to its worker.
func (l *TaskLifecycle) Start(ctx context.Context, opts *CreateOptions, work Worker) (wire.CreateTaskResult, error) {
	p, err := l.place(l.opts.MaxWorkers)
	if err != nil {
		return wire.CreateTaskResult{}, err
	}
	defer p.abandon()
	created, err := l.create(ctx, opts, func(t *localTask) error {
		if !p.claim(t.id) {
			return ErrExists
		}
		return nil
	})
	if err != nil {
		return wire.CreateTaskResult{}, err
	}
	// The task is committed: the caller's impatience no longer stops it.
	p.start(l.handle(ctx, created.TaskID), work)
	return created, nil
}

// Go runs the worker of an unfinished task in a goroutine of the engine's,
// with the values of ctx but not its cancellation. A task has one such worker
// at a time. While it is alive, its task does not expire: the time to live
// that clients see is raised in time.
//
// Errors: [ErrBusy]; [ErrRunning]; [ErrNotFound]; [*TerminalError];
// [ErrShutdown]; [ErrClosed]; ctx's; the store's own. With any of them the
// worker does not run.
func (l *TaskLifecycle) Go(ctx context.Context, id string, work Worker) error {
	p, err := l.place(l.opts.MaxWorkers)
	if err != nil {
		return err
	}
	defer p.abandon()
	// What was read before the task is claimed may be over by then: another
	// worker may have ended it, or the engine closed.
	free := p.claim(id)
	h, err := l.Handle(ctx, id)
	switch {
	case err != nil:
		return err
	case !free:
		return ErrRunning
	case l.live() != nil:
		return ErrClosed
	}
	p.start(h, work)
	return nil
}

// place is one worker's place in the engine, before and while it runs.
type place struct {
	l       *TaskLifecycle
	t       *localTask // nil until claimed
	started bool       // its worker has, whose goroutine will leave
}

// place takes one of limit slots.
func (l *TaskLifecycle) place(limit int) (*place, error) {
	if err := l.workers.reserve(limit); err != nil {
		return nil, err
	}
	return &place{l: l}, nil
}

// claim makes this the place of a task's one worker, if it has none.
func (p *place) claim(id string) bool {
	t := p.l.local.acquire(id)
	if !t.startRunning() {
		p.l.local.release(t, 1)
		return false
	}
	p.t = t
	return true
}

// abandon gives the place back, unless a worker has it now. It is for the
// goroutine that has taken it.
func (p *place) abandon() {
	if !p.started {
		p.leave()
	}
}

// leave gives the place back.
func (p *place) leave() {
	if p.t != nil {
		p.t.stopRunning()
		p.l.local.release(p.t, 1)
	}
	p.l.workers.free()
}

// start runs the worker in a place that is claimed, unless the engine closes
// first.
func (p *place) start(h *Handle, work Worker) {
	l := p.l
	worker := h.Context().(*workerContext)
	l.workers.started(h.id)
	p.started = true
	go func() {
		var result wire.JSON
		var failure error
		returned := false
		defer func() { // also when work panics or exits
			if !returned {
				failure = l.crashed(recover())
			}
			settled := false
			l.guard("settle task", func() {
				l.settle(h, result, failure)
				settled = true
			})
			if !settled { // an error of the worker's own type may panic
				l.guard("settle task", func() { l.settle(h, wire.JSON{}, internalError()) })
			}
			l.workers.ended(h.id)
			l.local.detach(p.t, worker, context.Canceled)
			p.leave()
		}()
		if failure = l.live(); failure == nil {
			result, failure = work(worker, h)
		}
		returned = true
	}()
}

func (t *localTask) startRunning() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.running
	t.running = true
	return first
}

func (t *localTask) stopRunning() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running = false
}

func (t *localTask) isRunning() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.running
}

func internalError() *wire.Error {
	return &wire.Error{Code: wire.CodeInternalError, Message: "Internal error"}
}

// crashed logs where a worker panicked, without what it panicked with, which
// may hold anything.
func (l *TaskLifecycle) crashed(p any) error {
	reason := "worker called runtime.Goexit"
	if p != nil {
		reason = "worker panicked"
	}
	l.report(slog.LevelError, reason, typeOf(p), slog.String("stack", string(debug.Stack())))
	return internalError()
}

// settle ends a task as its worker's return says.
func (l *TaskLifecycle) settle(h *Handle, result wire.JSON, failure error) {
	ctx := h.base
	cause := context.Cause(h.Context())
	if failure == nil && result.IsZero() {
		failure = cause // a worker that left because it was told to
	}
	var rpc *wire.Error
	var err error
	switch {
	case failure == nil && result.IsZero() && l.hasEnded(h):
	case failure == nil:
		err = l.insist(func() error { return h.Complete(ctx, result) })
	case errors.As(failure, &rpc):
		err = l.insist(func() error { return h.Fail(ctx, rpc) })
	case cause == ErrCancelled:
		err = l.insist(func() error { return h.Cancelled(ctx, "") })
	case cause == ErrShutdown, cause == ErrClosed, cause == ErrExpired:
	default:
		err = l.insist(func() error { return h.Complete(ctx, toolError(failure)) })
	}
	if err == nil || over(err) {
		return
	}
	// What the worker returned cannot be stored. The client still learns that
	// the task has ended, if anything can be stored at all.
	l.report(slog.LevelError, "task outcome not stored", slog.Any("error", err))
	err = l.insist(func() error { return h.Fail(ctx, internalError()) })
	if err != nil && !over(err) {
		l.report(slog.LevelError, "task left unfinished", slog.Any("error", err))
	}
}

// A worker's outcome is there once, and a store may be busy just then: the
// write is tried again, each time after twice as long, for 2.5 seconds in all
// and what the store itself waits.
const (
	insistFirst = 20 * time.Millisecond
	insistLast  = 2 * time.Second
)

// insist repeats a write that a store has refused, unless it never can succeed.
func (l *TaskLifecycle) insist(write func() error) error {
	for wait := insistFirst; ; wait *= 2 {
		err := write()
		if err == nil || over(err) || errors.Is(err, ErrInvalid) || wait > insistLast {
			return err
		}
		if err := l.sleep(l.life, wait); err != nil {
			return err
		}
	}
}

// over reports whether a write came too late for its task.
func over(err error) bool {
	return errors.Is(err, ErrTerminal) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrClosed)
}

func (l *TaskLifecycle) hasEnded(h *Handle) bool {
	r, err := l.get(h.base, h.id)
	return err != nil && over(err) || err == nil && r.Status.Terminal()
}

// toolError is a CallToolResult that says what went wrong in the tool.
func toolError(failure error) wire.JSON {
	result, err := wire.Marshal(struct {
		Content []map[string]string `json:"content"`
		IsError bool                `json:"isError"`
	}{[]map[string]string{{"type": "text", "text": strings.ToValidUTF8(failure.Error(), "\uFFFD")}}, true})
	if err != nil {
		return wire.MustParse(`{"content":[],"isError":true}`)
	}
	return result
}

// Recover takes up the tasks that an earlier process left unfinished. It
// calls resume for each with its record, whose Payload tells what the task
// is, and runs the worker that resume returns; for nil the task is left as it
// is. A worker that should only fail the task returns a [*wire.Error]. Tasks
// that somebody in this process works on, with a worker of the engine's or
// with a [Handle.Context] of the host's own, are passed over, and
// [Options].MaxWorkers does not keep any from its worker. The workers'
// contexts carry the values of ctx and the task's owner.
//
// Recover returns how many workers it has started. Nothing is decided without
// resume, and nothing here may be shown to a client: the records of all
// owners are among them.
//
// With a store that one process has for itself, Recover is called once, at
// the start. With one that processes share, it is called again and again,
// for what other processes leave; the store sees to it that a task whose
// process is alive is not among that. See [Scanner].
//
// Errors: [errors.ErrUnsupported] if the store is no [Scanner];
// [ErrShutdown]; [ErrClosed]; ctx's; the store's own.
func (l *TaskLifecycle) Recover(ctx context.Context, resume func(Record) Worker) (int, error) {
	scanner, ok := l.store.(Scanner)
	if !ok {
		return 0, fmt.Errorf("durabletasks: recover: the store is no Scanner: %w", errors.ErrUnsupported)
	}
	if err := l.open(); err != nil { // also if there is nothing to recover
		return 0, fmt.Errorf("durabletasks: recover: %w", err)
	}
	n := 0
	var failed error
	err := scanner.Scan(ctx, func(r Record) bool {
		var resumed bool
		if resumed, failed = l.resume(ctx, &r, resume); resumed {
			n++
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	if err != nil {
		return n, fmt.Errorf("durabletasks: recover: %w", err)
	}
	return n, nil
}

// resume takes up one task. It reports whether a worker runs now, and an
// error that concerns all tasks. The task is claimed only when the host has
// decided to run it: until then, a Go may.
func (l *TaskLifecycle) resume(ctx context.Context, r *Record, resume func(Record) Worker) (resumed bool, err error) {
	if err := l.open(); err != nil {
		return false, err
	}
	t := l.local.acquire(r.ID)
	defer l.local.release(t, 1)
	if t.isRunning() || t.hasContexts() {
		return false, nil
	}
	var work Worker
	l.guard("resume task", func() { work = resume(r.Clone()) })
	if work == nil {
		return false, nil
	}
	p, err := l.place(0)
	if err != nil {
		return false, err
	}
	defer p.abandon()
	if !p.claim(r.ID) || t.hasContexts() {
		return false, nil
	}
	h, err := l.Handle(WithOwner(ctx, r.Owner), r.ID)
	switch {
	case errors.Is(err, ErrTerminal), errors.Is(err, ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	case l.live() != nil:
		return false, ErrClosed
	}
	l.happened(EventRecovered, r.ID, r)
	p.start(h, work)
	return true, nil
}

// ShutdownError reports workers that were still alive when a shutdown's
// context ended. It unwraps to that context's cause.
type ShutdownError struct {
	TaskIDs []string // of the tasks whose workers are alive; bearer tokens
	Cause   error    // why the waiting ended
}

// Error says how many workers there are, without naming tasks.
func (e *ShutdownError) Error() string {
	return fmt.Sprintf("durabletasks: shutdown: %d workers still running: %v", len(e.TaskIDs), e.Cause)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }

// Shutdown ends the engine in good order: new tasks are refused with
// [ErrShutdown], the contexts of workers end with it, and Shutdown waits for
// the workers until ctx ends; then it closes as [TaskLifecycle.Close] does.
// What workers return meanwhile is committed; a task whose worker gives up
// stays unfinished, to be resumed. The error is a [*ShutdownError] if workers
// outlive ctx; their later writes report [ErrClosed]. A worker that calls
// Shutdown waits for itself, until ctx ends.
func (l *TaskLifecycle) Shutdown(ctx context.Context) error {
	idle := l.workers.shut()
	for _, t := range l.local.all() {
		t.interrupt(ErrShutdown)
		l.local.release(t, 1)
	}
	var late error
	select {
	case <-idle:
	case <-l.life.Done():
	case <-ctx.Done():
		select {
		case <-idle: // also just in time
		default:
			late = &ShutdownError{TaskIDs: l.workers.stragglers(), Cause: context.Cause(ctx)}
		}
	}
	return errors.Join(late, l.Close())
}
