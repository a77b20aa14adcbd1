package wal

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const lockName = "LOCK"

// lockPoll is how often a waiting open looks again.
const lockPoll = 25 * time.Millisecond

// dirLock is an exclusive lock on a directory. The operating system gives it
// up when the process dies, so the file's existence means nothing and it is
// never removed: otherwise two processes could lock two files of one name.
type dirLock struct {
	dir  string
	file *os.File
}

// lockDir locks dir. It tries for as long as wait and ctx allow, and at least
// once.
func lockDir(ctx context.Context, dir string, wait time.Duration) (*dirLock, error) {
	deadline := time.Now().Add(wait)
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		file, held, err := tryLock(filepath.Join(dir, lockName))
		if err != nil {
			return nil, fmt.Errorf("wal: lock the directory: %w", err)
		}
		if !held {
			return &dirLock{dir, file}, nil
		}
		left := time.Until(deadline)
		if left <= 0 {
			return nil, &LockedError{Dir: dir, PID: holder(dir)}
		}
		timer := time.NewTimer(min(left, lockPoll))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryLock locks the file at path, which it creates if need be, and notes this
// process in it. It reports whether somebody else holds the lock.
func tryLock(path string) (file *os.File, held bool, err error) {
	for {
		file, err = os.OpenFile(path, os.O_RDWR|os.O_CREATE, filePerm)
		if err != nil {
			return nil, false, err
		}
		if held, err = lockFile(file); held || err != nil {
			_ = file.Close() // nothing was written
			return nil, held, err
		}
		mine, err := file.Stat()
		if err == nil {
			var there os.FileInfo
			if there, err = os.Stat(path); err == nil && os.SameFile(mine, there) {
				break
			}
		}
		_ = file.Close() // nothing was written
		if err != nil && !os.IsNotExist(err) {
			return nil, false, err
		}
		// Somebody has put another file there since it was opened.
	}
	// A fixed length: on a full disk the line of the last owner can still be
	// overwritten. The number is only for the text of an error.
	if _, err := file.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); err != nil {
		_ = file.Close()
		return nil, false, err
	}
	return file, false, nil
}

// holder returns the process that says it has locked dir, or 0.
func holder(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, lockName))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

// release gives the directory free.
func (l *dirLock) release() error { return l.file.Close() }
