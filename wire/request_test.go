package wire_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// meta is the _meta member of a request that may speak of tasks.
const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`

// received is what a request asks of the backend.
type received struct {
	method, id string
	answers    map[string]wire.JSON
}

// recorder is a wire.Backend that keeps the last request it got.
type recorder struct{ received }

func (r *recorder) GetTask(_ context.Context, id string) (wire.Task, error) {
	r.received = received{wire.MethodGet, id, nil}
	return wire.Task{}, nil
}

func (r *recorder) UpdateTask(_ context.Context, id string, answers map[string]wire.JSON) ([]string, error) {
	r.received = received{wire.MethodUpdate, id, answers}
	return nil, nil
}

func (r *recorder) CancelTask(_ context.Context, id string) error {
	r.received = received{wire.MethodCancel, id, nil}
	return nil
}

// dispatch serves one request and returns what reached the backend, or the
// error for the client.
func dispatch(t testing.TB, method string, params []byte) (received, *wire.Error) {
	t.Helper()
	var r recorder
	result, err := wire.Dispatch(t.Context(), &r, method, params)
	if err == nil {
		return r.received, nil
	}
	var rpc *wire.Error
	if !errors.As(err, &rpc) || result != nil {
		t.Fatalf("%s: got the result %v with the error %v", method, result, err)
	}
	return r.received, rpc
}

func TestDispatchDecodes(t *testing.T) {
	for _, test := range []struct {
		name, method, params string
		id                   string
		answers              string // as fmt prints the map
	}{
		{"get", wire.MethodGet, `{"taskId":"a",` + meta + `}`, "a", "map[]"},
		{"cancel", wire.MethodCancel, `{` + meta + `,"taskId":"a"}`, "a", "map[]"},
		{"get ignores what it does not know", wire.MethodGet, `{"taskId":"a","inputResponses":1,"x":[],` + meta + `}`, "a", "map[]"},
		{"an id is decoded and kept", wire.MethodGet, `{"taskId":" \u0061\/😀\u0000 ",` + meta + `}`, " a/😀\x00 ", "map[]"},
		{"names are case-sensitive", wire.MethodGet, `{"taskid":"b","taskId":"a","TASKID":"c","ta\u017fkId":"d",` + meta + `}`, "a", "map[]"},
		{"a name may be escaped", wire.MethodGet, `{"\u0074askId":"a",` + meta + `}`, "a", "map[]"},
		{"update", wire.MethodUpdate, `{"taskId":"a","inputResponses":{"k":{"action":"accept"},"":[1],"__proto__":null},` + meta + `}`, "a", `map[:[1] __proto__:null k:{"action":"accept"}]`},
		{"update without answers", wire.MethodUpdate, `{"taskId":"a","inputResponses":{},` + meta + `}`, "a", "map[]"},
		{"answers keep their digits", wire.MethodUpdate, `{"taskId":"a","inputResponses":{"k":{"n":9007199254740993, "z" : -0}},` + meta + `}`, "a", `map[k:{"n":9007199254740993,"z":0}]`},
		{"keys without a well-formed text are left out", wire.MethodUpdate, `{"taskId":"a","inputResponses":{"\ufffd":3,"\ud800":1,"\udfff":2},` + meta + `}`, "a", "map[\ufffd:3]"},
		{"keys are case-sensitive", wire.MethodUpdate, `{"taskId":"a","inputResponses":{"k":1,"K":2},` + meta + `}`, "a", "map[K:2 k:1]"},
		{"the version may be left out", wire.MethodGet, `{"taskId":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`, "a", "map[]"},
		{"other capabilities stand beside", wire.MethodGet, `{"taskId":"a","_meta":{"x":1,"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"a/b":{},"io.modelcontextprotocol/tasks":{"future":true}}}}}`, "a", "map[]"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := dispatch(t, test.method, []byte(test.params))
			if err != nil {
				t.Fatal(err)
			}
			if r.method != test.method || r.id != test.id || fmt.Sprint(r.answers) != test.answers {
				t.Errorf("got %q %q %v, want %q %q %s", r.method, r.id, r.answers, test.method, test.id, test.answers)
			}
			if (r.answers != nil) != (test.method == wire.MethodUpdate) {
				t.Errorf("the answers are %#v", r.answers)
			}
		})
	}
}

