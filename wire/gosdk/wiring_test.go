package gosdk_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// A second adapter on a server would break the tasks of both.
func TestInstallTwice(t *testing.T) {
	h := newHost(t, nil)
	if _, err := gosdk.Install(h.server, h.tasks, nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Errorf("got %v", err)
	}
	h.await(t, h.task(t, "").ID(), wire.StatusWorking)
}

// That a server has an adapter does not keep it in memory.
func TestInstallKeepsNoServer(t *testing.T) {
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil)
	must(t, err)
	defer tasks.Close()
	gone := make(chan struct{})
	func() {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		runtime.AddCleanup(server, func(gone chan struct{}) { close(gone) }, gone)
		_, err := gosdk.Install(server, tasks, nil)
		must(t, err)
	}()
	for range 100 {
		runtime.GC()
		select {
		case <-gone:
			return
		default:
		}
	}
	t.Error("the server is still there")
}

// bareInMemory connects a client to the server without the adapter's transport.
func (h *host) bareInMemory(t *testing.T) *channel {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := h.server.Connect(t.Context(), theirs, nil)
	must(t, err)
	conn, err := ours.Connect(t.Context())
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		session.Wait()
	})
	return over(t, conn)
}

// What was forgotten is said once.
func TestForgottenWiring(t *testing.T) {
	work := func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
		return text("done"), nil
	}
	streamable := func(h *host, stateless bool) http.Handler {
		return mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.server }, &mcp.StreamableHTTPOptions{Stateless: stateless})
	}
	serve := func(t *testing.T, handler http.Handler) func(string) {
		web := httptest.NewServer(handler)
		t.Cleanup(web.Close)
		return func(text string) { post(t, web.URL, text, nil) }
	}
	for _, tt := range []struct {
		what, want string
		connect    func(t *testing.T, h *host) func(string)
	}{
		{"transport", "Adapter.Transport", func(t *testing.T, h *host) func(string) {
			c := h.bareInMemory(t)
			return func(text string) { c.send(t, text); c.next(t) }
		}},
		{"handler", "Adapter.Handler", func(t *testing.T, h *host) func(string) { return serve(t, streamable(h, true)) }},
		{"stateless", "stateless", func(t *testing.T, h *host) func(string) { return serve(t, h.adapter.Handler(streamable(h, false))) }},
		{"nothing in memory", "", func(t *testing.T, h *host) func(string) {
			c := h.inMemory(t)
			return func(text string) { c(t, text) }
		}},
		{"nothing over http", "", func(t *testing.T, h *host) func(string) { return serve(t, h.adapter.HTTPHandler(nil)) }},
	} {
		for _, text := range []string{toolCall("work", `{}`), taskRequest(wire.MethodGet, noSuchTask)} {
			t.Run(tt.what, func(t *testing.T) {
				var log logged
				h := newHost(t, &gosdk.Options{Logger: log.logger()})
				addTaskTool(h.adapter, &mcp.Tool{Name: "work"}, work, nil)
				send := tt.connect(t, h)
				if tt.what != "stateless" {
					send(request("tools/call", `"name":"work","arguments":{}`, withoutTasks)) // has no need of it
				}
				if log.String() != "" {
					t.Fatalf("said too early: %s", log.String())
				}
				send(text)
				send(text)
				got := log.String()
				if strings.Count(got, "\n") != min(len(tt.want), 1) || !strings.Contains(got, tt.want) {
					t.Errorf("log: %s", got)
				}
			})
		}
	}
}

// Without a Logger, failures are seen by slog.Default.
func TestFailuresWithoutALogger(t *testing.T) {
	var log logged
	before := slog.Default()
	defer slog.SetDefault(before)
	slog.SetDefault(log.logger())

	tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil)
	must(t, err)
	defer tasks.Close()
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	adapter, err := gosdk.Install(server, tasks, nil)
	must(t, err)
	h := &host{tasks: tasks, server: server, adapter: adapter}
	addTaskTool(adapter, &mcp.Tool{Name: "broken"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{StructuredContent: func() {}}, nil
	}, nil)
	h.await(t, created(t, h.inMemory(t)(t, toolCall("broken", `{}`))), wire.StatusFailed)
	if got := log.String(); !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "tool=broken") {
		t.Errorf("log: %s", got)
	}
}

// A panic's value may hold anything; that of the runtime's own is said.
func TestWhatIsSaidOfAPanic(t *testing.T) {
	var log logged
	var fault func() string
	h := newHost(t, &gosdk.Options{Logger: log.logger(), Owner: func(context.Context, mcp.Request) string { return fault() }})
	c := h.inMemory(t)
	var none []string
	for _, tt := range []struct {
		fault func() string
		want  string
	}{
		{func() string { return none[3] }, "panic=\"runtime error: index out of range [3] with length 0\""},
		{func() string { panic("secret") }, "panic=string"},
		{func() string { panic(errors.New("secret")) }, "panic=*errors.errorString"},
	} {
		fault = tt.fault
		wantError(t, c(t, taskRequest(wire.MethodGet, noSuchTask)), wire.CodeInternalError)
		if got := log.String(); !strings.Contains(got, tt.want) || strings.Contains(got, "secret") {
			t.Errorf("log: %s, want %s", got, tt.want)
		}
	}
}
