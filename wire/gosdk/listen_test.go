package gosdk_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

func plainHost(t *testing.T) *host { return newHost(t, nil) }

// task makes a task of somebody's and returns its handle.
func (h *host) task(t *testing.T, owner string) *durabletasks.Handle {
	t.Helper()
	made, err := h.tasks.CreateTask(durabletasks.WithOwner(t.Context(), owner), nil)
	if err != nil {
		t.Fatal(err)
	}
	handle, err := h.tasks.Handle(t.Context(), made.TaskID)
	if err != nil {
		t.Fatal(err)
	}
	return handle
}

// must fails the test if there is an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listenWith returns a listen with the given JSON as its id and the members
// of its filter.
func listenWith(id, filter, capabilities string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"subscriptions/listen","params":{"notifications":{%s},%s}}`, id, filter, meta(capabilities))
}

// listenTo returns a listen to tasks.
func listenTo(id string, tasks ...string) string {
	return listenWith(id, taskIDs(tasks...), withTasks)
}

func taskIDs(tasks ...string) string {
	if len(tasks) == 0 {
		return `"taskIds":[]`
	}
	return `"taskIds":["` + strings.Join(tasks, `","`) + `"]`
}

// wantAcknowledged checks the first message of a stream.
func wantAcknowledged(t *testing.T, m wire.JSON, id, agreed string) {
	t.Helper()
	want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":%s},"notifications":{%s}}}`, id, agreed)
	if m.String() != want {
		t.Fatalf("got  %s\nwant %s", m, want)
	}
}

