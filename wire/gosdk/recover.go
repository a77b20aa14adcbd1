package gosdk

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A recovery that failed is tried again by the next request or, with
// Options.RecoverEvery, after that time: the failure may also stay, such as a
// damaged record, and must not cost every request a scan.

// recoverOnce resumes unfinished tasks, unless that was done since the last
// tool was added.
func (a *Adapter) recoverOnce() {
	a.recovery.Lock()
	defer a.recovery.Unlock()
	if a.recovered {
		return
	}
	switch err := a.recoverNow(); {
	case errors.Is(err, errors.ErrUnsupported): // a store that cannot scan never will
		a.recovered = true
	case err == nil, a.opts.RecoverEvery > 0 && !hasEnded(err):
		a.recovered = true
		if a.opts.RecoverEvery > 0 && !a.repeats {
			a.repeats = true
			a.recoverLater()
		}
	}
}

// recoverNow resumes unfinished tasks.
func (a *Adapter) recoverNow() (err error) {
	defer func() {
		if p := recover(); p != nil { // the store's
			err = errors.New("panic")
			a.log.Error("gosdk: recovery panicked", describePanic(p))
		}
	}()
	// Not the request's context: the tasks belong to other requests.
	n, err := a.tasks.Recover(context.Background(), a.resume)
	if n > 0 {
		a.log.Info("gosdk: unfinished tasks resumed", "count", n)
	}
	switch {
	case err == nil, hasEnded(err):
	case errors.Is(err, errors.ErrUnsupported):
		a.log.Warn("gosdk: unfinished tasks are not resumed", "error", err)
	default:
		a.log.Error("gosdk: recovery failed", "error", err)
	}
	return err
}

// recoverLater arranges for the next recovery. A timer keeps no goroutine
// behind an engine that has closed meanwhile.
func (a *Adapter) recoverLater() {
	time.AfterFunc(a.opts.RecoverEvery, func() {
		if err := a.recoverNow(); !hasEnded(err) {
			a.recoverLater()
		}
	})
}

// hasEnded reports whether a call failed because the engine has ended.
func hasEnded(err error) bool {
	return errors.Is(err, durabletasks.ErrClosed) || errors.Is(err, durabletasks.ErrShutdown)
}

// addTool makes a task tool known to [Adapter.resume]. Tasks of a tool that is
// added late are resumed by the next request.
func (a *Adapter) addTool(t *taskTool) {
	a.mu.Lock()
	known := a.tools[t.name] != nil
	a.tools[t.name] = t
	a.mu.Unlock()
	if known {
		panic(fmt.Sprintf("AddTaskTool: tool %q: the adapter has a task tool of this name", t.name))
	}
	a.recovery.Lock()
	a.recovered = false
	a.recovery.Unlock()
}

// resume returns the worker of a task that an earlier process left unfinished,
// or nil if there is none.
func (a *Adapter) resume(r durabletasks.Record) durabletasks.Worker {
	a.mu.Lock()
	tool := a.tools[r.Tool]
	a.mu.Unlock()
	switch {
	case tool != nil:
		return tool.resume(r)
	case a.opts.Resume != nil:
		return a.opts.Resume(r)
	}
	return nil
}

// FailInterrupted returns a worker that ends its task as failed. It is for
// [TaskToolOptions].Resume and [Options].Resume where work must not be done
// twice.
func FailInterrupted(durabletasks.Record) durabletasks.Worker {
	return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{
			Code:    wire.CodeInternalError,
			Message: "The server was restarted while the task ran",
		}
	}
}
