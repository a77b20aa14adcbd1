package wal_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// fault fails the n-th of the steps that a store takes to the disk.
type fault struct {
	mu    sync.Mutex
	only  string // if not empty, only steps of this name count
	after int    // how many pass; negative: all
	err   error
	hit   func() // called before the failure
	seen  []string
	bytes int64 // that were written
}

func (f *fault) step(name string, bytes int) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen = append(f.seen, name)
	f.bytes += int64(bytes)
	if f.after < 0 || f.only != "" && f.only != name {
		return nil
	}
	if f.after > 0 {
		f.after--
		return nil
	}
	f.after = -1
	if f.hit != nil {
		f.hit()
	}
	return f.err
}

func (f *fault) arm(only string, after int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.only, f.after = only, after
}

var errDisk = &fs.PathError{Op: "write", Path: "disk", Err: errors.New("broken disk")}

func openFaulty(t testing.TB, dir string, opts *wal.Options, segment int) (*wal.Store, *fault) {
	t.Helper()
	f := &fault{after: -1, err: errDisk}
	s, err := wal.OpenSeam(dir, fixed(opts), segment, f.step)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return s, f
}

// After the first failed write or sync the caller learns that the outcome is
// unknown, later writes are refused, reads return what was acknowledged, Close
// releases the directory, and a reopen decides.
func TestFailureStopsWriting(t *testing.T) {
	t.Parallel()
	for _, step := range []string{"write", "sync", "sync directory"} {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			s, f := openFaulty(t, dir, &wal.Options{Sync: true}, 1000)
			want := task("a")
			mustCreate(t, s, want)
			f.arm(step, 0)
			next := want
			next.StatusMessage = "new"
			if step == "sync directory" {
				next.StatusMessage = strings.Repeat("x", 2000) // ends the segment
			}
			err := s.Update(ctx, next)
			if !errors.Is(err, wal.ErrOutcomeUnknown) || !errors.Is(err, wal.ErrFailed) || !errors.Is(err, errDisk) {
				t.Fatalf("Update whose %s fails: %v, want ErrOutcomeUnknown and the cause", step, err)
			}
			equal(t, "after the failure", mustGet(t, s, "a"), want)
			_, sweepErr := s.Sweep(ctx, epoch.AddDate(1, 0, 0))
			for name, err := range map[string]error{
				"Create": s.Create(ctx, task("b")), "Update": s.Update(ctx, next), "Sweep": sweepErr, "Compact": s.Compact(ctx),
			} {
				if !errors.Is(err, wal.ErrFailed) || errors.Is(err, wal.ErrOutcomeUnknown) {
					t.Errorf("%s after the failure: %v, want ErrFailed alone", name, err)
				}
			}
			if _, err := s.Get(ctx, "b"); !errors.Is(err, durabletasks.ErrNotFound) {
				t.Errorf("a refused Create is visible: %v", err)
			}
			mustClose(t, s)
			s = mustOpen(t, dir, nil)
			got := mustGet(t, s, "a")
			next.Version = 1
			if step == "write" {
				equal(t, "reopened", got, want)
			} else {
				equal(t, "reopened", got, next)
			}
			mustUpdate(t, s, got)
		})
	}
}

