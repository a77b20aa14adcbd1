package gosdk

import (
	"context"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Work does the work of a task that [Defer] makes. What it returns ends the
// task as what a [durabletasks.Worker] returns does, and a [*jsonrpc.Error]
// fails the task as a [*wire.Error] does. Work that has ended its task by its
// handle, or whose context has ended, returns nil and nil. The context carries
// the values of the tools/call, and ends with the task, not with the call.
type Work func(ctx context.Context, h *durabletasks.Handle) (*mcp.CallToolResult, error)

// worker returns the engine's kind of worker.
func (a *Adapter) worker(tool string, work Work) durabletasks.Worker {
	if work == nil {
		return nil // which the engine refuses
	}
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		result, err := work(ctx, h)
		switch {
		case err != nil:
			return wire.JSON{}, a.workerError(tool, err)
		case result == nil:
			return wire.JSON{}, nil // the engine knows whether that is right
		}
		return a.encode(tool, result)
	}
}

// workerError returns a worker's error as the engine takes it.
func (a *Adapter) workerError(tool string, err error) error {
	var e *jsonrpc.Error
	if !errors.As(err, &e) {
		return err
	}
	out := &wire.Error{Code: e.Code, Message: e.Message}
	if len(e.Data) > 0 {
		var err error
		if out.Data, err = wire.ParseJSON(e.Data); err != nil {
			a.log.Error("gosdk: data of a tool's error dropped", "tool", tool, "error", err)
		}
	}
	return out
}

// encode returns the text of a tool's result.
func (a *Adapter) encode(tool string, result *mcp.CallToolResult) (wire.JSON, error) {
	if result.InputRequests != nil {
		return a.unstorable(tool, errors.New("a task asks by Handle.RequestInput, not by InputRequests in its result"))
	}
	if result.Content == nil {
		with := *result
		with.Content = []mcp.Content{}
		result = &with
	}
	text, err := wire.Marshal(result)
	if err != nil {
		return a.unstorable(tool, err)
	}
	return text, nil
}

// unstorable reports a result that has no JSON.
func (a *Adapter) unstorable(tool string, err error) (wire.JSON, error) {
	a.log.Error("gosdk: result of a tool cannot be encoded", "tool", tool, "error", err)
	return wire.JSON{}, &wire.Error{Code: wire.CodeInternalError, Message: "The tool's result cannot be encoded"}
}
