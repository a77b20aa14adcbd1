package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// cell is one cell of the table of states and operations: a task in some
// state, and what an operation has to work with.
type cell struct {
	t      *testing.T
	store  shared
	l      *durabletasks.TaskLifecycle
	id     string
	h      *durabletasks.Handle
	other  *durabletasks.Handle // of another run
	waiter <-chan answer        // of the call that waits for the keys a and b, if any
	parked <-chan answer        // of the operation, if it waits
}

var unswept = &durabletasks.Options{SweepInterval: durabletasks.NoLimit}

// reopen continues with a new engine over the same store.
func (c *cell) reopen() {
	c.l.Close()
	c.l = open(c.t, c.store, unswept)
	c.h, c.other = handle(c.t, c.l, c.id), handle(c.t, c.l, c.id)
	if c.waiter != nil {
		if a := <-c.waiter; !errors.Is(a.err, durabletasks.ErrClosed) {
			c.t.Fatal("waiter of a closed engine:", a)
		}
		c.waiter = nil
	}
}

// The states, in the order of the table's columns. In each the task has a
// payload, a checkpoint, and a round of input behind it, with the key "used".
var states = []struct {
	name  string
	enter func(c *cell)
}{
	{"unknown", func(c *cell) {
		time.Sleep(2 * time.Hour)
		if n, err := c.l.Sweep(ctx); n != 1 || err != nil {
			c.t.Fatal("sweep:", n, err)
		}
	}},
	{"expired", func(c *cell) { time.Sleep(time.Hour - 4*second) }}, // to the millisecond, with the second before the operation
	{"working", func(c *cell) {}},
	{"working, cancel requested", func(c *cell) { check(c.t, c.l.CancelTask(ctx, c.id)) }},
	{"input_required", func(c *cell) { c.waiter = request(c.h, "a", "b") }},
	{"input_required, cancel requested", func(c *cell) {
		w := request(c.h, "a", "b")
		check(c.t, c.l.CancelTask(ctx, c.id))
		if a := <-w; !errors.Is(a.err, durabletasks.ErrCancelled) {
			c.t.Fatal("waiter after cancel:", a)
		}
	}},
	{"input_required, after a restart", func(c *cell) {
		c.waiter = request(c.h, "a", "b")
		c.reopen()
	}},
	{"answered, after a restart", func(c *cell) {
		c.waiter = request(c.h, "a", "b")
		c.reopen()
		_, err := c.l.UpdateTask(ctx, c.id, accepts("a", "b"))
		check(c.t, err)
	}},
	{"completed", func(c *cell) { check(c.t, c.h.Complete(ctx, done)) }},
	{"failed", func(c *cell) { check(c.t, c.h.Fail(ctx, &wire.Error{Code: 1, Message: "no"})) }},
	{"cancelled", func(c *cell) { check(c.t, c.h.Cancelled(ctx, "enough")) }},
	{"closed engine", func(c *cell) { check(c.t, c.l.Close()) }},
}

