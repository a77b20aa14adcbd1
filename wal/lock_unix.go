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
