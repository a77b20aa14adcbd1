package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var (
	ctx   = context.Background()
	epoch = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
)

// clock is a time that a test moves.
type clock struct{ ns atomic.Int64 }

func newClock() *clock {
	c := new(clock)
	c.ns.Store(epoch.UnixNano())
	return c
}

func (c *clock) now() time.Time          { return time.Unix(0, c.ns.Load()) }
func (c *clock) advance(d time.Duration) { c.ns.Add(int64(d)) }

// fixed returns the options with a clock that stands still and a logger that
// discards everything, unless they have others.
func fixed(opts *wal.Options) *wal.Options {
	var o wal.Options
	if opts != nil {
		o = *opts
	}
	if o.Now == nil {
		o.Now = func() time.Time { return epoch }
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return &o
}

func mustOpen(t testing.TB, dir string, opts *wal.Options) *wal.Store {
	t.Helper()
	s, err := wal.Open(dir, fixed(opts))
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func mustClose(t testing.TB, s *wal.Store) {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Fatalf("Close: %v", err)
	}
}

func mustCreate(t testing.TB, s *wal.Store, r durabletasks.Record) {
	t.Helper()
	if err := s.Create(ctx, r); err != nil {
		t.Fatalf("Create: %v", err)
	}
}

func mustGet(t testing.TB, s *wal.Store, id string) durabletasks.Record {
	t.Helper()
	r, err := s.Get(ctx, id)
	if err != nil {
		t.Fatalf("Get(%.40q): %v", id, err)
	}
	return r
}

// mustUpdate returns what is stored after the update.
func mustUpdate(t testing.TB, s *wal.Store, r durabletasks.Record) durabletasks.Record {
	t.Helper()
	if err := s.Update(ctx, r); err != nil {
		t.Fatalf("Update(%.40q): %v", r.ID, err)
	}
	r.Version++
	return r
}

// from returns the record as an update from another version.
func from(version int64, r durabletasks.Record) durabletasks.Record {
	r.Version = version
	return r
}

// questions returns a question for each key, every other one with a deadline.
func questions(keys ...string) []durabletasks.Question {
	var qs []durabletasks.Question
	for i, key := range keys {
		q := durabletasks.Question{Key: key, Digest: [16]byte(bytes.Repeat([]byte{byte(i), 0xff}, 8))}
		if i%2 == 1 {
			q.Deadline = epoch.Add(time.Duration(i) * time.Minute)
		}
		qs = append(qs, q)
	}
	return qs
}

// task is a small live task, as hosts make them.
func task(id string) durabletasks.Record {
	return durabletasks.Record{
		ID:            id,
		Status:        durabletasks.StatusWorking,
		CreatedAt:     epoch,
		LastUpdatedAt: epoch,
		TTL:           time.Hour,
		PollInterval:  time.Second,
		Payload:       wire.MustParse(`{"tool":"crawl","arguments":{"url":"https://example.com","depth":3}}`),
	}
}

// fullTask has every field set.
func fullTask(id string) durabletasks.Record {
	r := task(id)
	r.Status = durabletasks.StatusInputRequired
	r.StatusMessage = "läuft\x00 \xff"
	r.LastUpdatedAt = epoch.Add(1234567 * time.Nanosecond)
	r.TTL = durabletasks.NoLimit
	r.PollInterval = durabletasks.NoLimit
	r.InputRequests = map[string]wire.JSON{"": wire.MustParse(`{"method":"a"}`), "__proto__": wire.MustParse(`1e400`), "\x00": wire.MustParse(`null`)}
	r.InputResponses = map[string]wire.JSON{"k": wire.MustParse(`"\ud800"`), "gone": {}}
	r.Questions = questions("", "__proto__", "a", "a", strings.Repeat("ключ", 2500))
	r.Tool = "tool\x00\xff"
	r.Result = wire.MustParse(`{"n":123456789012345678901234567890,"m":-1.50}`)
	r.Error = wire.MustParse(`{"code":-32603,"message":"x"}`)
	r.Owner = "owner\x00"
	r.CancelRequested = true
	r.UnsupportedInput = 255
	r.Checkpoint = wire.MustParse(`[1,2,{"page":7}]`)
	return r
}

func equal(t testing.TB, what string, got, want durabletasks.Record) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %+v\nwant %+v", what, got, want)
	}
}

