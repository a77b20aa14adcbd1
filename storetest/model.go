package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Model makes random calls, with steps of the clock and reopens if the subject
// supports them, and compares every result with that of a plain map. It shortens
// a history that fails, prints it, and keeps it in testdata/rapid, where the
// next run tries it first. The flags of package rapid, such as -rapid.checks,
// set the number and the length of the histories; with -short there are fewer.
// Shortening takes up to half a minute or -rapid.shrinktime. The subject's
// Timeout applies to one history.
//
// The stores of all histories are cleaned up when t ends.
func Model(t *testing.T, s Subject) {
	t.Helper()
	if s.New == nil {
		t.Fatal("storetest: Subject.New is nil")
	}
	newTrial(t, s, testing.Short()).model()
}

// model runs the histories and reports failures to the trial's test.
func (t *trial) model() {
	t.await(func() {
		explained := make(chan struct{})
		go func() { // a failure ends this goroutine
			defer close(explained)
			t.explain(0)
		}()
		if <-explained; t.failed.String() != "" {
			return
		}
		rapid.Check(t.tb, func(rt *rapid.T) {
			t.timeout.Reset(t.subject.Timeout)
			newHistory(rt, t).run()
		})
	})
	if failures := t.failed.String(); failures != "" {
		t.tb.Errorf("%s", failures)
	}
}

// history is a random sequence of calls on one store, with the records that the
// store must have.
type history struct {
	t       *trial
	rt      *rapid.T
	ids     []string                       // few, so that calls meet
	records map[string]durabletasks.Record // expired ones too, until they are swept
	back    bool                           // the clock can be set back
	calls   []string                       // for the failure
}

func newHistory(rt *rapid.T, all *trial) *history {
	t := newTrial(all.tb, all.subject, all.short)
	t.calls = all.calls
	h := &history{
		t:       t,
		rt:      rt,
		records: make(map[string]durabletasks.Record),
	}
	t.stop = func() {
		rt.Logf("the calls:\n\t%s", strings.Join(h.calls, "\n\t"))
		rt.Fatalf("\n%s", t.failed)
	}
	return h
}

// note records a call, to be printed if the history fails.
func (h *history) note(format string, args ...any) {
	h.calls = append(h.calls, fmt.Sprintf(format, args...))
}

func (h *history) run() {
	h.t.began = h.t.now()
	h.t.store = h.t.open("New", h.t.subject.New)
	defer func() {
		if !h.t.store.closeCalled.Load() { // a failure came first
			_ = h.t.store.Close()
		}
	}()
	h.ids = rapid.SliceOfNDistinct(rapid.SampledFrom(hostile), 4, 4, rapid.ID[string]).Draw(h.rt, "ids")
	actions := map[string]func(*rapid.T){
		"Create": h.create,
		"Get":    h.get,
		"Update": h.update,
		"Sweep":  h.sweep,
		"Done":   h.done,
		"":       h.compare,
	}
	if h.t.subject.Advance != nil {
		actions["Advance"] = h.advance
		h.back = h.t.canGoBack()
	}
	if h.t.subject.Reopen != nil {
		actions["Reopen"] = h.reopen
	}
	if h.t.store.scanner != nil {
		actions["Scan"] = h.scan
	}
	h.rt.Repeat(actions)
	if err := h.t.store.Close(); err != nil {
		h.t.fatalf("Close: %v", err)
	}
	h.t.allClosed(h.ids[0])
}

// expired is the clause on expiry again, independent of Record's methods.
func expired(r durabletasks.Record, now time.Time) bool {
	return r.TTL >= 0 && !now.Before(r.CreatedAt.Add(r.TTL))
}

// live returns the record if the store must find it.
func (h *history) live(id string) (durabletasks.Record, bool) {
	r, ok := h.records[id]
	return r, ok && !expired(r, h.t.subject.Now())
}

// drawn returns a random element of values.
func drawn[T any](rt *rapid.T, label string, values ...T) T {
	return rapid.SampledFrom(values).Draw(rt, label)
}

func (h *history) id(rt *rapid.T) string { return drawn(rt, "id", h.ids...) }

