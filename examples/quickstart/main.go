// Quickstart is the server of the README: one tool whose calls become tasks
// that survive the process.
//
//	go run ./quickstart
package main

import (
	"context"
	"fmt"
	"log"
	"os/signal"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type indexInput struct {
	Files int `json:"files" jsonschema:"how many files to index"`
}

// index is the worker of one task. After a crash the next process calls it
// again with the same input, and it goes on from its checkpoint.
func index(ctx context.Context, h *durabletasks.Handle, in indexInput) (*mcp.CallToolResult, error) {
	done := 0
	if saved, err := h.Checkpoint(ctx); err != nil {
		return nil, err
	} else if !saved.IsZero() {
		if err := saved.Decode(&done); err != nil {
			return nil, err
		}
	}
	for done < in.Files {
		select {
		case <-time.After(100 * time.Millisecond): // index one file
		case <-ctx.Done(): // cancelled by the client, or shutting down
			return nil, context.Cause(ctx)
		}
		done++
		message := fmt.Sprintf("%d of %d files", done, in.Files)
		checkpoint := wire.MustParse(fmt.Sprint(done))
		if err := h.Progress(ctx, message, &durabletasks.ProgressOptions{Checkpoint: checkpoint}); err != nil {
			return nil, err
		}
	}
	text := fmt.Sprintf("indexed %d files", done)
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil
}

func main() {
	store, err := wal.Open("tasks", nil) // a directory; what is in it survives the process
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := durabletasks.New(store, nil)
	if err != nil {
		log.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{Recover: true})
	if err != nil {
		log.Fatal(err)
	}
	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "index", Description: "Indexes files."}, index, nil)

	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := server.Run(ctx, adapter.Transport(&mcp.StdioTransport{})); err != nil {
		log.Print(err)
	}
	// A client kills its server soon after it has closed stdin. What does not
	// end in time goes on in the next process.
	grace, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if err := tasks.Shutdown(grace); err != nil {
		log.Print(err)
	}
}
