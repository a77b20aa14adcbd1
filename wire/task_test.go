package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// view is what every answer of the package can do.
type view interface {
	AppendJSON([]byte) []byte
	WriteTo(io.Writer) (int64, error)
	MarshalJSON() ([]byte, error)
}

// goldenTask is a task with every field set. What it may show depends on its
// status alone.
func goldenTask(status wire.Status) wire.Task {
	return wire.Task{
		TaskID:        "786512e2-9e0d-44bd-8f29-789f320fe840",
		Status:        status,
		StatusMessage: "crawling page \"7\" of <30> & more\u2028",
		CreatedAt:     time.Date(2026, 7, 28, 12, 0, 0, 123_999_999, time.FixedZone("CEST", 2*60*60)),
		LastUpdatedAt: time.Date(2026, 7, 28, 10, 0, 1, 0, time.UTC),
		TTL:           time.Hour,
		PollInterval:  1500 * time.Millisecond,
		InputRequests: map[string]wire.JSON{
			"name": wire.MustParse(`{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`),
			"dirs": wire.MustParse(`{"method":"roots/list"}`),
		},
		Result: wire.MustParse(`{"resultType":"complete","content":[{"type":"text","text":"9007199254740993 <&>\u2028"}],"structuredContent":{"n":12345678901234567890.10,"z":1,"a":2}}`),
		Error:  wire.MustParse(`{"code":-32603,"message":"Internal error","data":{"big":9007199254740993}}`),
	}
}

func goldens() map[string]view {
	minimal := wire.Task{TaskID: "a", Status: wire.StatusWorking, TTL: wire.NoLimit, PollInterval: wire.NoLimit}
	m := map[string]view{
		"create":            wire.CreateTaskResult{Task: goldenTask(wire.StatusWorking)},
		"create-terminal":   wire.CreateTaskResult{Task: goldenTask(wire.StatusCompleted)},
		"create-minimal":    wire.CreateTaskResult{Task: minimal},
		"get-minimal":       wire.GetTaskResult{Task: minimal},
		"update":            wire.UpdateTaskResult{},
		"cancel":            wire.CancelTaskResult{},
		"notification":      wire.TaskNotification{Task: goldenTask(wire.StatusCompleted), SubscriptionID: wire.MustParse(`"listen:0"`)},
		"notification-bare": wire.TaskNotification{Task: goldenTask(wire.StatusInputRequired)},
		"listening": wire.ListenAcknowledgement{
			SubscriptionID: wire.MustParse(`7`),
			Others:         wire.MustParse(`{"toolsListChanged":true,"resourceSubscriptions":["file:///a"]}`),
			TaskIDs:        []string{"786512e2-9e0d-44bd-8f29-789f320fe840", "a \"b\""},
		},
		"listening-tasks":   wire.ListenAcknowledgement{SubscriptionID: wire.MustParse(`"listen:0"`), TaskIDs: []string{"a"}},
		"listening-nothing": wire.ListenAcknowledgement{SubscriptionID: wire.MustParse(`"listen:0"`)},
	}
	for _, status := range []wire.Status{wire.StatusWorking, wire.StatusInputRequired, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled} {
		m["get-"+string(status)] = wire.GetTaskResult{Task: goldenTask(status)}
	}
	return m
}

func TestGoldenViews(t *testing.T) {
	for name, v := range goldens() {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, name, v.AppendJSON(nil))
		})
	}
}

func TestGoldenErrors(t *testing.T) {
	dispatch := func(err error, params string) *wire.Error {
		_, err = wire.Dispatch(t.Context(), &backend{err: err}, wire.MethodUpdate, []byte(params))
		return rpcError(t, err)
	}
	good := `{"taskId":"a","inputResponses":{},` + meta + `}`
	for name, err := range map[string]*wire.Error{
		"error-not-found":          dispatch(wire.ErrTaskNotFound, good),
		"error-internal":           dispatch(errors.New("disk full"), good),
		"error-shape":              dispatch(&wire.ShapeError{Key: "name", Pointer: "/content/a~1b", Expected: "a string"}, good),
		"error-missing-capability": dispatch(nil, `{"taskId":"a"}`),
		"error-version":            dispatch(nil, strings.Replace(good, "2026-07-28", "2025-11-25", 1)),
		"error-params":             dispatch(nil, `{"taskId":7,`+meta+`}`),
		"error-syntax":             dispatch(nil, `{"taskId":"a","taskId":"b"}`),
		"error-data":               {Code: -1, Message: "<a>\n\x01\"\\\xff", Data: wire.MustParse(`[9007199254740993,null]`)},
	} {
		t.Run(name, func(t *testing.T) {
			checkGolden(t, name, err.AppendJSON(nil))
			if text, marshalErr := err.MarshalJSON(); marshalErr != nil || string(text) != string(err.AppendJSON(nil)) {
				t.Errorf("MarshalJSON = %s, %v", text, marshalErr)
			}
		})
	}
}

