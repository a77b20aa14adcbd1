package gosdk

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// recoverOnce takes up unfinished tasks if nobody has. A failure that may
// pass is met again by the next request, or with Options.RecoverEvery after that
// time: it may also stay, such as a damaged record, and must not cost every
// request a scan.
func (a *Adapter) recoverOnce() {
	if !a.opts.Recover {
		return
	}
	a.recovery.Lock()
	defer a.recovery.Unlock()
	if a.recovered {
		return
	}
	switch err := a.recoverNow(); {
	case errors.Is(err, errors.ErrUnsupported):
		a.recovered = true // a store that cannot scan never will
	case err == nil, a.opts.RecoverEvery > 0 && !ended(err):
		a.recovered = true
		a.recoverLater()
	}
}

// recoverNow takes up unfinished tasks.
func (a *Adapter) recoverNow() error {
	// Not the request's context: the tasks belong to other requests.
	n, err := a.tasks.Recover(context.Background(), a.Resume)
	if n > 0 {
		a.log.Info("gosdk: unfinished tasks taken up", "count", n)
	}
	if err != nil && !ended(err) {
		a.log.Error("gosdk: recovery failed", "error", err)
	}
	return err
}

// recoverLater arranges for the next recovery, if there is to be one. A timer
// keeps no goroutine behind an engine that has closed meanwhile.
func (a *Adapter) recoverLater() {
	if a.opts.RecoverEvery > 0 {
		time.AfterFunc(a.opts.RecoverEvery, a.recoverAgain)
	}
}

// recoverAgain takes up unfinished tasks, and arranges for the next time,
// unless the engine has ended.
func (a *Adapter) recoverAgain() {
	var err error
	defer func() {
		if recover() != nil { // the store's panic, with no request to answer
			a.log.Error("gosdk: recovery panicked")
		}
		if !ended(err) {
			a.recoverLater()
		}
	}()
	err = a.recoverNow()
}

// ended reports whether a call failed because the engine has ended.
func ended(err error) bool {
	return errors.Is(err, durabletasks.ErrClosed) || errors.Is(err, durabletasks.ErrShutdown)
}

// Resume returns the worker of a task that an earlier process left
// unfinished, or nil if the adapter knows none. A task of a task tool gets
// what its [TaskToolOptions].Resume says; any other what [Options].Resume
// says. It fits [durabletasks.TaskLifecycle.Recover], for a host that
// recovers by itself instead of by [Options].Recover.
func (a *Adapter) Resume(r durabletasks.Record) durabletasks.Worker {
	if call, ok := ToolCallOf(r); ok {
		a.mu.Lock()
		resume := a.tools[call.Name]
		a.mu.Unlock()
		if resume != nil {
			return resume(r, call)
		}
	}
	if a.opts.Resume != nil {
		return a.opts.Resume(r)
	}
	return nil
}

// FailInterrupted returns a worker that ends its task as failed. It is what
// to resume with where work must not be done twice.
func FailInterrupted(durabletasks.Record) durabletasks.Worker {
	return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{
			Code:    wire.CodeInternalError,
			Message: "The server was restarted while the task ran",
		}
	}
}

// ToolCall is the tools/call that a task came from. It is kept as the
// Payload of the task's record while the task is unfinished.
type ToolCall struct {
	Name      string    `json:"name"`
	Arguments wire.JSON `json:"arguments,omitzero"`
}

// ToolCallOf returns the tools/call that a task came from. It reports false
// for a record whose Payload is something else.
func ToolCallOf(r durabletasks.Record) (ToolCall, bool) {
	name, ok := r.Payload.Get("name").Text()
	return ToolCall{Name: name, Arguments: r.Payload.Get("arguments")}, ok && name != ""
}
