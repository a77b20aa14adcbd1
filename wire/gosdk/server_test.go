package gosdk_test

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// host is a server with tasks, as a host author would put it together.
type host struct {
	tasks   *durabletasks.TaskLifecycle
	server  *mcp.Server
	adapter *gosdk.Adapter
}

func newHost(t *testing.T, opts *gosdk.Options) *host {
	t.Helper()
	return newHostOver(t, &durabletasks.MemStore{}, opts)
}

func newHostOver(t *testing.T, store durabletasks.TaskStore, opts *gosdk.Options) *host {
	t.Helper()
	tasks, err := durabletasks.New(store, &durabletasks.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil)
	return installed(t, server, tasks, opts)
}

// newHostOn returns a host on a server with options of its own.
func newHostOn(t *testing.T, server *mcp.Server) *host {
	t.Helper()
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, &durabletasks.Options{Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return installed(t, server, tasks, nil)
}

func installed(t *testing.T, server *mcp.Server, tasks *durabletasks.TaskLifecycle, opts *gosdk.Options) *host {
	t.Helper()
	t.Cleanup(func() {
		if err := tasks.Close(); err != nil {
			t.Error(err)
		}
	})
	var o gosdk.Options
	if opts != nil {
		o = *opts
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	adapter, err := gosdk.Install(server, tasks, &o)
	if err != nil {
		t.Fatal(err)
	}
	return &host{tasks: tasks, server: server, adapter: adapter}
}

// await waits until a task has the status, and returns its view.
func (h *host) await(t *testing.T, id string, want wire.Status) wire.Task {
	t.Helper()
	return h.awaitAs(t, "", id, want)
}

// awaitAs is await for a task of somebody's.
func (h *host) awaitAs(t *testing.T, owner, id string, want wire.Status) wire.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(durabletasks.WithOwner(t.Context(), owner), 10*time.Second)
	defer cancel()
	for task, err := range h.tasks.Watch(ctx, id) {
		switch {
		case err != nil:
			t.Fatalf("waiting for %s: %v", want, err)
		case task.Status == want:
			return task
		case task.Status.Terminal():
			t.Fatalf("task ended as %s, want %s: %s %s", task.Status, want, task.Result, task.Error)
		}
	}
	t.Fatalf("task is gone, want %s", want)
	return wire.Task{}
}

// client sends the text of one JSON-RPC request and returns the text of its
// response.
type client func(t *testing.T, request string) wire.JSON

// onEveryTransport runs a story on each transport that the SDK has.
func onEveryTransport(t *testing.T, h func(t *testing.T) *host, story func(t *testing.T, h *host, c client)) {
	t.Run("in memory", func(t *testing.T) { h := h(t); story(t, h, h.inMemory(t)) })
	t.Run("pipes", func(t *testing.T) { h := h(t); story(t, h, h.overPipes(t)) })
	t.Run("http", func(t *testing.T) { h := h(t); story(t, h, h.overHTTP(t)) })
}

func (h *host) inMemory(t *testing.T) client {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := h.server.Connect(context.Background(), h.adapter.Transport(theirs), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ours.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		conn.Close()
		session.Wait()
	})
	return func(t *testing.T, request string) wire.JSON {
		t.Helper()
		message, err := jsonrpc.DecodeMessage([]byte(request))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), message); err != nil {
			t.Fatal(err)
		}
		if !message.(*jsonrpc.Request).IsCall() {
			return wire.JSON{}
		}
		answer, err := conn.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		text, err := jsonrpc.EncodeMessage(answer)
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, text)
	}
}

// overPipes speaks lines, as on stdin and stdout.
func (h *host) overPipes(t *testing.T) client {
	t.Helper()
	stdin, toServer := io.Pipe()
	fromServer, stdout := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		ran <- h.server.Run(context.Background(), h.adapter.Transport(&mcp.IOTransport{Reader: stdin, Writer: stdout}))
	}()
	t.Cleanup(func() {
		toServer.Close() // the server ends with its input
		if err := <-ran; err != nil {
			t.Errorf("server ended with %v", err)
		}
	})
	lines := bufio.NewReader(fromServer)
	return func(t *testing.T, request string) wire.JSON {
		t.Helper()
		if _, err := io.WriteString(toServer, request+"\n"); err != nil {
			t.Fatal(err)
		}
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		return parse(t, []byte(line))
	}
}

func (h *host) overHTTP(t *testing.T) client {
	url := h.listen(t, nil)
	return func(t *testing.T, request string) wire.JSON {
		t.Helper()
		return post(t, url, request, nil).body
	}
}

// listen serves the host over Streamable HTTP, behind the given middleware.
func (h *host) listen(t *testing.T, middleware func(http.Handler) http.Handler) (url string) {
	handler := h.adapter.HTTPHandler(nil)
	if middleware != nil {
		handler = middleware(handler)
	}
	web := httptest.NewServer(handler)
	t.Cleanup(web.Close)
	return web.URL
}

