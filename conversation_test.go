package durabletasks_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var updateGolden = flag.Bool("update", false, "write the golden answers anew")

// TestConversations replays what the official client has sent, as described
// in testdata/conversations/README.md, through wire.Dispatch and the engine,
// and compares every answer.
func TestConversations(t *testing.T) {
	files, err := filepath.Glob("testdata/conversations/*.jsonl")
	if err != nil || len(files) == 0 {
		t.Fatal("no conversations", err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(file, ".jsonl")
		t.Run(filepath.Base(name), func(t *testing.T) {
			recorded, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var answers []byte
			synctest.Test(t, func(t *testing.T) { answers = replay(t, recorded) })
			if *updateGolden {
				if err := os.WriteFile(name+".golden", answers, 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			golden, err := os.ReadFile(name + ".golden")
			if err != nil {
				t.Fatal(err)
			}
			got, want := strings.Split(string(answers), "\n"), strings.Split(string(golden), "\n")
			for i := range max(len(got), len(want)) {
				g, w := "nothing", "nothing"
				if i < len(got) {
					g = got[i]
				}
				if i < len(want) {
					w = want[i]
				}
				if g != w {
					t.Fatalf("answer %d\n got %s\nwant %s", i+1, g, w)
				}
			}
		})
	}
}

// replay plays one conversation, each request at its time, and returns the
// answers, one per line.
func replay(t *testing.T, recorded []byte) []byte {
	t.Helper()
	began := time.Now()
	made := 0
	tasks := open(t, &durabletasks.MemStore{}, &durabletasks.Options{
		PollInterval: 100 * time.Millisecond,
		NewID:        func() string { made++; return fmt.Sprintf("task-%d", made) },
	})
	h := conversationHost{tasks: tasks, created: make(map[wire.JSON]string), ids: make(map[string]string)}
	for line := range bytes.Lines(recorded) {
		message, err := wire.ParseJSON(line)
		if err != nil {
			t.Fatal(err)
		}
		var at int64
		if err := message.Get("at").Decode(&at); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(at)*time.Millisecond - time.Since(began))
		synctest.Wait()
		if answer := message.Get("server"); !answer.IsZero() {
			id, _ := answer.Get("result").Get("taskId").Text()
			h.ids[id] = h.created[answer.Get("id")]
			continue
		}
		h.serve(t, message.Get("client"))
	}
	return h.answers.Bytes()
}

// conversationHost is the smallest host: it has no SDK, and some tools.
type conversationHost struct {
	tasks   *durabletasks.TaskLifecycle
	created map[wire.JSON]string // ids of tasks, by the id of the request that made them
	ids     map[string]string    // ids of tasks, by the id that they had when recorded
	answers bytes.Buffer
}

// serve answers one request, if it is about tasks: the rest of a conversation
// is an SDK's.
func (h *conversationHost) serve(t *testing.T, request wire.JSON) {
	t.Helper()
	method, _ := request.Get("method").Text()
	params := request.Get("params")
	var result wire.Result
	var failure error
	switch {
	case method == "tools/call":
		name, _ := params.Get("name").Text()
		tool, ok := conversationTools[name]
		switch {
		case !ok:
			return // a tool without tasks
		case !wire.DeclaresTasks(params):
			failure = wire.MissingCapability()
		default:
			created, err := h.tasks.StartTask(t.Context(), nil, tool(params.Get("arguments")))
			if err != nil {
				t.Fatal(err)
			}
			h.created[request.Get("id")] = created.TaskID
			result = created
		}
	case strings.HasPrefix(method, "tasks/"):
		text := params.String()
		for _, recorded := range slices.Sorted(maps.Keys(h.ids)) {
			text = strings.ReplaceAll(text, recorded, h.ids[recorded])
		}
		result, failure = wire.Dispatch(t.Context(), h.tasks, method, []byte(text))
	default:
		return
	}
	fmt.Fprintf(&h.answers, `{"jsonrpc":"2.0","id":%s,`, request.Get("id"))
	var rpc *wire.Error
	if errors.As(failure, &rpc) {
		fmt.Fprintf(&h.answers, "\"error\":%s}\n", rpc.AppendJSON(nil))
	} else {
		fmt.Fprintf(&h.answers, "\"result\":%s}\n", result.AppendJSON(nil))
	}
}

// conversationTools are the tools that the recorded client called.
var conversationTools = map[string]func(arguments wire.JSON) durabletasks.Worker{
	"echo_task": func(arguments wire.JSON) durabletasks.Worker {
		return func(ctx context.Context, _ *durabletasks.Handle) (wire.JSON, error) {
			var in struct {
				Text  string `json:"text"`
				Delay int64  `json:"ms"`
			}
			if err := arguments.Decode(&in); err != nil {
				return wire.JSON{}, err
			}
			select {
			case <-time.After(time.Duration(in.Delay) * time.Millisecond):
				return textResult(in.Text)
			case <-ctx.Done():
				return wire.JSON{}, context.Cause(ctx)
			}
		}
	},
	"ask_task":     func(wire.JSON) durabletasks.Worker { return greeter("name") },
	"ask_two_task": func(wire.JSON) durabletasks.Worker { return greeter("first", "second") },
	"slow_task": func(wire.JSON) durabletasks.Worker {
		return func(ctx context.Context, _ *durabletasks.Handle) (wire.JSON, error) {
			<-ctx.Done()
			return wire.JSON{}, context.Cause(ctx)
		}
	},
	"fail_task": func(wire.JSON) durabletasks.Worker {
		return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, &wire.Error{Code: wire.CodeInternalError, Message: "The machine is on fire"}
		}
	},
	"tool_error_task": func(wire.JSON) durabletasks.Worker {
		return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, errors.New("the tool could not do it")
		}
	},
}

// greeter asks for a name by each of the keys, and greets them.
func greeter(keys ...string) durabletasks.Worker {
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		requests := make(map[string]wire.JSON)
		for _, key := range keys {
			form, err := wire.FormRequest{
				Message: "What is the " + key + "?",
				Fields:  []wire.Field{{Name: "name", Required: true}},
			}.JSON()
			if err != nil {
				return wire.JSON{}, err
			}
			requests[key] = form
		}
		answers, err := h.RequestInput(ctx, requests, nil)
		if err != nil {
			return wire.JSON{}, err
		}
		var names []string
		for _, key := range keys {
			name, _ := wire.ElicitResult(answers[key]).Text("name")
			names = append(names, name)
		}
		return textResult("Hello, " + strings.Join(names, " and "))
	}
}

func textResult(text string) (wire.JSON, error) {
	return wire.Marshal(map[string]any{"content": []any{map[string]any{"type": "text", "text": text}}})
}