// wantTold checks that a message tells of a task as it is now, to the byte.
func (h *host) wantTold(t *testing.T, m wire.JSON, id, owner, taskID string) {
	t.Helper()
	task, err := h.tasks.GetTask(durabletasks.WithOwner(t.Context(), owner), taskID)
	must(t, err)
	view := string(wire.GetTaskResult{Task: task}.AppendJSON(nil))
	want := `{"jsonrpc":"2.0","method":"notifications/tasks","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `},` +
		strings.TrimPrefix(view, `{"resultType":"complete",`) + `}`
	if m.String() != want {
		t.Fatalf("got  %s\nwant %s", m, want)
	}
}

// wantOver checks the last message of a stream.
func wantOver(t *testing.T, m wire.JSON, id string) {
	t.Helper()
	r := m.Get("result")
	if m.Get("id").String() != id || r.Get("resultType").String() != `"complete"` || r.Get("_meta").Get(wire.MetaSubscriptionID).String() != id {
		t.Fatalf("not the result of listen %s: %s", id, m)
	}
}

// A client is told each task as it is, in any state, and all that
// becomes of it, until the last one has ended.
func TestListen(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		ctx := t.Context()
		working, asking, completed, failed, stopped := h.task(t, ""), h.task(t, ""), h.task(t, ""), h.task(t, ""), h.task(t, "")
		must(t, completed.Complete(ctx, wire.MustParse(`{"content":[],"n":[1.50,12345678901234567890],"text":"<&>\u2028"}`)))
		must(t, failed.Fail(ctx, &wire.Error{Code: -1, Message: "no", Data: wire.MustParse(`{"a":9007199254740993}`)}))
		must(t, stopped.Cancelled(ctx, "never mind"))
		asked := make(chan error, 1)
		go func() {
			_, err := asking.RequestInput(context.WithoutCancel(ctx), map[string]wire.JSON{"name": wire.MustParse(`{"method":"roots/list"}`)}, nil)
			asked <- err
		}()
		h.await(t, asking.ID(), wire.StatusInputRequired)

		ids := []string{stopped.ID(), working.ID(), asking.ID(), completed.ID(), failed.ID()}
		c.send(t, listenTo(`"listen:0"`, ids...))
		wantAcknowledged(t, c.next(t), `"listen:0"`, taskIDs(ids...))
		var seen []string
		for range ids {
			m := c.next(t)
			id, _ := m.Get("params").Get("taskId").Text()
			h.wantTold(t, m, `"listen:0"`, "", id)
			seen = append(seen, id)
		}
		slices.Sort(ids)
		slices.Sort(seen)
		if !slices.Equal(seen, ids) {
			t.Fatalf("told of %q, want %q", seen, ids)
		}

		must(t, working.Progress(ctx, "half way", nil))
		h.wantTold(t, c.next(t), `"listen:0"`, "", working.ID())
		_, err := h.tasks.UpdateTask(ctx, asking.ID(), map[string]wire.JSON{"name": wire.MustParse(`{"roots":[]}`)})
		must(t, err)
		must(t, <-asked)
		h.wantTold(t, c.next(t), `"listen:0"`, "", asking.ID())
		must(t, asking.Cancelled(ctx, ""))
		h.wantTold(t, c.next(t), `"listen:0"`, "", asking.ID())
		must(t, working.Complete(ctx, wire.MustParse(`{"content":[]}`)))
		h.wantTold(t, c.next(t), `"listen:0"`, "", working.ID())
		m := c.next(t)
		wantOver(t, m, `"listen:0"`)
		if name := m.Get("result").Get("_meta").Get(mcp.MetaKeyServerInfo).Get("name"); name.String() != `"test"` {
			t.Errorf("the server does not name itself in %s", m)
		}
		c.quiet(t)
	})
}

// byHeader says whose a request is: by its Authorization over HTTP, and
// otherwise alice's.
func byHeader(_ context.Context, req mcp.Request) string {
	if extra := req.GetExtra(); extra != nil && extra.Header != nil {
		return strings.TrimPrefix(extra.Header.Get("Authorization"), "Bearer ")
	}
	if req.GetSession() == nil || req.GetParams() == nil {
		panic("not a request of the SDK's")
	}
	return "alice"
}

// What the caller may not see is left out, and nothing tells why.
func TestListenLeavesOut(t *testing.T) {
	prepare := func(t *testing.T) *host { return newHost(t, &gosdk.Options{Owner: byHeader}) }
	story := func(t *testing.T, h *host, c *channel) {
		mine, foreign, nobodys := h.task(t, "alice"), h.task(t, "bob"), h.task(t, "")
		short, err := h.tasks.CreateTask(durabletasks.WithOwner(t.Context(), "alice"), &durabletasks.CreateOptions{TTL: time.Millisecond})
		must(t, err)
		for gone := false; !gone; {
			_, err := h.tasks.GetTask(durabletasks.WithOwner(t.Context(), "alice"), short.TaskID)
			gone = errors.Is(err, durabletasks.ErrNotFound)
		}
		others := []string{foreign.ID(), nobodys.ID(), short.TaskID, noSuchTask, "", " ", `\ud800`, `\u0000`, strings.ToUpper(mine.ID()), strings.Repeat("x", 1<<16)}

		c.send(t, listenTo(`1`, slices.Concat(others, []string{mine.ID(), mine.ID()}, others)...))
		wantAcknowledged(t, c.next(t), `1`, taskIDs(mine.ID()))
		h.wantTold(t, c.next(t), `1`, "alice", mine.ID())
		must(t, foreign.Progress(t.Context(), "bob's", nil))
		must(t, mine.Complete(t.Context(), wire.MustParse(`{}`)))
		h.wantTold(t, c.next(t), `1`, "alice", mine.ID())
		wantOver(t, c.next(t), `1`)

		// If nothing is left, there is nothing to wait for.
		c.send(t, listenTo(`2`, others...))
		wantAcknowledged(t, c.next(t), `2`, ``)
		wantOver(t, c.next(t), `2`)
		c.send(t, listenTo(`3`))
		wantAcknowledged(t, c.next(t), `3`, ``)
		wantOver(t, c.next(t), `3`)
	}
	t.Run("in memory", func(t *testing.T) { h := prepare(t); story(t, h, h.channelInMemory(t)) })
	t.Run("pipes", func(t *testing.T) { h := prepare(t); story(t, h, h.channelOverPipes(t)) })
	t.Run("http", func(t *testing.T) {
		h := prepare(t)
		story(t, h, channelOverHTTP(t, h.listen(t, nil), func(header http.Header) { header.Set("Authorization", "Bearer alice") }))
	})
	t.Run("bearer token", func(t *testing.T) {
		h := newHost(t, nil)
		url := h.listen(t, auth.RequireBearerToken(func(_ context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: token, Expiration: time.Now().Add(time.Hour)}, nil
		}, nil))
		story(t, h, channelOverHTTP(t, url, func(header http.Header) { header.Set("Authorization", "Bearer alice") }))
	})
}

// tool adds a tool, which is a change that clients may listen to.
func (h *host) tool(name string) {
	mcp.AddTool(h.server, &mcp.Tool{Name: name}, func(context.Context, *mcp.CallToolRequest, struct{}) (*mcp.CallToolResult, any, error) {
		return nil, nil, nil
	})
}

func wantListChanged(t *testing.T, m wire.JSON, id string) {
	t.Helper()
	want := `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":` + id + `}}}`
	if m.String() != want {
		t.Fatalf("got  %s\nwant %s", m, want)
	}
}

