package gosdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// TaskHandler does the work of one call of a task tool. It is [Work] with the
// call's arguments.
//
// It may run more than once for a task: when a process dies, the next one
// runs it again from the start, with the same arguments, unless
// [TaskToolOptions].Resume says otherwise. [durabletasks.Handle.Checkpoint] has
// what it saved, and [Ask] the answers to what it asked.
type TaskHandler[In any] func(ctx context.Context, h *durabletasks.Handle, in In) (*mcp.CallToolResult, error)

// Undeclared says what a task tool does for a client that did not declare the
// Tasks extension on the request.
type Undeclared int

const (
	// RunInline does the work while the client waits, and answers with its
	// result. Nothing is stored; if the client gives up waiting, the work is
	// cancelled. Work that asks the client for input is refused as by Refuse
	// at that moment: without a task there is nobody to ask.
	RunInline Undeclared = iota

	// Refuse answers with error -32021, which names the extension.
	Refuse
)

// TaskToolOptions are the settings of a task tool. The zero value of a field
// is its default.
type TaskToolOptions struct {
	// Undeclared is the policy for clients without the extension; RunInline
	// by default.
	Undeclared Undeclared

	// Create are the settings of the tool's tasks. Its Payload is not used:
	// the task keeps the tool's name and arguments.
	Create durabletasks.CreateOptions

	// Resume returns the worker of a task that an earlier process left
	// unfinished, or nil to leave the task as it is. Nil runs the handler
	// again; [FailInterrupted] fails the task.
	Resume func(durabletasks.Record) durabletasks.Worker
}

// AddTaskTool adds a tool whose calls become tasks, for clients that take
// them. The tool's input schema is inferred from In unless it is set, and
// arguments are checked and decoded as by [mcp.AddTool], where numbers beyond
// 2^53 lose digits; arguments that do not fit are a tool error at once, not a
// task. Nil opts mean the defaults.
//
// The handler gets its arguments as In from their JSON form, the first time
// and after a restart: what In does not encode is lost.
//
// AddTaskTool panics where mcp.AddTool does, such as for an In without a
// schema.
func AddTaskTool[In any](a *Adapter, tool *mcp.Tool, handler TaskHandler[In], opts *TaskToolOptions) {
	var o TaskToolOptions
	if opts != nil {
		o = *opts
	}
	worker := func(arguments wire.JSON) durabletasks.Worker {
		return a.worker(func(ctx context.Context, h *durabletasks.Handle) (*mcp.CallToolResult, error) {
			var in In
			if err := json.Unmarshal(arguments.AppendJSON(nil), &in); err != nil {
				a.log.Error("gosdk: stored arguments do not fit the tool", "tool", tool.Name)
				return nil, internalError()
			}
			return handler(ctx, h, in)
		})
	}
	a.mu.Lock()
	a.tools[tool.Name] = func(r durabletasks.Record, call ToolCall) durabletasks.Worker {
		if o.Resume != nil {
			return o.Resume(r)
		}
		return worker(call.Arguments)
	}
	a.mu.Unlock()
	mcp.AddTool(a.server, tool, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := a.callTaskTool(ctx, tool.Name, in, worker, &o)
		return result, nil, err
	})
}

// callTaskTool makes one call of a task tool a task, or does without. Every
// error is a [*jsonrpc.Error].
func (a *Adapter) callTaskTool(ctx context.Context, name string, in any, worker func(wire.JSON) durabletasks.Worker, o *TaskToolOptions) (_ *mcp.CallToolResult, err error) {
	defer a.rescue(&err) // In's own encoding may panic
	arguments, err := wire.Marshal(in)
	if err != nil {
		return nil, protocolError(&wire.Error{Code: wire.CodeInvalidParams, Message: "Invalid params: arguments cannot be stored"})
	}
	c, _ := ctx.Value(callKey{}).(*call)
	switch {
	case c != nil && c.declared:
		create := o.Create
		if create.Payload, err = wire.Marshal(ToolCall{Name: name, Arguments: arguments}); err != nil {
			return nil, a.failed("create task", err)
		}
		if err := c.start(ctx, &create, worker(arguments)); err != nil {
			return nil, a.failed("create task", err)
		}
		return nil, nil
	case o.Undeclared == Refuse:
		return nil, protocolError(wire.MissingCapability())
	default:
		return a.runInline(ctx, worker(arguments))
	}
}