// variants are records that differ from fullTask in one field each.
func variants() map[string]func(r *durabletasks.Record) {
	return map[string]func(r *durabletasks.Record){
		"nothing":           func(r *durabletasks.Record) {},
		"status":            func(r *durabletasks.Record) { r.Status = durabletasks.StatusFailed },
		"strange status":    func(r *durabletasks.Record) { r.Status = "strange\x00" },
		"no status":         func(r *durabletasks.Record) { r.Status = "" },
		"message":           func(r *durabletasks.Record) { r.StatusMessage = "x" },
		"no message":        func(r *durabletasks.Record) { r.StatusMessage = "" },
		"created":           func(r *durabletasks.Record) { r.CreatedAt = time.Time{} },
		"created 1970":      func(r *durabletasks.Record) { r.CreatedAt = time.Unix(0, 0).UTC() },
		"updated":           func(r *durabletasks.Record) { r.LastUpdatedAt = time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC) },
		"ttl":               func(r *durabletasks.Record) { r.TTL = math.MaxInt64 },
		"no poll interval":  func(r *durabletasks.Record) { r.PollInterval = 0 },
		"request":           func(r *durabletasks.Record) { r.InputRequests[""] = wire.MustParse(`2`) },
		"new request":       func(r *durabletasks.Record) { r.InputRequests["new"] = wire.MustParse(`{}`) },
		"request gone":      func(r *durabletasks.Record) { delete(r.InputRequests, "__proto__") },
		"requests gone":     func(r *durabletasks.Record) { r.InputRequests = nil },
		"requests empty":    func(r *durabletasks.Record) { r.InputRequests = map[string]wire.JSON{} },
		"response":          func(r *durabletasks.Record) { r.InputResponses["k"] = wire.MustParse(`{}`) },
		"responses gone":    func(r *durabletasks.Record) { r.InputResponses = nil },
		"questions":         func(r *durabletasks.Record) { r.Questions = append(r.Questions, questions("n", "m")...) },
		"questions cut":     func(r *durabletasks.Record) { r.Questions = r.Questions[:2] },
		"question's key":    func(r *durabletasks.Record) { r.Questions[1].Key = "other" },
		"question's digest": func(r *durabletasks.Record) { r.Questions[4].Digest[15]++ },
		"deadline":          func(r *durabletasks.Record) { r.Questions[0].Deadline = epoch },
		"deadline 1970":     func(r *durabletasks.Record) { r.Questions[2].Deadline = time.Unix(0, 0).UTC() },
		"deadline last":     func(r *durabletasks.Record) { r.Questions[4].Deadline = time.Date(9999, 1, 1, 0, 0, 0, 1, time.UTC) },
		"no deadline":       func(r *durabletasks.Record) { r.Questions[1].Deadline = time.Time{} },
		"questions gone":    func(r *durabletasks.Record) { r.Questions = nil },
		"all inputs gone": func(r *durabletasks.Record) {
			r.InputRequests, r.InputResponses, r.Questions = nil, nil, nil
		},
		"result":     func(r *durabletasks.Record) { r.Result = wire.MustParse(`{"other":true}`) },
		"no result":  func(r *durabletasks.Record) { r.Result = wire.JSON{} },
		"no error":   func(r *durabletasks.Record) { r.Error = wire.JSON{} },
		"no owner":   func(r *durabletasks.Record) { r.Owner = "" },
		"no cancel":  func(r *durabletasks.Record) { r.CancelRequested = false },
		"no tool":    func(r *durabletasks.Record) { r.Tool = "" },
		"tool":       func(r *durabletasks.Record) { r.Tool = "crawl" },
		"any input":  func(r *durabletasks.Record) { r.UnsupportedInput = 0 },
		"no URLs":    func(r *durabletasks.Record) { r.UnsupportedInput = wire.InputURL },
		"payload":    func(r *durabletasks.Record) { r.Payload = wire.MustParse(`{}`) },
		"checkpoint": func(r *durabletasks.Record) { r.Checkpoint = wire.MustParse(`"p8"`) },
	}
}