// rpcError returns the *wire.Error that err is.
func rpcError(t *testing.T, err error) *wire.Error {
	t.Helper()
	var rpc *wire.Error
	if !errors.As(err, &rpc) {
		t.Fatalf("%v is no *wire.Error", err)
	}
	return rpc
}

func checkGolden(t *testing.T, name string, got []byte) {
	t.Helper()
	if _, err := wire.ParseJSON(got); err != nil {
		t.Errorf("%v in %s", err, got)
	}
	got = append(got, '\n')
	path := filepath.Join("testdata", name+".json")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v (write it with -update)", err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s:\n got %swant %s", path, got, want)
	}
}

// TestViewsAgree holds that the ways to encode a view give one text, and that
// a writer which fails is reported with what it took.
func TestViewsAgree(t *testing.T) {
	for name, v := range goldens() {
		want := string(v.AppendJSON(nil))
		if got := string(v.AppendJSON([]byte("before"))); got != "before"+want {
			t.Errorf("%s: AppendJSON after a text = %s", name, got)
		}
		if got, err := v.MarshalJSON(); err != nil || string(got) != want {
			t.Errorf("%s: MarshalJSON = %s, %v", name, got, err)
		}
		var b bytes.Buffer
		if n, err := v.WriteTo(&b); n != int64(len(want)) || err != nil || b.String() != want {
			t.Errorf("%s: WriteTo = %d, %v, %s", name, n, err, b.String())
		}
		for room := range len(want) {
			if n, err := v.WriteTo(&failingWriter{room}); n != int64(room) || !errors.Is(err, errFull) {
				t.Errorf("%s: WriteTo to a writer with room for %d = %d, %v", name, room, n, err)
				break
			}
		}
		if got, err := json.Marshal(v); err != nil || !json.Valid(got) {
			t.Errorf("%s: json.Marshal = %s, %v", name, got, err)
		}
	}
}

// TestPayloadsStayOut holds that a view shows the payload of its status and
// none else, also when the record behind it holds more or less.
func TestPayloadsStayOut(t *testing.T) {
	for status, want := range map[wire.Status]string{
		wire.StatusWorking: "", wire.StatusInputRequired: "inputRequests", wire.StatusCompleted: "result", wire.StatusFailed: "error", wire.StatusCancelled: "",
	} {
		j := wire.MustParse(string(wire.GetTaskResult{Task: goldenTask(status)}.AppendJSON(nil)))
		for _, member := range []string{"inputRequests", "result", "error"} {
			if got := !j.Get(member).IsZero(); got != (member == want) {
				t.Errorf("%s shows %s: %v", status, member, got)
			}
		}
		create := wire.MustParse(string(wire.CreateTaskResult{Task: goldenTask(status)}.AppendJSON(nil)))
		for name := range create.Members() {
			switch name {
			case "resultType", "taskId", "status", "statusMessage", "createdAt", "lastUpdatedAt", "ttlMs", "pollIntervalMs":
			default:
				t.Errorf("the answer that creates a %s task shows %s", status, name)
			}
		}
	}
	// Nothing that is absent may show as null: clients refuse it.
	for _, status := range []wire.Status{wire.StatusCompleted, wire.StatusFailed, wire.StatusInputRequired} {
		text := string(wire.GetTaskResult{Task: wire.Task{Status: status, TTL: time.Second}}.AppendJSON(nil))
		if strings.Contains(text, "null") || !json.Valid([]byte(text)) {
			t.Errorf("a %s task without its payload shows %s", status, text)
		}
	}
}

// TestDurationsAreRoundedUp holds that a short time to live never shows as
// none.
func TestDurationsAreRoundedUp(t *testing.T) {
	for d, want := range map[time.Duration]string{
		1: "1", time.Microsecond: "1", 999 * time.Microsecond: "1", time.Millisecond: "1", time.Millisecond + 1: "2", 1500 * time.Microsecond: "2", time.Second: "1000", 0: "0",
		math.MaxInt64: "9223372036855", wire.NoLimit: "null",
	} {
		view := wire.MustParse(string(wire.GetTaskResult{Task: wire.Task{TTL: d, PollInterval: d}}.AppendJSON(nil)))
		if got := view.Get("ttlMs").String(); got != want {
			t.Errorf("the time to live %v shows as %s, want %s", d, got, want)
		}
		if got := view.Get("pollIntervalMs").String(); d > 0 && got != want || d <= 0 && got != "" {
			t.Errorf("the poll interval %v shows as %q, want %s", d, got, want)
		}
	}
}

func TestStatus(t *testing.T) {
	for status, want := range map[wire.Status][2]bool{ // valid, terminal
		"working": {true, false}, "input_required": {true, false}, "completed": {true, true}, "failed": {true, true}, "cancelled": {true, true},
		"": {}, "canceled": {}, "Completed": {}, "submitted": {},
	} {
		if got := [2]bool{status.Valid(), status.Terminal()}; got != want {
			t.Errorf("%q is valid, terminal: %v, want %v", status, got, want)
		}
	}
}
