package durabletasks_test

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// The model: a second, plain account of what the engine must do, run beside
// it with random operations. After every step the whole stored record, what
// a client sees of it, the cause of every worker's context and what every
// waiting call came back with are compared.

// modelTask is the model's account of one task.
type modelTask struct {
	id, owner, status, message string
	created, updated           time.Time
	ttl, poll                  time.Duration     // -1: none
	requests, responses        map[string]string // "null" is the response to a question that was withdrawn
	questions                  []modelQuestion   // all that were ever asked
	result, failure            string
	cancel                     bool
	payload, checkpoint, tool  string
	unsupported                wire.InputKinds
	version                    int64
	removed                    bool // for good
	// What the present engine knows of it.
	handles []*modelHandle
	worker  *modelWorker
	waiter  *modelWaiter
	exact   bool // no clock step since the engine last looked at its expiry and the questions' deadlines

	overtaken bool // the last write met another engine's cancel, which may have been told of before its own end
}

// modelQuestion is a question that a task has asked.
type modelQuestion struct {
	key, text string
	deadline  time.Time // zero: none
}

// modelHandle is one handle of the present engine, which is one run of the
// task's worker, with a context.
type modelHandle struct {
	h     *durabletasks.Handle
	ctx   context.Context
	cause string   // of its context; "" while it lives
	asked []string // the keys that this run has asked
	taken []string // the keys whose answers it was given
}

type modelWorker struct {
	*modelHandle
	leave chan leaving
}

type leaving struct {
	result wire.JSON
	err    error
}

type modelWaiter struct {
	back  <-chan answer
	by    *modelHandle
	keys  []string
	until time.Time // by the real clock: when its own context ends; zero: never
	stop  context.CancelCauseFunc
}

const withdrawn = "null"

// question returns what was asked under a key.
func (k *modelTask) question(key string) (modelQuestion, bool) {
	for _, q := range k.questions {
		if q.key == key {
			return q, true
		}
	}
	return modelQuestion{}, false
}

// open returns those of the keys whose question waits for an answer, sorted.
func (k *modelTask) open(keys []string) []string {
	var open []string
	for _, key := range keys {
		_, asked := k.requests[key]
		_, answered := k.responses[key]
		if asked && !answered {
			open = append(open, key)
		}
	}
	slices.Sort(open)
	return open
}

// overdue returns those of the keys whose open question is no longer to be
// answered at now.
func (k *modelTask) overdue(keys []string, now time.Time) []string {
	return slices.DeleteFunc(k.open(keys), func(key string) bool {
		q, _ := k.question(key)
		return q.deadline.IsZero() || now.Before(q.deadline)
	})
}

// alive reports whether a key was asked and no checkpoint has dropped it.
func (k *modelTask) alive(key string) bool {
	_, asked := k.requests[key]
	_, answered := k.responses[key]
	return asked || answered
}

// withdraw leaves questions without an answer.
func (k *modelTask) withdraw(keys []string) {
	if len(keys) > 0 && k.responses == nil {
		k.responses = make(map[string]string)
	}
	for _, key := range keys {
		k.responses[key] = withdrawn
	}
	k.endRound()
}

// endRound makes the task work again if nothing is open.
func (k *modelTask) endRound() {
	if k.status == "input_required" && len(k.open(slices.Collect(maps.Keys(k.requests)))) == 0 {
		k.status, k.requests = "working", nil
	}
}

// GoString keeps the tool's reports short.
func (k *modelTask) GoString() string { return k.id }

func (h *modelHandle) GoString() string { return "a handle" }

func (k *modelTask) terminal() bool {
	return k.status == "completed" || k.status == "failed" || k.status == "cancelled"
}

func (k *modelTask) clone() *modelTask {
	c := *k
	c.requests, c.responses = maps.Clone(k.requests), maps.Clone(k.responses)
	c.questions = slices.Clone(k.questions)
	return &c
}

// faultyStore is the store of the model: it ends with its engine, though what
// is stored goes on, and the next update can be made to fail.
type faultyStore struct {
	durabletasks.TaskStore
	mu      sync.Mutex
	dead    bool
	fault   string // of the next update: "", "broken", "conflict", "foreign progress", "foreign cancel"
	left    int    // conflicts
	foreign func(id, kind string)
	struck  bool // the fault has struck
}

func (s *faultyStore) alive() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return durabletasks.ErrClosed
	}
	return nil
}

func (s *faultyStore) hasStruck() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.struck
}

func (s *faultyStore) Create(ctx context.Context, r durabletasks.Record) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.TaskStore.Create(ctx, r)
}

func (s *faultyStore) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	if err := s.alive(); err != nil {
		return durabletasks.Record{}, err
	}
	return s.TaskStore.Get(ctx, id)
}

func (s *faultyStore) Update(ctx context.Context, next durabletasks.Record) error {
	if err := s.alive(); err != nil {
		return err
	}
	s.mu.Lock()
	fault := s.fault
	if fault == "conflict" && s.left > 1 {
		s.left--
	} else {
		s.fault = ""
	}
	s.struck = s.struck || fault != ""
	s.mu.Unlock()
	switch fault {
	case "broken":
		return errBroken
	case "conflict":
		return &durabletasks.ConflictError{Expected: next.Version, Actual: next.Version + 1}
	case "foreign progress", "foreign cancel":
		s.foreign(next.ID, fault)
	}
	return s.TaskStore.Update(ctx, next)
}

func (s *faultyStore) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	if err := s.alive(); err != nil {
		return err
	}
	return s.TaskStore.(durabletasks.Scanner).Scan(ctx, visit)
}

func (s *faultyStore) Close() error { return nil }

// sim runs the engine beside the model.
type sim struct {
	t         *rapid.T
	reopen    func() durabletasks.TaskStore // closes the store, if one is open, and opens it again
	disk      durabletasks.TaskStore
	store     *faultyStore
	l         *durabletasks.TaskLifecycle
	offset    time.Duration // of the clock of engine and store
	ids       int
	tasks     []*modelTask
	armed     string    // the fault of the next update
	foreignAt time.Time // when another engine last committed
}

func (s *sim) now() time.Time { return time.Now().Add(s.offset) }

func (s *sim) visible(k *modelTask) bool {
	return !k.removed && (k.ttl == -1 || s.now().Before(k.created.Add(k.ttl)))
}