// Every field survives byte for byte: as it was created, after each kind of
// update, and after a reopen of both.
func TestEveryFieldSurvives(t *testing.T) {
	t.Parallel()
	for _, first := range []string{"full", "small"} {
		for name, change := range variants() {
			t.Run(first+"/"+name, func(t *testing.T) {
				dir := ramDir(t)
				s := mustOpen(t, dir, nil)
				want := fullTask("id\x00\xff")
				if first == "small" {
					want = task(want.ID)
				}
				mustCreate(t, s, want)
				equal(t, "after create", mustGet(t, s, want.ID), want)
				if first == "small" {
					// The update brings everything that the small one has not.
					version := want.Version
					want = fullTask(want.ID)
					want.Version = version
				}
				change(&want)
				want = mustUpdate(t, s, want)
				if len(want.InputRequests) == 0 {
					want.InputRequests = nil
				}
				for range 2 { // the second time from a log with another update
					equal(t, "after update", mustGet(t, s, want.ID), want)
					mustClose(t, s)
					s = mustOpen(t, dir, nil)
					equal(t, "after reopen", mustGet(t, s, want.ID), want)
					want.StatusMessage += "!"
					want = mustUpdate(t, s, want)
				}
			})
		}
	}
}

func TestCreateNeverOverwrites(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	want := task("a")
	want.Version = 77 // the store owns the version
	mustCreate(t, s, want)
	want.Version = 0
	other := task("a")
	other.StatusMessage = "other"
	if err := s.Create(ctx, other); !errors.Is(err, durabletasks.ErrExists) {
		t.Errorf("second Create: %v, want ErrExists", err)
	}
	equal(t, "stored", mustGet(t, s, "a"), want)
}

func TestUpdateConflictsAndUnknown(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	if err := s.Update(ctx, task("a")); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("Update of an unknown id: %v, want ErrNotFound", err)
	}
	if _, err := s.Get(ctx, "a"); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("Get after it: %v, want ErrNotFound", err)
	}
	mustCreate(t, s, task("a"))
	r := mustUpdate(t, s, mustGet(t, s, "a"))
	for _, expected := range []int64{0, 2, -1} {
		next := from(expected, r)
		next.StatusMessage = "late"
		err := s.Update(ctx, next)
		var conflict *durabletasks.ConflictError
		if !errors.As(err, &conflict) || *conflict != (durabletasks.ConflictError{Expected: expected, Actual: 1}) {
			t.Errorf("Update from version %d: %v, want a conflict with 1", expected, err)
		}
	}
	equal(t, "stored", mustGet(t, s, "a"), r)
}

// Of many updates from one version exactly one succeeds, in every round, and
// its record is there after a reopen.
func TestOneOfManyUpdatesWins(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, task("a"))
	const racers, rounds = 8, 200
	for round := range rounds {
		old := mustGet(t, s, "a")
		var wg sync.WaitGroup
		var winner atomic.Int64
		var wins, conflicts atomic.Int64
		for i := range racers {
			wg.Go(func() {
				next := old.Clone()
				next.StatusMessage = fmt.Sprint(i)
				switch err := s.Update(ctx, next); {
				case err == nil:
					wins.Add(1)
					winner.Store(int64(i))
				case errors.Is(err, durabletasks.ErrConflict):
					conflicts.Add(1)
				default:
					t.Errorf("Update: %v", err)
				}
			})
		}
		wg.Wait()
		got := mustGet(t, s, "a")
		if wins.Load() != 1 || conflicts.Load() != racers-1 || got.Version != int64(round+1) || got.StatusMessage != fmt.Sprint(winner.Load()) {
			t.Fatalf("round %d: %d wins, %d conflicts, version %d, message %q of winner %d",
				round, wins.Load(), conflicts.Load(), got.Version, got.StatusMessage, winner.Load())
		}
	}
	want := mustGet(t, s, "a")
	mustClose(t, s)
	equal(t, "after reopen", mustGet(t, mustOpen(t, dir, nil), "a"), want)
}

