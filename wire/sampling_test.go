package wire_test

import (
	"slices"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func TestSamplingRequest(t *testing.T) {
	got, err := wire.SamplingRequest{
		Messages: []wire.SamplingMessage{
			{Text: "Hi <&>"},
			{Role: wire.RoleAssistant, Content: wire.TextContent("")},
			{Content: wire.ImageContent("image/png", []byte("hi"))},
			{Content: wire.MustParse(`[{"type":"text","text":"a"}]`)},
		},
		MaxTokens: 100, SystemPrompt: "S", StopSequences: []string{"END"}, ModelHints: []string{"small", "big"},
		Extra: wire.MustParse(`{"temperature":0.10,"x":null}`),
	}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	want := `{"method":"sampling/createMessage","params":{"messages":[` +
		`{"role":"user","content":{"type":"text","text":"Hi <&>"}},{"role":"assistant","content":{"type":"text","text":""}},` +
		`{"role":"user","content":{"type":"image","mimeType":"image/png","data":"aGk="}},{"role":"user","content":[{"type":"text","text":"a"}]}],` +
		`"maxTokens":100,"systemPrompt":"S","stopSequences":["END"],"modelPreferences":{"hints":[{"name":"small"},{"name":"big"}]},"temperature":0.10,"x":null}}`
	if got.String() != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got, want := wire.AudioContent("audio/wav", nil).String(), `{"type":"audio","mimeType":"audio/wav","data":""}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestSamplingRequestRefuses(t *testing.T) {
	hello := []wire.SamplingMessage{{Text: "Hello"}}
	for _, r := range []wire.SamplingRequest{
		{},
		{MaxTokens: 1},
		{Messages: hello},
		{Messages: hello, MaxTokens: -1},
		{Messages: []wire.SamplingMessage{{}}, MaxTokens: 1},
		{Messages: []wire.SamplingMessage{{Text: "a", Content: wire.TextContent("b")}}, MaxTokens: 1},
		{Messages: []wire.SamplingMessage{{Role: "system", Text: "a"}}, MaxTokens: 1},
		{Messages: []wire.SamplingMessage{{Content: wire.MustParse(`"a"`)}}, MaxTokens: 1},
		{Messages: []wire.SamplingMessage{{Content: wire.MustParse(`{"type":"resource_link","name":"n","uri":"u"}`)}}, MaxTokens: 1},
		{Messages: hello, MaxTokens: 1, Extra: wire.MustParse(`[]`)},
		{Messages: hello, MaxTokens: 1, Extra: wire.MustParse(`{"temperature":"hot"}`)},
		{Messages: hello, MaxTokens: 1, Extra: wire.MustParse(`{"maxTokens":2}`)},
		{Messages: hello, MaxTokens: 1, Extra: wire.MustParse(`{"metadata":{"a":` + nested(wire.MaxDepth-2) + `}}`)},
	} {
		if got, err := r.JSON(); err == nil || !got.IsZero() {
			t.Errorf("%+v = %s, %v", r, got, err)
		}
	}
}

func TestSamplingResult(t *testing.T) {
	for _, test := range []struct {
		answer            string
		text, model, stop string
		blocks            int
	}{
		{`{"model":"m","role":"assistant","content":{"type":"text","text":"a\nb"},"stopReason":"endTurn"}`, "a\nb", "m", "endTurn", 1},
		{`{"model":"m","role":"assistant","content":[{"type":"text","text":"a"},{"type":"tool_use","id":"1","name":"f","input":{}},{"type":"text","text":"b"}]}`, "ab", "m", "", 3},
		{`{"model":"m","role":"assistant","content":[]}`, "", "m", "", 0},
		{`{}`, "", "", "", 0},
		{`[]`, "", "", "", 0},
	} {
		r := wire.SamplingResult(wire.MustParse(test.answer))
		if r.Text() != test.text || r.Model() != test.model || r.StopReason() != test.stop || len(r.Content()) != test.blocks {
			t.Errorf("%s = %q, %q, %q, %v", test.answer, r.Text(), r.Model(), r.StopReason(), r.Content())
		}
	}
}

func TestRoots(t *testing.T) {
	request, err := wire.RootsRequest{}.JSON()
	if err != nil || request.String() != `{"method":"roots/list"}` || wire.CheckInputRequest(request) != nil {
		t.Errorf("got %s, %v", request, err)
	}
	r := wire.RootsResult(wire.MustParse(`{"roots":[{"uri":"file:///a","name":"A"},{"uri":"file:///b"}]}`))
	if want := []wire.Root{{"file:///a", "A"}, {"file:///b", ""}}; !slices.Equal(r.Roots(), want) {
		t.Errorf("got %v, want %v", r.Roots(), want)
	}
	for _, r := range []wire.RootsResult{{}, wire.RootsResult(wire.MustParse(`{"roots":[]}`)), wire.RootsResult(wire.MustParse(`{"roots":{"uri":"file:///"}}`))} {
		if got := r.Roots(); len(got) != 0 {
			t.Errorf("%v = %v", r, got)
		}
	}
}
