package gosdk

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// The SDK decodes a subscriptions/listen without its taskIds, and has no way
// to send notifications/tasks. So both are done at the edge: a [connection]
// or an [eventStream] looks at a listen on its way in, and is the line on
// which its notifications go out. In between the SDK treats it as any listen,
// and it lives and ends as the SDK has it: with the client's cancellation,
// the connection or the session.

// listen is a subscriptions/listen that names tasks.
type listen struct {
	id      jsonrpc.ID
	tasks   []string
	refusal error // why it cannot be served, if so
	line    line
}

// line is where the notifications of a listen go. Its sends may be mixed with
// the SDK's.
type line interface {
	send(ctx context.Context, method string, params notification) error
	// hurry is called when the listen ends. It makes a send that is stuck
	// fail soon, if that can be, and returns how long to wait for it.
	hurry() time.Duration
}

// notification is the params of one, as package wire encodes them.
type notification interface {
	io.WriterTo
	AppendJSON(dst []byte) []byte
}

// newListen returns what a request asks of tasks, or nil if it is no listen
// that names any.
func newListen(request *jsonrpc.Request, to line) *listen {
	if request.Method != wire.MethodListen || !request.IsCall() {
		return nil
	}
	tasks, asked, refusal := wire.DecodeListen(request.Params)
	if !asked {
		return nil
	}
	return &listen{id: request.ID, tasks: tasks, refusal: refusal, line: to}
}

type listenKey struct{}

