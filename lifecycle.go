// Package durabletasks keeps the state of long-running MCP tool calls: the
// state machine of the MCP Tasks extension (io.modelcontextprotocol/tasks,
// protocol revision 2026-07-28) over a store that survives a crash.
//
// A [TaskLifecycle] drives the tasks of one server. It has two sides, and a
// store below them:
//
//   - The client's side answers tools/call with [TaskLifecycle.CreateTask], or
//     with [TaskLifecycle.StartTask], which also runs the work. It serves
//     tasks/get, tasks/update and tasks/cancel; [wire.Dispatch] does so from
//     the text of a request.
//   - The worker's side is a [Handle], given to each [Worker]. It reports
//     progress, saves checkpoints, asks the user, and ends the task. After a
//     crash, [TaskLifecycle.Recover] runs the workers of unfinished tasks again.
//   - The store is a [TaskStore]: [MemStore] for tests, package wal for a disk,
//     or your own, checked by package storetest.
//
// Servers on the official Go SDK use package wire/gosdk, which calls all this
// for them.
//
// When a call that changes a task returns without an error, the change is
// committed to the store. A call that fails to commit has no effect, unless its
// error says that the outcome is unknown.
//
// What one tools/call, and the last answer to its question, pass through:
//
//	tools/call ─▶ host ─▶ StartTask ─▶ TaskStore.Create ─▶ {"resultType":"task"} to the client
//	                          └─▶ Worker in its own goroutine ─▶ Handle.RequestInput ─▶ TaskStore.Update
//	                                                                 (waits)                  │ input_required
//	tasks/update ─▶ wire.Dispatch ─▶ UpdateTask ─▶ check the answer ─▶ TaskStore.Update ─▶ ack
//	                                                                         └─▶ notify: RequestInput reads
//	                                                                             the record and returns
package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/mcp-durable-tasks/durabletasks/internal/failurelog"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Defaults of [Options].
const (
	DefaultTTL           = time.Hour
	DefaultPollInterval  = time.Second
	DefaultSweepInterval = time.Minute
)

// Options are the settings of a [TaskLifecycle]. The zero value of a field is
// its default.
type Options struct {
	// TTL is how long a task lives after its creation, where
	// [CreateOptions] do not say: rounded up to whole milliseconds, or
	// [NoLimit]. Zero means [DefaultTTL].
	TTL time.Duration

	// PollInterval is how often a client is asked to poll, where
	// CreateOptions do not say: rounded up to whole milliseconds, or
	// [NoLimit] for no hint. Zero means [DefaultPollInterval].
	PollInterval time.Duration

	// SweepInterval is how often expired tasks are removed from the store;
	// [NoLimit] means only by [TaskLifecycle.Sweep]. Zero means
	// [DefaultSweepInterval]. The first removal comes when the engine is ten
	// minutes old, so that a start with a clock that is still to be set
	// deletes nothing.
	SweepInterval time.Duration

	// ExpireRunning lets a task expire while its worker runs. By default the
	// engine raises the TTL of a task whose worker it runs in time, even while
	// the worker waits for an answer that may never come.
	ExpireRunning bool

	// MaxWorkers bounds how many workers the engine runs at once; 0 means no
	// bound. See [TaskLifecycle.StartTask].
	MaxWorkers int

	// Logger receives each [Event], at level Info, and the failures that no
	// caller is told of, such as a worker that panics, at level Error. It never
	// gets a task id or a payload. If nil, only the failures are logged, to
	// [slog.Default].
	Logger *slog.Logger

	// OnEvent is called for each [Event], for metrics: after the commit that
	// it reports, in commit order for each task, concurrently for different
	// tasks. A task's next writer waits for it, and so may Close: it must be
	// quick, and must neither change the task nor call Close or Shutdown, which
	// could wait for ever. If nil, nothing is called.
	OnEvent func(Event)

	// NewID makes the ids of new tasks. They travel in HTTP headers and are
	// all that a client needs to reach a task: printable ASCII without
	// spaces, 1 to 256 bytes, and hard to guess. Nil means random UUIDs
	// (version 4). It is called concurrently.
	NewID func() string

	// Now is the clock for timestamps and expiry. Nil means the system's
	// clock; for expiry, a forward jump is believed only after ten minutes.
	// It is called concurrently.
	Now func() time.Time
}

