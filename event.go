package durabletasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"time"
)

// EventKind says what has happened; see the constants.
type EventKind string

// The events of tasks. They are stable: an event keeps its name, and new ones
// are added as new kinds.
const (
	EventCreated         EventKind = "created"          // a task was committed
	EventInputRequired   EventKind = "input required"   // a worker asks the client
	EventInputReceived   EventKind = "input received"   // answers were committed; Status tells whether more are missing
	EventCancelRequested EventKind = "cancel requested" // a client asked to cancel, for the first time
	EventEnded           EventKind = "ended"            // Status tells how
	EventExpired         EventKind = "expired"          // a task that this process worked on or waited for is gone
	EventRecovered       EventKind = "recovered"        // Recover has started a worker
	EventSwept           EventKind = "swept"            // Count expired tasks were removed from the store
)

// Event tells a log or a metric what has happened to a task, or to Count
// tasks. It holds no id and no payload.
type Event struct {
	Kind   EventKind
	Task   string        // stands for the task in logs: a digest of its id, which gives no access to it
	Status Status        // after the event; empty if it is not known
	Age    time.Duration // of the task, since its creation; 0 if it is not known
	Count  int           // of the tasks, for EventSwept
}

// happened tells the log and the hook. For what was committed it is called in
// commit order.
func (l *TaskLifecycle) happened(kind EventKind, id string, r *Record) {
	if l.opts.Logger == nil && l.opts.OnEvent == nil {
		return
	}
	sum := sha256.Sum256([]byte(id))
	e := Event{Kind: kind, Task: hex.EncodeToString(sum[:6])}
	if r != nil {
		e.Status, e.Age = r.Status, r.LastUpdatedAt.Sub(r.CreatedAt)
	}
	l.report(slog.LevelInfo, "task "+string(kind),
		slog.String("task", e.Task), slog.String("status", string(e.Status)), slog.Duration("age", e.Age))
	l.emit(e)
}

func (l *TaskLifecycle) swept(n int) {
	if n > 0 {
		l.report(slog.LevelInfo, "task swept", slog.Int("count", n))
		l.emit(Event{Kind: EventSwept, Count: n})
	}
}

func (l *TaskLifecycle) emit(e Event) {
	if l.opts.OnEvent != nil {
		l.guard("Options.OnEvent", func() { l.opts.OnEvent(e) })
	}
}

// report writes to the log, whatever the logger does.
func (l *TaskLifecycle) report(level slog.Level, message string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	l.log.LogAttrs(context.Background(), level, message, attrs...)
}

// guard runs code that is not the engine's own where nobody could catch its
// panic.
func (l *TaskLifecycle) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.report(slog.LevelError, "panic survived", slog.String("in", what), typeOf(p))
		}
	}()
	f()
}

// typeOf says what kind of value a panic had, not the value, which may hold
// anything.
func typeOf(p any) slog.Attr { return slog.String("type", fmt.Sprintf("%T", p)) }
