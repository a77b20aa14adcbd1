package gosdk_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// survivor is a store that outlives its engine, as a disk outlives a process.
type survivor struct{ *durabletasks.MemStore }

func (survivor) Close() error { return nil }

// storedCall is what a task keeps of its tools/call.
type storedCall struct{ tool, arguments string }

// interrupted returns a store in which a process that has died left a task
// for each of the given calls.
func interrupted(t *testing.T, calls ...storedCall) (store survivor, ids []string) {
	t.Helper()
	store = survivor{&durabletasks.MemStore{}}
	tasks, err := durabletasks.New(store, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer tasks.Close()
	for _, call := range calls {
		made, err := tasks.CreateTask(durabletasks.WithOwner(t.Context(), "alice"), &durabletasks.CreateOptions{Tool: call.tool, Payload: parse(t, []byte(call.arguments))})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, made.TaskID)
	}
	return store, ids
}

func asAlice(context.Context, mcp.Request) string { return "alice" }

func TestRecovery(t *testing.T) {
	store, ids := interrupted(t,
		storedCall{"echo", `{"name":"Ada","words":3}`},
		storedCall{"once", `{}`},
		storedCall{"changed", `["not","an","object"]`},
		storedCall{"deferred", `{"count":100}`},
		storedCall{"unknown", `{}`},
		storedCall{"", `{"host":"has its own"}`},
	)
	h := newHostOver(t, store, &gosdk.Options{
		Owner: asAlice,
		Resume: func(r durabletasks.Record) durabletasks.Worker {
			if r.Tool == "deferred" {
				return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
					return wire.MustParse(`{"content":[],"count":` + r.Payload.Get("count").String() + `}`), nil
				}
			}
			return nil
		},
	})
	running := make(chan struct{}, 1)
	addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		running <- struct{}{}
		return text(strings.Repeat(in.Name, in.Words)), nil
	}, nil)
	for _, name := range []string{"once", "changed"} {
		opts := &gosdk.TaskToolOptions{}
		if name == "once" {
			opts.Resume = gosdk.FailInterrupted
		}
		addTaskTool(h.adapter, &mcp.Tool{Name: name}, func(context.Context, *durabletasks.Handle, greeting) (*mcp.CallToolResult, error) {
			t.Errorf("the handler of %s ran", name)
			return nil, nil
		}, opts)
	}
	c := h.inMemory(t)

	// A client that only asks what the server can do starts nothing.
	result(t, c(t, request("server/discover", "", withTasks)))
	result(t, c(t, request("tools/list", "", withTasks)))
	select {
	case <-running:
		t.Fatal("discovery started a worker")
	default:
	}
	if got := result(t, c(t, taskRequest(wire.MethodGet, ids[5]))).Get("status").String(); got != `"working"` {
		t.Errorf("the host's own task is %s", got)
	}

	if task := h.awaitAs(t, "alice", ids[0], wire.StatusCompleted); !strings.Contains(task.Result.String(), "AdaAdaAda") {
		t.Errorf("echo: %s", task.Result)
	}
	if task := h.awaitAs(t, "alice", ids[1], wire.StatusFailed); !strings.Contains(task.Error.String(), "restarted") {
		t.Errorf("once: %s", task.Error)
	}
	if task := h.awaitAs(t, "alice", ids[2], wire.StatusFailed); strings.Contains(task.Error.String(), "object") {
		t.Errorf("changed: %s", task.Error)
	}
	if task := h.awaitAs(t, "alice", ids[3], wire.StatusCompleted); task.Result.Get("count").String() != "100" {
		t.Errorf("deferred: %s", task.Result)
	}
	if got := result(t, c(t, taskRequest(wire.MethodGet, ids[4]))).Get("status").String(); got != `"working"` {
		t.Errorf("a task that nobody knows is %s", got)
	}
}

// flakyScanner fails to scan once.
type flakyScanner struct {
	survivor
	scans int
}

func (s *flakyScanner) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	if s.scans++; s.scans == 1 {
		return errors.New("busy")
	}
	return s.survivor.Scan(ctx, visit)
}