// record returns a random record.
func (h *history) record(rt *rapid.T, id string) durabletasks.Record {
	ttls := []time.Duration{durabletasks.NoLimit, time.Hour, 100 * time.Hour, 0}
	if h.t.subject.Advance != nil {
		ttls = append(ttls, time.Second, 2*time.Second)
	}
	now := h.t.now()
	r := durabletasks.Record{
		ID:               id,
		Status:           drawn(rt, "status", statuses...),
		StatusMessage:    drawn(rt, "message", hostile...),
		CreatedAt:        now.Add(drawn(rt, "age", 0, -2*time.Hour, -time.Second)),
		LastUpdatedAt:    now.Add(drawn(rt, "updated", 0, time.Second, -time.Second)),
		TTL:              drawn(rt, "ttl", ttls...),
		PollInterval:     drawn(rt, "poll interval", durabletasks.NoLimit, time.Second, 5*time.Millisecond, 0),
		Result:           randomJSON(rt, "result"),
		Error:            randomJSON(rt, "error"),
		Owner:            drawn(rt, "owner", hostile...),
		Tool:             drawn(rt, "tool", hostile...),
		CancelRequested:  rapid.Bool().Draw(rt, "cancel requested"),
		UnsupportedInput: wire.InputKinds(rapid.Uint8().Draw(rt, "unsupported input")),
		Payload:          randomJSON(rt, "payload"),
		Checkpoint:       randomJSON(rt, "checkpoint"),
	}
	keys := rapid.SliceOfN(rapid.SampledFrom(hostile), 0, 3).Draw(rt, "keys")
	for i, key := range keys {
		question := durabletasks.Question{Key: key}
		for b := range question.Digest {
			question.Digest[b] = drawn(rt, "digest", 0, byte(b), 0x80, 0xff)
		}
		if rapid.Bool().Draw(rt, "with a deadline") {
			question.Deadline = r.CreatedAt.Add(drawn(rt, "deadline", 0, 1789*time.Millisecond, time.Hour))
		}
		r.Questions = append(r.Questions, question)
		if i == 0 {
			r.InputRequests = make(map[string]wire.JSON)
			r.InputResponses = make(map[string]wire.JSON)
		}
		r.InputRequests[key] = number(`{"request":%d}`, i)
		if i%2 == 1 {
			r.InputResponses[key] = number(`{"response":%d}`, i)
		}
	}
	return r
}

func randomJSON(rt *rapid.T, label string) wire.JSON {
	text := drawn(rt, label, append([]string{""}, fragileJSON...)...)
	if text == "" {
		return wire.JSON{}
	}
	return wire.MustParse(text)
}

func (h *history) create(rt *rapid.T) {
	id := h.id(rt)
	r := at(drawn(rt, "version passed in", int64(0), 1, 99), h.record(rt, id))
	want := at(0, r.Clone())
	_, live := h.live(id)
	_, known := h.records[id]
	h.note("Create of task %s, %s, with CreatedAt %v and TTL %v", clip(id), r.Status, r.CreatedAt, r.TTL)
	err := h.t.store.Create(context.Background(), r)
	scribble(r)
	switch {
	case live:
		h.t.wants(err, durabletasks.ErrExists, "Create with a taken id")
	case known && errors.Is(err, durabletasks.ErrExists): // the record has expired and may count as taken
	case err != nil:
		h.t.fatalf("Create with a free id: %v", err)
	default:
		h.records[id] = want
	}
}

func (h *history) get(rt *rapid.T) {
	id := h.id(rt)
	h.note("Get of task %s", clip(id))
	r, err := h.t.store.Get(context.Background(), id)
	if want, ok := h.live(id); !ok {
		h.t.wants(err, durabletasks.ErrNotFound, "Get of an unknown or expired task")
	} else if err != nil {
		h.t.fatalf("Get: %v", err)
	} else {
		h.t.same(r, want, "as Get returned it")
	}
	if d := diff(r, durabletasks.Record{}); err != nil && d != "" {
		h.t.fatalf("Get returned a record with the error %q: %s", err, d)
	}
	scribble(r)
}

