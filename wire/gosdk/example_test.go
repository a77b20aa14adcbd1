package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type indexInput struct {
	Files int `json:"files" jsonschema:"how many files to index"`
}

type indexOutput struct {
	Indexed int `json:"indexed" jsonschema:"how many files were indexed"`
}

// index works file by file and saves how many are done. When it runs again
// after a restart, it continues from there, and the user is not asked twice.
func index(ctx context.Context, h *durabletasks.Handle, in indexInput) (*mcp.CallToolResult, indexOutput, error) {
	out, err := durabletasks.Checkpoint[indexOutput](ctx, h) // zero in the first run
	if err != nil {
		return nil, out, err
	}
	if out.Indexed == 0 {
		sure, err := h.Confirm(ctx, "confirm", fmt.Sprintf("Index %d files?", in.Files))
		if err != nil {
			return nil, out, err
		}
		if !sure {
			return nil, out, errors.New("the user does not want it")
		}
	}
	for out.Indexed < in.Files {
		select {
		case <-time.After(100 * time.Millisecond): // index one file
		case <-ctx.Done(): // cancelled by the client, or shutting down
			return nil, out, context.Cause(ctx)
		}
		out.Indexed++
		message := fmt.Sprintf("%d of %d files", out.Indexed, in.Files)
		if err := h.Progress(ctx, message, &durabletasks.ProgressOptions{Checkpoint: out}); err != nil {
			return nil, out, err
		}
	}
	return nil, out, nil
}

// A server on stdio with one tool whose calls become tasks.
func Example() {
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil) // package wal has a store that survives the process
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, nil)
	if err != nil {
		log.Fatal(err)
	}
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "index", Description: "Indexes files."}, index, nil)

	if err := adapter.RunStdio(context.Background()); err != nil {
		log.Fatal(err)
	}
}

// The same server over Streamable HTTP.
func ExampleAdapter_RunHTTP() {
	var adapter *gosdk.Adapter // with the tools added

	if err := adapter.RunHTTP(context.Background(), &http.Server{Addr: "127.0.0.1:8080"}); err != nil {
		log.Fatal(err)
	}
}

// The handler goes with others, and with middleware such as the SDK's auth.
func ExampleAdapter_HTTPHandler() {
	var adapter *gosdk.Adapter // with the tools added

	mux := http.NewServeMux()
	mux.Handle("/mcp", adapter.HTTPHandler(nil))
	web := &http.Server{Addr: "127.0.0.1:8080", Handler: mux}
	if err := adapter.RunHTTP(context.Background(), web); err != nil {
		log.Fatal(err)
	}
}

// A tool that becomes a task only when there is much to do, and that runs
// without a task for clients that do not support them.
func ExampleDefer() {
	var server *mcp.Server // with an adapter installed

	mcp.AddTool(server, &mcp.Tool{Name: "index"}, func(ctx context.Context, _ *mcp.CallToolRequest, in indexInput) (*mcp.CallToolResult, any, error) {
		if in.Files > 10 && gosdk.CanDefer(ctx) {
			return nil, nil, gosdk.Defer(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (*mcp.CallToolResult, error) {
				return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "many files"}}}, nil
			})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a few files"}}}, nil, nil
	})
}

// A worker that asks with the SDK's types, and leaves the user ten minutes to
// answer.
func ExampleRequestInput() {
	var adapter *gosdk.Adapter

	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "clean_up"}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, any, error) {
		answers, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"rename": &mcp.ElicitParams{
			Message: "What should the archive be called?",
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"name": map[string]any{"type": "string", "title": "Name"}},
				"required":   []string{"name"},
			},
		}}, &durabletasks.InputOptions{Timeout: 10 * time.Minute})
		if err != nil {
			return nil, nil, err
		}
		form, _ := answers["rename"].(*mcp.ElicitResult)
		name, ok := form.Content["name"].(string)
		if form.Action != "accept" || !ok {
			return nil, nil, errors.New("the archive has no name")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "archived as " + name}}}, nil, nil
	}, nil)
}