// The operations. A cell of the table says what the operation reports, how
// many commits it makes, in what state it leaves the task if in another one,
// and, after a slash, how the call returns that waits for input in the
// state input_required, if it does not keep waiting. The cells of a row stand
// for: unknown and expired; working; working, cancel requested;
// input_required; the same, cancel requested; the same, after a restart;
// answered, after a restart; the three terminal states; closed engine.
var operations = []struct {
	name  string
	do    func(c *cell) error
	cells [9]string
}{
	{"GetTask", func(c *cell) error {
		_, err := c.l.GetTask(ctx, c.id)
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "Closed"}},

	{"UpdateTask, keys that are not outstanding", func(c *cell) error {
		ignored, err := c.l.UpdateTask(ctx, c.id, map[string]wire.JSON{"x": aText, "used": decline, "": {}})
		if want := []string{"", "used", "x"}; err == nil && !slices.Equal(ignored, want) {
			c.t.Errorf("ignored %q, want %q", ignored, want)
		}
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "Closed"}},

	{"UpdateTask, nothing at all", func(c *cell) error {
		_, err := c.l.UpdateTask(ctx, c.id, nil)
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "ok", "Closed"}},

	{"UpdateTask, one good answer and one of a wrong shape", func(c *cell) error {
		_, err := c.l.UpdateTask(ctx, c.id, map[string]wire.JSON{"a": accept, "b": aText})
		var shape *wire.ShapeError
		if errors.As(err, &shape) && shape.Key != "b" {
			c.t.Errorf("the error names the key %q", shape.Key)
		}
		return err
	}, [9]string{"NotFound", "ok", "ok", "Shape", "Shape", "Shape", "ok", "ok", "Closed"}},

	{"UpdateTask, some answers", func(c *cell) error {
		ignored, err := c.l.UpdateTask(ctx, c.id, map[string]wire.JSON{"b": decline, "x": aText})
		if err == nil && len(ignored) != 1 && get(c.t, c.l, c.id).Status == durabletasks.StatusInputRequired {
			c.t.Errorf("ignored %q", ignored)
		}
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok+1", "ok+1", "ok+1", "ok", "ok", "Closed"}},

	{"UpdateTask, all answers", func(c *cell) error {
		_, err := c.l.UpdateTask(ctx, c.id, accepts("a", "b"))
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok+1 working/answers", "ok+1 working", "ok+1 working", "ok", "ok", "Closed"}},

	{"CancelTask", func(c *cell) error { return c.l.CancelTask(ctx, c.id) },
		[9]string{"NotFound", "ok+1", "ok", "ok+1/Cancelled", "ok", "ok+1", "ok+1", "ok", "Closed"}},

	{"Handle", func(c *cell) error {
		_, err := c.l.Handle(ctx, c.id)
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "Terminal", "Closed"}},

	{"Handle.Context", func(c *cell) error { return context.Cause(c.h.Context()) },
		[9]string{"Expired", "ok", "Cancelled", "ok", "Cancelled", "ok", "ok", "Terminal", "Closed"}},

	{"Handle.Checkpoint", func(c *cell) error {
		saved, err := c.h.Checkpoint(ctx)
		if err == nil && saved != aText {
			c.t.Errorf("checkpoint %v", saved)
		}
		return err
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "Terminal", "Closed"}},

	{"Progress", func(c *cell) error { return c.h.Progress(ctx, "on", nil) },
		[9]string{"NotFound", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "Terminal", "Closed"}},

	{"Progress, with a checkpoint", func(c *cell) error {
		return c.h.Progress(ctx, "on", &durabletasks.ProgressOptions{Checkpoint: done, PollInterval: 3 * second})
	}, [9]string{"NotFound", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "Terminal", "Closed"}},

	{"Progress, bad hint", func(c *cell) error {
		return c.h.Progress(ctx, "on", &durabletasks.ProgressOptions{PollInterval: -2})
	}, [9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Progress, not UTF-8", func(c *cell) error { return c.h.Progress(ctx, "\xff", nil) },
		[9]string{"NotFound", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "Terminal", "Closed"}},

	{"ExtendTTL", func(c *cell) error { return c.h.ExtendTTL(ctx, 2*time.Hour) },
		[9]string{"NotFound", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "Terminal", "Closed"}},

	{"ExtendTTL, less than there is", func(c *cell) error { return c.h.ExtendTTL(ctx, time.Minute) },
		[9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "Terminal", "Closed"}},

	{"ExtendTTL, zero", func(c *cell) error { return c.h.ExtendTTL(ctx, 0) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"RequestInput, new keys", func(c *cell) error { return c.wait(c.h, forms("c", "d")) },
		[9]string{"NotFound", "waits+1 input_required", "Cancelled", "Pending", "Cancelled", "waits+1", "waits+1 input_required", "Terminal", "Closed"}},

	{"RequestInput, a key that the run has used", func(c *cell) error { return c.wait(c.h, forms("c", "used")) },
		[9]string{"Duplicate", "Duplicate", "Duplicate", "Pending", "Duplicate", "Duplicate", "Duplicate", "Duplicate", "Duplicate"}},

	{"RequestInput, a key that an earlier run has used", func(c *cell) error { return c.wait(c.other, forms("c", "used")) },
		[9]string{"NotFound", "Duplicate", "Cancelled", "Pending", "Cancelled", "Duplicate", "Duplicate", "Terminal", "Closed"}},

	{"RequestInput, nothing", func(c *cell) error { return c.wait(c.h, nil) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"RequestInput, bad key", func(c *cell) error { return c.wait(c.h, forms("\xff")) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"RequestInput, wrong shape", func(c *cell) error {
		err := c.wait(c.h, map[string]wire.JSON{"c": form, "used": aText, "z": aText})
		var shape *wire.ShapeError
		if errors.As(err, &shape) && shape.Key != "used" {
			c.t.Errorf("the error names the key %q", shape.Key)
		}
		return err
	}, [9]string{"Shape", "Shape", "Shape", "Shape", "Shape", "Shape", "Shape", "Shape", "Shape"}},

	{"RequestInput, what an earlier run asked", func(c *cell) error { return c.wait(c.other, forms("a", "b")) },
		[9]string{"NotFound", "waits+1 input_required", "Cancelled", "Pending", "Cancelled", "waits", "answers", "Terminal", "Closed"}},

	{"Withdraw, one key", func(c *cell) error { return c.h.Withdraw(ctx, "b", "used", "x") },
		[9]string{"NotFound", "ok", "ok", "ok+1", "ok+1", "ok+1", "ok", "Terminal", "Closed"}},

	{"Withdraw, everything", func(c *cell) error { return c.h.Withdraw(ctx) },
		[9]string{"NotFound", "ok", "ok", "ok+1 working/Unanswered", "ok+1 working", "ok+1 working", "ok", "Terminal", "Closed"}},

	{"Withdraw, unknown keys", func(c *cell) error { return c.h.Withdraw(ctx, "used", "x", "\xff") },
		[9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "Terminal", "Closed"}},

	{"SaveCheckpoint", func(c *cell) error { return c.h.SaveCheckpoint(ctx, 7) },
		[9]string{"NotFound", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "ok+1", "Terminal", "Closed"}},

	{"SaveCheckpoint, nothing", func(c *cell) error { return c.h.SaveCheckpoint(ctx, nil) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Complete", func(c *cell) error { return c.h.Complete(ctx, done) },
		[9]string{"NotFound", "ok+1 completed", "ok+1 completed", "ok+1 completed/Terminal", "ok+1 completed", "ok+1 completed", "ok+1 completed", "Terminal", "Closed"}},

	{"Complete, no object", func(c *cell) error { return c.h.Complete(ctx, aText) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Complete, absent", func(c *cell) error { return c.h.Complete(ctx, wire.JSON{}) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Complete, another resultType", func(c *cell) error { return c.h.Complete(ctx, wire.MustParse(`{"resultType":"task"}`)) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Fail", func(c *cell) error { return c.h.Fail(ctx, &wire.Error{Code: -32000, Message: "no"}) },
		[9]string{"NotFound", "ok+1 failed", "ok+1 failed", "ok+1 failed/Terminal", "ok+1 failed", "ok+1 failed", "ok+1 failed", "Terminal", "Closed"}},

	{"Fail, nil", func(c *cell) error { return c.h.Fail(ctx, nil) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Fail, no message", func(c *cell) error { return c.h.Fail(ctx, &wire.Error{Code: 1}) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Fail, bad message", func(c *cell) error { return c.h.Fail(ctx, &wire.Error{Message: "\xff"}) },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Cancelled", func(c *cell) error { return c.h.Cancelled(ctx, "") },
		[9]string{"NotFound", "ok+1 cancelled", "ok+1 cancelled", "ok+1 cancelled/Terminal", "ok+1 cancelled", "ok+1 cancelled", "ok+1 cancelled", "Terminal", "Closed"}},

	{"Cancelled, bad message", func(c *cell) error { return c.h.Cancelled(ctx, "\xff") },
		[9]string{"Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid", "Invalid"}},

	{"Go", func(c *cell) error {
		stay := make(chan struct{})
		c.t.Cleanup(func() { close(stay) })
		return c.l.Go(ctx, c.id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			<-stay
			return wire.JSON{}, nil
		})
	}, [9]string{"NotFound", "ok", "ok", "ok", "ok", "ok", "ok", "Terminal", "Closed"}},

	{"Close", func(c *cell) error { return c.l.Close() },
		[9]string{"ok", "ok", "ok", "ok/Closed", "ok", "ok", "ok", "ok", "ok"}},

	{"Shutdown", func(c *cell) error { return c.l.Shutdown(ctx) },
		[9]string{"ok", "ok", "ok", "ok/Shutdown", "ok", "ok", "ok", "ok", "ok"}},
}

var errWaits, errAnswers = errors.New("waits"), errors.New("answers")

// wait calls RequestInput and returns its error, or errWaits, or errAnswers.
func (c *cell) wait(h *durabletasks.Handle, requests map[string]wire.JSON) error {
	c.parked = ask(func() (map[string]wire.JSON, error) { return h.RequestInput(ctx, requests, nil) })
	select {
	case a := <-c.parked:
		if a.err != nil {
			return a.err
		}
		if !reflect.DeepEqual(a.values, accepts("a", "b")) {
			c.t.Errorf("answers %v", a.values)
		}
		return errAnswers
	default:
		return errWaits
	}
}

// Every operation in every state.
func TestStateTable(t *testing.T) {
	columns := []int{0, 0, 1, 2, 3, 4, 5, 6, 7, 7, 7, 8} // of the states
	for _, op := range operations {
		for i, state := range states {
			t.Run(op.name+"/"+state.name, func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					c := &cell{t: t, store: newShared()}
					c.l = open(t, c.store, unswept)
					c.id = create(t, c.l, &durabletasks.CreateOptions{StatusMessage: "begun", Payload: done})
					c.h, c.other = handle(t, c.l, c.id), handle(t, c.l, c.id)
					w := request(c.h, "used")
					_, err := c.l.UpdateTask(ctx, c.id, accepts("used"))
					check(t, err)
					check(t, (<-w).err)
					time.Sleep(2 * second)
					check(t, c.h.Progress(ctx, "begun", &durabletasks.ProgressOptions{Checkpoint: aText}))
					time.Sleep(second)
					state.enter(c)
					time.Sleep(second)
					c.expect(op.do, op.cells[columns[i]])
				})
			})
		}
	}
}

// expect does the operation and compares its effect with a cell of the table.
func (c *cell) expect(do func(*cell) error, want string) {
	t := c.t
	before, beforeErr := c.store.Get(ctx, c.id)
	name := errorName(do(c))
	synctest.Wait()
	after, afterErr := c.store.Get(ctx, c.id)

	got := name
	if d := after.Version - before.Version; d != 0 {
		got += fmt.Sprintf("+%d", d)
	}
	if after.Status != before.Status {
		got += " " + string(after.Status)
	}
	if c.waiter != nil {
		select {
		case a := <-c.waiter:
			if a.err == nil {
				got += "/answers"
				if !reflect.DeepEqual(a.values, accepts("a", "b")) {
					t.Errorf("the waiter got %v", a.values)
				}
			} else {
				got += "/" + errorName(a.err)
			}
		default:
		}
	}
	if got != want {
		t.Errorf("got %q, want %q", got, want)
	}

	if errorName(beforeErr) != errorName(afterErr) {
		t.Errorf("the record was %v, is %v", beforeErr, afterErr)
	}
	if after.Version == before.Version {
		if !reflect.DeepEqual(before, after) {
			t.Errorf("not committed, yet changed:\n%+v\n%+v", before, after)
		}
		return
	}
	now := time.Now().UTC()
	if after.CancelRequested != before.CancelRequested {
		now = before.LastUpdatedAt // a client's wish is no update
	}
	if !after.LastUpdatedAt.Equal(now) {
		t.Errorf("last updated at %v, want %v", after.LastUpdatedAt, now)
	}
	if after.ID != before.ID || !after.CreatedAt.Equal(before.CreatedAt) || after.Owner != before.Owner {
		t.Errorf("identity changed:\n%+v\n%+v", before, after)
	}
	if n := len(before.Questions); !slices.Equal(after.Questions[:n], before.Questions) {
		t.Errorf("questions %v became %v", before.Questions, after.Questions)
	}
	if after.Status.Terminal() {
		if after.InputRequests != nil || after.InputResponses != nil || !after.Payload.IsZero() || !after.Checkpoint.IsZero() {
			t.Errorf("a task that has ended keeps what it needs no more: %+v", after)
		}
		if want := "begun"; after.Status != durabletasks.StatusFailed && after.StatusMessage != want {
			t.Errorf("status message %q, want %q", after.StatusMessage, want)
		}
	} else if after.Payload != before.Payload {
		t.Errorf("payload changed: %v", after.Payload)
	}
}

// Arguments are checked first, then whether the engine has ended, then the
// store is used.
func TestCreateTaskChecks(t *testing.T) {
	l := open(t, newShared(), nil)
	for name, o := range map[string]durabletasks.CreateOptions{
		"CreateOptions.TTL":           {TTL: -2},
		"CreateOptions.PollInterval":  {PollInterval: -time.Second},
		"CreateOptions.StatusMessage": {StatusMessage: "\xff"},
	} {
		for _, closed := range []bool{false, true} {
			if closed {
				l.Close()
			}
			if _, err := l.CreateTask(ctx, &o); !errors.Is(err, durabletasks.ErrInvalid) || !strings.Contains(err.Error(), name) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
	_, err := l.CreateTask(ctx, nil)
	wantError(t, "CreateTask of a closed engine", err, durabletasks.ErrClosed)
	_, err = l.StartTask(ctx, nil, sleeping)
	wantError(t, "Start of a closed engine", err, durabletasks.ErrClosed)
	wantError(t, "second Close", l.Close(), nil)

	id := ""
	l = open(t, newShared(), &durabletasks.Options{NewID: func() string { return id }})
	for _, id = range []string{"", " ", "a b", "a\n", "a/\x00", "ä", "\xff", "a\x7f", strings.Repeat("x", 257)} {
		_, err := l.CreateTask(ctx, nil)
		wantError(t, fmt.Sprintf("id %q", id), err, durabletasks.ErrInvalid)
	}
	for _, id = range []string{"!", "~", strings.Repeat("x", 256)} {
		if got := create(t, l, nil); got != id {
			t.Errorf("id %q became %q", id, got)
		}
		_, err := l.CreateTask(ctx, nil)
		wantError(t, "an id that is taken", err, durabletasks.ErrExists)
		_, err = l.StartTask(ctx, nil, sleeping)
		wantError(t, "an id that is taken, with a worker", err, durabletasks.ErrExists)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	id = "other"
	_, err = l.CreateTask(gone, nil)
	wantError(t, "CreateTask with a context that is done", err, context.Canceled)
	if _, err := l.GetTask(ctx, "other"); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("a task that was not created: %v", err)
	}
}

func TestOptions(t *testing.T) {
	if _, err := durabletasks.New(nil, nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Errorf("no store: %v", err)
	}
	if _, err := durabletasks.New((*durabletasks.MemStore)(nil), nil); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Errorf("a nil pointer as the store: %v", err)
	}
	for name, o := range map[string]durabletasks.Options{
		"Options.TTL":           {TTL: -2},
		"Options.PollInterval":  {PollInterval: -2},
		"Options.SweepInterval": {SweepInterval: -2},
		"Options.MaxWorkers":    {MaxWorkers: -1},
	} {
		l, err := durabletasks.New(&durabletasks.MemStore{}, &o)
		if l != nil || !errors.Is(err, durabletasks.ErrInvalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, %v", name, l, err)
		}
	}
	o := durabletasks.Options{TTL: second}
	l := open(t, &durabletasks.MemStore{}, &o)
	o.TTL = time.Minute // must not be seen: options are copied
	created, err := l.CreateTask(ctx, nil)
	check(t, err)
	if created.TTL != second || o.PollInterval != 0 {
		t.Errorf("options not copied: %v, %v", created.TTL, o)
	}
}

// How durations come out on the wire: rounded up to whole milliseconds.
func TestDurationsOnTheWire(t *testing.T) {
	const most = time.Duration(1<<63 - 1)
	for _, row := range []struct {
		in   time.Duration
		want string // of ttlMs; "" if refused
	}{
		{0, "3600000"}, {durabletasks.NoLimit, "null"}, {-2, ""}, {-time.Millisecond, ""}, {-most, ""},
		{1, "1"}, {time.Microsecond, "1"}, {999 * time.Microsecond, "1"}, {time.Millisecond, "1"},
		{1500 * time.Microsecond, "2"}, {time.Minute, "60000"},
		{292 * 365 * 24 * time.Hour, "9208512000000"},
		{most / time.Millisecond * time.Millisecond, "9223372036854"}, {most, ""},
	} {
		bubble(t, func(t *testing.T) {
			l := open(t, &durabletasks.MemStore{}, nil)
			created, err := l.CreateTask(ctx, &durabletasks.CreateOptions{TTL: row.in, PollInterval: row.in})
			if row.want == "" {
				wantError(t, row.in.String(), err, durabletasks.ErrInvalid)
				return
			}
			check(t, err)
			poll := `,"pollIntervalMs":` + row.want
			switch row.in {
			case durabletasks.NoLimit:
				poll = ""
			case 0:
				poll = `,"pollIntervalMs":1000`
			}
			want := `{"resultType":"task","taskId":"` + created.TaskID + `","status":"working",` +
				`"createdAt":"2000-01-01T00:00:00.000Z","lastUpdatedAt":"2000-01-01T00:00:00.000Z","ttlMs":` + row.want + poll + `}`
			if got := string(created.AppendJSON(nil)); got != want {
				t.Errorf("%v: got %s\nwant %s", row.in, got, want)
			}
			r, err := l.GetTask(ctx, created.TaskID)
			check(t, err)
			got := string(wire.GetTaskResult{Task: r}.AppendJSON(nil))
			if want := strings.Replace(want, `"task"`, `"complete"`, 1); got != want {
				t.Errorf("%v: get %s\nwant %s", row.in, got, want)
			}
		})
	}
}

// A call that changes nothing leaves no trace that a client could see.
func TestNoUpdateIsInvented(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, &durabletasks.MemStore{}, nil)
		id := create(t, l, nil)
		h := handle(t, l, id)
		text := func() string { return string(wire.GetTaskResult{Task: get(t, l, id)}.AppendJSON(nil)) }
		first := text()
		for _, end := range []func() error{nil, func() error { return h.Complete(ctx, done) }} {
			if end != nil {
				check(t, end())
				first = text()
			}
			for range 2 {
				time.Sleep(second)
				check(t, l.CancelTask(ctx, id))
				_, err := l.UpdateTask(ctx, id, accepts("x"))
				check(t, err)
				check(t, ignoreTerminal(h.ExtendTTL(ctx, 1)))
				if got := text(); got != first {
					t.Errorf("got %s\nwas %s", got, first)
				}
			}
		}
	})
}

func ignoreTerminal(err error) error {
	if errors.Is(err, durabletasks.ErrTerminal) {
		return nil
	}
	return err
}

// A record whose payload does not fit its status is an error, not repaired, and
// a view shows nothing that is the server's own.
func TestViewOfStoredRecords(t *testing.T) {
	base := durabletasks.Record{
		ID: "t", CreatedAt: time.Date(2026, 7, 28, 1, 2, 3, 4e6, time.UTC), LastUpdatedAt: time.Date(2026, 7, 28, 1, 2, 4, 0, time.UTC),
		TTL: durabletasks.NoLimit, PollInterval: durabletasks.NoLimit, Tool: "secret", Questions: []durabletasks.Question{{Key: "secret"}}, CancelRequested: true, UnsupportedInput: 7,
		Payload: aText, Checkpoint: aText, Version: 7, StatusMessage: "m",
	}
	const head = `{"resultType":"complete","taskId":"t","status":"`
	const tail = `","statusMessage":"m","createdAt":"2026-07-28T01:02:03.004Z","lastUpdatedAt":"2026-07-28T01:02:04.000Z","ttlMs":null`
	for name, row := range map[string]struct {
		change func(r *durabletasks.Record)
		want   string // what follows the base members; "" if inconsistent
	}{
		"working":                  {func(r *durabletasks.Record) { r.Status = "working" }, `}`},
		"working, answers kept":    {func(r *durabletasks.Record) { r.Status = "working"; r.InputResponses = accepts("a") }, `}`},
		"working with a result":    {func(r *durabletasks.Record) { r.Status = "working"; r.Result = done }, ``},
		"working with an error":    {func(r *durabletasks.Record) { r.Status = "working"; r.Error = done }, ``},
		"working with requests":    {func(r *durabletasks.Record) { r.Status = "working"; r.InputRequests = forms("a") }, ``},
		"cancelled":                {func(r *durabletasks.Record) { r.Status = "cancelled" }, `}`},
		"cancelled with a result":  {func(r *durabletasks.Record) { r.Status = "cancelled"; r.Result = done }, ``},
		"completed":                {func(r *durabletasks.Record) { r.Status = "completed"; r.Result = done }, `,"result":` + done.String() + `}`},
		"completed without result": {func(r *durabletasks.Record) { r.Status = "completed" }, ``},
		"completed with a text":    {func(r *durabletasks.Record) { r.Status = "completed"; r.Result = aText }, ``},
		"completed with an error":  {func(r *durabletasks.Record) { r.Status = "completed"; r.Result, r.Error = done, done }, ``},
		"failed": {func(r *durabletasks.Record) {
			r.Status = "failed"
			r.Error = wire.MustParse(`{"code":1,"message":"m"}`)
		}, `,"error":{"code":1,"message":"m"}}`},
		"failed without error": {func(r *durabletasks.Record) { r.Status = "failed" }, ``},
		"failed with a result": {func(r *durabletasks.Record) { r.Status = "failed"; r.Error, r.Result = done, done }, ``},
		"input_required":       {func(r *durabletasks.Record) { r.Status = "input_required"; r.InputRequests = forms("b", "a") }, `,"inputRequests":{"a":` + form.String() + `,"b":` + form.String() + `}}`},
		"input_required, one answered": {func(r *durabletasks.Record) {
			r.Status = "input_required"
			r.InputRequests = forms("b", "a")
			r.InputResponses = accepts("a")
		}, `,"inputRequests":{"b":` + form.String() + `}}`},
		"input_required, all answered": {func(r *durabletasks.Record) {
			r.Status = "input_required"
			r.InputRequests = forms("a")
			r.InputResponses = accepts("a")
		}, ``},
		"input_required without request": {func(r *durabletasks.Record) { r.Status = "input_required" }, ``},
		"no status":                      {func(r *durabletasks.Record) {}, ``},
		"unknown status":                 {func(r *durabletasks.Record) { r.Status = "Working" }, ``},
	} {
		t.Run(name, func(t *testing.T) {
			store := newShared()
			r := base
			row.change(&r)
			check(t, store.Create(ctx, r))
			l := open(t, store, nil)
			v, err := l.GetTask(ctx, "t")
			if row.want == "" {
				wantError(t, "GetTask", err, durabletasks.ErrInconsistent)
				return
			}
			check(t, err)
			want := head + string(r.Status) + tail + row.want
			if got := string(wire.GetTaskResult{Task: v}.AppendJSON(nil)); got != want {
				t.Errorf("got %s\nwant %s", got, want)
			}
		})
	}
}

// A task of another owner is an unknown task, to the byte, and nothing of it
// changes or wakes.
func TestOwners(t *testing.T) {
	owners := []string{"", " ", "alice", "Alice", "alice ", "\xff", strings.Repeat("a", 10_000)}
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, nil)
		for i, owner := range owners {
			mine := durabletasks.WithOwner(ctx, owner)
			if owner == "" {
				mine = ctx
			}
			created, err := l.CreateTask(mine, nil)
			check(t, err)
			id := created.TaskID
			h := handle(t, l, id)
			waiter := request(h, "a")
			hctx := h.Context()
			before := stored(t, store, id)
			for j, other := range owners {
				theirs := durabletasks.WithOwner(ctx, other)
				_, getErr := l.GetTask(theirs, id)
				seen := 0
				for range l.Watch(theirs, id) {
					seen++
					break
				}
				if i == j {
					if getErr != nil || seen != 1 {
						t.Errorf("owner %.10q: %v, %d views", owner, getErr, seen)
					}
					continue
				}
				_, updateErr := l.UpdateTask(theirs, id, accepts("a"))
				_, unknownErr := l.UpdateTask(theirs, "unknown", accepts("a"))
				for what, err := range map[string]error{"get": getErr, "update": updateErr, "cancel": l.CancelTask(theirs, id)} {
					if err != unknownErr || err != durabletasks.ErrNotFound {
						t.Errorf("%s as %.10q of a task of %.10q: %v, for an unknown task %v", what, other, owner, err, unknownErr)
					}
				}
				if seen != 0 {
					t.Errorf("%.10q watches a task of %.10q", other, owner)
				}
				for _, method := range []string{wire.MethodGet, wire.MethodUpdate, wire.MethodCancel} {
					answer := func(id string) string {
						params := `{"taskId":"` + id + `","inputResponses":{"a":{"action":"decline"}},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`
						result, err := wire.Dispatch(theirs, l, method, []byte(params))
						var rpc *wire.Error
						if result != nil || !errors.As(err, &rpc) {
							t.Fatalf("%s: %v, %v", method, result, err)
						}
						return string(rpc.AppendJSON(nil))
					}
					if got, want := answer(id), answer("unknown"); got != want {
						t.Errorf("%s: %s, unknown %s", method, got, want)
					}
				}
			}
			synctest.Wait()
			if after := stored(t, store, id); !reflect.DeepEqual(before, after) {
				t.Errorf("changed by others: %+v", after)
			}
			select {
			case a := <-waiter:
				t.Errorf("woken by others: %v", a)
			default:
			}
			if hctx.Err() != nil {
				t.Errorf("worker's context ended by others: %v", context.Cause(hctx))
			}
			check(t, h.Cancelled(ctx, ""))
			wantError(t, "waiter", (<-waiter).err, durabletasks.ErrTerminal)

			// An owner is an identity, not a session: it outlives the process.
			later := open(t, store, nil)
			for j, other := range owners {
				_, err := later.GetTask(durabletasks.WithOwner(ctx, other), id)
				if (err == nil) != (i == j) {
					t.Errorf("after a restart, a task of %.10q as %.10q: %v", owner, other, err)
				}
			}
		}
	})
}

// Times never go back when the clock does, and a record from the future is
// served.
func TestClockSteps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		now := time.Date(2026, 7, 28, 0, 0, 0, 123_456_789, time.FixedZone("", 3600))
		clock := func() time.Time { return now }
		store := shared{&durabletasks.MemStore{Now: clock}}
		l := open(t, store, &durabletasks.Options{Now: clock})
		id := create(t, l, nil)
		h := handle(t, l, id)
		first := get(t, l, id)
		if want := now.UTC().Truncate(time.Millisecond); first.CreatedAt != want || first.LastUpdatedAt != want {
			t.Errorf("created at %v, want %v", first.CreatedAt, want)
		}
		now = now.Add(-time.Hour)
		check(t, h.Progress(ctx, "back", nil))
		if v := get(t, l, id); !v.LastUpdatedAt.Equal(first.LastUpdatedAt) {
			t.Errorf("updated at %v before it was created at %v", v.LastUpdatedAt, v.CreatedAt)
		}
		now = now.Add(90 * time.Minute)
		check(t, h.Progress(ctx, "on", nil))
		up := get(t, l, id).LastUpdatedAt
		if up.Sub(first.LastUpdatedAt) != 30*time.Minute {
			t.Errorf("updated at %v", up)
		}
		now = now.Add(-15 * time.Minute)
		check(t, h.Complete(ctx, done))
		if v := get(t, l, id); !v.LastUpdatedAt.Equal(up) {
			t.Errorf("updated at %v, before that at %v", v.LastUpdatedAt, up)
		}
		now = first.CreatedAt.Add(time.Hour - time.Millisecond)
		get(t, l, id)
		now = now.Add(time.Millisecond)
		_, err := l.GetTask(ctx, id)
		wantError(t, "GetTask at the end of its time", err, durabletasks.ErrNotFound)
		now = now.Add(-time.Millisecond)
		get(t, l, id) // nothing is deleted by looking
	})
}