func (s *sim) start() {
	s.disk = s.reopen()
	s.store = &faultyStore{TaskStore: s.disk}
	s.store.foreign = func(id, kind string) {
		other, err := durabletasks.New(noClose{s.disk}, &durabletasks.Options{Now: s.now, SweepInterval: durabletasks.NoLimit})
		if err != nil {
			panic(err)
		}
		defer other.Close()
		s.foreignAt = s.now().UTC().Truncate(time.Millisecond)
		if kind == "foreign cancel" {
			i := slices.IndexFunc(s.tasks, func(k *modelTask) bool { return k.id == id })
			err = other.CancelTask(durabletasks.WithOwner(ctx, s.tasks[i].owner), id)
		} else {
			var h *durabletasks.Handle
			if h, err = other.Handle(ctx, id); err == nil {
				err = h.Progress(ctx, "foreign", nil)
			}
		}
		if err != nil && !errors.Is(err, durabletasks.ErrNotFound) {
			panic(err)
		}
	}
	l, err := durabletasks.New(s.store, &durabletasks.Options{
		Now: s.now, ExpireRunning: true, SweepInterval: durabletasks.NoLimit, Logger: slog.New(slog.DiscardHandler),
		NewID: func() string { s.ids++; return fmt.Sprint("task-", s.ids) },
	})
	if err != nil {
		s.t.Fatal(err)
	}
	s.l = l
}

type noClose struct{ durabletasks.TaskStore }

func (noClose) Close() error { return nil }

// crash ends the engine without another word to the store.
func (s *sim) crash() {
	s.store.mu.Lock()
	s.store.dead = true
	s.store.mu.Unlock()
	s.l.Close()
	for _, k := range s.tasks {
		for _, h := range k.handles {
			s.ended(k, h, "Closed")
			if got := errorName(context.Cause(h.ctx)); got != h.cause {
				s.t.Fatalf("context after the end of the engine: %s, want %s", got, h.cause)
			}
		}
		if k.waiter != nil {
			synctest.Wait()
			s.waiterEnds(k, "Closed")
		}
		if k.worker != nil {
			k.worker.leave <- leaving{result: done}
			k.worker = nil
		}
		k.handles = nil
	}
	synctest.Wait()
}

// ended notes that a context ends; the first cause stays.
func (s *sim) ended(k *modelTask, h *modelHandle, cause string) {
	if h.cause == "" {
		h.cause = cause
	}
}

// allEnded notes that all contexts of a task end.
func (s *sim) allEnded(k *modelTask, cause string) {
	for _, h := range k.handles {
		s.ended(k, h, cause)
	}
}

// waiterEnds checks that the waiter has come back with this error.
func (s *sim) waiterEnds(k *modelTask, want string) {
	s.t.Helper()
	select {
	case a := <-k.waiter.back:
		if got := errorName(a.err); got != want && !(k.overtaken && want == "Terminal" && got == "Cancelled") {
			s.t.Fatalf("waiter of %s: %s, want %s", k.id, got, want)
		}
	default:
		s.t.Fatalf("waiter of %s still waits, want %s", k.id, want)
	}
	k.waiter.stop(nil)
	k.waiter = nil
}

// settleWaiter compares the waiter with what the record says.
func (s *sim) settleWaiter(k *modelTask) {
	s.t.Helper()
	if k.waiter != nil && s.visible(k) && !k.terminal() && !k.cancel {
		s.overdue(k)
	}
	w := k.waiter
	switch {
	case w == nil:
	case !s.visible(k): // see look
	case k.terminal():
		s.waiterEnds(k, "Terminal")
	case k.cancel:
		s.waiterEnds(k, "Cancelled")
	case slices.ContainsFunc(w.keys, func(key string) bool { return !k.alive(key) }):
		s.waiterEnds(k, "Lost")
	case len(k.open(w.keys)) > 0:
		select {
		case a := <-w.back:
			s.t.Fatalf("waiter of %s: %v, though %q are open", k.id, a, k.open(w.keys))
		default:
		}
	default:
		s.handed(k, nil)
	}
}

// overdue withdraws what the waiter no longer waits for. The waiter must have
// noticed only if its timer was set by the present clock.
func (s *sim) overdue(k *modelTask) {
	s.t.Helper()
	keys := k.overdue(k.waiter.keys, s.now())
	if len(keys) == 0 {
		return
	}
	commits := int64(1)
	if !k.exact {
		r, err := s.disk.Get(ctx, k.id)
		if err != nil {
			s.t.Fatal(err)
		}
		keys = slices.DeleteFunc(keys, func(key string) bool { return r.InputResponses[key].String() != withdrawn })
		deadlines := make(map[time.Time]bool)
		for _, key := range keys {
			q, _ := k.question(key)
			deadlines[q.deadline] = true
		}
		if len(keys) == 0 {
			return
		}
		commits = min(max(r.Version-k.version, 1), int64(len(deadlines)))
	}
	since := s.now()
	for _, key := range keys {
		if q, _ := k.question(key); q.deadline.Before(since) {
			since = q.deadline
		}
	}
	k.withdraw(keys)
	k.version += commits
	s.stamp(k, since)
	k.exact = true // it has looked at the others, too
}

// handed compares the answers that the waiter was handed, and its error: what
// the withdrawn questions say, and cause.
func (s *sim) handed(k *modelTask, cause error) {
	s.t.Helper()
	w := k.waiter
	var a answer
	select {
	case a = <-w.back:
	default:
		s.t.Fatalf("waiter of %s still waits, answers are %v", k.id, k.responses)
	}
	answers, got := make(map[string]string), make(map[string]string)
	var nobody []string
	for _, key := range w.keys {
		if text := k.responses[key]; text == withdrawn {
			nobody = append(nobody, key)
		} else {
			answers[key] = text
		}
	}
	for key, v := range a.values {
		got[key] = v.String()
	}
	if !maps.Equal(got, answers) {
		s.t.Fatalf("waiter of %s: answers %v, want %v", k.id, got, answers)
	}
	slices.Sort(nobody)
	var unanswered *durabletasks.UnansweredError
	switch {
	case len(nobody) == 0 && a.err == nil:
	case len(nobody) > 0 && errors.As(a.err, &unanswered) && slices.Equal(unanswered.Keys, nobody) && errors.Is(a.err, cause) == (cause != nil):
	default:
		s.t.Fatalf("waiter of %s: %v, want %q unanswered, %v", k.id, a.err, nobody, cause)
	}
	w.by.taken = append(w.by.taken, w.keys...)
	w.stop(nil)
	k.waiter = nil
}

// told is what a commit of this engine, or a look at a record that says so,
// does to the contexts.
func (s *sim) told(k *modelTask) {
	switch {
	case k.terminal():
		s.allEnded(k, "Terminal")
	case k.cancel:
		s.allEnded(k, "Cancelled")
	}
}

const unknown = "unknown" // what an operation reported

