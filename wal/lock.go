package wal

import (
	"context"
	"errors"
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
//
// Others may remove it all the same: LOCK looks like a file that somebody has
// forgotten. So the format file, without which there is no store, is locked
// too.
type dirLock struct {
	dir    string
	file   *os.File
	format *os.File // nil until lockFormat
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
			return &dirLock{dir: dir, file: file}, nil
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

// formatWait is how long a lock on the format file is waited for. Somebody who
// has it and not LOCK is about to go, or has lost LOCK.
const formatWait = 250 * time.Millisecond

// lockFormat also locks the format file at path, which is there.
func (l *dirLock) lockFormat(ctx context.Context, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("wal: lock the format file: %w", err)
	}
	for deadline := time.Now().Add(formatWait); ; time.Sleep(lockPoll) {
		held, err := lockFile(file)
		switch {
		case err != nil:
			err = fmt.Errorf("wal: lock the format file: %w", err)
		case !held:
			l.format = file
			return nil
		case ctx.Err() != nil:
			err = ctx.Err()
		case time.Now().After(deadline):
			err = &LockedError{Dir: l.dir} // LOCK names this process by now
		default:
			continue
		}
		_ = file.Close() // nothing was written
		return err
	}
}

// check reports whether the directory under the log's name is still the one
// that is locked, and not one that has taken its place, where files of the
// same names are somebody else's.
func (l *dirLock) check() error {
	mine, err := l.format.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(l.format.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return &os.PathError{Op: "check", Path: l.format.Name(), Err: errors.New("the directory was replaced")}
	}
	return nil
}

// release gives the directory free, LOCK last.
func (l *dirLock) release() error {
	var err error
	if l.format != nil {
		err = l.format.Close()
	}
	return errors.Join(err, l.file.Close())
}
