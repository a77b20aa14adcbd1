package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Errors of the engine, beside those of a store; compare with [errors.Is].
// None of them holds a task id or a payload.
var (
	// ErrInvalid: an argument or option is wrong; the text names it.
	ErrInvalid = errors.New("durabletasks: invalid argument")

	// ErrTerminal: the task has ended and never changes again. The error is
	// always a [*TerminalError].
	ErrTerminal = errors.New("durabletasks: task has ended")

	// ErrCancelled is the cause that a worker's context ends with when a
	// client has asked to cancel the task.
	ErrCancelled = errors.New("durabletasks: task cancellation requested")

	// ErrExpired is the cause that a worker's context ends with when its task
	// has expired and nobody can reach it any more.
	ErrExpired = errors.New("durabletasks: task expired")

	// ErrShutdown is the cause that a worker's context ends with when the
	// engine shuts down; the task stays unfinished, to be resumed. It is also
	// what a new task gets then.
	ErrShutdown = errors.New("durabletasks: shutting down")

	// ErrBusy: [Options].MaxWorkers workers are running.
	ErrBusy = errors.New("durabletasks: too many running workers")

	// ErrRunning: the engine already runs a worker for this task.
	ErrRunning = errors.New("durabletasks: task already has a worker")

	// ErrDuplicateKey: a request uses a key that this task has used before.
	// The error is always a [*DuplicateKeyError].
	ErrDuplicateKey = errors.New("durabletasks: input key already used")

	// ErrUnsupportedInput: a request is of a kind that the task's client did not
	// declare to be able to answer. The error is always an [*UnsupportedInputError].
	ErrUnsupportedInput = errors.New("durabletasks: client cannot answer this input request")

	// ErrInputPending: another call already waits for this task's input.
	ErrInputPending = errors.New("durabletasks: already waiting for input")

	// ErrNoInput: there is no round of requests to resume.
	ErrNoInput = errors.New("durabletasks: no input round to resume")

	// ErrSuperseded: the round that a call waits for was replaced by another.
	ErrSuperseded = errors.New("durabletasks: input round superseded")

	// ErrInconsistent: a stored record's payload does not fit its status.
	ErrInconsistent = errors.New("durabletasks: stored record is inconsistent")
)

// TerminalError reports an operation on a task that has ended. It unwraps to
// [ErrTerminal].
type TerminalError struct {
	Status Status // how the task ended
}

// Error names the status.
func (e *TerminalError) Error() string { return fmt.Sprintf("%v: %s", ErrTerminal, e.Status) }

// Unwrap returns [ErrTerminal].
func (e *TerminalError) Unwrap() error { return ErrTerminal }

// DuplicateKeyError reports a key that was used before in the task's lifetime
// (tasks.md, "Task Update Requests"). It unwraps to [ErrDuplicateKey].
type DuplicateKeyError struct {
	Key string
}

// Error names the key.
func (e *DuplicateKeyError) Error() string { return fmt.Sprintf("%v: %.64q", ErrDuplicateKey, e.Key) }

// Unwrap returns [ErrDuplicateKey].
func (e *DuplicateKeyError) Unwrap() error { return ErrDuplicateKey }

// UnsupportedInputError reports a request that the task's client cannot answer: a
// server must not ask for what a client did not declare (mrtr.mdx, "Server
// Requirements"). It unwraps to [ErrUnsupportedInput] and to the -32021
// [*wire.Error] that names the capability, so that a worker which returns it
// fails its task with that.
type UnsupportedInputError struct {
	Key   string
	Kinds wire.InputKinds // what is missing
}

// Error names the key and the capability.
func (e *UnsupportedInputError) Error() string {
	return fmt.Sprintf("%v: %.64q needs %s", ErrUnsupportedInput, e.Key, e.Kinds)
}

// Unwrap returns [ErrUnsupportedInput] and the error for the client.
func (e *UnsupportedInputError) Unwrap() []error {
	return []error{ErrUnsupportedInput, wire.MissingInput(e.Kinds)}
}

// terminal returns the error for a record that has ended, or nil.
func terminal(r *Record) error {
	if r.Status.Terminal() {
		return &TerminalError{Status: r.Status}
	}
	return nil
}

// withKey adds the key of an input request to a shape error.
func withKey(err error, key string) error {
	var shape *wire.ShapeError
	if errors.As(err, &shape) {
		return &wire.ShapeError{Key: key, Pointer: shape.Pointer, Expected: shape.Expected}
	}
	return err
}

// checkText refuses text that JSON cannot carry.
func checkText(name, text string) error {
	if !utf8.ValidString(text) {
		return fmt.Errorf("%w: %s is not valid UTF-8", ErrInvalid, name)
	}
	return nil
}

// settling returns ctx for a worker's write. A context that the task itself
// has ended does not keep its worker from settling the task, or from learning
// what became of it: the write goes on without it. The caller's own
// cancellation stops it.
func settling(ctx context.Context) (write context.Context, detached bool) {
	switch cause := context.Cause(ctx); {
	case cause == nil:
	case errors.Is(cause, ErrCancelled), errors.Is(cause, ErrShutdown), errors.Is(cause, ErrExpired),
		errors.Is(cause, ErrClosed), errors.Is(cause, ErrTerminal):
		return context.WithoutCancel(ctx), true
	}
	return ctx, false
}
