package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Handle is the worker's side of one task. The engine gives one to each
// [Worker]; a host that runs its workers itself gets one from
// [TaskLifecycle.Handle]. A Handle is safe for concurrent use.
//
// A Handle stands for one run of the task's worker: a key of
// [Handle.RequestInput] is used once for each Handle.
//
// Every method that changes the task has committed the change when it returns
// without an error. A context that the task itself has ended, for one of the
// reasons of [Handle.Context], does not stop such a write, so that a worker
// can settle its task with the context it has: after [ErrCancelled] and
// [ErrShutdown] the write is committed as ever. A worker that works in a loop
// must therefore look at its context. Any other context that is done stops the
// write.
type Handle struct {
	l    *TaskLifecycle
	id   string
	tool string          // for logs
	base context.Context // for its values

	attach sync.Once
	ctx    *taskContext // nil until asked for

	mu    sync.Mutex
	asked map[string]struct{} // the keys that this run has used
	taken map[string]struct{} // those of them whose answers it was given
}

// Handle returns the worker's side of an unfinished task. Its [Handle.Context]
// carries the values of ctx, not its cancellation. The owner that ctx carries
// does not matter: handles are for the server's own use.
//
// Errors: [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's
// own.
func (l *TaskLifecycle) Handle(ctx context.Context, id string) (*Handle, error) {
	r, err := l.get(ctx, id)
	if err == nil {
		err = errIfEnded(&r)
	}
	if err != nil {
		return nil, err
	}
	return l.newHandle(ctx, &r), nil
}

func (l *TaskLifecycle) newHandle(ctx context.Context, r *Record) *Handle {
	return &Handle{l: l, id: r.ID, tool: r.Tool, base: context.WithoutCancel(ctx)}
}

// ID returns the task's id, which is a bearer token and must not be logged.
func (h *Handle) ID() string { return h.id }

// Context returns a context that ends with the task: its cause is
// [ErrCancelled] when a client asks to cancel, [ErrExpired] when the task
// expires, [ErrShutdown] or [ErrClosed] when the engine ends, and a
// [*TerminalError] when the task has ended. If one of these happened before
// the call, even in an earlier process, the context is done at once. It
// carries the values of the request that created the task, and does not end
// with that request.
func (h *Handle) Context() context.Context {
	h.attach.Do(func() { h.ctx = h.l.attach(h.base, h.id) })
	return h.ctx
}

// attach makes a context that ends with a task.
func (l *TaskLifecycle) attach(base context.Context, id string) *taskContext {
	ctx, cancel := context.WithCancelCause(base)
	c := &taskContext{Context: ctx, cancel: cancel}
	t := l.local.acquire(id)
	defer t.release()
	t.attach(c)
	// The context missed what changed before it was attached.
	refreshed := false
	l.guard("store", func() {
		l.refresh(t, 0)
		refreshed = true
	})
	if !refreshed {
		l.armRefresh(t, refreshDelay)
	}
	if l.workers.errIfDraining() != nil {
		t.interrupt(ErrShutdown)
	}
	return c
}

// update is mutate for a worker: a task that has ended is a [*TerminalError],
// and what the task itself does to the worker's context does not stop a write.
func (h *Handle) update(ctx context.Context, decide func(*Record) (change, error)) error {
	for {
		write, detached := settling(ctx)
		err := h.l.mutate(write, h.id, func(r *Record) (change, error) {
			if err := errIfEnded(r); err != nil {
				return nothing, err
			}
			return decide(r)
		})
		if err == nil || detached || ctx.Err() == nil || !errors.Is(err, ctx.Err()) && !errors.Is(err, context.Cause(ctx)) {
			return err
		}
		// The context ended while the write waited for its turn. If it was
		// the task that ended it, the write goes on without it.
		if _, detached = settling(ctx); !detached {
			return err
		}
	}
}

// ProgressOptions are what [Handle.Progress] can change besides the message.
// The zero value of a field changes nothing.
type ProgressOptions struct {
	// PollInterval asks the client for another pace, rounded up to whole
	// milliseconds; [NoLimit] withdraws the hint.
	PollInterval time.Duration

	// Checkpoint replaces the worker's saved state in the same commit; see
	// [Handle.SaveCheckpoint]. Nil and the zero [wire.JSON] change nothing.
	Checkpoint any
}