// The engine's own sweeps begin after ten minutes and then follow the option. A
// bubble cannot make the system's clock jump: TestClock does.
func TestSweeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		l := open(t, newShared(), &durabletasks.Options{OnEvent: log.hook, SweepInterval: 30 * second})
		create(t, l, &durabletasks.CreateOptions{TTL: second})
		create(t, l, &durabletasks.CreateOptions{TTL: second})
		time.Sleep(10*time.Minute + 29*second)
		if got, want := log.String(), "created (working), created (working)"; got != want {
			t.Errorf("before the first sweep: %s", got)
		}
		time.Sleep(2 * second)
		if got, want := log.String(), "created (working), created (working), swept 2"; got != want {
			t.Errorf("after the first sweep: %s", got)
		}
		create(t, l, &durabletasks.CreateOptions{TTL: second})
		time.Sleep(31 * second)
		if got, want := log.String(), "created (working), created (working), swept 2, created (working), swept 1"; got != want {
			t.Errorf("after the second sweep: %s", got)
		}
		n, err := l.Sweep(ctx)
		if n != 0 || err != nil {
			t.Errorf("Sweep: %d, %v", n, err)
		}
		l.Close()
		if _, err := l.Sweep(ctx); !errors.Is(err, durabletasks.ErrClosed) {
			t.Errorf("Sweep of a closed engine: %v", err)
		}
	})
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{SweepInterval: durabletasks.NoLimit})
		create(t, l, &durabletasks.CreateOptions{TTL: second})
		time.Sleep(24 * time.Hour)
		if n, err := l.Sweep(ctx); n != 1 || err != nil {
			t.Errorf("Sweep: %d, %v", n, err)
		}
	})
}

