package durabletasks_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// typedNil is the error that everybody returns once by mistake.
type typedNil struct{ text string }

func (e *typedNil) Error() string { return e.text }

const (
	internal  = `failed "Internal error" {"code":-32603,"message":"Internal error"}`
	noResult  = `failed "The tool returned no result" {"code":-32603,"message":"The tool returned no result"}`
	leftAlone = `working "begun" `
)

func toolSays(text string) string {
	return `completed "begun" {"resultType":"complete","content":[{"text":"` + text + `","type":"text"}],"isError":true}`
}

// Everything that a worker can do to end, and how its task ends then.
var endings = []struct {
	name string
	work durabletasks.Worker // called when the context has ended, where told
	// How the task ends: on its own, after a client's cancel, after a shutdown.
	free, cancelled, shutdown string
}{
	{"a result", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.MustParse(`{"n":9007199254740993}`), nil
	}, `completed "begun" {"resultType":"complete","n":9007199254740993}`, "", ""},
	{"a result that says it is complete", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil },
		`completed "begun" ` + done.String(), "", ""},
	{"a result of another type", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.MustParse(`{"resultType":"task"}`), nil
	}, internal, "", ""},
	{"a text", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return aText, nil }, internal, "", ""},
	{"nothing", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return wire.JSON{}, nil },
		noResult, `cancelled "begun" `, leftAlone},
	{"nothing, having completed", func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, h.Complete(ctx, done)
	}, `completed "begun" ` + done.String(), "", ""},
	{"a result, having cancelled", func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		return done, h.Cancelled(ctx, "no more")
	}, `cancelled "no more" `, "", ""},
	{"an error, having failed", func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		if err := h.Fail(ctx, &wire.Error{Code: 7, Message: "seven"}); err != nil {
			return wire.JSON{}, err
		}
		return wire.JSON{}, errors.New("too late")
	}, `failed "seven" {"code":7,"message":"seven"}`, "", ""},
	{"an error", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, errors.New("disk <full>")
	}, toolSays("disk <full>"), `cancelled "begun" `, leftAlone},
	{"an error and a result", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, errors.New("no") },
		toolSays("no"), `cancelled "begun" `, leftAlone},
	{"the context's error", func(ctx context.Context, _ *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, ctx.Err()
	}, noResult, `cancelled "begun" `, leftAlone},
	{"somebody's context.Canceled", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, context.Canceled
	}, toolSays("context canceled"), `cancelled "begun" `, leftAlone},
	{"an error that is not UTF-8", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, errors.New("\xff")
	}, toolSays("\ufffd"), `cancelled "begun" `, leftAlone},
	{"a JSON-RPC error", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{Code: -32000, Message: "rate", Data: wire.MustParse(`{"n":1.50}`)}
	}, `failed "rate" {"code":-32000,"message":"rate","data":{"n":1.50}}`, "", ""},
	{"a JSON-RPC error inside another", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, fmt.Errorf("while asking: %w", &wire.Error{Code: 0, Message: "zero"})
	}, `failed "zero" {"code":0,"message":"zero"}`, "", ""},
	{"a JSON-RPC error without a message", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, &wire.Error{Code: 1}
	}, internal, "", ""},
	{"a nil JSON-RPC error", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, (*wire.Error)(nil)
	}, internal, "", ""},
	{"an error that panics", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		return wire.JSON{}, (*typedNil)(nil)
	}, internal, `cancelled "begun" `, leftAlone},
	{"a panic", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic("secret") }, internal, "", ""},
	{"a panic with an error", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		panic(&wire.Error{Code: 1, Message: "secret"})
	}, internal, "", ""},
	{"a panic with nil", func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic(nil) }, internal, "", ""},
	{"runtime.Goexit", func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
		runtime.Goexit()
		return done, nil
	}, internal, "", ""},
}

func TestEndings(t *testing.T) {
	for _, e := range endings {
		outcomes := map[string]string{"on its own": e.free, "after a cancel": e.cancelled, "after a shutdown": e.shutdown}
		for when, want := range outcomes {
			t.Run(e.name+"/"+when, func(t *testing.T) {
				if want == "" { // it makes no difference
					want = e.free
				}
				bubble(t, func(t *testing.T) {
					var log logbook
					store := newShared()
					l := open(t, store, &durabletasks.Options{MaxWorkers: 1, Logger: log.logger()})
					end := make(chan struct{})
					work := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
						<-end
						return e.work(ctx, h)
					}
					created, err := l.StartTask(ctx, &durabletasks.CreateOptions{StatusMessage: "begun"}, work)
					check(t, err)
					_, err = l.StartTask(ctx, nil, sleeping)
					wantError(t, "a second worker", err, durabletasks.ErrBusy)
					shut := make(chan error, 1)
					switch when {
					case "after a cancel":
						check(t, l.CancelTask(ctx, created.TaskID))
					case "after a shutdown":
						go func() { shut <- l.Shutdown(ctx) }()
						synctest.Wait()
					}
					close(end)
					synctest.Wait()

					r := stored(t, store, created.TaskID)
					payload := r.Result
					if !r.Error.IsZero() {
						payload = r.Error
					}
					if got := fmt.Sprintf("%s %q %s", r.Status, r.StatusMessage, payload); got != want {
						t.Errorf("got  %s\nwant %s", got, want)
					}
					if strings.Contains(log.String(), "secret") || strings.Contains(log.String(), created.TaskID) {
						t.Errorf("the log tells: %s", &log)
					}
					if strings.Contains(e.name, "panic") && want == internal && !strings.Contains(log.String(), "panic") {
						t.Errorf("the log does not tell of a panic: %s", &log)
					}
					if when == "after a shutdown" {
						check(t, <-shut)
						return
					}
					// The slot is free again, and only once.
					_, err = l.StartTask(ctx, nil, sleeping)
					check(t, err)
					_, err = l.StartTask(ctx, nil, sleeping)
					wantError(t, "one worker too many", err, durabletasks.ErrBusy)
				})
			})
		}
	}
}

// An outcome that can't be stored fails the task, if anything can be stored,
// and frees the worker's place if nothing can.
func TestOutcomeNotStored(t *testing.T) {
	refused := errors.New("refused")
	for name, row := range map[string]struct {
		refuse func(next durabletasks.Record) bool
		want   durabletasks.Status
		log    string
	}{
		"only the result": {func(r durabletasks.Record) bool { return !r.Result.IsZero() }, durabletasks.StatusFailed, "task outcome not stored"},
		"everything":      {func(durabletasks.Record) bool { return true }, durabletasks.StatusWorking, "task left unfinished"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				var log logbook
				store := &flawed{shared: newShared(), onUpdate: func(next durabletasks.Record) error {
					if row.refuse(next) {
						return refused
					}
					return nil
				}}
				l := open(t, store, &durabletasks.Options{MaxWorkers: 1, Logger: log.logger()})
				for range 2 {
					created, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
						wantError(t, "Complete", h.Complete(ctx, done), refused)
						return done, nil
					})
					check(t, err)
					time.Sleep(10 * second)
					if r := stored(t, store, created.TaskID); r.Status != row.want {
						t.Errorf("status %s", r.Status)
					}
				}
				if strings.Count(log.String(), row.log) != 2 {
					t.Errorf("log: %s", &log)
				}
			})
		})
	}
}