func withTool(t *testing.T) *host {
	h := newHost(t, nil)
	h.tool("first")
	return h
}

// A listen that asks for more than tasks gets one acknowledgement, both kinds
// of notifications under one id, and one result.
func TestListenToMoreThanTasks(t *testing.T) {
	onEveryChannel(t, withTool, func(t *testing.T, h *host, c *channel) {
		task := h.task(t, "")
		c.send(t, listenWith(`7`, `"toolsListChanged":true,"promptsListChanged":true,`+taskIDs(noSuchTask, task.ID()), withTasks))
		wantAcknowledged(t, c.next(t), `7`, `"toolsListChanged":true,`+taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `7`, "", task.ID())
		h.tool("second")
		wantListChanged(t, c.next(t), `7`)
		must(t, task.Complete(t.Context(), wire.MustParse(`{}`)))
		h.wantTold(t, c.next(t), `7`, "", task.ID())
		h.tool("third") // the tasks have ended, the rest goes on
		wantListChanged(t, c.next(t), `7`)
		c.quiet(t)
		c.giveUp(t, `7`)
		if c.shared {
			wantOver(t, c.next(t), `7`)
		}
		c.quiet(t)
	})
}

// Where the server agrees to nothing but the tasks, they decide how long the
// stream lasts.
func TestListenToTasksAndWhatIsNotServed(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		task := h.task(t, "")
		c.send(t, listenWith(`"a"`, `"promptsListChanged":true,`+taskIDs(task.ID()), withTasks))
		wantAcknowledged(t, c.next(t), `"a"`, taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `"a"`, "", task.ID())
		must(t, task.Complete(t.Context(), wire.MustParse(`{}`)))
		h.wantTold(t, c.next(t), `"a"`, "", task.ID())
		wantOver(t, c.next(t), `"a"`)
	})
}

// Where the SDK refuses its part of a listen, nothing of it is served.
func TestListenThatTheSDKRefuses(t *testing.T) {
	prepare := func(t *testing.T) *host {
		server := mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, &mcp.ServerOptions{
			SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return &jsonrpc.Error{Code: -32000, Message: "no"} },
			UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
		})
		server.AddResource(&mcp.Resource{Name: "a", URI: "file:///a"}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return nil, errors.New("not read here")
		})
		return newHostOn(t, server)
	}
	onEveryChannel(t, prepare, func(t *testing.T, h *host, c *channel) {
		c.send(t, listenWith(`1`, `"resourceSubscriptions":["file:///a"],`+taskIDs(h.task(t, "").ID()), withTasks))
		wantError(t, c.next(t), -32000)
		c.quiet(t)
	})
}