// TaskLifecycle drives tasks through their states, over a store. It is safe
// for concurrent use. Make one with [New].
type TaskLifecycle struct {
	store TaskStore
	opts  Options
	log   *slog.Logger

	wall    func() time.Time
	clock   Clock
	local   localTasks
	workers workers

	unresumed sync.Map // tools whose unfinished tasks had no worker, logged already

	life       context.Context // ends with ErrClosed when Close begins
	endLife    context.CancelCauseFunc
	background sync.WaitGroup // goroutines that end with life
	closing    sync.Once
	closeErr   error
}

var _ wire.Backend = (*TaskLifecycle)(nil)

// New returns an engine over store and takes ownership of it:
// [TaskLifecycle.Close] closes the store. Nil opts mean the defaults. An error
// wraps [ErrInvalid] and names the field.
func New(store TaskStore, opts *Options) (*TaskLifecycle, error) {
	if v := reflect.ValueOf(store); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
		return nil, fmt.Errorf("%w: no store", ErrInvalid)
	}
	l := &TaskLifecycle{store: store}
	l.life, l.endLife = context.WithCancelCause(context.Background())
	l.workers = newWorkers()
	if opts != nil {
		l.opts = *opts
	}
	o := &l.opts
	for _, f := range []struct {
		name  string
		value *time.Duration
		dflt  time.Duration
	}{
		{"Options.TTL", &o.TTL, DefaultTTL},
		{"Options.PollInterval", &o.PollInterval, DefaultPollInterval},
		{"Options.SweepInterval", &o.SweepInterval, DefaultSweepInterval},
	} {
		var err error
		if *f.value, err = duration(f.name, *f.value, f.dflt); err != nil {
			return nil, err
		}
	}
	if o.MaxWorkers < 0 {
		return nil, fmt.Errorf("%w: Options.MaxWorkers is negative", ErrInvalid)
	}
	if l.wall = o.Now; l.wall == nil {
		l.wall = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.NewString
	}
	l.log = failurelog.Or(o.Logger)
	if o.SweepInterval != NoLimit {
		l.background.Add(1)
		go l.sweepEvery(o.SweepInterval)
	}
	if w, ok := store.(Watcher); ok {
		l.background.Add(1)
		go l.followStore(w)
	}
	return l, nil
}

// duration checks and normalises one duration of the options: the default for
// zero, NoLimit as it is, everything else rounded up to whole milliseconds.
func duration(name string, d, dflt time.Duration) (time.Duration, error) {
	switch {
	case d == 0:
		return dflt, nil
	case d == NoLimit:
		return d, nil
	case d < 0:
		return 0, fmt.Errorf("%w: %s is negative", ErrInvalid, name)
	}
	up := roundUp(d)
	if up < d {
		return 0, fmt.Errorf("%w: %s is too long to count in milliseconds", ErrInvalid, name)
	}
	return up, nil
}

// roundUp returns d rounded up to whole milliseconds; negative if that is more
// than a duration can hold.
func roundUp(d time.Duration) time.Duration {
	if part := d % time.Millisecond; part > 0 {
		d += time.Millisecond - part
	}
	return d
}

// now returns the time for timestamps, as records keep it.
func (l *TaskLifecycle) now() time.Time {
	return l.wall().UTC().Truncate(time.Millisecond)
}

// steadyNow returns the time for expiry.
func (l *TaskLifecycle) steadyNow() time.Time {
	if l.opts.Now != nil {
		return l.opts.Now()
	}
	return l.clock.Now()
}

type ownerKey struct{}

