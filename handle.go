package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Handle is the worker's side of one task. A worker that the engine runs
// ([TaskLifecycle.Go]) is given one; a host that runs its own gets it from
// [TaskLifecycle.Handle]. A Handle is safe for concurrent use.
//
// Every method that changes the task has committed the change when it returns
// without an error. A context that the task itself has ended, for one of the
// reasons of [Handle.Context], does not stop such a write, so that a worker
// can settle its task with the context it has, and learns what has become of
// it: what the write reports then is [ErrNotFound] after [ErrExpired], and
// otherwise the reason itself. Any other context that is done stops it.
type Handle struct {
	l    *TaskLifecycle
	id   string
	base context.Context // for its values

	attach sync.Once
	ctx    *workerContext // nil until asked for

	mu    sync.Mutex
	taken []string // the keys of the round whose answers this worker was handed last
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
		err = terminal(&r)
	}
	if err != nil {
		return nil, err
	}
	return l.handle(ctx, id), nil
}

func (l *TaskLifecycle) handle(ctx context.Context, id string) *Handle {
	return &Handle{l: l, id: id, base: context.WithoutCancel(ctx)}
}

// ID returns the task's id, which is a bearer token: not for logs.
func (h *Handle) ID() string { return h.id }

// Context returns a context that ends with the task: its cause is
// [ErrCancelled] when a client asks to cancel, [ErrExpired] when the task
// expires, [ErrShutdown] or [ErrClosed] when the engine goes, and a
// [*TerminalError] when the task has ended. If one of these was so before the
// call, also in an earlier process, the context is done at once. It does not
// end with the request that created the task, but carries its values.
func (h *Handle) Context() context.Context {
	h.attach.Do(func() { h.ctx = h.l.attach(h.base, h.id) })
	return h.ctx
}

// attach makes a context that ends with a task.
func (l *TaskLifecycle) attach(base context.Context, id string) *workerContext {
	ctx, cancel := context.WithCancelCause(base)
	w := &workerContext{Context: ctx, cancel: cancel}
	t := l.local.acquire(id)
	t.attach(w)
	// What changed before the context was known, it is told here.
	looked := false
	l.guard("store", func() {
		l.look(t, 0)
		looked = true
	})
	if !looked {
		l.lookAgain(t, lookLater, true)
	}
	if l.open() != nil {
		t.interrupt(ErrShutdown)
	}
	return w
}

