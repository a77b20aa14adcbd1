package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A host without an SDK answers tools/call with a task, and hands the requests
// for tasks to wire.Dispatch.
func Example() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()

	// A tools/call, as it came over the transport. When StartTask returns, the
	// task is stored, and its worker runs with the values of ctx, but not its
	// cancellation.
	ctx := durabletasks.WithOwner(context.Background(), "alice")
	call := wire.MustParse(`{"name":"weather","arguments":{"city":"New York"},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
	if err := wire.CheckEnvelope(call); err != nil { // the client does not take tasks
		log.Fatal(err)
	}
	name, _ := call.Get("name").Text()
	created, err := tasks.StartTask(ctx, &durabletasks.CreateOptions{
		StatusMessage:    "Looking outside.",
		Tool:             name,
		Payload:          call.Get("arguments"), // for a restart
		UnsupportedInput: wire.UnsupportedInput(call),
	}, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return wire.MustParse(`{"content":[{"type":"text","text":"Sunny."}]}`), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tools/call:", redact(created))

	for _, err := range tasks.Watch(ctx, created.TaskID) { // until it has ended
		if err != nil {
			log.Fatal(err)
		}
	}

	// A tasks/get, as it came over the transport.
	params := []byte(`{"taskId":"` + created.TaskID + `","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
	result, err := wire.Dispatch(ctx, tasks, "tasks/get", params)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tasks/get:", redact(result))

	// To anybody else the task does not exist. An error of Dispatch is what the
	// client gets; what it unwraps to is for the log.
	_, err = wire.Dispatch(context.Background(), tasks, "tasks/get", params)
	var failure *wire.Error
	if errors.As(err, &failure) {
		fmt.Println("tasks/get:", string(failure.AppendJSON(nil)))
	}
	// Output:
	// tools/call: {"resultType":"task","taskId":"…","status":"working","statusMessage":"Looking outside.","createdAt":"…","lastUpdatedAt":"…","ttlMs":3600000,"pollIntervalMs":1000}
	// tasks/get: {"resultType":"complete","taskId":"…","status":"completed","statusMessage":"Looking outside.","createdAt":"…","lastUpdatedAt":"…","ttlMs":3600000,"pollIntervalMs":1000,"result":{"resultType":"complete","content":[{"type":"text","text":"Sunny."}]}}
	// tasks/get: {"code":-32602,"message":"Task not found"}
}

var changing = regexp.MustCompile(`"(taskId|createdAt|lastUpdatedAt)":"[^"]*"`)

func redact(r wire.Result) string {
	return changing.ReplaceAllString(string(r.AppendJSON(nil)), `"$1":"…"`)
}

// A worker saves where it is. If it runs again after a crash, it goes on from
// there.
func ExampleCheckpoint() {
	crawl := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		page, err := durabletasks.Checkpoint[int](ctx, h) // 0 at first
		if err != nil {
			return wire.JSON{}, err
		}
		for ; page < 3; page++ {
			fmt.Println("reading page", page)
			if err := h.SaveCheckpoint(ctx, page+1); err != nil {
				return wire.JSON{}, err
			}
		}
		return wire.MustParse(`{"content":[]}`), nil
	}

	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	created, err := tasks.CreateTask(ctx, nil)
	if err != nil {
		log.Fatal(err)
	}
	// An earlier run has read the first page.
	earlier, err := tasks.Handle(ctx, created.TaskID)
	if err != nil {
		log.Fatal(err)
	}
	if err := earlier.SaveCheckpoint(ctx, 1); err != nil {
		log.Fatal(err)
	}
	if err := tasks.Go(ctx, created.TaskID, crawl); err != nil {
		log.Fatal(err)
	}
	if err := tasks.Shutdown(ctx); err != nil { // waits for the worker
		log.Fatal(err)
	}
	// Output:
	// reading page 1
	// reading page 2
}

