package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Errors that the engine reports in addition to those of a store; compare with
// [errors.Is]. None of them holds a task id or a payload.
var (
	// ErrInvalid is returned when an argument or option is wrong; the text
	// names it.
	ErrInvalid = errors.New("durabletasks: invalid argument")

	// ErrTerminal is returned when the task has ended: it never changes
	// again. The error is always a [*TerminalError].
	ErrTerminal = errors.New("durabletasks: task has ended")

	// ErrCancelled is the cause that a worker's context ends with when a
	// client has asked to cancel the task.
	ErrCancelled = errors.New("durabletasks: task cancellation requested")

	// ErrExpired is the cause that a worker's context ends with when its task
	// has expired and nobody can reach it any more.
	ErrExpired = errors.New("durabletasks: task expired")

	// ErrShutdown is the cause that a worker's context ends with when the
	// engine shuts down; the task stays unfinished and can be resumed. A new
	// task is refused with it.
	ErrShutdown = errors.New("durabletasks: shutting down")

	// ErrLost is returned when another worker of the task has taken over, and
	// this one's result no longer matters.
	ErrLost = errors.New("durabletasks: task was taken over by another worker")

	// ErrBusy is returned when [Options].MaxWorkers workers are running.
	ErrBusy = errors.New("durabletasks: too many running workers")

	// ErrRunning is returned when the engine already runs a worker for the
	// task.
	ErrRunning = errors.New("durabletasks: task already has a worker")

	// ErrDuplicateKey is returned when a question uses a key that was used
	// before. The error is always a [*DuplicateKeyError].
	ErrDuplicateKey = errors.New("durabletasks: input key already used")

	// ErrUnanswered is returned when questions are no longer open and have no
	// answer. The error is always an [*UnansweredError].
	ErrUnanswered = errors.New("durabletasks: nobody answered")

	// ErrDeclined is returned by [Handle.Choose] and [Handle.Prompt] when the
	// user declines or dismisses the question.
	ErrDeclined = errors.New("durabletasks: the user declined to answer")

	// ErrUnsupportedInput is returned when the task's client did not declare
	// that it can answer a question of this kind. The error is always an
	// [*UnsupportedInputError].
	ErrUnsupportedInput = errors.New("durabletasks: client cannot answer this input request")

	// ErrInputPending is returned when another call already waits for this
	// task's input.
	ErrInputPending = errors.New("durabletasks: already waiting for input")

	// ErrInconsistent is returned when a stored record's payload does not fit
	// its status.
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

// DuplicateKeyError reports a key that cannot be asked: the task has used it
// for another question, this run has used it before, or its answer is gone
// since a checkpoint was saved (tasks.md, "Task Update Requests"). It unwraps
// to [ErrDuplicateKey].
type DuplicateKeyError struct {
	Key    string
	Reason string // which of these it is, in words
}

// The reasons of a [DuplicateKeyError].
const (
	keyUsedByThisRun = "this run of the worker has used it before; each question needs a key of its own"
	keyOfAnother     = "an earlier run asked a different question under it"
	keyOfCheckpoint  = "its answer was dropped when a checkpoint was saved; do not ask again what came before a checkpoint"
)

// Error names the key and the reason.
func (e *DuplicateKeyError) Error() string {
	return fmt.Sprintf("%v: %.64q: %s", ErrDuplicateKey, e.Key, e.Reason)
}

// Unwrap returns [ErrDuplicateKey].
func (e *DuplicateKeyError) Unwrap() error { return ErrDuplicateKey }

// UnansweredError reports questions whose time to answer is over, or that were
// withdrawn. It unwraps to [ErrUnanswered].
type UnansweredError struct {
	Keys []string // sorted
}

// Error names the first key and how many more there are.
func (e *UnansweredError) Error() string {
	if len(e.Keys) == 0 {
		return ErrUnanswered.Error()
	}
	text := fmt.Sprintf("%v: %.64q", ErrUnanswered, e.Keys[0])
	if more := len(e.Keys) - 1; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// Unwrap returns [ErrUnanswered].
func (e *UnansweredError) Unwrap() error { return ErrUnanswered }

// UnsupportedInputError reports a question that the task's client cannot
// answer: a server must not ask for what a client did not declare (mrtr.mdx,
// "Server Requirements"). It unwraps to [ErrUnsupportedInput] and to the
// -32021 [*wire.Error] that names the capability, so that a worker which
// returns it fails its task with that error.
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

// errIfEnded returns the error for a record that has ended, or nil.
func errIfEnded(r *Record) error {
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
// how it ended: the write goes on without it. The caller's own cancellation
// stops it.
func settling(ctx context.Context) (write context.Context, detached bool) {
	if endedByTask(ctx) {
		return context.WithoutCancel(ctx), true
	}
	return ctx, false
}

// endedByTask reports whether a context ended for one of the reasons of
// [Handle.Context].
func endedByTask(ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, ErrCancelled) || errors.Is(cause, ErrShutdown) || errors.Is(cause, ErrExpired) ||
		errors.Is(cause, ErrClosed) || errors.Is(cause, ErrTerminal)
}

// endedByDeadline reports whether a context ended by a deadline of its own.
func endedByDeadline(ctx context.Context) bool {
	return ctx.Err() == context.DeadlineExceeded && !endedByTask(ctx)
}