// A recovery that failed does not fail the request, and is tried again by the
// next one, once.
func TestFailedRecoveryIsTriedAgain(t *testing.T) {
	store, ids := interrupted(t, storedCall{"echo", `{"name":"Ada"}`})
	flaky := &flakyScanner{survivor: store}
	h := newHostOver(t, flaky, &gosdk.Options{Owner: asAlice})
	addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		return text(in.Name), nil
	}, nil)
	c := h.inMemory(t)
	for range 4 {
		result(t, c(t, taskRequest(wire.MethodGet, ids[0])))
	}
	h.awaitAs(t, "alice", ids[0], wire.StatusCompleted)
	if flaky.scans != 2 {
		t.Errorf("scanned %d times", flaky.scans)
	}
}

// A process resumes what another process that shares its store leaves later, also
// after a recovery that failed or panicked, until its engine closes.
func TestRecoverEvery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &fickleScanner{survivor: survivor{&durabletasks.MemStore{}}, before: make(chan func(), 1)}
		h := newHostOver(t, store, &gosdk.Options{RecoverEvery: time.Minute})
		addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
			return text(in.Name), nil
		}, nil)
		other, err := durabletasks.New(store, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		leave := func() string {
			made, err := other.CreateTask(t.Context(), &durabletasks.CreateOptions{Tool: "echo", Payload: wire.MustParse(`{"name":"Ada"}`)})
			if err != nil {
				t.Fatal(err)
			}
			return made.TaskID
		}
		status := func(id string) wire.Status {
			synctest.Wait()
			task, err := other.GetTask(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			return task.Status
		}
		early := leave()
		time.Sleep(10 * time.Minute)
		if status(early) != wire.StatusWorking {
			t.Error("recovered before a request")
		}
		c := h.inMemory(t)
		result(t, c(t, taskRequest(wire.MethodGet, early)))
		if status(early) != wire.StatusCompleted {
			t.Error("not recovered by the first request")
		}
		for _, scan := range []func(){func() {}, func() { panic("scan") }, func() {}} {
			late := leave()
			store.before <- scan
			time.Sleep(time.Minute - 1)
			if status(late) != wire.StatusWorking {
				t.Error("recovered early")
			}
			time.Sleep(time.Minute + 1) // and once more, if the first has failed
			if status(late) != wire.StatusCompleted {
				t.Fatal("not recovered in time")
			}
		}
		if err := h.tasks.Close(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		scans := store.scans.Load()
		time.Sleep(time.Hour)
		synctest.Wait()
		if store.scans.Load() != scans {
			t.Error("the store of a closed engine is scanned")
		}
	})
	for _, opts := range []gosdk.Options{{RecoverEvery: -1}} {
		tasks, err := durabletasks.New(&durabletasks.MemStore{}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer tasks.Close()
		if _, err := gosdk.Install(mcp.NewServer(&mcp.Implementation{Name: "test"}, nil), tasks, &opts); !errors.Is(err, durabletasks.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
}

// A scan that fails for good costs no more than one in each interval, and what
// it shows is resumed.
func TestRecoverEveryBehindDamage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &damagedScanner{fickleScanner{survivor: survivor{&durabletasks.MemStore{}}}}
		h := newHostOver(t, store, &gosdk.Options{RecoverEvery: time.Minute})
		c := h.inMemory(t)
		for range 5 {
			c(t, taskRequest(wire.MethodGet, noSuchTask))
		}
		if n := store.scans.Load(); n != 1 {
			t.Errorf("%d scans for five requests", n)
		}
		gosdk.AddTaskTool(h.adapter, &mcp.Tool{Name: "late"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, any, error) {
			return nil, nil, nil
		}, nil)
		c(t, taskRequest(wire.MethodGet, noSuchTask)) // for whose tasks it looks once more
		time.Sleep(10*time.Minute + time.Second)
		synctest.Wait()
		if n := store.scans.Load(); n != 12 {
			t.Errorf("%d scans after ten minutes", n)
		}
	})
}

// damagedScanner is a store whose every scan ends with an error.
type damagedScanner struct{ fickleScanner }

