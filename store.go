package durabletasks

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// Status is the state of a task; see [wire.Status].
type Status = wire.Status

// The five states of a task.
const (
	StatusWorking       = wire.StatusWorking
	StatusInputRequired = wire.StatusInputRequired
	StatusCompleted     = wire.StatusCompleted
	StatusFailed        = wire.StatusFailed
	StatusCancelled     = wire.StatusCancelled
)

// NoLimit means "none" wherever a duration limits something: a task that
// never expires, a poll hint that is not sent, a sweep that never runs.
const NoLimit = wire.NoLimit

// Record is everything that is stored of one task. Its fields are values or
// shallow containers of immutable values, so [Record.Clone] separates two
// owners completely. A store keeps every field as it is and owns Version; it
// never reads meaning into any other field but ID, CreatedAt, TTL and, for
// [Scanner], Status.
//
// Times are in UTC and of the years 1 to 9999, the zero time included. Times
// and durations are whole milliseconds. A duration may be zero, which is not
// [NoLimit], and is negative only as NoLimit.
type Record struct {
	ID            string        // unguessable; a bearer token, never to be logged or listed
	Status        Status        // one of the five
	StatusMessage string        // optional text for people
	CreatedAt     time.Time     // never changes
	LastUpdatedAt time.Time     // never decreases
	TTL           time.Duration // counted from CreatedAt; zero: expired from the start; NoLimit: never expires
	PollInterval  time.Duration // zero: at any time; NoLimit: no hint

	InputRequests  map[string]wire.JSON // the current round, answered requests included; only when input_required
	InputResponses map[string]wire.JSON // answers not yet covered by a checkpoint; JSON null: nobody answered
	Questions      []Question           // every question ever asked, in order; a key is never used for another

	Result wire.JSON // an object; only when completed
	Error  wire.JSON // a JSON-RPC error object; only when failed

	// What follows never leaves the server.

	Owner            string          // who may see the task; the empty owner is an identity too
	Tool             string          // names the work, such as the tool that was called; given at create
	CancelRequested  bool            // a client asked to cancel; the worker decides how to respond
	UnsupportedInput wire.InputKinds // what the client cannot be asked; given at create
	Payload          wire.JSON       // what the host needs to run the task again; given at create, dropped when the task ends
	Checkpoint       wire.JSON       // the worker's own saved state; dropped when the task ends

	Version int64 // commits since create; 0 when created
}

// Question identifies an input request that a task has asked. Questions are
// comparable, and two of them with one Key and one Digest are the same
// question.
type Question struct {
	Key      string
	Digest   [16]byte  // the first half of the SHA-256 of the request's text
	Deadline time.Time // until when the worker waits for the answer; zero: without limit
}

// Clone returns a copy that shares no changeable memory with r. Its cost
// follows the number of keys, never the size of payloads. Absent containers
// stay nil.
func (r Record) Clone() Record {
	r.InputRequests = maps.Clone(r.InputRequests)
	r.InputResponses = maps.Clone(r.InputResponses)
	r.Questions = slices.Clone(r.Questions)
	return r
}

// ExpiresAt returns the moment from which the record is expired: CreatedAt +
// TTL. It reports false if the record never expires or if the sum overflows.
func (r *Record) ExpiresAt() (time.Time, bool) {
	if r.TTL < 0 {
		return time.Time{}, false
	}
	at := r.CreatedAt.Add(r.TTL)
	return at, !at.Before(r.CreatedAt)
}

// Expired reports whether the record is expired at now; the moment
// [Record.ExpiresAt] itself is expired.
func (r *Record) Expired(now time.Time) bool {
	at, ok := r.ExpiresAt()
	return ok && !now.Before(at)
}

