package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A worker that asks before it acts. A user who declines is an answer too.
func ExampleHandle_RequestInput() {
	cleanUp := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		form, err := wire.FormRequest{
			Message: "Delete 12 files?",
			Fields:  []wire.Field{{Name: "sure", Title: "I am sure", Required: true, Schema: wire.BooleanSchema{}}},
		}.JSON()
		if err != nil {
			return wire.JSON{}, err
		}
		answers, err := h.RequestInput(ctx, map[string]wire.JSON{"confirm": form})
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
	created, err := tasks.Start(ctx, nil, cleanUp)
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
