package wal

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Store is a durable [durabletasks.TaskStore] in a directory; [Open] makes
// one. It is safe for concurrent use.
type Store struct {
	opts  Options
	lock  *dirLock
	index *index
	tear  *Tear

	shut    atomic.Bool           // closed; read without mu
	failure atomic.Pointer[error] // why the store takes no more writes, or nil

	mu     sync.Mutex // guards the next five fields, and is held for moments only
	busy   bool       // a caller commits
	queue  []*op      // waits for it; empty unless busy
	closed bool
	idle   chan struct{} // closed when the store is closed and nobody commits
	done   chan struct{} // closed when Close has finished

	// The other fields belong to the committer; see commit.go.
	journal    *journal
	live       *liveRecords
	batch      []*op
	accepted   []*op         // of the batch
	expected   int           // how many callers are likely to want the next commit
	syncTook   time.Duration // by the last commit
	credit     int64         // bytes that cleaning may still copy
	cleanAfter time.Time
	cleanPause time.Duration
}

var (
	_ durabletasks.TaskStore = (*Store)(nil)
	_ durabletasks.Scanner   = (*Store)(nil)
)

// Open opens the store in the directory dir, and creates both if they do not
// exist. Nil options mean the defaults. Open waits at most [Options.LockWait]
// for a directory that is in use. [UserDir] finds a directory for a server
// that runs as its user's program.
//
// Errors: [*LockedError], [*CorruptError], [durabletasks.ErrInvalid] if dir is
// empty or an option is wrong, or one of the file system's. After an error
// nothing that was stored has changed.
func Open(dir string, opts *Options) (*Store, error) {
	return OpenContext(context.Background(), dir, opts)
}

// OpenContext is like [Open]. It stops waiting and reading when ctx ends.
func OpenContext(ctx context.Context, dir string, opts *Options) (*Store, error) {
	return open(ctx, dir, opts, seam{segmentSize: segmentSize})
}

func open(ctx context.Context, dir string, opts *Options, sm seam) (_ *Store, err error) {
	s := &Store{index: newIndex(), idle: make(chan struct{}), done: make(chan struct{})}
	if s.opts, err = opts.withDefaults(); err != nil {
		return nil, err
	}
	if dir == "" {
		return nil, errNoDir
	}
	// The log library works with absolute names, and must mean the same
	// directory as this package after the process changes its directory.
	if dir, err = filepath.Abs(dir); err != nil {
		return nil, fmt.Errorf("wal: %w", err)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("wal: create the directory: %w", err)
	}
	if s.lock, err = lockDir(ctx, dir, s.opts.LockWait); err != nil {
		return nil, err
	}
	// The name may lead through a symbolic link, and elsewhere tomorrow.
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		err = fmt.Errorf("wal: %w", err)
	} else {
		err = s.load(ctx, dir, sm)
	}
	if err != nil {
		return nil, errors.Join(err, s.lock.release())
	}
	return s, nil
}

// load reads the log and prepares it for writing. The caller holds the lock.
func (s *Store) load(ctx context.Context, dir string, sm seam) error {
	exists, unfinished, err := findStore(dir)
	if err != nil {
		return err
	}
	if unfinished != "" {
		if err := os.Remove(unfinished); err != nil {
			return fmt.Errorf("wal: remove an unfinished store: %w", err)
		}
	}
	format := filepath.Join(dir, formatName)
	if !exists {
		s.live = newLiveRecords()
		if s.journal, err = createLog(dir, sm); err != nil {
			return err
		}
		if err := s.lock.lockFormat(ctx, format); err != nil {
			s.journal.abandon()
			return err
		}
		s.journal.verifyDir = s.lock.verify
		return nil
	}
	if err := s.lock.lockFormat(ctx, format); err != nil {
		return err
	}
	r := newReplay(s.index)
	found, err := readLog(ctx, dir, r)
	if err != nil {
		return err
	}
	s.live = r.finish()
	if s.tear, err = found.repair(dir, s.opts.Now()); err != nil {
		return err
	}
	if t := s.tear; t != nil {
		s.opts.warnTorn(t)
	}
	if s.opts.Sync {
		if err := found.rewriteUnsynced(dir); err != nil {
			return err
		}
	}
	if s.journal, err = openJournal(dir, found, sm); err != nil {
		return err
	}
	s.journal.verifyDir = s.lock.verify
	if err := syncOpenDir(s.journal.dirFile); err != nil {
		s.journal.abandon()
		return fmt.Errorf("wal: %w", err)
	}
	s.retire()
	return nil
}

// Tear describes the torn end that [Open] removed from the log: the beginning
// of an entry whose writing a crash interrupted.
type Tear struct {
	File   string // path of the segment
	Offset int64  // where it was cut
	Index  uint64 // the torn entry; the next commit replaces it
	Bytes  int64  // how many were removed
	Copy   string // path of the file that keeps them
}

// Torn returns what [Open] removed from the end of the log, or nil. A torn end
// is normal after a process has died, and no acknowledged commit is lost.
// After a power loss without [Options.Sync] it is where the log ends.
func (s *Store) Torn() *Tear {
	if s.tear == nil {
		return nil
	}
	t := *s.tear
	return &t
}

func (s *Store) now() moment { return instant(s.opts.Now()) }

// callErr returns why a call must not begin, or nil.
func (s *Store) callErr(ctx context.Context) error {
	if s.shut.Load() {
		return durabletasks.ErrClosed
	}
	return ctx.Err()
}

