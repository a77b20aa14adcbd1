// Quickstart is the server of the README: one tool whose calls become tasks
// that survive the process.
package main

import (
	"context"
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
	Indexed int `json:"indexed" jsonschema:"how many files are in the index"`
}

// index does the work of one task. After a crash the next process calls it
// again with the same input, and it goes on from its checkpoint.
func index(ctx context.Context, h *durabletasks.Handle, in indexInput) (*mcp.CallToolResult, indexOutput, error) {
	out, err := durabletasks.Checkpoint[indexOutput](ctx, h) // zero in the first run
	if err != nil {
		return nil, out, err
	}
	if out.Indexed == 0 { // a checkpoint covers the questions before it
		yes, err := h.Confirm(ctx, "start", fmt.Sprintf("Index %d files?", in.Files))
		if err != nil || !yes {
			return nil, out, err
		}
	}
	for out.Indexed < in.Files && ctx.Err() == nil {
		time.Sleep(100 * time.Millisecond) // index one file
		out.Indexed++
		if err := h.SaveCheckpoint(ctx, out); err != nil {
			return nil, out, err
		}
	}
	return nil, out, context.Cause(ctx) // nil, unless cancelled or shutting down
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
