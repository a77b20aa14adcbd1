package gosdk_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/mcp-durable-tasks/durabletasks/wire/gosdk"
)

// serverVariable makes the test binary a server of the kind that it names.
const serverVariable = "GOSDK_TEST_SERVER"

func TestMain(m *testing.M) {
	if kind := os.Getenv(serverVariable); kind != "" {
		serveUntilTheEnd(kind)
		return
	}
	os.Exit(m.Run())
}

// closing is a store that says on stderr that it was closed.
type closing struct{ durabletasks.MemStore }

func (s *closing) Close() error {
	fmt.Fprintln(os.Stderr, "store closed")
	return s.MemStore.Close()
}

// serveUntilTheEnd is what the process of a server does.
func serveUntilTheEnd(kind string) {
	tasks, err := durabletasks.New(&closing{}, nil)
	if err != nil {
		panic(err)
	}
	adapter, err := gosdk.Install(mcp.NewServer(&mcp.Implementation{Name: "test", Version: "1"}, nil), tasks, nil)
	if err != nil {
		panic(err)
	}
	addTaskTool(adapter, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "waiting")
		<-ctx.Done()
		return nil, nil
	}, nil)
	addTaskTool(adapter, &mcp.Tool{Name: "stubborn"}, func(context.Context, *durabletasks.Handle, struct{}) (*mcp.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "waiting")
		select {}
	}, nil)
	ctx, cancel := context.WithCancel(context.Background())
	switch kind {
	case "done":
		cancel()
		fallthrough
	case "stdio":
		err = adapter.RunStdio(ctx)
	case "http":
		web := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(l net.Listener) context.Context {
			fmt.Fprintln(os.Stderr, l.Addr())
			return context.Background()
		}}
		err = adapter.RunHTTP(ctx, web)
	}
	cancel()
	fmt.Fprintln(os.Stderr, "returned", err)
}

// process is a running server.
type process struct {
	*exec.Cmd
	stdin  io.WriteCloser
	stdout *bufio.Reader
	stderr *bufio.Reader
}

func startServer(t *testing.T, kind string) *process {
	t.Helper()
	p := &process{Cmd: exec.Command(os.Args[0])}
	p.Env = append(os.Environ(), serverVariable+"="+kind)
	var err error
	p.stdin, err = p.StdinPipe()
	must(t, err)
	out, err := p.StdoutPipe()
	must(t, err)
	log, err := p.StderrPipe()
	must(t, err)
	p.stdout, p.stderr = bufio.NewReader(out), bufio.NewReader(log)
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() }) // fails for one that has ended, as it should have
	return p
}

// ends checks that the process ends in good order, and returns what it has
// said on stderr.
func (p *process) ends(t *testing.T) string {
	t.Helper()
	hung := time.AfterFunc(20*time.Second, func() { _ = p.Process.Kill() })
	defer hung.Stop()
	_, _ = io.Copy(io.Discard, p.stdout)
	said, err := io.ReadAll(p.stderr)
	must(t, err)
	if err := p.Wait(); err != nil {
		t.Fatalf("%v: %s", err, said)
	}
	for _, want := range []string{"store closed\n", "returned"} {
		if !bytes.Contains(said, []byte(want)) {
			t.Errorf("not said: %s; but %s", want, said)
		}
	}
	return string(said)
}

func (p *process) call(t *testing.T, text string) {
	t.Helper()
	_, err := io.WriteString(p.stdin, text+"\n")
	must(t, err)
}

func (p *process) awaitLine(t *testing.T) string {
	t.Helper()
	line, err := p.stderr.ReadString('\n')
	must(t, err)
	return strings.TrimSpace(line)
}