// write compares what a mutating operation reported with what the model
// decides. decide works on a copy and returns an error's name, whether it
// commits, and whether that is an update for clients.
func (s *sim) write(k *modelTask, got string, begun time.Time, decide func(k *modelTask) (name string, commits, stamps bool)) (want string) {
	s.t.Helper()
	fault, struck := s.armed, s.store.hasStruck()
	if struck {
		s.arming("", 0)
	}
	if !s.visible(k) {
		if struck && strings.HasPrefix(fault, "foreign") {
			s.foreignCommit(k, fault)
		}
		if got != "NotFound" && got != unknown {
			s.t.Fatalf("%s: got %s, want NotFound", k.id, got)
		}
		s.allEnded(k, "Expired")
		synctest.Wait()
		if k.waiter != nil {
			s.waiterEnds(k, "Expired")
		}
		return "NotFound"
	}
	next := k.clone()
	want, commits, stamps := decide(next)
	if commits && fault != "" {
		if !struck {
			s.t.Fatalf("%s: no update, though the model commits", k.id)
		}
		switch fault {
		case "broken":
			want, commits = "Broken", false
		case "foreign progress", "foreign cancel":
			s.foreignCommit(k, fault)
			next = k.clone()
			want, commits, stamps = decide(next)
		}
	} else if struck {
		s.t.Fatalf("%s: an update, though the model does not commit", k.id)
	}
	if got != want && got != unknown {
		s.t.Fatalf("%s: got %s, want %s", k.id, got, want)
	}
	if commits {
		next.version++
		if stamps {
			s.stamp(next, begun)
		}
		// The local half is not copied back.
		next.handles, next.worker, next.waiter = k.handles, k.worker, k.waiter
		*k = *next
		k.exact = true
	}
	// While the write made its second attempt, a look at the task's expiry may
	// have told of the other engine's cancel before the write's own end.
	k.overtaken = struck && fault == "foreign cancel"
	for _, h := range k.handles {
		if k.overtaken && h.cause == "" && errors.Is(context.Cause(h.ctx), durabletasks.ErrCancelled) {
			h.cause = "Cancelled"
		}
	}
	if want != "Broken" {
		s.told(k)
	}
	return want
}

// foreignCommit does what another engine does in the middle of an update.
func (s *sim) foreignCommit(k *modelTask, fault string) {
	if fault == "foreign cancel" {
		if !k.cancel {
			k.cancel = true
			k.version++
		}
		return
	}
	k.message = "foreign"
	k.version++
	if s.foreignAt.After(k.updated) {
		k.updated = s.foreignAt
	}
}

// stamp notes an update between begun and now; which moment exactly is taken
// from the store, within these bounds.
func (s *sim) stamp(k *modelTask, begun time.Time) {
	lo, hi := begun.UTC().Truncate(time.Millisecond), s.now().UTC().Truncate(time.Millisecond)
	if lo.Before(k.updated) {
		lo = k.updated
	}
	if hi.Before(lo) {
		hi = lo
	}
	k.updated = hi
	if !lo.Equal(hi) {
		if r, err := s.disk.Get(ctx, k.id); err == nil && !r.LastUpdatedAt.Before(lo) && !r.LastUpdatedAt.After(hi) {
			k.updated = r.LastUpdatedAt
		}
	}
}

// look compares everything.
func (s *sim) look() {
	synctest.Wait()
	for _, k := range s.tasks {
		s.settleWaiter(k)
		r, err := s.disk.Get(ctx, k.id)
		_, viewErr := s.l.GetTask(durabletasks.WithOwner(ctx, k.owner), k.id)
		if !s.visible(k) {
			if !errors.Is(err, durabletasks.ErrNotFound) || !errors.Is(viewErr, durabletasks.ErrNotFound) {
				s.t.Fatalf("%s is gone, store: %v, engine: %v", k.id, err, viewErr)
			}
			s.lookExpired(k)
			s.causes(k)
			continue
		}
		if err != nil || viewErr != nil {
			s.t.Fatalf("%s: store: %v, engine: %v", k.id, err, viewErr)
		}
		if want := k.record(); !reflect.DeepEqual(r, want) {
			s.t.Fatalf("record of %s\ngot  %+v\nwant %+v", k.id, r, want)
		}
		s.view(k)
		s.causes(k)
	}
}

// lookExpired lets the waiter and the contexts of an invisible task end. They
// need to have ended only if the engine's timer was set by the present clock.
func (s *sim) lookExpired(k *modelTask) {
	if k.waiter != nil {
		select {
		case a := <-k.waiter.back:
			if !errors.Is(a.err, durabletasks.ErrExpired) {
				s.t.Fatalf("waiter of %s, which is gone: %v", k.id, a)
			}
			k.waiter.stop(nil)
			k.waiter = nil
			s.allEnded(k, "Expired")
		default:
			if k.exact && !k.removed {
				s.t.Fatalf("waiter of %s, which is gone, still waits", k.id)
			}
		}
	}
	for _, h := range k.handles {
		if h.cause == "" && (h.ctx.Err() != nil || k.exact && !k.removed) {
			h.cause = "Expired"
		}
	}
}

func (s *sim) causes(k *modelTask) {
	for _, h := range k.handles {
		want := h.cause
		if want == "" {
			want = "ok"
		}
		if got := errorName(context.Cause(h.ctx)); got != want {
			s.t.Fatalf("context of %s: %s, want %s", k.id, got, want)
		}
	}
}

func (k *modelTask) record() durabletasks.Record {
	j := func(text string) wire.JSON {
		if text == "" {
			return wire.JSON{}
		}
		return wire.MustParse(text)
	}
	m := func(texts map[string]string) map[string]wire.JSON {
		if len(texts) == 0 {
			return nil
		}
		values := make(map[string]wire.JSON)
		for key, text := range texts {
			values[key] = j(text)
		}
		return values
	}
	var questions []durabletasks.Question
	for _, q := range k.questions {
		sum := sha256.Sum256([]byte(q.text))
		questions = append(questions, durabletasks.Question{Key: q.key, Digest: [16]byte(sum[:16]), Deadline: q.deadline})
	}
	return durabletasks.Record{
		ID: k.id, Status: wire.Status(k.status), StatusMessage: k.message, CreatedAt: k.created, LastUpdatedAt: k.updated,
		TTL: k.ttl, PollInterval: k.poll, InputRequests: m(k.requests), InputResponses: m(k.responses), Questions: questions,
		Result: j(k.result), Error: j(k.failure), Owner: k.owner, CancelRequested: k.cancel,
		UnsupportedInput: k.unsupported, Tool: k.tool, Payload: j(k.payload), Checkpoint: j(k.checkpoint), Version: k.version,
	}
}

// view compares what a client is told.
func (s *sim) view(k *modelTask) {
	params, _ := json.Marshal(map[string]any{"taskId": k.id, "_meta": map[string]any{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientCapabilities": map[string]any{"extensions": map[string]any{"io.modelcontextprotocol/tasks": map[string]any{}}},
	}})
	result, err := wire.Dispatch(durabletasks.WithOwner(ctx, k.owner), s.l, wire.MethodGet, params)
	if err != nil {
		s.t.Fatalf("tasks/get: %v", err)
	}
	var got any
	if err := json.Unmarshal(result.AppendJSON(nil), &got); err != nil {
		s.t.Fatal(err)
	}
	const layout = "2006-01-02T15:04:05.000Z"
	want := map[string]any{"resultType": "complete", "taskId": k.id, "status": k.status,
		"createdAt": k.created.Format(layout), "lastUpdatedAt": k.updated.Format(layout), "ttlMs": nil}
	value := func(text string) (v any) {
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			panic(err)
		}
		return v
	}
	if k.ttl != -1 {
		want["ttlMs"] = float64(k.ttl / time.Millisecond)
	}
	if k.poll != -1 {
		want["pollIntervalMs"] = float64(k.poll / time.Millisecond)
	}
	if k.message != "" {
		want["statusMessage"] = k.message
	}
	switch k.status {
	case "completed":
		want["result"] = value(k.result)
	case "failed":
		want["error"] = value(k.failure)
	case "input_required":
		open := make(map[string]any)
		for key, text := range k.requests {
			if _, answered := k.responses[key]; !answered {
				open[key] = value(text)
			}
		}
		want["inputRequests"] = open
	}
	if !reflect.DeepEqual(got, want) {
		s.t.Fatalf("view of %s\ngot  %v\nwant %v", k.id, got, want)
	}
}

