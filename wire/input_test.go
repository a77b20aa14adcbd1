package wire_test

import (
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Values of the wrong kind, for the fields that take only one kind.
var (
	notString  = []string{`null`, `1`, `true`, `[]`, `{}`, `["a"]`}
	notObject  = []string{`null`, `1`, `true`, `"a"`, `[]`, `[{}]`}
	notArray   = []string{`null`, `1`, `true`, `"a"`, `{}`, `{"0":"a","length":1}`}
	notBoolean = []string{`null`, `1`, `0`, `"true"`, `[]`, `{}`}
	notNumber  = []string{`null`, `"1"`, `true`, `[]`, `{}`, `[1]`, `1e400`, `-1e400`}
	notInteger = append([]string{`1.5`, `0.1`, `1e-1`, `9007199254740992`, `-9007199254740992`, `1e16`, `123456789012345678901234567890`}, notNumber...)
	notCount   = append([]string{`-1`, `-0.5`}, notInteger...)
	notUnit    = append([]string{`-0.1`, `1.1`, `2`, `-1`}, notNumber...)
	notTexts   = notArray

	anyText = []string{`""`, `"a"`, `"\ud800"`, `"<é😀>"`}
	anyMap  = []string{`{}`, `{"a":null,"b":[{}]}`}
	anyBool = []string{`true`, `false`}
)

// A fieldTest says what one member of a document may be. Everything else of
// the document stays as it is.
type fieldTest struct {
	at       string            // pointer to the member
	required bool              // whether it must be there
	either   bool              // whether that depends on the members beside it
	accept   []string          // values that it may have
	refuse   []string          // values that it may not have
	inside   map[string]string // values that it may not have because of a part: the part's pointer, from the member
}

// checkFields runs the tests of one document, which must itself be good.
func checkFields(t *testing.T, document string, check func(wire.JSON) error, tests []fieldTest) {
	t.Helper()
	if err := check(wire.MustParse(document)); err != nil {
		t.Fatalf("the document is refused: %v", err)
	}
	for _, test := range tests {
		t.Run(test.at, func(t *testing.T) {
			verdict := func(value, pointer string, good bool) {
				t.Helper()
				edited := edit(t, document, test.at, value)
				err := check(edited)
				var shape *wire.ShapeError
				switch {
				case good && err != nil:
					t.Errorf("%s is refused: %v", value, err)
				case good:
				case !errors.As(err, &shape):
					t.Errorf("%s is accepted (%v)", value, err)
				case shape.Pointer != pointer:
					t.Errorf("%s is refused at %q, want %q (%v)", value, shape.Pointer, pointer, err)
				case shape.Expected == "" || shape.Key != "":
					t.Errorf("%s is refused with %#v", value, shape)
				}
			}
			if !test.either {
				verdict("", test.at, !test.required)
			}
			for _, value := range test.accept {
				verdict(value, "", true)
			}
			for _, value := range test.refuse {
				verdict(value, test.at, false)
			}
			for _, value := range slices.Sorted(maps.Keys(test.inside)) {
				verdict(value, test.at+test.inside[value], false)
			}
		})
	}
}

// edit returns the document with another value at the pointer, or without it
// if the value is empty.
func edit(t *testing.T, document, pointer, value string) wire.JSON {
	t.Helper()
	if pointer == "" {
		return wire.MustParse(value)
	}
	var root any
	if err := wire.MustParse(document).Decode(&root); err != nil {
		t.Fatal(err)
	}
	names := strings.Split(pointer[1:], "/")
	at := root
	for _, name := range names[:len(names)-1] {
		switch node := at.(type) {
		case map[string]any:
			at = node[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil {
				t.Fatal(err)
			}
			at = node[i]
		}
	}
	parent, ok := at.(map[string]any)
	if !ok {
		t.Fatalf("%s has no parent in %s", pointer, document)
	}
	if last := names[len(names)-1]; value == "" {
		delete(parent, last)
	} else {
		parent[last] = json.RawMessage(value)
	}
	edited, err := wire.Marshal(root)
	if err != nil {
		t.Fatal(err)
	}
	return edited
}

const (
	samplingRequest = `{"method":"sampling/createMessage","params":{
		"messages":[
			{"role":"user","content":{"type":"text","text":"Hello","annotations":{"audience":["user","assistant"],"priority":0.5,"lastModified":"2026-07-28T12:00:00Z"},"_meta":{}},"_meta":{}},
			{"role":"user","content":[{"type":"image","data":"aGk=","mimeType":"image/png","annotations":{},"_meta":{}},{"type":"audio","data":"aGk=","mimeType":"audio/wav"}]},
			{"role":"assistant","content":{"type":"tool_use","id":"1","name":"f","input":{},"_meta":{}}},
			{"role":"user","content":[{"type":"tool_result","toolUseId":"1","structuredContent":{},"isError":false,"_meta":{},"content":[
				{"type":"text","text":""},
				{"type":"image","data":"","mimeType":""},
				{"type":"resource_link","name":"n","uri":"u","title":"t","description":"d","mimeType":"m","size":1,"icons":[{"src":"s"}],"annotations":{},"_meta":{}},
				{"type":"resource","resource":{"uri":"u","text":"t","mimeType":"m","_meta":{}},"annotations":{},"_meta":{}},
				{"type":"resource","resource":{"uri":"u","blob":"aGk="}}
			]}]}
		],
		"maxTokens":100,
		"modelPreferences":{"hints":[{"name":"small"}],"costPriority":0.1,"speedPriority":0.2,"intelligencePriority":0.3},
		"systemPrompt":"Be brief.","includeContext":"none","temperature":0.7,"stopSequences":["END"],"metadata":{},
		"tools":[{"name":"f","title":"F","description":"d","inputSchema":{"type":"object","$schema":"s","properties":{}},"outputSchema":{"type":"array","$schema":"s"},
			"annotations":{"title":"t","readOnlyHint":true,"destructiveHint":true,"idempotentHint":true,"openWorldHint":true},
			"icons":[{"src":"s","mimeType":"m","sizes":["48x48","any"],"theme":"dark"}],"_meta":{}}],
		"toolChoice":{"mode":"auto"}
	}}`
	rootsRequest = `{"method":"roots/list","params":{"_meta":{}}}`
	urlRequest   = `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://example.com/"}}`
	formRequest  = `{"method":"elicitation/create","params":{"mode":"form","message":"Who?","requestedSchema":{"type":"object","$schema":"s","required":["s"],"properties":{
		"s":{"type":"string","title":"t","description":"d","default":"x","minLength":1,"maxLength":2,"format":"email"},
		"n":{"type":"number","title":"t","description":"d","default":1.5,"minimum":0,"maximum":2},
		"i":{"type":"integer","default":1,"minimum":0,"maximum":2},
		"b":{"type":"boolean","title":"t","description":"d","default":true},
		"e":{"type":"string","title":"t","description":"d","enum":["x"],"enumNames":["X"],"default":"x"},
		"o":{"type":"string","oneOf":[{"const":"x","title":"X"}],"default":"x"},
		"m":{"type":"array","title":"t","description":"d","minItems":0,"maxItems":1,"items":{"type":"string","enum":["x"]},"default":["x"]},
		"a":{"type":"array","items":{"anyOf":[{"const":"x","title":"X"}]}}
	}}}}`
)

func TestCheckInputRequestEnvelope(t *testing.T) {
	checkFields(t, rootsRequest, wire.CheckInputRequest, []fieldTest{
		{at: "/method", required: true, accept: []string{`"roots/\u006cist"`}, refuse: append([]string{`""`, `"roots"`, `"Roots/list"`, `"tools/call"`, `"roots/list "`}, notString...)},
		{at: "/params", accept: []string{`{}`, `{"x":null}`}, refuse: notObject},
		{at: "/params/_meta", accept: anyMap, refuse: notObject},
	})
	for _, row := range []struct{ request, pointer string }{
		{`null`, ""}, {`[]`, ""}, {`"roots/list"`, ""}, {`{}`, "/method"}, {`{"METHOD":"roots/list"}`, "/method"},
		{`{"method":"elicitation/create"}`, "/params"}, {`{"method":"sampling/createMessage"}`, "/params"},
	} {
		var shape *wire.ShapeError
		if err := wire.CheckInputRequest(wire.MustParse(row.request)); !errors.As(err, &shape) || shape.Pointer != row.pointer {
			t.Errorf("%s is answered with %v, want an error at %q", row.request, err, row.pointer)
		}
	}
	for _, request := range []string{`{"method":"roots/list"}`, `{"method":"roots/list","id":1,"jsonrpc":"2.0","x":null}`} {
		if err := wire.CheckInputRequest(wire.MustParse(request)); err != nil {
			t.Errorf("%s is refused: %v", request, err)
		}
	}
	if err := wire.CheckInputRequest(wire.JSON{}); err == nil {
		t.Error("the absent value is accepted")
	}
}

func TestCheckSamplingRequest(t *testing.T) {
	const message0, message1, use, result = "/params/messages/0", "/params/messages/1", "/params/messages/2/content", "/params/messages/3/content/0"
	const link, resource, blob = result + "/content/2", result + "/content/3", result + "/content/4"
	base64 := fieldTest{
		accept: []string{`""`, `"aGk="`, `"aGk"`, `"aGVsbG8h"`, `" a G k = \n"`, `"a\tGk"`, `"\/+8="`, `"aGl="`, `"AAAA"`, `" \n"`},
		refuse: append([]string{`"a"`, `"aGk=="`, `"aGVsb"`, `"a=Gk"`, `"aGk=A"`, `"_-8="`, `"aG.k"`, `"é"`, `"="`, `"===="`, `"aGVsbG8h="`, `"aGVs===="`, `"aGk=\u00a0"`, `"\ud800"`, `"aGk\u0000"`}, notString...),
	}
	at := func(f fieldTest, pointer string) fieldTest {
		f.at, f.required = pointer, true
		return f
	}
	checkFields(t, samplingRequest, wire.CheckInputRequest, []fieldTest{
		{at: "/params", required: true, accept: []string{`{"messages":[],"maxTokens":1}`, `{"messages":[],"maxTokens":1,"x":null,"_meta":1}`}, refuse: notObject, inside: map[string]string{`{}`: "/messages", `{"messages":[]}`: "/maxTokens"}},
		{at: "/params/maxTokens", required: true, accept: []string{`1`, `0`, `-5`, `1e3`, `100.0`, `-0`, `9007199254740991`, `-9007199254740991`, `9.007199254740991e15`}, refuse: notInteger},
		{at: "/params/systemPrompt", accept: anyText, refuse: notString},
		{at: "/params/includeContext", accept: []string{`"none"`, `"thisServer"`, `"allServers"`}, refuse: append([]string{`""`, `"None"`, `"all"`}, notString...)},
		{at: "/params/temperature", accept: []string{`0`, `-1`, `1.5`, `1e308`, `1e-400`}, refuse: notNumber},
		{at: "/params/stopSequences", accept: []string{`[]`, `["",""]`}, refuse: notTexts, inside: map[string]string{`["a",1]`: "/1", `[null]`: "/0", `[["a"]]`: "/0"}},
		{at: "/params/metadata", accept: anyMap, refuse: notObject},
		{at: "/params/modelPreferences", accept: []string{`{}`, `{"x":null}`}, refuse: notObject},
		{at: "/params/modelPreferences/hints", accept: []string{`[]`, `[{}]`, `[{"name":""},{"other":1}]`}, refuse: notArray, inside: map[string]string{`["a"]`: "/0", `[{},{"name":null}]`: "/1/name"}},
		{at: "/params/modelPreferences/costPriority", accept: []string{`0`, `1`, `1.0`, `0.5`, `1e-5`}, refuse: notUnit},
		{at: "/params/modelPreferences/speedPriority", accept: []string{`0`, `1`}, refuse: notUnit},
		{at: "/params/modelPreferences/intelligencePriority", accept: []string{`0`, `1`}, refuse: notUnit},
		{at: "/params/toolChoice", accept: []string{`{}`}, refuse: notObject},
		{at: "/params/toolChoice/mode", accept: []string{`"auto"`, `"required"`, `"none"`}, refuse: append([]string{`""`, `"any"`}, notString...)},

		{at: "/params/tools", accept: []string{`[]`, `[{"name":"","inputSchema":{"type":"object"}}]`, `[{"name":"f","inputSchema":{"type":"object"},"execution":5}]`}, refuse: notArray, inside: map[string]string{`[1]`: "/0", `[{}]`: "/0/name"}},
		{at: "/params/tools/0/name", required: true, accept: anyText, refuse: notString},
		{at: "/params/tools/0/title", accept: anyText, refuse: notString},
		{at: "/params/tools/0/description", accept: anyText, refuse: notString},
		{at: "/params/tools/0/_meta", accept: anyMap, refuse: notObject},
		{at: "/params/tools/0/inputSchema", required: true, accept: []string{`{"type":"object"}`, `{"type":"object","properties":5}`}, refuse: notObject, inside: map[string]string{`{}`: "/type"}},
		{at: "/params/tools/0/inputSchema/type", required: true, accept: []string{`"object"`}, refuse: append([]string{`"string"`, `["object"]`}, notString...)},
		{at: "/params/tools/0/inputSchema/$schema", accept: anyText, refuse: notString},
		{at: "/params/tools/0/outputSchema", accept: []string{`{}`, `{"type":"string"}`, `{"type":["a",1]}`}, refuse: notObject},
		{at: "/params/tools/0/outputSchema/$schema", accept: anyText, refuse: notString},
		{at: "/params/tools/0/annotations", accept: []string{`{}`}, refuse: notObject},
		{at: "/params/tools/0/annotations/title", accept: anyText, refuse: notString},
		{at: "/params/tools/0/annotations/readOnlyHint", accept: anyBool, refuse: notBoolean},
		{at: "/params/tools/0/annotations/destructiveHint", accept: anyBool, refuse: notBoolean},
		{at: "/params/tools/0/annotations/idempotentHint", accept: anyBool, refuse: notBoolean},
		{at: "/params/tools/0/annotations/openWorldHint", accept: anyBool, refuse: notBoolean},
		{at: "/params/tools/0/icons", accept: []string{`[]`}, refuse: notArray, inside: map[string]string{`[null]`: "/0"}},
		{at: "/params/tools/0/icons/0/src", required: true, accept: anyText, refuse: notString},
		{at: "/params/tools/0/icons/0/mimeType", accept: anyText, refuse: notString},
		{at: "/params/tools/0/icons/0/sizes", accept: []string{`[]`, `["any"]`}, refuse: notTexts, inside: map[string]string{`[48]`: "/0"}},
		{at: "/params/tools/0/icons/0/theme", accept: []string{`"light"`, `"dark"`}, refuse: append([]string{`"Dark"`, `""`}, notString...)},

		{at: "/params/messages", required: true, accept: []string{`[]`}, refuse: notArray, inside: map[string]string{`[[]]`: "/0", `[{"role":"user"}]`: "/0/content"}},
		{at: message0 + "/role", required: true, accept: []string{`"user"`, `"assistant"`}, refuse: append([]string{`"system"`, `"tool"`, `"User"`}, notString...)},
		{at: message0 + "/_meta", accept: anyMap, refuse: notObject},
		{at: message0 + "/content", required: true, accept: []string{`[]`, `[{"type":"text","text":""}]`}, refuse: []string{`null`, `"Hello"`, `1`, `true`},
			inside: map[string]string{`{}`: "/type", `["a"]`: "/0", `[[]]`: "/0", `[{"type":"text","text":""},{"type":"text"}]`: "/1/text",
				`{"type":"resource_link","name":"n","uri":"u"}`: "/type", `[{"type":"resource","resource":{"uri":"u","text":"t"}}]`: "/0/type", `{"type":"video"}`: "/type"}},
		{at: message0 + "/content/type", required: true, accept: []string{`"text"`}, refuse: append([]string{`""`, `"Text"`}, notString...)},
		{at: message0 + "/content/text", required: true, accept: anyText, refuse: notString},
		{at: message0 + "/content/_meta", accept: anyMap, refuse: notObject},
		{at: message0 + "/content/annotations", accept: []string{`{}`, `{"x":null}`}, refuse: notObject},
		{at: message0 + "/content/annotations/audience", accept: []string{`[]`, `["user","user"]`}, refuse: notTexts, inside: map[string]string{`["user","system"]`: "/1", `[null]`: "/0"}},
		{at: message0 + "/content/annotations/priority", accept: []string{`0`, `1`, `0.25`}, refuse: notUnit},
		{at: message0 + "/content/annotations/lastModified",
			accept: []string{`"2026-07-28T12:00:00Z"`, `"2026-07-28T12:00:00.123456789+05:30"`, `"2024-02-29T23:59:59-00:00"`},
			refuse: append([]string{`""`, `"2026-07-28"`, `"2026-07-28T12:00Z"`, `"2026-07-28T12:00:00"`, `"2026-07-28t12:00:00Z"`, `"2026-07-28T12:00:00z"`, `"2026-07-28 12:00:00Z"`, `"2026-07-28T12:00:00+0000"`,
				`"2026-02-30T12:00:00Z"`, `"2026-04-31T12:00:00Z"`, `"2025-02-29T12:00:00Z"`, `"2026-13-01T12:00:00Z"`, `"2026-00-01T12:00:00Z"`, `"2026-01-00T12:00:00Z"`, `"2026-01-01T24:00:00Z"`, `"2026-01-01T12:60:00Z"`,
				`"2026-01-01T12:00:60Z"`, `"2026-01-01T12:00:00+25:00"`, `"2026-01-01T12:00:00+24:00"`, `"2026-01-01T12:00:00+01:60"`, `"2026-01-01T12:00:00,5Z"`, `"2026-1-1T12:00:00Z"`, `" 2026-07-28T12:00:00Z"`, `"12026-07-28T12:00:00Z"`, `"\ud800"`}, notString...)},

		at(base64, message1+"/content/0/data"),
		{at: message1 + "/content/0/mimeType", required: true, accept: anyText, refuse: notString},
		{at: message1 + "/content/0/annotations", accept: []string{`{}`}, refuse: notObject, inside: map[string]string{`{"priority":2}`: "/priority"}},
		{at: message1 + "/content/0/_meta", accept: anyMap, refuse: notObject},
		at(base64, message1+"/content/1/data"),
		{at: message1 + "/content/1/mimeType", required: true, accept: anyText, refuse: notString},

		{at: use + "/id", required: true, accept: []string{`"\u0031"`}, refuse: notString},
		{at: use + "/name", required: true, accept: anyText, refuse: notString},
		{at: use + "/input", required: true, accept: anyMap, refuse: notObject},
		{at: use + "/_meta", accept: anyMap, refuse: notObject},

		{at: result + "/toolUseId", required: true, accept: []string{`"\u0031"`}, refuse: notString},
		{at: result + "/structuredContent", accept: []string{`null`, `1`, `"a"`, `[]`, `{}`}},
		{at: result + "/isError", accept: anyBool, refuse: notBoolean},
		{at: result + "/_meta", accept: anyMap, refuse: notObject},
		{at: result + "/content", required: true, accept: []string{`[]`}, refuse: notArray, inside: map[string]string{`["a"]`: "/0", `[{}]`: "/0/type",
			`[{"type":"tool_use","id":"1","name":"f","input":{}}]`: "/0/type", `[{"type":"tool_result","toolUseId":"1","content":[]}]`: "/0/type"}},

		{at: link + "/name", required: true, accept: anyText, refuse: notString},
		{at: link + "/uri", required: true, accept: anyText, refuse: notString},
		{at: link + "/title", accept: anyText, refuse: notString},
		{at: link + "/description", accept: anyText, refuse: notString},
		{at: link + "/mimeType", accept: anyText, refuse: notString},
		{at: link + "/size", accept: []string{`0`, `1e6`, `9007199254740991`}, refuse: notInteger},
		{at: link + "/icons", accept: []string{`[]`}, refuse: notArray, inside: map[string]string{`[{}]`: "/0/src"}},
		{at: link + "/annotations", accept: []string{`{}`}, refuse: notObject},
		{at: link + "/_meta", accept: anyMap, refuse: notObject},

		{at: resource + "/resource", required: true, accept: []string{`{"uri":"","blob":""}`, `{"uri":"","text":"","blob":"aGk="}`}, refuse: append([]string{`{"uri":""}`}, notObject...),
			inside: map[string]string{`{"uri":"","text":1,"blob":"aGk="}`: "/text", `{"uri":"","text":"","blob":"a"}`: "/blob", `{"text":""}`: "/uri"}},
		{at: resource + "/resource/uri", required: true, accept: anyText, refuse: notString},
		{at: resource + "/resource/text", either: true, accept: anyText, refuse: notString},
		{at: resource + "/resource/mimeType", accept: anyText, refuse: notString},
		{at: resource + "/resource/_meta", accept: anyMap, refuse: notObject},
		{at: resource + "/annotations", accept: []string{`{}`}, refuse: notObject},
		{at: resource + "/_meta", accept: anyMap, refuse: notObject},
		{at: blob + "/resource/blob", either: true, accept: base64.accept, refuse: base64.refuse},
	})
}

func TestCheckToolRounds(t *testing.T) {
	const text, use1, use2, result1, result2 = `{"type":"text","text":""}`, `{"type":"tool_use","id":"1","name":"f","input":{}}`, `{"type":"tool_use","id":"2","name":"f","input":{}}`,
		`{"type":"tool_result","toolUseId":"1","content":[]}`, `{"type":"tool_result","toolUseId":"2","content":[]}`
	for _, test := range []struct {
		name, pointer string   // "" for good messages
		messages      []string // the content of each
	}{
		{"one use", "", []string{text, use1, result1, text}},
		{"two uses, results in another order", "", []string{"[" + text + "," + use1 + "," + use2 + "]", "[" + result2 + "," + result1 + "]"}},
		{"two rounds", "", []string{use1, result1, use1, result1}},
		{"no blocks", "", []string{"[]", "[]"}},
		{"the last message has a use", "/params/messages/1", []string{use1}},
		{"a use without its result", "/params/messages/1/content", []string{"[" + use1 + "," + use2 + "]", result1}},
		{"another message in between", "/params/messages/1/content", []string{use1, text, result1}},
		{"no blocks in between", "/params/messages/1/content", []string{use1, "[]", result1}},
		{"a result without its use", "/params/messages/1/content", []string{text, result1}},
		{"a first message with a result", "/params/messages/0/content", []string{result1}},
		{"another use's result", "/params/messages/1/content", []string{use1, result2}},
		{"a result twice", "/params/messages/1/content", []string{use1, "[" + result1 + "," + result1 + "]"}},
		{"a text beside a result", "/params/messages/1/content", []string{use1, "[" + text + "," + result1 + "]"}},
		{"a use beside a result", "/params/messages/1/content", []string{use1, "[" + result1 + "," + use2 + "]", result2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			var messages []string
			for _, content := range test.messages {
				messages = append(messages, `{"role":"user","content":`+content+`}`)
			}
			err := wire.CheckInputRequest(edit(t, samplingRequest, "/params/messages", "["+strings.Join(messages, ",")+"]"))
			var shape *wire.ShapeError
			if errors.As(err, &shape); err == nil != (test.pointer == "") || err != nil && shape.Pointer != test.pointer {
				t.Errorf("got %v, want an error at %q", err, test.pointer)
			}
		})
	}
}

func TestCheckURLRequest(t *testing.T) {
	checkFields(t, urlRequest, wire.CheckInputRequest, []fieldTest{
		{at: "/params", required: true, accept: []string{`{"mode":"url","message":"","url":"https://example.com","elicitationId":7,"requestedSchema":7}`}, refuse: notObject, inside: map[string]string{`{}`: "/message"}},
		{at: "/params/mode", either: true, refuse: append([]string{`""`, `"URL"`, `"oauth"`}, notString...)},
		{at: "/params/message", required: true, accept: anyText, refuse: notString},
		{at: "/params/url", required: true,
			accept: []string{`"http://localhost:8080/x?y=1&z=%20#f"`, `"https://example.com"`, `"HTTPS://Example.COM/"`, `"https://xn--bcher-kva.example/"`, `"https://[::1]:443/"`, `"https://127.0.0.1/"`, `"https://example.com/a(b)*,;=!$'[]"`,
				`"https://example.com:65535/"`, `"https:\/\/example.com"`, `"https://example.com/@user:x"`},
			refuse: append([]string{`""`, `"example.com"`, `"/path"`, `"//example.com/"`, `"https:"`, `"https://"`, `"https:///path"`, `"https://:443/"`, `"https:example.com"`,
				`"javascript:alert(1)"`, `"JavaScript:alert(1)"`, `"data:text/html,x"`, `"file:///etc/passwd"`, `"mailto:a@example.com"`, `"ftp://example.com/"`, `"vscode://example.com/"`, `"java\nscript:alert(1)"`,
				`" https://example.com"`, `"https://example.com "`, `"https://example.com/a b"`, `"https://exam\nple.com/"`, `"https://example.com/\u0000"`, `"https://example.com/\u007f"`,
				`"https://user:secret@example.com/"`, `"https://user@example.com/"`, `"https://@example.com/"`, `"https://example.com\\@evil.example/"`, `"https://example.com/\\"`, `"https://b\u00fccher.example/"`, `"https://example.com/\ud83d\ude00"`, `"https://example.com/\ud800"`,
				`"https://example.com:99999/"`, `"https://example.com:http/"`, `"https://example.com/%zz"`, `"https://[::1/"`, `"https://exa<mple.com/"`, `"https://example.com/?q=\"x\""`, `"https://example.com/{id}"`, `"https://example.com/a|b"`, "\"https://example.com/`\"", `"https://example.com/^"`,
			}, notString...)},
	})
}

func TestCheckFormRequest(t *testing.T) {
	const schema = "/params/requestedSchema"
	properties := schema + "/properties"
	checkFields(t, formRequest, wire.CheckInputRequest, []fieldTest{
		{at: "/params/mode", accept: []string{`"form"`}, refuse: append([]string{`""`, `"Form"`}, notString...)},
		{at: "/params/message", required: true, accept: anyText, refuse: notString},
		{at: schema, required: true, accept: []string{`{"type":"object","properties":{}}`, `{"type":"object","properties":{},"additionalProperties":false,"x":null}`}, refuse: notObject,
			inside: map[string]string{`{}`: "/type", `{"type":"object"}`: "/properties"}},
		{at: schema + "/type", required: true, accept: []string{`"object"`}, refuse: append([]string{`"array"`}, notString...)},
		{at: schema + "/$schema", accept: anyText, refuse: notString},
		{at: schema + "/required", accept: []string{`[]`, `["s","unknown",""]`, `["\ud800","\udfff"]`}, refuse: append([]string{`["s","s"]`, `["s","\u0073"]`}, notTexts...), inside: map[string]string{`["s",1]`: "/1"}},
		{at: properties, required: true, accept: []string{`{}`, `{"":{"type":"boolean"}}`}, refuse: notObject,
			inside: map[string]string{`{"a":1}`: "/a", `{"":null}`: "/", `{"a/b~c":{}}`: "/a~1b~0c/type", `{"é":{"type":"object"}}`: "/é/type"}},
		{at: properties + "/s/type", required: true, accept: []string{`"string"`}, refuse: append([]string{`"object"`, `"null"`, `"String"`, `["string"]`, `["string","null"]`}, notString...)},
		{at: properties + "/s/title", accept: anyText, refuse: notString},
		{at: properties + "/s/description", accept: anyText, refuse: notString},
		{at: properties + "/s/default", accept: anyText, refuse: notString},
		{at: properties + "/s/minLength", accept: []string{`0`, `5`, `1e1`, `9007199254740991`}, refuse: notCount},
		{at: properties + "/s/maxLength", accept: []string{`0`, `5`}, refuse: notCount},
		{at: properties + "/s/format", accept: []string{`"email"`, `"uri"`, `"date"`, `"date-time"`}, refuse: append([]string{`""`, `"time"`, `"password"`}, notString...)},
		{at: properties + "/n/type", required: true, accept: []string{`"number"`, `"integer"`}, refuse: append([]string{`"float"`}, notString...)},
		{at: properties + "/n/title", accept: anyText, refuse: notString},
		{at: properties + "/n/description", accept: anyText, refuse: notString},
		{at: properties + "/n/default", accept: []string{`0`, `-1.5e3`, `9007199254740993`}, refuse: notNumber},
		{at: properties + "/n/minimum", accept: []string{`0`, `5.5`}, refuse: notNumber},
		{at: properties + "/n/maximum", accept: []string{`0`, `-5.5`}, refuse: notNumber},
		{at: properties + "/i/default", accept: []string{`0`, `1.5`}, refuse: notNumber},
		{at: properties + "/b/title", accept: anyText, refuse: notString},
		{at: properties + "/b/description", accept: anyText, refuse: notString},
		{at: properties + "/b/default", accept: anyBool, refuse: notBoolean},
		{at: properties + "/e", accept: []string{`{"type":"string","enum":["x"],"oneOf":[{"const":"x","title":"X"}]}`}, refuse: append([]string{`{"type":"string","enumNames":["X"]}`}, notObject...)},
		{at: properties + "/e/enum", either: true, accept: []string{`["y"]`, `["x","x"]`, `[""]`}, refuse: append([]string{`[]`}, notTexts...), inside: map[string]string{`["x",1]`: "/1", `[null]`: "/0"}},
		{at: properties + "/e/enumNames", accept: []string{`[]`, `["X","Y"]`}, refuse: notTexts, inside: map[string]string{`[1]`: "/0"}},
		{at: properties + "/e/default", accept: []string{`"y"`}, refuse: notString},
		{at: properties + "/e/minLength", accept: []string{`1`}, refuse: notCount},
		{at: properties + "/o/oneOf", accept: []string{`[{"const":"","title":""},{"const":"","title":"","x":null}]`}, refuse: append([]string{`[]`}, notArray...),
			inside: map[string]string{`["x"]`: "/0", `[{"const":"x"}]`: "/0/title", `[{"title":"X"}]`: "/0/const", `[{"const":1,"title":"X"}]`: "/0/const", `[{"const":"x","title":null}]`: "/0/title"}},
		{at: properties + "/m/title", accept: anyText, refuse: notString},
		{at: properties + "/m/description", accept: anyText, refuse: notString},
		{at: properties + "/m/minItems", accept: []string{`0`, `5`}, refuse: notCount},
		{at: properties + "/m/maxItems", accept: []string{`0`, `5`}, refuse: notCount},
		{at: properties + "/m/default", accept: []string{`[]`, `["y","y"]`}, refuse: notTexts, inside: map[string]string{`["x",1]`: "/1"}},
		{at: properties + "/m/items", required: true, accept: []string{`{"type":"string","enum":["a","b"]}`, `{"type":"string","anyOf":[{"const":"x","title":"X"}]}`}, refuse: append([]string{`{}`, `{"type":"string"}`, `{"enum":["x"]}`, `{"oneOf":[{"const":"x","title":"X"}]}`}, notObject...),
			inside: map[string]string{`{"type":"number","enum":["x"]}`: "/type", `{"type":"string","enum":[1]}`: "/enum/0", `{"type":"string","enum":[]}`: "/enum", `{"anyOf":[]}`: "/anyOf", `{"anyOf":[{"const":"x"}]}`: "/anyOf/0/title", `{"type":"integer","anyOf":[{"const":"x","title":"X"}]}`: "/type"}},
	})
}

func TestCheckSamplingResponse(t *testing.T) {
	check := func(response wire.JSON) error {
		return wire.CheckInputResponse(wire.MustParse(samplingRequest), response)
	}
	checkFields(t, `{"model":"m","role":"assistant","content":{"type":"text","text":"Hi"},"stopReason":"endTurn","_meta":{}}`, check, []fieldTest{
		{at: "/model", required: true, accept: anyText, refuse: notString},
		{at: "/role", required: true, accept: []string{`"user"`, `"assistant"`}, refuse: append([]string{`"system"`}, notString...)},
		{at: "/stopReason", accept: anyText, refuse: notString},
		{at: "/_meta", accept: anyMap, refuse: notObject},
		{at: "/content", required: true, refuse: []string{`null`, `"Hi"`, `1`, `true`},
			accept: []string{`[]`, `{"type":"image","data":"aGk=","mimeType":"m"}`, `[{"type":"tool_use","id":"1","name":"f","input":{}},{"type":"text","text":""}]`, `{"type":"tool_result","toolUseId":"1","content":[],"structuredContent":null}`},
			inside: map[string]string{`{"type":"resource","resource":{"uri":"u","text":"t"}}`: "/type", `[{"type":"audio","data":"a","mimeType":"m"}]`: "/0/data", `{"type":"resource_link","name":"n","uri":"u"}`: "/type"}},
	})
}

func TestCheckRootsResponse(t *testing.T) {
	check := func(response wire.JSON) error {
		return wire.CheckInputResponse(wire.MustParse(rootsRequest), response)
	}
	checkFields(t, `{"roots":[{"uri":"file:///home","name":"Home","_meta":{}}]}`, check, []fieldTest{
		{at: "/roots", required: true, accept: []string{`[]`}, refuse: notArray, inside: map[string]string{`[null]`: "/0", `[{"uri":"file:///a"},{}]`: "/1/uri"}},
		{at: "/roots/0/uri", required: true, accept: []string{`"file://"`, `"file:///a b"`, `"file://host/c:/"`, `"\u0066ile:\/\/\/a"`}, refuse: append([]string{`""`, `"/home"`, `"FILE:///home"`, `"https://example.com"`, `"file:/home"`, `" file:///"`}, notString...)},
		{at: "/roots/0/name", accept: anyText, refuse: notString},
		{at: "/roots/0/_meta", accept: anyMap, refuse: notObject},
		{at: "/_meta", accept: []string{`1`, `null`}}, // not in the schema
	})
}

func TestCheckElicitResponse(t *testing.T) {
	for _, request := range []string{formRequest, urlRequest} {
		check := func(response wire.JSON) error {
			return wire.CheckInputResponse(wire.MustParse(request), response)
		}
		checkFields(t, `{"action":"accept","content":{"a":"x"}}`, check, []fieldTest{
			{at: "/action", required: true, accept: []string{`"accept"`, `"decline"`, `"cancel"`}, refuse: append([]string{`""`, `"Accept"`, `"reject"`}, notString...)},
			{at: "/content", refuse: notObject, accept: []string{`{}`, `{"unknown":"","":""}`}, inside: map[string]string{`{"a":null}`: "/a", `{"a":{}}`: "/a", `{"a":["x",1]}`: "/a/1", `{"b":"","a/b":[[]]}`: "/a~1b/0"}},
			{at: "/content/a", accept: []string{`""`, `1`, `1.5`, `-0`, `1e400`, `9007199254740993`, `true`, `[]`, `["x","y"]`, `"\ud800"`}, refuse: []string{`null`, `{}`}, inside: map[string]string{`[1]`: "/0", `[null]`: "/0"}},
			{at: "/_meta", accept: []string{`1`, `null`}}, // not in the schema
		})
	}
}

func TestCheckInputResponseRefusesNonObjects(t *testing.T) {
	for _, request := range []string{samplingRequest, rootsRequest, urlRequest, formRequest} {
		for _, response := range append([]string{`{}`, `{"error":{"code":-1,"message":"no"}}`}, notObject...) {
			if err := wire.CheckInputResponse(wire.MustParse(request), wire.MustParse(response)); err == nil {
				t.Errorf("%s is an answer to %.30s", response, request)
			}
		}
		if err := wire.CheckInputResponse(wire.MustParse(request), wire.JSON{}); err == nil {
			t.Errorf("nothing is an answer to %.30s", request)
		}
	}
}

func TestInputKinds(t *testing.T) {
	requests := map[string]wire.JSON{
		"form": wire.MustParse(formRequest), "modeless form": wire.MustParse(`{"method":"elicitation/create","params":{}}`), "url": wire.MustParse(urlRequest),
		"sampling": wire.MustParse(`{"method":"sampling/createMessage","params":{}}`), "tools": wire.MustParse(samplingRequest), "toolChoice": wire.MustParse(`{"method":"sampling/createMessage","params":{"toolChoice":{}}}`),
		"roots": wire.MustParse(rootsRequest),
	}
	const forms = "form, modeless form"
	for capabilities, want := range map[string]string{
		`{}`:                                   "",
		`null`:                                 "",
		`{"elicitation":{}}`:                   forms,
		`{"elicitation":{"form":{}}}`:          forms,
		`{"elicitation":{"url":{}}}`:           "url",
		`{"elicitation":{"url":{},"form":{}}}`: forms + ", url",
		`{"elicitation":{"form":null}}`:        "",
		`{"elicitation":{"url":true}}`:         "",
		`{"elicitation":true}`:                 "",
		`{"elicitation":{"x":1}}`:              forms,
		`{"sampling":{}}`:                      "sampling",
		`{"sampling":{"tools":{}}}`:            "sampling, toolChoice, tools",
		`{"sampling":{"tools":true}}`:          "sampling",
		`{"sampling":true}`:                    "",
		`{"roots":{}}`:                         "roots",
		`{"roots":null}`:                       "",
		`{"Roots":{},"form":{}}`:               "",
	} {
		params := wire.MustParse(`{"_meta":{"io.modelcontextprotocol/clientCapabilities":` + capabilities + `}}`)
		var got []string
		for _, name := range slices.Sorted(maps.Keys(requests)) {
			if wire.KindsOf(requests[name])&wire.UnsupportedInput(params) == 0 {
				got = append(got, name)
			}
		}
		if strings.Join(got, ", ") != want {
			t.Errorf("%s can answer %q, want %q", capabilities, got, want)
		}
	}
	for _, params := range []wire.JSON{{}, wire.MustParse(`{}`), wire.MustParse(`{"_meta":{"elicitation":{}}}`), wire.MustParse(`{"io.modelcontextprotocol/clientCapabilities":{"roots":{}}}`)} {
		for name, request := range requests {
			if wire.KindsOf(request)&wire.UnsupportedInput(params) == 0 {
				t.Errorf("%v can answer %s", params, name)
			}
		}
	}
	for _, request := range []wire.JSON{{}, wire.MustParse(`{}`), wire.MustParse(`{"method":"tools/call"}`), wire.MustParse(`{"method":1}`)} {
		if kinds := wire.KindsOf(request); kinds != 0 {
			t.Errorf("%v is a request for %s", request, kinds)
		}
	}
	for name, want := range map[string]string{
		"form":     `{"elicitation":{"form":{}}}`,
		"url":      `{"elicitation":{"url":{}}}`,
		"sampling": `{"sampling":{}}`,
		"tools":    `{"sampling":{"tools":{}}}`,
		"roots":    `{"roots":{}}`,
	} {
		err := rpcError(t, wire.MissingInput(wire.KindsOf(requests[name])))
		if want = `{"requiredCapabilities":` + want + `}`; err.Code != -32021 || err.Data.String() != want {
			t.Errorf("%s: %v with %v, want %s", name, err, err.Data, want)
		}
	}
	all := wire.UnsupportedInput(wire.JSON{})
	if got, want := rpcError(t, wire.MissingInput(all)).Message, "Missing required client capability: elicitation.form, elicitation.url, sampling, sampling.tools, roots"; got != want {
		t.Errorf("got %q", got)
	}
}

func TestShapeError(t *testing.T) {
	for _, test := range []struct {
		err  wire.ShapeError
		want string
	}{
		{wire.ShapeError{Expected: "an object"}, `expected an object`},
		{wire.ShapeError{Pointer: "/a~1b", Expected: "a string"}, `at "/a~1b": expected a string`},
		{wire.ShapeError{Key: "k\n", Pointer: "/a", Expected: "a string"}, `input "k\n": at "/a": expected a string`},
	} {
		if got := test.err.Error(); got != test.want {
			t.Errorf("got %s, want %s", got, test.want)
		}
	}
	long := wire.ShapeError{Key: strings.Repeat("k", 1<<20), Pointer: strings.Repeat("p", 1<<20), Expected: "a string"}
	if got := long.Error(); len(got) > 400 {
		t.Errorf("an error has %d bytes", len(got))
	}
}

// TestChecksDoNotQuote puts a secret into every string of good and bad
// documents and looks for it in the errors.
func TestChecksDoNotQuote(t *testing.T) {
	const secret = "hunter2"
	for _, document := range []string{samplingRequest, rootsRequest, urlRequest, formRequest} {
		for _, value := range []string{`"` + secret + `"`, `["` + secret + `"]`, `{"type":"` + secret + `"}`, `{"type":"text","text":{"x":"` + secret + `"}}`} {
			for _, pointer := range []string{"/method", "/params", "/params/mode", "/params/url", "/params/messages", "/params/maxTokens", "/params/requestedSchema", "/params/toolChoice", "/params/tools"} {
				if err := wire.CheckInputRequest(edit(t, document, pointer, value)); err != nil && strings.Contains(err.Error(), secret) {
					t.Errorf("%v", err)
				}
			}
		}
	}
}

func FuzzCheckInput(f *testing.F) {
	requests := []wire.JSON{wire.MustParse(samplingRequest), wire.MustParse(rootsRequest), wire.MustParse(urlRequest), wire.MustParse(formRequest)}
	for _, request := range requests {
		f.Add([]byte(request.String()))
	}
	for _, response := range []string{`{"action":"accept","content":{"a":[""],"b":1.5}}`, `{"roots":[{"uri":"file:///a"}]}`, `{"model":"m","role":"user","content":[{"type":"audio","data":"aGk=","mimeType":"m"}]}`} {
		f.Add([]byte(response))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		value, err := wire.ParseJSON(text)
		if err != nil {
			t.Skip()
		}
		errs := []error{wire.CheckInputRequest(value)}
		for _, request := range requests {
			errs = append(errs, wire.CheckInputResponse(request, value))
		}
		for _, err := range errs {
			var shape *wire.ShapeError
			if err != nil && (!errors.As(err, &shape) || shape.Expected == "" || !resolves(value, shape.Pointer)) {
				t.Fatalf("%s is refused with %#v", value, err)
			}
		}
	})
}

// resolves reports whether all but the last name of a pointer leads to a
// place in the value.
func resolves(value wire.JSON, pointer string) bool {
	if pointer == "" {
		return true
	}
	names := strings.Split(pointer[1:], "/")
	for _, name := range names[:len(names)-1] {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch value.Kind() {
		case wire.Object:
			value = value.Get(name)
		case wire.Array:
			i, err := strconv.Atoi(name)
			elements := slices.Collect(value.Elements())
			if err != nil || i >= len(elements) {
				return false
			}
			value = elements[i]
		default:
			return false
		}
	}
	return value.Kind() == wire.Object || value.Kind() == wire.Array
}