// arrived returns the listen that a request is, if it names tasks.
func (a *Adapter) arrived(ctx context.Context, req mcp.Request) *listen {
	if l, ok := ctx.Value(listenKey{}).(*listen); ok { // over HTTP
		return l
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.announced[req.GetExtra()]
}

// subscription is a listen that is being served.
type subscription struct {
	*listen
	accepted     []string      // the tasks that the client listens to
	acknowledged chan struct{} // closed when the client knows them
	once         sync.Once     // closes it
}

type subscriptionKey struct{}

// serveListen serves one subscriptions/listen. The SDK serves the
// rest of its filter. A listen for nothing but tasks does not reach the SDK,
// because its end there would end what an earlier listen of the session asked.
func (a *Adapter) serveListen(ctx context.Context, method string, req mcp.Request, next mcp.MethodHandler) (mcp.Result, error) {
	if a.listening.Err() != nil {
		return nil, shuttingDown()
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(a.listening, end)()

	l := a.arrived(ctx, req)
	switch {
	case l == nil:
		return next(ctx, method, req)
	case l.refusal != nil:
		return nil, protocolError(l.refusal)
	}
	if expires := tokenExpiry(req); !expires.IsZero() {
		var stop context.CancelFunc
		ctx, stop = context.WithDeadline(ctx, expires)
		defer stop()
	}
	ctx, err := a.admit(ctx, req)
	if err != nil {
		return nil, err
	}
	s := &subscription{listen: l, acknowledged: make(chan struct{})}
	if s.accepted, err = a.visible(ctx, l.tasks); err != nil {
		return nil, err
	}

	mixed := asksForMore(req)
	told := make(chan error, 1)
	go func() {
		err := a.tell(ctx, s, mixed)
		if err != nil {
			end()
		}
		told <- err
	}()
	result := mcp.Result(&mcp.SubscriptionsListenResult{Meta: mcp.Meta{mcp.MetaKeySubscriptionID: l.id.Raw()}})
	if mixed {
		result, err = next(context.WithValue(ctx, subscriptionKey{}, s), method, req)
		if err != nil || !s.isAcknowledged() {
			end()
		}
	}
	var failure error
	select {
	case failure = <-told:
	case <-ctx.Done():
		select {
		case failure = <-told:
		case <-time.After(l.line.hurry()): // the client does not read
		}
	}
	switch {
	case err != nil:
		return nil, err
	case failure != nil:
		return nil, failure
	}
	return result, nil
}

// asksForMore reports whether a listen asks for notifications that the SDK
// knows.
func asksForMore(req mcp.Request) bool {
	params, ok := req.GetParams().(*mcp.SubscriptionsListenParams)
	if !ok || params == nil || params.Notifications == nil {
		return false
	}
	n := params.Notifications
	return n.ToolsListChanged || n.PromptsListChanged || n.ResourcesListChanged || len(n.ResourceSubscriptions) > 0
}

// tokenExpiry returns until when a request's bearer token is good; the zero
// time if there is no such end.
func tokenExpiry(req mcp.Request) time.Time {
	if extra := req.GetExtra(); extra != nil && extra.TokenInfo != nil {
		return extra.TokenInfo.Expiration
	}
	return time.Time{}
}

// visible returns those of the tasks that the caller may see. Nothing tells a
// task that is somebody else's from one that does not exist.
func (a *Adapter) visible(ctx context.Context, ids []string) (seen []string, err error) {
	defer a.rescue(&err)
	for _, id := range ids {
		switch _, err := a.tasks.GetTask(ctx, id); {
		case err == nil:
			seen = append(seen, id)
		case errors.Is(err, durabletasks.ErrNotFound):
		case ctx.Err() != nil:
			return nil, internalError("Internal error") // the client has gone
		default:
			return nil, a.failed("listen", err)
		}
	}
	return seen, nil
}

// tell acknowledges a listen, unless the SDK does, and sends the views of its
// tasks until all of them have ended or ctx is done. An error is a fault of
// the server.
func (a *Adapter) tell(ctx context.Context, s *subscription, mixed bool) (err error) {
	defer a.rescue(&err)
	if mixed {
		select {
		case <-s.acknowledged:
		case <-ctx.Done():
			return nil
		}
	} else if err := s.acknowledge(ctx, wire.JSON{}); err != nil {
		a.logUnsent(ctx, err)
		return nil
	}
	id, err := wire.Marshal(s.id.Raw())
	if err != nil {
		return a.failed("listen", err)
	}
	for task, err := range a.tasks.Watch(ctx, s.accepted...) {
		switch {
		case ctx.Err() != nil, errors.Is(err, durabletasks.ErrClosed):
			return nil
		case err != nil:
			return a.failed("listen", err)
		}
		if err := s.line.send(ctx, wire.MethodTaskNotification, wire.TaskNotification{SubscriptionID: id, Task: task}); err != nil {
			a.logUnsent(ctx, err)
			return nil
		}
	}
	return nil
}

// logUnsent logs that a notification could not be sent.
func (a *Adapter) logUnsent(ctx context.Context, err error) {
	if ctx.Err() == nil {
		a.log.Info("gosdk: notifications of tasks cannot be sent any more", "error", err)
	}
}

// acknowledge tells the client what it listens to: its tasks, and what the SDK
// has agreed to.
func (s *subscription) acknowledge(ctx context.Context, others wire.JSON) error {
	id, err := wire.Marshal(s.id.Raw())
	if err != nil {
		return err
	}
	err = s.line.send(ctx, wire.MethodListenAcknowledged, wire.ListenAcknowledgement{
		SubscriptionID: id,
		Others:         others,
		TaskIDs:        s.accepted,
	})
	if err == nil {
		s.once.Do(func() { close(s.acknowledged) })
	}
	return err
}

func (s *subscription) isAcknowledged() bool {
	select {
	case <-s.acknowledged:
		return true
	default:
		return false
	}
}

// mergeAcknowledgement is the adapter's sending middleware: where the SDK
// acknowledges its part of a listen that also names tasks, one message does
// for both.
func (a *Adapter) mergeAcknowledgement(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		s, ok := ctx.Value(subscriptionKey{}).(*subscription)
		if method != wire.MethodListenAcknowledged || !ok || s.isAcknowledged() {
			return next(ctx, method, req)
		}
		params, ok := req.GetParams().(*mcp.SubscriptionsAcknowledgedParams)
		if !ok || params == nil {
			return next(ctx, method, req)
		}
		others, err := wire.Marshal(params.Notifications)
		if err != nil {
			return nil, err
		}
		return nil, s.acknowledge(ctx, others)
	}
}

// EndListens ends every subscriptions/listen of the server cleanly:
// each gets its result, and its stream closes. Later ones are refused. An
// http.Server that shuts down waits for streams and does not end them; have it
// call EndListens, as [Adapter.RunHTTP] does:
//
//	web.RegisterOnShutdown(adapter.EndListens)
//
// On other transports the end of the session ends them.
func (a *Adapter) EndListens() { a.endListens() }