// The operations.

func (s *sim) task() *modelTask {
	if len(s.tasks) == 0 {
		s.t.Skip("no task yet")
	}
	// Mostly one of which most can be asked.
	lively := slices.DeleteFunc(slices.Clone(s.tasks), func(k *modelTask) bool { return s.begin(k) != "ok" || k.cancel })
	if len(lively) > 0 && rapid.IntRange(0, 9).Draw(s.t, "any") > 0 {
		return rapid.SampledFrom(lively).Draw(s.t, "task")
	}
	return rapid.SampledFrom(s.tasks).Draw(s.t, "task")
}

// seldom skips an action most of the time.
func (s *sim) seldom() {
	if rapid.IntRange(0, 3).Draw(s.t, "seldom") > 0 {
		s.t.Skip("not now")
	}
}

func (s *sim) handle(k *modelTask) *modelHandle {
	if len(k.handles) == 0 {
		if s.begin(k) != "ok" {
			s.t.Skip("no handle left")
		}
		h, err := s.l.Handle(ctx, k.id)
		if err != nil {
			s.t.Fatal(err)
		}
		s.attached(k, &modelHandle{h: h, ctx: h.Context()})
	}
	return rapid.SampledFrom(k.handles).Draw(s.t, "handle")
}

// with is the context of a worker's call: whatever became of the worker's own,
// it makes no difference.
func (s *sim) with(h *modelHandle) context.Context {
	if rapid.Bool().Draw(s.t, "worker's context") {
		return h.ctx
	}
	return ctx
}

// steadyFault drops a fault, which may cost time, if meanwhile the task may
// expire, or somebody may stop waiting.
func (s *sim) steadyFault(k *modelTask) {
	soon := s.now().Add(time.Second)
	expires := k.ttl != -1 && s.visible(k) && k.created.Add(k.ttl).Before(soon)
	next := s.moments()
	if expires || len(next) > 0 && time.Until(next[0].at) < time.Second || len(k.overdue(slices.Collect(maps.Keys(k.requests)), soon)) > 0 {
		s.arming("", 0)
	}
}

// settled lets goroutines go on until nothing happens any more.
func (s *sim) settled() {
	synctest.Wait()
	if s.store.hasStruck() {
		time.Sleep(50 * time.Millisecond) // longer than three conflicts cost, and until an outcome is tried again
		synctest.Wait()
	}
}

func ceil(d time.Duration) time.Duration {
	if d == -1 {
		return -1
	}
	return time.Duration(math.Ceil(float64(d)/1e6)) * time.Millisecond
}

var (
	genDuration = rapid.OneOf(rapid.Just(durabletasks.NoLimit), rapid.Map(rapid.IntRange(1, 100_000_000), func(us int) time.Duration {
		return time.Duration(us) * time.Microsecond
	}))
	genText = rapid.Map(rapid.StringN(0, 8, -1), func(s string) string { return strings.ToValidUTF8(s, "?") })
	genKeys = rapid.SliceOfNDistinct(rapid.OneOf(rapid.SampledFrom([]string{"toString", "constructor", "__proto__", "", "a", "b", "c", "d"}), genText), 1, 4, rapid.ID[string])
	genGood = rapid.SampledFrom([]wire.JSON{accept, decline, wire.MustParse(`{"action":"cancel"}`)})
	genBad  = rapid.SampledFrom([]wire.JSON{aText, {}, wire.MustParse(`{"action":"no"}`), wire.MustParse(`[]`), wire.MustParse(`null`)})
	roots   = wire.MustParse(`{"method":"roots/list"}`)
	noRoots = wire.MustParse(`{"roots":[]}`)

	reordered = wire.MustParse(`{"params":` + form.Get("params").String() + `,"method":"elicitation/create"}`)

	// What is asked under one key. The second one means the same as the first,
	// but it is not the same text.
	genQuestion = rapid.SampledFrom([]wire.JSON{form, reordered, wire.MustParse(strings.Replace(form.String(), "Name?", "Who?", 1)), roots})

	genMilliseconds = rapid.OneOf(rapid.IntRange(0, 2000), rapid.IntRange(0, 60_000))

	genCheckpoint = rapid.SampledFrom([]any{aText, done, 7, map[string]any{"page": 3, "seen": []string{"a"}}})
)

// genAnswer makes an answer to a question, of the right shape or not.
func genAnswer(t *rapid.T, request string, good bool) wire.JSON {
	switch {
	case !good:
		return genBad.Draw(t, "bad")
	case request == roots.String():
		return noRoots
	}
	return genGood.Draw(t, "good")
}

func (s *sim) create(t *rapid.T) {
	lively := 0
	for _, k := range s.tasks {
		if s.begin(k) == "ok" && !k.cancel {
			lively++
		}
	}
	if lively >= 3 || len(s.tasks) == 8 {
		t.Skip("enough tasks")
	}
	o := durabletasks.CreateOptions{
		TTL: genDuration.Draw(t, "ttl"), PollInterval: genDuration.Draw(t, "poll"), StatusMessage: genText.Draw(t, "message"),
		Payload:          rapid.SampledFrom([]wire.JSON{{}, aText, done}).Draw(t, "payload"),
		UnsupportedInput: rapid.SampledFrom([]wire.InputKinds{0, 0, 0, wire.InputURL | wire.InputRoots, wire.InputForm}).Draw(t, "unsupported"),
		Tool:             rapid.SampledFrom([]string{"", "index"}).Draw(t, "tool"),
	}
	k := &modelTask{
		owner: rapid.SampledFrom([]string{"", "alice"}).Draw(t, "owner"), status: "working", message: o.StatusMessage,
		created: s.now().UTC().Truncate(time.Millisecond), ttl: ceil(o.TTL), poll: ceil(o.PollInterval), payload: o.Payload.String(),
		unsupported: o.UnsupportedInput, tool: o.Tool,
	}
	k.updated = k.created
	c, err := s.l.CreateTask(durabletasks.WithOwner(ctx, k.owner), &o)
	if err != nil {
		t.Fatal(err)
	}
	k.id = c.TaskID
	if want := fmt.Sprint("task-", s.ids); k.id != want {
		t.Fatalf("id %s, want %s", k.id, want)
	}
	s.tasks = append(s.tasks, k)
}

