package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Errors of [Defer]; compare with [errors.Is].
var (
	// ErrNoCall: the context is not that of a tools/call which is being
	// handled, on a server with an [Adapter].
	ErrNoCall = errors.New("gosdk: not in a tools/call")

	// ErrDeferred: the call has become a task already.
	ErrDeferred = errors.New("gosdk: the call is a task already")
)

// Defer makes the tools/call that is being handled a task: the client gets
// the task instead of the result, and work goes on in the background. It is
// called by the tool's handler, with the handler's context, at most once.
// Whatever the handler returns afterwards is dropped, so one with an output
// schema returns zero values.
//
// Unless opts set a Payload, the task keeps the tool's name and arguments, for
// [Options].Resume; arguments that package wire refuses, such as with a member
// given twice, are an error. The task also keeps what the client cannot be
// asked for, see [durabletasks.CreateOptions].Undeclared. Nil opts mean the
// defaults.
//
// For a client that did not declare the extension on this very request Defer
// does nothing and returns the error that the handler should return, a
// [*jsonrpc.Error] with code -32021. [CanDefer] tells beforehand. Other errors:
// [ErrNoCall]; [ErrDeferred]; those of [durabletasks.TaskLifecycle.Start].
func Defer(ctx context.Context, opts *durabletasks.CreateOptions, work Work) error {
	c, _ := ctx.Value(callKey{}).(*call)
	if c == nil {
		return ErrNoCall
	}
	return c.start(ctx, opts, c.adapter.worker(work))
}

// CanDefer reports whether [Defer] can make the call that is being handled a
// task: whether its client declared the extension. A handler that can also do
// without a task asks it first.
func CanDefer(ctx context.Context) bool {
	c, _ := ctx.Value(callKey{}).(*call)
	return c != nil && c.declared
}

type callKey struct{}

// call is one tools/call while its handler runs: the place where the handler
// notes that it became a task. It travels in the context, so that it reaches
// the middleware past whatever the SDK makes of the handler's result.
type call struct {
	adapter  *Adapter
	params   *mcp.CallToolParamsRaw
	declared bool            // the client takes tasks
	cannot   wire.InputKinds // what it cannot be asked for

	mu      sync.Mutex
	over    bool // the handler has returned
	created *wire.CreateTaskResult
}

// start creates the call's task and runs its worker.
func (c *call) start(ctx context.Context, opts *durabletasks.CreateOptions, work durabletasks.Worker) error {
	if !c.declared {
		return protocolError(wire.MissingCapability())
	}
	var o durabletasks.CreateOptions
	if opts != nil {
		o = *opts
	}
	if o.Payload.IsZero() {
		var err error
		if o.Payload, err = payload(c.params.Name, c.params.Arguments); err != nil {
			return err
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return ErrNoCall
	case c.created != nil:
		return ErrDeferred
	}
	o.Undeclared |= c.cannot
	created, err := c.adapter.tasks.Start(outOfCall(ctx), &o, work)
	if err != nil {
		return fmt.Errorf("gosdk: defer: %w", err)
	}
	c.created = &created
	return nil
}

// end takes note that the handler has returned, and returns the task that the
// call has become, or nil.
func (c *call) end() *wire.CreateTaskResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.created
}

// outOfCall hides the call from a worker: it has a task, and makes no other
// by accident.
func outOfCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, (*call)(nil))
}

// payload is what a task keeps of its tools/call.
func payload(name string, arguments json.RawMessage) (wire.JSON, error) {
	call := ToolCall{Name: name}
	if len(arguments) > 0 {
		var err error
		if call.Arguments, err = wire.ParseJSON(arguments); err != nil {
			return wire.JSON{}, fmt.Errorf("gosdk: arguments: %w", err)
		}
	}
	return wire.Marshal(call)
}

// callTool hands a tools/call on, and answers with the task that it became if
// it did. What the handler returned does not matter then: the task exists,
// and the client must learn of it.
func (a *Adapter) callTool(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	params, ok := req.GetParams().(*mcp.CallToolParamsRaw)
	if !ok || params == nil {
		return next(ctx, method, req)
	}
	c := &call{adapter: a, params: params}
	c.declared, c.cannot = declared(params)
	result, err := next(context.WithValue(ctx, callKey{}, c), method, req)
	if created := c.end(); created != nil {
		return &taskResult{Result: *created}, nil
	}
	return result, err
}

// declared reports whether a tools/call says in its own _meta that its client
// takes tasks, and what a task cannot ask it for. The SDK's ClientCapabilities
// also counts what an earlier request said, which the extension forbids.
func declared(params *mcp.CallToolParamsRaw) (tasks bool, cannot wire.InputKinds) {
	envelope, err := wire.Marshal(map[string]any{"_meta": params.GetMeta()})
	if err != nil {
		return false, 0
	}
	return wire.CheckEnvelope(envelope) == nil, wire.UnsupportedInput(envelope)
}