// A worker asks before it acts.
func ExampleHandle_Confirm() {
	cleanUp := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		yes, err := h.Confirm(ctx, "delete", "Delete 12 files?")
		if err != nil {
			return wire.JSON{}, err
		}
		if !yes {
			return wire.MustParse(`{"content":[{"type":"text","text":"Nothing deleted."}]}`), nil
		}
		return wire.MustParse(`{"content":[{"type":"text","text":"12 files deleted."}]}`), nil
	}

	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	ctx := context.Background()
	created, err := tasks.StartTask(ctx, nil, cleanUp)
	if err != nil {
		log.Fatal(err)
	}
	// The client sees the question in tasks/get, and answers by tasks/update.
	for task, err := range tasks.Watch(ctx, created.TaskID) {
		if err != nil {
			log.Fatal(err)
		}
		switch task.Status {
		case durabletasks.StatusInputRequired:
			fmt.Println("question:", task.InputRequests["delete"].Get("params").Get("message"))
			answer := wire.MustParse(`{"action":"accept","content":{"confirm":true}}`)
			if _, err := tasks.UpdateTask(ctx, task.TaskID, map[string]wire.JSON{"delete": answer}); err != nil {
				log.Fatal(err)
			}
		case durabletasks.StatusCompleted:
			fmt.Println("result:", task.Result.Get("content"))
		}
	}
	// Output:
	// question: "Delete 12 files?"
	// result: [{"type":"text","text":"12 files deleted."}]
}

// A worker asks with a form of several fields, and does not wait for ever.
func ExampleHandle_RequestInput() {
	book := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		form := wire.FormRequest{
			Message: "Which table?",
			Fields: []wire.Field{
				{Name: "seats", Required: true, Schema: wire.IntegerSchema{Range: wire.Between(1, 8)}},
				{Name: "where", Required: true, Schema: wire.SingleSelectSchema{Options: wire.Options("inside", "outside")}},
			},
		}
		request, err := form.JSON()
		if err != nil {
			return wire.JSON{}, err
		}
		answers, err := h.RequestInput(ctx, map[string]wire.JSON{"table": request},
			&durabletasks.InputOptions{Timeout: 10 * time.Minute}) // even if the server restarts meanwhile
		if errors.Is(err, durabletasks.ErrUnanswered) {
			return wire.MustParse(`{"content":[{"type":"text","text":"No table was reserved."}]}`), nil
		}
		if err != nil {
			return wire.JSON{}, err
		}
		table := wire.ElicitResult(answers["table"])
		if !table.Accepted() {
			return wire.MustParse(`{"content":[{"type":"text","text":"Perhaps next time."}]}`), nil
		}
		if err := form.Check(table); err != nil {
			return wire.JSON{}, err
		}
		seats, _ := table.Int("seats")
		where, _ := table.Text("where")
		return wire.Marshal(map[string]any{"content": []any{}, "structuredContent": map[string]any{"seats": seats, "where": where}})
	}

	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	ctx := context.Background()
	created, err := tasks.StartTask(ctx, nil, book)
	if err != nil {
		log.Fatal(err)
	}
	for task, err := range tasks.Watch(ctx, created.TaskID) {
		if err != nil {
			log.Fatal(err)
		}
		switch task.Status {
		case durabletasks.StatusInputRequired:
			answer := wire.MustParse(`{"action":"accept","content":{"seats":2,"where":"outside"}}`)
			if _, err := tasks.UpdateTask(ctx, task.TaskID, map[string]wire.JSON{"table": answer}); err != nil {
				log.Fatal(err)
			}
		case durabletasks.StatusCompleted:
			fmt.Println(task.Result.Get("structuredContent"))
		}
	}
	// Output:
	// {"seats":2,"where":"outside"}
}