// MaxProgress is how many bytes a message of [Handle.Progress] has at most.
const MaxProgress = 4 << 10

// Progress replaces the task's status message, or removes it if empty, and
// what opts say. The status stays what it is. Nil opts change nothing else. The
// message may come from anywhere, such as the output of a program: bytes that
// are not UTF-8 become U+FFFD, and what exceeds [MaxProgress] is cut off.
//
// Errors: [ErrInvalid]; [ErrTooLarge]; [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's;
// the store's own.
func (h *Handle) Progress(ctx context.Context, message string, opts *ProgressOptions) error {
	var o ProgressOptions
	if opts != nil {
		o = *opts
	}
	message = progressText(message)
	poll, err := duration("ProgressOptions.PollInterval", o.PollInterval, 0)
	if err != nil {
		return err
	}
	checkpoint, err := encodeCheckpoint(o.Checkpoint)
	if err != nil {
		return err
	}
	return h.update(ctx, func(r *Record) (change, error) {
		r.StatusMessage = message
		if poll != 0 {
			r.PollInterval = poll
		}
		if !checkpoint.IsZero() {
			h.save(r, checkpoint)
		}
		return stamped, nil
	})
}

// progressText returns a message as it is stored: UTF-8, of MaxProgress bytes at
// most.
func progressText(message string) string {
	const more = "…"
	message = strings.ToValidUTF8(message, "\uFFFD")
	if len(message) <= MaxProgress {
		return message
	}
	end := MaxProgress - len(more)
	for !utf8.RuneStart(message[end]) {
		end--
	}
	return message[:end] + more
}

// SaveCheckpoint replaces the worker's saved state, and nothing else, with the
// JSON encoding of v, which may be a [wire.JSON]. A worker that runs again
// after a crash reads it with [Checkpoint] or [Handle.Checkpoint]. As with every
// JSON encoding, unexported fields of a struct are not saved. A checkpoint
// covers everything before it: the answers that this run has been given are
// dropped. A client sees that the task was updated.
//
// Errors: [ErrInvalid] for a value without JSON; [ErrTooLarge]; [ErrNotFound];
// [*TerminalError]; [ErrClosed]; ctx's; the store's own.
func (h *Handle) SaveCheckpoint(ctx context.Context, v any) error {
	checkpoint, err := encodeCheckpoint(v)
	if err == nil && checkpoint.IsZero() {
		err = fmt.Errorf("%w: no checkpoint", ErrInvalid)
	}
	if err != nil {
		return err
	}
	return h.update(ctx, func(r *Record) (change, error) {
		h.save(r, checkpoint)
		return stamped, nil
	})
}

// encodeCheckpoint returns the JSON of a worker's state; absent for nil.
func encodeCheckpoint(v any) (wire.JSON, error) {
	switch v := v.(type) {
	case nil:
		return wire.JSON{}, nil
	case wire.JSON:
		return v, nil
	}
	checkpoint, err := wire.Marshal(v)
	if err != nil { // its text may quote the value
		return wire.JSON{}, fmt.Errorf("%w: a checkpoint of type %T has no JSON encoding that can be kept", ErrInvalid, v)
	}
	return checkpoint, nil
}

// save sets a record's checkpoint, and drops the answers that this run has
// been given, except those of a round that still waits for others.
func (h *Handle) save(r *Record, checkpoint wire.JSON) {
	r.Checkpoint = checkpoint
	h.mu.Lock()
	defer h.mu.Unlock()
	maps.DeleteFunc(r.InputResponses, func(key string, _ wire.JSON) bool {
		_, asked := r.InputRequests[key]
		_, taken := h.taken[key]
		return taken && !asked
	})
	if len(r.InputResponses) == 0 {
		r.InputResponses = nil
	}
}

// Checkpoint returns what a worker of this task last saved, in this process
// or an earlier one; absent if nothing. The function [Checkpoint] decodes it.
//
// Errors: [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's
// own.
func (h *Handle) Checkpoint(ctx context.Context) (wire.JSON, error) {
	read, _ := settling(ctx)
	r, err := h.l.get(read, h.id)
	if err == nil {
		err = errIfEnded(&r)
	}
	if err != nil {
		return wire.JSON{}, err
	}
	return r.Checkpoint, nil
}

