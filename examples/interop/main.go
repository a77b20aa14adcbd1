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
	"os/signal"
	"syscall"
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *address, *dir); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

// run serves until ctx or stdin ends: on HTTP if there is an address,
// otherwise on stdio.
func run(ctx context.Context, address, dir string) (err error) {
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
	defer func() {
		// The official client kills a stdio server a second after it has
		// closed its stdin. Workers that need longer are resumed next time.
		late, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
		defer cancel()
		err = errors.Join(err, tasks.Shutdown(late))
	}()

	server := mcp.NewServer(&mcp.Implementation{Name: "durabletasks-interop", Version: "1.0.0"}, nil)
	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{
		Recover:         true,
		Resume:          gosdk.FailInterrupted,
		RequireTaskName: true,
		Logger:          log,
	})
	if err != nil {
		return err
	}
	addDriverTools(server, adapter)
	addConformanceTools(server, adapter)

	if address == "" {
		err = server.Run(ctx, adapter.Transport(&mcp.StdioTransport{}))
		if ctx.Err() != nil {
			return nil // told to end, not failed
		}
		return err
	}
	return serveHTTP(ctx, address, server, adapter)
}

func openStore(dir string, log *slog.Logger) (durabletasks.TaskStore, error) {
	if dir == "" {
		return &durabletasks.MemStore{}, nil
	}
	return wal.Open(dir, &wal.Options{Logger: log})
}

func serveHTTP(ctx context.Context, address string, server *mcp.Server, adapter *gosdk.Adapter) error {
	streamable := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: true})
	mux := http.NewServeMux()
	mux.Handle("/mcp", adapter.Handler(streamable))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(os.Stderr, "listening on http://%s/mcp\n", listener.Addr())

	web := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	web.RegisterOnShutdown(adapter.EndListens)
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(listener) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	// Requests end before the engine does: a client that meets a closed
	// engine gives its task up.
	late, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if err := web.Shutdown(late); err != nil {
		return errors.Join(err, web.Close())
	}
	return nil
}
