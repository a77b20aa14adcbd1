package gosdk_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// logged is a log of failures that a test reads.
type logged struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *logged) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(b)
}

func (l *logged) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

func (l *logged) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelError}))
}

// A path is one of the three on which a task tool's handler runs: it returns
// the result or error of a call.
type path func(t *testing.T, store survivor, add func(*gosdk.Adapter), name, arguments string, log *slog.Logger) (result, failure wire.JSON)

func onEveryPath(t *testing.T, story func(t *testing.T, run path)) {
	t.Run("task", func(t *testing.T) { story(t, runAsTask) })
	t.Run("inline", func(t *testing.T) { story(t, runInline) })
	t.Run("after a restart", func(t *testing.T) { story(t, runAfterRestart) })
}

func runAsTask(t *testing.T, store survivor, add func(*gosdk.Adapter), name, arguments string, log *slog.Logger) (wire.JSON, wire.JSON) {
	h := newHostOver(t, store, &gosdk.Options{Logger: log})
	add(h.adapter)
	answer := h.inMemory(t)(t, toolCall(name, arguments))
	id, ok := answer.Get("result").Get("taskId").Text()
	if !ok {
		return answer.Get("result"), answer.Get("error")
	}
	return h.end(t, id)
}

func runInline(t *testing.T, store survivor, add func(*gosdk.Adapter), name, arguments string, log *slog.Logger) (wire.JSON, wire.JSON) {
	h := newHostOver(t, store, &gosdk.Options{Logger: log})
	add(h.adapter)
	answer := h.inMemory(t)(t, inlineCall(name, arguments))
	return answer.Get("result"), answer.Get("error")
}

func runAfterRestart(t *testing.T, store survivor, add func(*gosdk.Adapter), name, arguments string, log *slog.Logger) (wire.JSON, wire.JSON) {
	if _, err := wire.ParseJSON(arguments); err != nil {
		return runAsTask(t, store, add, name, arguments, log) // they are never stored
	}
	tasks, err := durabletasks.New(store, nil)
	must(t, err)
	made, err := tasks.CreateTask(t.Context(), &durabletasks.CreateOptions{Tool: name, Payload: parse(t, []byte(arguments))})
	must(t, err)
	must(t, tasks.Close())
	h := newHostOver(t, store, &gosdk.Options{Logger: log})
	add(h.adapter)
	result(t, h.inMemory(t)(t, taskRequest(wire.MethodGet, made.TaskID)))
	return h.end(t, made.TaskID)
}

// end waits until a task has ended.
func (h *host) end(t *testing.T, id string) (result, failure wire.JSON) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for task, err := range h.tasks.Watch(ctx, id) {
		must(t, err)
		if task.Status.Terminal() {
			return task.Result, task.Error
		}
	}
	t.Fatal("the task is gone")
	return
}

type transfer struct {
	Amount int64  `json:"amount"`
	To     string `json:"to,omitempty"`
	Extra  any    `json:"extra,omitempty"`
}