// begin says how getting a handle or a worker must go.
func (s *sim) begin(k *modelTask) string {
	switch {
	case !s.visible(k):
		return "NotFound"
	case k.terminal():
		return "Terminal"
	}
	return "ok"
}

func (s *sim) attached(k *modelTask, h *modelHandle) {
	if k.cancel {
		h.cause = "Cancelled"
	}
	k.handles = append(k.handles, h)
	k.exact = true
}

func (s *sim) newHandle(t *rapid.T) {
	k := s.task()
	h, err := s.l.Handle(ctx, k.id)
	if got, want := errorName(err), s.begin(k); got != want {
		t.Fatalf("Handle: %s, want %s", got, want)
	}
	if err == nil && len(k.handles) < 6 {
		s.attached(k, &modelHandle{h: h, ctx: h.Context()})
	}
}

// work is a worker that leaves when it is told to.
func (s *sim) work(begun chan<- *modelWorker) durabletasks.Worker {
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		w := &modelWorker{&modelHandle{h: h, ctx: ctx}, make(chan leaving)}
		begun <- w
		l := <-w.leave
		return l.result, l.err
	}
}

func (s *sim) startWorker(t *rapid.T) {
	k := s.task()
	begun := make(chan *modelWorker, 1)
	got, want := errorName(s.l.Go(ctx, k.id, s.work(begun))), s.begin(k)
	if want == "ok" && k.worker != nil {
		want = "Running"
	}
	if got != want {
		t.Fatalf("Go: %s, want %s", got, want)
	}
	if got == "ok" {
		k.worker = <-begun
		s.attached(k, k.worker.modelHandle)
	}
}

func finished(status, message string) func(k *modelTask) (string, bool, bool) {
	return func(k *modelTask) (string, bool, bool) {
		if k.terminal() {
			return "Terminal", false, false
		}
		k.status = status
		if message != "" {
			k.message = message
		}
		k.requests, k.responses, k.payload, k.checkpoint = nil, nil, "", ""
		return "ok", true, true
	}
}

func completed(result string) func(k *modelTask) (string, bool, bool) {
	return func(k *modelTask) (string, bool, bool) {
		name, commits, stamps := finished("completed", "")(k)
		if commits {
			k.result = result
		}
		return name, commits, stamps
	}
}

func failed(code int, message string) func(k *modelTask) (string, bool, bool) {
	return func(k *modelTask) (string, bool, bool) {
		name, commits, stamps := finished("failed", message)(k)
		if commits {
			k.failure = fmt.Sprintf(`{"code":%d,"message":%q}`, code, message)
		}
		return name, commits, stamps
	}
}

var internalFailure = failed(-32603, "Internal error")

func saying(text string) func(k *modelTask) (string, bool, bool) {
	return completed(fmt.Sprintf(`{"resultType":"complete","content":[{"text":%q,"type":"text"}],"isError":true}`, text))
}

func (s *sim) leaveWorker(t *rapid.T) {
	k := s.task()
	s.seldom()
	w := k.worker
	if w == nil {
		t.Skip("no worker")
	}
	s.steadyFault(k)
	how := rapid.SampledFrom([]string{"result", "text", "nothing", "error", "rpc"}).Draw(t, "how")
	cause := w.cause
	began := s.now()
	visible := s.visible(k)
	var l leaving
	switch how {
	case "result":
		l.result = wire.MustParse(`{"n":1}`)
	case "text":
		l.result = aText
	case "error":
		l.err = errors.New("tool broke")
	case "rpc":
		l.err = fmt.Errorf("wrapped: %w", &wire.Error{Code: 5, Message: "five"})
	}
	w.leave <- l
	s.settled()
	decide := internalFailure
	switch {
	case how == "result":
		decide = completed(`{"resultType":"complete","n":1}`)
	case how == "rpc":
		decide = failed(5, "five")
	case how == "text":
	case how == "nothing" && cause == "" && visible:
		decide = failed(-32603, "The tool returned no result")
	case cause == "Cancelled":
		decide = finished("cancelled", "")
	case cause == "Expired":
		decide = nil
	case how == "error":
		decide = saying("tool broke")
	case cause == "Terminal":
		decide = func(*modelTask) (string, bool, bool) { return "Terminal", false, false }
	case !visible:
		decide = nil
	}
	if decide != nil && s.write(k, unknown, began, decide) == "Broken" {
		s.write(k, unknown, began, decide) // it is tried again
	}
	k.worker = nil
	k.handles = slices.DeleteFunc(k.handles, func(h *modelHandle) bool { return h == w.modelHandle })
	if w.ctx.Err() == nil {
		t.Fatal("the context of a worker that has left lives")
	}
}

func (s *sim) progress(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	s.steadyFault(k)
	message := genText.Draw(t, "message")
	o := durabletasks.ProgressOptions{
		PollInterval: rapid.OneOf(rapid.Just(time.Duration(0)), genDuration).Draw(t, "poll"),
		Checkpoint:   rapid.OneOf(rapid.SampledFrom([]any{nil, wire.JSON{}}), genCheckpoint).Draw(t, "checkpoint"),
	}
	began := s.now()
	s.write(k, errorName(h.h.Progress(s.with(h), message, &o)), began, func(k *modelTask) (string, bool, bool) {
		if k.terminal() {
			return "Terminal", false, false
		}
		k.message = message
		if o.PollInterval != 0 {
			k.poll = ceil(o.PollInterval)
		}
		if text, _ := json.Marshal(o.Checkpoint); o.Checkpoint != nil && o.Checkpoint != (any)(wire.JSON{}) {
			k.save(h, string(text))
		}
		return "ok", true, true
	})
}

func (s *sim) saveCheckpoint(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	if given := slices.DeleteFunc(slices.Clone(k.handles), func(h *modelHandle) bool { return len(h.taken) == 0 }); len(given) > 0 {
		h = given[len(given)-1] // the last that was given answers
	}
	s.steadyFault(k)
	v := genCheckpoint.Draw(t, "checkpoint")
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	began := s.now()
	s.write(k, errorName(h.h.SaveCheckpoint(s.with(h), v)), began, func(k *modelTask) (string, bool, bool) {
		if k.terminal() {
			return "Terminal", false, false
		}
		k.save(h, string(text))
		return "ok", true, true
	})
}

// save keeps a checkpoint. It covers the answers that this run was given, but
// not those of a round that goes on.
func (k *modelTask) save(h *modelHandle, checkpoint string) {
	k.checkpoint = checkpoint
	for _, key := range h.taken {
		if _, asked := k.requests[key]; !asked {
			delete(k.responses, key)
		}
	}
}

func (s *sim) savedState(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	saved, err := h.h.Checkpoint(s.with(h))
	if got, want := errorName(err), s.begin(k); got != want || got == "ok" && saved.String() != k.checkpoint {
		t.Fatalf("Checkpoint: %s, want %s, %v", got, want, saved)
	}
}

