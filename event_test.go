package durabletasks_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Each event comes once, in commit order, with the state after it.
func TestEvents(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		var book logbook
		store := newShared()
		opts := &durabletasks.Options{OnEvent: log.hook, Logger: book.logger(), NewID: func() string { return "bearer-token" }}
		k := &task{t: t, store: store, opts: opts, l: open(t, store, opts)}
		k.id = create(t, k.l, &durabletasks.CreateOptions{Tool: "crawl", StatusMessage: "secret", Payload: wire.MustParse(`"secret"`)})
		k.h = handle(t, k.l, k.id)
		time.Sleep(1234 * time.Millisecond)
		check(t, k.h.Progress(ctx, "secret", nil))
		w := request(k.h, "secret-a", "b")
		k.update(accepts("secret-a"))
		k.update(accepts("x"))
		k.update(accepts("b"))
		check(t, (<-w).err)
		check(t, k.h.Progress(ctx, "", &durabletasks.ProgressOptions{Checkpoint: wire.MustParse(`"secret"`)})) // drops the answers
		check(t, k.l.CancelTask(ctx, k.id))
		check(t, k.l.CancelTask(ctx, k.id))
		k.restart()
		n, err := k.l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
			return func(context.Context, *durabletasks.Handle) (wire.JSON, error) {
				return wire.MustParse(`{"s":"secret"}`), nil
			}
		})
		if n != 1 || err != nil {
			t.Fatal(n, err)
		}
		synctest.Wait()
		check(t, k.l.CancelTask(ctx, k.id))
		time.Sleep(2 * time.Hour)
		want := "created (working), input_required (input_required), input_received (input_required), input_received (working), " +
			"cancel_requested (working), recovered (working), ended (completed), swept 1"
		if got := log.String(); got != want {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		digest := log.all[0].Task
		for i, e := range log.all {
			if e.Kind == durabletasks.EventSwept {
				if e.Task != "" || e.Age != 0 {
					t.Errorf("%+v", e)
				}
				continue
			}
			age := 1234 * time.Millisecond
			if i == 0 {
				age = 0
			}
			if len(digest) != 12 || e.Task != digest || e.Age != age || e.Count != 0 {
				t.Errorf("%+v", e)
			}
		}
		text := book.String()
		for _, secret := range []string{"secret", "bearer", k.id} {
			if strings.Contains(text, secret) {
				t.Errorf("the log tells %q: %s", secret, text)
			}
		}
		if got := strings.Count(text, "\n"); got != len(log.all) {
			t.Errorf("%d lines for %d events: %s", got, len(log.all), text)
		}
		if want := `level=INFO msg="task ended" task=` + digest + ` tool=crawl status=completed age=1.234s`; !strings.Contains(text, want) {
			t.Errorf("no %q in %s", want, text)
		}
	})
}

// The names of events are metric labels, and an event has the tool and the true
// age of its task, even if the task was not updated.
func TestEventsAsMetrics(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var log events
		store := newShared()
		opts := &durabletasks.Options{OnEvent: log.hook, ExpireRunning: true}
		k := &task{t: t, store: store, opts: opts, l: open(t, store, opts)}
		k.id = create(t, k.l, &durabletasks.CreateOptions{Tool: "crawl"})
		k.h = handle(t, k.l, k.id)
		time.Sleep(second) // 1 s: asked
		request(k.h, "a", "b")
		time.Sleep(second) // 2 s: withdrawn
		check(t, k.h.Withdraw(ctx, "a"))
		time.Sleep(second) // 3 s: answered
		k.update(accepts("b"))
		time.Sleep(second) // 4 s: a cancel, which is no update
		check(t, k.l.CancelTask(ctx, k.id))
		time.Sleep(second) // 5 s: recovered, and ended
		k.restart()
		_, err := k.l.Recover(ctx, func(durabletasks.Record) durabletasks.Worker {
			return func(context.Context, *durabletasks.Handle) (wire.JSON, error) { time.Sleep(second); return done, nil }
		})
		check(t, err)
		time.Sleep(2 * second)
		watched := create(t, k.l, &durabletasks.CreateOptions{Tool: "watch", TTL: second})
		watch(ctx, k.l, watched)
		time.Sleep(time.Hour)
		want := "created (working), input_required (input_required), input_withdrawn (input_required), input_received (working), " +
			"cancel_requested (working), recovered (working), ended (completed), created (working), expired, swept 1"
		if got := log.String(); !strings.HasPrefix(got, want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
		for i, e := range log.all {
			for _, r := range e.Kind {
				if (r < 'a' || r > 'z') && r != '_' {
					t.Errorf("event %q is no metric label", e.Kind)
				}
			}
			if i < 7 && (e.Tool != "crawl" || e.Age != []time.Duration{0, 1, 2, 3, 4, 5, 6}[i]*second) {
				t.Errorf("%+v", e)
			}
		}
		if e := log.all[7]; e.Tool != "watch" || e.Age != 0 {
			t.Errorf("%+v", e)
		}
	})
	// A clock that was set back makes no negative age.
	var last durabletasks.Event
	now := time.Now()
	l := open(t, newShared(), &durabletasks.Options{OnEvent: func(e durabletasks.Event) { last = e }, Now: func() time.Time { return now }})
	id := create(t, l, nil)
	now = now.Add(-time.Minute)
	check(t, l.CancelTask(ctx, id))
	if last.Kind != durabletasks.EventCancelRequested || last.Age != 0 {
		t.Errorf("%+v", last)
	}
}

