package wal

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Options configure a [Store]. The zero value means the defaults. They are
// copied by [Open].
type Options struct {
	// Sync makes every commit wait until the disk has it, so that it survives
	// a power loss. Without it a commit survives the death of the process.
	Sync bool

	// MaxRecordBytes limits the size of one record in the log; 0 means 8 MiB,
	// and 1 GiB is the most. Larger records are refused with a
	// [*durabletasks.TooLargeError]. Those that were stored under a higher limit stay
	// readable, and no record is so large that it could not be cancelled: an
	// update that adds a few bytes at most is not refused.
	MaxRecordBytes int

	// Now returns the time by which records expire; nil means the system's
	// clock, of which a jump ahead is believed only after ten minutes.
	Now func() time.Time

	// Logger is told about repairs and failures, never about ids or payloads;
	// nil means nothing is logged.
	Logger *slog.Logger

	// LockWait is how long to wait for a directory that is in use; 0 means to
	// fail at once.
	LockWait time.Duration

	// OnCleanError is told when disk space that is no longer needed could not
	// be given back. The store goes on and tries again later. It must not call
	// the store. Nil means nobody is told but the Logger.
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
	return c, nil
}

// log tells the logger, which is the user's and may panic.
func (o *Options) log(level slog.Level, message string, args ...any) {
	if o.Logger == nil {
		return
	}
	defer func() { _ = recover() }()
	o.Logger.Log(context.Background(), level, message, args...)
}

// cleanFailed reports that cleaning could not give space back.
func (o *Options) cleanFailed(err error) {
	o.log(slog.LevelWarn, "wal: cleaning failed, will be tried again", "error", err)
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
