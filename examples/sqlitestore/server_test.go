package sqlitestore_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// The tests with several processes start this test binary again, as servers that
// share one file. A server reads orders as lines of JSON, and writes its answers
// and its workers' reports in the same way, like an MCP server on stdio.

const serverEnv = "SQLITESTORE_TEST_SERVER" // in a server: the database's path

func TestMain(m *testing.M) {
	if path := os.Getenv(serverEnv); path != "" {
		if err := serve(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// order tells a server what to do.
type order struct {
	Number int
	Do     string // create, get, cancel, answer, complete or increment
	ID     string
	Text   string // the kind of a new task, an answer or a result
	Times  int
}

// report is a server's answer to the order with the same number. With Number 0 it
// is a report of a worker.
type report struct {
	Number int
	What   string // of a worker: begun, saved, interrupted or answered
	ID     string
	Task   *task
	Step   int
	Error  string
	At     time.Time
}

// task is a task as a client sees it.
type task struct {
	Status        durabletasks.Status
	StatusMessage string
	Result        string
	Asks          int // how many requests it shows
}

// server runs in a process of its own.
type server struct {
	store  *sqlitestore.Store
	engine *durabletasks.TaskLifecycle

	mu  sync.Mutex
	out *json.Encoder
}

// recoverEvery is how often a server looks for tasks of servers that are gone.
const recoverEvery = 100 * time.Millisecond

func serve(path string) error {
	store, err := sqlitestore.Open(path, nil)
	if err != nil {
		return err
	}
	engine, err := durabletasks.New(store, nil)
	if err != nil {
		return err
	}
	s := &server{store: store, engine: engine, out: json.NewEncoder(os.Stdout)}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	group.Go(func() { s.recover(ctx) })
	in := json.NewDecoder(os.Stdin)
	var orders sync.WaitGroup
	for {
		var o order
		if err := in.Decode(&o); err == io.EOF {
			break // the test has closed it, or died
		} else if err != nil {
			cancel()
			return err
		}
		orders.Go(func() { s.obey(ctx, o) })
	}
	orders.Wait() // a server that is told to stop answers all orders
	cancel()
	group.Wait()
	stopping, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	return engine.Shutdown(stopping)
}

func (s *server) send(r report) {
	s.mu.Lock()
	defer s.mu.Unlock()
	r.At = time.Now()
	_ = s.out.Encode(r) // fails only if the test has died
}

// recover resumes the tasks of servers that are gone, at intervals.
func (s *server) recover(ctx context.Context) {
	tick := time.NewTicker(recoverEvery)
	defer tick.Stop()
	for {
		_, err := s.engine.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker { return s.worker(r.Payload) })
		if err != nil && ctx.Err() == nil {
			s.send(report{What: "recover", Error: err.Error()})
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (s *server) obey(ctx context.Context, o order) {
	answer := report{Number: o.Number, ID: o.ID}
	if err := s.do(ctx, o, &answer); err != nil {
		answer.Error = err.Error()
	}
	s.send(answer)
}

func (s *server) do(ctx context.Context, o order, answer *report) error {
	text, err := wire.Marshal(o.Text)
	if err != nil {
		return err
	}
	switch o.Do {
	case "create":
		opts := &durabletasks.CreateOptions{Payload: text}
		create := func() (wire.CreateTaskResult, error) { return s.engine.CreateTask(ctx, opts) }
		if work := s.worker(text); work != nil {
			create = func() (wire.CreateTaskResult, error) { return s.engine.StartTask(ctx, opts, work) }
		}
		created, err := create()
		answer.ID = created.TaskID
		return err
	case "get":
		t, err := s.engine.GetTask(ctx, o.ID)
		if err != nil {
			return err
		}
		answer.Task = &task{t.Status, t.StatusMessage, t.Result.String(), len(t.InputRequests)}
	case "cancel":
		return s.engine.CancelTask(ctx, o.ID)
	case "answer":
		content := wire.MustParse(`{"action":"accept"}`).With("content", wire.MustParse("{}").With("text", text))
		_, err := s.engine.UpdateTask(ctx, o.ID, map[string]wire.JSON{"name": content})
		return err
	case "complete":
		h, err := s.engine.Handle(ctx, o.ID)
		if err != nil {
			return err
		}
		return h.Complete(ctx, wire.MustParse("{}").With("by", text))
	case "increment":
		return s.increment(ctx, o.ID, o.Times)
	default:
		return errors.New("unknown order")
	}
	return nil
}

// increment counts in a task's checkpoint, while other servers do the same.
func (s *server) increment(ctx context.Context, id string, times int) error {
	for times > 0 {
		r, err := s.store.Get(ctx, id)
		if err != nil {
			return err
		}
		n := 0
		if !r.Checkpoint.IsZero() {
			if err := r.Checkpoint.Decode(&n); err != nil {
				return err
			}
		}
		if r.Checkpoint, err = wire.Marshal(n + 1); err != nil {
			return err
		}
		switch err := s.store.Update(ctx, r); {
		case err == nil:
			times--
		case !errors.Is(err, durabletasks.ErrConflict):
			return err
		}
	}
	return nil
}

// countTo is how far a counting worker counts.
const countTo = 20

// worker returns the worker for a kind of task, which is its payload; nil if the
// task has none.
func (s *server) worker(payload wire.JSON) durabletasks.Worker {
	kind, _ := payload.Text()
	var work func(ctx context.Context, h *durabletasks.Handle, step int) (wire.JSON, error)
	switch kind {
	case "count":
		work = s.count
	case "ask":
		work = s.ask
	case "wait":
		work = s.wait
	default:
		return nil
	}
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		step, err := durabletasks.Checkpoint[int](ctx, h)
		if err != nil {
			return wire.JSON{}, err
		}
		s.send(report{What: "begun", ID: h.ID(), Step: step})
		return work(ctx, h, step)
	}
}

// count saves each step.
func (s *server) count(ctx context.Context, h *durabletasks.Handle, step int) (wire.JSON, error) {
	for step < countTo {
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return wire.JSON{}, context.Cause(ctx)
		}
		step++
		err := h.Progress(ctx, fmt.Sprint(step), &durabletasks.ProgressOptions{Checkpoint: step})
		if err != nil {
			return wire.JSON{}, err
		}
		s.send(report{What: "saved", ID: h.ID(), Step: step})
	}
	return wire.Marshal(map[string]int{"counted": step})
}

// ask asks for a name. A worker that runs again waits for the same answer.
func (s *server) ask(ctx context.Context, h *durabletasks.Handle, _ int) (wire.JSON, error) {
	name, err := h.Prompt(ctx, "name", "Who?")
	if err != nil {
		return wire.JSON{}, err
	}
	s.send(report{What: "answered", ID: h.ID()})
	return wire.Marshal(map[string]string{"name": name})
}

// wait does nothing until its task is cancelled.
func (s *server) wait(ctx context.Context, h *durabletasks.Handle, _ int) (wire.JSON, error) {
	<-ctx.Done()
	if errors.Is(context.Cause(ctx), durabletasks.ErrCancelled) {
		s.send(report{What: "interrupted", ID: h.ID()})
	}
	return wire.JSON{}, context.Cause(ctx)
}

// process is a server as the test sees it.
type process struct {
	t      *testing.T
	number int
	cmd    *exec.Cmd
	in     io.WriteCloser
	read   chan struct{} // closed when its whole output has been read

	mu      sync.Mutex
	next    int
	pending map[int]chan report
	killed  bool
	leaving time.Time // when it was killed, or told to stop
}

// start starts a server, and calls onReport for each report of a worker.
func start(t *testing.T, path string, number int, onReport func(*process, report)) *process {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return startBy(t, exec.Command(executable), path, number, onReport)
}

// startBy is start with a command that runs this test binary.
func startBy(t *testing.T, cmd *exec.Cmd, path string, number int, onReport func(*process, report)) *process {
	t.Helper()
	p := &process{t: t, number: number, cmd: cmd, pending: make(map[int]chan report), read: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), serverEnv+"="+path)
	p.cmd.Stderr = os.Stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		defer close(p.read)
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			var r report
			if json.Unmarshal(lines.Bytes(), &r) != nil {
				continue // the server was killed while it wrote this
			}
			if r.Number == 0 {
				onReport(p, r)
				continue
			}
			p.mu.Lock()
			reply := p.pending[r.Number]
			delete(p.pending, r.Number)
			p.mu.Unlock()
			reply <- r
		}
	}()
	t.Cleanup(p.stop)
	return p
}