func TestRunStdio(t *testing.T) {
	for _, tt := range []struct {
		what string
		call string // "" is only a discover
		end  func(t *testing.T, p *process)
	}{
		{"end of input", "", hangUp},
		{"end of input during work", toolCall("wait", `{}`), hangUp},
		{"end of input during stubborn work", toolCall("stubborn", `{}`), hangUp},
		{"end of input during an inline call", inlineCall("wait", `{}`), hangUp},
		{"end of input during a stubborn inline call", inlineCall("stubborn", `{}`), hangUp},
		{"interrupt", toolCall("wait", `{}`), signalled(os.Interrupt)},
		{"hang-up during an inline call", inlineCall("wait", `{}`), signalled(syscall.SIGHUP)},
		{"termination during a stubborn inline call", inlineCall("stubborn", `{}`), signalled(syscall.SIGTERM)},
	} {
		t.Run(tt.what, func(t *testing.T) {
			t.Parallel()
			p := startServer(t, "stdio")
			p.call(t, request("server/discover", "", withTasks))
			line, err := p.stdout.ReadString('\n')
			must(t, err)
			if !strings.Contains(line, wire.ExtensionID) {
				t.Errorf("discover: %s", line)
			}
			if tt.call != "" {
				p.call(t, tt.call)
				if got := p.awaitLine(t); got != "waiting" {
					t.Fatal(got)
				}
			}
			tt.end(t, p)
			said := p.ends(t)
			if !strings.Contains(said, "returned <nil>") {
				t.Errorf("said %s", said)
			}
			if stubborn := strings.Contains(tt.what, "stubborn work"); stubborn != strings.Contains(said, "did not stop in time") {
				t.Errorf("said %s", said)
			}
		})
	}
	t.Run("context", func(t *testing.T) {
		t.Parallel()
		if said := startServer(t, "done").ends(t); !strings.Contains(said, "returned <nil>") {
			t.Errorf("said %s", said)
		}
	})
	// Whether a worker uses up the time to stop makes no difference.
	for _, before := range []string{"", toolCall("stubborn", `{}`)} {
		t.Run("malformed line", func(t *testing.T) {
			t.Parallel()
			p := startServer(t, "stdio")
			if before != "" {
				p.call(t, before)
				if got := p.awaitLine(t); got != "waiting" {
					t.Fatal(got)
				}
			}
			p.call(t, "nonsense")
			if said := p.ends(t); !strings.Contains(said, "returned gosdk: the connection on stdin and stdout failed: ") {
				t.Errorf("said %s", said)
			}
		})
	}
	// The SDK refuses it with a result that is a nil pointer.
	t.Run("initialize after a discover", func(t *testing.T) {
		t.Parallel()
		p := startServer(t, "stdio")
		p.call(t, request("server/discover", "", withTasks))
		p.call(t, `{"jsonrpc":"2.0","id":"late","method":"initialize","params":{}}`)
		for _, want := range []string{wire.ExtensionID, `"error"`} {
			line, err := p.stdout.ReadString('\n')
			must(t, err)
			if !strings.Contains(line, want) {
				t.Errorf("got %s, want %s in it", line, want)
			}
		}
		hangUp(t, p)
		p.ends(t)
	})
}

// A signal that the process was started to ignore, as by nohup, does not end
// it.
func TestIgnoredSignal(t *testing.T) {
	p := &process{Cmd: exec.Command("sh", "-c", `trap '' HUP; exec "$0"`, os.Args[0])}
	p.Env = append(os.Environ(), serverVariable+"=http")
	log, err := p.StderrPipe()
	must(t, err)
	p.stdout, p.stderr = bufio.NewReader(strings.NewReader("")), bufio.NewReader(log)
	must(t, p.Start())
	t.Cleanup(func() { _ = p.Process.Kill() })
	addr, err := p.stderr.ReadString('\n')
	must(t, err)
	must(t, p.Process.Signal(syscall.SIGHUP))
	for range 20 { // it would end within milliseconds
		time.Sleep(10 * time.Millisecond)
		res, err := http.Get("http://" + strings.TrimSpace(addr))
		must(t, err)
		must(t, res.Body.Close())
	}
	must(t, p.Process.Signal(syscall.SIGTERM))
	p.ends(t)
}

func TestRunHTTPWithoutAServer(t *testing.T) {
	if err := newHost(t, nil).adapter.RunHTTP(t.Context(), nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Error(err)
	}
}

func hangUp(t *testing.T, p *process) { t.Helper(); must(t, p.stdin.Close()) }

func signalled(s os.Signal) func(*testing.T, *process) {
	return func(t *testing.T, p *process) { t.Helper(); must(t, p.Process.Signal(s)) }
}

func TestRunHTTPEndsWithASignal(t *testing.T) {
	p := startServer(t, "http")
	url := "http://" + p.awaitLine(t)
	created(t, post(t, url, toolCall("wait", `{}`), nil).body)
	must(t, p.Process.Signal(syscall.SIGTERM))
	if said := p.ends(t); !strings.Contains(said, "returned <nil>") {
		t.Errorf("said %s", said)
	}
}

// The server resumes tasks when it starts, not at the first request. Listens do
// not keep it from its end.
func TestRunHTTP(t *testing.T) {
	for _, own := range []bool{false, true} {
		store, ids := interrupted(t, storedCall{"echo", `{"name":"Ada"}`})
		h := newHostOver(t, store, &gosdk.Options{Owner: asAlice})
		echoed := make(chan struct{})
		addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
			close(echoed)
			return text(in.Name), nil
		}, nil)
		h.task(t, "alice")
		address := make(chan string, 1)
		web := &http.Server{Addr: "127.0.0.1:0", BaseContext: func(l net.Listener) context.Context {
			address <- l.Addr().String()
			return context.Background()
		}}
		if own {
			web.Handler = h.adapter.Handler(mcp.NewStreamableHTTPHandler(
				func(*http.Request) *mcp.Server { return h.server }, &mcp.StreamableHTTPOptions{Stateless: true}))
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		ran := make(chan error, 1)
		go func() { ran <- h.adapter.RunHTTP(ctx, web) }()
		url := "http://" + <-address
		<-echoed
		h.awaitAs(t, "alice", ids[0], wire.StatusCompleted)
		if got := result(t, post(t, url, taskRequest(wire.MethodGet, ids[0]), nil).body).Get("status").String(); got != `"completed"` {
			t.Errorf("status %s", got)
		}
		if !own {
			c := channelOverHTTP(t, url, nil)
			open := h.task(t, "alice").ID()
			c.send(t, listenTo(`1`, open))
			wantAcknowledged(t, c.next(t), `1`, taskIDs(open))
			c.next(t) // the present view
			stop()
			wantOver(t, c.next(t), `1`)
		}
		stop()
		must(t, <-ran)
		if err := h.tasks.CancelTask(t.Context(), ids[0]); !errors.Is(err, durabletasks.ErrClosed) {
			t.Errorf("the engine is open: %v", err)
		}
	}
}

func TestRunHTTPCannotListen(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	h := newHost(t, nil)
	if err := h.adapter.RunHTTP(t.Context(), &http.Server{Addr: taken.Addr().String()}); !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v", err)
	}
}

// The handler resumes tasks without RunHTTP too, and keeps its options.
func TestHTTPHandler(t *testing.T) {
	store, ids := interrupted(t, storedCall{"echo", `{"name":"Ada"}`})
	h := newHostOver(t, store, nil)
	addTaskTool(h.adapter, &mcp.Tool{Name: "echo"}, func(_ context.Context, _ *durabletasks.Handle, in greeting) (*mcp.CallToolResult, error) {
		return text(in.Name), nil
	}, nil)
	handler := h.adapter.HTTPHandler(&mcp.StreamableHTTPOptions{MaxRequestBodyBytes: 1000})
	h.awaitAs(t, "alice", ids[0], wire.StatusCompleted)
	answer := httptest.NewRecorder()
	large := httptest.NewRequest(http.MethodPost, "/", strings.NewReader(strings.Repeat(" ", 2000)))
	large.Header.Set("Content-Type", "application/json")
	large.Header.Set("Accept", "application/json, text/event-stream")
	handler.ServeHTTP(answer, large)
	if answer.Code != http.StatusRequestEntityTooLarge {
		t.Errorf("HTTP %d", answer.Code)
	}
}

// A client that goes away cancels its inline call.
func TestInlineCallOverHTTPIsCancelled(t *testing.T) {
	h := newHost(t, nil)
	began, cause := make(chan struct{}), make(chan error, 1)
	addTaskTool(h.adapter, &mcp.Tool{Name: "wait"}, func(ctx context.Context, _ *durabletasks.Handle, _ struct{}) (*mcp.CallToolResult, error) {
		close(began)
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Second):
		}
		cause <- context.Cause(ctx)
		return nil, nil
	}, nil)
	c := channelOverHTTP(t, h.listen(t, nil), nil)
	c.send(t, inlineCall("wait", `{}`))
	<-began
	c.hangUp()
	if err := <-cause; !errors.Is(err, durabletasks.ErrCancelled) {
		t.Errorf("the worker's context ended with %v", err)
	}
}
