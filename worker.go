package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
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
//     task stays as it is and can be resumed by the next process. The same
//     holds after [ErrExpired], if the task is back because a clock was set
//     back.
//   - any other error: completed with a result whose isError is true and
//     whose text is the error's, as MCP has it for tools.
//   - neither a result nor an error: failed with -32603, unless the worker has
//     ended the task with its handle, or leaves because its context has ended,
//     which counts as returning the context's cause.
//   - a panic, or runtime.Goexit: failed with -32603, without details; the
//     stack goes to the log.
//
// If the store is busy, the write is tried again for some seconds; if the
// outcome still cannot be stored, the task is failed with -32603.
type Worker func(ctx context.Context, h *Handle) (wire.JSON, error)

// workers counts the goroutines that the engine runs workers in.
type workers struct {
	drain chan struct{} // closed when a shutdown begins
	idle  chan struct{} // closed when it has begun and no slot is taken

	mu    sync.Mutex
	slots int // workers that run, or are about to
}

func newWorkers() workers {
	return workers{drain: make(chan struct{}), idle: make(chan struct{})}
}

func (w *workers) draining() <-chan struct{} { return w.drain }

// errIfDraining reports that no new work may begin.
func (w *workers) errIfDraining() error {
	select {
	case <-w.drain:
		return ErrShutdown
	default:
		return nil
	}
}

// reserve takes one of limit slots; no limit if 0.
func (w *workers) reserve(limit int) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := w.errIfDraining(); err != nil {
		return err
	}
	if limit > 0 && w.slots >= limit {
		return ErrBusy
	}
	w.slots++
	return nil
}

// free gives a slot back.
func (w *workers) free() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.slots--; w.slots == 0 && w.errIfDraining() != nil {
		close(w.idle)
	}
}

// shut refuses new work and returns a channel that is closed when the last
// worker has ended.
func (w *workers) shut() <-chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.errIfDraining() == nil {
		close(w.drain)
		if w.slots == 0 {
			close(w.idle)
		}
	}
	return w.idle
}

// StartTask creates a task and runs its worker: [TaskLifecycle.CreateTask] and
// [TaskLifecycle.Go] in one call. When [Options].MaxWorkers workers run, it
// returns [ErrBusy] and stores nothing. A [TaskLifecycle.Recover] that runs at
// the same time leaves the task to its worker.
//
// Errors: those of CreateTask; [ErrBusy]; [ErrInvalid] for a nil worker.
func (l *TaskLifecycle) StartTask(ctx context.Context, opts *CreateOptions, work Worker) (wire.CreateTaskResult, error) {
	p, err := l.reserve(l.opts.MaxWorkers, work)
	if err != nil {
		return wire.CreateTaskResult{}, err
	}
	defer p.abandon()
	r, err := l.create(ctx, opts, func(t *localTask) error {
		if !p.claim(t.id) {
			return ErrExists
		}
		return nil
	})
	if err != nil {
		return wire.CreateTaskResult{}, err
	}
	// The task is committed: the end of ctx no longer stops it.
	p.start(l.newHandle(ctx, &r), work)
	task, err := view(&r)
	return wire.CreateTaskResult{Task: task}, err
}

// Go runs the worker of an unfinished task in a goroutine of the engine's,
// with the values of ctx but not its cancellation. A task has one such worker
// at a time. While it runs, the task does not expire: the TTL that clients see
// is raised in time.
//
// Errors: [ErrInvalid] for a nil worker; [ErrBusy]; [ErrRunning]; [ErrNotFound]; [*TerminalError];
// [ErrShutdown]; [ErrClosed]; ctx's; the store's own. With any of them the
// worker does not run.
func (l *TaskLifecycle) Go(ctx context.Context, id string, work Worker) error {
	p, err := l.reserve(l.opts.MaxWorkers, work)
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
	case l.errIfClosed() != nil:
		return ErrClosed
	}
	p.start(h, work)
	return nil
}