// Of many creates of one id exactly one succeeds.
func TestOneOfManyCreatesWins(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	for round := range 100 {
		id := fmt.Sprint(round)
		var wg sync.WaitGroup
		var wins atomic.Int64
		for range 8 {
			wg.Go(func() {
				switch err := s.Create(ctx, task(id)); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, durabletasks.ErrExists):
					t.Errorf("Create: %v", err)
				}
			})
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Fatalf("%d creates of one id succeeded", wins.Load())
		}
	}
}

func TestNothingIsAliased(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	vandalise := func(r durabletasks.Record) {
		for k := range r.InputRequests {
			r.InputRequests[k] = wire.MustParse(`"vandal"`)
		}
		r.InputResponses["vandal"] = wire.JSON{}
		r.Questions[0].Key = "vandal"
	}
	want := fullTask("a")
	given := want.Clone()
	mustCreate(t, s, given)
	vandalise(given)
	equal(t, "after Create's argument was changed", mustGet(t, s, "a"), want)
	vandalise(mustGet(t, s, "a"))
	equal(t, "after Get's answer was changed", mustGet(t, s, "a"), want)
	given = want.Clone()
	given.Questions = append(given.Questions, questions("z")...)
	want = given.Clone()
	want.Version = 1
	mustUpdate(t, s, given)
	vandalise(given)
	equal(t, "after Update's argument was changed", mustGet(t, s, "a"), want)
	_ = s.Scan(ctx, func(r durabletasks.Record) bool { vandalise(r); return true })
	equal(t, "after what Scan showed was changed", mustGet(t, s, "a"), want)
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	opts := &wal.Options{Now: c.now}
	s := mustOpen(t, dir, opts)
	short, long, never := task("short"), task("long"), task("never")
	short.TTL, never.TTL = time.Minute, durabletasks.NoLimit
	for _, r := range []durabletasks.Record{short, long, never} {
		mustCreate(t, s, r)
	}
	extended := mustGet(t, s, "long")
	extended.TTL = 2 * time.Hour
	mustUpdate(t, s, extended)
	reopen := func() {
		t.Helper()
		mustClose(t, s)
		s = mustOpen(t, dir, opts)
	}
	alive := func(when string, want ...string) {
		t.Helper()
		for _, id := range []string{"short", "long", "never"} {
			r, err := s.Get(ctx, id)
			found := err == nil
			if err != nil && !errors.Is(err, durabletasks.ErrNotFound) {
				t.Fatal(err)
			}
			if !found {
				if err := s.Update(ctx, task(id)); !errors.Is(err, durabletasks.ErrNotFound) {
					t.Errorf("%s: Update of expired %s: %v", when, id, err)
				}
			}
			if wanted := strings.Contains(strings.Join(want, " "), id); found != wanted {
				t.Errorf("%s: %s found: %v, want %v (%+v)", when, id, found, wanted, r)
			}
		}
	}
	c.advance(time.Minute - 1)
	alive("just before", "short", "long", "never")
	if n, err := s.Sweep(ctx, c.now()); n != 0 || err != nil {
		t.Errorf("Sweep before anything expired: %d, %v", n, err)
	}
	c.advance(1)
	alive("at the minute", "long", "never")
	reopen()
	alive("at the minute, reopened", "long", "never")
	c.advance(-1)
	alive("clock back, not swept", "short", "long", "never")
	c.advance(1)
	if n, err := s.Sweep(ctx, c.now()); n != 1 || err != nil {
		t.Errorf("Sweep: %d, %v, want 1", n, err)
	}
	if n, err := s.Sweep(ctx, c.now()); n != 0 || err != nil {
		t.Errorf("second Sweep: %d, %v, want 0", n, err)
	}
	c.advance(-time.Minute)
	alive("clock back, swept", "long", "never")
	reopen()
	alive("clock back, swept, reopened", "long", "never")
	mustCreate(t, s, short) // its id is free
	reopen()
	alive("created again", "short", "long", "never")
	if n, err := s.Sweep(ctx, epoch.Add(1000*time.Hour)); n != 2 || err != nil {
		t.Errorf("Sweep of a far time: %d, %v, want 2", n, err)
	}
	reopen()
	alive("swept by a time that the clock has not reached", "never")
}