// A result that is too large for the store fails the task with an error that
// says so, and is not tried again.
func TestResultTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log logbook
		writes := 0
		store := &counted{limited{newShared(), 1000}, &writes}
		l := open(t, store, &durabletasks.Options{Logger: log.logger()})
		begin := time.Now()
		c, err := l.StartTask(ctx, &durabletasks.CreateOptions{Tool: "crawl"}, func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.Marshal(map[string]string{"secret": strings.Repeat("x", 1000)})
		})
		check(t, err)
		synctest.Wait()
		const want = `{"code":-32603,"message":"The tool's result is too large to store"}`
		if v := get(t, l, c.TaskID); v.Status != durabletasks.StatusFailed || v.Error.String() != want || v.LastUpdatedAt.After(begin) {
			t.Errorf("%s %s at %v", v.Status, v.Error, v.LastUpdatedAt)
		}
		if writes != 2 {
			t.Errorf("%d writes, want the result and the error", writes)
		}
		text := log.String()
		if !strings.Contains(text, `level=ERROR msg="task outcome not stored" tool=crawl`) || strings.Contains(text, "secret") {
			t.Errorf("log: %s", text)
		}
	})
}

// counted is a store that counts updates.
type counted struct {
	limited
	updates *int
}

func (s *counted) Update(ctx context.Context, next durabletasks.Record) error {
	*s.updates++
	return s.limited.Update(ctx, next)
}

// Answers that are too large for the store are the client's mistake: it gets a
// -32602, and nothing changes. The worker waits on.
func TestAnswersTooLarge(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &limited{newShared(), 1000}
		k := newTask(t, store, nil)
		w := request(k.h, "a", "b")
		before := stored(t, store, k.id)
		params := func(text string) []byte {
			return []byte(`{"taskId":"` + k.id + `","inputResponses":{"a":{"action":"accept","content":{"name":"` + text + `"}},"b":{"action":"decline"}},` +
				`"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}}}}`)
		}
		result, err := wire.Dispatch(ctx, k.l, wire.MethodUpdate, params(strings.Repeat("x", 1000)))
		var rpc *wire.Error
		if result != nil || !errors.As(err, &rpc) || rpc.Code != wire.CodeInvalidParams || !strings.Contains(rpc.Message, "too large") || strings.Contains(rpc.Message, "durabletasks") {
			t.Errorf("got %v, %v", result, err)
		}
		if after := stored(t, store, k.id); !reflect.DeepEqual(before, after) {
			t.Errorf("changed: %+v", after)
		}
		k.waits("the worker", w)
		if _, err := wire.Dispatch(ctx, k.l, wire.MethodUpdate, params("Ada")); err != nil {
			t.Error(err)
		}
		k.returns("the worker", w, map[string]wire.JSON{"a": accept, "b": decline}, "ok")
	})
}

// A model reads the text of a tool's error: the names of packages are left out
// of it, wherever they stand, and nothing else.
func TestTextsOfToolErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		shape := &wire.ShapeError{Key: "k", Expected: "a string"}
		unanswered := &durabletasks.UnansweredError{Keys: []string{"a", "b", "c"}}
		l := open(t, newShared(), &durabletasks.Options{Logger: slog.New(slog.DiscardHandler)})
		for want, failure := range map[string]error{
			"the user declined to answer":                                  durabletasks.ErrDeclined,
			"ask: the user declined to answer":                             fmt.Errorf("ask: %w", durabletasks.ErrDeclined),
			`nobody answered: "a" and 2 more`:                              unanswered,
			`input "k": expected a string`:                                 shape,
			`ask: input "k": expected a string`:                            fmt.Errorf("ask: %w", shape),
			"invalid argument: form: the message is empty":                 fmt.Errorf("%w: %w", durabletasks.ErrInvalid, errors.New("wire: form: the message is empty")),
			"cut the copper wire: no pliers":                               errors.New("cut the copper wire: no pliers"),
			"nobody answered: context deadline exceeded":                   fmt.Errorf("%w: %w", durabletasks.ErrUnanswered, context.DeadlineExceeded),
			`two: input "k": expected a string` + "\n" + `nobody answered`: fmt.Errorf("two: %w", errors.Join(shape, durabletasks.ErrUnanswered)),
		} {
			c, err := l.StartTask(ctx, nil, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return wire.JSON{}, failure })
			check(t, err)
			synctest.Wait()
			var result struct {
				Content []struct {
					Text string `json:"text"`
				} `json:"content"`
				IsError bool `json:"isError"`
			}
			check(t, get(t, l, c.TaskID).Result.Decode(&result))
			if !result.IsError || len(result.Content) != 1 || result.Content[0].Text != want {
				t.Errorf("got %+v, want %q", result, want)
			}
		}
	})
}

// A worker is required: without one nothing is stored and no place is lost.
func TestNilWorker(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{MaxWorkers: 1, NewID: numbered()})
		id := create(t, l, nil)
		for range 2 {
			_, err := l.StartTask(ctx, nil, nil)
			wantError(t, "StartTask", err, durabletasks.ErrInvalid)
			wantError(t, "Go", l.Go(ctx, id, nil), durabletasks.ErrInvalid)
			wantError(t, "Go of an unknown task", l.Go(ctx, "unknown", nil), durabletasks.ErrInvalid)
		}
		n := 0
		check(t, store.Scan(ctx, func(durabletasks.Record) bool { n++; return true }))
		if n != 1 || l.Held() != (durabletasks.Held{}) {
			t.Errorf("%d tasks, held %+v", n, l.Held())
		}
		check(t, l.Go(ctx, id, sleeping))
	})
}