// What a client sends is what a handler gets: with every digit, and never with
// a member that somebody else would read in another way.
func TestArgumentsAreExact(t *testing.T) {
	onEveryPath(t, func(t *testing.T, run path) {
		for _, tt := range []struct {
			arguments string
			want      string // what the handler gets; else what is refused, as a tool error or a failure
			refused   string
		}{
			{`{"amount":9007199254740993,"extra":{"n":9007199254740993.25,"list":[1e400]}}`,
				`{9007199254740993 bank map[list:[1e400] n:9007199254740993.25]}`, ``},
			{`{"amount":9223372036854775807,"to":"a"}`, `{9223372036854775807 a <nil>}`, ``},
			{`{"amount":1e3}`, `{1000 bank <nil>}`, ``},
			{`{"amount":20.0}`, `{20 bank <nil>}`, ``},
			{`{"amount":0.0e5}`, `{0 bank <nil>}`, ``},
			{`{"amount":1,"amount":1000}`, ``, `parsing \"arguments\": invalid JSON`},
			{`{"Amount":1}`, ``, `dditional`},
			{`{"amount":1,"Amount":1000}`, ``, `dditional`},
			{`{"amount":1.5}`, ``, `type`},
			{`{"amount":9007199254740993.5}`, ``, `type`},
			{`{"amount":1e-400}`, ``, `type`},
			{`{"amount":9223372036854775808}`, ``, `number`},
			{`{"amount":"1"}`, ``, `type`},
			{`{"amount":1,"to":"nobody!"}`, ``, `pattern`},
		} {
			got := make(chan transfer, 1)
			result, failure := run(t, survivor{&durabletasks.MemStore{}}, func(a *gosdk.Adapter) {
				gosdk.AddTaskTool(a, &mcp.Tool{Name: "transfer", InputSchema: json.RawMessage(`{
					"type":"object","properties":{
						"amount":{"type":"integer"},
						"to":{"type":"string","default":"bank","pattern":"^[a-z]*$"},
						"extra":{"properties":{"list":{"items":{"type":"number","minimum":1}}}}
					},"required":["amount"],"additionalProperties":false}`)},
					func(_ context.Context, _ *durabletasks.Handle, in transfer) (*mcp.CallToolResult, any, error) {
						got <- in
						return text("done"), nil, nil
					}, nil)
			}, "transfer", tt.arguments, nil)
			if tt.want != "" {
				select {
				case in := <-got:
					if s := fmt.Sprint(in); s != tt.want {
						t.Errorf("%s: the handler gets %s, want %s", tt.arguments, s, tt.want)
					}
				default:
					t.Errorf("%s: %s %s", tt.arguments, result, failure)
				}
				continue
			}
			if len(got) > 0 {
				t.Errorf("%s: the handler gets %v", tt.arguments, <-got)
			}
			why := result.Get("content").String() + failure.Get("message").String()
			if !strings.Contains(why, tt.refused) || result.Get("isError").String() != "true" && failure.Get("code").String() != "-32602" {
				t.Errorf("%s: %s %s", tt.arguments, result, failure)
			}
		}
	})
}

// A client sees the same of arguments, right and wrong, as from mcp.AddTool.
func TestArgumentsAsByTheSDK(t *testing.T) {
	h := newHost(t, nil)
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "ours"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(in)), nil, nil
	}, nil)
	mcp.AddTool(h.server, &mcp.Tool{Name: "theirs"}, func(_ context.Context, _ *mcp.CallToolRequest, in greeting) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(in)), nil, nil
	})
	c := h.inMemory(t)
	for _, arguments := range []string{
		`{}`, `{"name":1}`, `{"name":"a","words":"b"}`, `{"name":"a","words":1.5}`, `{"name":"a","more":true}`,
		`{"name":"a","words":2}`, `{"name":"a","words":2e1}`,
	} {
		ours, theirs := result(t, c(t, inlineCall("ours", arguments))), result(t, c(t, inlineCall("theirs", arguments)))
		if ours != theirs {
			t.Errorf("%s: %s\nthe SDK's: %s", arguments, ours, theirs)
		}
	}
	// And the tool looks the same.
	list := result(t, c(t, request("tools/list", "", withTasks))).Get("tools").String()
	if theirs := strings.ReplaceAll(list, `"ours"`, `"theirs"`); theirs != strings.Replace(list, `"ours"`, `"theirs"`, 1) || strings.Count(theirs, `"theirs"`) != 2 {
		t.Errorf("tools: %s", list)
	}
}

// Numbers with a huge exponent cost no more than others.
func TestArgumentsWithHugeExponents(t *testing.T) {
	h := newHost(t, nil)
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "count"}, func(_ context.Context, _ *durabletasks.Handle, in struct {
		List []any `json:"list"`
	}) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(len(in.List))), nil, nil
	}, nil)
	for _, number := range []string{"1e-999999", "1e999999", "0e999999"} {
		list := strings.Repeat(number+",", 20000) + number
		began := time.Now()
		answer := h.inMemory(t)(t, inlineCall("count", `{"list":[`+list+`]}`))
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: %v", number, took)
		}
		if answer.Get("result").IsZero() {
			t.Errorf("%s: %s", number, answer)
		}
	}
}

