package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// recorder takes an answer without a network, so that time can be made up.
type recorder struct {
	mu       sync.Mutex
	header   http.Header
	status   int
	body     bytes.Buffer
	flushed  int // bytes of the body
	deadline time.Time
}

func (r *recorder) Header() http.Header {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(b []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.deadline.IsZero() && time.Now().After(r.deadline) {
		return 0, errors.New("past the deadline")
	}
	return r.body.Write(b)
}

func (r *recorder) Flush() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.flushed = r.body.Len()
}

func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.deadline = t
	return nil
}

// text returns what has been flushed.
func (r *recorder) text() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.body.String()[:r.flushed]
}

func (r *recorder) events(t *testing.T) []wire.JSON {
	t.Helper()
	var events []wire.JSON
	for event := range strings.SplitSeq(strings.TrimSuffix(r.text(), "\n\n"), "\n\n") {
		if !strings.HasPrefix(event, ":") {
			_, data, _ := strings.Cut(event, "data: ")
			events = append(events, parse(t, []byte(data)))
		}
	}
	if len(events) == 0 {
		t.Fatal("no event")
	}
	return events
}

// listenInto serves a listen into a recorder, and says when that has ended.
func (h *host) listenInto(t *testing.T, ctx context.Context, w *recorder, text string, middleware func(http.Handler) http.Handler) <-chan struct{} {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1/", strings.NewReader(text))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Authorization", "Bearer token")
	addHeaders(t, r.Header, text)
	handler := h.adapter.Handler(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return h.server },
		&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	if middleware != nil {
		handler = middleware(handler)
	}
	served := make(chan struct{})
	go func() {
		defer close(served)
		handler.ServeHTTP(w, r)
	}()
	return served
}

// A stream that has nothing to tell says so, as long as it lasts and no
// longer; and it always has time for what comes next, no matter what time a server
// gives to its responses.
func TestStreamIsKeptAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil)
		task := h.task(t, "")
		ctx, hangUp := context.WithCancel(t.Context())
		w := &recorder{deadline: time.Now().Add(10 * time.Second)} // as by http.Server.WriteTimeout
		served := h.listenInto(t, ctx, w, listenTo(`1`, task.ID()), nil)
		synctest.Wait()
		began := w.text()
		if strings.Contains(began, ": still here") || strings.Count(began, "\n\n") != 2 {
			t.Errorf("a stream begins with %q", began)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		comments := strings.Count(w.text(), ": still here\n\n")
		if comments < 20 || comments > 60 {
			t.Errorf("%d comments in ten minutes", comments)
		}
		for i := range 60 { // no silence, no comment
			time.Sleep(10 * time.Second)
			must(t, task.Progress(t.Context(), fmt.Sprint(i), nil))
		}
		synctest.Wait()
		if n := strings.Count(w.text(), ": still here\n\n"); n > comments+1 {
			t.Errorf("%d comments between notifications", n-comments)
		}
		if n := len(w.events(t)); n != 62 {
			t.Errorf("%d events, want 62", n)
		}
		hangUp()
		<-served
		ended := w.text()
		time.Sleep(time.Hour)
		if w.text() != ended {
			t.Error("a stream goes on after its request")
		}
	})
}

// A refusal is no stream.
func TestRefusedStream(t *testing.T) {
	h := newHost(t, nil)
	url := h.listen(t, nil)
	for _, tt := range []struct {
		what, text string
		change     func(http.Header)
		code       int
	}{
		{"capability", listenWith(`"r-1"`, taskIDs(noSuchTask), withoutTasks), nil, wire.CodeMissingCapability},
		{"capability before form", listenWith(`"r-1"`, `"taskIds":7`, withoutTasks), nil, wire.CodeMissingCapability},
		{"form", listenWith(`"r-1"`, `"taskIds":7`, withTasks), nil, wire.CodeInvalidParams},
		{"revision", strings.ReplaceAll(listenTo(`"r-1"`, noSuchTask), "2026-07-28", "2099-01-01"), nil, wire.CodeUnsupportedProtocolVersion},
		{"method header", listenTo(`"r-1"`, noSuchTask), func(h http.Header) { h.Set("Mcp-Method", wire.MethodGet) }, wire.CodeHeaderMismatch},
		{"no method header", listenTo(`"r-1"`, noSuchTask), func(h http.Header) { h.Del("Mcp-Method") }, wire.CodeHeaderMismatch},
		{"header before capability", listenWith(`"r-1"`, taskIDs(noSuchTask), withoutTasks), func(h http.Header) { h.Set("Mcp-Protocol-Version", "2025-11-25") }, wire.CodeHeaderMismatch},
	} {
		r := post(t, url, tt.text, tt.change)
		wantError(t, r.body, tt.code)
		if r.status != http.StatusBadRequest || r.body.Get("id").String() != `"r-1"` {
			t.Errorf("%s: HTTP %d %s", tt.what, r.status, r.body)
		}
	}
}

// Shutdown of an http.Server waits for streams, so it has them end; each with
// its result, and also one that nobody reads.
func TestEndListens(t *testing.T) {
	h := newHost(t, nil)
	h.tool("first")
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	web := &http.Server{Handler: h.adapter.Handler(mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return h.server },
		&mcp.StreamableHTTPOptions{Stateless: true}))}
	web.RegisterOnShutdown(h.adapter.EndListens)
	go web.Serve(listener)

	url := "http://" + listener.Addr().String()
	c := channelOverHTTP(t, url, nil)
	task := h.task(t, "")
	filters := []string{taskIDs(task.ID()), `"toolsListChanged":true,` + taskIDs(task.ID()), `"toolsListChanged":true`}
	for i, filter := range filters {
		c.send(t, listenWith(fmt.Sprint(i), filter, withTasks))
		wantAcknowledged(t, c.next(t), fmt.Sprint(i), filter)
		if strings.Contains(filter, "taskIds") {
			h.wantTold(t, c.next(t), fmt.Sprint(i), "", task.ID())
		}
	}
	unread := leaveUnread(t, h, listener.Addr().String())
	defer unread.Close()

	ctx, cancel := context.WithTimeout(t.Context(), 9*time.Second)
	defer cancel()
	if err := web.Shutdown(ctx); err != nil {
		t.Fatalf("shutdown: %v", err)
	}
	over := make(map[string]bool)
	for range filters {
		m := c.next(t)
		wantOver(t, m, m.Get("id").String())
		over[m.Get("id").String()] = true
	}
	if len(over) != len(filters) {
		t.Errorf("over: %v", over)
	}
	mem := h.channelInMemory(t)
	mem.send(t, listenTo(`1`, task.ID()))
	wantError(t, mem.next(t), wire.CodeInternalError)
}

// leaveUnread opens a listen to a task whose result is more than a connection
// takes, and stops reading in the middle of it.
func leaveUnread(t *testing.T, h *host, address string) net.Conn {
	t.Helper()
	task := h.task(t, "")
	must(t, task.Complete(t.Context(), parse(t, []byte(`{"text":"`+strings.Repeat("x", 32<<20)+`"}`))))
	conn, err := net.Dial("tcp", address)
	must(t, err)
	text := listenTo(`"unread"`, task.ID())
	r, err := http.NewRequest(http.MethodPost, "http://"+address, strings.NewReader(text))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	addHeaders(t, r.Header, text)
	must(t, r.Write(conn))
	for lines := bufio.NewReader(conn); ; {
		some := make([]byte, 1<<10)
		n, err := lines.Read(some)
		must(t, err)
		if bytes.Contains(some[:n], []byte("xxxx")) {
			return conn
		}
	}
}
