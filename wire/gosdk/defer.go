package gosdk

import (
	"context"
	"errors"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Errors of [Defer]; compare with [errors.Is].
var (
	// ErrNoCall is returned when the context is not that of a tools/call which
	// is being handled, on a server with an [Adapter].
	ErrNoCall = errors.New("gosdk: not in a tools/call")

	// ErrDeferred is returned when the call has become a task already.
	ErrDeferred = errors.New("gosdk: the call is a task already")
)

// Defer makes the tools/call that is being handled a task: the client gets the
// task instead of the result, and work goes on in the background. The tool's
// handler calls it with its context, at most once, and returns its error.
// If Defer succeeds, what the handler returns is dropped, so one with an output
// schema returns zero values. What work returns is not compared with the
// output schema.
//
// Unless opts set a Tool or a Payload, the task keeps the tool's name and the
// arguments that the client sent, for [Options].Resume; arguments that
// [wire.ParseJSON] refuses, such as with a member given twice, are an error.
// (What a handler added by [mcp.AddTool] gets is decoded by the SDK, where
// numbers beyond 2^53 lose digits.) The task also keeps what the client cannot be asked for, see
// [durabletasks.CreateOptions].UnsupportedInput. Nil opts mean the defaults.
//
// If the client did not declare the extension on this very request, Defer does
// nothing and returns the error that the handler should return, a
// [*jsonrpc.Error] with code -32021. [CanDefer] tells before. Other errors:
// [ErrNoCall]; [ErrDeferred]; those of [durabletasks.TaskLifecycle.StartTask], with
// a text that a client may see. If the handler returns them, the call fails
// with the JSON-RPC error that fits.
func Defer(ctx context.Context, opts *durabletasks.CreateOptions, work Work) error {
	c, _ := ctx.Value(callKey{}).(*call)
	switch {
	case c == nil:
		return ErrNoCall
	case !c.declared:
		return protocolError(wire.MissingCapability())
	}
	var o durabletasks.CreateOptions
	if opts != nil {
		o = *opts
	}
	if o.Tool == "" {
		o.Tool = c.params.Name
	}
	if o.Payload.IsZero() {
		var err error
		if o.Payload, err = parseArguments(c.params.Arguments); err != nil {
			return &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: "Invalid params: " + err.Error()}
		}
	}
	return c.start(ctx, o, c.adapter.worker(o.Tool, work))
}

// CanDefer reports whether [Defer] can make the call that is being handled a
// task: whether its client declared the extension. A handler that can also do
// without a task calls it first.
func CanDefer(ctx context.Context) bool {
	c, _ := ctx.Value(callKey{}).(*call)
	return c != nil && c.declared
}

type callKey struct{}

// call is one tools/call while its handler runs: the place where the handler
// notes that it became a task. It travels in the context, so that it reaches
// the middleware no matter what the SDK does with the handler's result.
type call struct {
	adapter  *Adapter
	params   *mcp.CallToolParamsRaw
	declared bool            // the client supports tasks
	cannot   wire.InputKinds // what it cannot be asked for

	mu      sync.Mutex
	over    bool // the handler has returned
	created *wire.CreateTaskResult
}

// start creates the task of a call whose client supports tasks, and runs its
// worker.
func (c *call) start(ctx context.Context, o durabletasks.CreateOptions, work durabletasks.Worker) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.over:
		return ErrNoCall
	case c.created != nil:
		return ErrDeferred
	}
	o.UnsupportedInput |= c.cannot
	created, err := c.adapter.tasks.StartTask(outOfCall(ctx), &o, work)
	if err != nil {
		return &startError{rpc: c.adapter.failed("create task", err, "tool", c.params.Name), cause: err}
	}
	c.created = &created
	return nil
}

// startError reports a call that could not become a task. Its text is for the
// client.
type startError struct {
	rpc   *jsonrpc.Error
	cause error
}

func (e *startError) Error() string { return e.rpc.Message }
func (e *startError) Unwrap() error { return e.cause }

// end notes that the handler has returned, and returns the task that the call
// has become, or nil.
func (c *call) end() *wire.CreateTaskResult {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.over = true
	return c.created
}

// outOfCall hides the call from a worker: it has a task, and must not make
// another.
func outOfCall(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, (*call)(nil))
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
		a.checkWiring(req)
		return &taskResult{Result: *created}, nil
	}
	// The SDK makes an error of a typed handler a result.
	failure := err
	if r, ok := result.(*mcp.CallToolResult); ok && r != nil && err == nil {
		failure = r.GetError()
	}
	var refused *startError
	switch {
	case errors.As(failure, &refused):
		return nil, refused.rpc
	case errors.Is(failure, ErrNoCall):
		return nil, a.failed("Defer", failure, "tool", params.Name)
	}
	return result, err
}

// declared reports whether a tools/call says in its own _meta that its client
// supports tasks, and what a task cannot ask it for. The SDK's ClientCapabilities
// also counts what an earlier request said, which the extension forbids.
func declared(params *mcp.CallToolParamsRaw) (tasks bool, cannot wire.InputKinds) {
	envelope, err := wire.Marshal(map[string]any{"_meta": params.GetMeta()})
	if err != nil {
		return false, 0
	}
	return wire.CheckEnvelope(envelope) == nil, wire.UnsupportedInput(envelope)
}