func TestAbsentArguments(t *testing.T) {
	h := newHost(t, nil)
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "any"}, func(_ context.Context, _ *durabletasks.Handle, in any) (*mcp.CallToolResult, any, error) {
		return text(fmt.Sprint(in)), nil, nil
	}, nil)
	c := h.inMemory(t)
	for _, members := range []string{`"name":"any"`, `"name":"any","arguments":null`, `"name":"any","arguments":{}`} {
		id := created(t, c(t, request("tools/call", members, withTasks)))
		if task := h.await(t, id, wire.StatusCompleted); !strings.Contains(task.Result.String(), "map[]") {
			t.Errorf("%s: %s", members, task.Result)
		}
	}
}

type count struct {
	N    int64  `json:"n"`
	Unit string `json:"unit,omitempty"`
}

// A handler's output becomes the structured content, which keeps every digit
// and gets the schema's defaults.
func TestTypedOutput(t *testing.T) {
	const oneText = `[{"type":"text","text":%q}]`
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":9223372036854775807},"unit":{"type":"string","default":"pages"}},"required":["n"]}`)
	for name, tt := range map[string]struct {
		add        func(a *gosdk.Adapter)
		structured string
		content    string // if not the structured content
	}{
		"struct": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, count, error) {
				return nil, count{N: 9007199254740993, Unit: "words"}, nil
			}, nil)
		}, `{"n":9007199254740993,"unit":"words"}`, ``},
		"default": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool", OutputSchema: schema}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, count, error) {
				return nil, count{N: 9007199254740993}, nil
			}, nil)
		}, `{"n":9007199254740993,"unit":"pages"}`, ``},
		"content of its own": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, count, error) {
				return text("two"), count{N: 2}, nil
			}, nil)
		}, `{"n":2}`, `[{"type":"text","text":"two"}]`},
		"no object": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, []int, error) {
				return text("two"), []int{1, 2}, nil
			}, nil)
		}, `[1,2]`, `[{"type":"text","text":"two"},{"type":"text","text":"[1,2]"}]`},
		"nil pointer": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, *count, error) {
				return nil, nil, nil
			}, nil)
		}, `{"n":0}`, ``},
		"nil map": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, map[string]int, error) {
				return nil, nil, nil
			}, nil)
		}, `{}`, ``},
		"any": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, map[string]any{"n": 1}, nil
			}, nil)
		}, `{"n":1}`, ``},
		"the result's": {func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool", OutputSchema: schema}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
				return &mcp.CallToolResult{StructuredContent: count{N: 3}}, nil, nil
			}, nil)
		}, `{"n":3,"unit":"pages"}`, `[]`},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryPath(t, func(t *testing.T, run path) {
				result, failure := run(t, survivor{&durabletasks.MemStore{}}, tt.add, "tool", `{}`, nil)
				if got := result.Get("structuredContent").String(); got != tt.structured {
					t.Errorf("structured content %s, want %s; %s", got, tt.structured, failure)
				}
				want := tt.content
				if want == "" {
					want = parse(t, fmt.Appendf(nil, oneText, tt.structured)).String()
				}
				if got := result.Get("content").String(); got != want {
					t.Errorf("content %s, want %s", got, want)
				}
			})
		})
	}
}

