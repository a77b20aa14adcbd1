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
	taken map[string]struct{} // the keys whose answers this worker was handed
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
	// [Handle.Checkpoint]. It stands for all that came before it: the answers
	// that the worker has been handed are dropped.
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
// been handed, but for those of a round that still waits for others.
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
// key; [ErrInputPending]; [*UnsupportedInputError]; [*DuplicateKeyError];
// [ErrNotFound]; [*TerminalError], also if the task ends meanwhile;
// [ErrCancelled], in which case nothing was asked, or no longer matters;
// [ErrExpired]; [ErrShutdown]; [ErrClosed]; [ErrSuperseded] if another process
// asked something else meanwhile; the store's own.
func (h *Handle) RequestInput(ctx context.Context, requests map[string]wire.JSON) (map[string]wire.JSON, error) {
	return h.request(ctx, requests, func(*Record, string) bool { return false })
}

// Ask is [Handle.RequestInput] for a worker that may run more than once: it
// asks only for what was not asked yet. A request whose key is outstanding is
// waited for, and the client still sees it as it was first asked; an answer
// that the client has given is returned, after a restart too. So a worker
// that runs again from its start asks the same in the same order, and gets
// the same answers.
//
// A checkpoint stands for what came before it: a worker that saves one does
// not ask again, when it is resumed from there, for what it had been answered.
// Those answers are gone, and their keys are used. Without checkpoints all
// answers stay, and count towards the size of a record that the store takes.
//
// Errors: those of RequestInput, with a [*DuplicateKeyError] for the key of a
// request that is neither outstanding nor has an answer any more.
func (h *Handle) Ask(ctx context.Context, requests map[string]wire.JSON) (map[string]wire.JSON, error) {
	return h.request(ctx, requests, func(r *Record, key string) bool {
		_, asked := r.InputRequests[key]
		_, answered := r.InputResponses[key]
		return asked || answered
	})
}

// request asks for what the record does not have already, in one round, and
// waits for all the answers.
func (h *Handle) request(ctx context.Context, requests map[string]wire.JSON, has func(r *Record, key string) bool) (map[string]wire.JSON, error) {
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
			fresh := slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return has(r, key) })
			if len(fresh) == 0 {
				return nothing, nil
			}
			round := make(map[string]wire.JSON, len(fresh))
			for _, key := range fresh {
				if kinds := wire.KindsOf(requests[key]) & r.UnsupportedInput; kinds != 0 {
					return nothing, &UnsupportedInputError{Key: key, Kinds: kinds}
				}
				round[key] = requests[key]
			}
			var again []string
			for _, q := range r.Questions {
				if _, ok := round[q.Key]; ok {
					again = append(again, q.Key)
				}
			}
			if len(again) > 0 {
				return nothing, &DuplicateKeyError{Key: slices.Min(again)}
			}
			for _, key := range keys {
				if request, asked := r.InputRequests[key]; asked {
					round[key] = request // still waited for
				}
			}
			r.Status = StatusInputRequired
			r.InputRequests = round
			for _, key := range fresh {
				r.Questions = append(r.Questions, Question{Key: key})
			}
			return stamped, nil
		})
	})
}

// ResumeInput takes up what a task was asking, for a worker that was
// interrupted while it waited, or after: it waits for the answers to the
// outstanding requests, and returns these and all others that the task holds.
// An answer stays with its task until the worker saves a checkpoint after it
// was handed the answer, or ends the task.
//
// Errors: [ErrNoInput] if nothing is outstanding and no answer is held;
// otherwise those of [Handle.RequestInput].
func (h *Handle) ResumeInput(ctx context.Context) (map[string]wire.JSON, error) {
	return h.ask(ctx, func() (keys []string, err error) {
		r, err := h.l.get(ctx, h.id)
		if err == nil {
			err = terminal(&r)
		}
		switch {
		case err != nil:
			return nil, err
		case len(r.InputRequests) == 0 && len(r.InputResponses) == 0:
			return nil, ErrNoInput
		}
		for key := range r.InputRequests {
			keys = append(keys, key)
		}
		for key := range r.InputResponses {
			keys = append(keys, key)
		}
		return keys, nil
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
		answers, err := answersTo(&r, keys)
		if err != nil {
			h.l.follow(t, &r, 0)
			return nil, err
		}
		if answers != nil {
			h.take(answers)
			return answers, nil
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

// answersTo returns the answers to the requests with these keys: nil if some
// are missing, or why they will never be complete.
func answersTo(r *Record, keys []string) (map[string]wire.JSON, error) {
	answers := make(map[string]wire.JSON, len(keys))
	complete, lost := true, false
	for _, key := range keys {
		answer, answered := r.InputResponses[key]
		if answered {
			answers[key] = answer
			continue
		}
		complete = false
		if _, asked := r.InputRequests[key]; !asked {
			lost = true
		}
	}
	switch {
	case r.Status.Terminal():
		return nil, terminal(r)
	case r.CancelRequested:
		return nil, ErrCancelled
	case complete:
		return answers, nil
	case lost:
		return nil, ErrSuperseded
	}
	return nil, nil
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

// take notes which answers this worker was handed.
func (h *Handle) take(answers map[string]wire.JSON) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.taken == nil {
		h.taken = make(map[string]struct{}, len(answers))
	}
	for key := range answers {
		h.taken[key] = struct{}{}
	}
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