// WithOwner returns a context that says on whose behalf its calls are made.
// The owner is a stable identity, such as the subject of an access token, never
// a session or a connection. A task belongs to the owner it was created for,
// compared byte for byte; to any other it does not exist. A context without an
// owner has the empty owner, which is an identity like the others.
func WithOwner(ctx context.Context, owner string) context.Context {
	return context.WithValue(ctx, ownerKey{}, owner)
}

func ownerOf(ctx context.Context) string {
	owner, _ := ctx.Value(ownerKey{}).(string)
	return owner
}

// CreateOptions are the settings of one new task. The zero value of a field
// is its default.
type CreateOptions struct {
	// TTL is how long the task lives after its creation; see [Options].TTL,
	// which is the default.
	TTL time.Duration

	// PollInterval is how often the client is asked to poll; see
	// [Options].PollInterval, which is the default.
	PollInterval time.Duration

	// StatusMessage is a text for people that describes the task's state;
	// none if empty.
	StatusMessage string

	// Payload is what the host will need to run the task again after a
	// restart, such as the tool's name and arguments. It never leaves the
	// server, and it is dropped when the task ends. Absent by default.
	Payload wire.JSON

	// Tool names the work, usually the tool that was called. It is kept in the
	// record, never leaves the server, and is shown in events and logs.
	Tool string

	// UnsupportedInput is what the client cannot be asked for, as
	// [wire.UnsupportedInput] reads it from the params of the tools/call:
	// [Handle.RequestInput] refuses it with an [*UnsupportedInputError]. By
	// default everything may be asked for.
	UnsupportedInput wire.InputKinds
}

// CreateTask commits a new task in [StatusWorking] and returns what the
// client is told of it: when it returns, tasks/get with the new id works, even
// after a crash (tasks.md, "Task Creation"). Nil opts mean the defaults.
// The task belongs to the owner that ctx carries.
//
// Errors: [ErrInvalid], naming the field; [ErrClosed]; [ErrShutdown]; ctx's;
// the store's own. With any of them no task has been handed out.
func (l *TaskLifecycle) CreateTask(ctx context.Context, opts *CreateOptions) (wire.CreateTaskResult, error) {
	r, err := l.create(ctx, opts, func(*localTask) error { return nil })
	if err != nil {
		return wire.CreateTaskResult{}, err
	}
	task, err := view(&r)
	return wire.CreateTaskResult{Task: task}, err
}

// create commits a new task and returns its record. Before anybody can know of
// it, claim is called with its local half.
func (l *TaskLifecycle) create(ctx context.Context, opts *CreateOptions, claim func(*localTask) error) (Record, error) {
	var o CreateOptions
	if opts != nil {
		o = *opts
	}
	ttl, err := duration("CreateOptions.TTL", o.TTL, l.opts.TTL)
	if err != nil {
		return Record{}, err
	}
	poll, err := duration("CreateOptions.PollInterval", o.PollInterval, l.opts.PollInterval)
	if err != nil {
		return Record{}, err
	}
	if err := checkText("CreateOptions.StatusMessage", o.StatusMessage); err != nil {
		return Record{}, err
	}
	if err := checkText("CreateOptions.Tool", o.Tool); err != nil {
		return Record{}, err
	}
	if err := l.errIfEnding(); err != nil {
		return Record{}, err
	}
	id, err := l.newID()
	if err != nil {
		return Record{}, err
	}
	now := l.now()
	r := Record{
		ID:               id,
		Status:           StatusWorking,
		StatusMessage:    o.StatusMessage,
		CreatedAt:        now,
		LastUpdatedAt:    now,
		TTL:              ttl,
		PollInterval:     poll,
		Owner:            ownerOf(ctx),
		Payload:          o.Payload,
		Tool:             o.Tool,
		UnsupportedInput: o.UnsupportedInput,
	}
	t := l.local.acquire(id)
	defer t.release()
	if err := t.begin(ctx); err != nil { // for the order of events
		return Record{}, err
	}
	defer t.end()
	err = claim(t)
	if err == nil {
		err = l.store.Create(ctx, r)
	}
	if err != nil {
		return Record{}, fmt.Errorf("durabletasks: create task: %w", err)
	}
	l.report(EventCreated, id, &r)
	return r, nil
}