func (s *sim) extend(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	s.steadyFault(k)
	d := genDuration.Draw(t, "by")
	began := s.now()
	s.write(k, errorName(h.h.ExtendTTL(s.with(h), d)), began, func(k *modelTask) (string, bool, bool) {
		if k.terminal() {
			return "Terminal", false, false
		}
		if k.ttl == -1 {
			return "ok", false, false
		}
		ttl := time.Duration(-1)
		if d != -1 {
			ttl = ceil(max(s.now().Sub(k.created), 0) + ceil(d))
			if ttl <= k.ttl {
				return "ok", false, false
			}
		}
		k.ttl = ttl
		return "ok", true, true
	})
}

// draw makes questions for a run.
func (s *sim) draw(t *rapid.T, k *modelTask, h *modelHandle) map[string]wire.JSON {
	questions := make(map[string]wire.JSON)
	mode := rapid.SampledFrom([]string{"fresh", "again", "again and fresh", "collect", "collect", "gone", "another", "twice", "any"}).Draw(t, "mode")
	for _, q := range k.questions {
		_, answered := k.responses[q.key]
		asked := slices.Contains(h.asked, q.key)
		fits := map[string]bool{
			"again": k.alive(q.key) && !asked, "again and fresh": k.alive(q.key) && !asked, "collect": answered && !asked,
			"gone": !k.alive(q.key) && !asked, "another": !asked, "twice": asked,
		}[mode]
		if !fits || rapid.IntRange(0, 2).Draw(t, "leave out") == 0 {
			continue
		}
		questions[q.key] = wire.MustParse(q.text)
		if mode == "another" {
			questions[q.key] = genQuestion.Draw(t, "question")
		}
	}
	if len(questions) > 0 && mode != "again and fresh" {
		return questions
	}
	for _, key := range genKeys.Draw(t, "keys") {
		_, used := k.question(key)
		if used && mode != "any" {
			key = fmt.Sprint(key, " ", len(k.questions))
		}
		if _, ok := questions[key]; !ok {
			questions[key] = genQuestion.Draw(t, "question")
		}
	}
	return questions
}

func (s *sim) request(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	s.steadyFault(k)
	questions := s.draw(t, k, h)
	keys := slices.Sorted(maps.Keys(questions))
	opts := &durabletasks.InputOptions{}
	if rapid.Bool().Draw(t, "timeout") {
		opts.Timeout = time.Duration(rapid.IntRange(1, 60_000_000).Draw(t, "us")) * time.Microsecond
	} else if rapid.Bool().Draw(t, "no options") {
		opts = nil
	}
	w := &modelWaiter{by: h, keys: keys}
	base := s.with(h)
	own, stop := context.WithCancelCause(base)
	w.stop = stop
	if rapid.Bool().Draw(t, "deadline") {
		// Half a millisecond apart from anything else.
		w.until = time.Now().Truncate(time.Millisecond).Add(time.Duration(1+genMilliseconds.Draw(t, "ms"))*time.Millisecond + time.Millisecond/2)
		var cancel context.CancelFunc
		own, cancel = context.WithDeadline(own, w.until)
		w.stop = func(cause error) { stop(cause); cancel() }
	}
	short := opts != nil && opts.Timeout > 0 && opts.Timeout < time.Second || !w.until.IsZero() && time.Until(w.until) < time.Second
	if short || len(k.overdue(keys, s.now().Add(time.Second))) > 0 {
		s.arming("", 0) // which could strike the second write
	}
	began := s.now()
	w.back = ask(func() (map[string]wire.JSON, error) { return h.h.RequestInput(own, questions, opts) })
	s.settled()
	at := func(want string) {
		t.Helper()
		select {
		case a := <-w.back:
			if got := errorName(a.err); got != want || a.values != nil {
				t.Fatalf("RequestInput for %s: %s with %v, want %s", k.id, got, a.values, want)
			}
		default:
			t.Fatalf("RequestInput for %s waits, want %s", k.id, want)
		}
		w.stop(nil)
	}
	switch {
	case base != ctx && h.cause != "":
		at(h.cause)
		return
	case k.waiter != nil:
		at("Pending")
		return
	case slices.ContainsFunc(keys, func(key string) bool { return slices.Contains(h.asked, key) }):
		at("Duplicate")
		return
	}
	want := s.write(k, unknown, began, func(k *modelTask) (string, bool, bool) {
		switch {
		case k.terminal():
			return "Terminal", false, false
		case k.cancel:
			return "Cancelled", false, false
		}
		round := make(map[string]string)
		commits := false
		for _, key := range keys {
			text := questions[key].String()
			q, used := k.question(key)
			request, asked := k.requests[key]
			switch {
			case used && q.text != text, used && !k.alive(key):
				return "Duplicate", false, false
			case asked:
				round[key] = request
				continue
			case used:
				continue
			case text == roots.String() && k.unsupported&wire.InputRoots != 0, text != roots.String() && k.unsupported&wire.InputForm != 0:
				return "Unsupported", false, false
			}
			q = modelQuestion{key: key, text: text}
			if opts != nil && opts.Timeout > 0 {
				q.deadline = s.deadline(k.id, key, began, ceil(opts.Timeout))
			}
			k.questions = append(k.questions, q)
			round[key] = text
			commits = true
		}
		var left []string // what nobody asks any more, if this call has to wait
		if commits || len(k.open(keys)) > 0 {
			left = slices.DeleteFunc(k.open(slices.Collect(maps.Keys(k.requests))), func(key string) bool { return round[key] != "" })
		}
		if commits || len(left) > 0 {
			k.status = "input_required"
			k.requests = round
			k.withdraw(left)
			return "asked", true, true
		}
		return "asked", false, false
	})
	if want != "asked" {
		at(want)
		return
	}
	h.asked = append(h.asked, keys...)
	k.waiter = w
	k.exact = true
	s.settleWaiter(k)
}

// deadline returns when a question's time is over that was asked between begun
// and now; which moment exactly is taken from the store, within these bounds.
func (s *sim) deadline(id, key string, begun time.Time, timeout time.Duration) time.Time {
	up := func(t time.Time) time.Time { // whole milliseconds, and never earlier
		return t.Add(timeout + time.Millisecond - 1).UTC().Truncate(time.Millisecond)
	}
	lo, hi := up(begun), up(s.now())
	if r, err := s.disk.Get(ctx, id); err == nil {
		for _, q := range r.Questions {
			if q.Key == key && !q.Deadline.Before(lo) && !q.Deadline.After(hi) {
				return q.Deadline
			}
		}
	}
	return hi
}

func (s *sim) withdraw(t *rapid.T) {
	k := s.task()
	h := s.handle(k)
	s.steadyFault(k)
	var keys []string
	if rapid.Bool().Draw(t, "by key") {
		for _, q := range k.questions {
			if rapid.Bool().Draw(t, "this") {
				keys = append(keys, q.key)
			}
		}
		keys = append(keys, "ghost")
	}
	began := s.now()
	s.write(k, errorName(h.h.Withdraw(s.with(h), keys...)), began, func(k *modelTask) (string, bool, bool) {
		if k.terminal() {
			return "Terminal", false, false
		}
		which := keys
		if len(keys) == 0 {
			which = slices.Collect(maps.Keys(k.requests))
		}
		open := k.open(which)
		k.withdraw(open)
		return "ok", len(open) > 0, true
	})
}

