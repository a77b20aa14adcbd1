package schemacheck

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"pgregory.net/rapid"
)

// TestEngineViews takes random steps with one task of an engine, and validates
// what its client sees after each.
func TestEngineViews(t *testing.T) {
	v := newVerdicts(t)
	created := v.ext.validator(ext + "#/$defs/CreateTaskResult")
	shown := v.ext.validator(ext + "#/$defs/GetTaskResult")
	notified := v.ext.validator(ext + "#/$defs/TaskStatusNotificationParams")
	seen := map[wire.Status]bool{}
	rapid.Check(t, func(t *rapid.T) {
		g := generator{v.core, t}
		tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		live := context.Background()
		create, err := tasks.CreateTask(live, &durabletasks.CreateOptions{
			TTL:           oneOf(g, []time.Duration{0, durabletasks.NoLimit, time.Hour + time.Nanosecond}),
			PollInterval:  oneOf(g, []time.Duration{0, durabletasks.NoLimit, time.Nanosecond}),
			StatusMessage: rapid.String().Draw(t, "message"),
		})
		if err != nil {
			t.Fatal(err)
		}
		check := func(valid func(string) error, text []byte) {
			if err := valid(string(text)); err != nil {
				t.Fatalf("%s\n%v", text, err)
			}
		}
		check(created, create.AppendJSON(nil))
		h, err := tasks.Handle(live, create.TaskID)
		if err != nil {
			t.Fatal(err)
		}
		ask := oneOf(g, []string{"ElicitRequest", "ListRootsRequest"})
		for step := range g.pick(8, "steps") {
			switch g.pick(10, "action") {
			case 0, 1, 2:
				request := wire.MustParse(encode(g.value(g.def(ask), "", 0)))
				if wire.CheckInputRequest(request) != nil {
					continue
				}
				key := fmt.Sprint(step, " a")
				interrupted, stop := context.WithCancel(live)
				asked := make(chan error, 1)
				go func() {
					_, err := h.RequestInput(interrupted, map[string]wire.JSON{key: request, fmt.Sprint(step, " b"): request}, nil)
					asked <- err
				}()
				for waiting := true; waiting; { // until it waits for answers, or was refused
					select {
					case <-asked:
						waiting = false
					default:
						task, err := tasks.GetTask(live, create.TaskID)
						if err != nil {
							t.Fatal(err)
						}
						if _, shown := task.InputRequests[key]; shown {
							stop()
							<-asked
							waiting = false
						}
						runtime.Gosched()
					}
				}
				stop()
			case 3, 4, 5:
				task, err := tasks.GetTask(live, create.TaskID)
				if err != nil {
					t.Fatal(err)
				}
				for key := range task.InputRequests {
					answer := `{"roots":[]}`
					if ask == "ElicitRequest" {
						answer = `{"action":"decline"}`
					}
					if _, err := tasks.UpdateTask(live, create.TaskID, map[string]wire.JSON{key: wire.MustParse(answer)}); err != nil {
						t.Fatal(err)
					}
					break
				}
			case 6:
				_ = h.Progress(live, rapid.String().Draw(t, "message"), nil)
			case 7:
				_ = tasks.CancelTask(live, create.TaskID)
			case 8:
				_ = h.Withdraw(live)
			case 9:
				switch g.pick(3, "end") {
				case 0:
					_ = h.Complete(live, wire.MustParse(encode(map[string]any{"content": []any{}, "x": g.junk()})))
				case 1:
					_ = h.Fail(live, &wire.Error{Code: int64(g.pick(9, "code")), Message: "m" + rapid.String().Draw(t, "failure"), Data: wire.MustParse(encode(g.junk()))})
				case 2:
					_ = h.Cancelled(live, "")
				}
			}
			task, err := tasks.GetTask(live, create.TaskID)
			if err != nil {
				t.Fatal(err)
			}
			seen[task.Status] = true
			check(shown, wire.GetTaskResult{Task: task}.AppendJSON(nil))
			check(notified, wire.TaskNotification{Task: task, SubscriptionID: wire.MustParse(`1`)}.AppendJSON(nil))
		}
	})
	if len(seen) != 5 {
		t.Errorf("the engine was seen in %d of the five states: %v", len(seen), seen)
	}
}
