package sqlitestore_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A server that may run several times at once on one machine. When it starts, and
// at intervals, it resumes the tasks of processes that are gone.
func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)

	serve := func(ctx context.Context, crawl durabletasks.Worker) (*durabletasks.TaskLifecycle, error) {
		store, err := sqlitestore.Open(filepath.Join(dir, "tasks.db"), nil)
		if err != nil {
			return nil, err
		}
		tasks, err := durabletasks.New(store, nil)
		if err != nil {
			return nil, err
		}
		resume := func(r durabletasks.Record) durabletasks.Worker {
			if r.Tool == "crawl" {
				return crawl
			}
			return nil
		}
		go func() {
			for ctx.Err() == nil {
				if n, err := tasks.Recover(ctx, resume); n > 0 || err != nil {
					log.Printf("recovered %d tasks, %v", n, err)
				}
				select {
				case <-time.After(10 * time.Second):
				case <-ctx.Done():
				}
			}
		}()
		return tasks, nil
	}

	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()

	// Two editor windows.
	worker := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		<-ctx.Done() // something long
		return wire.JSON{}, context.Cause(ctx)
	}
	one, err := serve(ctx, worker)
	if err != nil {
		log.Fatal(err)
	}
	defer one.Close()
	two, err := serve(ctx, worker)
	if err != nil {
		log.Fatal(err)
	}
	defer two.Close()

	created, err := one.StartTask(ctx, &durabletasks.CreateOptions{Tool: "crawl"}, worker)
	if err != nil {
		log.Fatal(err)
	}
	for task, err := range two.Watch(ctx, created.TaskID) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(task.Status)
		if task.Status == durabletasks.StatusWorking {
			if err := two.CancelTask(ctx, task.TaskID); err != nil { // reaches the worker in the first window
				log.Fatal(err)
			}
		}
	}
	// Output:
	// working
	// cancelled
}
