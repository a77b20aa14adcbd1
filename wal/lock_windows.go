package wal

import (
	"errors"
	"os"
	"syscall"
	"unsafe"
)

var lockFileEx = syscall.NewLazyDLL("kernel32.dll").NewProc("LockFileEx")

const (
	lockFileFailImmediately = 1
	lockFileExclusive       = 2
	errLockViolation        = syscall.Errno(33)
)

// lockFile locks f for as long as it is open. It reports whether another
// open file holds the lock. It locks a byte far beyond the end of the
// file, so that others can read which process holds the lock.
func lockFile(f *os.File) (held bool, err error) {
	at := &syscall.Overlapped{OffsetHigh: 0x7FFFFFFF}
	ok, _, err := lockFileEx.Call(f.Fd(), lockFileFailImmediately|lockFileExclusive, 0, 1, 0, uintptr(unsafe.Pointer(at)))
	switch {
	case ok != 0:
		return false, nil
	case errors.Is(err, errLockViolation), errors.Is(err, syscall.ERROR_IO_PENDING):
		return true, nil
	}
	return false, &os.PathError{Op: "LockFileEx", Path: f.Name(), Err: err}
}

// unlockFile does nothing: the system releases the lock when f is closed.
func unlockFile(*os.File) error { return nil }