// Output that does not fit the schema reaches no client, and the log says where
// it failed, without the output.
func TestOutputSchemaIsEnforced(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer","maximum":10},"unit":{"enum":["a","b"]}},"required":["n"]}`)
	type handler = gosdk.TaskHandlerFor[struct{}, any]
	structured := func(v any) handler {
		return func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{StructuredContent: v}, nil, nil
		}
	}
	for name, tt := range map[string]struct {
		handler handler
		where   string // in the log; empty if the output fits
	}{
		"fits": {structured(json.RawMessage(`{"n":1e1,"unit":"a"}`)), ``},
		"output": {func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, map[string]any{"n": 1, "unit": "secret"}, nil
		}, `/properties/unit: enum`},
		"result's own": {structured(map[string]any{"n": "secret"}), `/properties/n: type`},
		"too large":    {structured(json.RawMessage(`{"n":10.0000000000000000000000001}`)), `/properties/n: type`},
		"no member":    {structured(map[string]any{"secret": 1}), `root: required: missing properties: [\\\"n\\\"]`},
		"missing": {func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return text("secret"), nil, nil
		}, `the output is missing`},
		"of a tool error": {func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: true, StructuredContent: map[string]any{"n": 11}}, nil, nil
		}, `/properties/n: maximum`},
		"tool error": {func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return &mcp.CallToolResult{IsError: true}, nil, nil
		}, ``},
		"error": {func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, errors.New("not today")
		}, ``},
	} {
		t.Run(name, func(t *testing.T) {
			onEveryPath(t, func(t *testing.T, run path) {
				var log logged
				result, failure := run(t, survivor{&durabletasks.MemStore{}}, func(a *gosdk.Adapter) {
					gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool", OutputSchema: schema}, tt.handler, nil)
				}, "tool", `{}`, log.logger())
				if tt.where == "" {
					if result.IsZero() || log.String() != "" {
						t.Errorf("failed with %s; log %s", failure, log.String())
					}
					return
				}
				if got := failure.String(); got != `{"code":-32603,"message":"The tool's output does not match its output schema"}` {
					t.Errorf("got %s %s", result, failure)
				}
				if got := log.String(); !strings.Contains(got, "tool=tool") || !strings.Contains(got, strings.ReplaceAll(tt.where, `\\\"`, `\"`)) || strings.Contains(got, "secret") {
					t.Errorf("log %s", got)
				}
			})
		})
	}
}

// A tool error needs no output.
func TestToolErrorOfATypedHandler(t *testing.T) {
	onEveryPath(t, func(t *testing.T, run path) {
		result, failure := run(t, survivor{&durabletasks.MemStore{}}, func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, count, error) {
				r := text("not today")
				r.IsError = true
				return r, count{}, nil
			}, nil)
		}, "tool", `{}`, nil)
		if result.Get("isError").String() != "true" || !result.Get("structuredContent").IsZero() {
			t.Errorf("got %s %s", result, failure)
		}
	})
}

// A typed handler that has ended its task by its handle, or leaves because its
// context has ended, has no output that could be wrong.
func TestTypedHandlerThatHasEndedItsTask(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","required":["unit"]}`)
	var log logged
	h := newHost(t, &gosdk.Options{Logger: log.logger()})
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "ends", OutputSchema: schema}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, count, error) {
		return nil, count{}, h.Complete(ctx, wire.MustParse(`{"content":[],"own":true}`))
	}, nil)
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "leaves", OutputSchema: schema}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, count, error) {
		<-ctx.Done()
		return nil, count{}, nil
	}, nil)
	c := h.inMemory(t)
	if task := h.await(t, created(t, c(t, toolCall("ends", `{}`))), wire.StatusCompleted); task.Result.Get("own").String() != "true" {
		t.Errorf("result %s", task.Result)
	}
	id := created(t, c(t, toolCall("leaves", `{}`)))
	result(t, c(t, taskRequest(wire.MethodCancel, id)))
	h.await(t, id, wire.StatusCancelled)
	if log.String() != "" {
		t.Errorf("log %s", log.String())
	}
}