// Create implements [durabletasks.TaskStore]. It replaces an expired record
// with the same id that was not swept yet.
//
// Errors: [durabletasks.ErrExists], [durabletasks.ErrClosed],
// [*durabletasks.TooLargeError], [ErrFailed], [ErrOutcomeUnknown], or ctx's.
func (s *Store) Create(ctx context.Context, r durabletasks.Record) error {
	if err := s.callErr(ctx); err != nil {
		return err
	}
	now := s.now()
	st := newState(&r, 0, nil)
	size, err := s.sizeOf(st, nil)
	if err != nil {
		return err
	}
	o := newOp(ctx, kindCreate, st, size)
	o.frame = appendWhole(o.frame, st)
	o.now = now
	err = s.submit(o)
	o.free()
	return err
}

// Get implements [durabletasks.TaskStore]. It never waits for a write.
//
// Errors: [durabletasks.ErrNotFound], [durabletasks.ErrClosed], ctx's, or a
// [*CorruptError] if the record holds JSON that was never valid.
func (s *Store) Get(ctx context.Context, id string) (durabletasks.Record, error) {
	_, st, err := s.find(ctx, id)
	if err != nil {
		return durabletasks.Record{}, err
	}
	return st.record(), nil
}

// find returns the record with this id, decoded, unless it is expired.
func (s *Store) find(ctx context.Context, id string) (*node, *state, error) {
	if err := ctx.Err(); err != nil && !s.shut.Load() {
		return nil, nil, err
	}
	n := s.index.get(id)
	if s.shut.Load() {
		return nil, nil, durabletasks.ErrClosed
	}
	if n == nil {
		return nil, nil, durabletasks.ErrNotFound
	}
	st := n.st.Load()
	if st.ttl >= 0 && st.expired(s.now()) {
		return nil, nil, durabletasks.ErrNotFound
	}
	st, err := n.decoded(st)
	if err != nil {
		return nil, nil, &CorruptError{File: s.lock.dir, Reason: errUndecodable.Error()}
	}
	return n, st, nil
}

// Update implements [durabletasks.TaskStore]. Only what changed is written.
//
// Errors: [*durabletasks.ConflictError], [durabletasks.ErrNotFound],
// [durabletasks.ErrClosed], [*durabletasks.TooLargeError], [ErrFailed],
// [ErrOutcomeUnknown], ctx's, or a [*CorruptError] if the record holds JSON
// that was never valid.
func (s *Store) Update(ctx context.Context, next durabletasks.Record) error {
	n, old, err := s.find(ctx, next.ID)
	if err != nil {
		return err
	}
	// Versions only grow, so an update that is too late now stays too late.
	// Any other is decided again in the order of the log. The version is
	// still the same then only if the record is, so the change can be encoded
	// here, while others commit.
	if old.version != next.Version {
		return &durabletasks.ConflictError{Expected: next.Version, Actual: old.version}
	}
	st := newState(&next, next.Version+1, old)
	size, err := s.sizeOf(st, old)
	if err != nil {
		return err
	}
	o := newOp(ctx, kindUpdate, st, size)
	o.frame = appendUpdate(o.frame, old, st)
	o.node = n
	err = s.submit(o)
	o.free()
	return err
}

// smallGrowth is how many bytes an update may always add to a record, however
// large the record is: a cancellation or a longer life is not refused for its
// size.
const smallGrowth = 64

// sizeOf returns how many bytes the record takes in the log as one whole
// entry, or an error if they are too many. For an update, old is what it
// replaces.
func (s *Store) sizeOf(st, old *state) (uint32, error) {
	whole := func(st *state) int { return entrySize(headerSize + wholeSize(st)) }
	size := whole(st)
	if size > s.opts.MaxRecordBytes && (old == nil || size > whole(old)+smallGrowth || size > largestMaxRecordBytes) {
		return 0, &durabletasks.TooLargeError{Size: size, Limit: s.opts.MaxRecordBytes}
	}
	return uint32(size), nil
}

// Scan implements [durabletasks.Scanner].
func (s *Store) Scan(ctx context.Context, visit func(durabletasks.Record) bool) error {
	unfinished := func(st *state) bool { return !st.status.Terminal() }
	for i := range s.index.shards {
		for _, n := range s.index.shards[i].collect(unfinished) {
			id := n.st.Load().id
			found, st, err := s.find(ctx, id)
			if errors.Is(err, durabletasks.ErrNotFound) || err == nil && (found != n || !unfinished(st)) {
				continue
			}
			if err != nil {
				return err
			}
			if !visit(st.record()) {
				return nil
			}
		}
	}
	return s.callErr(ctx)
}

// Close implements [durabletasks.TaskStore]. It waits for the commits in
// progress, makes everything durable and releases the directory, even if it
// fails. Its error is that of the last sync or of closing the files. A second
// Close waits for the first and returns nil.
func (s *Store) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		<-s.done
		return nil
	}
	s.closed = true
	s.shut.Store(true)
	for _, o := range s.queue {
		o.err = durabletasks.ErrClosed
		o.signal <- committed
	}
	s.queue = nil
	if !s.busy {
		close(s.idle)
	}
	s.mu.Unlock()

	<-s.idle
	defer close(s.done)
	var err error
	if s.failure.Load() != nil {
		s.journal.abandon()
	} else if err = s.journal.close(); err != nil {
		err = fmt.Errorf("wal: close: %w", err)
	}
	s.index.clear()
	s.live, s.journal, s.batch, s.accepted = nil, nil, nil, nil
	return errors.Join(err, s.lock.release())
}