// newID returns an id for a new task. It survives a NewID that panics.
func (l *TaskLifecycle) newID() (id string, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = errors.New("durabletasks: Options.NewID panicked")
		}
	}()
	id = l.opts.NewID()
	ok := len(id) >= 1 && len(id) <= 256
	for i := 0; ok && i < len(id); i++ {
		ok = id[i] > ' ' && id[i] < 0x7F
	}
	if !ok {
		return "", fmt.Errorf("%w: Options.NewID returned an id that is not 1 to 256 printable ASCII bytes", ErrInvalid)
	}
	return id, nil
}

// GetTask returns what the caller may see of a task: its state and the
// payload that the state has (tasks.md, "Task Polling"). It changes nothing,
// and a large result is shared, not copied.
//
// Errors: [ErrNotFound], which includes a task of another owner; [ErrClosed];
// [ErrInconsistent]; ctx's; the store's own.
func (l *TaskLifecycle) GetTask(ctx context.Context, id string) (wire.Task, error) {
	r, err := l.read(ctx, id)
	if err != nil {
		return wire.Task{}, err
	}
	return view(&r)
}

// get returns the record of a task of any owner. A store may outlive its
// engine; nothing is read through a closed engine.
func (l *TaskLifecycle) get(ctx context.Context, id string) (Record, error) {
	if err := l.errIfClosed(); err != nil {
		return Record{}, err
	}
	return l.store.Get(ctx, id)
}

// read returns the record of a task that belongs to the caller.
func (l *TaskLifecycle) read(ctx context.Context, id string) (Record, error) {
	r, err := l.get(ctx, id)
	if err == nil && r.Owner != ownerOf(ctx) {
		err = ErrNotFound
	}
	if err != nil {
		return Record{}, err
	}
	return r, nil
}

// UpdateTask delivers answers to the requests of a task that waits for input
// (tasks.md, "Task Update Requests"). Answers for keys that are not outstanding
// are ignored unread, and their keys are returned, sorted; the first answer to a
// key stays. A question whose time to answer is over is withdrawn. When no
// question is left, the task works again. The answers are committed when
// UpdateTask returns, and stay with the task until its worker has saved a
// checkpoint after it was given them. A task that has ended ignores everything.
//
// Errors: a [*wire.ShapeError] for an outstanding key whose answer has the
// wrong shape, in which case nothing is applied; [ErrTooLarge], which is also a
// [*wire.Error] for the client; [ErrNotFound]; [ErrClosed]; ctx's; the store's
// own.
func (l *TaskLifecycle) UpdateTask(ctx context.Context, id string, inputResponses map[string]wire.JSON) (ignored []string, err error) {
	owner := ownerOf(ctx)
	err = l.mutate(ctx, id, func(r *Record) (change, error) {
		if r.Owner != owner {
			return nothing, ErrNotFound
		}
		ignored = nil
		overdue, _ := l.overdue(openDeadlines(r))
		applied := 0
		for _, key := range slices.Sorted(maps.Keys(inputResponses)) {
			request, asked := r.InputRequests[key]
			_, answered := r.InputResponses[key]
			if r.Status != StatusInputRequired || !asked || answered || slices.Contains(overdue, key) {
				ignored = append(ignored, key)
				continue
			}
			answer := inputResponses[key]
			if err := wire.CheckInputResponse(request, answer); err != nil {
				return nothing, withKey(err, key)
			}
			if r.InputResponses == nil {
				r.InputResponses = make(map[string]wire.JSON, len(r.InputRequests))
			}
			r.InputResponses[key] = answer.Clone() // not the whole request's text
			applied++
		}
		for _, key := range overdue { // so that clients stop showing them
			withdraw(r, key)
		}
		if applied+len(overdue) == 0 {
			return nothing, nil
		}
		endRound(r)
		return stamped, nil
	})
	if errors.Is(err, ErrTooLarge) { // the answers are the client's
		err = fmt.Errorf("%w: %w", err, &wire.Error{Code: wire.CodeInvalidParams, Message: "Invalid params: the answers are too large to store"})
	}
	if err != nil {
		return nil, err
	}
	return ignored, nil
}