// place is one worker's place in the engine, before and while it runs.
type place struct {
	l       *TaskLifecycle
	t       *localTask // nil until claimed
	started bool       // the worker's goroutine gives the place back
}

// reserve takes one of limit slots for a worker.
func (l *TaskLifecycle) reserve(limit int, work Worker) (*place, error) {
	if work == nil {
		return nil, fmt.Errorf("%w: no worker", ErrInvalid)
	}
	if err := l.workers.reserve(limit); err != nil {
		return nil, err
	}
	return &place{l: l}, nil
}

// claim makes this the place of a task's one worker, unless it has one.
func (p *place) claim(id string) bool {
	t := p.l.local.acquire(id)
	if !t.startRunning() {
		t.release()
		return false
	}
	p.t = t
	return true
}

// abandon gives the place back, unless a worker has it now. It is for the
// goroutine that has reserved it.
func (p *place) abandon() {
	if !p.started {
		p.leave()
	}
}

// leave gives the place back.
func (p *place) leave() {
	if p.t != nil {
		p.t.stopRunning()
		p.t.release()
	}
	p.l.workers.free()
}

// start runs the worker in a place that is claimed, unless the engine closes
// first.
func (p *place) start(h *Handle, work Worker) {
	l := p.l
	ctx := h.Context().(*taskContext)
	p.started = true
	go func() {
		var result wire.JSON
		var failure error
		returned := false
		defer func() { // also when work panics or exits
			if !returned {
				failure = l.crashed(h, recover())
			}
			settled := false
			l.guard("settle task", func() {
				l.settle(h, result, failure)
				settled = true
			})
			if !settled { // an error of the worker's own type may panic
				l.guard("settle task", func() { l.settle(h, wire.JSON{}, internalError("Internal error")) })
			}
			p.t.detach(ctx, context.Canceled)
			p.leave()
		}()
		if failure = l.errIfClosed(); failure == nil {
			result, failure = work(ctx, h)
		}
		returned = true
	}()
}

func internalError(message string) *wire.Error {
	return &wire.Error{Code: wire.CodeInternalError, Message: message}
}

// crashed logs where a worker panicked.
func (l *TaskLifecycle) crashed(h *Handle, p any) error {
	reason, attrs := "worker called runtime.Goexit", h.logAttrs()
	if p != nil {
		reason, attrs = "worker panicked", append(attrs, describePanic(p))
	}
	l.logFailure(reason, append(attrs, slog.String("stack", string(debug.Stack())))...)
	return internalError("Internal error")
}

// logAttrs says in a log which task it is about.
func (h *Handle) logAttrs() []slog.Attr {
	return []slog.Attr{slog.String("tool", h.tool), slog.String("task", taskDigest(h.id))}
}

// settle ends a task as its worker's return says.
func (l *TaskLifecycle) settle(h *Handle, result wire.JSON, failure error) {
	ctx := h.base
	cause := context.Cause(h.Context())
	if failure == nil && result.IsZero() {
		failure = cause // a worker that left because its context has ended
	}
	if failure == nil && result.IsZero() {
		if l.hasEnded(h) {
			return
		}
		l.logFailure("worker returned neither a result nor an error", h.logAttrs()...)
		failure = internalError("The tool returned no result")
	}
	var rpc *wire.Error
	var err error
	if misuse := misuseOf(failure); misuse != nil { // the client can do nothing about it
		l.logFailure("worker failed by the way it uses its handle", append(h.logAttrs(), slog.Any("error", misuse))...)
	}
	switch {
	case failure == nil:
		err = l.insist(func() error { return h.Complete(ctx, result) })
	case errors.As(failure, &rpc):
		err = l.insist(func() error { return h.Fail(ctx, rpc) })
	case cause == ErrCancelled:
		err = l.insist(func() error { return h.Cancelled(ctx, "") })
	case cause == ErrShutdown, cause == ErrClosed, cause == ErrExpired, errors.Is(failure, ErrLost):
	default:
		err = l.insist(func() error { return h.Complete(ctx, toolError(failure)) })
	}
	if err == nil || isOver(err) {
		return
	}
	// What the worker returned cannot be stored. The client still learns that
	// the task has ended, if anything can be stored at all.
	attr := slog.Any("error", err)
	l.logFailure("task outcome not stored", append(h.logAttrs(), attr)...)
	instead := internalError("Internal error")
	if errors.Is(err, ErrTooLarge) {
		instead.Message = "The tool's result is too large to store"
	}
	err = l.insist(func() error { return h.Fail(ctx, instead) })
	if err != nil && !isOver(err) {
		l.logFailure("task left unfinished", append(h.logAttrs(), slog.Any("error", err))...)
	}
}

