package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

type greeting struct {
	Name  string `json:"name"`
	Words int    `json:"words,omitempty"`
}

// withGreeter returns a host whose tool "greet" asks for a title and then
// greets.
func withGreeter(t *testing.T) *host {
	h := newHost(t, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "greet"}, func(ctx context.Context, task *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		answers, err := gosdk.RequestInput(ctx, task, mcp.InputRequestMap{"title": titleForm}, nil)
		if err != nil {
			return nil, err
		}
		title := answers["title"].(*mcp.ElicitResult).Content["title"]
		return text(fmt.Sprintf("Hello, %v %s", title, in.Name)), nil
	}, nil)
	return h
}

var titleForm = &mcp.ElicitParams{
	Message: "Which title?",
	RequestedSchema: map[string]any{
		"type":       "object",
		"properties": map[string]any{"title": map[string]any{"type": "string"}},
	},
}

func TestTaskFromCallToResult(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, h *host, c client) {
		id := created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
		h.await(t, id, wire.StatusInputRequired)

		asked := result(t, c(t, taskRequest(wire.MethodGet, id)))
		if got := asked.Get("inputRequests").Get("title").Get("method").String(); got != `"elicitation/create"` {
			t.Errorf("asked %s", asked)
		}
		if got := asked.Get("resultType").String(); got != `"complete"` {
			t.Errorf("resultType of tasks/get is %s", got)
		}
		ack := result(t, c(t, update(id, `{"title":{"action":"accept","content":{"title":"Lady"}},"other":{"any":1}}`)))
		if ack.String() != `{"resultType":"complete"}` {
			t.Errorf("tasks/update answers %s", ack)
		}
		h.await(t, id, wire.StatusCompleted)
		done := result(t, c(t, taskRequest(wire.MethodGet, id)))
		if want := `{"resultType":"complete","content":[{"type":"text","text":"Hello, Lady Ada"}]}`; done.Get("result").String() != want {
			t.Errorf("result %s, want %s", done.Get("result"), want)
		}

		ack = result(t, c(t, taskRequest(wire.MethodCancel, id)))
		if ack.String() != `{"resultType":"complete"}` {
			t.Errorf("tasks/cancel answers %s", ack)
		}
		if again := result(t, c(t, taskRequest(wire.MethodGet, id))); again != done {
			t.Errorf("after a late cancel: %s", again)
		}
	})
}

