package gosdk

import (
	"context"
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// runInline does the work of a task while the caller waits. The worker gets a
// real handle, of an engine that exists for this call only: no client could ever
// ask for the task, so nothing of it is stored. Every error is a
// [*jsonrpc.Error], except for the end of ctx.
func (a *Adapter) runInline(ctx context.Context, tool string, work durabletasks.Worker) (*mcp.CallToolResult, error) {
	engine, err := durabletasks.New(&inlineStore{}, &durabletasks.Options{
		TTL:           durabletasks.NoLimit,
		SweepInterval: durabletasks.NoLimit,
		Logger:        a.log,
	})
	if err != nil {
		return nil, a.failed("inline call", err, "tool", tool)
	}
	defer engine.Close() // closes a MemStore, which cannot fail
	created, err := engine.StartTask(outOfCall(ctx), &durabletasks.CreateOptions{Tool: tool}, work)
	if err != nil {
		return nil, a.failed("inline call", err, "tool", tool)
	}
	var ended wire.Task
	for task, err := range engine.Watch(ctx, created.TaskID) {
		switch {
		case err == nil:
			ended = task // the last one is terminal
		case ctx.Err() != nil:
			if err := engine.CancelTask(context.WithoutCancel(ctx), created.TaskID); err != nil {
				a.log.Error("gosdk: inline call not cancelled", "tool", tool, "error", err)
			}
			return nil, err
		default:
			return nil, a.failed("inline call", err, "tool", tool)
		}
	}
	result, err := inlineResult(&ended)
	if err != nil {
		return nil, a.failed("inline call", err, "tool", tool)
	}
	return result, nil
}

// inlineResult returns how a task has ended as the answer to its call.
func inlineResult(ended *wire.Task) (*mcp.CallToolResult, error) {
	switch ended.Status {
	case wire.StatusCompleted:
		var result mcp.CallToolResult
		if err := json.Unmarshal([]byte(ended.Result.String()), &result); err != nil {
			return nil, err
		}
		if structured := ended.Result.Get("structuredContent"); !structured.IsZero() {
			result.StructuredContent = json.RawMessage(structured.String()) // with every digit
		}
		return &result, nil
	case wire.StatusFailed:
		var failure jsonrpc.Error
		if err := ended.Error.Decode(&failure); err != nil {
			return nil, err
		}
		return nil, &failure
	default:
		text := ended.StatusMessage
		if text == "" {
			text = "The work was cancelled."
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: true}, nil
	}
}

// inlineStore keeps the one task of an inline call. It does not let the task
// ask: the client could not answer.
type inlineStore struct{ durabletasks.MemStore }

var _ durabletasks.TaskStore = (*inlineStore)(nil)

// Update implements [durabletasks.TaskStore].
func (s *inlineStore) Update(ctx context.Context, next durabletasks.Record) error {
	if next.Status == durabletasks.StatusInputRequired {
		return wire.MissingCapability()
	}
	return s.MemStore.Update(ctx, next)
}
