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
// TTL. It reports false if the record never expires, also because the sum is
// beyond what a time can hold.
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
// is closed: it will never get another method. What a store can do beyond it
// is said by optional interfaces, such as [Scanner].
//
// The clauses of the contract; package storetest has a check for each:
//
//   - S1: when Create or Update returns without an error, the record is as
//     durable as the store makes it, and visible to every later call, field
//     for field as it was passed in, times in UTC.
//   - S2: Create never overwrites: an id that is taken is [ErrExists], and the
//     stored record is unchanged. An expired record that is still stored may
//     count as taken.
//   - S3: an unknown and an expired record are the same [ErrNotFound], for
//     Update too, which never creates.
//   - S4: reads change nothing.
//   - S5: Create stores version 0, whatever version is passed in, and every
//     Update raises the version by exactly one.
//   - S6: an Update whose Version is not the stored one changes nothing and
//     reports a [*ConflictError]. Of several concurrent updates from one
//     version exactly one wins. Only versions decide, never times.
//   - S7: what is handed in or out never aliases what is stored.
//   - S8: an Update replaces the whole record, and is seen whole or not at
//     all, by every reader.
//   - S9: a record expires at CreatedAt + TTL, that moment included, whether
//     swept or not, also after its TTL has changed, and across a reopen.
//   - S10: Sweep removes every record that is expired at the time it is given
//     and returns how many; after it their ids are free for Create. Nothing
//     else removes a record, so that a clock that was wrong deletes nothing.
//   - S11: a durable store gives back every committed record after Close and
//     a reopen, byte for byte.
//   - S12: after Close every call reports [ErrClosed]; Close itself is
//     idempotent and reports nil then.
//   - S13: a context that is done stops a call before it commits, with the
//     context's error, and leaves nothing half done. A call that has
//     committed reports success. Where another error applies, too, either may
//     be reported.
//   - S14: every method is safe for concurrent use.
//   - S15: ids, keys and texts are arbitrary strings: empty, with NUL, not
//     ASCII, long, or named like something special. A store takes ids of
//     10 KiB, keys and texts of 65 KiB, JSON values of 1 MiB and 1000 keys in
//     each container, in a record of up to 4 MiB.
//   - S16: no error holds an id, a key, a text or a payload, and a call that
//     reports one returns a zero Record.
type TaskStore interface {
	// Create stores a new record with version 0, even if it has expired.
	// Errors: [ErrExists], [ErrTooLarge], [ErrClosed], ctx's, or one of the
	// store's own.
	Create(ctx context.Context, r Record) error

	// Get returns the record with this id.
	// Errors: [ErrNotFound] (unknown or expired), [ErrClosed], ctx's, or one
	// of the store's own.
	Get(ctx context.Context, id string) (Record, error)

	// Update replaces the whole record with next.ID, if the stored version is
	// next.Version, and stores it with version next.Version+1.
	// Errors: [*ConflictError], [ErrNotFound], [ErrTooLarge], [ErrClosed],
	// ctx's, or one of the store's own.
	Update(ctx context.Context, next Record) error

	// Sweep removes the records that are expired at now and returns their
	// number, never what they were. When ctx ends meanwhile, it removes and
	// counts all of them or none.
	// Errors: [ErrClosed], ctx's, or one of the store's own.
	Sweep(ctx context.Context, now time.Time) (int, error)

	// Close releases what the store holds. Calls that run finish first or
	// report [ErrClosed].
	Close() error
}

// Scanner is an optional interface of a [TaskStore] that can show its
// unfinished records, so that a host can take up its own tasks after a
// restart. It is for the host alone: nothing that it yields may be shown to a
// client that did not present the task's id.
type Scanner interface {
	// Scan calls visit once for each record whose status is not terminal
	// and which is not expired, in no particular order and one call after the
	// other, until visit returns false. It holds no lock while it calls visit,
	// which may call the store; a record that changes meanwhile is shown
	// before or after the change. One that ends or is removed meanwhile is
	// shown as it was before or not at all, and keeps no other from being
	// shown.
	//
	// A store that several processes share shows a record to one of them
	// only, and never one whose process is alive elsewhere: what it shows is
	// run again.
	//
	// Errors: [ErrClosed], ctx's, or one of the store's own, also midway: nil
	// means that every record was shown or that visit returned false. When ctx
	// is done, visit is not called again.
	Scan(ctx context.Context, visit func(Record) bool) error
}

// Watcher is an optional interface of a [TaskStore] that several processes
// share. It lets the engine of one hear of what another commits, such as a
// cancellation that reached the wrong instance.
type Watcher interface {
	// Watch calls changed with the id of each record that another instance of
	// the store has created, updated or removed, soon after; the store
	// documents how soon. It may also call it for this instance's own commits
	// and for records that have not changed. It holds no lock while it calls
	// changed, which may call the store. Watch returns ctx's error when ctx
	// ends, or why it cannot go on watching.
	//
	// A store that may have missed something, such as after a sleep of the
	// machine, ends its Watch with an error: the engine begins another, and
	// looks a moment later at every task that it holds on to.
	Watch(ctx context.Context, changed func(id string)) error
}

// Errors that stores and the engine report; compare with [errors.Is].
var (
	// ErrNotFound: there is no such task, or it has expired, or it belongs
	// to somebody else. These are one error on purpose.
	ErrNotFound = fmt.Errorf("durabletasks: %w", wire.ErrTaskNotFound)

	// ErrExists: the id of a new record is taken.
	ErrExists = errors.New("durabletasks: task id already exists")

	// ErrConflict: the task changed between reading and writing. The error
	// is always a [*ConflictError].
	ErrConflict = errors.New("durabletasks: task changed concurrently")

	// ErrTooLarge is returned for a record that is larger than its store
	// takes. Trying again does not help. The error is always a
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

// TooLargeError reports a record that is larger than its store takes. It
// unwraps to [ErrTooLarge].
type TooLargeError struct {
	Size  int // of the record, in bytes as the store counts them; 0 if unknown
	Limit int // the largest size that the store takes
}

// Error names both sizes.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("%v: %d bytes, the limit is %d", ErrTooLarge, e.Size, e.Limit)
}

// Unwrap returns [ErrTooLarge].
func (e *TooLargeError) Unwrap() error { return ErrTooLarge }