// Checkpoint returns what a worker of this task last saved, as a T: the
// zero T if nothing was saved. Member names are matched exactly; see
// [wire.JSON.Decode]. Where T has changed since, [Handle.Checkpoint] has the
// JSON for a worker that can still read it.
//
// Errors: those of [Handle.Checkpoint]; [ErrInvalid] if what was saved does
// not fit T.
func Checkpoint[T any](ctx context.Context, h *Handle) (T, error) {
	var v, none T
	saved, err := h.Checkpoint(ctx)
	if err != nil || saved.IsZero() {
		return none, err
	}
	if err := saved.Decode(&v); err != nil {
		return none, fmt.Errorf("%w: the saved checkpoint does not fit %T: %w", ErrInvalid, v, err)
	}
	return v, nil
}

// ExtendTTL makes the task live at least d longer, counted from now, by
// raising the time to live that clients see; [NoLimit] lifts the limit. It
// never shortens it.
//
// Errors: [ErrInvalid]; [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's;
// the store's own.
func (h *Handle) ExtendTTL(ctx context.Context, d time.Duration) error {
	if d == 0 {
		return fmt.Errorf("%w: d is zero", ErrInvalid)
	}
	d, err := duration("d", d, 0)
	if err != nil {
		return err
	}
	return h.update(ctx, func(r *Record) (change, error) {
		if !extend(r, h.l.steadyNow(), d) {
			return nothing, nil
		}
		return stamped, nil
	})
}

// finish ends a task and drops what only an unfinished task needs.
func (h *Handle) finish(ctx context.Context, status Status, set func(*Record)) error {
	return h.update(ctx, func(r *Record) (change, error) {
		r.Status = status
		r.InputRequests, r.InputResponses = nil, nil
		r.Payload, r.Checkpoint = wire.JSON{}, wire.JSON{}
		set(r)
		return stamped, nil
	})
}

// Complete ends the task with its result, a JSON object: for a tools/call the
// CallToolResult, which may have isError (tasks.md, "Task Status"). The member
// resultType, which the protocol requires, is added if it is missing; any
// value but "complete" is refused. The status message stays.
//
// Errors: [ErrInvalid]; [ErrTooLarge], after which the task goes on;
// [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's own.
func (h *Handle) Complete(ctx context.Context, result wire.JSON) error {
	if result.Kind() != wire.Object {
		return fmt.Errorf("%w: a result must be an object, not %v", ErrInvalid, result.Kind())
	}
	const resultType, complete = "resultType", `"complete"`
	switch is := result.Get(resultType); {
	case is.IsZero():
		result = result.With(resultType, wire.MustParse(complete))
	case is.String() != complete:
		return fmt.Errorf("%w: a result's resultType must be %s", ErrInvalid, complete)
	}
	return h.finish(ctx, StatusCompleted, func(r *Record) { r.Result = result })
}

// Fail ends the task with a JSON-RPC error. It is for faults of the protocol
// or the server; a tool reports its own in a result with isError (tasks.md,
// "Task Execution Errors"). The error's message becomes the status message.
//
// Errors: [ErrInvalid] for a nil error or one without a message;
// [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's own.
func (h *Handle) Fail(ctx context.Context, failure *wire.Error) error {
	if failure == nil || failure.Message == "" {
		return fmt.Errorf("%w: a task fails with a JSON-RPC error that has a message", ErrInvalid)
	}
	if err := checkText("the error's message", failure.Message); err != nil {
		return err
	}
	text, err := wire.ParseJSON(failure.AppendJSON(nil))
	if err != nil { // the error adds one level to its data
		return fmt.Errorf("%w: the error: %w", ErrInvalid, err)
	}
	return h.finish(ctx, StatusFailed, func(r *Record) {
		r.Error = text
		r.StatusMessage = failure.Message
	})
}

// Cancelled ends the task as cancelled, usually after a client has asked for
// it. An empty message leaves the status message as it is.
//
// Errors: [ErrInvalid]; [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's;
// the store's own.
func (h *Handle) Cancelled(ctx context.Context, message string) error {
	if err := checkText("message", message); err != nil {
		return err
	}
	return h.finish(ctx, StatusCancelled, func(r *Record) {
		if message != "" {
			r.StatusMessage = message
		}
	})
}
