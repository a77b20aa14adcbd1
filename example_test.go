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

// A worker that asks before it acts. A user who declines is an answer too.
// A worker that runs again after a restart takes up what was asked already.
func ExampleHandle_Ask() {
	cleanUp := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		form, err := wire.FormRequest{
			Message: "Delete 12 files?",
			Fields:  []wire.Field{{Name: "sure", Title: "I am sure", Required: true, Schema: wire.BooleanSchema{}}},
		}.JSON()
		if err != nil {
			return wire.JSON{}, err
		}
		answers, err := h.Ask(ctx, map[string]wire.JSON{"confirm": form})
		if err != nil {
			return wire.JSON{}, err
		}
		if sure, _ := wire.ElicitResult(answers["confirm"]).Bool("sure"); !sure {
			return wire.JSON{}, errors.New("not confirmed")
		}
		return wire.MustParse(`{"content":[{"type":"text","text":"12 files deleted"}]}`), nil
	}

	ctx := context.Background()
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()
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
			fmt.Println("asked:", task.InputRequests["confirm"].Get("params").Get("message"))
			answer := wire.MustParse(`{"action":"accept","content":{"sure":true}}`)
			if _, err := tasks.UpdateTask(ctx, created.TaskID, map[string]wire.JSON{"confirm": answer}); err != nil {
				log.Fatal(err)
			}
		case durabletasks.StatusCompleted:
			fmt.Println("result:", task.Result.Get("content"))
		}
	}
	// Output:
	// asked: "Delete 12 files?"
	// result: [{"type":"text","text":"12 files deleted"}]
}

