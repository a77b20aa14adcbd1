package wal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Errors that a [Store] returns in addition to those of package durabletasks.
// Compare them with [errors.Is].
var (
	// ErrLocked is returned by Open when another store has the directory open,
	// in this process or in another. The error is always a [*LockedError].
	ErrLocked = errors.New("wal: directory is in use")

	// ErrCorrupt is returned when a directory holds something that no crash can
	// have left. The error is always a [*CorruptError].
	ErrCorrupt = errors.New("wal: corrupt")

	// ErrFailed is returned after a write, sync or removal has failed: the
	// store takes no more writes. Reads still return what was acknowledged.
	// Close the store and open it again, which finds out what the disk holds.
	ErrFailed = errors.New("wal: store has failed")

	// ErrOutcomeUnknown is returned by a call whose own write or sync failed.
	// Its change may or may not be there after the next [Open]. The error is
	// an [ErrFailed] too.
	ErrOutcomeUnknown = fmt.Errorf("%w: outcome unknown", ErrFailed)
)

// errNoDir refuses an empty name, which the file system would take for the
// current directory.
var errNoDir = fmt.Errorf("wal: %w: the directory name is empty", durabletasks.ErrInvalid)

// LockedError reports that a directory is in use. It unwraps to [ErrLocked].
type LockedError struct {
	Dir string // the directory
	PID int    // the process that has it open; 0 if unknown
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

// CorruptError reports damage that no crash can have caused. Nothing on disk
// was changed. It unwraps to [ErrCorrupt].
type CorruptError struct {
	File   string // path of the file
	Offset int64  // of the damaged entry in the file
	Index  uint64 // log index of the damaged entry; 0 if it has none
	Reason string // what is wrong; never holds stored data
}

// Error describes the damage and where it is.
func (e *CorruptError) Error() string {
	return fmt.Sprintf("%v: %s at offset %d (entry %d): %s", ErrCorrupt, e.File, e.Offset, e.Index, e.Reason)
}

// Unwrap returns [ErrCorrupt].
func (e *CorruptError) Unwrap() error { return ErrCorrupt }

// fromLibrary returns an error of the log library as one of this package. The
// file system's errors in it stay visible to errors.Is. The library's own
// errors do not, so that they are not part of this package's API.
func fromLibrary(err error) error {
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
