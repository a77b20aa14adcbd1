package schemacheck

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
	"pgregory.net/rapid"
)

// TestViews validates what wire writes for tasks in any state, with payloads
// that the generator makes.
func TestViews(t *testing.T) {
	v := newVerdicts(t)
	valid := map[string]func(string) error{}
	for _, name := range []string{"CreateTaskResult", "GetTaskResult", "DetailedTask", "TaskStatusNotification", "TaskStatusNotificationParams", "UpdateTaskResult", "CancelTaskResult"} {
		valid[name] = v.ext.validator(ext + "#/$defs/" + name)
	}
	rapid.Check(t, func(t *rapid.T) {
		g := generator{v.core, t}
		task := g.task()
		number := wire.TaskNotification{Task: task, SubscriptionID: wire.MustParse(oneOf(g, []string{`"listen:0"`, `7`}))}
		for _, view := range []struct{ definition, text string }{
			{"CreateTaskResult", string(wire.CreateTaskResult{Task: task}.AppendJSON(nil))},
			{"GetTaskResult", string(wire.GetTaskResult{Task: task}.AppendJSON(nil))},
			{"DetailedTask", string(wire.GetTaskResult{Task: task}.AppendJSON(nil))},
			{"TaskStatusNotificationParams", string(number.AppendJSON(nil))},
			{"TaskStatusNotification", `{"jsonrpc":"2.0","method":"` + wire.MethodTaskNotification + `","params":` + string(wire.TaskNotification{Task: task}.AppendJSON(nil)) + `}`},
			{"UpdateTaskResult", string(wire.UpdateTaskResult{}.AppendJSON(nil))},
			{"CancelTaskResult", string(wire.CancelTaskResult{}.AppendJSON(nil))},
		} {
			if err := valid[view.definition](view.text); err != nil {
				t.Fatalf("%s: %s\n%v", view.definition, view.text, err)
			}
		}
	})
}

// task makes a task with the payload of its status.
func (g generator) task() wire.Task {
	text := rapid.String().Draw(g.t, "text")
	instant := rapid.Int64Range(0, 253_402_300_799_999) // up to the year 9999
	duration := rapid.Int64Range(1, int64(math.MaxInt64))
	task := wire.Task{
		TaskID:        "t" + text,
		Status:        oneOf(g, []wire.Status{wire.StatusWorking, wire.StatusInputRequired, wire.StatusCompleted, wire.StatusFailed, wire.StatusCancelled}),
		StatusMessage: text,
		CreatedAt:     time.UnixMilli(instant.Draw(g.t, "created")),
		LastUpdatedAt: time.UnixMilli(instant.Draw(g.t, "updated")),
		TTL:           oneOf(g, []time.Duration{wire.NoLimit, time.Duration(duration.Draw(g.t, "ttl"))}),
		PollInterval:  oneOf(g, []time.Duration{0, wire.NoLimit, time.Duration(duration.Draw(g.t, "poll"))}),
	}
	switch task.Status {
	case wire.StatusInputRequired:
		task.InputRequests = map[string]wire.JSON{}
		for range g.pick(3, "requests") {
			definition := oneOf(g, []string{"CreateMessageRequest", "ListRootsRequest", "ElicitRequest"})
			request := wire.MustParse(encode(g.value(g.def(definition), "", 0)))
			if wire.CheckInputRequest(request) == nil && !strings.Contains(request.String(), `"metadata"`) { // see the difference on metadata
				task.InputRequests[rapid.String().Draw(g.t, "key")] = request
			}
		}
	case wire.StatusCompleted:
		task.Result = wire.MustParse(encode(map[string]any{"resultType": "complete", "x": g.junk()}))
	case wire.StatusFailed:
		task.Error = wire.MustParse(string((&wire.Error{Code: int64(g.pick(1000, "code")) - 500, Message: text, Data: wire.MustParse(encode(g.junk()))}).AppendJSON(nil)))
	}
	return task
}

// TestGoldens validates the golden files of package wire.
func TestGoldens(t *testing.T) {
	extension, protocol := load(t, ext), load(t, core)
	params := extension.validator(ext + "#/$defs/TaskStatusNotificationParams")
	agreed := extension.validator(ext + "#/$defs/TaskSubscriptionAcknowledgedNotifications") // what the extension adds
	whole := protocol.validator(core + "#/$defs/SubscriptionsAcknowledgedNotificationParams")
	acknowledged := func(text string) error {
		return errors.Join(whole(text), agreed(wire.MustParse(text).Get("notifications").String()))
	}
	anyError := extension.validator(ext + "#/$defs/Error")
	response := func(check func(string) error) func(string) error {
		return func(text string) error { return check(`{"jsonrpc":"2.0","id":1,"error":` + text + `}`) }
	}
	definitions := []struct {
		pattern string
		valid   func(string) error
	}{
		{"create*.json", extension.validator(ext + "#/$defs/CreateTaskResult")},
		{"get-*.json", extension.validator(ext + "#/$defs/GetTaskResult")},
		{"update.json", extension.validator(ext + "#/$defs/UpdateTaskResult")},
		{"cancel.json", extension.validator(ext + "#/$defs/CancelTaskResult")},
		{"notification*.json", params},
		{"listening*.json", acknowledged},
		{"error-missing-capability.json", response(protocol.validator(core + "#/$defs/MissingRequiredClientCapabilityError"))},
		{"error-version.json", response(protocol.validator(core + "#/$defs/UnsupportedProtocolVersionError"))},
		{"error-*.json", anyError},
	}
	files, err := filepath.Glob(filepath.Join("..", "..", "wire", "testdata", "*.json"))
	if err != nil || len(files) < 15 {
		t.Fatalf("%d golden files, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		checked := false
		for _, d := range definitions {
			if match, err := filepath.Match(d.pattern, filepath.Base(file)); err != nil {
				t.Fatal(err)
			} else if match {
				checked = true
				if err := d.valid(string(text)); err != nil {
					t.Errorf("%s by %s: %v", file, d.pattern, err)
				}
			}
		}
		if !checked {
			t.Errorf("%s has no definition", file)
		}
	}
}