// The caller learns of a store that fails, and the task stays as it was.
func TestStoreErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := errors.New("broken")
		fail := false
		var log logbook
		store := &flawed{shared: newShared()}
		store.onUpdate = func(durabletasks.Record) error {
			if fail {
				return broken
			}
			return nil
		}
		l := open(t, store, &durabletasks.Options{Logger: log.logger()})
		id := create(t, l, nil)
		h := handle(t, l, id)
		hctx := h.Context()
		w := request(h, "a")
		before := stored(t, store, id)
		fail = true
		_, err := l.UpdateTask(ctx, id, accepts("a"))
		for what, err := range map[string]error{
			"update": err, "cancel": l.CancelTask(ctx, id), "progress": h.Progress(ctx, "", nil), "extend": h.ExtendTTL(ctx, 2*time.Hour),
			"complete": h.Complete(ctx, done), "fail": h.Fail(ctx, &wire.Error{Message: "m"}), "cancelled": h.Cancelled(ctx, ""),
		} {
			wantError(t, what, err, broken)
		}
		synctest.Wait()
		if after := stored(t, store, id); !reflect.DeepEqual(before, after) {
			t.Errorf("changed: %+v", after)
		}
		if len(w) != 0 || hctx.Err() != nil {
			t.Errorf("told of what is not committed: %d, %v", len(w), context.Cause(hctx))
		}
		if strings.Contains(log.String(), "ended") || strings.Contains(log.String(), "cancel") {
			t.Errorf("logged what is not committed: %s", &log)
		}
		fail = false
		_, err = l.UpdateTask(ctx, id, accepts("a"))
		check(t, err)
		check(t, (<-w).err)

		// A round that could not be stored leaves nobody waiting.
		fail = true
		_, err = h.RequestInput(ctx, forms("b"), nil)
		wantError(t, "request", err, broken)
		fail = false
		w = request(h, "b")
		_, err = l.UpdateTask(ctx, id, accepts("b"))
		check(t, err)
		check(t, (<-w).err)
	})
}

