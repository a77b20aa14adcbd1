package durabletasks

import (
	"context"
	"sync"
	"time"
)

// MemStore is a [TaskStore] that keeps its records in memory: for tests, and
// for servers whose tasks may die with the process. The zero value is an
// empty store, ready to use. It is safe for concurrent use and must not be
// copied after first use.
type MemStore struct {
	// Now returns the time by which records expire. Nil means the system's
	// clock, of which a jump ahead is believed only after ten minutes. Set it
	// before the first use.
	Now func() time.Time

	mu      sync.RWMutex
	records map[string]Record
	closed  bool
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

// usable reports why a call cannot go on. The caller holds mu.
func (m *MemStore) usable(ctx context.Context) error {
	if m.closed {
		return ErrClosed
	}
	return ctx.Err()
}

// Create implements [TaskStore].
func (m *MemStore) Create(ctx context.Context, r Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	if old, ok := m.records[r.ID]; ok && !old.Expired(m.now()) {
		return ErrExists
	}
	if m.records == nil {
		m.records = make(map[string]Record)
	}
	r = r.Clone()
	r.Version = 0
	m.records[r.ID] = r
	return nil
}

// Get implements [TaskStore].
func (m *MemStore) Get(ctx context.Context, id string) (Record, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if err := m.usable(ctx); err != nil {
		return Record{}, err
	}
	r, ok := m.records[id]
	if !ok || r.Expired(m.now()) {
		return Record{}, ErrNotFound
	}
	return r.Clone(), nil
}

// Update implements [TaskStore].
func (m *MemStore) Update(ctx context.Context, next Record) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return err
	}
	old, ok := m.records[next.ID]
	if !ok || old.Expired(m.now()) {
		return ErrNotFound
	}
	if old.Version != next.Version {
		return &ConflictError{Expected: next.Version, Actual: old.Version}
	}
	next = next.Clone()
	next.Version++
	m.records[next.ID] = next
	return nil
}

// Sweep implements [TaskStore].
func (m *MemStore) Sweep(ctx context.Context, now time.Time) (int, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := m.usable(ctx); err != nil {
		return 0, err
	}
	n := 0
	for id, r := range m.records {
		if r.Expired(now) {
			delete(m.records, id)
			n++
		}
	}
	return n, nil
}

// Scan implements [Scanner].
func (m *MemStore) Scan(ctx context.Context, visit func(Record) bool) error {
	m.mu.RLock()
	err := m.usable(ctx)
	ids := make([]string, 0, len(m.records))
	for id, r := range m.records {
		if !r.Status.Terminal() {
			ids = append(ids, id)
		}
	}
	m.mu.RUnlock()
	for _, id := range ids {
		if err != nil {
			return err
		}
		m.mu.RLock()
		err = m.usable(ctx)
		r, ok := m.records[id]
		ok = ok && err == nil && !r.Status.Terminal() && !r.Expired(m.now())
		r = r.Clone()
		m.mu.RUnlock()
		if ok && !visit(r) {
			return nil
		}
	}
	return err
}

// Close implements [TaskStore]. The records are gone after it.
func (m *MemStore) Close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.closed = true
	m.records = nil
	return nil
}
