package wal

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/internal/failurelog"
)

// Options configure a [Store]. The zero value means the defaults. [Open] copies
// them.
type Options struct {
	// Sync makes every commit wait until it is on the disk, so that it
	// survives a power loss. Without Sync a commit survives the death of the
	// process.
	Sync bool

	// MaxRecordBytes limits the size of one record in the log, in bytes. Zero
	// means 8 MiB; 1 GiB is the most. Larger records are refused with a
	// [*durabletasks.TooLargeError]. Records that were stored under a higher
	// limit stay readable, and every record can be cancelled: an update that
	// adds only a few bytes is never refused.
	MaxRecordBytes int

	// Now returns the time by which records expire. Nil means the system's
	// clock; a jump ahead of that clock counts only after ten minutes.
	Now func() time.Time

	// Logger receives repairs and failures to give space back (Warn) and
	// failures that end all writing (Error), never ids or payloads. If it is
	// nil, errors go to [slog.Default] and nothing else is logged.
	Logger *slog.Logger

	// LockWait is how long Open waits for a directory that is in use. Zero
	// means that Open fails at once.
	LockWait time.Duration

	// OnCleanError is called with the error when disk space that is no longer
	// needed could not be given back. The store goes on and tries again later.
	// OnCleanError must not call the store. It may be nil; the Logger receives
	// the error too.
	OnCleanError func(error)
}

const (
	defaultMaxRecordBytes = 8 << 20
	largestMaxRecordBytes = 1 << 30
)

// withDefaults returns a checked copy of o.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	if c.MaxRecordBytes < 0 || c.MaxRecordBytes > largestMaxRecordBytes {
		return Options{}, fmt.Errorf("wal: %w: Options.MaxRecordBytes %d is not between 0 and %d", durabletasks.ErrInvalid, c.MaxRecordBytes, largestMaxRecordBytes)
	}
	if c.MaxRecordBytes == 0 {
		c.MaxRecordBytes = defaultMaxRecordBytes
	}
	if c.LockWait < 0 {
		return Options{}, fmt.Errorf("wal: %w: Options.LockWait %v is negative", durabletasks.ErrInvalid, c.LockWait)
	}
	if c.Now == nil {
		c.Now = new(durabletasks.Clock).Now
	}
	c.Logger = failurelog.Or(c.Logger)
	return c, nil
}

// log logs a message. The logger is the user's and may panic.
func (o *Options) log(level slog.Level, message string, args ...any) {
	defer func() { _ = recover() }()
	o.Logger.Log(context.Background(), level, message, args...)
}

// cleanFailed reports that space could not be given back.
func (o *Options) cleanFailed(err error) {
	o.log(slog.LevelWarn, "wal: cleaning failed and will be tried again", "error", err)
	if o.OnCleanError == nil {
		return
	}
	defer func() {
		if p := recover(); p != nil {
			o.log(slog.LevelError, "wal: OnCleanError panicked")
		}
	}()
	o.OnCleanError(err)
}