// A create replaces an expired record with the same id, swept or not, and so
// does the log after a reopen.
func TestCreateOverExpired(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	opts := &wal.Options{Now: c.now}
	s := mustOpen(t, dir, opts)
	mustCreate(t, s, fullTask("other"))
	r := fullTask("a")
	r.TTL = time.Minute
	mustCreate(t, s, r)
	mustUpdate(t, s, r)
	c.advance(time.Hour)
	fresh := task("a")
	fresh.CreatedAt = c.now().UTC()
	mustCreate(t, s, fresh)
	equal(t, "created over an expired one", mustGet(t, s, "a"), fresh)
	if n, err := s.Sweep(ctx, c.now()); n != 0 || err != nil {
		t.Errorf("Sweep: %d, %v, want 0", n, err)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, opts)
	equal(t, "reopened", mustGet(t, s, "a"), fresh)
	equal(t, "the other", mustGet(t, s, "other"), fullTask("other"))
}

func TestScan(t *testing.T) {
	t.Parallel()
	dir, c := t.TempDir(), newClock()
	s := mustOpen(t, dir, &wal.Options{Now: c.now})
	want := map[string]bool{}
	for i := range 500 {
		r := task(fmt.Sprint(i))
		switch i % 5 {
		case 0:
			r.Status = durabletasks.StatusCompleted
		case 1:
			r.TTL = time.Minute
		case 2:
			r.Status = durabletasks.StatusInputRequired
			want[r.ID] = true
		default:
			want[r.ID] = true
		}
		mustCreate(t, s, r)
	}
	c.advance(time.Minute)
	mustClose(t, s)
	s = mustOpen(t, dir, &wal.Options{Now: c.now})
	got := map[string]bool{}
	err := s.Scan(ctx, func(r durabletasks.Record) bool {
		if got[r.ID] {
			t.Errorf("%s is shown twice", r.ID)
		}
		got[r.ID] = true
		mustUpdate(t, s, r) // visit may call the store
		return true
	})
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("Scan: %v, %d records, want %d", err, len(got), len(want))
	}
	n := 0
	if err := s.Scan(ctx, func(durabletasks.Record) bool { n++; return n < 3 }); err != nil || n != 3 {
		t.Errorf("Scan that stops: %v after %d records", err, n)
	}
}

func TestAfterClose(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	mustCreate(t, s, task("a"))
	mustClose(t, s)
	mustClose(t, s)
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	for _, ctx := range []context.Context{ctx, cancelled} {
		_, getErr := s.Get(ctx, "a")
		_, sweepErr := s.Sweep(ctx, epoch)
		for name, err := range map[string]error{
			"Create": s.Create(ctx, task("b")), "Get": getErr, "Update": s.Update(ctx, task("a")), "Sweep": sweepErr,
			"Compact": s.Compact(ctx), "Scan": s.Scan(ctx, func(durabletasks.Record) bool { return true }),
		} {
			if !errors.Is(err, durabletasks.ErrClosed) {
				t.Errorf("%s after Close: %v, want ErrClosed", name, err)
			}
		}
	}
}