// After a conflict with another process the engine decides again, a bounded
// number of times.
func TestConflicts(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		l := open(t, store, nil)
		id := create(t, l, nil)
		h := handle(t, l, id)
		conflicts := 0
		left := 0
		store.onUpdate = func(durabletasks.Record) error {
			if left > 0 {
				left--
				conflicts++
				return &durabletasks.ConflictError{Expected: 0, Actual: 1}
			}
			return nil
		}
		left = 20
		begin := time.Now()
		check(t, h.Progress(ctx, "a", nil))
		if conflicts != 20 {
			t.Errorf("%d conflicts", conflicts)
		}
		if d := time.Since(begin); d > 2*second {
			t.Errorf("retried for %v", d)
		}
		left, conflicts = 1000, 0
		wantError(t, "progress against all odds", h.Progress(ctx, "a", nil), durabletasks.ErrConflict)
		if conflicts != 21 {
			t.Errorf("%d attempts", conflicts)
		}
		short, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		left, begin = 1000, time.Now()
		wantError(t, "progress in a short time", h.Progress(short, "a", nil), context.DeadlineExceeded)
		if d := time.Since(begin); d != 100*time.Millisecond {
			t.Errorf("gave up after %v", d)
		}

		// The guard against a second end is inside the loop.
		left = 0
		store.onUpdate = func(next durabletasks.Record) error {
			store.onUpdate = nil
			r := stored(t, store, id)
			r.Status = durabletasks.StatusCancelled
			check(t, store.shared.Update(ctx, r))
			return nil
		}
		wantError(t, "complete after another process", h.Complete(ctx, done), durabletasks.ErrTerminal)
		if r := stored(t, store, id); r.Status != durabletasks.StatusCancelled || !r.Result.IsZero() {
			t.Errorf("overwritten: %+v", r)
		}
	})
}

// Of several answers to one key the first stays, even if another process
// commits it in between.
func TestFirstAnswerStays(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		l := open(t, store, nil)
		other := open(t, store.shared, nil)
		id := create(t, l, nil)
		h := handle(t, l, id)
		w := request(h, "a", "b")
		store.onUpdate = func(durabletasks.Record) error {
			store.onUpdate = nil
			_, err := other.UpdateTask(ctx, id, map[string]wire.JSON{"a": decline})
			return err
		}
		ignored, err := l.UpdateTask(ctx, id, map[string]wire.JSON{"a": accept, "b": accept, "x": aText})
		check(t, err)
		if !slices.Equal(ignored, []string{"a", "x"}) {
			t.Errorf("ignored %q", ignored)
		}
		if a := <-w; a.values["a"] != decline || a.values["b"] != accept {
			t.Errorf("answers %v", a)
		}
	})
}