// TaskStore keeps records. It is all that the engine needs of a store, and it
// is closed: it will never get another method. A store offers more by optional
// interfaces, such as [Scanner].
//
// These are the clauses of the contract; package storetest checks each:
//
//   - S1: when Create or Update returns without an error, the record is as
//     durable as the store makes it, and every later call sees it, each field
//     but Version as it was passed in, times in UTC.
//   - S2: Create never overwrites. An id that is taken is [ErrExists], and the
//     stored record is unchanged. An expired record that is still stored may
//     count as taken.
//   - S3: an unknown and an expired record are the same [ErrNotFound], also for
//     Update, which never creates.
//   - S4: reads change nothing.
//   - S5: Create stores version 0, no matter which version is passed in, and
//     every Update raises the version by exactly one.
//   - S6: an Update whose Version is not the stored one, be it lower or higher,
//     changes nothing and reports a [*ConflictError]. Of several concurrent
//     updates from one version, exactly one wins. Only versions decide, never
//     times.
//   - S7: no record that is passed in or returned aliases what is stored, and no
//     call changes its arguments.
//   - S8: an Update replaces the whole record, and every reader sees it whole or
//     not at all.
//   - S9: a record expires at CreatedAt + TTL, that moment included, whether it
//     has been swept or not. This holds after its TTL has changed and after a
//     reopen.
//   - S10: Sweep removes every record that is expired at the time it is given
//     and returns how many; their ids are then free for Create. Nothing else
//     removes a record, so a clock that was wrong deletes nothing.
//   - S11: a durable store returns every committed record after Close and a
//     reopen, byte for byte.
//   - S12: after Close every call reports [ErrClosed], except Close, which
//     returns nil again.
//   - S13: a context that is done stops a call before it commits. The call then
//     reports the context's error and has no effect. A call that has committed
//     reports success. If another error applies as well, the call may report
//     either.
//   - S14: every method is safe for concurrent use.
//   - S15: ids, keys and texts are arbitrary strings: empty, with NUL, not
//     ASCII, not UTF-8, long, or special in some language. A store accepts ids
//     of 10 KiB, keys and texts of 65 KiB, JSON values of 1 MiB and 1000 keys in
//     each container, in a record of up to 4 MiB. It may refuse a larger record
//     with a [*TooLargeError], and then has changed nothing.
//   - S16: no error holds an id, a key, a text or a payload, and a Get that
//     reports an error returns a zero Record.
type TaskStore interface {
	// Create stores a new record with version 0, even if it has expired.
	// Errors: [ErrExists], [ErrTooLarge], [ErrClosed], ctx's, or one of the
	// store's own.
	Create(ctx context.Context, r Record) error

	// Get returns the record with this id.
	// Errors: [ErrNotFound] (unknown or expired), [ErrClosed], ctx's, or one
	// of the store's own.
	Get(ctx context.Context, id string) (Record, error)

	// Update replaces the whole record with the id next.ID by next if the
	// stored version is next.Version, and stores it as version next.Version+1.
	// Errors: [*ConflictError], [ErrNotFound], [ErrTooLarge], [ErrClosed],
	// ctx's, or one of the store's own.
	Update(ctx context.Context, next Record) error

	// Sweep removes the records that are expired at now and returns only their
	// number. If ctx ends during a Sweep, it removes and counts all of them or
	// none.
	// Errors: [ErrClosed], ctx's, or one of the store's own.
	Sweep(ctx context.Context, now time.Time) (int, error)

	// Close releases what the store holds. Calls in progress finish first or
	// report [ErrClosed].
	Close() error
}

// Scanner is an optional interface of a [TaskStore] that can show its
// unfinished records, so that a host can resume its own tasks after a restart.
// It is for the host alone: nothing that it shows may reach a client that did
// not present the task's id.
type Scanner interface {
	// Scan calls visit once for each record whose status is not terminal and
	// which has not expired, in no particular order and one call after the
	// other, until visit returns false. It holds no lock during visit, which may
	// call the store. A record that changes during a Scan is shown as it was
	// before or after the change. A record that ends or is removed during a Scan
	// is shown as it was before or not at all, and every other is still shown.
	//
	// A store that several processes share shows a record to only one of them,
	// and to none while the process that runs it is alive: the caller runs every
	// record it is shown.
	//
	// Errors: [ErrClosed], ctx's, or one of the store's own, possibly after some
	// visits. Nil means that every record was shown or that visit returned
	// false. Once ctx is done, Scan does not call visit again.
	Scan(ctx context.Context, visit func(Record) bool) error
}

// Watcher is an optional interface of a [TaskStore] that several processes
// share. It tells the engine of one process what another commits, such as a
// cancellation that reached the wrong instance.
type Watcher interface {
	// Watch calls changed with the id of each record that another instance of
	// the store has created, updated or removed, soon after; the store
	// documents how soon. It may also call changed for commits of this instance
	// and for records that have not changed. It holds no lock during changed,
	// which may call the store. Watch returns ctx's error when ctx ends, or the
	// reason why it cannot continue.
	//
	// A store that may have missed a change, such as during a sleep of the
	// machine, ends its Watch with an error. The engine then starts another, and
	// a moment later reads every task that it holds.
	Watch(ctx context.Context, changed func(id string)) error
}

// Errors that stores and the engine report; compare with [errors.Is].
var (
	// ErrNotFound is returned when there is no such task, when it has expired,
	// and when it belongs to somebody else. These are one error on purpose.
	ErrNotFound = fmt.Errorf("durabletasks: %w", wire.ErrTaskNotFound)

	// ErrExists is returned when the id of a new record is taken.
	ErrExists = errors.New("durabletasks: task id already exists")

	// ErrConflict is returned when the task changed between reading and
	// writing. The error is always a [*ConflictError].
	ErrConflict = errors.New("durabletasks: task changed concurrently")

	// ErrTooLarge is returned for a record that is larger than its store
	// accepts. Trying again does not help. The error is always a
	// [*TooLargeError].
	ErrTooLarge = errors.New("durabletasks: record too large")

	// ErrClosed is returned after the store or the engine was closed.
	ErrClosed = errors.New("durabletasks: closed")
)

// ConflictError reports an update from a version that is not the stored one.
// It unwraps to [ErrConflict].
type ConflictError struct {
	Expected int64 // the version that the update was made from
	Actual   int64 // the version that was stored
}

// Error names both versions.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("%v: expected version %d, stored is %d", ErrConflict, e.Expected, e.Actual)
}

// Unwrap returns [ErrConflict].
func (e *ConflictError) Unwrap() error { return ErrConflict }

// TooLargeError reports a record that is larger than its store accepts. It
// unwraps to [ErrTooLarge].
type TooLargeError struct {
	Size  int // of the record, in bytes as the store counts them; 0 if unknown
	Limit int // the largest size that the store accepts
}

// Error names both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d bytes, the limit is %d", ErrTooLarge, e.Size, e.Limit)
}

// Unwrap returns [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }
