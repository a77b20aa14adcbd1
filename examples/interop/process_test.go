package main

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// TestMain lets the test binary be the server itself.
func TestMain(m *testing.M) {
	if os.Getenv("DURABLETASKS_INTEROP_SERVER") != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// host starts servers on one directory, one after the other.
type host struct {
	t   *testing.T
	dir string

	mu      sync.Mutex
	change  *sync.Cond
	serving *server
	stopped bool
	logs    []*bytes.Buffer
}

func newHost(t *testing.T, dir string) *host {
	h := &host{t: t, dir: dir}
	h.change = sync.NewCond(&h.mu)
	return h
}

// current waits for a server. It returns nil if there will be none.
func (h *host) current() *server {
	h.mu.Lock()
	defer h.mu.Unlock()
	for h.serving == nil && !h.stopped {
		h.change.Wait()
	}
	return h.serving
}

func (h *host) set(s *server, stopped bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.serving, h.stopped = s, stopped
	h.change.Broadcast()
}

func (h *host) stop()   { h.set(nil, true) }
func (h *host) resume() { h.set(nil, false) }

// start starts a server for everybody.
func (h *host) start() *server {
	s := h.launch()
	h.set(s, false)
	return s
}

// The ways in which a server ends.
const (
	byStdin = iota
	bySignal
	// any other: killed
)

// end ends the server that everybody uses.
func (h *host) end(s *server, how int) {
	h.t.Helper()
	s.ending.Store(true)
	began := time.Now()
	switch {
	case how == byStdin:
		s.hangUp()
	case how == bySignal && runtime.GOOS != "windows":
		if err := s.command.Process.Signal(syscall.SIGTERM); err != nil {
			h.t.Error(err)
		}
	default:
		s.kill()
		h.set(nil, false)
		return
	}
	select {
	case <-s.ended:
	case <-time.After(patience):
		h.t.Errorf("the server does not end: %d", how)
		s.kill()
	}
	state := s.command.ProcessState
	tooEarly := how == bySignal && !state.Exited() // it did not listen for signals yet
	if !state.Success() && !tooEarly {
		h.t.Errorf("the server that was told to end (%d) after %v: %v\n%s", how, time.Since(began), state, s.stderr)
	}
	h.set(nil, false)
}

// startSecond starts another server on the directory of one that runs.
func (h *host) startSecond(first *server) {
	if answer, ok := first.call("server/discover", ""); !ok {
		h.t.Errorf("discover: %v", answer)
	}
	second := h.launch()
	second.ending.Store(true)
	select {
	case <-second.ended:
	case <-time.After(patience):
		h.t.Error("a second server on the directory runs")
		second.kill()
	}
	if text := second.stderr.String(); second.command.ProcessState.Success() || !strings.Contains(text, fmt.Sprintf("process %d", first.command.Process.Pid)) {
		h.t.Errorf("a second server on the directory: %v\n%s", second.command.ProcessState, text)
	}
}

// log returns what all servers have logged.
func (h *host) log() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	var all strings.Builder
	for _, log := range h.logs {
		all.WriteString(log.String())
	}
	return all.String()
}

// server is one process.
type server struct {
	t       *testing.T
	command *exec.Cmd
	stderr  *bytes.Buffer // to be read when it has ended
	ending  atomic.Bool   // it may refuse or forget requests
	ended   chan struct{}

	writing sync.Mutex
	stdin   io.WriteCloser

	mu      sync.Mutex
	lastID  int
	waiting map[int]chan wire.JSON // nil when nothing comes any more
}

func (h *host) launch() *server {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	s := &server{
		t:       h.t,
		command: exec.Command(self, "-stdio", "-dir", h.dir),
		stderr:  new(bytes.Buffer),
		ended:   make(chan struct{}),
		waiting: map[int]chan wire.JSON{},
	}
	s.command.Env = append(os.Environ(), "DURABLETASKS_INTEROP_SERVER=1")
	s.command.Stderr = s.stderr
	stdin, err := s.command.StdinPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	s.stdin = stdin
	stdout, err := s.command.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := s.command.Start(); err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(s.kill)
	h.mu.Lock()
	h.logs = append(h.logs, s.stderr)
	h.mu.Unlock()
	go s.read(stdout)
	return s
}

// read hands out answers until the process has ended.
func (s *server) read(stdout io.Reader) {
	defer close(s.ended)
	lines := bufio.NewReader(stdout)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // what was not written whole was not said
		}
		s.hear(line)
	}
	_ = s.command.Wait() // how it ended, the process state tells
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, answer := range s.waiting {
		close(answer)
	}
	s.waiting = nil
}

func (s *server) hear(line string) {
	message, err := wire.ParseJSON(line)
	if err != nil {
		s.t.Errorf("the server writes what is no JSON: %v: %.200q", err, line)
		return
	}
	id, err := strconv.Atoi(message.Get("id").String())
	s.mu.Lock()
	defer s.mu.Unlock()
	answer := s.waiting[id]
	if err != nil || answer == nil {
		s.t.Errorf("the server writes what nobody waits for: %.200s", line)
		return
	}
	delete(s.waiting, id)
	answer <- message
}

// call sends a request and waits for the answer. It reports false if the
// outcome is unknown, because the server has ended or is about to.
func (s *server) call(method, params string) (answer wire.JSON, ok bool) {
	const meta = `"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"torture","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	if params != "" {
		params += ","
	}
	heard := make(chan wire.JSON, 1)
	s.mu.Lock()
	if s.waiting == nil {
		s.mu.Unlock()
		time.Sleep(time.Millisecond) // the host is about to know
		return wire.JSON{}, false
	}
	s.lastID++
	id := s.lastID
	s.waiting[id] = heard
	s.mu.Unlock()

	s.writing.Lock()
	_, err := fmt.Fprintf(s.stdin, `{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s%s}}`+"\n", id, method, params, meta)
	s.writing.Unlock()
	if err != nil && !s.ending.Load() {
		s.t.Errorf("%s: %v", method, err)
	}
	select {
	case answer, ok = <-heard:
	case <-time.After(patience):
		s.t.Errorf("%s: no answer", method)
	}
	if ok && s.ending.Load() && answer.Get("error").Get("code").String() == "-32603" {
		return answer, false
	}
	if !ok && !s.ending.Load() {
		s.t.Errorf("%s: the server has ended by itself", method)
	}
	return answer, ok
}

// kill ends the process at once, if it has not ended.
func (s *server) kill() {
	s.ending.Store(true)
	_ = s.command.Process.Kill() // fails if it has ended
	<-s.ended
}

// hangUp is how a client ends a session.
func (s *server) hangUp() {
	s.writing.Lock()
	defer s.writing.Unlock()
	if err := s.stdin.Close(); err != nil {
		s.t.Error(err)
	}
}

// tokens are texts that must not be in a log.
type tokens struct {
	mu   sync.Mutex
	all  []string
	lost atomic.Int64 // creations of which nobody knows
}

func (t *tokens) add(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, token)
}

// token makes up a name.
func (t *tokens) token() string {
	token := fmt.Sprintf("name-%016x", rand.Uint64())
	t.add(token)
	return token
}

func (t *tokens) list() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.all
}
