package wire_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func TestDecodeListen(t *testing.T) {
	for _, test := range []struct {
		name, params string
		asked        bool
		ids          []string
	}{
		{"one task", `{"notifications":{"taskIds":["a"]},` + meta + `}`, true, []string{"a"}},
		{"in their order, each once", `{"notifications":{"taskIds":["b","a","\u0062","c","a"]},` + meta + `}`, true, []string{"b", "a", "c"}},
		{"none of them", `{"notifications":{"taskIds":[]},` + meta + `}`, true, nil},
		{"beside other filters", `{"notifications":{"toolsListChanged":true,"taskIds":["a"],"x":1},` + meta + `}`, true, []string{"a"}},
		{"what is no text is nobody's", `{"notifications":{"taskIds":["\ud800","a","","\ud800"]},` + meta + `}`, true, []string{"a", ""}},
		{"only other filters", `{"notifications":{"toolsListChanged":true}}`, false, nil},
		{"a name in other letters", `{"notifications":{"taskids":["a"]}}`, false, nil},
		{"taskIds in another place", `{"taskIds":["a"],"notifications":{"x":{"taskIds":["a"]}}}`, false, nil},
		{"notifications that are no object", `{"notifications":["taskIds"]}`, false, nil},
		{"no params", ``, false, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			ids, asked, err := wire.DecodeListen([]byte(test.params))
			if err != nil || asked != test.asked || !slices.Equal(ids, test.ids) {
				t.Errorf("got %q %v %v", ids, asked, err)
			}
		})
	}
}

func TestDecodeListenRefuses(t *testing.T) {
	with := func(taskIDs string) string { return `{"notifications":{"taskIds":` + taskIDs + `},` + meta + `}` }
	for _, test := range []struct {
		name, params string
		code         int64
		message      string
	}{
		{"params that do not parse", with(`["a"],"taskIds":["b"]`), wire.CodeInvalidParams, "Invalid params: invalid JSON at offset 34: a member name occurs twice in one object"},
		{"params that are an array", `[]`, wire.CodeInvalidParams, "Invalid params: params must be an object, not an array"},
		{"another revision", strings.Replace(with(`["a"]`), "2026-07-28", "2025-11-25", 1), wire.CodeUnsupportedProtocolVersion, ""},
		{"no capability", `{"notifications":{"taskIds":["a"]}}`, wire.CodeMissingCapability, ""},
		{"no capability comes before the list's form", `{"notifications":{"taskIds":7}}`, wire.CodeMissingCapability, ""},
		{"no capability, for no task", `{"notifications":{"taskIds":[]}}`, wire.CodeMissingCapability, ""},
		{"null", with(`null`), wire.CodeInvalidParams, "Invalid params: notifications.taskIds must be an array, not null"},
		{"one id", with(`"secret"`), wire.CodeInvalidParams, "Invalid params: notifications.taskIds must be an array, not a string"},
		{"a number among them", with(`["a",41]`), wire.CodeInvalidParams, "Invalid params: notifications.taskIds must hold strings, not a number"},
		{"null among them", with(`[null]`), wire.CodeInvalidParams, "Invalid params: notifications.taskIds must hold strings, not null"},
		{"too many", with(idList(wire.MaxListenTasks + 1)), wire.CodeInvalidParams, "Invalid params: notifications.taskIds holds more than 1000 ids"},
		{"too many of one", with(`["a"` + strings.Repeat(`,"a"`, wire.MaxListenTasks) + `]`), wire.CodeInvalidParams, "Invalid params: notifications.taskIds holds more than 1000 ids"},
	} {
		t.Run(test.name, func(t *testing.T) {
			ids, asked, err := wire.DecodeListen([]byte(test.params))
			if rpc := rpcError(t, err); rpc.Code != test.code || test.message != "" && rpc.Message != test.message {
				t.Errorf("got %v", err)
			}
			if ids != nil || !asked {
				t.Errorf("beside the error: %q %v", ids, asked)
			}
		})
	}
	if ids, _, err := wire.DecodeListen([]byte(with(idList(wire.MaxListenTasks)))); err != nil || len(ids) != wire.MaxListenTasks {
		t.Errorf("as many as may be: %d ids, %v", len(ids), err)
	}
}

// idList returns an array of n ids.
func idList(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `,"id-%d"`, i)
	}
	return "[" + b.String()[1:] + "]"
}
