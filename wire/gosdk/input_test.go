//lint:file-ignore SA1019 roots and sampling are deprecated, and still what a task may ask

package gosdk_test

import (
	"context"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// A worker gets the answer that was checked and stored, and nothing else that
// the client has added.
func TestAnswerIsWhatWasChecked(t *testing.T) {
	messages := &mcp.CreateMessageParams{MaxTokens: 1, Messages: []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: "Hi"}}}}
	for _, tt := range []struct {
		what   string
		asked  mcp.InputRequest
		answer string
		want   mcp.InputResponse
	}{
		{"form", titleForm, `{"action":"accept","content":{"title":"Lady","n":1,"list":["a"],"yes":true},"_meta":{"k":1}}`,
			&mcp.ElicitResult{Meta: mcp.Meta{"k": 1.0}, Action: "accept", Content: map[string]any{"title": "Lady", "n": 1.0, "list": []any{"a"}, "yes": true}}},
		{"form in another case", titleForm, `{"action":"decline","Action":"accept","CONTENT":{"title":{"a":1}}}`,
			&mcp.ElicitResult{Action: "decline"}},
		{"form as roots", titleForm, `{"action":"accept","content":{},"roots":[],"role":"user"}`,
			&mcp.ElicitResult{Action: "accept", Content: map[string]any{}}},
		{"whole numbers", titleForm, `{"action":"accept","content":{"a":9007199254740993,"b":-9007199254740993,"c":1e3,"d":9007199254740992,"e":9007199254740993.0,"f":0.1,"g":12345678901234567890123}}`,
			&mcp.ElicitResult{Action: "accept", Content: map[string]any{"a": json.Number("9007199254740993"), "b": json.Number("-9007199254740993"), "c": 1e3, "d": 9007199254740992.0,
				"e": json.Number("9007199254740993.0"), "f": 0.1, "g": json.Number("12345678901234567890123")}}},
		{"huge number", titleForm, `{"action":"accept","content":{"n":1e400},"_meta":{"k":1e400}}`,
			&mcp.ElicitResult{Action: "accept", Content: map[string]any{"n": json.Number("1e400")}}},
		{"roots", &mcp.ListRootsParams{}, `{"roots":[{"uri":"file:///a","name":"A","URI":"http://b","_meta":{"k":"v"}}],"Roots":[],"action":"accept"}`,
			&mcp.ListRootsResult{Roots: []*mcp.Root{{Meta: mcp.Meta{"k": "v"}, Name: "A", URI: "file:///a"}}}},
		{"message", messages, `{"role":"assistant","model":"m","Model":"M","content":{"type":"text","text":"Hello","Text":"Bye"},"Content":[],"action":"decline"}`,
			&mcp.CreateMessageWithToolsResult{Role: "assistant", Model: "m", Content: []mcp.Content{&mcp.TextContent{Text: "Hello"}}}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			h := newHost(t, nil)
			got := make(chan mcp.InputResponse, 1)
			addTaskTool(h.adapter, &mcp.Tool{Name: "ask"}, func(ctx context.Context, task *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
				answers, err := gosdk.RequestInput(ctx, task, mcp.InputRequestMap{"key": tt.asked}, nil)
				got <- answers["key"]
				return text("done"), err
			}, nil)
			c := h.inMemory(t)
			id := created(t, c(t, toolCall("ask", `{}`)))
			h.await(t, id, wire.StatusInputRequired)
			result(t, c(t, update(id, `{"key":`+tt.answer+`}`)))
			if got := <-got; !reflect.DeepEqual(got, tt.want) {
				t.Errorf("got %#v, want %#v", got, tt.want)
			}
		})
	}
}