// update is mutate for a worker: a task that has ended is a [*TerminalError],
// and what the task itself does to the worker's context does not stop a write.
func (h *Handle) update(ctx context.Context, decide func(*Record) (change, error)) error {
	for {
		write, detached := settling(ctx)
		err := h.l.mutate(write, h.id, func(r *Record) (change, error) {
			if err := terminal(r); err != nil {
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

	// Checkpoint replaces the worker's saved state in the same commit. A
	// worker that is resumed after a crash finds it by
	// [Handle.Checkpoint]. It also says that the worker has made use of the
	// answers to its last requests, which are then dropped.
	Checkpoint wire.JSON
}

// Progress replaces the task's status message, or removes it if empty, and
// what opts say. The status stays what it is. Nil opts change nothing else.
//
// Errors: [ErrInvalid]; [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's;
// the store's own.
func (h *Handle) Progress(ctx context.Context, message string, opts *ProgressOptions) error {
	var o ProgressOptions
	if opts != nil {
		o = *opts
	}
	if err := checkText("message", message); err != nil {
		return err
	}
	poll, err := duration("ProgressOptions.PollInterval", o.PollInterval, 0)
	if err != nil {
		return err
	}
	return h.update(ctx, func(r *Record) (change, error) {
		r.StatusMessage = message
		if poll != 0 {
			r.PollInterval = poll
		}
		if !o.Checkpoint.IsZero() {
			h.save(r, o.Checkpoint)
		}
		return stamped, nil
	})
}

// SaveCheckpoint replaces the worker's saved state and nothing else; see
// [ProgressOptions].Checkpoint. A client sees that the task was updated.
//
// Errors: [ErrInvalid] for an absent checkpoint; [ErrNotFound];
// [*TerminalError]; [ErrClosed]; ctx's; the store's own.
func (h *Handle) SaveCheckpoint(ctx context.Context, checkpoint wire.JSON) error {
	if checkpoint.IsZero() {
		return fmt.Errorf("%w: no checkpoint", ErrInvalid)
	}
	return h.update(ctx, func(r *Record) (change, error) {
		h.save(r, checkpoint)
		return stamped, nil
	})
}

// save sets a record's checkpoint, and drops the answers that the worker has
// had.
func (h *Handle) save(r *Record, checkpoint wire.JSON) {
	r.Checkpoint = checkpoint
	if r.Status == StatusWorking && h.hasTaken(r.InputResponses) {
		r.InputResponses = nil
	}
}

// Checkpoint returns the state that a worker of this task has saved last, in
// this process or an earlier one; absent if none.
//
// Errors: [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's; the store's
// own.
func (h *Handle) Checkpoint(ctx context.Context) (wire.JSON, error) {
	read, _ := settling(ctx)
	r, err := h.l.get(read, h.id)
	if err == nil {
		err = terminal(&r)
	}
	if err != nil {
		return wire.JSON{}, err
	}
	return r.Checkpoint, nil
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

// RequestInput asks the client, and waits for all the answers: the task shows
// the requests by their keys in [StatusInputRequired] until then (tasks.md,
// "Task Update Requests"). Each request is one of elicitation/create,
// sampling/createMessage or roots/list, with its params. A key is never used
// twice in a task's lifetime, also not after a restart: a worker that runs
// again gets a [*DuplicateKeyError] for what its predecessor has asked; see
// [Handle.Ask].
//
// If ctx ends, the waiting ends, with its cause; the requests stay
// outstanding and the answers are kept, for ResumeInput.
//
// Errors: [ErrInvalid] for no requests; a [*wire.ShapeError] that names the
// key; [ErrInputPending]; [*UndeclaredError]; [*DuplicateKeyError];
// [ErrNotFound]; [*TerminalError], also if the task ends meanwhile; [ErrCancelled], in which
// case nothing was asked, or no longer matters; [ErrExpired]; [ErrShutdown];
// [ErrClosed]; [ErrSuperseded] if another process asked something else
// meanwhile; the store's own.
func (h *Handle) RequestInput(ctx context.Context, requests map[string]wire.JSON) (map[string]wire.JSON, error) {
	return h.request(ctx, requests, func(*Record) bool { return false })
}

// Ask is [Handle.RequestInput] for a worker that may run more than once. If
// the last round of requests had these very keys, it is taken up instead of
// asked again: the client still sees the requests as they were first asked,
// and an answer that it has given is returned at once. A round stays with its
// task as [Handle.ResumeInput] says.
//
// A worker that asks several rounds, or saves checkpoints, lets its checkpoint
// tell what is answered, and does not ask for that again: of a round that is
// gone the keys are still used.
//
// Errors: those of RequestInput, with a [*DuplicateKeyError] for keys of
// another round than the last.
func (h *Handle) Ask(ctx context.Context, requests map[string]wire.JSON) (map[string]wire.JSON, error) {
	return h.request(ctx, requests, func(r *Record) bool {
		round := r.InputRequests
		if r.Status == StatusWorking {
			round = r.InputResponses
		}
		return len(round) == len(requests) && !slices.ContainsFunc(slices.Collect(maps.Keys(requests)), func(key string) bool {
			_, ok := round[key]
			return !ok
		})
	})
}

// request asks a round of requests, unless the record has it already, and
// waits for the answers.
func (h *Handle) request(ctx context.Context, requests map[string]wire.JSON, has func(*Record) bool) (map[string]wire.JSON, error) {
	if len(requests) == 0 {
		return nil, fmt.Errorf("%w: no requests", ErrInvalid)
	}
	keys := slices.Sorted(maps.Keys(requests))
	for _, key := range keys {
		if err := checkText("an input key", key); err != nil {
			return nil, err
		}
		if err := wire.CheckInputRequest(requests[key]); err != nil {
			return nil, withKey(err, key)
		}
	}
	return h.ask(ctx, func() ([]string, error) {
		return keys, h.update(ctx, func(r *Record) (change, error) {
			if r.CancelRequested {
				return nothing, ErrCancelled
			}
			if has(r) {
				return nothing, nil
			}
			for _, key := range keys {
				if kinds := wire.KindsOf(requests[key]) & r.Undeclared; kinds != 0 {
					return nothing, &UndeclaredError{Key: key, Kinds: kinds}
				}
			}
			var again []string
			for _, used := range r.UsedInputKeys {
				if _, ok := requests[used]; ok {
					again = append(again, used)
				}
			}
			if len(again) > 0 {
				return nothing, &DuplicateKeyError{Key: slices.Min(again)}
			}
			r.Status = StatusInputRequired
			r.InputRequests = maps.Clone(requests)
			r.InputResponses = nil
			r.UsedInputKeys = append(r.UsedInputKeys, keys...)
			return stamped, nil
		})
	})
}

// ResumeInput takes up the last round of requests of a task, for a worker
// that was interrupted while it waited, or after: it waits for the answers
// that are missing, and returns all of the round. A round stays with its task
// until the worker asks something else, saves a checkpoint after it had the
// answers, or ends the task.
//
// Errors: [ErrNoInput] if there is no such round; otherwise those of
// [Handle.RequestInput].
func (h *Handle) ResumeInput(ctx context.Context) (map[string]wire.JSON, error) {
	return h.ask(ctx, func() ([]string, error) {
		r, err := h.l.get(ctx, h.id)
		if err == nil {
			err = terminal(&r)
		}
		switch {
		case err != nil:
			return nil, err
		case r.Status == StatusInputRequired:
			return slices.Collect(maps.Keys(r.InputRequests)), nil
		case len(r.InputResponses) > 0:
			return slices.Collect(maps.Keys(r.InputResponses)), nil
		default:
			return nil, ErrNoInput
		}
	})
}

// ask waits for the answers of the round that begin starts. It listens before
// the round begins, so that no answer is missed. What it reports of the task,
// the task's contexts know before it returns: a worker that leaves with that
// error is settled by their cause.
func (h *Handle) ask(ctx context.Context, begin func() ([]string, error)) (map[string]wire.JSON, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	t := h.l.local.acquire(h.id)
	if !t.startAsking() {
		h.l.local.release(t, 1)
		return nil, ErrInputPending
	}
	ear := newListener()
	t.listen(ear)
	defer h.l.local.ignore(t, ear)
	defer t.stopAsking()
	keys, err := begin()
	if err != nil {
		if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
			err = context.Cause(ctx)
		}
		return nil, err
	}
	for first := true; ; first = false {
		r, err := h.l.get(context.WithoutCancel(ctx), h.id)
		if errors.Is(err, ErrNotFound) {
			h.l.lost(t, err)
			return nil, ErrExpired
		}
		if err != nil {
			return nil, err
		}
		if done, err := round(&r, keys); done || err != nil {
			if err != nil {
				h.l.follow(t, &r, 0)
				return nil, err
			}
			h.setTaken(keys)
			return r.InputResponses, nil
		}
		if first {
			h.l.watchExpiry(t, &r, 0)
		}
		select {
		case <-ear.ready:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-h.l.workers.draining():
			t.interrupt(ErrShutdown)
			return nil, ErrShutdown
		case <-h.l.life.Done():
			h.l.local.end(t, ErrClosed)
			return nil, ErrClosed
		}
	}
}

// round reports whether the round with these keys is answered, or why it
// never will be.
func round(r *Record, keys []string) (done bool, err error) {
	held := r.InputRequests
	if r.Status == StatusWorking {
		held = r.InputResponses
	}
	_, ours := held[keys[0]] // a key belongs to one round for ever
	switch {
	case r.Status.Terminal():
		return false, terminal(r)
	case r.CancelRequested:
		return false, ErrCancelled
	case !ours:
		return false, ErrSuperseded
	}
	return r.Status == StatusWorking, nil
}

func (t *localTask) startAsking() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.asking
	t.asking = true
	return first
}

func (t *localTask) stopAsking() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.asking = false
}

// hasTaken reports whether these answers have been handed to this worker. A
// key belongs to one round for ever, so one key tells.
func (h *Handle) hasTaken(answers map[string]wire.JSON) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.taken) == 0 {
		return false
	}
	_, ok := answers[h.taken[0]]
	return ok
}

func (h *Handle) setTaken(keys []string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.taken = keys
}

// finish ends a task. What is only of use to a task that goes on is dropped.
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
// CallToolResult, also one with isError (tasks.md, "Task Status"). The member
// resultType, which the protocol asks of it, is added if it is missing; any
// value but "complete" is refused. The status message stays.
//
// Errors: [ErrInvalid]; [ErrNotFound]; [*TerminalError]; [ErrClosed]; ctx's;
// the store's own, such as for a result that is too large, after which the
// task goes on.
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

// Fail ends the task with a JSON-RPC error: for faults of the protocol or the
// server, never for a tool's own (tasks.md, "Task Execution Errors"), which
// belong into a result with isError. The error's message becomes the status
// message.
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
	if err != nil { // its data is nested as deep as can be, and it is one level more
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