// Without a Logger, failures that no caller learns of go to slog.Default at level
// Error, with the tool's name and without ids or payloads. Nothing else does.
func TestFailuresWithoutALogger(t *testing.T) {
	before, out, flags := slog.Default(), log.Writer(), log.Flags() // SetDefault changes package log, too
	defer func() {
		slog.SetDefault(before)
		log.SetOutput(out)
		log.SetFlags(flags)
	}()
	type custom struct{ text string }
	for name, row := range map[string]struct {
		work durabletasks.Worker
		want []string // in the one line that is logged; nothing is logged if nil
	}{
		"a panic with a text":  {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic("secret") }, []string{`msg="worker panicked"`, "panic=string", "stack="}},
		"a panic with a value": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic(custom{"secret"}) }, []string{`msg="worker panicked"`, "panic=durabletasks_test.custom"}},
		"a panic with an error": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { panic(errors.New("secret")) },
			[]string{`msg="worker panicked"`, "panic=*errors.errorString"}},
		"an index out of range": {func(_ context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, errors.New(strings.Split(h.ID(), " ")[7])
		}, []string{`msg="worker panicked"`, `panic="runtime error: index out of range [7] with length 1"`}},
		"runtime.Goexit": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { runtime.Goexit(); return done, nil },
			[]string{`msg="worker called runtime.Goexit"`}},
		"no result": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return wire.JSON{}, nil },
			[]string{`msg="worker returned neither a result nor an error"`}},
		"a result that cannot be stored": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return aText, nil },
			[]string{`msg="task outcome not stored"`, "error="}},
		"a result": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil }, nil},
		"an error": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, errors.New("secret")
		}, nil},
		"a JSON-RPC error": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, &wire.Error{Code: 1, Message: "secret"}
		}, nil},
		"a value that cannot be saved": {func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, fmt.Errorf("secret: %w", h.SaveCheckpoint(ctx, make(chan int)))
		}, []string{`msg="worker failed by the way it uses its handle"`, `error="durabletasks: invalid argument"`}},
		"a key used twice": {func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, fmt.Errorf("secret: %w", &durabletasks.DuplicateKeyError{Key: "confirm", Reason: "why"})
		}, []string{`msg="worker failed by the way it uses its handle"`, `input key already used: \"confirm\": why"`}},
		"an end of its own": {func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			return wire.JSON{}, h.Cancelled(ctx, "secret")
		}, nil},
	} {
		bubble(t, func(t *testing.T) {
			var log logbook
			l := open(t, newShared(), &durabletasks.Options{OnEvent: func(durabletasks.Event) {}}) // whose events are not logged
			slog.SetDefault(log.logger())                                                          // after New: the default is looked up late
			c, err := l.StartTask(ctx, &durabletasks.CreateOptions{Tool: "crawl", Payload: wire.MustParse(`"secret"`)}, row.work)
			check(t, err)
			synctest.Wait()
			text := log.String()
			lines := strings.Count(text, "\n")
			if row.want == nil {
				if lines != 0 {
					t.Errorf("%s: logged: %s", name, text)
				}
				return
			}
			for _, want := range append(row.want, "level=ERROR", "tool=crawl") {
				if !strings.Contains(text, want) {
					t.Errorf("%s: no %q in the log: %s", name, want, text)
				}
			}
			if lines != 1 || strings.Contains(text, "secret") || strings.Contains(text, c.TaskID) {
				t.Errorf("%s: the log tells: %s", name, text)
			}
		})
	}

	// Unfinished tasks that the host has no worker for: once for each tool.
	bubble(t, func(t *testing.T) {
		var log logbook
		slog.SetDefault(log.logger())
		store := newShared()
		l := open(t, store, nil)
		for _, tool := range []string{"crawl", "crawl", "index", "", "run"} {
			create(t, l, &durabletasks.CreateOptions{Tool: tool})
		}
		for range 2 {
			n, err := l.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
				if r.Tool == "run" {
					return sleeping
				}
				return nil
			})
			if err != nil || n > 1 {
				t.Errorf("recovered %d, %v", n, err)
			}
		}
		text := log.String()
		if strings.Count(text, `level=ERROR msg="unfinished task has no worker"`) != 3 || strings.Count(text, "\n") != 3 {
			t.Errorf("log: %s", text)
		}
		for _, tool := range []string{"tool=crawl", "tool=index", `tool=""`} {
			if strings.Count(text, tool) != 1 {
				t.Errorf("%s in the log: %s", tool, text)
			}
		}
	})
}

// A store that is busy just when a worker returns does not cost the task its
// result.
func TestOutcomeOfABusyStore(t *testing.T) {
	for _, refusals := range []int{1, 3, 7} {
		bubble(t, func(t *testing.T) {
			var log logbook
			store := &flawed{shared: newShared(), onUpdate: func(durabletasks.Record) error {
				if refusals--; refusals >= 0 {
					return errBroken
				}
				return nil
			}}
			l := open(t, store, &durabletasks.Options{Logger: log.logger()})
			created, err := l.StartTask(ctx, nil, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil })
			check(t, err)
			time.Sleep(10 * second)
			if v := get(t, l, created.TaskID); v.Result != done || strings.Contains(log.String(), "not stored") {
				t.Errorf("%s %s; log: %s", v.Status, v.Error, &log)
			}
		})
	}
}

// A clock that was ahead for a moment ends a worker, but not its task.
func TestClockWasAhead(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		l := open(t, &durabletasks.MemStore{Now: now}, &durabletasks.Options{Now: now, ExpireRunning: true, SweepInterval: durabletasks.NoLimit})
		created, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			<-ctx.Done()
			ahead.Store(0)
			return wire.JSON{}, context.Cause(ctx)
		})
		check(t, err)
		synctest.Wait()
		ahead.Store(int64(2 * time.Hour))
		wantError(t, "Cancel", l.CancelTask(ctx, created.TaskID), durabletasks.ErrNotFound)
		synctest.Wait()
		if v := get(t, l, created.TaskID); v.Status != durabletasks.StatusWorking {
			t.Errorf("%s: %s", v.Status, v.Result)
		}
		n, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
			return func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil }
		})
		if n != 1 || err != nil {
			t.Errorf("recovered %d, %v", n, err)
		}
		synctest.Wait()
		if v := get(t, l, created.TaskID); v.Result != done {
			t.Errorf("%s: %s", v.Status, v.Result)
		}
	})
}

// While Go reads a task, its worker may end it, or the engine may close.
func TestGoOfWhatIsOver(t *testing.T) {
	for name, row := range map[string]struct {
		meanwhile func(l *durabletasks.TaskLifecycle, id string)
		want      error
	}{
		"its worker ends it":   {func(l *durabletasks.TaskLifecycle, id string) { l.CancelTask(ctx, id) }, durabletasks.ErrRunning},
		"the engine is closed": {func(l *durabletasks.TaskLifecycle, id string) { l.Close() }, durabletasks.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				store := &slowReader{shared: newShared()}
				l := open(t, store, nil)
				id := create(t, l, nil)
				if row.want == durabletasks.ErrRunning {
					check(t, l.Go(ctx, id, sleeping))
				}
				synctest.Wait()
				store.meanwhile = func() {
					store.meanwhile = nil
					row.meanwhile(l, id)
					synctest.Wait()
				}
				ran := false
				err := l.Go(ctx, id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
					ran = true
					return done, nil
				})
				synctest.Wait()
				wantError(t, "Go", err, row.want)
				if ran {
					t.Error("the worker ran")
				}
			})
		})
	}
}

