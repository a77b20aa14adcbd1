package gosdk

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Work does the work of a task. What it returns ends the task as a
// [durabletasks.Worker] would, with these additions: a [*jsonrpc.Error] fails
// the task like a [*wire.Error]; a nil result with a nil error is for work
// that has ended its task itself, by its handle. The context carries the
// values of the tools/call, and ends with the task, not with the call.
type Work func(ctx context.Context, h *durabletasks.Handle) (*mcp.CallToolResult, error)

// worker makes the engine's kind of worker.
func (a *Adapter) worker(work Work) durabletasks.Worker {
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		result, err := work(ctx, h)
		var failure *jsonrpc.Error
		switch {
		case errors.As(err, &failure):
			return wire.JSON{}, a.workerError(failure)
		case err != nil || result == nil:
			return wire.JSON{}, err
		}
		text, err := encode(result)
		if err != nil {
			a.log.Error("gosdk: result of a worker cannot be stored", "error", err)
			return wire.JSON{}, &wire.Error{Code: wire.CodeInternalError, Message: "Internal error"}
		}
		return text, nil
	}
}

// workerError returns the SDK's kind of error as the engine takes it.
func (a *Adapter) workerError(e *jsonrpc.Error) *wire.Error {
	out := &wire.Error{Code: e.Code, Message: e.Message}
	if len(e.Data) > 0 {
		var err error
		if out.Data, err = wire.ParseJSON(e.Data); err != nil {
			a.log.Error("gosdk: data of a worker's error dropped", "error", err)
		}
	}
	return out
}

// encode returns the text of a tool's result.
func encode(result *mcp.CallToolResult) (wire.JSON, error) {
	if result.InputRequests != nil {
		return wire.JSON{}, errors.New("a task asks by its handle, not by InputRequests in its result")
	}
	if result.Content == nil {
		with := *result
		with.Content = []mcp.Content{}
		result = &with
	}
	return wire.Marshal(result)
}
