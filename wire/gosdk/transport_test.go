package gosdk_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// picky serves some revisions only.
type picky struct{ mcp.Transport }

func (picky) SupportsProtocolVersion(version string) bool { return version != "2025-06-18" }

// What a transport says of itself, the wrapped one says too.
func TestTransportIsTransparent(t *testing.T) {
	h := newHost(t, nil)
	_, theirs := mcp.NewInMemoryTransports()
	supports := func(t mcp.Transport, version string) bool {
		return h.adapter.Transport(t).(mcp.ProtocolVersionSupporter).SupportsProtocolVersion(version)
	}
	if supports(picky{theirs}, "2025-06-18") || !supports(picky{theirs}, wire.ProtocolVersion) || !supports(theirs, "2025-06-18") {
		t.Error("SupportsProtocolVersion is not that of the transport")
	}
	if _, err := h.adapter.Transport(unconnectable{}).Connect(t.Context()); !errors.Is(err, errUnconnectable) {
		t.Errorf("Connect: %v", err)
	}
}

var errUnconnectable = errors.New("cannot be connected")

type unconnectable struct{}

func (unconnectable) Connect(context.Context) (mcp.Connection, error) { return nil, errUnconnectable }

// Without the wrapping, a listen to tasks is acknowledged with none.
func TestListenOverBareTransport(t *testing.T) {
	h := newHost(t, nil)
	bare := &host{tasks: h.tasks, server: h.server}
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := bare.server.Connect(t.Context(), theirs, nil)
	must(t, err)
	conn, err := ours.Connect(t.Context())
	must(t, err)
	defer session.Wait()
	defer conn.Close()
	c := over(t, conn)
	c.send(t, listenTo(`1`, h.task(t, "").ID()))
	wantAcknowledged(t, c.next(t), `1`, ``)
	wantOver(t, c.next(t), `1`)
}

// identified is a transport that knows who is at its other end.
type identified struct{ mcp.Transport }

func (i identified) Connect(ctx context.Context) (mcp.Connection, error) {
	conn, err := i.Transport.Connect(ctx)
	return identifiedConn{conn}, err
}

type identifiedConn struct{ mcp.Connection }

func (c identifiedConn) Read(ctx context.Context) (jsonrpc.Message, error) {
	m, err := c.Connection.Read(ctx)
	if r, ok := m.(*jsonrpc.Request); ok {
		r.Extra = &mcp.RequestExtra{TokenInfo: &auth.TokenInfo{UserID: "alice"}}
	}
	return m, err
}

// What a transport says of a request is kept.
func TestTransportKeepsTheRequestsExtra(t *testing.T) {
	h := newHost(t, nil)
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := h.server.Connect(t.Context(), h.adapter.Transport(identified{theirs}), nil)
	must(t, err)
	conn, err := ours.Connect(t.Context())
	must(t, err)
	defer session.Wait()
	defer conn.Close()
	c := over(t, conn)
	mine, foreign := h.task(t, "alice"), h.task(t, "")
	c.send(t, listenTo(`1`, foreign.ID(), mine.ID()))
	wantAcknowledged(t, c.next(t), `1`, taskIDs(mine.ID()))
}

// stuck is a stdout that nobody reads, and that cannot be closed.
type stuck struct {
	entered chan struct{}
	release chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	select {
	case s.entered <- struct{}{}:
	default:
	}
	<-s.release
	return len(b), nil
}

func (*stuck) Close() error { return nil }

// A server that is told to end ends even if a client does not read.
func TestServerEndsDespiteAStuckListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil)
		stdin, toServer := io.Pipe()
		stdout := &stuck{entered: make(chan struct{}, 1), release: make(chan struct{})}
		ctx, stop := context.WithCancel(t.Context())
		ran := make(chan error, 1)
		go func() {
			ran <- h.server.Run(ctx, h.adapter.Transport(&mcp.IOTransport{Reader: stdin, Writer: stdout}))
		}()
		_, err := io.WriteString(toServer, listenTo(`1`, h.task(t, "").ID())+"\n")
		must(t, err)
		<-stdout.entered
		told := time.Now()
		stop()
		if err := <-ran; !errors.Is(err, context.Canceled) {
			t.Errorf("ran: %v", err)
		}
		if took := time.Since(told); took > 500*time.Millisecond {
			t.Errorf("the server took %v to end", took)
		}
		close(stdout.release)
	})
}
