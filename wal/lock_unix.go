//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package wal

import (
	"errors"
	"os"
	"syscall"
)

// lockFile locks f for as long as it is open. It reports whether another
// open file holds the lock.
func lockFile(f *os.File) (held bool, err error) {
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.EWOULDBLOCK):
			return true, nil
		case err != nil:
			return false, &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
		return false, nil
	}
}

// unlockFile releases the lock of f, even if another process has f open too.
// A child process has all files of its parent open for a moment, from its fork
// to its exec, and closing f alone would leave the lock in place until then.
func unlockFile(f *os.File) error {
	for {
		err := syscall.Flock(int(f.Fd()), syscall.LOCK_UN)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if err != nil {
			return &os.PathError{Op: "flock", Path: f.Name(), Err: err}
		}
		return nil
	}
}