// A hook or a logger that panics does not disturb the engine.
func TestHooksPanic(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for name, opts := range map[string]*durabletasks.Options{
			"hook":   {OnEvent: func(durabletasks.Event) { panic("hook") }, Logger: silent},
			"logger": {Logger: slog.New(panicHandler{slog.DiscardHandler})},
			"both":   {OnEvent: func(durabletasks.Event) { panic("hook") }, Logger: slog.New(panicHandler{slog.DiscardHandler})},
		} {
			opts.SweepInterval = second
			l := open(t, newShared(), opts)
			c, err := l.StartTask(ctx, nil, func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
				a, err := h.RequestInput(ctx, forms("a"), nil)
				if err != nil || len(a) != 1 {
					return wire.JSON{}, errors.New("no answer")
				}
				panic("worker")
			})
			check(t, err)
			synctest.Wait()
			_, err = l.UpdateTask(ctx, c.TaskID, accepts("a"))
			check(t, err)
			synctest.Wait()
			if v := get(t, l, c.TaskID); v.Status != durabletasks.StatusFailed {
				t.Errorf("%s: %s", name, v.Status)
			}
			time.Sleep(2 * time.Hour)
			if n, err := l.Sweep(ctx); n != 0 || err != nil {
				t.Errorf("%s: the engine's own sweeps have ended: %d, %v", name, n, err)
			}
			check(t, l.Shutdown(ctx))
		}
	})
}

type panicHandler struct{ slog.Handler }

func (panicHandler) Enabled(context.Context, slog.Level) bool  { panic("logger") }
func (panicHandler) Handle(context.Context, slog.Record) error { panic("logger") }

// A hook that panics is logged, without the value it panicked with.
func TestHookPanicIsLogged(t *testing.T) {
	var book logbook
	l := open(t, newShared(), &durabletasks.Options{OnEvent: func(durabletasks.Event) { panic("secret") }, Logger: book.logger()})
	create(t, l, nil)
	if text := book.String(); !strings.Contains(text, `msg="panic survived" in=Options.OnEvent panic=string`) || strings.Contains(text, "secret") {
		t.Errorf("log: %s", text)
	}
}

// A sweep that fails is logged and tried again.
func TestSweepFails(t *testing.T) {
	bubble(t, func(t *testing.T) {
		var book logbook
		store := &brokenSweep{shared: newShared()}
		l := open(t, store, &durabletasks.Options{Logger: book.logger()})
		time.Sleep(13*time.Minute + second)
		if n := strings.Count(book.String(), "sweep failed"); n != 3 {
			t.Errorf("log: %s", &book)
		}
		l.Close()
	})
}

// Close waits for a sweep that runs, and ends it.
func TestCloseEndsSweeps(t *testing.T) {
	bubble(t, func(t *testing.T) {
		store := &slowSweep{shared: newShared()}
		l := open(t, store, &durabletasks.Options{SweepInterval: second})
		time.Sleep(11 * time.Minute)
		if !store.sweeping.Load() {
			t.Fatal("no sweep")
		}
		check(t, l.Close())
		if store.sweeping.Load() || !store.closed.Load() {
			t.Errorf("sweeping %v, closed %v", store.sweeping.Load(), store.closed.Load())
		}
	})
}

type slowSweep struct {
	shared
	sweeping, closed atomic.Bool
}

func (s *slowSweep) Sweep(ctx context.Context, _ time.Time) (int, error) {
	s.sweeping.Store(true)
	<-ctx.Done()
	time.Sleep(second)
	s.sweeping.Store(false)
	return 0, ctx.Err()
}

func (s *slowSweep) Close() error {
	s.closed.Store(!s.sweeping.Load())
	return nil
}

type brokenSweep struct{ shared }

func (brokenSweep) Sweep(context.Context, time.Time) (int, error) { return 0, errors.New("broken") }

// A hook may read the task of its event.
func TestHookReads(t *testing.T) {
	var l *durabletasks.TaskLifecycle
	var seen []string
	id := "t"
	l = open(t, newShared(), &durabletasks.Options{NewID: func() string { return id }, OnEvent: func(e durabletasks.Event) {
		v, err := l.GetTask(ctx, id)
		check(t, err)
		seen = append(seen, string(v.Status))
	}})
	create(t, l, nil)
	check(t, handle(t, l, id).Complete(ctx, done))
	if got := strings.Join(seen, " "); got != "working completed" {
		t.Errorf("seen %s", got)
	}
}