// A task belongs to the owner that it was created for. To anybody else it does
// not exist.
func ExampleWithOwner() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
	alice := durabletasks.WithOwner(context.Background(), "alice")
	mallory := durabletasks.WithOwner(context.Background(), "mallory")
	created, err := tasks.CreateTask(alice, nil)
	if err != nil {
		log.Fatal(err)
	}
	task, err := tasks.GetTask(alice, created.TaskID)
	fmt.Println(task.Status, err)
	_, err = tasks.GetTask(mallory, created.TaskID)
	fmt.Println(errors.Is(err, durabletasks.ErrNotFound))
	// Output:
	// working <nil>
	// true
}

// The next process resumes what the last one left: a worker that runs again
// asks the same question, and the user is not asked twice.
func ExampleTaskLifecycle_Recover() {
	deploy := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		yes, err := h.Confirm(ctx, "deploy", "Deploy to production?")
		if err != nil {
			return wire.JSON{}, err // ErrShutdown: the task stays, to be resumed
		}
		fmt.Println("confirmed:", yes)
		return wire.MustParse(`{"content":[]}`), nil
	}
	tools := map[string]durabletasks.Worker{"deploy": deploy}

	dir, err := os.MkdirTemp("", "tasks")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	process := func(run func(tasks *durabletasks.TaskLifecycle)) {
		store, err := wal.Open(filepath.Join(dir, "tasks"), nil)
		if err != nil {
			log.Fatal(err)
		}
		tasks, err := durabletasks.New(store, nil)
		if err != nil {
			log.Fatal(err)
		}
		if _, err := tasks.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
			fmt.Println("recovered:", r.Tool)
			return tools[r.Tool] // nil leaves the task as it is
		}); err != nil {
			log.Fatal(err)
		}
		run(tasks)
		if err := tasks.Shutdown(ctx); err != nil {
			log.Fatal(err)
		}
	}

	var id string
	process(func(tasks *durabletasks.TaskLifecycle) {
		created, err := tasks.StartTask(ctx, &durabletasks.CreateOptions{Tool: "deploy"}, deploy)
		if err != nil {
			log.Fatal(err)
		}
		id = created.TaskID
		for task := range tasks.Watch(ctx, id) {
			if task.Status == durabletasks.StatusInputRequired {
				break // and the process ends
			}
		}
	})
	process(func(tasks *durabletasks.TaskLifecycle) {
		answer := wire.MustParse(`{"action":"accept","content":{"confirm":true}}`)
		if _, err := tasks.UpdateTask(ctx, id, map[string]wire.JSON{"deploy": answer}); err != nil {
			log.Fatal(err)
		}
		for task := range tasks.Watch(ctx, id) {
			if task.Status.Terminal() {
				fmt.Println(task.Status)
			}
		}
	})
	// Output:
	// recovered: deploy
	// confirmed: true
	// completed
}

// When a server shuts down, the contexts of its workers end. What they finish
// is stored, and what they give up is left for the next process.
func ExampleTaskLifecycle_Shutdown() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := tasks.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		<-ctx.Done()
		fmt.Println(context.Cause(ctx))
		return wire.JSON{}, context.Cause(ctx) // the task stays unfinished
	}); err != nil {
		log.Fatal(err)
	}
	grace, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	err = tasks.Shutdown(grace)
	var late *durabletasks.ShutdownError
	if errors.As(err, &late) {
		fmt.Println("workers still running:", len(late.TaskIDs))
	}
	// Output:
	// durabletasks: shutting down
}

// Events are for metrics. They arrive in commit order for each task, and give
// no access to it.
func ExampleOptions_onEvent() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), &durabletasks.Options{
		OnEvent: func(e durabletasks.Event) { fmt.Println(e.Kind, e.Tool, e.Status) },
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := tasks.StartTask(ctx, &durabletasks.CreateOptions{Tool: "pay"}, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{Code: -32000, Message: "no more credit"}
	}); err != nil {
		log.Fatal(err)
	}
	if err := tasks.Shutdown(ctx); err != nil { // waits for the worker
		log.Fatal(err)
	}
	// Output:
	// created pay working
	// ended pay failed
}