// A write that fails halfway leaves a torn end, and nothing is written after it.
func TestHalfAWrite(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, f := openFaulty(t, dir, nil, 1<<20)
	mustCreate(t, s, task("a"))
	f.hit = func() {
		file, err := os.OpenFile(filepath.Join(dir, "00000000000000000001"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Error(err)
			return
		}
		defer file.Close()
		if _, err := file.WriteString("\xf0\x01half"); err != nil {
			t.Error(err)
		}
	}
	f.arm("write", 0)
	if err := s.Create(ctx, task("b")); !errors.Is(err, wal.ErrOutcomeUnknown) {
		t.Fatalf("Create: %v", err)
	}
	if err := s.Create(ctx, task("c")); !errors.Is(err, wal.ErrFailed) {
		t.Fatalf("Create: %v", err)
	}
	mustClose(t, s)
	s = mustOpen(t, dir, nil)
	if s.Torn() == nil {
		t.Error("the half write is not reported")
	}
	equal(t, "a", mustGet(t, s, "a"), task("a"))
	mustCreate(t, s, task("c"))
	mustClose(t, s)
	s = mustOpen(t, dir, nil)
	equal(t, "c", mustGet(t, s, "c"), task("c"))
}

// blocked is a store whose writes wait until they are let go.
type blocked struct {
	*wal.Store
	at   chan struct{} // a write has begun
	free chan struct{} // let it go
}

func openBlocked(t *testing.T, opts *wal.Options) *blocked {
	t.Helper()
	b := &blocked{at: make(chan struct{}), free: make(chan struct{})}
	var armed bool
	s, err := wal.OpenSeam(t.TempDir(), fixed(opts), 1<<20, func(step string, _ int) error {
		if step == "write" && armed {
			b.at <- struct{}{}
			<-b.free
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	mustCreate(t, s, task("a"))
	armed = true
	b.Store = s
	return b
}

// While a write is blocked, reads return what was committed before it.
func TestReadsDoNotWaitForWrites(t *testing.T) {
	t.Parallel()
	b := openBlocked(t, nil)
	done := make(chan error)
	go func() {
		next := task("a")
		next.StatusMessage = "new"
		done <- b.Update(ctx, next)
	}()
	<-b.at
	equal(t, "during the write", mustGet(t, b.Store, "a"), task("a"))
	n := 0
	if err := b.Scan(ctx, func(durabletasks.Record) bool { n++; return true }); err != nil || n != 1 {
		t.Errorf("Scan during the write: %v, %d records", err, n)
	}
	b.free <- struct{}{}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if got := mustGet(t, b.Store, "a"); got.StatusMessage != "new" {
		t.Error("the update is not visible after it was acknowledged")
	}
}

// A call whose context ends while it waits for another call's write leaves
// nothing. A call whose context ends during its own write waits for the write.
func TestContextEndsWhileWaiting(t *testing.T) {
	t.Parallel()
	b := openBlocked(t, nil)
	first := make(chan error)
	firstCtx, cancelFirst := context.WithCancel(ctx)
	go func() { first <- b.Create(firstCtx, task("first")) }()
	<-b.at
	cancelFirst() // too late
	second := make(chan error)
	secondCtx, cancelSecond := context.WithCancel(ctx)
	go func() { second <- b.Create(secondCtx, task("second")) }()
	cancelSecond()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("Create that was cancelled while it waited: %v", err)
	}
	b.free <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("Create that was cancelled during its write: %v", err)
	}
	equal(t, "first", mustGet(t, b.Store, "first"), task("first"))
	if _, err := b.Get(ctx, "second"); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("second: %v, want ErrNotFound", err)
	}
}

// Calls that wait during a write are committed together.
func TestWaitersShareOneWrite(t *testing.T) {
	t.Parallel()
	b := openBlocked(t, &wal.Options{Sync: true})
	results := make(chan error)
	go func() { results <- b.Create(ctx, task("first")) }()
	<-b.at
	const waiters = 20
	var started sync.WaitGroup
	for i := range waiters {
		started.Add(1)
		go func() {
			started.Done()
			results <- b.Create(ctx, task(fmt.Sprint("waiter-", i)))
		}()
	}
	started.Wait()
	b.WaitQueued(waiters)
	b.free <- struct{}{}
	<-b.at // one more write, for all
	b.free <- struct{}{}
	for range 1 + waiters {
		if err := <-results; err != nil {
			t.Errorf("Create: %v", err)
		}
	}
	for i := range waiters {
		mustGet(t, b.Store, fmt.Sprint("waiter-", i))
	}
}

// Close lets the write in progress finish, and refuses calls that wait.
func TestCloseWhileWriting(t *testing.T) {
	t.Parallel()
	b := openBlocked(t, nil)
	first, second, closed := make(chan error), make(chan error), make(chan error)
	go func() { first <- b.Create(ctx, task("first")) }()
	<-b.at
	go func() { second <- b.Create(ctx, task("second")) }()
	b.WaitQueued(1)
	go func() { closed <- b.Close() }()
	if err := <-second; !errors.Is(err, durabletasks.ErrClosed) {
		t.Errorf("Create that waited: %v, want ErrClosed", err)
	}
	b.free <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("Create that was being written: %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("Close: %v", err)
	}
}

// A directory that cannot be used is a file system error, not corruption, and
// nothing in it is changed.
func TestUnusableDirectory(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	file := filepath.Join(parent, "file")
	if err := os.WriteFile(file, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		_, err := wal.Open(dir, nil)
		var path *fs.PathError
		if !errors.As(err, &path) || errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("Open(%s): %v, want a PathError", dir, err)
		}
	}
	if data, _ := os.ReadFile(file); string(data) != "precious" {
		t.Error("the file in the way was changed")
	}
	if os.Getuid() == 0 {
		return // root may write everywhere
	}
	dir := filepath.Join(parent, "readonly")
	mustClose(t, mustOpen(t, dir, nil))
	if err := os.Chmod(filepath.Join(dir, "LOCK"), 0o400); err != nil {
		t.Fatal(err)
	}
	if _, err := wal.Open(dir, nil); !errors.Is(err, fs.ErrPermission) {
		t.Errorf("Open of a directory without permission: %v", err)
	}
}

