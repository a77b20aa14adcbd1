package wal_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// text is a JSON string of n bytes.
func text(n int) wire.JSON { return wire.MustParse(`"` + strings.Repeat("x", n-2) + `"`) }

// The directory never grows beyond three times its live records and a few
// segments, however often tasks are updated, and every record comes back.
func TestDiskStaysBounded(t *testing.T) {
	t.Parallel()
	const segment = 8 << 10
	for name, pick := range map[string]func(i, n int) int{
		"in turn":          func(i, n int) int { return i % n },
		"at random":        func(i, n int) int { return rand.IntN(n) },
		"always the first": func(i, n int) int { return 0 },
		"always the last":  func(i, n int) int { return n - 1 },
		"mostly a few": func(i, n int) int {
			if i%10 > 0 {
				return rand.IntN(n/10 + 1)
			}
			return rand.IntN(n)
		},
	} {
		for _, n := range []int{1, 20, 300} {
			t.Run(fmt.Sprintf("%s of %d", name, n), func(t *testing.T) {
				dir := ramDir(t)
				s, _ := openFaulty(t, dir, nil, segment)
				want := contents{}
				ids := make([]string, n)
				for i := range n {
					ids[i] = fmt.Sprint(i)
					mustCreate(t, s, task(ids[i]))
					want[ids[i]] = task(ids[i])
				}
				live := dirSize(t, dir)
				peak := int64(0)
				rounds := int(8*live/60) + 3000
				for i := range rounds {
					id := ids[pick(i, n)]
					r := want[id]
					r.StatusMessage = fmt.Sprint("page ", i)
					want[id] = mustUpdate(t, s, r)
					if i%64 == 0 {
						peak = max(peak, dirSize(t, dir))
					}
				}
				if limit := 3*live + 6*segment; peak > limit {
					t.Errorf("the log has grown to %d bytes, want at most %d (3 x %d and 6 segments)", peak, limit, live)
				}
				mustClose(t, s)
				s, _ = openFaulty(t, dir, nil, segment)
				for _, id := range ids {
					equal(t, id, mustGet(t, s, id), want[id])
				}
			})
		}
	}
}

// The size of what an update writes depends on the change, not on the record.
func TestDeltasWriteLittle(t *testing.T) {
	t.Parallel()
	large := task("large")
	large.Payload = text(1 << 20)
	large.Result = text(1 << 20)
	large.InputRequests = map[string]wire.JSON{}
	for i := range 10_000 {
		key := fmt.Sprintf("key-%08d", i)
		large.Questions = append(large.Questions, durabletasks.Question{Key: key})
		if i < 1000 {
			large.InputRequests[key] = wire.MustParse(`{"method":"elicitation/create"}`)
		}
	}
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, large)
	for name, change := range map[string]func(r *durabletasks.Record){
		"progress": func(r *durabletasks.Record) {
			r.StatusMessage = "page 7 of 100"
			r.LastUpdatedAt = r.LastUpdatedAt.Add(time.Second)
		},
		"cancel":     func(r *durabletasks.Record) { r.CancelRequested = true },
		"ttl":        func(r *durabletasks.Record) { r.TTL += time.Hour },
		"checkpoint": func(r *durabletasks.Record) { r.Checkpoint = wire.MustParse(`{"page":7}`) },
		"answer": func(r *durabletasks.Record) {
			r.InputResponses = map[string]wire.JSON{"key-00000001": wire.MustParse(`{"action":"accept"}`)}
		},
		"question":  func(r *durabletasks.Record) { r.Questions = append(r.Questions, questions("", "one more")[1]) },
		"new round": func(r *durabletasks.Record) { r.InputRequests, r.InputResponses = nil, nil },
	} {
		r := mustGet(t, s, "large")
		change(&r)
		before := dirSize(t, dir)
		r = mustUpdate(t, s, r)
		if n := dirSize(t, dir) - before; n > 150 {
			t.Errorf("%s has written %d bytes", name, n)
		}
		equal(t, name, mustGet(t, s, "large"), r)
	}
	want := mustGet(t, s, "large")
	mustClose(t, s)
	equal(t, "reopened", mustGet(t, mustOpen(t, dir, nil), "large"), want)
}

// Cleaning writes no more on average than the updates themselves, even when
// small changes are made to some tasks and large tasks lie between them.
func TestCleaningCostsNoMoreThanTheWrites(t *testing.T) {
	t.Parallel()
	const segment = 16 << 10
	dir := ramDir(t)
	s, f := openFaulty(t, dir, nil, segment)
	for i := range 40 {
		r := task(fmt.Sprint(i))
		if i%4 == 0 {
			r.Payload = text(20_000)
		}
		mustCreate(t, s, r)
	}
	live := dirSize(t, dir)
	const updates = 20_000
	peak, written := int64(0), f.bytes
	most := int64(0)
	want := map[string]durabletasks.Record{}
	for i := range updates {
		r := mustGet(t, s, fmt.Sprint(i%40))
		r.StatusMessage = fmt.Sprint("page ", i)
		before := f.bytes
		want[r.ID] = mustUpdate(t, s, r)
		most = max(most, f.bytes-before)
		peak = max(peak, s.LogBytes())
	}
	own := int64(updates * 70)
	if n := f.bytes - written; n > 5*own/2 {
		t.Errorf("%d bytes were written for updates of about %d", n, own)
	}
	if limit := int64(20_000 + 1000); most > limit {
		t.Errorf("an update has written %d bytes, want at most one large task's (%d)", most, limit)
	}
	if limit := 3*live + 6*segment; peak > limit {
		t.Errorf("the log has grown to %d bytes, want at most %d", peak, limit)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, nil)
	for id, r := range want {
		equal(t, id, mustGet(t, s, id), r)
	}
}

