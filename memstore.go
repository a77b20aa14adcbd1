package durabletasks

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// MemStore is a [TaskStore] that keeps its records in memory: for tests, and
// for servers whose tasks may die with the process. The zero value is an empty
// store, ready to use. It is safe for concurrent use and must not be copied
// after first use.
type MemStore struct {
	// Now returns the time by which records expire. Nil means a [Clock], which
	// does not believe a jump ahead at once. Set it before the first use.
	Now func() time.Time

	mu      sync.Mutex  // held by writers; readers share nothing that is written
	records sync.Map    // of *Record by id; the records never change
	closed  atomic.Bool // set before the records go
	clock   Clock
}

var (
	_ TaskStore = (*MemStore)(nil)
	_ Scanner   = (*MemStore)(nil)
)

func (m *MemStore) now() time.Time {
	if m.Now != nil {
		return m.Now()
	}
	return m.clock.Now()
}

// errIfUnusable returns the error of a call that must not go on. A writer holds mu.
func (m *MemStore) errIfUnusable(ctx context.Context) error {
	if m.closed.Load() {
		return ErrClosed
	}
	return ctx.Err()
}

// expired reports whether the record has expired. The clock has a lock, which
// all readers share, so it is asked only about records that can expire.
func (m *MemStore) expired(r *Record) bool { return r.TTL >= 0 && r.Expired(m.now()) }

// find returns the stored record, or nil if there is none or it has expired.
func (m *MemStore) find(id string) *Record {
	if v, ok := m.records.Load(id); ok {
		if r := v.(*Record); !m.expired(r) {
			return r
		}
	}
	return nil
}

// put stores a copy of r with this version. The caller holds mu.
func (m *MemStore) put(r Record, version int64) {
	r = r.Clone()
	r.Version = version
	m.records.Store(r.ID, &r)
}

// Create implements [TaskStore].
func (m *MemStore) Create(ctx context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.errIfUnusable(ctx); err != nil {
		return err
	}
	if m.find(r.ID) != nil {
		return ErrExists
	}
	m.put(r, 0)
	return nil
}

// Get implements [TaskStore].
func (m *MemStore) Get(ctx context.Context, id string) (Record, error) {
	if err := m.errIfUnusable(ctx); err != nil {
		return Record{}, err
	}
	if r := m.find(id); r != nil {
		return r.Clone(), nil
	}
	if m.closed.Load() { // perhaps the record went with the store
		return Record{}, ErrClosed
	}
	return Record{}, ErrNotFound
}

// Update implements [TaskStore].
func (m *MemStore) Update(ctx context.Context, next Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.errIfUnusable(ctx); err != nil {
		return err
	}
	old := m.find(next.ID)
	if old == nil {
		return ErrNotFound
	}
	if old.Version != next.Version {
		return &ConflictError{Expected: next.Version, Actual: old.Version}
	}
	m.put(next, next.Version+1)
	return nil
}

// Sweep implements [TaskStore].
func (m *MemStore) Sweep(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.errIfUnusable(ctx); err != nil {
		return 0, err
	}
	n := 0
	m.records.Range(func(id, v any) bool {
		if v.(*Record).Expired(now) {
			m.records.Delete(id)
			n++
		}
		return true
	})
	return n, nil
}

// Scan implements [Scanner].
func (m *MemStore) Scan(ctx context.Context, visit func(Record) bool) error {
	err := m.errIfUnusable(ctx)
	if err != nil {
		return err
	}
	stopped := false
	m.records.Range(func(_, v any) bool {
		if err = m.errIfUnusable(ctx); err != nil {
			return false
		}
		if r := v.(*Record); !r.Status.Terminal() && !m.expired(r) {
			stopped = !visit(r.Clone())
		}
		return !stopped
	})
	if !stopped && m.closed.Load() { // perhaps before every record was shown
		return ErrClosed
	}
	return err
}

// Close implements [TaskStore]. The records are gone after it.
func (m *MemStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed.Store(true)
	m.records.Clear()
	return nil
}
