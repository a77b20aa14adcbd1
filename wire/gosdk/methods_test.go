package gosdk_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

const noSuchTask = "00000000-0000-4000-8000-000000000000"

func TestExtensionIsAdvertised(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, _ *host, c client) {
		capabilities := result(t, c(t, request("server/discover", "", withTasks))).Get("capabilities")
		if got := capabilities.Get("extensions").String(); got != `{"io.modelcontextprotocol/tasks":{}}` {
			t.Errorf("extensions are %s", got)
		}
		if !capabilities.Get("tasks").IsZero() {
			t.Errorf("the retired tasks capability is advertised: %s", capabilities)
		}
	})
}

// Other extensions of the server stay, and a value that no client would
// understand is put right.
func TestAdvertisingWithOtherExtensions(t *testing.T) {
	tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	capabilities := &mcp.ServerCapabilities{}
	capabilities.AddExtension("example.com/other", map[string]any{"a": 1})
	capabilities.AddExtension(wire.ExtensionID, map[string]any{"wrong": true})
	h := &host{tasks: tasks, server: mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{Capabilities: capabilities})}
	if h.adapter, err = gosdk.Install(h.server, tasks, nil); err != nil {
		t.Fatal(err)
	}
	c := h.inMemory(t)
	got := result(t, c(t, request("server/discover", "", withTasks))).Get("capabilities").Get("extensions").String()
	if got != `{"example.com/other":{"a":1},"io.modelcontextprotocol/tasks":{}}` {
		t.Errorf("extensions are %s", got)
	}
}

func TestCapabilityGate(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, h *host, c client) {
		id := created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
		for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
			for _, id := range []string{id, noSuchTask} { // the gate comes before any look-up
				for _, capabilities := range []string{
					withoutTasks,
					`{"extensions":{}}`,
					`{"extensions":{"io.modelcontextprotocol/tasks":null}}`,
					`{"extensions":{"io.modelcontextprotocol/tasks":true}}`,
					`{"extensions":{"IO.modelcontextprotocol/Tasks":{}}}`,
					`{"experimental":{"io.modelcontextprotocol/tasks":{}}}`,
				} {
					answer := c(t, request(method, `"taskId":"`+id+`","inputResponses":{}`, capabilities))
					failure := wantError(t, answer, wire.CodeMissingCapability)
					const required = `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
					if got := failure.Get("data").String(); got != required {
						t.Errorf("%s %s: data is %s", method, capabilities, got)
					}
				}
			}
		}
		h.await(t, id, wire.StatusInputRequired) // and nothing was cancelled
	})
}

func TestUnknownTask(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, _ *host, c client) {
		const want = `{"code":-32602,"message":"Task not found"}`
		for _, text := range []string{
			taskRequest(wire.MethodGet, noSuchTask), taskRequest(wire.MethodCancel, noSuchTask), update(noSuchTask, "{}"),
			taskRequest(wire.MethodGet, " "), taskRequest(wire.MethodGet, ""),
		} {
			if got := c(t, text).Get("error").String(); got != want {
				t.Errorf("got %s", got)
			}
		}
	})
}

func TestRemovedMethods(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, _ *host, c client) {
		for _, method := range []string{"tasks/list", "tasks/result"} {
			wantError(t, c(t, taskRequest(method, noSuchTask)), wire.CodeMethodNotFound)
		}
	})
}

// Malformed params are answered with an error that does not repeat
// it, and the server goes on.
func TestMalformedParams(t *testing.T) {
	onEveryTransport(t, withGreeter, func(t *testing.T, h *host, c client) {
		id := created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
		declared := meta(withTasks)
		for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
			for _, params := range []string{
				`{` + declared + `}`,
				`{"taskId":null,` + declared + `}`,
				`{"taskId":41414141,` + declared + `}`,
				`{"taskId":["secret"],"inputResponses":{},` + declared + `}`,
				`{"taskId":{"secret":1},"inputResponses":{},` + declared + `}`,
				`{"taskID":"` + id + `","inputResponses":{},` + declared + `}`,
				`{"taskId":"` + id + `","taskId":"` + id + `","inputResponses":{},` + declared + `}`,
				`{"taskId":"` + noSuchTask + `","inputResponses":{"secret":{"secret":1,"secret":2}},` + declared + `}`,
			} {
				text := `{"jsonrpc":"2.0","id":9,"method":"` + method + `","params":` + params + `}`
				failure := wantError(t, c(t, text), wire.CodeInvalidParams).String()
				if strings.Contains(failure, "secret") || strings.Contains(failure, "41414141") {
					t.Errorf("%s %s: the error repeats the params: %s", method, params, failure)
				}
			}
		}
		for _, responses := range []string{`null`, `[]`, `"secret"`, `7`} {
			wantError(t, c(t, update(id, responses)), wire.CodeInvalidParams)
		}
		h.await(t, id, wire.StatusInputRequired)
		failure := wantError(t, c(t, update(id, `{"title":{"action":"secret"}}`)), wire.CodeInvalidParams)
		if strings.Contains(failure.String(), "secret") {
			t.Errorf("the error repeats an answer: %s", failure)
		}
		if asked := result(t, c(t, taskRequest(wire.MethodGet, id))); asked.Get("inputRequests").Get("title").IsZero() {
			t.Errorf("an invalid answer was taken: %s", asked)
		}
	})
}

// A session of an older protocol revision can send params that a modern one
// cannot: none at all. The SDK hands them over as a nil pointer.
func TestAbsentParams(t *testing.T) {
	h := withGreeter(t)
	h.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if strings.HasPrefix(method, "tasks/") {
				req.GetParams().GetMeta() // as middleware that traces requests does
			}
			return next(ctx, method, req)
		}
	})
	c := h.overPipes(t)
	started := c(t, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`)
	if started.Get("result").IsZero() {
		t.Fatal(started)
	}
	for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
		for _, rest := range []string{`}`, `,"params":null}`, `,"params":{}}`, `,"params":[]}`, `,"params":"x"}`} {
			failure := c(t, `{"jsonrpc":"2.0","id":1,"method":"`+method+`"`+rest).Get("error")
			switch code := failure.Get("code").String(); code {
			case "-32021", "-32602":
			default:
				t.Errorf("%s%s: %s", method, rest, failure)
			}
		}
	}
	// A request may declare the revision and the extension on its own.
	created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
	// And one of the session's own revision is not served.
	old := strings.ReplaceAll(taskRequest(wire.MethodGet, noSuchTask), "2026-07-28", "2025-11-25")
	wantError(t, c(t, old), wire.CodeUnsupportedProtocolVersion)
}