// What the client did not declare on the very tools/call it is not asked for.
func TestUnsupportedInput(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, h *host, c client) {
		const withoutForms = `{"elicitation":{"url":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
		id := created(t, c(t, request("tools/call", `"name":"greet","arguments":{"name":"Ada"}`, withoutForms)))
		h.await(t, id, wire.StatusFailed)
		got := result(t, c(t, taskRequest(wire.MethodGet, id))).Get("error")
		if got.Get("code").String() != "-32021" || got.Get("data").String() != `{"requiredCapabilities":{"elicitation":{"form":{}}}}` {
			t.Errorf("the task has failed with %s", got)
		}
	})
}

func TestCancelReachesTheWorker(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, h *host, c client) {
		id := created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
		h.await(t, id, wire.StatusInputRequired)
		result(t, c(t, taskRequest(wire.MethodCancel, id)))
		h.await(t, id, wire.StatusCancelled)
	})
}

// Arguments that do not fit the schema are the model's mistake, to be
// corrected at once, not a task.
func TestArgumentsAreCheckedBeforeATaskExists(t *testing.T) {
	h := withGreeter(t)
	c := h.inMemory(t)
	r := result(t, c(t, toolCall("greet", `{"words":"many"}`)))
	if r.Get("isError").String() != "true" || !r.Get("taskId").IsZero() {
		t.Errorf("got %s", r)
	}
}

func TestClientWithoutExtension(t *testing.T) {
	h := newHost(t, nil)
	add := func(name string, fallback gosdk.Fallback, handler taskHandler[greeting]) {
		addTaskTool(h.adapter, &mcp.Tool{Name: name}, handler, &gosdk.TaskToolOptions{Fallback: fallback})
	}
	greet := func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		r := text("Hello, " + in.Name)
		r.Meta = mcp.Meta{"mark": "kept"}
		r.StructuredContent = map[string]any{"big": jsonNumber("123456789012345678901234567890")}
		return r, nil
	}
	add("inline", gosdk.RunInline, greet)
	add("refuse", gosdk.Refuse, greet)
	add("asks", gosdk.RunInline, func(ctx context.Context, h *durabletasks.Handle, _ greeting) (*mcp.CallToolResult, error) {
		_, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"title": titleForm}, nil)
		return nil, err
	})
	add("fails", gosdk.RunInline, func(context.Context, *durabletasks.Handle, greeting) (*mcp.CallToolResult, error) {
		return nil, &jsonrpc.Error{Code: -32000, Message: "no", Data: []byte(`{"why":1.50}`)}
	})
	add("errs", gosdk.RunInline, func(context.Context, *durabletasks.Handle, greeting) (*mcp.CallToolResult, error) {
		return nil, errors.New("not today")
	})
	add("panics", gosdk.RunInline, func(context.Context, *durabletasks.Handle, greeting) (*mcp.CallToolResult, error) {
		panic("secret")
	})
	add("gives up", gosdk.RunInline, func(ctx context.Context, h *durabletasks.Handle, _ greeting) (*mcp.CallToolResult, error) {
		return nil, h.Cancelled(ctx, "nothing to do")
	})
	c := h.inMemory(t)
	call := func(tool string) wire.JSON {
		return c(t, request("tools/call", fmt.Sprintf(`"name":%q,"arguments":{"name":"Ada"}`, tool), withoutTasks))
	}

	r := call("inline").Get("result")
	for member, want := range map[string]string{
		"resultType":        `"complete"`,
		"content":           `[{"type":"text","text":"Hello, Ada"}]`,
		"structuredContent": `{"big":123456789012345678901234567890}`,
	} {
		if got := r.Get(member).String(); got != want {
			t.Errorf("inline: %s is %s, want %s", member, got, want)
		}
	}
	if got := r.Get("_meta").Get("mark").String(); got != `"kept"` {
		t.Errorf("inline: _meta.mark is %s", got)
	}
	const required = `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	for _, tool := range []string{"refuse", "asks"} {
		if got := wantError(t, call(tool), wire.CodeMissingCapability).Get("data").String(); got != required {
			t.Errorf("%s: data is %s", tool, got)
		}
	}
	if got := wantError(t, call("fails"), -32000).String(); got != `{"code":-32000,"message":"no","data":{"why":1.50}}` {
		t.Errorf("fails: %s", got)
	}
	if r := result(t, call("errs")); r.Get("isError").String() != "true" || !strings.Contains(r.String(), "not today") {
		t.Errorf("errs: %s", r)
	}
	if got := wantError(t, call("panics"), wire.CodeInternalError).String(); strings.Contains(got, "secret") {
		t.Errorf("panics: %s", got)
	}
	if r := result(t, call("gives up")); r.Get("isError").String() != "true" || !strings.Contains(r.String(), "nothing to do") {
		t.Errorf("gives up: %s", r)
	}
	// What an earlier request declared counts for that request alone.
	created(t, c(t, toolCall("inline", `{"name":"Ada"}`)))
	if r := call("inline").Get("result"); !r.Get("taskId").IsZero() {
		t.Errorf("a task for a request that declares nothing: %s", r)
	}
}

type jsonNumber string

func (n jsonNumber) MarshalJSON() ([]byte, error) { return []byte(n), nil }

