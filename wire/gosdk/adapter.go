package gosdk

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"
	"weak"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/internal/failurelog"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Options are the settings of an [Adapter]. The zero value of a field is its
// default.
type Options struct {
	// Owner returns on whose behalf a request is made; see
	// [durabletasks.WithOwner]. It is called for each tools/call and each
	// request for a task, including a subscriptions/listen that names some,
	// concurrently. If it panics, the request is refused.
	//
	// Nil means the UserID of the request's bearer token, as the SDK's auth
	// package has verified it, and the empty owner for a request without a
	// token. A verifier that leaves UserID empty makes all its callers one
	// owner.
	Owner func(ctx context.Context, req mcp.Request) string

	// RecoverEvery repeats the recovery of unfinished tasks at this interval
	// until the engine closes. It is for a store that processes share, in which
	// one of them may leave tasks at any time. Zero means that unfinished tasks
	// are resumed once.
	RecoverEvery time.Duration

	// Resume returns the worker of an unfinished task that belongs to no task
	// tool of the adapter, such as a task that [Defer] made, or nil to leave
	// the task as it is. [FailInterrupted] is one such function. Nil leaves
	// all of them.
	Resume func(durabletasks.Record) durabletasks.Worker

	// RequireTaskName refuses task requests over HTTP that have no Mcp-Name
	// header. The protocol demands the header, but the SDK's own client does
	// not send it, so by default it may be absent. A header that names
	// another task than the request is always refused.
	RequireTaskName bool

	// Logger receives failures that clients are told only as "Internal
	// error", and mistakes in how the server is set up. If nil, they go to
	// [slog.Default].
	Logger *slog.Logger
}

// Adapter serves the tasks of one engine on one server. It is safe for
// concurrent use. Make one with [Install].
type Adapter struct {
	server *mcp.Server
	tasks  *durabletasks.TaskLifecycle
	opts   Options
	log    *slog.Logger

	listening  context.Context // what every listen ends with
	endListens context.CancelFunc

	mu        sync.Mutex
	tools     map[string]*taskTool
	announced map[*mcp.RequestExtra]*listen // see connection

	recovery  sync.Mutex // held while tasks are resumed
	recovered bool       // guarded by recovery
	repeats   bool       // a timer repeats the recovery; guarded by recovery

	wiring wiring
}

// Install makes a server serve the tasks of an engine: it registers tasks/get,
// tasks/update and tasks/cancel, adds a receiving and a sending middleware,
// and advertises the extension. Nil opts mean the defaults. Call it before the
// server is connected or run, and once for each server.
//
// The engine stays the caller's to close, unless [Adapter.RunStdio] or
// [Adapter.RunHTTP] runs the server. To middleware that is added later, the
// result of a tools/call that became a task is none of the SDK's types.
// Receiving middleware that was added earlier does not see a
// subscriptions/listen for nothing but tasks.
//
// An error wraps [durabletasks.ErrInvalid], or is the SDK's own.
func Install(server *mcp.Server, tasks *durabletasks.TaskLifecycle, opts *Options) (*Adapter, error) {
	switch {
	case server == nil:
		return nil, fmt.Errorf("gosdk: %w: no server", durabletasks.ErrInvalid)
	case tasks == nil:
		return nil, fmt.Errorf("gosdk: %w: no engine", durabletasks.ErrInvalid)
	case opts != nil && opts.RecoverEvery < 0:
		return nil, fmt.Errorf("gosdk: %w: Options.RecoverEvery is negative", durabletasks.ErrInvalid)
	case !claim(server):
		return nil, fmt.Errorf("gosdk: %w: the server has an adapter already", durabletasks.ErrInvalid)
	}
	a := &Adapter{
		server:    server,
		tasks:     tasks,
		tools:     make(map[string]*taskTool),
		announced: make(map[*mcp.RequestExtra]*listen),
	}
	a.listening, a.endListens = context.WithCancel(context.Background())
	if opts != nil {
		a.opts = *opts
	}
	a.log = failurelog.Or(a.opts.Logger)
	for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
		err := mcp.AddReceivingCustomMethod(server, method,
			func(ctx context.Context, _ *mcp.ServerSession, params *taskParams) (*taskResult, error) {
				return a.serve(ctx, method, params.raw())
			})
		if err != nil {
			return nil, fmt.Errorf("gosdk: %w", err)
		}
	}
	server.AddReceivingMiddleware(a.receive)
	server.AddSendingMiddleware(a.mergeAcknowledgement)
	return a, nil
}

// claimed holds the servers that have an adapter, and keeps none of them alive.
// The SDK would let a second adapter replace the methods of the first, and both
// would claim the calls.
var claimed sync.Map // from weak.Pointer[mcp.Server] to nothing

// claim reports whether the server had no adapter yet. It has one now.
func claim(server *mcp.Server) bool {
	p := weak.Make(server)
	if _, taken := claimed.LoadOrStore(p, nil); taken {
		return false
	}
	runtime.AddCleanup(server, func(p weak.Pointer[mcp.Server]) { claimed.Delete(p) }, p)
	return true
}

// receive is the adapter's place in the server's chain of middleware.
func (a *Adapter) receive(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		switch method {
		case "tools/call":
			ctx, err := a.admit(ctx, req)
			if err != nil {
				return nil, err
			}
			return a.callTool(ctx, method, req, next)
		case wire.MethodGet, wire.MethodUpdate, wire.MethodCancel:
			a.checkWiring(req)
			if err := a.checkRouted(req); err != nil {
				return nil, err
			}
			ctx, err := a.admit(ctx, req)
			if err != nil {
				return nil, err
			}
			return next(ctx, method, req)
		case wire.MethodListen:
			return a.serveListen(ctx, method, req, next)
		}
		result, err := next(ctx, method, req)
		if err == nil { // with an error, the SDK's result is a nil pointer
			advertise(result)
		}
		return result, err
	}
}

// advertise adds the extension to the capabilities that a result shows. The
// value must be exactly {}: to the official JavaScript client any key in it means a
// server without tasks.
func advertise(result mcp.Result) {
	var capabilities *mcp.ServerCapabilities
	switch r := result.(type) {
	case *mcp.DiscoverResult:
		capabilities = r.Capabilities
	case *mcp.InitializeResult:
		capabilities = r.Capabilities
	}
	if capabilities != nil {
		capabilities.AddExtension(wire.ExtensionID, nil)
	}
}

// admit prepares a request that calls a tool or concerns a task: its context
// gets the owner, and the first one waits for recovery.
func (a *Adapter) admit(ctx context.Context, req mcp.Request) (_ context.Context, err error) {
	defer a.rescue(&err)
	a.recoverOnce()
	return durabletasks.WithOwner(ctx, a.owner(ctx, req)), nil
}

func (a *Adapter) owner(ctx context.Context, req mcp.Request) string {
	if a.opts.Owner != nil {
		return a.opts.Owner(ctx, req)
	}
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.UserID
	}
	return ""
}