// ask gives a server an order. It reports false if the server dies before it
// answers.
func (p *process) ask(o order) (report, bool) {
	reply := make(chan report, 1)
	p.mu.Lock()
	p.next++
	o.Number = p.next
	p.pending[o.Number] = reply
	text, _ := json.Marshal(o)
	_, err := p.in.Write(append(text, '\n'))
	p.mu.Unlock()
	if err != nil {
		return report{}, false
	}
	select {
	case r := <-reply:
		return r, true
	case <-p.read:
	case <-time.After(30 * time.Second):
		p.t.Errorf("server %d does not answer: %s", p.number, text)
		return report{}, false
	}
	select {
	case r := <-reply: // it answered before it died
		return r, true
	default:
		if !p.isKilled() {
			p.t.Errorf("server %d died without being killed", p.number)
		}
		return report{}, false
	}
}

// must is ask for an order that must succeed.
func (p *process) must(o order) report {
	p.t.Helper()
	r, alive := p.ask(o)
	if !alive || r.Error != "" {
		p.t.Fatalf("server %d, order %s: alive %v, error %q", p.number, o.Do, alive, r.Error)
	}
	return r
}

// kill kills a server without warning.
func (p *process) kill() {
	p.leave(true)
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Error(err)
	}
	<-p.read
	_ = p.cmd.Wait() // returns that it was killed
}

func (p *process) leave(killed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.killed, p.leaving = killed, time.Now()
}

// left returns when the server was killed or told to stop; zero if it was not.
func (p *process) left() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.leaving
}

func (p *process) isKilled() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.killed
}

// stop shuts a server down, unless it has ended.
func (p *process) stop() {
	if p.isKilled() || p.cmd.ProcessState != nil {
		return
	}
	p.leave(false)
	p.in.Close()
	<-p.read
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("server %d: %v", p.number, err)
	}
}
