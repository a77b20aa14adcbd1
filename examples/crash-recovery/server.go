package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// runServer serves MCP on stdin and stdout until stdin ends.
func runServer(dir string) (err error) {
	store, err := wal.Open(dir, nil)
	if err != nil {
		return err
	}
	tasks, err := durabletasks.New(store, &durabletasks.Options{PollInterval: 50 * time.Millisecond})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	defer func() {
		late, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		err = errors.Join(err, tasks.Shutdown(late))
	}()
	server := mcp.NewServer(&mcp.Implementation{Name: "crash-recovery", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{Recover: true})
	if err != nil {
		return err
	}
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "crawl", Description: "Reads pages."}, crawl, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "add", Description: "Adds two numbers."}, add, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "publish", Description: "Publishes, if the user is sure."}, publish, nil)
	return server.Run(context.Background(), adapter.Transport(&mcp.StdioTransport{}))
}

type crawlInput struct {
	Pages int `json:"pages"`
}

// pageRead says which process has read a page.
type pageRead struct {
	Number  int `json:"number"`
	Process int `json:"process"`
}

// crawl reads page after page, and saves what it has after each. A process
// that takes it over goes on after the last page that was saved.
func crawl(ctx context.Context, h *durabletasks.Handle, in crawlInput) (*mcp.CallToolResult, error) {
	var read []pageRead
	saved, err := h.Checkpoint(ctx)
	if err != nil {
		return nil, err
	}
	if !saved.IsZero() {
		if err := saved.Decode(&read); err != nil {
			return nil, err
		}
	}
	for len(read) < in.Pages {
		select {
		case <-time.After(200 * time.Millisecond): // the work
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		read = append(read, pageRead{Number: len(read) + 1, Process: os.Getpid()})
		checkpoint, err := wire.Marshal(read)
		if err != nil {
			return nil, err
		}
		message := fmt.Sprintf("read %d of %d pages", len(read), in.Pages)
		if err := h.Progress(ctx, message, &durabletasks.ProgressOptions{Checkpoint: checkpoint}); err != nil {
			return nil, err
		}
	}
	return &mcp.CallToolResult{StructuredContent: map[string]any{"pages": read}}, nil
}

type addInput struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

func add(_ context.Context, _ *durabletasks.Handle, in addInput) (*mcp.CallToolResult, error) {
	return text(fmt.Sprint(in.A + in.B)), nil
}

type publishInput struct {
	Title string `json:"title"`
}

// publish asks, and waits for the answer. When it runs again after a crash,
// it takes up the question that is already asked.
func publish(ctx context.Context, h *durabletasks.Handle, in publishInput) (*mcp.CallToolResult, error) {
	answers, err := gosdk.Ask(ctx, h, mcp.InputRequestMap{"confirm": &mcp.ElicitParams{
		Message: "Publish “" + in.Title + "”?",
		RequestedSchema: map[string]any{
			"type":       "object",
			"properties": map[string]any{"sure": map[string]any{"type": "boolean"}},
			"required":   []string{"sure"},
		},
	}})
	if err != nil {
		return nil, err
	}
	form, ok := answers["confirm"].(*mcp.ElicitResult)
	if !ok || form.Action != "accept" || form.Content["sure"] != true {
		return text("Not published: " + in.Title), nil
	}
	return text("Published: " + in.Title), nil
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}
