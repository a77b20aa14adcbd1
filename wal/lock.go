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

// lockPoll is how often an open that waits tries again.
const lockPoll = 25 * time.Millisecond

// dirLock is an exclusive lock on a directory. The operating system releases
// it when the process dies, so the existence of the file means nothing. The
// file is never removed: otherwise two processes could lock two files of one
// name.
//
// Other programs may remove it, because LOCK looks like a file that was
// forgotten. So the format file, without which there is no store, is locked
// too.
type dirLock struct {
	dir    string
	file   *os.File
	format *os.File // nil until lockFormat
}

// lockDir locks dir. It tries until wait is over or ctx ends, and at least once.
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
			return nil, &LockedError{Dir: dir, PID: lockHolder(dir)}
		}
		timer := time.NewTimer(min(left, lockPoll))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// tryLock locks the file at path, which it creates if it does not exist, and
// writes this process's id to it. It reports whether the lock is held
// elsewhere.
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
		// Another file has taken the path since this one was opened.
	}
	// The length is fixed, so that the line of the last owner can be
	// overwritten on a full disk. The number is only for the text of an error.
	if _, err := file.WriteAt(fmt.Appendf(nil, "%-20d\n", os.Getpid()), 0); err != nil {
		_ = file.Close()
		return nil, false, err
	}
	return file, false, nil
}

// lockHolder returns the process that LOCK names, or 0.
func lockHolder(dir string) int {
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

// formatWait is how long lockFormat waits. A process that holds the format file
// but not LOCK is about to release both, or its LOCK was removed.
const formatWait = 250 * time.Millisecond

// lockFormat locks the format file at path too. The file must exist.
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

// verify returns an error if the log's path no longer leads to the directory
// that is locked, but to one that has replaced it, where files of the same
// names are another store's.
func (l *dirLock) verify() error {
	mine, err := l.format.Stat()
	if err != nil {
		return err
	}
	there, err := os.Stat(l.format.Name())
	if err != nil {
		return err
	}
	if !os.SameFile(mine, there) {
		return &os.PathError{Op: "verify", Path: l.format.Name(), Err: errors.New("the directory was replaced")}
	}
	return nil
}

// release unlocks the directory, LOCK last.
func (l *dirLock) release() error {
	var err error
	if l.format != nil {
		err = errors.Join(unlockFile(l.format), l.format.Close())
	}
	return errors.Join(err, unlockFile(l.file), l.file.Close())
}