// slowReader is a store where something happens between a read and its report.
type slowReader struct {
	shared
	meanwhile func()
}

func (s *slowReader) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	r, err := s.shared.Get(ctx, id)
	if s.meanwhile != nil {
		s.meanwhile()
	}
	return r, err
}

// While Recover asks the host about a task, the host may run it with Go. It then
// has a worker, and nothing is logged.
func TestGoWithinResume(t *testing.T) {
	for _, work := range []durabletasks.Worker{nil, sleeping} {
		bubble(t, func(t *testing.T) {
			var log logbook
			l := open(t, newShared(), &durabletasks.Options{MaxWorkers: 1, Logger: log.logger()})
			id := create(t, l, nil)
			n, err := l.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
				check(t, l.Go(ctx, r.ID, sleeping))
				return work
			})
			if n != 0 || err != nil {
				t.Errorf("recovered %d, %v", n, err)
			}
			check(t, l.CancelTask(ctx, id))
			synctest.Wait()
			if v := get(t, l, id); v.Status != durabletasks.StatusCancelled {
				t.Errorf("status %s", v.Status)
			}
			if strings.Contains(log.String(), "level=ERROR") {
				t.Errorf("log: %s", &log)
			}
		})
	}
}

// A create beyond the bound fails before a record exists, and every way of not
// getting a worker gives the slot back.
func TestMaxWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := errors.New("broken")
		store := &flawed{shared: newShared()}
		l := open(t, store, &durabletasks.Options{MaxWorkers: 2, NewID: numbered()})
		count := func() (n int) {
			check(t, store.Scan(ctx, func(durabletasks.Record) bool { n++; return true }))
			return n
		}
		ended := create(t, l, nil)
		check(t, handle(t, l, ended).Complete(ctx, done))
		first, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
		before := count()
		for range 3 { // nothing of this costs a slot
			_, err = l.StartTask(ctx, &durabletasks.CreateOptions{TTL: -2}, sleeping)
			wantError(t, "Start with a bad option", err, durabletasks.ErrInvalid)
			store.onCreate = func(durabletasks.Record) error { return broken }
			_, err = l.StartTask(ctx, nil, sleeping)
			wantError(t, "Start with a broken store", err, broken)
			store.onCreate = func(durabletasks.Record) error { panic("store") }
			survive(func() { l.StartTask(ctx, nil, sleeping) })
			store.onCreate = nil
			wantError(t, "Go for an unknown task", l.Go(ctx, "unknown", sleeping), durabletasks.ErrNotFound)
			wantError(t, "Go for an ended task", l.Go(ctx, ended, sleeping), durabletasks.ErrTerminal)
			wantError(t, "Go for a running task", l.Go(ctx, first.TaskID, sleeping), durabletasks.ErrRunning)
			store.onGet = func(string) error { return broken }
			wantError(t, "Go with a broken store", l.Go(ctx, first.TaskID, sleeping), broken)
			store.onGet = func(string) error { panic("store") }
			survive(func() { l.Go(ctx, first.TaskID, sleeping) })
			store.onGet = nil
		}
		if n := count(); n != before {
			t.Errorf("%d tasks became %d", before, n)
		}
		second, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
		_, err = l.StartTask(ctx, nil, sleeping)
		wantError(t, "third worker", err, durabletasks.ErrBusy)
		wantError(t, "third worker", l.Go(ctx, first.TaskID, sleeping), durabletasks.ErrBusy)
		if n := count(); n != before+1 {
			t.Errorf("a task without a worker was created: %d", n)
		}
		waiting := create(t, l, nil) // without a worker there is no bound
		check(t, l.CancelTask(ctx, second.TaskID))
		synctest.Wait()
		check(t, l.Go(ctx, waiting, sleeping))
		wantError(t, "one more", l.Go(ctx, waiting, sleeping), durabletasks.ErrBusy)
	})
}

func survive(f func()) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	f()
	return false
}

// numbered makes short ids.
func numbered() func() string {
	n := 0
	return func() string { n++; return fmt.Sprint("t", n) }
}

// A task has one worker at a time, and may have another after it.
func TestOneWorkerAtATime(t *testing.T) {
	bubble(t, func(t *testing.T) {
		broken := errors.New("broken")
		store := &flawed{shared: newShared()}
		l := open(t, store, &durabletasks.Options{Logger: silent})
		id := create(t, l, nil)
		for range 3 {
			stop := make(chan struct{})
			check(t, l.Go(ctx, id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
				<-stop
				return wire.JSON{}, broken
			}))
			wantError(t, "a second worker", l.Go(ctx, id, sleeping), durabletasks.ErrRunning)
			store.onUpdate = func(durabletasks.Record) error { return broken } // so that it stays unfinished
			close(stop)
			time.Sleep(10 * second)
			synctest.Wait()
			store.onUpdate = nil
		}
		check(t, l.Go(ctx, id, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil }))
		synctest.Wait()
		if v := get(t, l, id); v.Status != durabletasks.StatusCompleted {
			t.Errorf("status %s", v.Status)
		}
	})
}

// An id that a running task has is taken, and the task keeps its worker.
func TestStartWithTheIDOfARunningTask(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), &durabletasks.Options{NewID: func() string { return "t" }, MaxWorkers: 2})
		_, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
		for range 3 { // and no slot is lost
			_, err = l.StartTask(ctx, nil, sleeping)
			wantError(t, "Start", err, durabletasks.ErrExists)
		}
		wantError(t, "Go", l.Go(ctx, "t", sleeping), durabletasks.ErrRunning)
		check(t, l.CancelTask(ctx, "t"))
		synctest.Wait()
		if v := get(t, l, "t"); v.Status != durabletasks.StatusCancelled {
			t.Errorf("status %s", v.Status)
		}
	})
}

type valueKey struct{}