// brokenStore fails to read.
type brokenStore struct {
	durabletasks.MemStore
	panics bool
}

func (s *brokenStore) Get(context.Context, string) (durabletasks.Record, error) {
	if s.panics {
		panic("secret")
	}
	return durabletasks.Record{}, errors.New("disk secret")
}

func TestFaultsOfTheServerAreNotTold(t *testing.T) {
	for _, panics := range []bool{false, true} {
		h := newHostOver(t, &brokenStore{panics: panics}, nil)
		c := h.inMemory(t)
		for _, text := range []string{taskRequest(wire.MethodGet, noSuchTask), update(noSuchTask, "{}"), taskRequest(wire.MethodCancel, noSuchTask)} {
			if got := c(t, text).Get("error").String(); got != `{"code":-32603,"message":"Internal error"}` {
				t.Errorf("got %s", got)
			}
		}
	}
}

func TestInstallNeedsItsParts(t *testing.T) {
	h := newHost(t, nil)
	if _, err := gosdk.Install(nil, h.tasks, nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Error(err)
	}
	if _, err := gosdk.Install(h.server, nil, nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Error(err)
	}
}

// Middleware sees the _meta that decides, and no other that looks like it.
func TestMetaIsExact(t *testing.T) {
	h := withGreeter(t)
	var seen []any
	h.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == wire.MethodGet {
				seen = append(seen, req.GetParams().GetMeta()["tenant"])
			}
			return next(ctx, method, req)
		}
	})
	c := h.inMemory(t)
	with := strings.Replace(taskRequest(wire.MethodGet, noSuchTask), `"_meta":{`, `"_meta":{"tenant":"one",`, 1)
	params := strings.TrimSuffix(with, "}}")
	for _, text := range []string{with, params + `,"_Meta":{"tenant":"two"}}}`, params + `,"_META":null}}`} {
		wantError(t, c(t, text), wire.CodeInvalidParams)
	}
	if want := []any{"one", "one", "one"}; !slices.Equal(seen, want) {
		t.Errorf("middleware sees %v, want %v", seen, want)
	}
}