func (s *sim) giveUp(t *rapid.T) {
	k := s.task()
	if k.waiter == nil {
		t.Skip("nobody waits")
	}
	mine := errors.New("mine")
	k.waiter.stop(mine)
	synctest.Wait()
	s.waiterEnds(k, "mine")
}

func (s *sim) respond(t *rapid.T) {
	k := s.task()
	s.steadyFault(k)
	answers := make(map[string]wire.JSON)
	mode := rapid.SampledFrom([]string{"all", "some", "mixed", "none"}).Draw(t, "mode")
	for _, key := range slices.Sorted(maps.Keys(k.requests)) {
		switch {
		case mode == "all", mode == "some" && rapid.Bool().Draw(t, "answer"):
			answers[key] = genAnswer(t, k.requests[key], true)
		case mode == "mixed":
			answers[key] = genAnswer(t, k.requests[key], rapid.IntRange(0, 2).Draw(t, "good") > 0)
		}
	}
	for range rapid.IntRange(0, 2).Draw(t, "ghosts") {
		ghost := rapid.OneOf(rapid.Just("ghost"), genText, rapid.Just("a")).Draw(t, "ghost")
		if len(k.questions) > 0 && rapid.Bool().Draw(t, "late") {
			ghost = rapid.SampledFrom(k.questions).Draw(t, "old").key
		}
		if _, ok := answers[ghost]; !ok {
			if _, ok := k.requests[ghost]; !ok {
				answers[ghost] = rapid.OneOf(genGood, genBad).Draw(t, "answer")
			}
		}
	}
	began := s.now()
	ignored, err := s.l.UpdateTask(durabletasks.WithOwner(ctx, k.owner), k.id, answers)
	var wantIgnored []string
	want := s.write(k, errorName(err), began, func(k *modelTask) (string, bool, bool) {
		wantIgnored = nil
		applied := false
		for _, key := range slices.Sorted(maps.Keys(answers)) {
			_, asked := k.requests[key]
			_, answered := k.responses[key]
			if k.status != "input_required" || !asked || answered || len(k.overdue([]string{key}, began)) > 0 {
				wantIgnored = append(wantIgnored, key)
				continue
			}
			good := []string{`"accept"`, `"decline"`, `"cancel"`}
			if isRoots := k.requests[key] == roots.String(); isRoots && answers[key] != noRoots ||
				!isRoots && !slices.Contains(good, answers[key].Get("action").String()) {
				return "Shape", false, false
			}
			if k.responses == nil {
				k.responses = make(map[string]string)
			}
			k.responses[key] = answers[key].String()
			applied = true
		}
		overdue := k.overdue(k.open(slices.Collect(maps.Keys(k.requests))), began)
		k.withdraw(overdue)
		return "ok", applied || len(overdue) > 0, true
	})
	if want == "ok" && !slices.Equal(ignored, wantIgnored) {
		t.Fatalf("ignored %q, want %q", ignored, wantIgnored)
	}
}

func (s *sim) cancel(t *rapid.T) {
	s.seldom()
	k := s.task()
	s.steadyFault(k)
	began := s.now()
	s.write(k, errorName(s.l.CancelTask(durabletasks.WithOwner(ctx, k.owner), k.id)), began, func(k *modelTask) (string, bool, bool) {
		if k.terminal() || k.cancel {
			return "ok", false, false
		}
		k.cancel = true
		return "ok", true, false
	})
}

// intrude calls on behalf of somebody else.
func (s *sim) intrude(t *rapid.T) {
	k := s.task()
	theirs := durabletasks.WithOwner(ctx, "mallory")
	var err error
	switch rapid.IntRange(0, 2).Draw(t, "operation") {
	case 0:
		_, err = s.l.GetTask(theirs, k.id)
		if err != durabletasks.ErrNotFound {
			t.Fatal(err)
		}
		return
	case 1:
		_, err = s.l.UpdateTask(theirs, k.id, accepts(slices.Collect(maps.Keys(k.requests))...))
	case 2:
		err = s.l.CancelTask(theirs, k.id)
	}
	if s.visible(k) {
		if err != durabletasks.ErrNotFound {
			t.Fatal(err)
		}
		return
	}
	s.write(k, errorName(err), s.now(), nil)
}

func (s *sim) finish(t *rapid.T) {
	s.seldom()
	k := s.task()
	h := s.handle(k)
	s.steadyFault(k)
	began := s.now()
	n := rapid.IntRange(0, 9).Draw(t, "n")
	with := s.with(h)
	switch rapid.SampledFrom([]string{"complete", "fail", "cancelled", "bad"}).Draw(t, "how") {
	case "complete":
		err := h.h.Complete(with, wire.MustParse(fmt.Sprintf(`{"n":%d}`, n)))
		s.write(k, errorName(err), began, completed(fmt.Sprintf(`{"resultType":"complete","n":%d}`, n)))
	case "fail":
		s.write(k, errorName(h.h.Fail(with, &wire.Error{Code: int64(n), Message: "failed"})), began, failed(n, "failed"))
	case "cancelled":
		message := genText.Draw(t, "message")
		s.write(k, errorName(h.h.Cancelled(with, message)), began, finished("cancelled", message))
	case "bad":
		for _, err := range []error{h.h.Complete(with, aText), h.h.Fail(with, nil), h.h.Cancelled(with, "\xff")} {
			if !errors.Is(err, durabletasks.ErrInvalid) {
				t.Fatal(err)
			}
		}
	}
}

// sleep lets time pass, from one moment to the next at which somebody stops
// waiting.
func (s *sim) sleep(t *rapid.T) {
	d := genMilliseconds.Draw(t, "ms")
	end := time.Now().Add(time.Duration(d) * time.Millisecond)
	const justBefore = -time.Millisecond / 4
	for {
		next := s.moments()
		due := len(next) > 0 && !next[0].at.After(end)
		stop := end
		if due {
			stop = next[0].at.Add(justBefore)
		}
		for _, k := range s.tasks { // what has expired no longer tells what came before
			if before := k.created.Add(k.ttl - s.offset).Add(justBefore); k.waiter != nil && !k.exact && k.ttl != -1 && time.Now().Before(before) && before.Before(stop) {
				stop = before
			}
		}
		if time.Now().Before(stop) {
			time.Sleep(time.Until(stop))
			s.look() // a waiter that has not seen a step of the clock may have gone
			continue
		}
		if !due {
			return
		}
		k, at := next[0].k, next[0].at
		crowded := len(next) > 1 && next[1].at.Sub(at) < time.Second
		if crowded || k.ttl != -1 && k.created.Add(k.ttl).Sub(at.Add(s.offset)) < time.Second {
			s.arming("", 0)
		}
		time.Sleep(time.Until(at))
		s.settled()
		for _, m := range next {
			if m.at.Equal(at) {
				s.late(m.k, at)
			}
		}
		s.look()
	}
}