// Sweep alone shrinks a directory that nobody writes to.
func TestSweepGivesSpaceBack(t *testing.T) {
	t.Parallel()
	const segment = 8 << 10
	dir, c := ramDir(t), newClock()
	s, f := openFaulty(t, dir, &wal.Options{Now: c.now}, segment)
	const n = 3000
	kept := 0
	for i := range n {
		r := task(fmt.Sprint(i))
		if i%100 == 0 {
			r.TTL = durabletasks.NoLimit
			kept++
		}
		mustCreate(t, s, r)
	}
	full := dirSize(t, dir)
	writes := len(f.seen)
	if removed, err := s.Sweep(ctx, c.now()); removed != 0 || err != nil {
		t.Errorf("Sweep with nothing expired: %d, %v", removed, err)
	}
	if got := len(f.seen) - writes; got != 0 {
		t.Errorf("Sweep with nothing expired has taken %d steps to the disk: %v", got, f.seen[writes:])
	}
	c.advance(2 * time.Hour)
	if removed, err := s.Sweep(ctx, c.now()); removed != n-kept || err != nil {
		t.Errorf("Sweep: %d, %v, want %d", removed, err, n-kept)
	}
	live := full * int64(kept) / n
	if got, limit := dirSize(t, dir), 3*live+6*segment; got > limit {
		t.Errorf("after the sweep the log has %d bytes of %d, want at most %d", got, full, limit)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, &wal.Options{Now: newClock().now})
	got := 0
	if err := s.Scan(ctx, func(r durabletasks.Record) bool { got++; return true }); err != nil || got != kept {
		t.Errorf("after reopen %d tasks are there, want %d (%v)", got, kept, err)
	}
}

func TestCompact(t *testing.T) {
	t.Parallel()
	const segment = 8 << 10
	dir, c := ramDir(t), newClock()
	opts := &wal.Options{Now: c.now}
	s, f := openFaulty(t, dir, opts, segment)
	var ids []string
	for i := range 1000 {
		r := fullTask(fmt.Sprint(i))
		r.Questions = r.Questions[:3]
		if i%2 == 0 {
			r.TTL = time.Minute
		} else {
			ids = append(ids, r.ID)
		}
		mustCreate(t, s, r)
	}
	c.advance(time.Hour)
	want := read(t, s, ids)
	live := dirSize(t, dir) / 2
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if got, limit := dirSize(t, dir), live+2*segment; got > limit {
		t.Errorf("after Compact the log has %d bytes, want at most %d", got, limit)
	}
	bytes := f.bytes
	if err := s.Compact(ctx); err != nil {
		t.Fatal(err)
	}
	if f.bytes != bytes {
		t.Error("a second Compact has written something")
	}
	mustClose(t, s)
	s, _ = openFaulty(t, dir, opts, segment)
	if position([]contents{want}, read(t, s, ids)) != 0 {
		t.Error("Compact has changed records")
	}
	if _, err := s.Get(ctx, "0"); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("an expired record after Compact: %v", err)
	}
}

// A removal that fails before it has begun is reported and tried again later,
// and no mutation fails because of it.
func TestCleaningFails(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	var reported []error
	s, f := openFaulty(t, dir, &wal.Options{OnCleanError: func(err error) {
		reported = append(reported, err)
		panic("the hook is the user's")
	}}, 4<<10)
	mustCreate(t, s, task("a"))
	var failed time.Time
	f.hit = func() { failed = time.Now() }
	f.arm("drop", 0)
	r := task("a")
	for i := range 2000 {
		r.StatusMessage = fmt.Sprint(i)
		r = mustUpdate(t, s, r)
	}
	if len(reported) == 0 || !errors.Is(reported[0], errDisk) {
		t.Errorf("reported: %v", reported)
	}
	n := slices.Index(f.seen, "drop")
	if n < 0 {
		t.Fatal("nothing was removed")
	}
	if slices.Contains(f.seen[n+1:], "drop") && time.Since(failed) < time.Second { // the pause
		t.Error("no pause after a removal that failed")
	}
	if err := s.Compact(ctx); err != nil {
		t.Errorf("Compact: %v", err)
	}
	if got := dirSize(t, dir); got > 4*(4<<10) {
		t.Errorf("after Compact the log has %d bytes", got)
	}
	mustClose(t, s)
	equal(t, "a", mustGet(t, mustOpen(t, dir, nil), "a"), r)
}

// endingContext is done when it has been looked at often enough.
type endingContext struct {
	context.Context
	looks atomic.Int64 // that are left
}

func (c *endingContext) Err() error {
	if c.looks.Add(-1) < 0 {
		return context.Canceled
	}
	return nil
}

// A Sweep takes several steps when there is much to remove. Whenever its
// context ends, it removes and counts everything or nothing.
func TestCancelledSweepIsWhole(t *testing.T) {
	t.Parallel()
	const n = 10_050 // more than one step removes
	c := newClock()
	s := mustOpen(t, ramDir(t), &wal.Options{Now: c.now})
	for i := range n {
		r := task(fmt.Sprint(i))
		r.TTL = time.Hour + time.Duration(i)*time.Millisecond
		mustCreate(t, s, r)
	}
	c.advance(2 * time.Hour)
	for looks := int64(0); ; looks++ {
		ending := &endingContext{Context: ctx}
		ending.looks.Store(looks)
		removed, err := s.Sweep(ending, c.now())
		if err == nil {
			if removed != n {
				t.Errorf("Sweep whose context ends after %d looks: %d, want %d", looks, removed, n)
			}
			return
		}
		if removed != 0 || !errors.Is(err, context.Canceled) {
			t.Fatalf("Sweep whose context ends after %d looks: %d, %v", looks, removed, err)
		}
	}
}
