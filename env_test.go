package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// What the tests of the engine have in common.

var (
	form    = wire.MustParse(`{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}}}}}`)
	accept  = wire.MustParse(`{"action":"accept","content":{"name":"Ada"}}`)
	decline = wire.MustParse(`{"action":"decline"}`)
	aText   = wire.MustParse(`"text"`)
	done    = wire.MustParse(`{"content":[],"resultType":"complete"}`)
)

var ctx = context.Background()

var errBroken = errors.New("broken store")

// open makes an engine that the test closes in the end.
func open(t testing.TB, store durabletasks.TaskStore, opts *durabletasks.Options) *durabletasks.TaskLifecycle {
	t.Helper()
	l, err := durabletasks.New(store, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func create(t testing.TB, l *durabletasks.TaskLifecycle, opts *durabletasks.CreateOptions) string {
	t.Helper()
	created, err := l.CreateTask(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	return created.TaskID
}

func handle(t testing.TB, l *durabletasks.TaskLifecycle, id string) *durabletasks.Handle {
	t.Helper()
	h, err := l.Handle(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func get(t testing.TB, l *durabletasks.TaskLifecycle, id string) wire.Task {
	t.Helper()
	task, err := l.GetTask(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func stored(t testing.TB, s durabletasks.TaskStore, id string) durabletasks.Record {
	t.Helper()
	r, err := s.Get(ctx, id)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantError(t testing.TB, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: got error %v, want %v", what, err, want)
	}
}

// errorName names an error in the words of the tables.
func errorName(err error) string {
	var shape *wire.ShapeError
	var end *durabletasks.TerminalError
	var duplicate *durabletasks.DuplicateKeyError
	var unanswered *durabletasks.UnansweredError
	var unsupported *durabletasks.UnsupportedInputError
	var large *durabletasks.TooLargeError
	var conflict *durabletasks.ConflictError
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &shape):
		return "Shape"
	case errors.As(err, &end):
		return "Terminal"
	case errors.As(err, &duplicate):
		return "Duplicate"
	case errors.As(err, &unanswered):
		return "Unanswered"
	case errors.As(err, &unsupported):
		return "Unsupported"
	case errors.As(err, &large):
		return "TooLarge"
	case errors.As(err, &conflict):
		return "Conflict"
	}
	for name, is := range map[string]error{
		"NotFound": durabletasks.ErrNotFound, "Invalid": durabletasks.ErrInvalid, "Pending": durabletasks.ErrInputPending,
		"Cancelled": durabletasks.ErrCancelled, "Expired": durabletasks.ErrExpired, "Closed": durabletasks.ErrClosed,
		"Shutdown": durabletasks.ErrShutdown, "Lost": durabletasks.ErrLost, "Declined": durabletasks.ErrDeclined,
		"Broken": errBroken, "Busy": durabletasks.ErrBusy, "Running": durabletasks.ErrRunning,
	} {
		if errors.Is(err, is) {
			return name
		}
	}
	return err.Error()
}

// answer is what a call that waits for input has returned.
type answer struct {
	values map[string]wire.JSON
	err    error
}

// ask starts a call that waits for input, and lets it wait.
func ask(call func() (map[string]wire.JSON, error)) <-chan answer {
	back := make(chan answer, 1)
	go func() {
		values, err := call()
		back <- answer{values, err}
	}()
	synctest.Wait()
	return back
}

func request(h *durabletasks.Handle, keys ...string) <-chan answer {
	return ask(func() (map[string]wire.JSON, error) { return h.RequestInput(ctx, forms(keys...), nil) })
}

func forms(keys ...string) map[string]wire.JSON {
	m := make(map[string]wire.JSON)
	for _, k := range keys {
		m[k] = form
	}
	return m
}

func accepts(keys ...string) map[string]wire.JSON {
	m := make(map[string]wire.JSON)
	for _, k := range keys {
		m[k] = accept
	}
	return m
}

// shared is a store that outlives the engines over it, as a disk does.
type shared struct{ *durabletasks.MemStore }

func newShared() shared { return shared{&durabletasks.MemStore{}} }

func (shared) Close() error { return nil }

// flawed is a store that a test can make fail. A function that is nil, or
// returns nil, lets the call through.
type flawed struct {
	shared
	onCreate func(r durabletasks.Record) error
	onGet    func(id string) error
	onUpdate func(next durabletasks.Record) error
}

func (s *flawed) Create(ctx context.Context, r durabletasks.Record) error {
	if s.onCreate != nil {
		if err := s.onCreate(r); err != nil {
			return err
		}
	}
	return s.shared.Create(ctx, r)
}

func (s *flawed) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	if s.onGet != nil {
		if err := s.onGet(id); err != nil {
			return durabletasks.Record{}, err
		}
	}
	return s.shared.Get(ctx, id)
}

func (s *flawed) Update(ctx context.Context, next durabletasks.Record) error {
	if s.onUpdate != nil {
		if err := s.onUpdate(next); err != nil {
			return err
		}
	}
	return s.shared.Update(ctx, next)
}

// limited is a store that refuses large records.
type limited struct {
	shared
	limit int
}

func (s *limited) refuse(r durabletasks.Record) error {
	size := len(r.StatusMessage) + len(r.Payload.String()) + len(r.Checkpoint.String()) + len(r.Result.String()) + len(r.Error.String())
	for _, values := range []map[string]wire.JSON{r.InputRequests, r.InputResponses} {
		for _, v := range values {
			size += len(v.String())
		}
	}
	if size > s.limit {
		return &durabletasks.TooLargeError{Size: size, Limit: s.limit}
	}
	return nil
}

func (s *limited) Create(ctx context.Context, r durabletasks.Record) error {
	if err := s.refuse(r); err != nil {
		return err
	}
	return s.shared.Create(ctx, r)
}

func (s *limited) Update(ctx context.Context, next durabletasks.Record) error {
	if err := s.refuse(next); err != nil {
		return err
	}
	return s.shared.Update(ctx, next)
}

// watchable is a store whose instances learn of each other's commits.
type watchable struct {
	shared
	hub *hub
}

type hub struct {
	mu  sync.Mutex
	all map[chan string]struct{}
}

func newWatchable() *watchable {
	return &watchable{newShared(), &hub{all: make(map[chan string]struct{})}}
}

func (s *watchable) Update(ctx context.Context, next durabletasks.Record) error {
	err := s.shared.Update(ctx, next)
	if err == nil {
		s.tell(next.ID)
	}
	return err
}

// tell reports a change to all watches.
func (s *watchable) tell(id string) {
	s.hub.mu.Lock()
	defer s.hub.mu.Unlock()
	for c := range s.hub.all {
		select {
		case c <- id:
		default:
			panic("watchable: too many changes for a test")
		}
	}
}

func (s *watchable) Watch(ctx context.Context, changed func(id string)) error {
	c := make(chan string, 10_000)
	s.hub.mu.Lock()
	s.hub.all[c] = struct{}{}
	s.hub.mu.Unlock()
	defer func() {
		s.hub.mu.Lock()
		delete(s.hub.all, c)
		s.hub.mu.Unlock()
	}()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case id := <-c:
			changed(id)
		}
	}
}

// logbook is a log that tests read.
type logbook struct {
	mu   sync.Mutex
	text strings.Builder
}

func (b *logbook) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

func (b *logbook) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.String()
}

func (b *logbook) logger() *slog.Logger { return slog.New(slog.NewTextHandler(io.Writer(b), nil)) }

// silent is a log of tests in which workers panic.
var silent = slog.New(slog.DiscardHandler)

// events collects the events of an engine.
type events struct {
	mu  sync.Mutex
	all []durabletasks.Event
}

func (e *events) hook(event durabletasks.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
}

// String returns the kinds and the states, in order.
func (e *events) String() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	var s []string
	for _, event := range e.all {
		text := string(event.Kind)
		if event.Status != "" {
			text += " (" + string(event.Status) + ")"
		}
		if event.Count != 0 {
			text += fmt.Sprintf(" %d", event.Count)
		}
		s = append(s, text)
	}
	return strings.Join(s, ", ")
}

// sleeping waits until a worker's context ends, and returns why.
func sleeping(ctx context.Context, _ *durabletasks.Handle) (wire.JSON, error) {
	<-ctx.Done()
	return wire.JSON{}, context.Cause(ctx)
}

// bubble runs a test with the time of package synctest.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

const second = time.Second