// Listens of one connection leave each other alone.
func TestListensSideBySide(t *testing.T) {
	onEveryChannel(t, withTool, func(t *testing.T, h *host, c *channel) {
		a, b := h.task(t, ""), h.task(t, "")
		c.send(t, listenWith(`"tools"`, `"toolsListChanged":true`, withoutTasks))
		wantAcknowledged(t, c.next(t), `"tools"`, `"toolsListChanged":true`)
		c.send(t, listenTo(`7`, a.ID()))
		wantAcknowledged(t, c.next(t), `7`, taskIDs(a.ID()))
		h.wantTold(t, c.next(t), `7`, "", a.ID())
		c.send(t, listenTo(`"7"`, b.ID()))
		wantAcknowledged(t, c.next(t), `"7"`, taskIDs(b.ID()))
		h.wantTold(t, c.next(t), `"7"`, "", b.ID())

		must(t, b.Progress(t.Context(), "b", nil))
		h.wantTold(t, c.next(t), `"7"`, "", b.ID())
		must(t, a.Progress(t.Context(), "a", nil))
		h.wantTold(t, c.next(t), `7`, "", a.ID())
		must(t, a.Complete(t.Context(), wire.MustParse(`{}`)))
		h.wantTold(t, c.next(t), `7`, "", a.ID())
		wantOver(t, c.next(t), `7`)
		h.tool("second")
		wantListChanged(t, c.next(t), `"tools"`)
		must(t, b.Complete(t.Context(), wire.MustParse(`{}`)))
		h.wantTold(t, c.next(t), `"7"`, "", b.ID())
		wantOver(t, c.next(t), `"7"`)
	})
}

// Two listens to one task, and an id that is used again.
func TestListenAgain(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		task := h.task(t, "")
		c.send(t, listenTo(`1`, task.ID()))
		wantAcknowledged(t, c.next(t), `1`, taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `1`, "", task.ID())
		if c.shared {
			c.send(t, listenTo(`1`, task.ID())) // the SDK drops a request whose id is in use
			c.quiet(t)
		}
		c.giveUp(t, `1`)
		if c.shared {
			wantOver(t, c.next(t), `1`)
		}
		must(t, task.Complete(t.Context(), wire.MustParse(`{}`)))
		c.send(t, listenTo(`1`, task.ID()))
		wantAcknowledged(t, c.next(t), `1`, taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `1`, "", task.ID())
		wantOver(t, c.next(t), `1`)
		c.quiet(t)
		if n := gosdk.Announced(h.adapter); n != 0 {
			t.Errorf("%d listens are remembered", n)
		}
	})
}

// awaitListens makes a host say when a listen has been served.
func awaitListens(h *host) <-chan struct{} {
	served := make(chan struct{}, 10)
	h.server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			if method == wire.MethodListen {
				defer func() { served <- struct{}{} }()
			}
			return next(ctx, method, req)
		}
	})
	return served
}

// A listen ends when the client cancels it, and the task goes on.
func TestListenGivenUp(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		served := awaitListens(h)
		task := h.task(t, "")
		c.send(t, listenTo(`"l"`, task.ID()))
		wantAcknowledged(t, c.next(t), `"l"`, taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `"l"`, "", task.ID())
		c.giveUp(t, `"l"`)
		if c.shared {
			wantOver(t, c.next(t), `"l"`)
		}
		<-served
		must(t, task.Progress(t.Context(), "nobody listens", nil))
		c.quiet(t)
	})
}

// It ends when the client hangs up.
func TestListenerHangsUp(t *testing.T) {
	onEveryChannel(t, withTool, func(t *testing.T, h *host, c *channel) {
		served := awaitListens(h)
		for i, filter := range []string{``, `"toolsListChanged":true,`} {
			task := h.task(t, "")
			c.send(t, listenWith(fmt.Sprint(i), filter+taskIDs(task.ID()), withTasks))
			c.next(t)
			h.wantTold(t, c.next(t), fmt.Sprint(i), "", task.ID())
		}
		c.hangUp()
		<-served
		<-served
		if n := gosdk.Announced(h.adapter); n != 0 {
			t.Errorf("%d listens are remembered", n)
		}
	})
}

