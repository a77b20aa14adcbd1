package gosdk_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

func TestNameHeader(t *testing.T) {
	h := withGreeter(t)
	url := h.listen(t, nil)
	id := created(t, post(t, url, toolCall("greet", `{"name":"Ada"}`), nil).body)
	h.await(t, id, wire.StatusInputRequired)
	encoded := "=?base64?" + base64.StdEncoding.EncodeToString([]byte(id)) + "?="
	for _, tt := range []struct {
		what   string
		names  []string
		served bool
	}{
		{"the task", []string{id}, true},
		{"with spaces", []string{"  " + id + "\t"}, true},
		{"encoded", []string{encoded}, true},
		{"absent", nil, true},
		{"another task", []string{noSuchTask}, false},
		{"in another case", []string{strings.ToUpper(id)}, false},
		{"empty", []string{""}, false},
		{"broken encoding", []string{"=?base64?%%%?="}, false},
		{"the task and another", []string{id, noSuchTask}, false},
	} {
		for _, text := range []string{taskRequest(wire.MethodGet, id), update(id, "{}")} {
			r := post(t, url, text, func(header http.Header) {
				header.Del("Mcp-Name")
				for _, name := range tt.names {
					header.Add("Mcp-Name", name)
				}
			})
			if tt.served {
				if r.status != http.StatusOK || !r.body.Get("error").IsZero() {
					t.Errorf("%s: HTTP %d %s", tt.what, r.status, r.body)
				}
				continue
			}
			wantError(t, r.body, wire.CodeHeaderMismatch)
			if r.status != http.StatusBadRequest || r.body.Get("id").String() != `"r-1"` {
				t.Errorf("%s: HTTP %d %s", tt.what, r.status, r.body)
			}
		}
	}
	wrong := post(t, url, taskRequest(wire.MethodCancel, id), func(header http.Header) { header.Set("Mcp-Name", noSuchTask) })
	wantError(t, wrong.body, wire.CodeHeaderMismatch)
	h.await(t, id, wire.StatusInputRequired) // not cancelled
}

// A server that is not net/http's may hand over a header's value untrimmed.
func TestNameHeaderIsTrimmed(t *testing.T) {
	h := withGreeter(t)
	served := false
	handler := h.adapter.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served = true }))
	text := taskRequest(wire.MethodGet, noSuchTask)
	r := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(text))
	addHeaders(t, r.Header, text)
	r.Header.Set("Mcp-Name", " "+noSuchTask+" ")
	if handler.ServeHTTP(httptest.NewRecorder(), r); !served {
		t.Error("refused")
	}
}

// Without the wrapper, and for a request that it does not look at, the
// mismatch is refused too.
func TestNameHeaderWithoutHandler(t *testing.T) {
	h := withGreeter(t)
	bare := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.server }, &mcp.StreamableHTTPOptions{Stateless: true})
	url := h.listen(t, func(http.Handler) http.Handler { return bare })
	id := created(t, post(t, url, toolCall("greet", `{"name":"Ada"}`), nil).body)
	r := post(t, url, taskRequest(wire.MethodGet, id), func(header http.Header) { header.Set("Mcp-Name", noSuchTask) })
	wantError(t, r.body, wire.CodeHeaderMismatch)
}

func TestRequireTaskName(t *testing.T) {
	h := newHost(t, &gosdk.Options{RequireTaskName: true})
	url := h.listen(t, nil)
	r := post(t, url, taskRequest(wire.MethodGet, noSuchTask), func(header http.Header) { header.Del("Mcp-Name") })
	wantError(t, r.body, wire.CodeHeaderMismatch)
	if r.status != http.StatusBadRequest {
		t.Errorf("HTTP %d", r.status)
	}
	wantError(t, post(t, url, taskRequest(wire.MethodGet, noSuchTask), nil).body, wire.CodeInvalidParams)
	// On other transports there is no header to require.
	wantError(t, h.inMemory(t)(t, taskRequest(wire.MethodGet, noSuchTask)), wire.CodeInvalidParams)
}

// Clients read a JSON-RPC error only from some HTTP statuses.
func TestErrorStatus(t *testing.T) {
	h := withGreeter(t)
	url := h.listen(t, nil)
	for _, tt := range []struct {
		what, text string
		code       int
		status     int
	}{
		{"unknown task", taskRequest(wire.MethodGet, noSuchTask), wire.CodeInvalidParams, 400},
		{"no capability", request(wire.MethodGet, `"taskId":"`+noSuchTask+`"`, withoutTasks), wire.CodeMissingCapability, 400},
		{"no such method", taskRequest("tasks/list", noSuchTask), wire.CodeMethodNotFound, 404},
		{"unserved revision", strings.ReplaceAll(taskRequest(wire.MethodGet, noSuchTask), "2026-07-28", "2099-01-01"), wire.CodeUnsupportedProtocolVersion, 400},
	} {
		r := post(t, url, tt.text, nil)
		wantError(t, r.body, tt.code)
		if r.status != tt.status {
			t.Errorf("%s: HTTP %d, want %d", tt.what, r.status, tt.status)
		}
	}
}

// Many clients at once get each their own tasks.
func TestConcurrentClients(t *testing.T) {
	h := withGreeter(t)
	url := h.listen(t, nil)
	var clients sync.WaitGroup
	for i := range 20 {
		clients.Go(func() {
			name := fmt.Sprintf("client %d", i)
			id, ok := post(t, url, toolCall("greet", fmt.Sprintf(`{"name":%q}`, name)), nil).body.Get("result").Get("taskId").Text()
			if !ok {
				t.Error("no task for", name)
				return
			}
			for task, err := range h.tasks.Watch(t.Context(), id) {
				switch {
				case err != nil:
					t.Error(err)
				case task.Status == wire.StatusInputRequired:
					post(t, url, update(id, `{"title":{"action":"accept","content":{"title":"dear"}}}`), nil)
				case task.Status.Terminal():
					got := post(t, url, taskRequest(wire.MethodGet, id), nil).body.Get("result").Get("result").String()
					if !strings.Contains(got, "Hello, dear "+name+`"`) {
						t.Errorf("%s got %s", name, got)
					}
				}
			}
		})
	}
	clients.Wait()
}

// A body that is too large for the wrapper is the SDK's to refuse.
func TestHugeBody(t *testing.T) {
	h := withGreeter(t)
	url := h.listen(t, nil)
	text := update(noSuchTask, `{"a":"`+strings.Repeat("x", 5<<20)+`"}`)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	r.Header.Set("Mcp-Method", wire.MethodUpdate)
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	if answer.StatusCode != http.StatusRequestEntityTooLarge {
		t.Errorf("HTTP %d", answer.StatusCode)
	}
}
