package storetest_test

import (
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var shareDefects = []defect{
	{
		name:   "an instance reads from its own memory",
		shared: true,
		plant: func(p *planted) {
			own := make(map[string]record)
			p.in = func(r record) record {
				own[r.ID] = r.Clone()
				return r.Clone()
			}
			p.out = func(r record) record {
				if r, ok := own[r.ID]; ok {
					return r.Clone()
				}
				return r.Clone()
			}
		},
		fails: []string{"S01/commits-are-visible-to-other-instances"},
		also:  []string{"S06/one-of-many-instances-updates", "S12/instances-close-alone", "Scanner/instances-show-only-their-own", "Watcher/changed-may-call-the-store"},
	},
	{
		name:   "an instance knows only the ids that it created",
		waits:  true,
		shared: true,
		plant: func(p *planted) {
			own := newLock() // of this instance alone
			p.create = func(c ctx, r record) error {
				own.lock()
				defer own.unlock()
				_, err := p.doGet(c, r.ID)
				betweenLookAndWrite()
				if errors.Is(err, durabletasks.ErrNotFound) {
					p.mu.Lock()
					if p.usable(c) == nil && !p.expired(p.records[r.ID], p.now()) {
						delete(p.records, r.ID)
					}
					p.mu.Unlock()
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S02/one-of-many-instances-creates"},
	},
	{
		name:   "an instance compares versions under its own lock",
		waits:  true,
		shared: true,
		plant: func(p *planted) {
			own := newLock() // of this instance alone
			p.update = func(c ctx, next record) error {
				own.lock()
				defer own.unlock()
				if err := p.lookFirst(c, next); err != nil {
					return err
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				next.Version++
				p.put(next)
				return nil
			}
		},
		fails: []string{"S06/one-of-many-instances-updates"},
		also:  []string{"S11/acknowledged-during-close-survives", "S10/update-and-sweep-agree"},
	},
	{
		name:   "instances sweep the same records",
		waits:  true,
		shared: true,
		plant: func(p *planted) {
			own := newLock() // of this instance alone
			p.sweep = func(c ctx, now time.Time) (int, error) {
				own.lock()
				defer own.unlock()
				p.mu.Lock()
				n := 0
				for _, r := range p.records {
					if p.expired(r, now) {
						n++
					}
				}
				p.mu.Unlock()
				betweenLookAndWrite()
				if _, err := p.doSweep(c, now); err != nil {
					return 0, err
				}
				return n, nil
			}
		},
		fails: []string{"S10/sweeps-of-instances-count-once"},
		also:  []string{"S14/every-method-at-once", "S10/update-and-sweep-agree"},
	},
	{
		name:   "close removes the data of other instances",
		shared: true,
		plant: func(p *planted) {
			p.close = func() error {
				p.mu.Lock()
				others := make(map[*planted]bool)
				for _, change := range p.history {
					others[change.by] = true
				}
				if delete(others, p); len(others) > 0 {
					p.records = make(map[string]record)
				}
				p.mu.Unlock()
				return p.doClose()
			}
		},
		fails: []string{"S12/instances-close-alone"},
	},
	{
		name:   "a scan shows the tasks of other instances",
		shared: true,
		plant:  func(p *planted) { p.mine = func(string) bool { return true } },
		fails:  []string{"Scanner/instances-show-only-their-own", "Scanner/tasks-of-a-closed-instance-go-to-one"},
	},
	{
		name:   "a scan shows only tasks that the instance created",
		shared: true,
		plant: func(p *planted) {
			p.mine = func(id string) bool { return p.runs[id] == p || p.runs[id] == nil }
		},
		fails: []string{"Scanner/tasks-of-a-closed-instance-go-to-one"},
	},
	{
		name:   "an update takes over the task",
		shared: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				if err == nil {
					p.mu.Lock()
					p.runs[next.ID] = p
					p.mu.Unlock()
				}
				return err
			}
		},
		fails: []string{"Scanner/instances-show-only-their-own"},
	},
}
