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
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// runServer serves MCP on stdin and stdout until stdin ends.
func runServer(dir string) error {
	store, err := wal.Open(dir, nil)
	if err != nil {
		return err
	}
	tasks, err := durabletasks.New(store, &durabletasks.Options{PollInterval: 50 * time.Millisecond})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "crash-recovery", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, nil)
	if err != nil {
		return errors.Join(err, tasks.Close())
	}
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "crawl", Description: "Reads pages."}, crawl, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "add", Description: "Adds two numbers."}, add, nil)
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "publish", Description: "Publishes, if the user is sure."}, publish, nil)
	return adapter.RunStdio(context.Background())
}

type crawlInput struct {
	Pages int `json:"pages"`
}

type crawlOutput struct {
	Pages []pageRead `json:"pages"`
}

// pageRead says which process has read a page.
type pageRead struct {
	Number  int `json:"number"`
	Process int `json:"process"`
}

// crawl reads page after page, and saves what it has after each. When it runs
// again in another process, it goes on after the last page that was saved.
func crawl(ctx context.Context, h *durabletasks.Handle, in crawlInput) (*mcp.CallToolResult, crawlOutput, error) {
	out, err := durabletasks.Checkpoint[crawlOutput](ctx, h)
	if err != nil {
		return nil, crawlOutput{}, err
	}
	for len(out.Pages) < in.Pages {
		select {
		case <-time.After(200 * time.Millisecond): // the work
		case <-ctx.Done():
			return nil, crawlOutput{}, context.Cause(ctx)
		}
		out.Pages = append(out.Pages, pageRead{Number: len(out.Pages) + 1, Process: os.Getpid()})
		message := fmt.Sprintf("read %d of %d pages", len(out.Pages), in.Pages)
		if err := h.Progress(ctx, message, &durabletasks.ProgressOptions{Checkpoint: out}); err != nil {
			return nil, crawlOutput{}, err
		}
	}
	return nil, out, nil
}

type addInput struct {
	A int64 `json:"a"`
	B int64 `json:"b"`
}

type addOutput struct {
	Sum int64 `json:"sum"`
}

func add(_ context.Context, _ *durabletasks.Handle, in addInput) (*mcp.CallToolResult, addOutput, error) {
	return nil, addOutput{Sum: in.A + in.B}, nil
}

type publishInput struct {
	Title string `json:"title"`
}

type publishOutput struct {
	Title     string `json:"title"`
	Published bool   `json:"published"`
}

// publish asks, and waits for the answer. When it runs again after a crash, it
// asks the same question, and the user is not asked twice.
func publish(ctx context.Context, h *durabletasks.Handle, in publishInput) (*mcp.CallToolResult, publishOutput, error) {
	sure, err := h.Confirm(ctx, "publish", "Publish “"+in.Title+"”?")
	return nil, publishOutput{Title: in.Title, Published: sure}, err
}
