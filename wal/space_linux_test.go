package wal_test

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// fillUp creates tasks until that fails, and returns how many there are.
func fillUp(s *wal.Store) (int, error) {
	for i := 0; ; i++ {
		r := task(fmt.Sprint("task-", i))
		r.Payload = text(300 + i%7*100)
		if err := s.Create(ctx, r); err != nil {
			return i, err
		}
	}
}

// wantTasks requires the tasks that fillUp has created, and at most one more.
func wantTasks(t *testing.T, s *wal.Store, n int) {
	t.Helper()
	for i := range n {
		if got := mustGet(t, s, fmt.Sprint("task-", i)); got.Payload != text(300+i%7*100) {
			t.Errorf("task %d has changed", i)
		}
	}
	if _, err := s.Get(ctx, fmt.Sprint("task-", n+1)); !errors.Is(err, durabletasks.ErrNotFound) {
		t.Errorf("a task that was never written: %v", err)
	}
}

// On a disk that is full the write that does not fit fails, everything before
// it is there, even if the store is opened while the disk is still full, and
// the store goes on once there is space again.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	for _, segment := range []int{4 << 10, 1 << 20} {
		t.Run(fmt.Sprint("segment=", segment), func(t *testing.T) {
			mount := t.TempDir()
			if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=256k"); err != nil {
				t.Skipf("a small file system cannot be mounted here: %v", err)
			}
			t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
			ballast := filepath.Join(mount, "ballast")
			if err := os.WriteFile(ballast, make([]byte, 64<<10), 0o600); err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(mount, "store")
			s, err := wal.OpenSeam(dir, fixed(nil), segment, nil)
			if err != nil {
				t.Fatal(err)
			}
			n, err := fillUp(s)
			if !errors.Is(err, wal.ErrOutcomeUnknown) || !errors.Is(err, syscall.ENOSPC) {
				t.Errorf("Create on a full disk: %v, want ErrOutcomeUnknown and ENOSPC", err)
			}
			wantTasks(t, s, n)
			if err := s.Create(ctx, task("x")); !errors.Is(err, wal.ErrFailed) {
				t.Errorf("Create after it: %v", err)
			}
			_ = s.Close()

			before := snapshot(t, dir)
			s, err = wal.OpenSeam(dir, fixed(nil), segment, nil)
			if err == nil {
				wantTasks(t, s, n)
				_ = s.Close()
			} else {
				if errors.Is(err, wal.ErrCorrupt) || !errors.Is(err, syscall.ENOSPC) {
					t.Errorf("Open on a full disk: %v, want ENOSPC", err)
				}
				sameFiles(t, before, snapshot(t, dir))
			}

			if err := os.Remove(ballast); err != nil {
				t.Fatal(err)
			}
			s, err = wal.OpenSeam(dir, fixed(nil), segment, nil)
			if err != nil {
				t.Fatal(err)
			}
			wantTasks(t, s, n)
			mustCreate(t, s, task("after"))
			mustClose(t, s)
			s = mustOpen(t, dir, nil)
			wantTasks(t, s, n)
			equal(t, "after", mustGet(t, s, "after"), task("after"))
			mustClose(t, s)
		})
	}
}

var _ = register("limited", childLimited)

// childLimited fills a store until its files may not grow any more. Arguments:
// directory, largest size of a file.
func childLimited(args []string) {
	signal.Ignore(syscall.SIGXFSZ)
	limit, _ := strconv.ParseUint(args[1], 10, 64)
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: limit, Max: limit}); err != nil {
		exit("%v", err)
	}
	s, err := wal.Open(args[0], fixed(nil))
	if err != nil {
		exit("%v", err)
	}
	n, err := fillUp(s)
	if !errors.Is(err, wal.ErrOutcomeUnknown) || !errors.Is(err, syscall.EFBIG) {
		exit("%v", err)
	}
	if err := s.Create(ctx, task("x")); !errors.Is(err, wal.ErrFailed) {
		exit("%v", err)
	}
	_ = s.Close()
	fmt.Println(n)
}

var _ = register("scarce", childScarce)

// childScarce opens a store, opens files until no descriptor is free, and goes
// on committing, so that segments are filled and dead ones are to be removed.
// Argument: directory.
func childScarce(args []string) {
	cleanErrors := 0
	s, err := wal.OpenSeam(args[0], fixed(&wal.Options{OnCleanError: func(error) { cleanErrors++ }}), 4<<10, nil)
	if err != nil {
		exit("%v", err)
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: 64, Max: 64}); err != nil {
		exit("%v", err)
	}
	var taken []*os.File
	for err == nil {
		var f *os.File
		f, err = os.Open(os.DevNull)
		taken = append(taken, f)
	}
	if !errors.Is(err, syscall.EMFILE) {
		exit("%v", err)
	}
	for i := range 100 {
		r := task(fmt.Sprint("task-", i))
		r.Payload = text(300 + i%7*100)
		if err := s.Create(ctx, r); err != nil {
			exit("Create %d: %v", i, err)
		}
		for n := range 30 {
			r.StatusMessage = fmt.Sprintf("page %d of 30, and it is a long one", n)
			if err := s.Update(ctx, r); err != nil {
				exit("Update %d: %v", i, err)
			}
			r.Version++
		}
	}
	if cleanErrors == 0 {
		exit("nothing was to be removed")
	}
	if err := s.Close(); err != nil {
		exit("Close: %v", err)
	}
	runtime.KeepAlive(taken)
	fmt.Println("done")
}

// A store goes on writing when the process has no file descriptor left. It
// cannot remove dead segments then, which it reports.
func TestNoFreeDescriptor(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	if line, _ := start(t, "scarce", dir).line(); line != "done" {
		t.Fatalf("child says %q", line)
	}
	s, _ := openFaulty(t, dir, nil, 4<<10)
	wantTasks(t, s, 100)
	if err := s.Audit(); err != nil {
		t.Error(err)
	}
}

// A limit on the size of files may fall within an entry, at its first byte, or
// between two entries.
func TestFileSizeLimit(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	if err := s.Create(ctx, func() durabletasks.Record { r := task("task-0"); r.Payload = text(300); return r }()); err != nil {
		t.Fatal(err)
	}
	boundary := dirSize(t, dir)
	mustClose(t, s)
	for _, limit := range []int64{boundary - 1, boundary, boundary + 1, 2000, 5000} {
		dir := ramDir(t)
		c := start(t, "limited", dir, fmt.Sprint(limit))
		line, ok := c.line()
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if !ok || err != nil {
			t.Fatalf("limit %d: child says %q", limit, line)
		}
		s := mustOpen(t, dir, nil)
		wantTasks(t, s, n)
		mustCreate(t, s, task("after"))
		mustClose(t, s)
	}
}

// Open on media that cannot be written to is a file system error.
func TestReadOnlyMedia(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	if err := syscall.Mount("tmpfs", mount, "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("a small file system cannot be mounted here: %v", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(mount, syscall.MNT_DETACH) })
	dir := filepath.Join(mount, "store")
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, task("a"))
	mustClose(t, s)
	before := snapshot(t, dir)
	if err := syscall.Mount("", mount, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skipf("a file system cannot be made read-only here: %v", err)
	}
	for _, dir := range []string{dir, filepath.Join(mount, "new")} {
		if _, err := wal.Open(dir, nil); !errors.Is(err, syscall.EROFS) || errors.Is(err, wal.ErrCorrupt) {
			t.Errorf("Open(%s) on read-only media: %v, want EROFS", dir, err)
		}
	}
	sameFiles(t, before, snapshot(t, dir))
}