// A worker's outcome exists only once, and the store may be busy just then. The
// write is tried again, each time after twice as long, for 2.5 seconds in all
// plus what the store itself waits.
const (
	insistFirst = 20 * time.Millisecond
	insistLast  = 2 * time.Second
)

// insist repeats a write that a store has refused, unless it cannot succeed.
func (l *TaskLifecycle) insist(write func() error) error {
	for wait := insistFirst; ; wait *= 2 {
		err := write()
		if err == nil || isOver(err) || errors.Is(err, ErrInvalid) || errors.Is(err, ErrTooLarge) || wait > insistLast {
			return err
		}
		if err := l.sleep(l.life, wait); err != nil {
			return err
		}
	}
}

// isOver reports whether a write came too late for its task.
func isOver(err error) bool {
	return errors.Is(err, ErrTerminal) || errors.Is(err, ErrNotFound) || errors.Is(err, ErrClosed)
}

func (l *TaskLifecycle) hasEnded(h *Handle) bool {
	r, err := l.get(h.base, h.id)
	return err != nil && isOver(err) || err == nil && r.Status.Terminal()
}

// misuseOf returns the part of a worker's error that is about how it uses its
// handle, or nil. The rest of the error is the worker's own words, which may
// hold anything and are not for a log.
func misuseOf(err error) error {
	var duplicate *DuplicateKeyError
	if errors.As(err, &duplicate) {
		return duplicate
	}
	for _, misuse := range []error{ErrInvalid, ErrInputPending, ErrTooLarge} {
		if errors.Is(err, misuse) {
			return misuse
		}
	}
	return nil
}

// toolError returns a CallToolResult that says what went wrong in the tool. A
// model reads it, so the names of packages are left out.
func toolError(failure error) wire.JSON {
	text := strings.ReplaceAll(failure.Error(), "durabletasks: ", "")
	text = strings.ReplaceAll(strings.TrimPrefix(text, "wire: "), ": wire: ", ": ")
	result, err := wire.Marshal(struct {
		Content []map[string]string `json:"content"`
		IsError bool                `json:"isError"`
	}{[]map[string]string{{"type": "text", "text": strings.ToValidUTF8(text, "\uFFFD")}}, true})
	if err != nil {
		return wire.MustParse(`{"content":[],"isError":true}`)
	}
	return result
}

// Recover resumes the tasks that an earlier process left unfinished. It calls
// resume for each with its record, whose Tool and Payload tell what the task
// is, and runs the worker that resume returns. If resume returns nil, the task
// is left as it is, which is logged as a failure once for each tool. A worker
// that should only fail the task returns a [*wire.Error]. Tasks that somebody
// in this process works on, with a worker of the engine's or with a
// [Handle.Context] of the host's own, are skipped. [Options].MaxWorkers does
// not apply. The workers' contexts carry the values of ctx and the task's
// owner.
//
// Recover returns how many workers it has started. The records it shows to
// resume belong to all owners and must not be shown to a client.
//
// With a store that one process has for itself, call Recover once, at the
// start. With one that processes share, call it again and again, for what
// other processes leave; the store does not show tasks whose process is alive.
// See [Scanner].
//
// Errors: [errors.ErrUnsupported] if the store does not implement [Scanner];
// [ErrShutdown]; [ErrClosed]; ctx's; the store's own.
func (l *TaskLifecycle) Recover(ctx context.Context, resume func(Record) Worker) (int, error) {
	n, err := l.recoverAll(ctx, resume)
	if err != nil {
		err = fmt.Errorf("durabletasks: recover: %w", err)
	}
	return n, err
}