// moment is when a waiter stops waiting for some questions, by the real clock.
type moment struct {
	k  *modelTask
	at time.Time
}

// moments returns what is to come, in order.
func (s *sim) moments() []moment {
	var all []moment
	for _, k := range s.tasks {
		w := k.waiter
		if w == nil || !s.visible(k) {
			continue
		}
		ends := map[time.Time]bool{w.until: true}
		for _, key := range k.open(w.keys) {
			if q, _ := k.question(key); k.exact && !q.deadline.IsZero() {
				ends[time.Now().Add(q.deadline.Sub(s.now()))] = true
			}
		}
		for at := range ends {
			if expired := k.ttl != -1 && !at.Add(s.offset).Before(k.created.Add(k.ttl)); !at.IsZero() && !expired {
				all = append(all, moment{k, at})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b moment) int { return a.at.Compare(b.at) })
	return all
}

// late is what a waiter does when its time, or that of its questions, is over.
func (s *sim) late(k *modelTask, at time.Time) {
	w := k.waiter
	keys := k.overdue(w.keys, at.Add(s.offset))
	gives := at.Equal(w.until)
	if gives {
		keys = k.open(w.keys)
	}
	want := s.write(k, unknown, at.Add(s.offset), func(k *modelTask) (string, bool, bool) {
		k.withdraw(keys)
		return "ok", true, true
	})
	switch {
	case want == "Broken":
		s.waiterEnds(k, "Broken") // and its questions stay open
	case gives && k.cancel:
		s.waiterEnds(k, "Cancelled")
	case gives:
		s.handed(k, context.DeadlineExceeded)
	}
}

func (s *sim) stepClock(t *rapid.T) {
	s.offset += time.Duration(rapid.OneOf(rapid.IntRange(-2000, 2000), rapid.IntRange(-60_000, 60_000)).Draw(t, "ms")) * time.Millisecond
	for _, k := range s.tasks {
		k.exact = false
	}
	if s.unsure() {
		s.arming("", 0)
	}
}

// unsure reports whether a waiter waits for a deadline by another clock, so
// that it is not known when it writes.
func (s *sim) unsure() bool {
	return slices.ContainsFunc(s.tasks, func(k *modelTask) bool {
		return k.waiter != nil && !k.exact && len(k.overdue(k.waiter.keys, s.now().Add(1000*time.Hour))) > 0
	})
}

func (s *sim) sweep(t *rapid.T) {
	want := 0
	for _, k := range s.tasks {
		if !k.removed && !s.visible(k) {
			k.removed = true
			want++
		}
	}
	if n, err := s.l.Sweep(ctx); n != want || err != nil {
		t.Fatalf("Sweep: %d, %v, want %d", n, err, want)
	}
}

func (s *sim) arm(t *rapid.T) {
	if s.unsure() {
		t.Skip("not now")
	}
	s.arming(rapid.SampledFrom([]string{"broken", "conflict", "foreign progress", "foreign progress", "foreign progress", "foreign cancel"}).Draw(t, "fault"), rapid.IntRange(1, 3).Draw(t, "conflicts"))
}

func (s *sim) arming(fault string, conflicts int) {
	s.store.mu.Lock()
	defer s.store.mu.Unlock()
	s.armed = fault
	s.store.fault, s.store.left, s.store.struck = fault, conflicts, false
}

func (s *sim) restart(t *rapid.T) {
	s.crash()
	s.armed = ""
	s.start()
	if !rapid.Bool().Draw(t, "recover") {
		return
	}
	begun := make(chan *modelWorker, len(s.tasks))
	want := 0
	for _, k := range s.tasks {
		if s.begin(k) == "ok" {
			want++
		}
	}
	n, err := s.l.Recover(ctx, func(r durabletasks.Record) durabletasks.Worker {
		i := slices.IndexFunc(s.tasks, func(k *modelTask) bool { return k.id == r.ID })
		if want := s.tasks[i].record(); !reflect.DeepEqual(r, want) {
			t.Fatalf("recovered\ngot  %+v\nwant %+v", r, want)
		}
		return s.work(begun)
	})
	if n != want || err != nil {
		t.Fatalf("recovered %d, %v, want %d", n, err, want)
	}
	for range n {
		w := <-begun
		i := slices.IndexFunc(s.tasks, func(k *modelTask) bool { return k.id == w.h.ID() })
		k := s.tasks[i]
		k.worker = w
		s.attached(k, w.modelHandle)
	}
}

func runModel(t *rapid.T, reopen func(now func() time.Time) durabletasks.TaskStore) {
	s := &sim{t: t}
	s.reopen = func() durabletasks.TaskStore { return reopen(s.now) }
	s.start()
	defer func() {
		s.crash() // nobody is left waiting
	}()
	s.create(t)
	t.Repeat(map[string]func(*rapid.T){
		"create": s.create, "handle": s.newHandle, "handle ": s.newHandle, "start worker": s.startWorker, "worker leaves": s.leaveWorker,
		"progress": s.progress, "progress ": s.progress, "checkpoint": s.savedState, "save checkpoint": s.saveCheckpoint, "save checkpoint ": s.saveCheckpoint, "extend": s.extend,
		"request": s.request, "request ": s.request, "request  ": s.request, "give up": s.giveUp, "withdraw": s.withdraw,
		"respond": s.respond, "respond ": s.respond, "respond  ": s.respond, "cancel": s.cancel, "intrude": s.intrude, "finish": s.finish,
		"sleep": s.sleep, "sleep ": s.sleep, "step clock": s.stepClock, "sweep": s.sweep, "arm a fault": s.arm, "restart": s.restart,
		"": func(*rapid.T) { s.look() },
	})
}

// Behaviour (c) and more, on the memory store.
func TestModelMemStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 5 { // five times -rapid.checks
			rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) { // a bubble knows no deadline
				var store shared
				runModel(t, func(now func() time.Time) durabletasks.TaskStore {
					if store.MemStore == nil {
						store = shared{&durabletasks.MemStore{Now: now}}
					}
					return store
				})
			})
		}
	})
}

// The same on the durable store, which is closed and opened again with each
// restart.
func TestModelWAL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		base := t.TempDir()
		runs := 0
		rapid.Check(struct{ testing.TB }{t}, func(t *rapid.T) {
			runs++
			dir := filepath.Join(base, fmt.Sprint(runs))
			var store *wal.Store
			defer func() {
				store.Close()
				os.RemoveAll(dir)
			}()
			runModel(t, func(now func() time.Time) durabletasks.TaskStore {
				if store != nil {
					if err := store.Close(); err != nil {
						t.Fatal(err)
					}
				}
				var err error
				if store, err = wal.Open(dir, &wal.Options{Now: now}); err != nil {
					t.Fatal(err)
				}
				return store
			})
		})
	})
}