// A worker's context has the values of the request that began it, and neither
// its cancellation nor its deadline.
func TestContextsOutliveRequests(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, nil)
		work := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			time.Sleep(200 * time.Millisecond)
			if _, ok := ctx.Deadline(); ok || ctx.Err() != nil || ctx.Value(valueKey{}) != "v" || h.Context() != ctx {
				return wire.JSON{}, fmt.Errorf("context: %v, %v", ctx.Err(), ctx.Value(valueKey{}))
			}
			return done, h.Progress(ctx, "late", nil)
		}
		ways := map[string]func(ctx context.Context) (string, error){
			"Start": func(ctx context.Context) (string, error) {
				c, err := l.StartTask(ctx, nil, work)
				return c.TaskID, err
			},
			"Go": func(ctx context.Context) (string, error) {
				id := create(t, l, nil)
				return id, l.Go(ctx, id, work)
			},
			"Recover": func(ctx context.Context) (string, error) {
				id := create(t, l, nil)
				n, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker { return work })
				if n != 1 {
					t.Errorf("recovered %d", n)
				}
				return id, err
			},
			"Handle": func(ctx context.Context) (string, error) {
				id := create(t, l, nil)
				h, err := l.Handle(ctx, id)
				if err == nil {
					go func() {
						if _, err := work(h.Context(), h); err != nil {
							h.Fail(ctx, &wire.Error{Message: err.Error()})
						}
						h.Complete(h.Context(), done)
					}()
				}
				return id, err
			},
		}
		for name, start := range ways {
			req := context.WithValue(ctx, valueKey{}, "v")
			for end, f := range map[string]func() (context.Context, context.CancelFunc){
				"cancelled": func() (context.Context, context.CancelFunc) { return context.WithCancel(req) },
				"deadline":  func() (context.Context, context.CancelFunc) { return context.WithTimeout(req, 50*time.Millisecond) },
			} {
				req, cancel := f()
				id, err := start(req)
				check(t, err)
				if end == "cancelled" {
					cancel()
				}
				time.Sleep(second)
				if v := get(t, l, id); v.Status != durabletasks.StatusCompleted || v.Result.Get("isError") != (wire.JSON{}) {
					t.Errorf("%s, request %s: %s %v %v", name, end, v.Status, v.Result, v.Error)
				}
				cancel()
			}
		}
	})
}

// Recover hands every unfinished task of every owner to the host, and decides
// nothing without it.
func TestRecover(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{NewID: numbered()})
		alice := durabletasks.WithOwner(ctx, "alice")
		ids := map[string]string{}
		for _, name := range []string{"plain", "parked", "half answered", "answered", "cancel requested", "left", "panicking", "failed by the host", "completed", "expired"} {
			o := durabletasks.CreateOptions{Payload: wire.MustParse(`{"name":"` + name + `"}`)}
			if name == "expired" {
				o.TTL = second
			}
			c, err := l.CreateTask(alice, &o)
			check(t, err)
			ids[name] = c.TaskID
		}
		h := func(name string) *durabletasks.Handle { return handle(t, l, ids[name]) }
		for _, name := range []string{"parked", "half answered", "answered"} {
			request(h(name), "a", "b")
		}
		_, err := l.UpdateTask(alice, ids["half answered"], accepts("a"))
		check(t, err)
		_, err = l.UpdateTask(alice, ids["answered"], accepts("a", "b"))
		check(t, err)
		check(t, l.CancelTask(alice, ids["cancel requested"]))
		check(t, h("completed").Complete(ctx, done))
		check(t, h("plain").Progress(ctx, "half way", &durabletasks.ProgressOptions{Checkpoint: aText}))
		time.Sleep(2 * second)
		l.Close()

		l = open(t, store, &durabletasks.Options{MaxWorkers: 1, Logger: silent})
		_, err = l.StartTask(ctx, nil, sleeping)
		check(t, err)
		var seen []string
		var mu sync.Mutex
		got := map[string]string{}
		resume := func(r durabletasks.Record) durabletasks.Worker {
			name, ok := r.Payload.Get("name").Text()
			if !ok {
				t.Errorf("a task with a worker was shown: %+v", r)
				return nil
			}
			seen = append(seen, name)
			switch name {
			case "left":
				return nil
			case "panicking":
				panic("resume")
			case "failed by the host":
				return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
					return wire.JSON{}, &wire.Error{Code: wire.CodeInternalError, Message: "interrupted"}
				}
			}
			return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				if _, err := l.GetTask(context.WithoutCancel(ctx), r.ID); err != nil {
					t.Errorf("%s: the worker's context has no owner: %v", name, err)
				}
				saved, err := h.Checkpoint(ctx)
				check(t, err)
				var a map[string]wire.JSON
				if name != "plain" { // which asked nothing
					a, err = h.RequestInput(ctx, forms("a", "b"), nil)
				}
				mu.Lock()
				got[name] = fmt.Sprint(len(a), " ", errorName(err), " ", saved)
				mu.Unlock()
				if err != nil {
					return wire.JSON{}, err
				}
				return done, nil
			}
		}
		n, err := l.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
			if r.Payload.IsZero() {
				return nil // it has the worker that StartTask runs
			}
			return resume(r)
		})
		if n != 6 || err != nil {
			t.Errorf("recovered %d, %v", n, err)
		}
		synctest.Wait()
		slices.Sort(seen)
		want := []string{"answered", "cancel requested", "failed by the host", "half answered", "left", "panicking", "parked", "plain"}
		if !slices.Equal(seen, want) {
			t.Errorf("shown %q", seen)
		}
		if n, err := l.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker { return sleeping }); n != 2 || err != nil {
			t.Errorf("recovered again %d, %v", n, err) // left, panicking
		}
		_, err = l.UpdateTask(alice, ids["half answered"], accepts("a", "b"))
		check(t, err)
		_, err = l.UpdateTask(alice, ids["parked"], accepts("a", "b"))
		check(t, err)
		synctest.Wait()
		wantGot := map[string]string{"plain": `0 ok "text"`, "parked": "2 ok ", "half answered": "2 ok ", "answered": "2 ok ", "cancel requested": "0 Cancelled "}
		if !reflect.DeepEqual(got, wantGot) {
			t.Errorf("got  %q\nwant %q", got, wantGot)
		}
		for name, want := range map[string]durabletasks.Status{
			"plain": "completed", "parked": "completed", "half answered": "completed", "answered": "completed", "cancel requested": "cancelled",
			"left": "working", "failed by the host": "failed", "completed": "completed",
		} {
			if v, err := l.GetTask(alice, ids[name]); err != nil || v.Status != want {
				t.Errorf("%s: %s, want %s, %v", name, v.Status, want, err)
			}
		}
	})
}

