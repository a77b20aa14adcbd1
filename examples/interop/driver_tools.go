package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type none struct{}

// addDriverTools adds the tools that the interop driver calls.
func addDriverTools(server *mcp.Server, adapter *gosdk.Adapter) {
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "echo_task", Description: "Returns a text after some milliseconds."}, echo, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "ask_task", Description: "Asks for a name and greets."}, greetByForm, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "ask_two_task", Description: "Asks for two names at once and greets both."}, greetTwo, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "slow_task", Description: "Runs until it is cancelled."}, runUntilCancelled, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "fail_task", Description: "Fails with a JSON-RPC error."}, failByProtocol, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "tool_error_task", Description: "Completes with a tool error."}, failByResult, nil)
	mcp.AddTool(server, &mcp.Tool{Name: "sync_tool", Description: "Answers at once."},
		func(context.Context, *mcp.CallToolRequest, none) (*mcp.CallToolResult, any, error) {
			return text("done at once"), nil, nil
		})
}

type echoInput struct {
	Text string `json:"text" jsonschema:"what to return"`
	MS   int    `json:"ms,omitempty" jsonschema:"after how many milliseconds"`
}

func echo(ctx context.Context, _ *durabletasks.Handle, in echoInput) (*mcp.CallToolResult, any, error) {
	if err := sleep(ctx, time.Duration(in.MS)*time.Millisecond); err != nil {
		return nil, nil, err
	}
	return text(in.Text), nil, nil
}

func greetByForm(ctx context.Context, h *durabletasks.Handle, _ none) (*mcp.CallToolResult, any, error) {
	answers, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"name": nameForm("What is your name?")}, nil)
	if err != nil {
		return nil, nil, err
	}
	name, err := nameIn(answers["name"])
	if err != nil {
		return nil, nil, err
	}
	return text("Hello, " + name), nil, nil
}

func greetTwo(ctx context.Context, h *durabletasks.Handle, _ none) (*mcp.CallToolResult, any, error) {
	answers, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{
		"first":  nameForm("Who is the first?"),
		"second": nameForm("Who is the second?"),
	}, nil)
	if err != nil {
		return nil, nil, err
	}
	first, err := nameIn(answers["first"])
	if err != nil {
		return nil, nil, err
	}
	second, err := nameIn(answers["second"])
	if err != nil {
		return nil, nil, err
	}
	return text(fmt.Sprintf("Hello, %s and %s", first, second)), nil, nil
}

func runUntilCancelled(ctx context.Context, _ *durabletasks.Handle, _ none) (*mcp.CallToolResult, any, error) {
	<-ctx.Done()
	return nil, nil, context.Cause(ctx)
}

func failByProtocol(context.Context, *durabletasks.Handle, none) (*mcp.CallToolResult, any, error) {
	return nil, nil, &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: "The machine is on fire"}
}

func failByResult(context.Context, *durabletasks.Handle, none) (*mcp.CallToolResult, any, error) {
	return nil, nil, errors.New("the tool could not do it")
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func nameForm(message string) *mcp.ElicitParams {
	return &mcp.ElicitParams{
		Message: message,
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"name": map[string]any{"type": "string"}},
			"required":   []string{"name"},
		},
	}
}

// nameIn returns what was filled into a nameForm. Clients may refuse, and what
// they accept need not fit the form.
func nameIn(answer mcp.InputResponse) (string, error) {
	form, ok := answer.(*mcp.ElicitResult)
	if !ok || form.Action != "accept" {
		return "", errors.New("no name was given")
	}
	name, ok := form.Content["name"].(string)
	if !ok || strings.TrimSpace(name) == "" {
		return "", errors.New("the form holds no name")
	}
	return name, nil
}
