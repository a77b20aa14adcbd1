package wire_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// backend is a wire.Backend that records what it is asked and answers err.
type backend struct {
	task  wire.Task
	err   error
	calls []string
}

func (b *backend) GetTask(_ context.Context, id string) (wire.Task, error) {
	b.calls = append(b.calls, "get "+id)
	return b.task, b.err
}

func (b *backend) UpdateTask(_ context.Context, id string, answers map[string]wire.JSON) ([]string, error) {
	call := "update " + id
	for _, key := range slices.Sorted(maps.Keys(answers)) {
		call += " " + key + "=" + answers[key].String()
	}
	b.calls = append(b.calls, call)
	return []string{"late"}, b.err
}

func (b *backend) CancelTask(_ context.Context, id string) error {
	b.calls = append(b.calls, "cancel "+id)
	return b.err
}

func TestDispatch(t *testing.T) {
	created := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, test := range []struct{ method, params, call, result string }{
		{wire.MethodGet, `{"taskId":"a",` + meta + `}`, "get a", `{"resultType":"complete","taskId":"a","status":"working","createdAt":"2026-01-02T03:04:05.000Z","lastUpdatedAt":"2026-01-02T03:04:05.000Z","ttlMs":null}`},
		{wire.MethodUpdate, `{"taskId":"a","inputResponses":{"k":{"action":"cancel"},"late":1},` + meta + `}`, `update a k={"action":"cancel"} late=1`, `{"resultType":"complete"}`},
		{wire.MethodCancel, `{"taskId":"a",` + meta + `}`, "cancel a", `{"resultType":"complete"}`},
	} {
		b := &backend{task: wire.Task{TaskID: "a", Status: wire.StatusWorking, CreatedAt: created, LastUpdatedAt: created, TTL: wire.NoLimit}}
		result, err := wire.Dispatch(t.Context(), b, test.method, []byte(test.params))
		if err != nil {
			t.Errorf("%s = %v", test.method, err)
			continue
		}
		if got := string(result.AppendJSON(nil)); got != test.result {
			t.Errorf("%s = %s, want %s", test.method, got, test.result)
		}
		if !slices.Equal(b.calls, []string{test.call}) {
			t.Errorf("%s calls %q, want %q", test.method, b.calls, test.call)
		}
	}
}

// TestDispatchRefusesBeforeTheBackend holds that nothing is looked up or
// changed for a request that is refused.
func TestDispatchRefusesBeforeTheBackend(t *testing.T) {
	for _, test := range []struct {
		method, params string
		code           int64
	}{
		{"tasks/list", `{"taskId":"a",` + meta + `}`, wire.CodeMethodNotFound},
		{wire.MethodCancel, `{"taskId":"a"`, wire.CodeInvalidParams},
		{wire.MethodCancel, `{"taskId":"a"}`, wire.CodeMissingCapability},
		{wire.MethodCancel, ``, wire.CodeMissingCapability},
		{wire.MethodCancel, `{"taskId":"a","_meta":{"io.modelcontextprotocol/protocolVersion":"2025-11-25"}}`, wire.CodeUnsupportedProtocolVersion},
		{wire.MethodCancel, `{"taskId":1,` + meta + `}`, wire.CodeInvalidParams},
		{wire.MethodGet, `{"taskId":"",` + meta + `}`, wire.CodeInvalidParams},
		{wire.MethodUpdate, `{"taskId":"a",` + meta + `}`, wire.CodeInvalidParams},
	} {
		b := new(backend)
		result, err := wire.Dispatch(t.Context(), b, test.method, []byte(test.params))
		var rpc *wire.Error
		if result != nil || !errors.As(err, &rpc) || rpc.Code != test.code || errors.Unwrap(err) != nil {
			t.Errorf("%s %s = %v, %v, want code %d", test.method, test.params, result, err, test.code)
		}
		if b.calls != nil {
			t.Errorf("%s %s calls %q", test.method, test.params, b.calls)
		}
	}
}

func TestDispatchErrors(t *testing.T) {
	const secret = "hunter2"
	for _, test := range []struct {
		name string
		err  error
		want string
		log  bool
	}{
		{"not found", wire.ErrTaskNotFound, `{"code":-32602,"message":"Task not found"}`, false},
		{"not found, wrapped with details", fmt.Errorf("task %s: %w", secret, wire.ErrTaskNotFound), `{"code":-32602,"message":"Task not found"}`, false},
		{"a wrong answer", fmt.Errorf("task %s: %w", secret, &wire.ShapeError{Key: "k", Pointer: "/action", Expected: "a string"}), `{"code":-32602,"message":"Invalid params: input \"k\": at \"/action\": expected a string"}`, false},
		{"a fault of the store", fmt.Errorf("open /%s: disk full", secret), `{"code":-32603,"message":"Internal error"}`, true},
		{"an ended context", context.Canceled, `{"code":-32603,"message":"Internal error"}`, true},
	} {
		for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
			b := &backend{err: test.err}
			result, err := wire.Dispatch(t.Context(), b, method, []byte(`{"taskId":"a","inputResponses":{},`+meta+`}`))
			var rpc *wire.Error
			if result != nil || !errors.As(err, &rpc) {
				t.Errorf("%s, %s = %v, %v, want a *wire.Error", test.name, method, result, err)
				continue
			}
			if got := string(rpc.AppendJSON(nil)); got != test.want {
				t.Errorf("%s, %s: the error is %s, want %s", test.name, method, got, test.want)
			}
			if strings.Contains(err.Error(), secret) {
				t.Errorf("%s, %s: the error's text is %q", test.name, method, err)
			}
			if cause := errors.Unwrap(err); test.log && cause != test.err || !test.log && cause != nil {
				t.Errorf("%s, %s: the cause is %v", test.name, method, cause)
			}
		}
	}
}

// An error of the protocol that a backend returns is sent as it is.
func TestDispatchPassesErrorsOn(t *testing.T) {
	want := &wire.Error{Code: -32000, Message: "Busy", Data: wire.MustParse(`{"retryAfterMs":1000}`)}
	b := &backend{err: fmt.Errorf("hunter2: %w", want)}
	if _, err := wire.Dispatch(t.Context(), b, wire.MethodCancel, []byte(`{"taskId":"a",`+meta+`}`)); err != error(want) {
		t.Errorf("got %v, want %v", err, want)
	}
}
