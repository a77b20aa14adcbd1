package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Errors that a [Store] reports beside those of package durabletasks; compare
// with [errors.Is].
var (
	// ErrLocked: another store has the directory open, in this process or in
	// another. The error is always a [*LockedError].
	ErrLocked = errors.New("wal: directory is in use")

	// ErrCorrupt: the directory holds something that no crash leaves behind.
	// The error is always a [*CorruptError].
	ErrCorrupt = errors.New("wal: corrupt")

	// ErrFailed: an earlier write, sync or removal failed, and the store
	// takes no more writes. Reads still answer from what was acknowledged.
	// Close the store and open it again; that decides what the disk holds.
	ErrFailed = errors.New("wal: store has failed")

	// ErrOutcomeUnknown: this very call's write or sync failed. It may or may
	// not be there after the next [Open]. It is an [ErrFailed] too.
	ErrOutcomeUnknown = fmt.Errorf("%w: outcome unknown", ErrFailed)
)

// errNoDir refuses an empty name, which the file system would take for the
// current directory.
var errNoDir = fmt.Errorf("wal: %w: the directory has no name", durabletasks.ErrInvalid)

// LockedError reports that a directory is in use. It unwraps to [ErrLocked].
type LockedError struct {
	Dir string // the directory
	PID int    // the process that has it open, as far as it is known; otherwise 0
}

// Error names the directory and the process.
func (e *LockedError) Error() string {
	if e.PID == 0 {
		return fmt.Sprintf("%v: %s", ErrLocked, e.Dir)
	}
	return fmt.Sprintf("%v: %s (by process %d)", ErrLocked, e.Dir, e.PID)
}

// Unwrap returns [ErrLocked].
func (e *LockedError) Unwrap() error { return ErrLocked }

// CorruptError reports damage that no crash explains. Nothing on disk was
// changed. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string // path of the file
	Offset int64  // bytes before the damaged entry
	Index  uint64 // log index of the damaged entry; 0 if it has none
	Reason string // what is wrong there; never holds stored data
}

// Error describes the damage and its place.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d (entry %d): %s", ErrCorrupt, e.File, e.Offset, e.Index, e.Reason)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// foreign turns an error of the log library into one of ours: the errors of
// the file system in it stay visible to errors.Is, its own do not become part
// of this package's API.
func foreign(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return path
	}
	var link *os.LinkError
	if errors.As(err, &link) {
		return link
	}
	return errors.New(err.Error())
}