// A host without an SDK: it answers tools/call with a task, and hands the
// requests for tasks to wire.Dispatch.
func Example() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tasks.Close()

	// tools/call, as it came over the transport: when Start returns, the task is
	// stored, and its worker runs with the values of ctx, but not its
	// cancellation.
	ctx := durabletasks.WithOwner(context.Background(), "alice")
	call := wire.MustParse(`{"name":"weather","arguments":{"city":"New York"},"_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"elicitation":{},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
	if err := wire.CheckEnvelope(call); err != nil { // a client that does not take tasks
		log.Fatal(err)
	}
	created, err := tasks.StartTask(ctx, &durabletasks.CreateOptions{
		StatusMessage:    "Looking outside.",
		Payload:          wire.MustParse(`{}`).With("name", call.Get("name")).With("arguments", call.Get("arguments")), // for a restart
		UnsupportedInput: wire.UnsupportedInput(call),
	}, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return wire.MustParse(`{"content":[{"type":"text","text":"Sunny."}]}`), nil
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("tools/call:", redacted(created))

	for _, err := range tasks.Watch(ctx, created.TaskID) { // until it has ended
		if err != nil {
			log.Fatal(err)
		}
	}

	// tasks/get, as it came over the transport.
	params := []byte(`{"taskId":"` + created.TaskID + `","_meta":{
		"io.modelcontextprotocol/protocolVersion":"2026-07-28",
		"io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
	result, rpcErr, err := wire.Dispatch(ctx, tasks, "tasks/get", params)
	if err != nil || rpcErr != nil {
		log.Fatal(err, rpcErr)
	}
	fmt.Println("tasks/get: ", redacted(result))

	// To anybody else the task does not exist.
	_, rpcErr, _ = wire.Dispatch(context.Background(), tasks, "tasks/get", params)
	fmt.Println("tasks/get: ", rpcErr)
	// Output:
	// tools/call: {"resultType":"task","taskId":"…","status":"working","statusMessage":"Looking outside.","createdAt":"…","lastUpdatedAt":"…","ttlMs":3600000,"pollIntervalMs":1000}
	// tasks/get:  {"resultType":"complete","taskId":"…","status":"completed","statusMessage":"Looking outside.","createdAt":"…","lastUpdatedAt":"…","ttlMs":3600000,"pollIntervalMs":1000,"result":{"resultType":"complete","content":[{"type":"text","text":"Sunny."}]}}
	// tasks/get:  Task not found (JSON-RPC error -32602)
}

var changing = regexp.MustCompile(`"(taskId|createdAt|lastUpdatedAt)":"[^"]*"`)

func redacted(r wire.Result) string {
	return changing.ReplaceAllString(string(r.AppendJSON(nil)), `"$1":"…"`)
}

// A crawl that goes on at the page where the last process left it, and keeps
// the answer that its user gave meanwhile.
func ExampleTaskLifecycle_Recover() {
	crawl := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		page := 0
		if saved, err := h.Checkpoint(ctx); err != nil {
			return wire.JSON{}, err
		} else if !saved.IsZero() {
			if err := saved.Decode(&page); err != nil {
				return wire.JSON{}, err
			}
			fmt.Println("resumed at page", page)
		}
		for ; page < 3; page++ {
			if err := h.Progress(ctx, fmt.Sprintf("page %d", page), &durabletasks.ProgressOptions{
				Checkpoint: wire.MustParse(fmt.Sprint(page)), // in the same commit
			}); err != nil {
				return wire.JSON{}, err
			}
		}
		// A question is asked once in a task's life: a worker that runs again
		// takes up what was asked.
		roots := wire.MustParse(`{"method":"roots/list"}`)
		answers, err := h.Ask(ctx, map[string]wire.JSON{"roots": roots})
		if err != nil {
			return wire.JSON{}, err // ErrShutdown: the task stays, to be resumed
		}
		fmt.Println("answer:", answers["roots"])
		return wire.MustParse(`{"content":[]}`), nil
	}
	tools := map[string]durabletasks.Worker{"crawl": crawl}

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
		run(tasks)
		if err := tasks.Shutdown(ctx); err != nil {
			log.Fatal(err)
		}
	}

	var id string
	process(func(tasks *durabletasks.TaskLifecycle) {
		created, err := tasks.StartTask(ctx, &durabletasks.CreateOptions{Payload: wire.MustParse(`{"name":"crawl"}`)}, crawl)
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
		answer := map[string]wire.JSON{"roots": wire.MustParse(`{"roots":[{"uri":"file:///src"}]}`)}
		if _, err := tasks.UpdateTask(ctx, id, answer); err != nil { // before anybody works on it
			log.Fatal(err)
		}
		n, err := tasks.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
			name, _ := r.Payload.Get("name").Text()
			return tools[name] // nil leaves the task as it is
		})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println("recovered:", n)
		for task := range tasks.Watch(ctx, id) {
			if task.Status.Terminal() {
				fmt.Println(task.Status)
			}
		}
	})
	// Unordered output:
	// recovered: 1
	// resumed at page 2
	// answer: {"roots":[{"uri":"file:///src"}]}
	// completed
}

// A server that ends: workers are told, those that finish are stored, and
// those that give up are left for the next process.
func ExampleTaskLifecycle_Shutdown() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	busy := make(chan struct{})
	for _, work := range []durabletasks.Worker{
		func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			<-ctx.Done()
			fmt.Println("told:", context.Cause(ctx))
			return wire.JSON{}, context.Cause(ctx) // the task stays as it is
		},
		func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			<-busy // deaf
			return wire.JSON{}, nil
		},
	} {
		if _, err := tasks.StartTask(ctx, nil, work); err != nil {
			log.Fatal(err)
		}
	}
	grace, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
	defer cancel()
	err = tasks.Shutdown(grace)
	var late *durabletasks.ShutdownError
	if errors.As(err, &late) {
		fmt.Println("still running:", len(late.TaskIDs))
	}
	close(busy)
	// Output:
	// told: durabletasks: shutting down
	// still running: 1
}

// Metrics, in commit order for each task. Nothing in an event gives access to
// a task.
func ExampleOptions_onEvent() {
	tasks, err := durabletasks.New(new(durabletasks.MemStore), &durabletasks.Options{
		OnEvent: func(e durabletasks.Event) { fmt.Println(e.Kind, e.Status) },
	})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := tasks.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{Code: -32000, Message: "no more credit"}
	}); err != nil {
		log.Fatal(err)
	}
	if err := tasks.Shutdown(ctx); err != nil { // waits for the worker
		log.Fatal(err)
	}
	// Output:
	// created working
	// ended failed
}
