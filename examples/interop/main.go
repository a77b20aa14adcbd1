// Interop is an MCP server with a tool for everything that a task can do. The
// official client and the official conformance suite are run against it.
//
//	go run ./interop -stdio -dir DIRECTORY
//	go run ./interop -http 127.0.0.1:8080
//
// With -dir its tasks survive the process; without, they live in memory.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

func main() {
	stdio := flag.Bool("stdio", false, "serve one client on stdin and stdout")
	address := flag.String("http", "", "serve Streamable HTTP at this `address`, under /mcp")
	dir := flag.String("dir", "", "keep tasks in this `directory`")
	flag.Parse()
	if *stdio == (*address != "") || flag.NArg() > 0 {
		fmt.Fprintln(os.Stderr, "interop: one of -stdio and -http ADDRESS is needed")
		flag.Usage()
		os.Exit(2)
	}
	if err := run(context.Background(), *address, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

// run serves until the process is told to end, or stdin ends: on HTTP if there
// is an address, otherwise on stdio.
func run(ctx context.Context, address, dir string) error {
	log := slog.New(slog.NewTextHandler(os.Stderr, nil)) // stdout is the protocol's
	store, err := openStore(dir, log)
	if err != nil {
		return err
	}
	tasks, err := durabletasks.New(store, &durabletasks.Options{
		PollInterval: 100 * time.Millisecond,
		Logger:       log,
	})
	if err != nil {
		return errors.Join(err, store.Close())
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "durabletasks-interop", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{
		Resume:          gosdk.FailInterrupted,
		RequireTaskName: true,
		Logger:          log,
	})
	if err != nil {
		return errors.Join(err, tasks.Close())
	}
	addDriverTools(server, adapter)
	addConformanceTools(server, adapter)
	if address == "" {
		return adapter.RunStdio(ctx)
	}
	return adapter.RunHTTP(ctx, webServer(address, adapter))
}

func openStore(dir string, log *slog.Logger) (durabletasks.TaskStore, error) {
	if dir == "" {
		return &durabletasks.MemStore{}, nil
	}
	return wal.Open(dir, &wal.Options{Logger: log})
}

// webServer returns a server that says where it listens.
func webServer(address string, adapter *gosdk.Adapter) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("/mcp", adapter.HTTPHandler(nil))
	return &http.Server{
		Addr:              address,
		Handler:           mux,
		ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(l net.Listener) context.Context {
			fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", l.Addr())
			return context.Background()
		},
	}
}