// A value that the form does not take is said to the model with what the form
// takes.
func TestAnswerThatDoesNotFitTheForm(t *testing.T) {
	form := &mcp.ElicitParams{Message: "Which?", RequestedSchema: map[string]any{
		"type": "object",
		"properties": map[string]any{
			"color": map[string]any{"type": "string", "enum": []string{"red", "green"}},
			"size":  map[string]any{"type": "string", "oneOf": []any{map[string]any{"const": "s", "title": "Small"}, map[string]any{"const": "l", "title": "Large"}}},
			"tags":  map[string]any{"type": "array", "items": map[string]any{"type": "string", "enum": []string{"a", "b"}}},
			"more":  map[string]any{"type": "array", "items": map[string]any{"anyOf": []any{map[string]any{"const": "c", "title": "C"}}}},
			"n/m":   map[string]any{"type": "integer", "minimum": 3},
		},
		"required": []string{"color"},
	}}
	for _, tt := range []struct{ content, want string }{
		{`{"color":"red","size":"l","tags":["b","a"],"more":[],"n/m":3.0,"other":1}`, ``},
		{`{"n/m":9007199254740993}`, ``},
		{`{"color":"secret"}`, `input "ask": at "/content/color": expected one of "red", "green"`},
		{`{"size":"secret"}`, `input "ask": at "/content/size": expected one of "s", "l"`},
		{`{"tags":["a","secret"]}`, `input "ask": at "/content/tags": expected an array of "a", "b"`},
		{`{"more":["secret"]}`, `input "ask": at "/content/more": expected an array of "c"`},
		{`{"n/m":2}`, `input "ask": at "/content/n~1m": expected a value of type integer that fits the form's schema`},
		{`{"n/m":3.5}`, `input "ask": at "/content/n~1m": expected a value of type integer that fits the form's schema`},
	} {
		h := newHost(t, nil)
		addTaskTool(h.adapter, &mcp.Tool{Name: "ask"}, func(ctx context.Context, task *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
			_, err := gosdk.RequestInput(ctx, task, mcp.InputRequestMap{"ask": form}, nil)
			return text("done"), err
		}, nil)
		c := h.inMemory(t)
		id := created(t, c(t, toolCall("ask", `{}`)))
		h.await(t, id, wire.StatusInputRequired)
		result(t, c(t, update(id, `{"ask":{"action":"accept","content":`+tt.content+`}}`)))
		task := h.await(t, id, wire.StatusCompleted)
		want := `{"resultType":"complete","content":[{"type":"text","text":"done"}]}`
		if tt.want != "" {
			words, err := wire.Marshal(tt.want)
			must(t, err)
			want = `{"resultType":"complete","content":[{"text":` + words.String() + `,"type":"text"}],"isError":true}`
		}
		if got := task.Result.String(); got != want {
			t.Errorf("%s: got %s, want %s", tt.content, got, want)
		}
	}
}

// A worker gets the answers that were given in time, and learns which are
// missing.
func TestInputWithATimeout(t *testing.T) {
	h := newHost(t, nil)
	type outcome struct {
		answers mcp.InputResponseMap
		err     error
	}
	got := make(chan outcome, 1)
	addTaskTool(h.adapter, &mcp.Tool{Name: "ask"}, func(ctx context.Context, task *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		answers, err := gosdk.RequestInput(ctx, task, mcp.InputRequestMap{"one": titleForm, "two": titleForm}, &durabletasks.InputOptions{Timeout: 2 * time.Second})
		got <- outcome{answers, err}
		return text("done"), nil
	}, nil)
	c := h.inMemory(t)
	id := created(t, c(t, toolCall("ask", `{}`)))
	h.await(t, id, wire.StatusInputRequired)
	result(t, c(t, update(id, `{"one":{"action":"decline"}}`)))
	in := <-got
	var unanswered *durabletasks.UnansweredError
	if !errors.As(in.err, &unanswered) || !reflect.DeepEqual(unanswered.Keys, []string{"two"}) {
		t.Errorf("got %v", in.err)
	}
	if want := (mcp.InputResponseMap{"one": &mcp.ElicitResult{Action: "decline"}}); !reflect.DeepEqual(in.answers, want) {
		t.Errorf("answers %v", in.answers)
	}
	h.await(t, id, wire.StatusCompleted)
}

// No text that a model reads names a package of the library.
func TestErrorsOfRequestInputNameNoPackage(t *testing.T) {
	h := newHost(t, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "nothing"}, func(ctx context.Context, task *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		_, err := gosdk.RequestInput(ctx, task, nil, nil)
		return nil, err
	}, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "no JSON"}, func(ctx context.Context, task *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		_, err := gosdk.RequestInput(ctx, task, mcp.InputRequestMap{"a": &mcp.ElicitParams{RequestedSchema: func() {}}}, nil)
		return nil, err
	}, nil)
	c := h.inMemory(t)
	for _, name := range []string{"nothing", "no JSON"} {
		task := h.await(t, created(t, c(t, toolCall(name, `{}`))), wire.StatusCompleted)
		got := task.Result.String()
		if task.Result.Get("isError").String() != "true" || strings.Contains(got, "gosdk") || strings.Contains(got, "durabletasks") || strings.Contains(got, "wire") {
			t.Errorf("got %s", got)
		}
	}
}