func TestRecoverErrors(t *testing.T) {
	bubble(t, func(t *testing.T) {
		nobody := func(durabletasks.Record) durabletasks.Worker { t.Error("called"); return nil }
		bare := struct{ durabletasks.TaskStore }{newShared()}
		_, err := open(t, bare, nil).Recover(ctx, nobody)
		wantError(t, "no Scanner", err, errors.ErrUnsupported)

		broken := errors.New("broken")
		store := &flawed{shared: newShared()}
		l := open(t, store, nil)
		for range 5 {
			create(t, l, nil)
		}
		gone, cancel := context.WithCancel(ctx)
		cancel()
		n, err := l.Recover(gone, nobody)
		if n != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("context done: %d, %v", n, err)
		}
		gets := 0
		store.onGet = func(string) error {
			if gets++; gets > 2 { // one worker needs two
				return broken
			}
			return nil
		}
		shown := 0
		n, err = l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker { shown++; return sleeping })
		if n != 1 || shown != 2 || !errors.Is(err, broken) {
			t.Errorf("store fails after the first: %d of %d, %v", n, shown, err)
		}
		store.onGet = nil
		go l.Shutdown(ctx)
		synctest.Wait()
		n, err = l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker { return sleeping })
		if n != 0 || !errors.Is(err, durabletasks.ErrShutdown) && !errors.Is(err, durabletasks.ErrClosed) {
			t.Errorf("after Shutdown: %d, %v", n, err)
		}

		// It is the same if there is nothing to recover.
		l = open(t, newShared(), nil)
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		_, err = l.Recover(ctx, nobody)
		wantError(t, "after Close", err, durabletasks.ErrClosed)
		l = open(t, newShared(), nil)
		if _, err := l.StartTask(ctx, nil, func(ctx context.Context, _ *durabletasks.Handle) (wire.JSON, error) {
			<-ctx.Done()
			_, err := l.Recover(ctx, nobody)
			wantError(t, "while shutting down", err, durabletasks.ErrShutdown)
			return wire.JSON{}, context.Cause(ctx)
		}); err != nil {
			t.Fatal(err)
		}
		if err := l.Shutdown(ctx); err != nil {
			t.Error(err)
		}
	})
}

// createHook is a store that calls a function after each create.
type createHook struct {
	shared
	then func()
}

func (s *createHook) Create(ctx context.Context, r durabletasks.Record) error {
	err := s.shared.Create(ctx, r)
	s.then()
	return err
}

// A Recover during StartTask leaves the new task to its own worker.
func TestRecoverDuringStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &createHook{shared: newShared()}
		var log events
		l := open(t, store, &durabletasks.Options{OnEvent: log.hook})
		store.then = func() {
			n, err := l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
				return func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return aText, nil }
			})
			if n != 0 || err != nil {
				t.Errorf("recovered %d, %v", n, err)
			}
		}
		c, err := l.StartTask(ctx, nil, func(context.Context, *durabletasks.Handle) (wire.JSON, error) { return done, nil })
		check(t, err)
		synctest.Wait()
		if v := get(t, l, c.TaskID); v.Result != done {
			t.Errorf("%+v", v)
		}
		if got, want := log.String(), "created (working), ended (completed)"; got != want {
			t.Errorf("events: %s", got)
		}
	})
}

// lateReader is a store that commits a new task, and returns from a read that
// found nothing, only when the test lets it.
type lateReader struct {
	*watchable
	commit, report chan struct{}
}

func (s *lateReader) Create(ctx context.Context, r durabletasks.Record) error {
	<-s.commit
	return s.watchable.Create(ctx, r)
}

func (s *lateReader) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	r, err := s.watchable.Get(ctx, id)
	if err != nil {
		<-s.report
	}
	return r, err
}

// The engine reads all its tasks a second after it has begun to watch a store.
// It does not find a task that is created at the same time: this must not end
// the task's new worker.
func TestRefreshDuringStart(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &lateReader{newWatchable(), make(chan struct{}), make(chan struct{})}
		var log events
		l := open(t, store, &durabletasks.Options{OnEvent: log.hook})
		defer close(store.report)
		var c wire.CreateTaskResult
		go func() {
			var err error
			c, err = l.StartTask(ctx, nil, sleeping)
			check(t, err)
		}()
		time.Sleep(second)
		synctest.Wait()
		close(store.commit) // the look has read, and found nothing
		synctest.Wait()
		store.report <- struct{}{}
		synctest.Wait()
		if err := l.CancelTask(ctx, c.TaskID); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if got, want := log.String(), "created (working), cancel_requested (working), ended (cancelled)"; got != want {
			t.Errorf("events: %s", got)
		}
	})
}

// A shutdown ends no task, waits for outcomes, and names the workers that do
// not leave.
func TestShutdown(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{NewID: numbered()})
		var late error
		release := make(chan struct{})
		work := map[string]durabletasks.Worker{
			"gives up": sleeping,
			"waits for input": func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(ctx, forms("a"), nil)
				wantError(t, "RequestInput", err, durabletasks.ErrShutdown)
				return wire.JSON{}, err
			},
			"waits for input elsewhere": func(_ context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(context.Background(), forms("a"), nil)
				wantError(t, "RequestInput", err, durabletasks.ErrShutdown)
				return wire.JSON{}, err
			},
			"finishes": func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-ctx.Done()
				time.Sleep(50 * time.Millisecond)
				return done, h.Progress(ctx, "nearly", nil)
			},
			"saves": func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-ctx.Done()
				return wire.JSON{}, h.Progress(ctx, "saved", &durabletasks.ProgressOptions{Checkpoint: aText})
			},
			"stays": func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-release
				late = h.Progress(ctx, "late", nil)
				return done, nil
			},
		}
		ids := map[string]string{}
		for name, w := range work {
			c, err := l.StartTask(ctx, nil, w)
			check(t, err)
			ids[name] = c.TaskID
		}
		idle := create(t, l, nil)
		synctest.Wait()
		grace, cancel := context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
		begin := time.Now()
		shut := make(chan error, 2)
		for range 2 {
			go func() { shut <- l.Shutdown(grace) }()
		}
		synctest.Wait()
		_, err := l.CreateTask(ctx, nil)
		wantError(t, "CreateTask", err, durabletasks.ErrShutdown)
		_, err = l.StartTask(ctx, nil, sleeping)
		wantError(t, "Start", err, durabletasks.ErrShutdown)
		wantError(t, "Go", l.Go(ctx, idle, sleeping), durabletasks.ErrShutdown)
		get(t, l, idle) // clients are served to the end
		wantError(t, "the context of a new handle", context.Cause(handle(t, l, idle).Context()), durabletasks.ErrShutdown)

		err = <-shut
		var stragglers *durabletasks.ShutdownError
		if !errors.As(err, &stragglers) || !slices.Equal(stragglers.TaskIDs, []string{ids["stays"]}) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Shutdown: %v %v", err, stragglers)
		}
		if strings.Contains(err.Error(), ids["stays"]) {
			t.Errorf("the text names a task: %v", err)
		}
		if d := time.Since(begin); d != 100*time.Millisecond {
			t.Errorf("took %v", d)
		}
		<-shut
		close(release)
		synctest.Wait()
		wantError(t, "a straggler's write", late, durabletasks.ErrClosed)
		_, err = l.GetTask(ctx, idle)
		wantError(t, "GetTask", err, durabletasks.ErrClosed)

		l = open(t, store, nil)
		for name, want := range map[string]durabletasks.Status{
			"gives up": "working", "waits for input": "input_required", "waits for input elsewhere": "input_required",
			"finishes": "completed", "saves": "working", "stays": "working",
		} {
			if v := get(t, l, ids[name]); v.Status != want {
				t.Errorf("%s: %s", name, v.Status)
			}
		}
		if saved, err := handle(t, l, ids["saves"]).Checkpoint(ctx); saved != aText || err != nil {
			t.Errorf("checkpoint %v, %v", saved, err)
		}
	})
}