func (h *history) update(rt *rapid.T) {
	id := h.id(rt)
	old, live := h.live(id)
	next := h.record(rt, id)
	if live {
		next.CreatedAt = old.CreatedAt
		if drawn(rt, "unchanged", false, false, false, true) {
			next = old.Clone()
		}
	}
	next.Version = old.Version + drawn(rt, "version off by", int64(0), 0, 0, -1, 1)
	want := at(next.Version+1, next.Clone())
	h.note("Update of task %s from version %d: %s, with CreatedAt %v and TTL %v", clip(id), next.Version, next.Status, next.CreatedAt, next.TTL)
	err := h.t.store.Update(context.Background(), next)
	switch {
	case !live:
		h.t.wants(err, durabletasks.ErrNotFound, "Update of an unknown or expired task")
	case next.Version != old.Version:
		h.t.conflicts(err, "Update from version %d of a task at version %d", next.Version, old.Version)
		if want := (durabletasks.ConflictError{Expected: next.Version, Actual: old.Version}); *conflict(err) != want {
			h.t.fatalf("the conflict is %+v, want %+v", *conflict(err), want)
		}
	case err != nil:
		h.t.fatalf("Update: %v", err)
	default:
		h.records[id] = want
	}
	scribble(next)
}

func (h *history) sweep(rt *rapid.T) {
	at := h.t.now().Add(drawn(rt, "time off by", 0, time.Millisecond, time.Second, 2*time.Hour, -time.Second, -time.Hour))
	h.note("Sweep at %v", at)
	n, err := h.t.store.Sweep(context.Background(), at)
	if err != nil {
		h.t.fatalf("Sweep: %v", err)
	}
	want := 0
	for id, r := range h.records {
		if expired(r, at) {
			want++
			delete(h.records, id)
		}
	}
	if n != want {
		h.t.fatalf("Sweep returned %d, want %d", n, want)
	}
}

// done makes a call with a context that is done. If another error applies, the
// store may report that one.
func (h *history) done(rt *rapid.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	id := h.id(rt)
	r := h.record(rt, id)
	var err error
	call := drawn(rt, "call", "Create", "Get", "Update", "Sweep")
	h.note("%s of task %s with a cancelled context", call, clip(id))
	switch call {
	case "Create":
		err = h.t.store.Create(ctx, r)
	case "Get":
		_, err = h.t.store.Get(ctx, id)
	case "Update":
		err = h.t.store.Update(ctx, at(h.records[id].Version, r))
	case "Sweep":
		_, err = h.t.store.Sweep(ctx, h.t.now().Add(time.Hour))
	}
	_, live := h.live(id)
	_, known := h.records[id]
	switch {
	case call == "Create" && known && errors.Is(err, durabletasks.ErrExists):
	case (call == "Get" || call == "Update") && !live && errors.Is(err, durabletasks.ErrNotFound):
	default:
		h.t.wants(err, context.Canceled, "%s with a cancelled context", call)
	}
}

func (h *history) advance(rt *rapid.T) {
	steps := []time.Duration{time.Millisecond, 999 * time.Millisecond, time.Second, time.Hour}
	if h.back {
		steps = append(steps, -time.Millisecond, -time.Second, -time.Hour)
	}
	step := drawn(rt, "step", steps...)
	h.note("the clock moves by %v", step)
	h.t.advance(step)
}

func (h *history) reopen(*rapid.T) {
	h.note("Close and reopen")
	h.t.reopen()
}

func (h *history) scan(*rapid.T) {
	shown := make(map[string]durabletasks.Record)
	visits := 0
	h.note("Scan")
	err := h.t.store.Scan(context.Background(), func(r durabletasks.Record) bool {
		shown[r.ID] = r
		visits++
		return true
	})
	if err != nil {
		h.t.fatalf("Scan: %v", err)
	}
	unfinished := 0
	for _, id := range h.ids {
		want, live := h.live(id)
		if !live || want.Status.Terminal() {
			continue
		}
		unfinished++
		if r, ok := shown[id]; !ok {
			h.t.fatalf("Scan did not show task %s", clip(id))
		} else {
			h.t.same(r, want, "as Scan showed it")
		}
	}
	if visits != unfinished {
		h.t.fatalf("Scan called visit %d times, want %d", visits, unfinished)
	}
	for _, r := range shown {
		scribble(r)
	}
}

// compare, which is called after every call, compares all records.
func (h *history) compare(*rapid.T) {
	for _, id := range h.ids {
		r, err := h.t.store.Get(context.Background(), id)
		if want, ok := h.live(id); !ok {
			h.t.wants(err, durabletasks.ErrNotFound, "Get of task %s, which is unknown or expired", clip(id))
		} else if err != nil {
			h.t.fatalf("Get of task %s: %v", clip(id), err)
		} else {
			h.t.same(r, want, fmt.Sprintf("at version %d", want.Version))
		}
	}
}