// CancelTask records that a client wants the task to end (tasks.md, "Task
// Cancellation"). The request is committed when CancelTask returns; it does not
// change the task's status. The context of the task's worker ends with
// [ErrCancelled], now or when it is resumed, and the worker decides how to
// respond. A task that has ended does not change.
//
// Errors: [ErrNotFound]; [ErrClosed]; ctx's; the store's own.
func (l *TaskLifecycle) CancelTask(ctx context.Context, id string) error {
	owner := ownerOf(ctx)
	return l.mutate(ctx, id, func(r *Record) (change, error) {
		if r.Owner != owner {
			return nothing, ErrNotFound
		}
		if r.Status.Terminal() || r.CancelRequested {
			return nothing, nil
		}
		r.CancelRequested = true
		return quiet, nil
	})
}

// Sweep removes expired tasks from the store and returns how many. The engine
// calls it every [Options].SweepInterval.
func (l *TaskLifecycle) Sweep(ctx context.Context) (int, error) {
	if err := l.errIfClosed(); err != nil {
		return 0, err
	}
	n, err := l.store.Sweep(ctx, l.steadyNow())
	l.reportSwept(n)
	return n, err
}

func (l *TaskLifecycle) sweepEvery(interval time.Duration) {
	defer l.background.Done()
	if l.sleep(l.life, clockPatience) != nil {
		return
	}
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-l.life.Done():
			return
		case <-tick.C:
			l.guard("sweep", func() {
				if _, err := l.Sweep(l.life); err != nil && l.life.Err() == nil {
					l.logFailure("sweep failed", slog.Any("error", err))
				}
			})
		}
	}
}

// Close ends the engine and closes the store. Calls that wait for input
// return [ErrClosed], the contexts of workers end with it, and no status
// changes: unfinished tasks can be resumed by the next process. Close does
// not wait for workers; [TaskLifecycle.Shutdown] does. It is idempotent.
func (l *TaskLifecycle) Close() error {
	l.closing.Do(func() {
		l.endLife(ErrClosed)
		l.local.each(func(t *localTask) { t.endContexts(ErrClosed) })
		l.background.Wait()
		l.closeErr = l.store.Close()
	})
	return l.closeErr
}

// errIfClosed reports that the engine has been closed.
func (l *TaskLifecycle) errIfClosed() error {
	if l.life.Err() != nil {
		return ErrClosed
	}
	return nil
}

// errIfEnding reports why no new work can begin.
func (l *TaskLifecycle) errIfEnding() error {
	if err := l.errIfClosed(); err != nil {
		return err
	}
	return l.workers.errIfDraining()
}

// change says what a decision did to a record.
type change int

const (
	nothing change = iota // the record stands: nothing to commit
	quiet                 // commit it, but clients see no update
	stamped               // commit it as an update
)

// Conflicts come only from other engines over the same store. A write gives
// up after maxConflicts of them, having waited about a second in all.
const (
	maxConflicts  = 20
	conflictDelay = 100 * time.Millisecond // upper bound of the last waits
)