func TestDispatchRefuses(t *testing.T) {
	with := func(rest string) string { return `{` + rest + `,` + meta + `}` }
	capability := func(c string) string {
		return `{"taskId":"a","_meta":{"io.modelcontextprotocol/clientCapabilities":` + c + `}}`
	}
	version := func(v string) string {
		return `{"taskId":"a","_meta":{"io.modelcontextprotocol/protocolVersion":` + v + `}}`
	}
	for _, test := range []struct {
		name, method, params string
		code                 int64
		message              string
	}{
		{"an unknown method", "tasks/list", with(`"taskId":"a"`), wire.CodeMethodNotFound, "Method not found"},
		{"a retired method, with params that do not parse", "tasks/result", `{`, wire.CodeMethodNotFound, "Method not found"},
		{"a method in other letters", "tasks/Get", with(`"taskId":"a"`), wire.CodeMethodNotFound, "Method not found"},
		{"no method", "", ``, wire.CodeMethodNotFound, "Method not found"},

		{"params that do not parse", wire.MethodGet, `{"taskId":"a"`, wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 13: a comma or the end of the object is expected"},
		{"params that are an array", wire.MethodGet, `["a"]`, wire.CodeInvalidParams, "Invalid params: params must be an object, not an array"},
		{"params that are null", wire.MethodGet, `null`, wire.CodeInvalidParams, "Invalid params: params must be an object, not null"},
		{"params that are a string", wire.MethodGet, `"a"`, wire.CodeInvalidParams, "Invalid params: params must be an object, not a string"},
		{"a duplicate taskId", wire.MethodGet, with(`"taskId":"a","taskId":"b"`), wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 14: a member name occurs twice in one object"},
		{"a duplicate answer", wire.MethodUpdate, with(`"taskId":"a","inputResponses":{"k":1,"\u006b":2}`), wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 38: a member name occurs twice in one object"},
		{"an invalid byte in the id", wire.MethodGet, with("\"taskId\":\"\xff\""), wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 11: invalid UTF-8"},
		{"an answer nested too deep", wire.MethodUpdate, with(`"taskId":"a","inputResponses":{"k":` + nested(wire.MaxDepth) + `}`), wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 546: nested too deep"},

		{"no params", wire.MethodGet, ``, wire.CodeMissingCapability, ""},
		{"no _meta", wire.MethodGet, `{"taskId":"a"}`, wire.CodeMissingCapability, ""},
		{"a _meta that is null", wire.MethodGet, `{"taskId":"a","_meta":null}`, wire.CodeMissingCapability, ""},
		{"a _meta that is an array", wire.MethodGet, `{"taskId":"a","_meta":[{}]}`, wire.CodeMissingCapability, ""},
		{"a bare extension in _meta", wire.MethodGet, `{"taskId":"a","_meta":{"io.modelcontextprotocol/tasks":{}}}`, wire.CodeMissingCapability, ""},
		{"no capabilities", wire.MethodGet, capability(`{}`), wire.CodeMissingCapability, ""},
		{"capabilities that are null", wire.MethodGet, capability(`null`), wire.CodeMissingCapability, ""},
		{"the extension outside of extensions", wire.MethodGet, capability(`{"io.modelcontextprotocol/tasks":{}}`), wire.CodeMissingCapability, ""},
		{"the retired tasks capability", wire.MethodGet, capability(`{"tasks":{}}`), wire.CodeMissingCapability, ""},
		{"another extension", wire.MethodGet, capability(`{"extensions":{"io.modelcontextprotocol/task":{}}}`), wire.CodeMissingCapability, ""},
		{"the extension in other letters", wire.MethodGet, capability(`{"extensions":{"io.modelcontextprotocol/Tasks":{}}}`), wire.CodeMissingCapability, ""},
		{"an extension that is null", wire.MethodGet, capability(`{"extensions":{"io.modelcontextprotocol/tasks":null}}`), wire.CodeMissingCapability, ""},
		{"an extension that is true", wire.MethodGet, capability(`{"extensions":{"io.modelcontextprotocol/tasks":true}}`), wire.CodeMissingCapability, ""},
		{"extensions that are a list", wire.MethodGet, capability(`{"extensions":["io.modelcontextprotocol/tasks"]}`), wire.CodeMissingCapability, ""},
		{"the gate stands before the id", wire.MethodGet, `{}`, wire.CodeMissingCapability, ""},
		{"the gate stands before the answers", wire.MethodUpdate, `{"taskId":"a"}`, wire.CodeMissingCapability, ""},

		{"an older version", wire.MethodGet, version(`"2025-11-25"`), wire.CodeUnsupportedProtocolVersion, "Unsupported protocol version"},
		{"a future version", wire.MethodGet, version(`"2027-01-01"`), wire.CodeUnsupportedProtocolVersion, "Unsupported protocol version"},
		{"an empty version", wire.MethodGet, version(`""`), wire.CodeUnsupportedProtocolVersion, "Unsupported protocol version"},
		{"a version that is no text", wire.MethodGet, version(`"\ud800"`), wire.CodeUnsupportedProtocolVersion, "Unsupported protocol version"},
		{"a version that is a number", wire.MethodGet, version(`2026`), wire.CodeInvalidParams, `Invalid params: _meta["io.modelcontextprotocol/protocolVersion"] must be a string, not a number`},
		{"a version that is null", wire.MethodGet, version(`null`), wire.CodeInvalidParams, `Invalid params: _meta["io.modelcontextprotocol/protocolVersion"] must be a string, not null`},

		{"no id", wire.MethodGet, `{` + meta + `}`, wire.CodeInvalidParams, "Invalid params: taskId must be a string, not nothing"},
		{"only an id in other letters", wire.MethodGet, with(`"taskid":"a"`), wire.CodeInvalidParams, "Invalid params: taskId must be a string, not nothing"},
		{"an id that is a number", wire.MethodCancel, with(`"taskId":12`), wire.CodeInvalidParams, "Invalid params: taskId must be a string, not a number"},
		{"an id that is null", wire.MethodCancel, with(`"taskId":null`), wire.CodeInvalidParams, "Invalid params: taskId must be a string, not null"},
		{"an id that is a list", wire.MethodCancel, with(`"taskId":["a"]`), wire.CodeInvalidParams, "Invalid params: taskId must be a string, not an array"},
		{"an empty id", wire.MethodGet, with(`"taskId":""`), wire.CodeInvalidParams, "Task not found"},
		{"a blank id", wire.MethodGet, with(`"taskId":" \t\n"`), wire.CodeInvalidParams, "Task not found"},
		{"an id that is no text", wire.MethodGet, with(`"taskId":"\udfff"`), wire.CodeInvalidParams, "Task not found"},

		{"no answers", wire.MethodUpdate, with(`"taskId":"a"`), wire.CodeInvalidParams, "Invalid params: inputResponses must be an object, not nothing"},
		{"answers that are null", wire.MethodUpdate, with(`"taskId":"a","inputResponses":null`), wire.CodeInvalidParams, "Invalid params: inputResponses must be an object, not null"},
		{"answers that are a list", wire.MethodUpdate, with(`"taskId":"a","inputResponses":[{}]`), wire.CodeInvalidParams, "Invalid params: inputResponses must be an object, not an array"},
	} {
		t.Run(test.name, func(t *testing.T) {
			r, err := dispatch(t, test.method, []byte(test.params))
			if err == nil {
				t.Fatalf("got %+v, want the error %d", r, test.code)
			}
			if err.Code != test.code || test.message != "" && err.Message != test.message {
				t.Errorf("got %d %q, want %d %q", err.Code, err.Message, test.code, test.message)
			}
			if r.method != "" {
				t.Errorf("the backend got %+v", r)
			}
			switch err.Code {
			case wire.CodeMissingCapability:
				if want := `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`; err.Data.String() != want {
					t.Errorf("the data are %s, want %s", err.Data, want)
				}
			case wire.CodeUnsupportedProtocolVersion:
				if got := err.Data.Get("supported").String(); got != `["2026-07-28"]` {
					t.Errorf("the data name the versions %s", got)
				}
			default:
				if !err.Data.IsZero() {
					t.Errorf("the data are %s", err.Data)
				}
			}
		})
	}
}

func TestUnsupportedVersionIsBounded(t *testing.T) {
	for _, version := range []string{strings.Repeat("9", 1<<20), strings.Repeat("é", 1000), "x" + strings.Repeat("😀", 1000)} {
		params := `{"_meta":{"io.modelcontextprotocol/protocolVersion":"` + version + `"}}`
		_, err := dispatch(t, wire.MethodGet, []byte(params))
		if text := string(err.AppendJSON(nil)); len(text) > 400 || !json.Valid([]byte(text)) || !utf8.ValidString(text) {
			t.Errorf("an absurd version is answered with %d bytes: %.500q", len(text), text)
		}
	}
}

// TestDispatchIsBounded sends requests as big as they come. The work and the
// memory for each may grow only linearly with its size: a quadratic step would
// take minutes.
func TestDispatchIsBounded(t *testing.T) {
	const size = 2 << 20
	fill := func(head, element, tail string) []byte {
		b := bytes.NewBufferString(head)
		for i := 0; b.Len() < size; i++ {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strings.ReplaceAll(element, "#", fmt.Sprint(i)))
		}
		return append(b.Bytes(), tail...)
	}
	for _, test := range []struct {
		name, method string
		params       []byte
		code         int64  // 0: accepted
		factor       uint64 // allocated bytes for each byte of the request
	}{
		{"an id", wire.MethodGet, []byte(`{"taskId":"` + strings.Repeat("a", size) + `",` + meta + `}`), 0, 2},
		{"a blank id", wire.MethodGet, []byte(`{"taskId":"` + strings.Repeat(" ", size) + `",` + meta + `}`), wire.CodeInvalidParams, 2},
		{"white space", wire.MethodGet, []byte(`{"taskId":"a",` + meta + strings.Repeat(" ", size) + `}`), 0, 3},
		{"keys", wire.MethodUpdate, fill(`{"taskId":"a","inputResponses":{`, `"k#":{}`, `},`+meta+`}`), 0, 20},
		{"escaped keys", wire.MethodUpdate, fill(`{"taskId":"a","inputResponses":{`, `"\u006b#":{}`, `},`+meta+`}`), 0, 20},
		{"members beside", wire.MethodGet, fill(`{"taskId":"a",`+meta+`,`, `"k#":1`, `}`), 0, 20},
		{"deep arrays side by side", wire.MethodGet, fill(`{"taskId":"a",`+meta+`,"x":[`, nested(500), `]}`), 0, 2},
		{"nested arrays", wire.MethodGet, []byte(strings.Repeat("[", size)), wire.CodeInvalidParams, 2},
		{"nested objects", wire.MethodGet, []byte(strings.Repeat(`{"a":`, size/5)), wire.CodeInvalidParams, 2},
		{"a string that does not end", wire.MethodGet, []byte(`{"taskId":"` + strings.Repeat(`\n`, size/2)), wire.CodeInvalidParams, 2},
		{"unpaired surrogates in one name", wire.MethodGet, []byte(`{"` + strings.Repeat(`\ud800`, size/6) + `":1}`), wire.CodeMissingCapability, 10},
	} {
		t.Run("2 MiB of "+test.name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := dispatch(t, test.method, test.params)
			runtime.ReadMemStats(&after)
			switch {
			case test.code == 0 && err != nil:
				t.Errorf("refused: %v", err)
			case test.code != 0 && (err == nil || err.Code != test.code):
				t.Errorf("got %v, want code %d", err, test.code)
			case err != nil && len(err.AppendJSON(nil)) > 400:
				t.Errorf("the error has %d bytes", len(err.AppendJSON(nil)))
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > test.factor*size+1<<18 {
				t.Errorf("allocates %.1f bytes for each byte, want at most %d", float64(used)/size, test.factor)
			}
		})
	}
}

func FuzzDispatch(f *testing.F) {
	for _, seed := range []string{
		``, `null`, `[]`, `{}`, `{"taskId":"a",` + meta + `}`, `{"taskId":"a","inputResponses":{"k":{"action":"accept","content":{}}},` + meta + `}`, `{"taskId":1,` + meta + `}`,
		`{"taskid":"b","taskId":"a",` + meta + `}`, `{"taskId":"a","taskId":"b",` + meta + `}`, `{"_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}`,
		`{"taskId":"\ud800","inputResponses":{"\ud800":1},` + meta + `}`,
	} {
		for method := range 4 {
			f.Add(byte(method), []byte(seed))
		}
	}
	methods := [...]string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel, "tasks/list"}
	codes := map[int64]bool{wire.CodeMethodNotFound: true, wire.CodeInvalidParams: true, wire.CodeMissingCapability: true, wire.CodeUnsupportedProtocolVersion: true}
	f.Fuzz(func(t *testing.T, which byte, params []byte) {
		method := methods[int(which)%len(methods)]
		r, err := dispatch(t, method, params)
		if err != nil {
			text := err.AppendJSON(nil)
			if !codes[err.Code] || r.method != "" || len(text) > 600 {
				t.Fatalf("%q %q = %+v, %s", method, params, r, text)
			}
			if _, err := wire.ParseJSON(text); err != nil {
				t.Fatalf("the error %s is no JSON: %v", text, err)
			}
			return
		}
		var want struct {
			meta, answers map[string]json.RawMessage
			id            string
		}
		var top map[string]json.RawMessage // a map, because a struct would fold the case
		if err := json.Unmarshal(params, &top); err != nil {
			t.Fatalf("%q is accepted: %v", params, err)
		}
		if err := json.Unmarshal(top["taskId"], &want.id); err != nil || want.id != r.id || r.method != method {
			t.Fatalf("%q %q = %+v", method, params, r)
		}
		if err := json.Unmarshal(top["_meta"], &want.meta); err != nil || !strings.Contains(string(want.meta[wire.MetaClientCapabilities]), "extensions") && !bytes.Contains(params, []byte(`\u`)) {
			t.Fatalf("%q passes the gate", params)
		}
		if method != wire.MethodUpdate {
			return
		}
		if err := json.Unmarshal(top["inputResponses"], &want.answers); err != nil || len(r.answers) > len(want.answers) {
			t.Fatalf("%q has the answers %v", params, r.answers)
		}
		for key, answer := range r.answers {
			if got, err := wire.ParseJSON(want.answers[key]); !strings.Contains(key, "\ufffd") && (err != nil || got != answer) {
				t.Fatalf("%q has the answer %q=%v, want %s", params, key, answer, want.answers[key])
			}
		}
	})
}
