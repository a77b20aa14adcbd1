package gosdk

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"syscall"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
)

const (
	// stdioShutdown is how long workers have to stop at the end of RunStdio.
	// The official JavaScript client kills the process one second after it has
	// closed stdin.
	stdioShutdown = 300 * time.Millisecond

	// httpShutdown is how long requests, and then workers, have to stop at the
	// end of RunHTTP.
	httpShutdown = 5 * time.Second
)

// RunStdio serves one client over stdin and stdout. It returns when the client
// closes stdin, when the process receives SIGINT, SIGTERM or SIGHUP, or when
// ctx is done; all of these are an orderly end, for which it returns nil. It
// returns an error if the connection fails, such as for a line that is no
// JSON-RPC message.
//
// Before it returns, it shuts the engine down, which closes the store. Workers
// that do not stop within 300 ms are left behind: the next process resumes their
// tasks. A second signal ends the process at once.
func (a *Adapter) RunStdio(ctx context.Context) error {
	ctx, stop := untilSignal(ctx)
	defer stop()
	ran := make(chan error, 1)
	go func() { ran <- a.server.Run(ctx, a.Transport(&mcp.StdioTransport{})) }()
	var failure error
	running := false
	select {
	case failure = <-ran:
	case <-ctx.Done(): // calls that still run must not keep the engine open
		running = true
	}
	if failure != nil && ctx.Err() == nil {
		failure = fmt.Errorf("gosdk: the connection on stdin and stdout failed: %w", failure)
	} else {
		failure = nil // the end of ctx
	}
	late, cancel := context.WithTimeout(context.Background(), stdioShutdown)
	defer cancel()
	err := errors.Join(failure, a.shutdown(late))
	if running {
		select {
		case <-ran:
		case <-late.Done():
		}
	}
	return err
}

// RunHTTP serves clients over Streamable HTTP on web.Addr. It returns when the
// process receives SIGINT, SIGTERM or SIGHUP, or when ctx is done; these are an
// orderly end, for which it returns nil. A nil web.Handler means
// [Adapter.HTTPHandler] for all paths; any other should contain it.
//
// Before it returns, it shuts web down, for which it ends listens by
// [Adapter.EndListens], and then the engine, which closes the store. Each has
// five seconds. Then requests are cut off, and the next process resumes the
// tasks of workers that do not stop. A second signal ends the process at once.
//
// For TLS or a listener of your own, serve the handler by the net/http package
// and shut down in the same order.
func (a *Adapter) RunHTTP(ctx context.Context, web *http.Server) error {
	if web == nil {
		return fmt.Errorf("gosdk: %w: no http.Server", durabletasks.ErrInvalid)
	}
	ctx, stop := untilSignal(ctx)
	defer stop()
	if web.Handler == nil {
		web.Handler = a.HTTPHandler(nil)
	} else {
		go a.recoverOnce()
	}
	web.RegisterOnShutdown(a.EndListens)
	served := make(chan error, 1)
	go func() { served <- web.ListenAndServe() }()
	var err error
	select {
	case err = <-served:
		if errors.Is(err, http.ErrServerClosed) { // the host shuts it down
			err = nil
		}
	case <-ctx.Done():
	}
	late, cancel := context.WithTimeout(context.Background(), httpShutdown)
	defer cancel()
	if web.Shutdown(late) != nil {
		err = errors.Join(err, web.Close())
	}
	later, cancel := context.WithTimeout(context.Background(), httpShutdown)
	defer cancel()
	return errors.Join(err, a.shutdown(later))
}

// HTTPHandler returns a handler that serves the server over Streamable HTTP:
// the SDK's handler with these options, wrapped by [Adapter.Handler]. It sets
// Stateless, which the protocol revision that has tasks requires, and
// PropagateRequestCancellation, with which a client that goes away cancels a
// call that runs inline. Nil opts mean the SDK's defaults for the rest.
//
// Add the tools before: HTTPHandler begins to resume unfinished tasks, and
// requests wait for that.
func (a *Adapter) HTTPHandler(opts *mcp.StreamableHTTPOptions) http.Handler {
	var o mcp.StreamableHTTPOptions
	if opts != nil {
		o = *opts
	}
	o.Stateless, o.PropagateRequestCancellation = true, true
	go a.recoverOnce()
	return a.Handler(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return a.server }, &o))
}

// untilSignal returns a context that ends with a signal to end the process. A
// second signal has its default effect.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP}
	// One that the process was started to ignore, as by nohup, stays ignored.
	ctx, stop := signal.NotifyContext(ctx, slices.DeleteFunc(signals, signal.Ignored)...)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// shutdown ends the engine and closes its store.
func (a *Adapter) shutdown(ctx context.Context) error {
	err := a.tasks.Shutdown(ctx)
	var late *durabletasks.ShutdownError
	if errors.As(err, &late) {
		a.log.Error("gosdk: workers did not stop in time; the next process resumes their tasks", "count", len(late.TaskIDs))
		return a.tasks.Close() // it has happened: how it went
	}
	return err
}