// A client that stops waiting for an inline call stops its work.
func TestInlineCallIsCancelledWithItsRequest(t *testing.T) {
	h := newHost(t, nil)
	began, cause := make(chan struct{}), make(chan error, 1)
	addTaskTool(h.adapter, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil, ctx.Err()
	}, nil)
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := h.server.Connect(t.Context(), theirs, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Wait()
	conn, err := ours.Connect(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	send := func(text string) {
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	send(request("tools/call", `"name":"wait","arguments":{}`, withoutTasks))
	<-began
	send(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r-1"}}`)
	if got := <-cause; !errors.Is(got, durabletasks.ErrCancelled) {
		t.Errorf("the worker's context ended with %v", got)
	}
}

func TestHowWorkEnds(t *testing.T) {
	h := newHost(t, nil)
	tools := map[string]taskHandler[struct{}]{
		"panics": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			panic("secret")
		},
		"errs": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return nil, errors.New("not today")
		},
		"fails": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return nil, fmt.Errorf("wrapped: %w", &jsonrpc.Error{Code: -32000, Message: "no", Data: []byte(`{"why":1.50}`)})
		},
		"ends itself": func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
			return nil, h.Complete(ctx, wire.MustParse(`{"content":[],"own":true}`))
		},
		"says nothing": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{}, nil
		},
		"returns nothing": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return nil, nil
		},
		"asks wrongly": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{"title": titleForm}}, nil
		},
		"cannot be encoded": func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
			return &mcp.CallToolResult{StructuredContent: func() {}}, nil
		},
	}
	for name, handler := range tools {
		addTaskTool(h.adapter, &mcp.Tool{Name: name}, handler, nil)
	}
	c := h.inMemory(t)
	const internal = `{"code":-32603,"message":"Internal error"}`
	for _, tt := range []struct {
		tool    string
		status  wire.Status
		payload string
	}{
		{"panics", wire.StatusFailed, internal},
		{"errs", wire.StatusCompleted, `{"resultType":"complete","content":[{"text":"not today","type":"text"}],"isError":true}`},
		{"fails", wire.StatusFailed, `{"code":-32000,"message":"no","data":{"why":1.50}}`},
		{"ends itself", wire.StatusCompleted, `{"resultType":"complete","content":[],"own":true}`},
		{"says nothing", wire.StatusCompleted, `{"resultType":"complete","content":[]}`},
		{"returns nothing", wire.StatusFailed, `{"code":-32603,"message":"The tool returned no result"}`},
		{"asks wrongly", wire.StatusFailed, `{"code":-32603,"message":"The tool's result cannot be encoded"}`},
		{"cannot be encoded", wire.StatusFailed, `{"code":-32603,"message":"The tool's result cannot be encoded"}`},
	} {
		t.Run(tt.tool, func(t *testing.T) {
			id := created(t, c(t, toolCall(tt.tool, `{}`)))
			task := h.await(t, id, tt.status)
			payload := task.Result
			if tt.status == wire.StatusFailed {
				payload = task.Error
			}
			if payload.String() != tt.payload {
				t.Errorf("got %s, want %s", payload, tt.payload)
			}
		})
	}
}

// explosive is an argument whose decoding panics.
type explosive struct{}

func (*explosive) UnmarshalJSON([]byte) error { panic("secret") }

func TestArgumentsWhoseDecodingPanics(t *testing.T) {
	h := newHost(t, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "explode", InputSchema: map[string]any{"type": "object"}},
		func(context.Context, *durabletasks.Handle, explosive) (*mcp.CallToolResult, error) {
			return text("done"), nil
		}, nil)
	c := h.inMemory(t)
	if got := wantError(t, c(t, toolCall("explode", `{}`)), wire.CodeInternalError).String(); strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
}

// The worker keeps the values of the request that made its task, and outlives
// it: its end, its cancellation, its connection.
func TestWorkerOutlivesItsRequest(t *testing.T) {
	type traceKey struct{}
	prepare := func(t *testing.T) (*host, chan struct{}) {
		h := newHost(t, nil)
		finish := make(chan struct{})
		addTaskTool(h.adapter, &mcp.Tool{Name: "work"}, func(ctx context.Context, _ *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
			<-finish
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			return text(fmt.Sprint(ctx.Value(traceKey{}))), nil
		}, nil)
		h.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
			return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
				ctx, cancel := context.WithCancel(context.WithValue(ctx, traceKey{}, "trace 7"))
				defer cancel()
				return next(ctx, method, req)
			}
		})
		return h, finish
	}
	check := func(t *testing.T, h *host, id string) {
		task := h.await(t, id, wire.StatusCompleted)
		if !strings.Contains(task.Result.String(), "trace 7") || strings.Contains(task.Result.String(), "isError") {
			t.Errorf("result %s", task.Result)
		}
	}
	t.Run("cancelled", func(t *testing.T) {
		h, finish := prepare(t)
		c := h.inMemory(t)
		id := created(t, c(t, toolCall("work", `{}`)))
		c(t, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"r-1"}}`)
		close(finish)
		check(t, h, id)
	})
	t.Run("http connection gone", func(t *testing.T) {
		h, finish := prepare(t)
		url := h.listen(t, nil)
		id := created(t, post(t, url, toolCall("work", `{}`), nil).body)
		http.DefaultClient.CloseIdleConnections()
		close(finish)
		check(t, h, id)
	})
}
