package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"os"
	"os/signal"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type crawlInput struct {
	Site  string `json:"site" jsonschema:"where to start"`
	Pages int    `json:"pages" jsonschema:"how many pages to read"`
}

// crawl works page by page and saves how far it came. When it runs again
// after a restart, it goes on from there.
func crawl(ctx context.Context, h *durabletasks.Handle, in crawlInput) (*mcp.CallToolResult, error) {
	done := 0
	saved, err := h.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	if !saved.IsZero() {
		if err := saved.Decode(&done); err != nil {
			return nil, err
		}
	}
	for ; done < in.Pages; done++ {
		select {
		case <-time.After(time.Second): // reading a page
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		checkpoint, err := wire.Marshal(done + 1)
		if err != nil {
			return nil, err
		}
		message := fmt.Sprintf("read %d of %d pages", done+1, in.Pages)
		if err := h.Progress(ctx, message, &durabletasks.ProgressOptions{Checkpoint: checkpoint}); err != nil {
			return nil, err
		}
	}
	return &mcp.CallToolResult{Content: []mcp.Content{
		&mcp.TextContent{Text: fmt.Sprintf("%d pages of %s", done, in.Site)},
	}}, nil
}

// A server on stdio with one tool whose calls become tasks.
func Example() {
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil) // package wal has a store that survives the process
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "crawler", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{Recover: true})
	if err != nil {
		log.Fatal(err)
	}
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "crawl", Description: "Reads the pages of a site."}, crawl, nil)

	if err := server.Run(context.Background(), adapter.Transport(&mcp.StdioTransport{})); err != nil {
		log.Print(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := tasks.Shutdown(ctx); err != nil {
		log.Print(err)
	}
}

// A tool that becomes a task only when there is much to do, and that can do
// without for clients that do not take tasks.
func ExampleDefer() {
	var server *mcp.Server // with an adapter installed

	mcp.AddTool(server, &mcp.Tool{Name: "crawl"}, func(ctx context.Context, _ *mcp.CallToolRequest, in crawlInput) (*mcp.CallToolResult, any, error) {
		if in.Pages > 10 && gosdk.CanDefer(ctx) {
			return nil, nil, gosdk.Defer(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (*mcp.CallToolResult, error) {
				return crawl(ctx, h, in)
			})
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "a few pages, read at once"}}}, nil, nil
	})
}

// A worker that asks the user with a form that is built, and reads the answer
// by type.
func ExampleAddTaskTool() {
	var adapter *gosdk.Adapter

	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "clean_up"}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		form, err := wire.FormRequest{
			Message: "Delete 12 files?",
			Fields:  []wire.Field{{Name: "sure", Title: "I am sure", Required: true, Schema: wire.BooleanSchema{}}},
		}.JSON()
		if err != nil {
			return nil, err
		}
		answers, err := h.Ask(ctx, map[string]wire.JSON{"confirm": form})
		if err != nil {
			return nil, err
		}
		if sure, _ := wire.ElicitResult(answers["confirm"]).Bool("sure"); !sure {
			return nil, errors.New("not confirmed")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12 files deleted"}}}, nil
	}, nil)
}

// A worker that asks with the SDK's types. When it runs again after a restart, the same
// call finds the question that is already asked, or its answer.
func ExampleAsk() {
	var adapter *gosdk.Adapter

	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "clean_up"}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		answers, err := gosdk.Ask(ctx, h, mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
			Message: "Delete 12 files?",
			RequestedSchema: map[string]any{
				"type":       "object",
				"properties": map[string]any{"sure": map[string]any{"type": "boolean", "title": "I am sure"}},
				"required":   []string{"sure"},
			},
		}})
		if err != nil {
			return nil, err
		}
		form, ok := answers["confirm"].(*mcp.ElicitResult)
		if !ok || form.Action != "accept" || form.Content["sure"] != true {
			return nil, errors.New("not confirmed")
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "12 files deleted"}}}, nil
	}, nil)
}

// The same server over Streamable HTTP.
func ExampleAdapter_Handler() {
	var (
		server  *mcp.Server
		adapter *gosdk.Adapter
	)
	streamable := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true})
	log.Fatal(http.ListenAndServe("127.0.0.1:8080", adapter.Handler(streamable)))
}

// Clients that listen to their tasks do not keep a server from shutting down.
func ExampleAdapter_EndListens() {
	var (
		tasks   *durabletasks.TaskLifecycle
		adapter *gosdk.Adapter
		handler http.Handler // adapter.Handler(...)
	)
	web := &http.Server{Addr: "127.0.0.1:8080", Handler: handler}
	web.RegisterOnShutdown(adapter.EndListens)

	go func() {
		if err := web.ListenAndServe(); !errors.Is(err, http.ErrServerClosed) {
			log.Fatal(err)
		}
	}()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	<-ctx.Done()
	late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(late); err != nil {
		log.Print(err)
	}
	if err := tasks.Shutdown(late); err != nil {
		log.Print(err)
	}
}
