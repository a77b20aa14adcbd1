package gosdk_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type pages struct {
	Count int `json:"count"`
}

type report struct {
	Title string `json:"title"`
}

// withReporter returns a host whose tool "report" decides by its arguments
// whether it becomes a task, and has an output schema, which the nothing that
// it returns then does not fit.
func withReporter(t *testing.T) *host {
	h := newHost(t, nil)
	mcp.AddTool(h.server, &mcp.Tool{Name: "report", OutputSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"title": map[string]any{"type": "string", "minLength": 1}},
		"required":   []string{"title"},
	}}, func(ctx context.Context, _ *mcp.CallToolRequest, in pages) (*mcp.CallToolResult, report, error) {
		if in.Count < 10 {
			return nil, report{Title: "short"}, nil
		}
		err := gosdk.Defer(ctx, nil, func(context.Context, *durabletasks.Handle) (*mcp.CallToolResult, error) {
			return text("long"), nil
		})
		return nil, report{}, err
	})
	return h
}

func TestDeferPerCall(t *testing.T) {
	onEveryTransport(t, withReporter, func(t *testing.T, h *host, c client) {
		short := result(t, c(t, toolCall("report", `{"count":1}`)))
		if got := short.Get("structuredContent").String(); got != `{"title":"short"}` {
			t.Errorf("short: %s", short)
		}
		id := created(t, c(t, toolCall("report", `{"count":100}`)))
		if task := h.await(t, id, wire.StatusCompleted); !strings.Contains(task.Result.String(), "long") {
			t.Errorf("long: %s", task.Result)
		}
		refused := c(t, request("tools/call", `"name":"report","arguments":{"count":100}`, withoutTasks))
		wantError(t, refused, wire.CodeMissingCapability)
	})
}

func TestDeferKeepsItsRules(t *testing.T) {
	h := newHost(t, nil)
	noWork := func(context.Context, *durabletasks.Handle) (*mcp.CallToolResult, error) { return text("done"), nil }
	errs := make(chan error, 10)
	var late context.Context
	h.server.AddTool(&mcp.Tool{Name: "twice", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		late = ctx
		errs <- gosdk.Defer(ctx, nil, func(ctx context.Context, _ *durabletasks.Handle) (*mcp.CallToolResult, error) {
			errs <- gosdk.Defer(ctx, nil, noWork) // a task does not become another
			if gosdk.CanDefer(ctx) {
				errs <- errors.New("CanDefer is true in a worker")
			}
			return text("done"), nil
		})
		errs <- gosdk.Defer(ctx, nil, noWork)
		return nil, errors.New("dropped: the task is there")
	})
	c := h.inMemory(t)
	h.await(t, created(t, c(t, toolCall("twice", `{}`))), wire.StatusCompleted)
	errs <- gosdk.Defer(late, nil, noWork)
	errs <- gosdk.Defer(context.Background(), nil, noWork)
	close(errs)
	counts := make(map[error]int)
	for err := range errs {
		counts[err]++
	}
	if len(counts) != 3 || counts[nil] != 1 || counts[gosdk.ErrDeferred] != 1 || counts[gosdk.ErrNoCall] != 3 {
		t.Errorf("errors %v", counts)
	}
}

// A call whose arguments cannot be kept for a restart is refused before a
// task exists.
func TestDeferRefusesArgumentsThatCannotBeKept(t *testing.T) {
	h := newHost(t, nil)
	h.server.AddTool(&mcp.Tool{Name: "keep", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, gosdk.Defer(ctx, nil, func(context.Context, *durabletasks.Handle) (*mcp.CallToolResult, error) { return text("done"), nil })
	})
	c := h.inMemory(t)
	answer := c(t, toolCall("keep", `{"secret":1,"secret":2}`))
	if answer.Get("error").IsZero() || strings.Contains(answer.String(), "secret") {
		t.Errorf("got %s", answer)
	}
}

// What Defer returns, a handler may return: the call fails with the JSON-RPC
// error that fits, and a mistake of the handler is logged.
func TestErrorsOfDefer(t *testing.T) {
	work := func(ctx context.Context, _ *durabletasks.Handle) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, nil
	}
	var log logged
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, &durabletasks.Options{MaxWorkers: 1, Logger: log.logger()})
	must(t, err)
	h := installed(t, mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), tasks, &gosdk.Options{Logger: log.logger()})
	errs := make(chan error, 1)
	deferral := func(ctx context.Context, in greeting) error {
		var opts *durabletasks.CreateOptions
		w := gosdk.Work(work)
		switch in.Name {
		case "elsewhere":
			ctx = context.Background()
		case "nil":
			w = nil
		case "options":
			opts = &durabletasks.CreateOptions{TTL: -5}
		}
		err := gosdk.Defer(ctx, opts, w)
		errs <- err
		return err
	}
	mcp.AddTool(h.server, &mcp.Tool{Name: "typed"}, func(ctx context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return nil, nil, deferral(ctx, in)
	})
	h.server.AddTool(&mcp.Tool{Name: "raw", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, req *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, deferral(ctx, greeting{Name: strings.Trim(strings.TrimPrefix(string(req.Params.Arguments), `{"name":`), `"}`)})
	})
	c := h.inMemory(t)
	const internal = `{"code":-32603,"message":"Internal error"}`
	for _, tt := range []struct {
		name string
		err  error // nil if there is a task
		want string
		log  bool
	}{
		{"options", durabletasks.ErrInvalid, internal, true},
		{"nil", durabletasks.ErrInvalid, internal, true},
		{"first", nil, ``, false},
		{"busy", durabletasks.ErrBusy, `{"code":-32603,"message":"Too many tasks are running"}`, true},
		{"elsewhere", gosdk.ErrNoCall, internal, true},
		{"shutdown", durabletasks.ErrShutdown, `{"code":-32603,"message":"The server is shutting down"}`, false},
	} {
		for _, tool := range []string{"typed", "raw"} {
			switch {
			case tt.name == "first" && tool == "raw":
				continue
			case tt.name == "shutdown" && tool == "typed":
				must(t, h.tasks.Shutdown(t.Context()))
			}
			before := log.String()
			answer := c(t, toolCall(tool, `{"name":"`+tt.name+`"}`))
			if err := <-errs; !errors.Is(err, tt.err) {
				t.Errorf("%s, %s: Defer returns %v", tt.name, tool, err)
			}
			if got := answer.Get("error").String(); got != tt.want {
				t.Errorf("%s, %s: %s", tt.name, tool, answer)
			}
			said := strings.TrimPrefix(log.String(), before)
			if tt.log != strings.Contains(said, "tool="+tool) || !tt.log && said != "" {
				t.Errorf("%s, %s: log %s", tt.name, tool, said)
			}
		}
	}
}

// Work fails its task by a JSON-RPC error of the SDK's type, too.
func TestDeferredWorkThatFails(t *testing.T) {
	h := newHost(t, nil)
	h.server.AddTool(&mcp.Tool{Name: "fail", InputSchema: map[string]any{"type": "object"}}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, gosdk.Defer(ctx, nil, func(context.Context, *durabletasks.Handle) (*mcp.CallToolResult, error) {
			return nil, &jsonrpc.Error{Code: -32000, Message: "no", Data: []byte(`{"why":1.50}`)}
		})
	})
	task := h.await(t, created(t, h.inMemory(t)(t, toolCall("fail", `{}`))), wire.StatusFailed)
	if got := task.Error.String(); got != `{"code":-32000,"message":"no","data":{"why":1.50}}` {
		t.Errorf("got %s", got)
	}
}