type response struct {
	status int
	body   wire.JSON
}

// post sends a request with the headers that belong to it, as changed by
// change.
func post(t *testing.T, url, request string, change func(http.Header)) response {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(request))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	addHeaders(t, r.Header, request)
	if change != nil {
		change(r.Header)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	if strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
		_, data, _ := strings.Cut(string(text), "data: ")
		text = []byte(data)
	}
	body, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatalf("HTTP %d: %q", answer.StatusCode, text)
	}
	return response{answer.StatusCode, body}
}

// addHeaders adds what a client of the modern revision sends with a request.
func addHeaders(t *testing.T, header http.Header, text string) {
	t.Helper()
	message, err := jsonrpc.DecodeMessage([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	request := message.(*jsonrpc.Request)
	header.Set("Mcp-Method", request.Method)
	var params struct {
		Name   any `json:"name"`
		TaskID any `json:"taskId"`
		Meta   struct {
			Version string `json:"io.modelcontextprotocol/protocolVersion"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(request.Params, &params); err != nil {
		t.Fatal(err)
	}
	header.Set("Mcp-Protocol-Version", params.Meta.Version)
	for _, value := range []any{params.Name, params.TaskID} {
		if name, ok := value.(string); ok {
			if strings.TrimSpace(name) != name {
				name = "=?base64?" + base64.StdEncoding.EncodeToString([]byte(name)) + "?="
			}
			header.Set("Mcp-Name", name)
		}
	}
}

func parse(t *testing.T, text []byte) wire.JSON {
	t.Helper()
	j, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatalf("%v in %q", err, text)
	}
	return j
}

// Capabilities that a client declares.
const (
	withTasks    = `{"elicitation":{"form":{}},"sampling":{},"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}`
	withoutTasks = `{"elicitation":{"form":{}}}`
)

func meta(capabilities string) string {
	return `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"test","version":"1"},` +
		`"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}`
}

// request returns the text of a request whose params are the given members
// and a _meta.
func request(method, members, capabilities string) string {
	if members != "" {
		members += ","
	}
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":"r-1","method":%q,"params":{%s%s}}`, method, members, meta(capabilities))
}

func toolCall(name, arguments string) string {
	return request("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments), withTasks)
}

// inlineCall is a toolCall of a client without tasks.
func inlineCall(name, arguments string) string {
	return request("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments), withoutTasks)
}

func taskRequest(method, id string) string {
	return request(method, fmt.Sprintf(`"taskId":%q`, id), withTasks)
}

func update(id, responses string) string {
	return request(wire.MethodUpdate, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, id, responses), withTasks)
}

// result returns the result of a response without the server's name, which
// the SDK adds to its _meta.
func result(t *testing.T, answer wire.JSON) wire.JSON {
	t.Helper()
	if failure := answer.Get("error"); !failure.IsZero() {
		t.Fatalf("error %s", failure)
	}
	const name = `"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"test","version":"1"}}`
	text := answer.Get("result").String()
	before, after, ok := strings.Cut(text, name)
	if !ok {
		t.Fatalf("the server does not name itself in %s", text)
	}
	if head, last := strings.CutSuffix(before, ","); last {
		return parse(t, []byte(head+after))
	}
	return parse(t, []byte(before+strings.TrimPrefix(after, ",")))
}

// created returns the id of the task that a tools/call has become.
func created(t *testing.T, answer wire.JSON) string {
	t.Helper()
	r := result(t, answer)
	id, ok := r.Get("taskId").Text()
	if kind, _ := r.Get("resultType").Text(); kind != "task" || !ok || id == "" {
		t.Fatalf("not a task: %s", answer)
	}
	for _, payload := range []string{"result", "error", "inputRequests"} {
		if !r.Get(payload).IsZero() {
			t.Errorf("CreateTaskResult carries %s: %s", payload, r)
		}
	}
	return id
}

// wantError checks the error of a response, and returns it.
func wantError(t *testing.T, answer wire.JSON, code int) wire.JSON {
	t.Helper()
	failure := answer.Get("error")
	if got := failure.Get("code").String(); got != fmt.Sprint(code) {
		t.Fatalf("want error %d, got %s", code, answer)
	}
	return failure
}

func text(s string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: s}}}
}

// taskHandler is a handler without a typed output.
type taskHandler[In any] func(context.Context, *durabletasks.Handle, In) (*mcp.CallToolResult, error)

func addTaskTool[In any](a *gosdk.Adapter, tool *mcp.Tool, handler taskHandler[In], opts *gosdk.TaskToolOptions) {
	gosdk.AddTaskTool(a, tool, func(ctx context.Context, h *durabletasks.Handle, in In) (*mcp.CallToolResult, any, error) {
		result, err := handler(ctx, h, in)
		return result, nil, err
	}, opts)
}