func (l *TaskLifecycle) recoverAll(ctx context.Context, resume func(Record) Worker) (n int, err error) {
	scanner, ok := l.store.(Scanner)
	if !ok {
		return 0, fmt.Errorf("the store does not implement Scanner: %w", errors.ErrUnsupported)
	}
	if err := l.errIfEnding(); err != nil { // even if there is nothing to recover
		return 0, err
	}
	var failed error
	err = scanner.Scan(ctx, func(r Record) bool {
		var resumed bool
		if resumed, failed = l.resume(ctx, &r, resume); resumed {
			n++
		}
		return failed == nil
	})
	if err == nil {
		err = failed
	}
	return n, err
}

// resume runs the worker of one unfinished task. It reports whether a worker
// runs now, and an error that concerns all tasks. The task is claimed only when
// the host has decided to run it: until then, a Go may claim it.
func (l *TaskLifecycle) resume(ctx context.Context, r *Record, resume func(Record) Worker) (resumed bool, err error) {
	if err := l.errIfEnding(); err != nil {
		return false, err
	}
	t := l.local.acquire(r.ID)
	defer t.release()
	if t.isRunning() || t.hasContexts() {
		return false, nil
	}
	var work Worker
	l.guard("resume task", func() { work = resume(r.Clone()) })
	if work == nil {
		if t.isRunning() || t.hasContexts() {
			return false, nil // the host has run it otherwise
		}
		if _, again := l.unresumed.LoadOrStore(r.Tool, true); !again {
			l.logFailure("unfinished task has no worker", slog.String("tool", r.Tool), slog.String("task", taskDigest(r.ID)))
		}
		return false, nil
	}
	p, err := l.reserve(0, work)
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
	case l.errIfClosed() != nil:
		return false, ErrClosed
	}
	l.report(EventRecovered, r.ID, r)
	p.start(h, work)
	return true, nil
}

// ShutdownError reports workers that were still running when a shutdown's
// context ended. It unwraps to that context's cause.
type ShutdownError struct {
	TaskIDs []string // of the tasks whose workers still run; bearer tokens
	Cause   error    // why the waiting ended
}

// Error says how many workers there are, without naming tasks.
func (e *ShutdownError) Error() string {
	return fmt.Sprintf("durabletasks: shutdown: %d workers still running: %v", len(e.TaskIDs), e.Cause)
}

// Unwrap returns the cause.
func (e *ShutdownError) Unwrap() error { return e.Cause }

// Shutdown ends the engine cleanly: new tasks are refused with
// [ErrShutdown], the contexts of workers end with it, and Shutdown waits for
// the workers until ctx ends; then it closes as [TaskLifecycle.Close] does.
// What workers return meanwhile is committed; a task whose worker gives up
// stays unfinished and can be resumed. The error is a [*ShutdownError] if
// workers outlive ctx; their later writes return [ErrClosed]. A worker that
// calls Shutdown waits for itself, until ctx ends.
func (l *TaskLifecycle) Shutdown(ctx context.Context) error {
	idle := l.workers.shut()
	l.local.each(func(t *localTask) { t.interrupt(ErrShutdown) })
	var late error
	select {
	case <-idle:
	case <-l.life.Done():
	case <-ctx.Done():
		select {
		case <-idle: // just in time
		default:
			late = &ShutdownError{TaskIDs: l.local.running(), Cause: context.Cause(ctx)}
		}
	}
	return errors.Join(late, l.Close())
}