// Nothing is looked up for a client that may not ask, or asks in the wrong
// form; the store of this host cannot even be read.
func TestListenRefused(t *testing.T) {
	broken := func(t *testing.T) *host { return newHostOver(t, &brokenStore{}, nil) }
	onEveryChannel(t, broken, func(t *testing.T, h *host, c *channel) {
		for _, capabilities := range []string{withoutTasks, `{"extensions":{"io.modelcontextprotocol/tasks":null}}`} {
			for _, filter := range []string{taskIDs(noSuchTask), taskIDs(), `"taskIds":7`, `"toolsListChanged":true,` + taskIDs(noSuchTask)} {
				c.send(t, listenWith(`1`, filter, capabilities))
				failure := wantError(t, c.next(t), wire.CodeMissingCapability)
				const required = `{"requiredCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
				if got := failure.Get("data").String(); got != required {
					t.Errorf("data is %s", got)
				}
			}
		}
		many := make([]string, wire.MaxListenTasks+1)
		for i := range many {
			many[i] = fmt.Sprint("secret-", i)
		}
		for _, filter := range []string{
			`"taskIds":null`, `"taskIds":"secret"`, `"taskIds":{"secret":1}`, `"taskIds":["secret",41414141]`, `"taskIds":[["secret"]]`,
			`"taskIds":["secret"],"taskIds":["secret"]`, taskIDs(many...),
		} {
			c.send(t, listenWith(`1`, filter, withTasks))
			failure := wantError(t, c.next(t), wire.CodeInvalidParams).String()
			if strings.Contains(failure, "secret") || strings.Contains(failure, "41414141") {
				t.Errorf("%s: the error repeats the params: %s", filter, failure)
			}
		}
		c.send(t, listenTo(`1`, noSuchTask))
		if got := wantError(t, c.next(t), wire.CodeInternalError).String(); strings.Contains(got, "secret") {
			t.Errorf("got %s", got)
		}
		// What does not name tasks is none of ours.
		c.send(t, listenWith(`1`, `"promptsListChanged":true`, withoutTasks))
		wantAcknowledged(t, c.next(t), `1`, ``)
		wantOver(t, c.next(t), `1`)
		// The SDK refuses this before anybody else sees it.
		c.send(t, strings.Replace(listenTo(`1`, noSuchTask), `{"name":"test","version":"1"}`, `7`, 1))
		wantError(t, c.next(t), wire.CodeInvalidParams)
		c.quiet(t)
		if n := gosdk.Announced(h.adapter); n != 0 {
			t.Errorf("%d listens are remembered", n)
		}
	})
}

func TestListenToAsManyTasksAsMayBe(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		ids := make([]string, wire.MaxListenTasks)
		for i := range ids {
			handle := h.task(t, "")
			must(t, handle.Complete(t.Context(), wire.MustParse(`{}`)))
			ids[i] = handle.ID()
		}
		c.send(t, listenTo(`1`, ids...))
		wantAcknowledged(t, c.next(t), `1`, taskIDs(ids...))
		told := make(map[string]bool)
		for range ids {
			id, _ := c.next(t).Get("params").Get("taskId").Text()
			told[id] = true
		}
		if len(told) != len(ids) {
			t.Errorf("told of %d tasks", len(told))
		}
		wantOver(t, c.next(t), `1`)
	})
}

// A task that an earlier process left is resumed before it is listened to.
func TestListenWaitsForRecovery(t *testing.T) {
	store, ids := interrupted(t, storedCall{"echo", `{"name":"Ada"}`})
	h := newHostOver(t, store, &gosdk.Options{Owner: asAlice})
	addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		return text(in.Name), nil
	}, nil)
	c := h.channelInMemory(t)
	c.send(t, listenTo(`1`, ids[0]))
	wantAcknowledged(t, c.next(t), `1`, taskIDs(ids[0]))
	for {
		m := c.next(t)
		if m.Get("params").Get("status").String() == `"completed"` {
			break
		}
		if m.Get("method").String() != `"notifications/tasks"` {
			t.Fatalf("got %s", m)
		}
	}
	wantOver(t, c.next(t), `1`)
}

// fadingStore cannot be read any more after the first change once it is told
// to fade.
type fadingStore struct {
	durabletasks.MemStore
	fade, faded atomic.Bool
}

func (s *fadingStore) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	if s.faded.Load() {
		return durabletasks.Record{}, errors.New("disk secret")
	}
	return s.MemStore.Get(ctx, id)
}

func (s *fadingStore) Update(ctx context.Context, next durabletasks.Record) error {
	err := s.MemStore.Update(ctx, next)
	s.faded.Store(s.fade.Load())
	return err
}

// A listen that cannot go on ends with an error, not as if all were said.
func TestListenMeetsAFault(t *testing.T) {
	for _, filter := range []string{``, `"toolsListChanged":true,`} {
		var store *fadingStore
		prepare := func(t *testing.T) *host {
			store = &fadingStore{}
			h := newHostOver(t, store, nil)
			h.tool("first")
			return h
		}
		onEveryChannel(t, prepare, func(t *testing.T, h *host, c *channel) {
			task := h.task(t, "")
			c.send(t, listenWith(`1`, filter+taskIDs(task.ID()), withTasks))
			c.next(t)
			h.wantTold(t, c.next(t), `1`, "", task.ID())
			store.fade.Store(true)
			must(t, task.Progress(t.Context(), "never seen", nil))
			if got := wantError(t, c.next(t), wire.CodeInternalError).String(); strings.Contains(got, "secret") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// The end of the engine ends a listen in good order.
func TestListenOutlivesNoEngine(t *testing.T) {
	onEveryChannel(t, plainHost, func(t *testing.T, h *host, c *channel) {
		task := h.task(t, "")
		c.send(t, listenTo(`1`, task.ID()))
		wantAcknowledged(t, c.next(t), `1`, taskIDs(task.ID()))
		h.wantTold(t, c.next(t), `1`, "", task.ID())
		must(t, h.tasks.Close())
		wantOver(t, c.next(t), `1`)
		c.send(t, listenTo(`2`, task.ID()))
		wantError(t, c.next(t), wire.CodeInternalError)
	})
}

// A client that reads slowly misses what is out of date, and never the end.
// Everything that was started ends with the connection.
func TestSlowListener(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil)
		ours, theirs := mcp.NewInMemoryTransports()
		session, err := h.server.Connect(context.Background(), h.adapter.Transport(theirs), nil)
		must(t, err)
		conn, err := ours.Connect(context.Background())
		must(t, err)
		read := func() wire.JSON {
			m, err := conn.Read(t.Context())
			must(t, err)
			text, err := jsonrpc.EncodeMessage(m)
			must(t, err)
			return parse(t, text)
		}
		task, other := h.task(t, ""), h.task(t, "")
		m, err := jsonrpc.DecodeMessage([]byte(listenTo(`1`, task.ID(), other.ID())))
		must(t, err)
		must(t, conn.Write(t.Context(), m))
		synctest.Wait()
		for i := range 100 {
			must(t, task.Progress(t.Context(), fmt.Sprint("step ", i), nil))
			time.Sleep(time.Second)
		}
		must(t, task.Complete(t.Context(), wire.MustParse(`{}`)))
		synctest.Wait()
		wantAcknowledged(t, read(), `1`, taskIDs(task.ID(), other.ID()))
		messages := 0
		for {
			m := read()
			messages++
			if m.Get("params").Get("status").String() == `"completed"` {
				h.wantTold(t, m, `1`, "", task.ID())
				break
			}
		}
		if messages > 5 {
			t.Errorf("%d messages for a reader that was away", messages)
		}
		must(t, other.Progress(t.Context(), "nobody reads this", nil))
		synctest.Wait()
		must(t, conn.Close())
		must(t, session.Wait())
	})
}

// The end of a bearer token ends what is told to its bearer.
func TestListenEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHost(t, nil)
		until := time.Now().Add(90 * time.Second)
		id := h.task(t, "alice").ID()
		w := &recorder{}
		<-h.listenInto(t, t.Context(), w, listenTo(`1`, id), auth.RequireBearerToken(func(context.Context, string, *http.Request) (*auth.TokenInfo, error) {
			return &auth.TokenInfo{UserID: "alice", Expiration: until}, nil
		}, nil))
		if now := time.Now(); !now.Equal(until) {
			t.Errorf("ended at %v, want %v", now, until)
		}
		events := w.events(t)
		wantAcknowledged(t, events[0], `1`, taskIDs(id))
		wantOver(t, events[len(events)-1], `1`)
	})
}