// Without workers a shutdown succeeds, even with a context that is done.
func TestShutdownOfTheIdle(t *testing.T) {
	gone, cancel := context.WithCancel(ctx)
	cancel()
	for range 50 {
		l := open(t, newShared(), nil)
		if err := l.Shutdown(gone); err != nil {
			t.Fatal(err)
		}
		if err := l.Shutdown(gone); err != nil {
			t.Fatal("again:", err)
		}
	}
}

// Close does not wait for workers, and a worker that outlives it changes nothing.
func TestCloseWithWorkers(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, nil)
		causes := make(chan error, 2)
		c, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			<-ctx.Done()
			causes <- context.Cause(ctx)
			causes <- h.Progress(ctx, "", nil)
			return done, nil
		})
		check(t, err)
		synctest.Wait()
		check(t, l.Close())
		wantError(t, "cause", <-causes, durabletasks.ErrClosed)
		wantError(t, "write", <-causes, durabletasks.ErrClosed)
		synctest.Wait()
		if r := stored(t, store, c.TaskID); r.Status != durabletasks.StatusWorking {
			t.Errorf("status %s", r.Status)
		}
	})
}

// A task does not expire under its worker. Its clients see how long it will
// live.
func TestLiveWorkersKeepTheirTasks(t *testing.T) {
	for _, ttl := range []time.Duration{10 * second, 30 * second, 31 * second, time.Minute, time.Hour, durabletasks.NoLimit} {
		bubble(t, func(t *testing.T) {
			store := newShared()
			l := open(t, store, nil)
			stop := make(chan struct{})
			c, err := l.StartTask(ctx, &durabletasks.CreateOptions{TTL: ttl}, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				select {
				case <-stop:
					return done, nil
				case <-ctx.Done():
					return wire.JSON{}, context.Cause(ctx)
				}
			})
			check(t, err)
			updates := int64(0)
			for range 100 {
				time.Sleep(301 * second / 10)
				r, err := store.Get(ctx, c.TaskID)
				if err != nil {
					t.Fatalf("ttl %v: gone after %v", ttl, time.Since(c.CreatedAt))
				}
				if r.Version > updates && ttl == durabletasks.NoLimit {
					t.Errorf("a task without limit was extended")
				}
				updates = r.Version
				if at, limited := r.ExpiresAt(); limited && time.Until(at) < 25*second {
					t.Fatalf("ttl %v: only %v left", ttl, time.Until(at))
				}
			}
			if updates > 2 {
				t.Errorf("ttl %v: extended %d times in 50 minutes", ttl, updates)
			}
			close(stop)
			synctest.Wait()
			v := get(t, l, c.TaskID)
			if v.Status != durabletasks.StatusCompleted {
				t.Errorf("status %s", v.Status)
			}
			if ttl == durabletasks.NoLimit {
				return
			}
			time.Sleep(time.Until(v.CreatedAt.Add(v.TTL)))
			_, err = l.GetTask(ctx, c.TaskID)
			wantError(t, "when its worker has left", err, durabletasks.ErrNotFound)
		})
	}
}

// A machine that sleeps for longer than its tasks were to live wakes up with
// a wall clock that is far ahead. Within ten minutes, when that is believed,
// the tasks of live workers live on by it, and others are left alone.
func TestSleepingMachine(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, nil)
		var asleep atomic.Int64
		l.SetWall(func() time.Time { return time.Now().Add(time.Duration(asleep.Load())) })
		c, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
		id := create(t, l, nil)
		hctx := handle(t, l, id).Context()
		time.Sleep(time.Minute)
		asleep.Store(int64(8 * time.Hour))
		time.Sleep(9 * time.Minute)
		r := stored(t, store, c.TaskID)
		if end, _ := r.ExpiresAt(); end.Sub(time.Now().Add(8*time.Hour)) < 30*time.Minute {
			t.Errorf("expires at %v", end)
		}
		if r := stored(t, store, id); r.Version != 0 || hctx.Err() != nil {
			t.Errorf("a task without a worker of the engine's: %+v, %v", r, context.Cause(hctx))
		}
	})
}

// Even a very short TTL is raised at most every half minute or so.
func TestExtensionsAreSeldom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := newShared()
		l := open(t, store, &durabletasks.Options{TTL: second})
		c, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
		time.Sleep(time.Hour)
		if v := stored(t, store, c.TaskID).Version; v < 60 || v > 130 {
			t.Errorf("extended %d times in an hour", v)
		}
	})
}

// A store whose clock is behind the engine's is read once a second, not all the
// time, and so is a store that fails.
func TestExpiryIsLookedAtSeldom(t *testing.T) {
	bubble(t, func(t *testing.T) {
		behind := func() time.Time { return time.Now().Add(-time.Minute) }
		var gets atomic.Int64
		var fail atomic.Bool
		store := &flawed{shared: shared{&durabletasks.MemStore{Now: behind}}, onGet: func(string) error {
			gets.Add(1)
			if fail.Load() {
				return errBroken
			}
			return nil
		}}
		l := open(t, store, unswept)
		hctx := handle(t, l, create(t, l, &durabletasks.CreateOptions{TTL: second})).Context()
		time.Sleep(30*second + time.Millisecond)
		if n := gets.Swap(0); n < 20 || n > 40 || hctx.Err() != nil {
			t.Errorf("%d looks in half a minute, %v", n, context.Cause(hctx))
		}
		fail.Store(true)
		time.Sleep(25 * second)
		if n := gets.Load(); n < 20 || n > 40 || hctx.Err() != nil {
			t.Errorf("%d looks in vain, %v", n, context.Cause(hctx))
		}
		fail.Store(false)
		time.Sleep(10 * second)
		wantError(t, "cause", context.Cause(hctx), durabletasks.ErrExpired)
	})
}

// With ExpireRunning a worker ends with its task, even while it waits, and its
// place is free.
func TestExpireRunning(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		l := open(t, newShared(), &durabletasks.Options{ExpireRunning: true, MaxWorkers: 2, SweepInterval: durabletasks.NoLimit, OnEvent: log.hook})
		causes := make(chan error, 1)
		var late error
		for _, work := range []durabletasks.Worker{
			func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				<-ctx.Done()
				causes <- context.Cause(ctx)
				late = h.Complete(ctx, done)
				return done, nil
			},
			func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				_, err := h.RequestInput(ctx, forms("a"), nil)
				causes <- err
				return wire.JSON{}, err
			},
		} {
			_, err := l.StartTask(ctx, &durabletasks.CreateOptions{TTL: 50 * time.Millisecond}, work)
			check(t, err)
			time.Sleep(50*time.Millisecond - 1)
			if len(causes) != 0 {
				t.Fatal("expired early:", <-causes)
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			wantError(t, "cause", <-causes, durabletasks.ErrExpired)
		}
		wantError(t, "a late Complete", late, durabletasks.ErrNotFound)
		for range 2 {
			_, err := l.StartTask(ctx, nil, sleeping)
			check(t, err)
		}
		if got := strings.Count(log.String(), "expired"); got != 2 {
			t.Errorf("events: %s", &log)
		}
	})
}