// A call that is in another call's batch waits for the outcome, even if its
// context ends.
func TestContextEndsWhileInABatch(t *testing.T) {
	t.Parallel()
	b := openBlocked(t, nil)
	results := make(chan error, 3)
	go func() { results <- b.Create(ctx, task("first")) }()
	<-b.at
	go func() { results <- b.Create(ctx, task("second")) }()
	b.WaitQueued(1)
	thirdCtx, cancelThird := context.WithCancel(ctx)
	third := make(chan error)
	go func() { third <- b.Create(thirdCtx, task("third")) }()
	b.WaitQueued(2)
	b.free <- struct{}{}
	<-b.at // second writes for third too
	cancelThird()
	select {
	case err := <-third:
		t.Errorf("Create returned during its write: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	b.free <- struct{}{}
	if err := <-third; err != nil {
		t.Errorf("Create that was cancelled while it was in a batch: %v", err)
	}
	mustGet(t, b.Store, "third")
}

// An update that waits while a create replaces its expired record finds nothing.
func TestUpdateBehindCreateOverExpired(t *testing.T) {
	t.Parallel()
	c := newClock()
	b := openBlocked(t, &wal.Options{Now: c.now})
	results := make(chan error, 1)
	go func() { results <- b.Create(ctx, task("first")) }()
	<-b.at
	c.advance(2 * time.Hour)
	fresh := task("a")
	fresh.StatusMessage = "fresh"
	fresh.TTL = durabletasks.NoLimit
	create, update := make(chan error), make(chan error)
	go func() { create <- b.Create(ctx, fresh) }()
	b.WaitQueued(1)
	c.advance(-2 * time.Hour)
	go func() { update <- b.Update(ctx, task("a")) }()
	b.WaitQueued(2)
	b.free <- struct{}{}
	<-b.at
	b.free <- struct{}{}
	if err := <-create; err != nil {
		t.Errorf("Create over an expired record: %v", err)
	}
	if err := <-update; !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("Update behind it: %v, want ErrNotFound", err)
	}
	equal(t, "a", mustGet(t, b.Store, "a"), fresh)
}

// A panic during a commit is a failure like any other: no call hangs, and
// nothing is written after it.
func TestPanicWhileCommitting(t *testing.T) {
	t.Parallel()
	at, free := make(chan struct{}), make(chan struct{})
	writes := 0
	s, err := wal.OpenSeam(t.TempDir(), fixed(nil), 1<<20, func(step string, _ int) error {
		if step == "write" {
			switch writes++; writes {
			case 2:
				at <- struct{}{}
				<-free
			case 3:
				panic("as a bug would")
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	first := make(chan error)
	go func() { first <- s.Create(ctx, task("first")) }()
	<-at
	results := make(chan error)
	for i := range 3 {
		go func() {
			defer func() {
				if p := recover(); p != nil {
					results <- fmt.Errorf("panicked: %v", p)
				}
			}()
			results <- s.Create(ctx, task(fmt.Sprint(i)))
		}()
	}
	s.WaitQueued(3)
	free <- struct{}{}
	if err := <-first; err != nil {
		t.Errorf("the Create before the panic: %v", err)
	}
	panicked, unknown := 0, 0
	for range 3 {
		switch err := <-results; {
		case errors.Is(err, wal.ErrOutcomeUnknown):
			unknown++
		case err != nil && strings.HasPrefix(err.Error(), "panicked"):
			panicked++
		default:
			t.Errorf("Create: %v", err)
		}
	}
	if panicked != 1 || unknown != 2 {
		t.Errorf("%d calls panicked and %d outcomes are unknown, want 1 and 2", panicked, unknown)
	}
	if err := s.Create(ctx, task("later")); !errors.Is(err, wal.ErrFailed) {
		t.Errorf("Create after it: %v", err)
	}
	mustGet(t, s, "first")
	mustClose(t, s)
}

// Without a logger the end of all writing is logged by slog.Default, and
// nothing else is.
func TestFailureIsLoggedWithoutALogger(t *testing.T) {
	var out strings.Builder
	old := slog.Default()
	t.Cleanup(func() { slog.SetDefault(old) })
	slog.SetDefault(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	torn := snapshot(t, dir)
	torn["00000000000000000001"] += "\x7ftorn"
	torn.restore(t, dir)
	f := &fault{after: -1, err: errDisk}
	s, err := wal.OpenSeam(dir, &wal.Options{Now: newClock().now}, 4<<10, f.step)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if s.Torn() == nil {
		t.Fatal("no torn end was removed")
	}
	mustCreate(t, s, task("a"))
	f.arm("drop", 0)
	r := task("a")
	for i := range 500 {
		r.StatusMessage = fmt.Sprint(i)
		r = mustUpdate(t, s, r)
	}
	if !slices.Contains(f.seen, "drop") {
		t.Fatal("cleaning has not failed")
	}
	if out.Len() > 0 {
		t.Errorf("a torn end and a failure to clean are logged: %s", out.String())
	}
	f.arm("write", 0)
	if err := s.Create(ctx, task("b")); !errors.Is(err, wal.ErrOutcomeUnknown) {
		t.Errorf("Create whose write fails: %v", err)
	}
	_ = s.Create(ctx, task("c"))
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=ERROR") || !strings.Contains(got, "writing failed") || !strings.Contains(got, "broken disk") {
		t.Errorf("logged %q, want one error", got)
	}
}

// A logger that is set receives the repairs, too.
func TestLogger(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	torn := snapshot(t, dir)
	torn["00000000000000000001"] += "\x7ftorn"
	torn.restore(t, dir)
	mustClose(t, mustOpen(t, dir, &wal.Options{Logger: slog.New(slog.NewTextHandler(&out, nil))}))
	if got := out.String(); strings.Count(got, "\n") != 1 || !strings.Contains(got, "level=WARN") || !strings.Contains(got, "bytes=5") {
		t.Errorf("logged %q, want one warning", got)
	}
}
