package wal_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// childHold opens a directory and holds it until it is killed.
func childHold(args []string) {
	s, err := wal.Open(args[0], fixed(nil))
	if err != nil {
		exit("%v", err)
	}
	fmt.Println("open")
	waitForKill()
	_ = s.Close() // keeps s alive till here
}

func wantLocked(t *testing.T, dir string, err error, pid int) {
	t.Helper()
	var locked *wal.LockedError
	if !errors.Is(err, wal.ErrLocked) || !errors.As(err, &locked) || locked.Dir != dir || locked.PID != pid {
		t.Errorf("Open of a directory in use: %v, want a LockedError with %s and process %d", err, dir, pid)
	}
}

func TestSecondOpenInOneProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	_, err := wal.Open(dir, nil)
	wantLocked(t, dir, err, os.Getpid())
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(dir, link); err == nil {
		_, err := wal.Open(link, nil)
		wantLocked(t, link, err, os.Getpid())
	}
	mustCreate(t, s, task("a")) // the first one still works
	mustClose(t, s)
	s = mustOpen(t, dir, nil)
	equal(t, "a", mustGet(t, s, "a"), task("a"))
}

// The second process is refused before it reads or changes anything, even if
// the directory looks as if it needed repair. The lock ends with its process.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, nil))
	holder := start(t, "hold", dir)
	if line, _ := holder.line(); line != "open" {
		t.Fatalf("child says %q", line)
	}
	segment := filepath.Join(dir, "00000000000000000001")
	f, err := os.OpenFile(segment, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Write([]byte{200, 1, 'x'}); err != nil { // as if a write was under way
		t.Fatal(err)
	}
	f.Close()
	before := snapshot(t, dir)
	_, err = wal.Open(dir, nil)
	wantLocked(t, dir, err, holder.Process.Pid)
	sameFiles(t, before, snapshot(t, dir))
	holder.kill()
	s := mustOpen(t, dir, nil)
	if s.Torn() == nil {
		t.Error("the torn end is not reported")
	}
}

func TestLockWait(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	opened := make(chan error)
	go func() {
		second, err := wal.Open(dir, &wal.Options{LockWait: time.Minute})
		if err == nil {
			err = second.Close()
		}
		opened <- err
	}()
	mustClose(t, s)
	if err := <-opened; err != nil {
		t.Errorf("Open that waits for the lock: %v", err)
	}

	s = mustOpen(t, dir, nil)
	_, err := wal.Open(dir, &wal.Options{LockWait: time.Millisecond})
	wantLocked(t, dir, err, os.Getpid())
	cancelled, cancel := context.WithCancel(ctx)
	go cancel()
	if _, err := wal.OpenContext(cancelled, dir, &wal.Options{LockWait: time.Hour}); !errors.Is(err, context.Canceled) {
		t.Errorf("OpenContext that is cancelled: %v", err)
	}
	mustCreate(t, s, task("a"))
}

// Close releases the directory even while a child process has the locked files
// open, as every child has between its fork and its exec.
func TestLockIsReleasedThoughAChildHasTheFiles(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("children do not inherit files on Windows")
	}
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	startWith(t, s.LockFiles(), "sleep")
	mustClose(t, s)
	mustClose(t, mustOpen(t, dir, nil))
}

// Only the lock counts. The file's content is for the error's text.
func TestLockFileContentMeansNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mustClose(t, mustOpen(t, dir, nil))
	for _, content := range []string{"", "1\n", "999999999999999999999\n", "garbage"} {
		if err := os.WriteFile(filepath.Join(dir, "LOCK"), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		mustClose(t, mustOpen(t, dir, nil))
	}
}

// Another program may remove the lock file of a running store. A second process
// is still refused, and the store goes on.
func TestLockFileRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, task("a"))
	if err := os.Remove(filepath.Join(dir, "LOCK")); err != nil {
		t.Skip("this system does not remove a file that is open")
	}
	if _, err := wal.Open(dir, nil); !errors.Is(err, wal.ErrLocked) {
		t.Fatalf("Open of a running store whose lock file was removed: %v", err)
	}
	mustCreate(t, s, task("b"))
	mustClose(t, s)
	s = mustOpen(t, dir, nil)
	equal(t, "a", mustGet(t, s, "a"), task("a"))
	equal(t, "b", mustGet(t, s, "b"), task("b"))
}

// When the directory of a running store is moved and another store is created
// under its name, the first one does not touch the second one's files. It fails
// when it starts a segment or removes one.
func TestDirectoryReplaced(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		what string
		do   func(s *wal.Store, c *clock) error
	}{
		{"roll", func(s *wal.Store, _ *clock) error {
			for i := range 100 {
				if err := s.Create(ctx, task(fmt.Sprint("late-", i))); err != nil {
					return err
				}
			}
			return nil
		}},
		{"drop", func(s *wal.Store, c *clock) error {
			c.advance(24 * time.Hour)
			if _, err := s.Sweep(ctx, c.now()); err != nil {
				return err
			}
			return s.Create(ctx, task("late"))
		}},
	} {
		t.Run(tt.what, func(t *testing.T) {
			dir, c := filepath.Join(t.TempDir(), "tasks"), newClock()
			first, _ := openFaulty(t, dir, &wal.Options{Now: c.now}, 1000)
			early := task("early")
			early.TTL = durabletasks.NoLimit
			mustCreate(t, first, early)
			for i := range 40 {
				r := task(fmt.Sprint("early-", i))
				r.CreatedAt, r.TTL = c.now().UTC(), time.Hour
				mustCreate(t, first, r)
			}
			moved := dir + "-moved"
			if err := os.Rename(dir, moved); err != nil {
				t.Skip("this system does not move a directory that is in use")
			}
			second, _ := openFaulty(t, dir, nil, 1000)
			for i := range 40 {
				mustCreate(t, second, task(fmt.Sprint("second-", i)))
			}
			before := snapshot(t, dir)
			if err := tt.do(first, c); !errors.Is(err, wal.ErrFailed) {
				t.Errorf("%s in a directory that was replaced: %v", tt.what, err)
			}
			sameFiles(t, before, snapshot(t, dir))
			_ = first.Close() // it has failed
			mustClose(t, second)
			second = mustOpen(t, dir, nil)
			for i := range 40 {
				mustGet(t, second, fmt.Sprint("second-", i))
			}
			equal(t, "early", mustGet(t, mustOpen(t, moved, nil), "early"), early)
		})
	}
}

// A store stays in the directory in which it was opened when a symbolic link
// in its path changes.
func TestLinkRetargeted(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	link := filepath.Join(parent, "current")
	for _, name := range []string{"one", "two"} {
		if err := os.Mkdir(filepath.Join(parent, name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(filepath.Join(parent, "one"), link); err != nil {
		t.Skip("this system does not make symbolic links")
	}
	s, _ := openFaulty(t, link, nil, 1000)
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(parent, "two"), link); err != nil {
		t.Fatal(err)
	}
	for i := range 40 {
		mustCreate(t, s, task(fmt.Sprint(i)))
	}
	mustClose(t, s)
	s = mustOpen(t, filepath.Join(parent, "one"), nil)
	for i := range 40 {
		mustGet(t, s, fmt.Sprint(i))
	}
	if files := snapshot(t, filepath.Join(parent, "two")); len(files) > 0 {
		t.Errorf("the store has written to %v", files)
	}
}