// A task can end between its creation and the first look of its worker.
func TestGoOfATaskThatEnds(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &flawed{shared: newShared()}
		l := open(t, store, &durabletasks.Options{ExpireRunning: true})
		for what, end := range map[string]struct {
			do   func(id string)
			want error
		}{
			"expires":  {func(string) { time.Sleep(2 * second) }, durabletasks.ErrExpired},
			"is ended": {func(id string) { check(t, handle(t, l, id).Complete(ctx, done)) }, durabletasks.ErrTerminal},
			"cancel":   {func(id string) { check(t, l.CancelTask(ctx, id)) }, durabletasks.ErrCancelled},
		} {
			id := create(t, l, &durabletasks.CreateOptions{TTL: second})
			gets := 0
			store.onGet = func(string) error {
				if gets++; gets == 2 { // Go has found it, its worker's context does not yet exist
					store.onGet = nil
					end.do(id)
				}
				return nil
			}
			cause := make(chan error, 1)
			check(t, l.Go(ctx, id, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				cause <- context.Cause(ctx)
				return wire.JSON{}, nil
			}))
			wantError(t, what, <-cause, end.want)
			synctest.Wait()
		}
	})
}

// A panic of the host's clock reaches the caller before a commit and nobody after
// it, and nothing hangs.
func TestClockPanics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var left atomic.Int64 // readings until a panic
		left.Store(-1)
		clock := func() time.Time {
			switch n := left.Load(); {
			case n == 0:
				panic("clock")
			case n > 0:
				left.Add(-1)
			}
			return time.Now()
		}
		store := newShared()
		l := open(t, store, &durabletasks.Options{Now: clock, MaxWorkers: 1, ExpireRunning: true, Logger: silent})
		id := create(t, l, nil)
		h := handle(t, l, id)
		h.Context()
		for readings := range 4 {
			key := fmt.Sprint("k", readings)
			w := request(h, key)
			left.Store(int64(readings))
			panicked := survive(func() { l.UpdateTask(ctx, id, accepts(key)) })
			left.Store(-1)
			if panicked != (readings == 0) {
				t.Errorf("%d readings: panicked %v", readings, panicked)
			}
			synctest.Wait()
			committed := stored(t, store, id).Status == durabletasks.StatusWorking
			if committed != (readings > 0) {
				t.Errorf("%d readings: %v", readings, stored(t, store, id))
			}
			if !committed {
				_, err := l.UpdateTask(ctx, id, accepts(key))
				check(t, err)
			}
			synctest.Wait()
			select {
			case a := <-w:
				check(t, a.err)
			default:
				t.Fatalf("%d readings: the waiter was not told", readings)
			}
		}
		for readings := range 4 {
			left.Store(int64(readings))
			survive(func() { l.StartTask(ctx, nil, sleeping) })
			left.Store(-1)
			var running []string
			check(t, store.Scan(ctx, func(r durabletasks.Record) bool { running = append(running, r.ID); return true }))
			for _, other := range running {
				if other != id {
					check(t, l.CancelTask(ctx, other))
				}
			}
			synctest.Wait()
		}
		_, err := l.StartTask(ctx, nil, sleeping)
		check(t, err)
	})
}

// An expiry is still noticed after the clock has panicked in its timer.
func TestClockPanicsAtTheExpiry(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var broken atomic.Bool
		clock := func() time.Time {
			if broken.Load() {
				panic("clock")
			}
			return time.Now()
		}
		behind := func() time.Time { return time.Now().Add(-5 * second) } // so that there is something to look at
		l := open(t, shared{&durabletasks.MemStore{Now: behind}}, &durabletasks.Options{Now: clock, SweepInterval: durabletasks.NoLimit, Logger: silent})
		hctx := handle(t, l, create(t, l, &durabletasks.CreateOptions{TTL: time.Minute})).Context()
		time.Sleep(59 * second)
		broken.Store(true)
		time.Sleep(3 * second)
		broken.Store(false)
		if hctx.Err() != nil {
			t.Fatalf("ended early: %v", context.Cause(hctx))
		}
		time.Sleep(5 * second)
		wantError(t, "cause", context.Cause(hctx), durabletasks.ErrExpired)
	})
}

func TestNewIDPanics(t *testing.T) {
	l := open(t, newShared(), &durabletasks.Options{NewID: func() string { panic("secret") }, MaxWorkers: 1})
	for range 2 {
		_, err := l.StartTask(ctx, nil, sleeping)
		if err == nil || strings.Contains(err.Error(), "secret") || errors.Is(err, durabletasks.ErrBusy) {
			t.Errorf("got %v", err)
		}
	}
}

// The engine's own ids are random UUIDs.
func TestIDs(t *testing.T) {
	l := open(t, &durabletasks.MemStore{}, nil)
	seen := make(map[string]bool)
	for range 10_000 {
		id := create(t, l, nil)
		if seen[id] || len(id) != 36 || id[14] != '4' {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}

// Workers of two tasks that use the same key do not meet.
func TestWorkersDoNotMeet(t *testing.T) {
	bubble(t, func(t *testing.T) {
		l := open(t, newShared(), nil)
		outer := make(chan string, 1)
		ask := func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			a, err := h.RequestInput(ctx, forms("name"), nil)
			if err != nil {
				return wire.JSON{}, err
			}
			return wire.MustParse(`{"got":` + a["name"].String() + `}`), nil
		}
		a, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			nested, err := l.StartTask(ctx, nil, ask) // a tool call within a tool call
			check(t, err)
			outer <- nested.TaskID
			return ask(ctx, h)
		})
		check(t, err)
		b := <-outer
		synctest.Wait()
		_, err = l.UpdateTask(ctx, b, map[string]wire.JSON{"name": decline})
		check(t, err)
		synctest.Wait()
		if v := get(t, l, a.TaskID); v.Status != durabletasks.StatusInputRequired {
			t.Errorf("the answer went astray: %s", v.Status)
		}
		_, err = l.UpdateTask(ctx, a.TaskID, map[string]wire.JSON{"name": accept})
		check(t, err)
		synctest.Wait()
		if x, y := get(t, l, a.TaskID).Result.Get("got"), get(t, l, b).Result.Get("got"); x != accept || y != decline {
			t.Errorf("answers %v, %v", x, y)
		}
	})
}
