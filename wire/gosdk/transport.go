package gosdk

import (
	"context"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Transport wraps a transport with one connection, such as [mcp.StdioTransport],
// [mcp.IOTransport] or [mcp.InMemoryTransport], for [mcp.Server.Run] or
// [mcp.Server.Connect]. Over it, a client's subscriptions/listen may name
// tasks, and the client is notified of their changes; without it, the server
// acknowledges none. Streamable HTTP has [Adapter.Handler] for that.
//
// A transport that logs messages sees notifications of tasks if it is wrapped
// by this one, not the other way round. As with every wrapped transport, the
// SDK cannot tell the connection which revision was negotiated; so JSON-RPC
// batches, which the revisions since 2025-06-18 do not have, are taken.
func (a *Adapter) Transport(t mcp.Transport) mcp.Transport { return &transport{inner: t, adapter: a} }

type transport struct {
	inner   mcp.Transport
	adapter *Adapter
}

var _ mcp.ProtocolVersionSupporter = (*transport)(nil)

// Connect implements [mcp.Transport].
func (t *transport) Connect(ctx context.Context) (mcp.Connection, error) {
	t.adapter.wiring.transport.Store(true)
	inner, err := t.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &connection{
		Connection: inner,
		adapter:    t.adapter,
		unanswered: make(map[jsonrpc.ID]*mcp.RequestExtra),
	}, nil
}

// SupportsProtocolVersion implements [mcp.ProtocolVersionSupporter]. A
// transport without that method supports all versions.
func (t *transport) SupportsProtocolVersion(version string) bool {
	inner, ok := t.inner.(mcp.ProtocolVersionSupporter)
	return !ok || inner.SupportsProtocolVersion(version)
}

// connection announces each listen that names tasks to the adapter, before
// the SDK sees it.
type connection struct {
	mcp.Connection
	adapter *Adapter

	mu         sync.Mutex
	unanswered map[jsonrpc.ID]*mcp.RequestExtra // of the listens that were announced
}

// Read implements [mcp.Connection].
func (c *connection) Read(ctx context.Context) (jsonrpc.Message, error) {
	message, err := c.Connection.Read(ctx)
	if request, ok := message.(*jsonrpc.Request); ok && err == nil {
		if l := newListen(request, c); l != nil {
			c.announce(request, l)
		}
	}
	return message, err
}

// announce lets the adapter know the request again. The SDK hands on nothing
// else that is the request's own than the pointer to its Extra.
func (c *connection) announce(request *jsonrpc.Request, l *listen) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.unanswered[request.ID] != nil {
		return // the SDK refuses an id that is in use
	}
	extra := new(mcp.RequestExtra)
	if given, ok := request.Extra.(*mcp.RequestExtra); ok && given != nil {
		*extra = *given
	}
	request.Extra = extra
	c.unanswered[request.ID] = extra
	c.adapter.mu.Lock()
	defer c.adapter.mu.Unlock()
	c.adapter.announced[extra] = l
}

// Write implements [mcp.Connection].
func (c *connection) Write(ctx context.Context, message jsonrpc.Message) error {
	if response, ok := message.(*jsonrpc.Response); ok {
		c.forget(response.ID)
	}
	return c.Connection.Write(ctx, message)
}

// Close implements [mcp.Connection].
func (c *connection) Close() error {
	c.mu.Lock()
	ids := make([]jsonrpc.ID, 0, len(c.unanswered))
	for id := range c.unanswered {
		ids = append(ids, id)
	}
	c.mu.Unlock()
	for _, id := range ids {
		c.forget(id)
	}
	return c.Connection.Close()
}

// forget takes note that a request will not be served any more.
func (c *connection) forget(id jsonrpc.ID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	extra := c.unanswered[id]
	if extra == nil {
		return
	}
	delete(c.unanswered, id)
	c.adapter.mu.Lock()
	defer c.adapter.mu.Unlock()
	delete(c.adapter.announced, extra)
}

// send implements [line]. Connections take concurrent writes.
func (c *connection) send(ctx context.Context, method string, params notification) error {
	return c.Connection.Write(ctx, &jsonrpc.Request{Method: method, Params: params.AppendJSON(nil)})
}

// hurry implements [line]. A write to a pipe is stuck until its other end is
// read or closed; the end of a process that somebody waits for must not be.
func (c *connection) hurry() time.Duration { return 200 * time.Millisecond }

var _ line = (*connection)(nil)