func TestCancelledContext(t *testing.T) {
	t.Parallel()
	s := mustOpen(t, t.TempDir(), nil)
	mustCreate(t, s, task("a"))
	cancelled, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("a cause"))
	_, getErr := s.Get(cancelled, "a")
	next := task("a")
	next.StatusMessage = "x"
	_, sweepErr := s.Sweep(cancelled, epoch.Add(1000*time.Hour))
	for name, err := range map[string]error{
		"Create": s.Create(cancelled, task("b")), "Get": getErr, "Update": s.Update(cancelled, next), "Sweep": sweepErr,
		"Compact": s.Compact(cancelled), "Scan": s.Scan(cancelled, func(durabletasks.Record) bool { return true }),
	} {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a cancelled context: %v", name, err)
		}
	}
	if _, err := s.Get(ctx, "b"); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("a cancelled Create left something: %v", err)
	}
	equal(t, "a", mustGet(t, s, "a"), task("a"))
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir, &wal.Options{MaxRecordBytes: 1000})
	r := task("a")
	mustCreate(t, s, r)
	before := dirSize(t, dir)
	r.Result = wire.MustParse(`"` + strings.Repeat("x", 1000) + `"`)
	err := s.Update(ctx, r)
	var large *durabletasks.TooLargeError
	if !errors.As(err, &large) || !errors.Is(err, durabletasks.ErrTooLarge) || large.Limit != 1000 || large.Size < 1000 || large.Size > 1300 {
		t.Errorf("Update of a large record: %v", err)
	}
	big := r
	big.ID = "b"
	if err := s.Create(ctx, big); !errors.Is(err, durabletasks.ErrTooLarge) {
		t.Errorf("Create of a large record: %v", err)
	}
	if after := dirSize(t, dir); after != before {
		t.Errorf("refused records grew the directory from %d to %d bytes", before, after)
	}
	mustClose(t, s)

	// What a higher limit let in stays, and can shrink.
	s = mustOpen(t, dir, nil)
	mustUpdate(t, s, r)
	mustClose(t, s)
	s = mustOpen(t, dir, &wal.Options{MaxRecordBytes: 1000})
	got := mustGet(t, s, "a")
	if got.Result != r.Result {
		t.Error("the large result is not there under the lower limit")
	}
	more := got
	more.StatusMessage += strings.Repeat("x", 100)
	if err := s.Update(ctx, more); !errors.Is(err, durabletasks.ErrTooLarge) {
		t.Errorf("Update of a record that is still too large: %v", err)
	}
	got.CancelRequested = true // is never too much
	got = mustUpdate(t, s, got)
	got.Result = wire.JSON{}
	mustUpdate(t, s, got)
	if err := s.Update(ctx, from(3, more)); !errors.Is(err, durabletasks.ErrTooLarge) {
		t.Errorf("Update of a record that has become small: %v", err)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for field, opts := range map[string]*wal.Options{
		"MaxRecordBytes": {MaxRecordBytes: -1},
		"LockWait":       {LockWait: -1},
	} {
		dir := filepath.Join(t.TempDir(), "store")
		if _, err := wal.Open(dir, opts); !errors.Is(err, durabletasks.ErrInvalid) || !strings.Contains(err.Error(), "Options."+field) {
			t.Errorf("Open with a bad %s: %v", field, err)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("it left a directory: %v", err)
		}
	}
	if _, err := wal.Open(t.TempDir(), &wal.Options{MaxRecordBytes: 1<<30 + 1}); !errors.Is(err, durabletasks.ErrInvalid) {
		t.Errorf("Open with a MaxRecordBytes over 1 GiB: %v", err)
	}
}

func TestPermissions(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("Windows has no such permissions")
	}
	dir := filepath.Join(t.TempDir(), "a", "b")
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, task("a"))
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if info, err := os.Stat(d); err != nil || info.Mode().Perm() != 0o700 {
			t.Errorf("%s: %v, %v", d, info.Mode(), err)
		}
	}
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", e.Name(), info.Mode(), err)
		}
	}
	if len(entries) != 3 {
		t.Errorf("a new store has %d files, want LOCK, FORMAT and a segment", len(entries))
	}
}

// dirSize returns the size of the log in dir.
func dirSize(t testing.TB, dir string) (n int64) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && len(e.Name()) == 20 {
			n += info.Size()
		}
	}
	return n
}