func (s *damagedScanner) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	return errors.Join(s.fickleScanner.Scan(ctx, visit), errors.New("a record is damaged"))
}

// fickleScanner is a store whose next scan a test can disturb.
type fickleScanner struct {
	survivor
	before chan func()
	scans  atomic.Int64
}

func (s *fickleScanner) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	s.scans.Add(1)
	select {
	case before := <-s.before:
		before()
	default:
	}
	return s.survivor.Scan(ctx, visit)
}

// A worker that is interrupted while it waits for answers asks again after
// the restart, from its start, and the client is not asked twice.
func TestAskAcrossARestart(t *testing.T) {
	store := survivor{&durabletasks.MemStore{}}
	start := func(t *testing.T) (*host, client) {
		h := newHostOver(t, store, nil)
		addTaskTool(h.adapter, &mcp.Tool{Name: "greet"}, func(ctx context.Context, h *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
			answers, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"title": titleForm}, nil)
			if err != nil {
				return nil, err
			}
			more, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"second title": titleForm}, nil)
			if err != nil {
				return nil, err
			}
			title := func(answer mcp.InputResponse) string { return answer.(*mcp.ElicitResult).Content["title"].(string) }
			return text(title(answers["title"]) + " " + title(more["second title"]) + " " + in.Name), nil
		}, nil)
		return h, h.inMemory(t)
	}
	first, c := start(t)
	id := created(t, c(t, toolCall("greet", `{"name":"Ada"}`)))
	first.await(t, id, wire.StatusInputRequired)
	before := result(t, c(t, taskRequest(wire.MethodGet, id)))
	if err := first.tasks.Close(); err != nil {
		t.Fatal(err)
	}

	second, c := start(t)
	if after := result(t, c(t, taskRequest(wire.MethodGet, id))); after != before {
		t.Errorf("after the restart %s, before %s", after, before)
	}
	result(t, c(t, update(id, `{"title":{"action":"accept","content":{"title":"Lady"}}}`)))
	for task, err := range second.tasks.Watch(t.Context(), id) {
		if _, asked := task.InputRequests["second title"]; asked || err != nil {
			break
		}
	}
	if err := second.tasks.Close(); err != nil {
		t.Fatal(err)
	}

	third, c := start(t)
	result(t, c(t, update(id, `{"second title":{"action":"accept","content":{"title":"Dr."}}}`)))
	if task := third.await(t, id, wire.StatusCompleted); !strings.Contains(task.Result.String(), "Lady Dr. Ada") {
		t.Errorf("result %s", task.Result)
	}
}

// A checkpoint stands for the answers before it. Asking again for what is gone
// is an error, not a wait for ever.
func TestAskForAnswersThatAreGone(t *testing.T) {
	h := newHost(t, nil)
	asked := make(chan error, 1)
	addTaskTool(h.adapter, &mcp.Tool{Name: "ask"}, func(ctx context.Context, h *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		if _, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"title": titleForm}, nil); err != nil {
			return nil, err
		}
		if err := h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: 1}); err != nil {
			return nil, err
		}
		_, err := gosdk.RequestInput(ctx, h, mcp.InputRequestMap{"title": titleForm}, nil)
		asked <- err
		return nil, err
	}, nil)
	c := h.inMemory(t)
	id := created(t, c(t, toolCall("ask", `{}`)))
	h.await(t, id, wire.StatusInputRequired)
	result(t, c(t, update(id, `{"title":{"action":"decline"}}`)))
	if err := <-asked; !errors.Is(err, durabletasks.ErrDuplicateKey) {
		t.Errorf("got %v", err)
	}
}

// A store that cannot show its tasks is said once, and its tasks are served.
func TestStoreWithoutScan(t *testing.T) {
	var log logged
	h := newHostOver(t, struct{ durabletasks.TaskStore }{&durabletasks.MemStore{}}, &gosdk.Options{
		Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	id := h.task(t, "").ID()
	c := h.inMemory(t)
	for range 3 {
		result(t, c(t, taskRequest(wire.MethodGet, id)))
	}
	if got := log.String(); strings.Count(got, "unfinished tasks are not resumed") != 1 {
		t.Errorf("log %s", got)
	}
}
