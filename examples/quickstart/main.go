// Quickstart is the server of the README: one tool whose calls become tasks
// that survive the process.
//
//	go run ./quickstart
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type indexInput struct {
	Files int `json:"files" jsonschema:"how many files to index"`
}

type indexOutput struct {
	Indexed int `json:"indexed" jsonschema:"how many files were indexed"`
}

// index is the worker of one task. After a crash the next process calls it
// again with the same input. It continues from its checkpoint, and the user is
// not asked twice.
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

func main() {
	dir, err := wal.UserDir("indexer") // such as ~/.local/state/indexer/tasks
	if err != nil {
		log.Fatal(err)
	}
	store, err := wal.Open(dir, nil)
	if err != nil {
		log.Fatal(err)
	}
	tasks, err := durabletasks.New(store, nil)
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