// Arguments that a newer version of the tool does not take fail the task, and
// the client learns what to do.
func TestStoredArgumentsThatNoLongerFit(t *testing.T) {
	for _, tt := range []struct{ arguments, want string }{
		{`{"n":"secret"}`, `/properties/n: type`},
		{`{"unit":"secret"}`, `root: required: missing properties: [\"n\"]`},
		{`{"n":1,"secret":1}`, `root: additionalProperties`},
	} {
		var log logged
		_, failure := runAfterRestart(t, survivor{&durabletasks.MemStore{}}, func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, count) (*mcp.CallToolResult, any, error) {
				t.Error("the handler ran")
				return nil, nil, nil
			}, nil)
		}, "tool", tt.arguments, log.logger())
		want := `{"code":-32602,"message":"The tool has changed and no longer takes the arguments of this call (` + tt.want + `). Call it again."}`
		if failure.String() != want {
			t.Errorf("got %s, want %s", failure, want)
		}
		if got := log.String(); !strings.Contains(got, "tool=tool") || strings.Contains(got, "secret") {
			t.Errorf("log %s", got)
		}
	}
}

func TestNoResult(t *testing.T) {
	onEveryPath(t, func(t *testing.T, run path) {
		_, failure := run(t, survivor{&durabletasks.MemStore{}}, func(a *gosdk.Adapter) {
			gosdk.AddTaskTool(a, &mcp.Tool{Name: "tool"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			}, nil)
		}, "tool", `{}`, nil)
		if got := failure.String(); got != `{"code":-32603,"message":"The tool returned no result"}` {
			t.Errorf("got %s", got)
		}
	})
}

func TestAddTaskToolPanics(t *testing.T) {
	work := func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	}
	h := newHost(t, nil)
	gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "known"}, work, nil)
	tool := &mcp.Tool{Name: "tool"}
	for want, add := range map[string]func(){
		"the adapter is nil":        func() { gosdk.AddTaskTool(nil, tool, work, nil) },
		"the tool is nil":           func() { gosdk.AddTaskTool(h.adapter, nil, work, nil) },
		"the handler is nil":        func() { gosdk.AddTaskTool[struct{}, any](h.adapter, tool, nil, nil) },
		`tool "known": the adapter`: func() { gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "known"}, work, nil) },
		`tool "tool": input schema`: func() {
			gosdk.AddTaskTool(h.adapter, tool, func(context.Context, *durabletasks.Handle, func()) (*mcp.CallToolResult, any, error) {
				return nil, nil, nil
			}, nil)
		},
		`tool "tool": output schema`: func() {
			gosdk.AddTaskTool(h.adapter, tool, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, func(), error) {
				return nil, nil, nil
			}, nil)
		},
		`AddTool "tool": input schema must have type`: func() {
			gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "tool", InputSchema: map[string]any{"type": "array"}}, work, nil)
		},
		"TTL is negative":          func() { gosdk.AddTaskTool(h.adapter, tool, work, &gosdk.TaskToolOptions{TTL: -time.Second}) },
		"PollInterval is negative": func() { gosdk.AddTaskTool(h.adapter, tool, work, &gosdk.TaskToolOptions{PollInterval: -2}) },
		"StatusMessage is not":     func() { gosdk.AddTaskTool(h.adapter, tool, work, &gosdk.TaskToolOptions{StatusMessage: "\xff"}) },
		"Fallback is unknown":      func() { gosdk.AddTaskTool(h.adapter, tool, work, &gosdk.TaskToolOptions{Fallback: 2}) },
	} {
		func() {
			defer func() {
				if p := recover(); !strings.Contains(fmt.Sprint(p), want) {
					t.Errorf("panic %v, want %s", p, want)
				}
			}()
			add()
		}()
	}
}

// Each option of a tool has its effect on its tasks.
func TestTaskToolOptions(t *testing.T) {
	h := newHost(t, nil)
	began := make(chan struct{})
	addTaskTool(h.adapter, &mcp.Tool{Name: "work"}, func(ctx context.Context, _ *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		close(began)
		<-ctx.Done()
		return nil, nil
	}, &gosdk.TaskToolOptions{TTL: durabletasks.NoLimit, PollInterval: 7 * time.Second, StatusMessage: "warming up"})
	c := h.inMemory(t)
	made := result(t, c(t, toolCall("work", `{}`)))
	for member, want := range map[string]string{"ttlMs": "null", "pollIntervalMs": "7000", "statusMessage": `"warming up"`} {
		if got := made.Get(member).String(); got != want {
			t.Errorf("%s is %s, want %s", member, got, want)
		}
	}
	<-began
}

