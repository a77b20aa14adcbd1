package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// addConformanceTools adds the fixture tools of the official conformance
// suite.
func addConformanceTools(server *mcp.Server, adapter *gosdk.Adapter) {
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "slow_compute", Description: "Computes for some seconds."}, compute, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "failing_job", Description: "Completes with a tool error after a second."}, failSlowly,
		&gosdk.TaskToolOptions{Fallback: gosdk.Refuse})
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "protocol_error_job", Description: "Fails with a JSON-RPC error."}, failByProtocol, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "confirm_delete", Description: "Asks before it deletes."}, confirmDelete, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "multi_input", Description: "Asks two questions at once."}, askTwice, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "greet", Description: "Greets at once."}, greet)
	mcp.AddTool(server, &mcp.Tool{Name: "test_tool_with_task", Description: "Asks before it becomes a task."}, askThenDefer)
}

type greetInput struct {
	Name string `json:"name"`
}

func greet(_ context.Context, _ *mcp.CallToolRequest, in greetInput) (*mcp.CallToolResult, any, error) {
	return text("Hello, " + in.Name + "!"), nil, nil
}

type computeInput struct {
	Seconds float64 `json:"seconds,omitempty"`
	Label   string  `json:"label,omitempty"`
}

func compute(ctx context.Context, _ *durabletasks.Handle, in computeInput) (*mcp.CallToolResult, any, error) {
	if err := sleep(ctx, time.Duration(in.Seconds*float64(time.Second))); err != nil {
		return nil, nil, err
	}
	return text(fmt.Sprintf("Computed %s in %g s", in.Label, in.Seconds)), nil, nil
}

func failSlowly(ctx context.Context, _ *durabletasks.Handle, _ none) (*mcp.CallToolResult, any, error) {
	if err := sleep(ctx, time.Second); err != nil {
		return nil, nil, err
	}
	return nil, nil, errors.New("the job did not work out")
}

type deleteInput struct {
	Filename string `json:"filename"`
}

func confirmDelete(ctx context.Context, h *durabletasks.Handle, in deleteInput) (*mcp.CallToolResult, any, error) {
	yes, err := h.Confirm(ctx, "confirm", "Delete "+in.Filename+"?")
	if err != nil {
		return nil, nil, err
	}
	if !yes {
		return text("Kept " + in.Filename), nil, nil
	}
	return text("Deleted " + in.Filename), nil, nil
}

func askTwice(ctx context.Context, h *durabletasks.Handle, _ none) (*mcp.CallToolResult, any, error) {
	answers, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{
		"name":    nameForm("What is your name?"),
		"confirm": yesNoForm("Go on?"),
	}, nil)
	if err != nil {
		return nil, nil, err
	}
	var said []string
	for _, key := range []string{"name", "confirm"} {
		if form, ok := answers[key].(*mcp.ElicitResult); ok {
			said = append(said, fmt.Sprintf("%s: %s %v", key, form.Action, form.Content))
		}
	}
	return text(strings.Join(said, ", ")), nil, nil
}

// askThenDefer asks on the call itself, by the SDK's multi round-trip
// requests, and becomes a task when it has the answer.
func askThenDefer(ctx context.Context, req *mcp.CallToolRequest, _ none) (*mcp.CallToolResult, any, error) {
	answer, ok := req.Params.InputResponses["user_name"]
	if !ok {
		return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"user_name": nameForm("What is your name?")}}, nil, nil
	}
	name, err := nameIn(answer)
	if err != nil {
		return nil, nil, err
	}
	err = gosdk.Defer(ctx, nil, func(ctx context.Context, _ *durabletasks.Handle) (*mcp.CallToolResult, error) {
		if err := sleep(ctx, 100*time.Millisecond); err != nil {
			return nil, err
		}
		return text("Hello, " + name), nil
	})
	return nil, nil, err
}

func yesNoForm(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Message: message,
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"confirm": map[string]any{"type": "boolean"}},
			"required":   []string{"confirm"},
		},
	}
}