// mutate is the one way in which a task changes: read, decide, commit; again
// from the fresh record if another engine was faster. The decision gets a copy
// that it may change; it must not change a terminal record. Commits are applied
// to the local half, and reported, in commit order.
//
//	acquire the turn ─▶ store.Get ─▶ decide ─▶ store.Update ─▶ commit: report the event,
//	                      ▲                         │           end contexts, notify, arm the expiry
//	                      └──── *ConflictError ─────┘
func (l *TaskLifecycle) mutate(ctx context.Context, id string, decide func(*Record) (change, error)) error {
	t := l.local.acquire(id)
	defer t.release()
	if err := t.begin(ctx); err != nil {
		return err
	}
	defer t.end()
	for conflicts := 0; ; conflicts++ {
		old, err := l.get(ctx, id)
		if err != nil {
			l.expire(t, err)
			return err
		}
		before, next := markOf(&old), old // the containers are ours to change
		switch what, err := decide(&next); {
		case err != nil || what == nothing:
			// Another process may have ended, cancelled or answered it, or an
			// earlier write that the store reported as failed.
			switch {
			case errors.Is(err, ErrNotFound):
			case old.Status.Terminal(), old.CancelRequested:
				l.apply(t, &old, 0)
			default:
				t.notify()
			}
			return err
		case what == stamped:
			if now := l.now(); now.After(next.LastUpdatedAt) {
				next.LastUpdatedAt = now
			}
		}
		err = l.store.Update(ctx, next)
		switch {
		case err == nil:
			next.Version++
			l.committed(t, before, &next)
			return nil
		case !errors.Is(err, ErrConflict):
			l.expire(t, err)
			t.notify() // it may have been committed all the same
			return fmt.Errorf("durabletasks: update task: %w", err)
		case conflicts == maxConflicts:
			return err
		}
		bound := min(time.Millisecond<<conflicts, conflictDelay)
		if err := l.sleep(ctx, rand.N(bound)); err != nil {
			return err
		}
	}
}

func (l *TaskLifecycle) sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.life.Done():
		return ErrClosed
	}
}

// mark holds what events compare a committed record with.
type mark struct {
	cancelRequested               bool
	questions, answers, withdrawn int
}

func markOf(r *Record) mark {
	m := mark{cancelRequested: r.CancelRequested, questions: len(r.Questions)}
	for _, answer := range r.InputResponses {
		if answer == noAnswer {
			m.withdrawn++
		} else {
			m.answers++
		}
	}
	return m
}

// committed reports a commit and applies it. Its caller has the task's turn.
func (l *TaskLifecycle) committed(t *localTask, before mark, r *Record) {
	switch now := markOf(r); {
	case r.Status.Terminal():
		l.report(EventEnded, t.id, r)
	case now.cancelRequested != before.cancelRequested:
		l.report(EventCancelRequested, t.id, r)
	case now.questions > before.questions:
		l.report(EventInputRequired, t.id, r)
	case now.answers > before.answers:
		l.report(EventInputReceived, t.id, r)
	case now.withdrawn > before.withdrawn:
		l.report(EventInputWithdrawn, t.id, r)
	}
	l.apply(t, r, 0)
}

// apply makes everything in this process that holds on to a task follow its
// committed record; see armExpiry for atLeast.
func (l *TaskLifecycle) apply(t *localTask, r *Record, atLeast time.Duration) {
	switch {
	case r.Status.Terminal():
		t.endContexts(errIfEnded(r))
	case r.CancelRequested:
		t.interrupt(ErrCancelled)
	}
	t.notify()
	l.armExpiry(t, r, atLeast)
}

// view projects a record on what a client may see: an allow-list. A record
// whose payload does not fit its status is an error, not repaired.
func view(r *Record) (wire.Task, error) {
	t := wire.Task{
		TaskID:        r.ID,
		Status:        r.Status,
		StatusMessage: r.StatusMessage,
		CreatedAt:     r.CreatedAt,
		LastUpdatedAt: r.LastUpdatedAt,
		TTL:           r.TTL,
		PollInterval:  r.PollInterval,
	}
	ok := r.Status.Valid() &&
		(r.Status == StatusCompleted) == (r.Result.Kind() == wire.Object) &&
		(r.Status == StatusFailed) == (r.Error.Kind() == wire.Object) &&
		(r.Status == StatusInputRequired) == (len(r.InputRequests) > 0)
	switch r.Status {
	case StatusCompleted:
		t.Result = r.Result
	case StatusFailed:
		t.Error = r.Error
	case StatusInputRequired:
		t.InputRequests = unanswered(r)
		ok = ok && len(t.InputRequests) > 0
	}
	if !ok {
		return wire.Task{}, fmt.Errorf("%w: status %.20q", ErrInconsistent, string(r.Status))
	}
	return t, nil
}