// What a task keeps of its call is the tool's name and what the client sent.
func TestRecordKeepsTheCall(t *testing.T) {
	store := &durabletasks.MemStore{}
	h := newHostOver(t, store, nil)
	work := func(ctx context.Context, _ *durabletasks.Handle) (*mcp.CallToolResult, error) {
		<-ctx.Done()
		return nil, nil
	}
	addTaskTool(h.adapter, &mcp.Tool{Name: "tool", InputSchema: json.RawMessage(`{"type":"object","properties":{"a":{"default":1}}}`)},
		func(ctx context.Context, h *durabletasks.Handle, _ any) (*mcp.CallToolResult, error) {
			return work(ctx, h)
		}, nil)
	h.server.AddTool(&mcp.Tool{Name: "deferred", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, _ *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return nil, gosdk.Defer(ctx, nil, work)
	})
	c := h.inMemory(t)
	for _, name := range []string{"tool", "deferred"} {
		const arguments = `{"big":9007199254740993,"b":1.50}`
		id := created(t, c(t, toolCall(name, arguments)))
		r, err := store.Get(t.Context(), id)
		must(t, err)
		if r.Tool != name || r.Payload.String() != arguments {
			t.Errorf("tool %q, payload %s", r.Tool, r.Payload)
		}
	}
}

// A tool that is added after the tasks were resumed still resumes its own.
func TestToolAddedLate(t *testing.T) {
	store, ids := interrupted(t, storedCall{"late", `{"name":"Ada"}`})
	h := newHostOver(t, store, &gosdk.Options{Owner: asAlice})
	c := h.inMemory(t)
	result(t, c(t, taskRequest(wire.MethodGet, ids[0])))
	addTaskTool(h.adapter, &mcp.Tool{Name: "late"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		return text(in.Name), nil
	}, nil)
	result(t, c(t, taskRequest(wire.MethodGet, ids[0])))
	h.awaitAs(t, "alice", ids[0], wire.StatusCompleted)
}

// limitedStore takes no large records.
type limitedStore struct{ durabletasks.MemStore }

func (s *limitedStore) limit(r *durabletasks.Record) error {
	if size := r.Payload.Len() + r.Result.Len(); size > 1000 {
		return &durabletasks.TooLargeError{Size: size, Limit: 1000}
	}
	return nil
}

func (s *limitedStore) Create(ctx context.Context, r durabletasks.Record) error {
	if err := s.limit(&r); err != nil {
		return err
	}
	return s.MemStore.Create(ctx, r)
}

func (s *limitedStore) Update(ctx context.Context, next durabletasks.Record) error {
	if err := s.limit(&next); err != nil {
		return err
	}
	return s.MemStore.Update(ctx, next)
}

func TestTooLarge(t *testing.T) {
	h := newHostOver(t, &limitedStore{}, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "repeat"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		return text(strings.Repeat(in.Name, in.Words)), nil
	}, nil)
	mcp.AddTool(h.server, &mcp.Tool{Name: "deferred"}, func(ctx context.Context, _ *mcp.CallToolRequest, _ greeting) (*mcp.CallToolResult, any, error) {
		return nil, nil, gosdk.Defer(ctx, nil, func(context.Context, *durabletasks.Handle) (*mcp.CallToolResult, error) { return text("done"), nil })
	})
	c := h.inMemory(t)
	long := `{"name":"` + strings.Repeat("a", 1000) + `"}`
	for _, name := range []string{"repeat", "deferred"} {
		if got := c(t, toolCall(name, long)).Get("error").String(); got != `{"code":-32602,"message":"Invalid params: the arguments are too large to store"}` {
			t.Errorf("%s: got %s", name, got)
		}
	}
	task := h.await(t, created(t, c(t, toolCall("repeat", `{"name":"abcde","words":1000}`))), wire.StatusFailed)
	if got := task.Error.String(); got != `{"code":-32603,"message":"The tool's result is too large to store"}` {
		t.Errorf("got %s", got)
	}
}
