package durabletasks

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"runtime"
	"time"
)

// EventKind says what has happened; see the constants.
type EventKind string

// The kinds of events. They are fit for metric labels, and stable: an event
// keeps its name, and new events are added as new kinds.
const (
	EventCreated         EventKind = "created"          // a task was committed
	EventInputRequired   EventKind = "input_required"   // a worker asked the client
	EventInputReceived   EventKind = "input_received"   // answers were committed; Status tells whether more are missing
	EventInputWithdrawn  EventKind = "input_withdrawn"  // a question no longer waits for its answer
	EventCancelRequested EventKind = "cancel_requested" // a client asked to cancel, for the first time
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
	Tool   string        // [CreateOptions].Tool; empty if it is not known
	Status Status        // after the event; empty if it is not known
	Age    time.Duration // since the task's creation; 0 if it is not known
	Count  int           // of the tasks, for EventSwept
}

// taskDigest returns what stands for a task in events and logs.
func taskDigest(id string) string {
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:6])
}

// report tells the log and the hook what has happened to a task; r is its
// record, if it is known. For commits it is called in commit order.
func (l *TaskLifecycle) report(kind EventKind, id string, r *Record) {
	if l.opts.Logger == nil && l.opts.OnEvent == nil {
		return
	}
	e := Event{Kind: kind, Task: taskDigest(id)}
	if r != nil {
		e.Tool, e.Status = r.Tool, r.Status
		l.guard("Options.Now", func() { e.Age = max(l.now().Sub(r.CreatedAt), 0) })
	}
	l.deliver(e, slog.String("task", e.Task), slog.String("tool", e.Tool),
		slog.String("status", string(e.Status)), slog.Duration("age", e.Age))
}

// reportSwept tells the log and the hook of n tasks that a sweep removed.
func (l *TaskLifecycle) reportSwept(n int) {
	if n > 0 {
		l.deliver(Event{Kind: EventSwept, Count: n}, slog.Int("count", n))
	}
}

func (l *TaskLifecycle) deliver(e Event, attrs ...slog.Attr) {
	l.write(slog.LevelInfo, "task "+string(e.Kind), attrs...)
	if l.opts.OnEvent != nil {
		l.guard("Options.OnEvent", func() { l.opts.OnEvent(e) })
	}
}

// logFailure logs a failure that no caller is told of. Without a Logger it
// goes to slog.Default.
func (l *TaskLifecycle) logFailure(message string, attrs ...slog.Attr) {
	l.write(slog.LevelError, message, attrs...)
}

// logWarning logs something that the engine tries again.
func (l *TaskLifecycle) logWarning(message string, attrs ...slog.Attr) {
	l.write(slog.LevelWarn, message, attrs...)
}

// write writes to the log and survives a logger that panics.
func (l *TaskLifecycle) write(level slog.Level, message string, attrs ...slog.Attr) {
	defer func() { _ = recover() }()
	l.log.LogAttrs(context.Background(), level, message, attrs...)
}

// guard runs code that is not the engine's own where nobody could catch its
// panic.
func (l *TaskLifecycle) guard(what string, f func()) {
	defer func() {
		if p := recover(); p != nil {
			l.logFailure("panic survived", slog.String("in", what), describePanic(p))
		}
	}()
	f()
}

// describePanic says what kind of value a panic had, not the value, which may
// hold anything. The text of a runtime.Error, such as an index out of range,
// holds no data.
func describePanic(p any) slog.Attr {
	if err, ok := p.(runtime.Error); ok {
		return slog.String("panic", err.Error())
	}
	return slog.String("panic", fmt.Sprintf("%T", p))
}
