package storetest_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

type (
	ctx    = context.Context
	record = durabletasks.Record
)

// disk is the data that the instances of a store share.
type disk struct {
	mu      sync.Mutex
	records map[string]record
	runs    map[string]*planted // the instance that is to run a task
	history []change
	changed chan struct{} // closed, and replaced, when something changes
}

// change is a commit or the close of an instance.
type change struct {
	by *planted
	id string
}

// planted is a correct store, durable while the process lives. A defect replaces
// some of its functions.
type planted struct {
	*disk
	now    func() time.Time
	closed bool

	in, out func(record) record          // between a caller's memory and the store's
	expired func(record, time.Time) bool // whether a record is expired, for every method
	admit   func(r record) error         // whether r may be created; with mu held
	accept  func(next record) error      // whether next may replace what is stored; with mu held
	raise   func(next record) int64      // the version that an update to next stores; with mu held
	mine    func(id string) bool         // whether this instance is to run a task; with mu held
	saved   func(record) (record, bool)  // what a reopen finds of a record; false: nothing

	create func(ctx, record) error
	get    func(ctx, string) (record, error)
	update func(ctx, record) error
	sweep  func(ctx, time.Time) (int, error)
	close  func() error
	scan   func(ctx, func(record) bool) error
	watch  func(ctx, func(string)) error
}

var (
	_ durabletasks.TaskStore = (*planted)(nil)
	_ durabletasks.Scanner   = (*planted)(nil)
	_ durabletasks.Watcher   = (*planted)(nil)
)

// plant returns a store with a defect on a disk.
func plant(now func() time.Time, defect func(*planted), d *disk) *planted {
	p := &planted{
		disk:    d,
		now:     now,
		in:      record.Clone,
		out:     record.Clone,
		expired: func(r record, now time.Time) bool { return r.Expired(now) },
		raise:   func(next record) int64 { return next.Version + 1 },
		saved:   func(r record) (record, bool) { return r, true },
	}
	p.admit, p.accept = p.doAdmit, p.doAccept
	p.create, p.get, p.update, p.sweep, p.close = p.doCreate, p.doGet, p.doUpdate, p.doSweep, p.doClose
	p.scan, p.watch, p.mine = p.doScan, p.doWatch, p.doMine
	defect(p)
	return p
}

func newDisk(records map[string]record) *disk {
	return &disk{records: records, runs: make(map[string]*planted), changed: make(chan struct{})}
}

// subject returns a Subject for the store with a defect.
func subject(defect func(*planted)) storetest.Subject {
	var clock storetest.Clock
	s := subjectBy(clock.Now, defect)
	s.Now, s.Advance = clock.Now, clock.Advance
	return s
}

// subjectBy is subject with this clock for the store.
func subjectBy(now func() time.Time, defect func(*planted)) storetest.Subject {
	return storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore {
			return plant(now, defect, newDisk(make(map[string]record)))
		},
		Reopen: func(_ testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore {
			p := old.(*planted)
			p.mu.Lock()
			defer p.mu.Unlock()
			records := make(map[string]record)
			for id, r := range p.records {
				if r, ok := p.saved(r); ok {
					records[id] = r
				}
			}
			return plant(now, defect, newDisk(records))
		},
		Share: func(_ testing.TB, with durabletasks.TaskStore) durabletasks.TaskStore {
			return plant(now, defect, with.(*planted).disk)
		},
	}
}

func (p *planted) Create(c ctx, r record) error              { return p.create(c, r) }
func (p *planted) Get(c ctx, id string) (record, error)      { return p.get(c, id) }
func (p *planted) Update(c ctx, next record) error           { return p.update(c, next) }
func (p *planted) Sweep(c ctx, now time.Time) (int, error)   { return p.sweep(c, now) }
func (p *planted) Close() error                              { return p.close() }
func (p *planted) Scan(c ctx, visit func(record) bool) error { return p.scan(c, visit) }
func (p *planted) Watch(c ctx, changed func(string)) error   { return p.watch(c, changed) }

// usable reports why a call cannot go on. The caller holds mu.
func (p *planted) usable(c ctx) error {
	if p.closed {
		return durabletasks.ErrClosed
	}
	return c.Err()
}

// find returns the stored record, unless it has expired. The caller holds mu.
func (p *planted) find(id string) (record, error) {
	r, ok := p.records[id]
	if !ok || p.expired(r, p.now()) {
		return record{}, durabletasks.ErrNotFound
	}
	return r, nil
}

func (p *planted) doCreate(c ctx, r record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(c); err != nil {
		return err
	}
	if err := p.admit(r); err != nil {
		return err
	}
	r.Version = 0
	p.put(r)
	p.runs[r.ID] = p
	return nil
}

// put stores a record. The caller holds mu.
func (p *planted) put(r record) {
	p.records[r.ID] = p.in(r)
	p.note(r.ID)
}

// remove removes a record. The caller holds mu.
func (p *planted) remove(id string) {
	delete(p.records, id)
	p.note(id)
}

// note wakes every Watch. The caller holds mu.
func (p *planted) note(id string) {
	p.history = append(p.history, change{p, id})
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *planted) doAdmit(r record) error {
	if _, ok := p.records[r.ID]; ok {
		return durabletasks.ErrExists
	}
	return nil
}

func (p *planted) doGet(c ctx, id string) (record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(c); err != nil {
		return record{}, err
	}
	r, err := p.find(id)
	return p.out(r), err
}

func (p *planted) doUpdate(c ctx, next record) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(c); err != nil {
		return err
	}
	if err := p.accept(next); err != nil {
		return err
	}
	next.Version = p.raise(next)
	p.put(next)
	return nil
}

func (p *planted) doAccept(next record) error {
	old, err := p.find(next.ID)
	if err == nil && old.Version != next.Version {
		err = &durabletasks.ConflictError{Expected: next.Version, Actual: old.Version}
	}
	return err
}

func (p *planted) doSweep(c ctx, now time.Time) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(c); err != nil {
		return 0, err
	}
	n := 0
	for id, r := range p.records {
		if p.expired(r, now) {
			p.remove(id)
			n++
		}
	}
	return n, nil
}

func (p *planted) doClose() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.note("")
	return nil
}

func (p *planted) doScan(c ctx, visit func(record) bool) error {
	p.mu.Lock()
	err := p.usable(c)
	var unfinished []record
	for _, r := range p.records {
		if !r.Status.Terminal() && !p.expired(r, p.now()) && p.mine(r.ID) {
			unfinished = append(unfinished, p.out(r))
		}
	}
	p.mu.Unlock()
	if err != nil {
		return err
	}
	for _, r := range unfinished {
		if err := c.Err(); err != nil {
			return err
		}
		if !visit(r) {
			return nil
		}
	}
	return nil
}

// doMine makes this the instance that is to run a task, if no other is that
// lives.
func (p *planted) doMine(id string) bool {
	if other := p.runs[id]; other == nil || other.closed {
		p.runs[id] = p
	}
	return p.runs[id] == p
}

func (p *planted) doWatch(c ctx, changed func(string)) error {
	p.mu.Lock()
	seen := len(p.history)
	p.mu.Unlock()
	for {
		p.mu.Lock()
		err, more, wake := p.usable(c), p.history[seen:], p.changed
		p.mu.Unlock()
		if err != nil {
			return err
		}
		seen += len(more)
		for _, change := range more {
			if change.by != p && change.id != "" {
				changed(change.id)
			}
		}
		if len(more) == 0 {
			select {
			case <-wake:
			case <-c.Done():
			}
		}
	}
}
