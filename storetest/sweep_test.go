package storetest_test

import (
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var sweepDefects = []defect{
	{
		name: "a sweep of nothing is an error",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				empty := len(p.records) == 0 && !p.closed
				p.mu.Unlock()
				if empty && c.Err() == nil {
					return 0, errors.New("nothing to sweep")
				}
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S10/empty-store-sweeps-nothing"},
		also:  []string{"S10/*", "S14/every-method-at-once"},
	},
	{
		name: "a sweep counts every record",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				n := len(p.records)
				p.mu.Unlock()
				_, err := p.doSweep(c, now)
				return n, err
			}
		},
		fails: []string{"S10/expired-are-counted-and-removed", "S10/expired-by-the-clock-are-counted", "S10/argument-decides"},
		also:  []string{"S10/*", "S11/*", "S14/every-method-at-once", "Scanner/*", "S09/ttl-of-zero-expires-at-once", "S13/done-context-stops-sweep", "S13/cancelled-sweep-is-all-or-nothing"},
	},
	{
		name: "a sweep counts and does not remove",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				n := 0
				for _, r := range p.records {
					if p.expired(r, now) {
						n++
					}
				}
				return n, p.usable(c)
			}
		},
		fails: []string{"S10/expired-are-counted-and-removed", "S10/expired-by-the-clock-are-counted", "S10/swept-ids-are-free", "S10/many-are-swept-at-once"},
		also:  []string{"S10/*", "S03/swept-is-not-found", "S05/recreated-task-starts-at-zero", "S11/*", "S14/every-method-at-once", "Scanner/shows-current-records", "S13/cancelled-sweep-is-all-or-nothing", "S13/done-context-stops-sweep"},
	},
	{
		name: "a sweep uses the store's clock",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) { return p.doSweep(c, p.now()) }
		},
		fails: []string{"S10/argument-decides"},
		also:  []string{"S10/*", "S03/swept-is-not-found", "S05/recreated-task-starts-at-zero", "S11/*", "S13/done-context-stops-sweep", "S14/every-method-at-once", "Scanner/shows-current-records", "Scanner/continues-while-tasks-end", "S13/cancelled-sweep-is-all-or-nothing"},
	},
	{
		name: "a sweep at no later time than the last does nothing",
		plant: func(p *planted) {
			var last time.Time
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				skip := !now.After(last) && !p.closed
				if !skip {
					last = now
				}
				p.mu.Unlock()
				if skip && c.Err() == nil {
					return 0, nil
				}
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S10/concurrent-sweeps-count-once"},
		also:  []string{"S14/every-method-at-once", "S13/done-context-stops-sweep", "S10/any-time-is-accepted", "S13/cancelled-sweep-is-all-or-nothing"},
	},
	{
		name: "a sweep removes twenty",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := p.usable(c); err != nil {
					return 0, err
				}
				n := 0
				for id, r := range p.records {
					if n < 20 && p.expired(r, now) {
						p.remove(id)
						n++
					}
				}
				return n, nil
			}
		},
		fails: []string{"S10/many-are-swept-at-once"},
	},
	{
		name: "a sweep removes finished tasks",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				n, err := p.doSweep(c, now)
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil {
					for id, r := range p.records {
						if r.Status.Terminal() {
							p.remove(id)
						}
					}
				}
				return n, err
			}
		},
		fails: []string{"S10/expired-are-counted-and-removed"},
		also:  append([]string{"S13/*", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"}, everyRace...),
	},
	{
		name: "a sweep keeps tasks that wait for input",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				var kept []record
				for id, r := range p.records {
					if r.Status == durabletasks.StatusInputRequired && p.usable(c) == nil {
						kept = append(kept, r)
						p.remove(id)
					}
				}
				p.mu.Unlock()
				n, err := p.doSweep(c, now)
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, r := range kept {
					p.records[r.ID] = r
				}
				return n, err
			}
		},
		fails: []string{"S10/expired-are-counted-and-removed"},
		also:  append([]string{"S10/swept-ids-are-free", "S04/scans-of-expired-remove-nothing", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen", "S10/reopen-removes-nothing"}, everyRace...),
	},
	{
		name: "a sweep uses the first TTL",
		plant: func(p *planted) {
			first := make(map[string]time.Duration)
			for id, r := range p.records {
				first[id] = r.TTL
			}
			p.in = func(r record) record {
				if r.Version == 0 {
					first[r.ID] = r.TTL
				}
				return r.Clone()
			}
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := p.usable(c); err != nil {
					return 0, err
				}
				n := 0
				for id, r := range p.records {
					if r.TTL = first[id]; r.Expired(now) {
						p.remove(id)
						n++
					}
				}
				return n, nil
			}
		},
		fails: []string{"S10/changed-ttl-counts"},
		also:  []string{"S11/reopened-store-works", "S10/update-and-sweep-agree"},
	},
	{
		name: "a swept id stays taken",
		plant: func(p *planted) {
			ever := make(map[string]bool)
			p.admit = func(r record) error {
				if ever[r.ID] {
					return durabletasks.ErrExists
				}
				ever[r.ID] = true
				return p.doAdmit(r)
			}
		},
		fails: []string{"S10/swept-ids-are-free", "S10/expired-by-the-clock-are-counted"},
		also:  []string{"S05/recreated-task-starts-at-zero", "S11/*", "S10/any-time-is-accepted"},
	},
	{
		name: "no limit is swept in the far future",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				n, err := p.doSweep(c, now)
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil && now.Year() > 2400 {
					clear(p.records)
				}
				return n, err
			}
		},
		fails: []string{"S10/no-limit-is-never-swept"},
	},
	{
		name:  "two sweeps count the same record",
		waits: true,
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				var expired []string
				for id, r := range p.records {
					if p.expired(r, now) {
						expired = append(expired, id)
					}
				}
				err := p.usable(c)
				p.mu.Unlock()
				if err != nil {
					return 0, err
				}
				betweenLookAndWrite()
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, id := range expired {
					p.remove(id)
				}
				return len(expired), nil
			}
		},
		fails: []string{"S10/concurrent-sweeps-count-once"},
		also:  []string{"S14/every-method-at-once", "S10/update-and-sweep-agree"},
	},
	{
		name: "a sweep rounds its time",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) { return p.doSweep(c, now.Round(time.Millisecond)) }
		},
		fails: []string{"S10/any-time-is-accepted"},
	},
	{
		name: "a sweep ignores the zone of its time",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				_, offset := now.Zone()
				return p.doSweep(c, now.Add(time.Duration(offset)*time.Second))
			}
		},
		fails: []string{"S10/any-time-is-accepted"},
	},
	{
		name: "a sweep at the zero time uses the clock",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				if now.IsZero() {
					now = p.now()
				}
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S10/earlier-time-keeps-what-expired-later"},
	},
	{
		name: "a sweep removes what has expired by the clock as well",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				if by := p.now(); by.After(now) {
					now = by
				}
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S10/earlier-time-keeps-what-expired-later"},
		also:  []string{"S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name:  "a sweep checks first and removes later",
		waits: true,
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				err := p.usable(c)
				var expired []string
				for id, r := range p.records {
					if p.expired(r, now) {
						expired = append(expired, id)
					}
				}
				p.mu.Unlock()
				if err != nil || len(expired) == 0 {
					return 0, err
				}
				betweenLookAndWrite()
				p.mu.Lock()
				defer p.mu.Unlock()
				n := 0
				for _, id := range expired {
					if _, ok := p.records[id]; ok {
						p.remove(id)
						n++
					}
				}
				return n, nil
			}
		},
		fails: []string{"S10/update-and-sweep-agree"},
	},
	{
		name:  "an update restores what a sweep has just removed",
		waits: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				if err := p.lookFirst(c, next); err != nil {
					return err
				}
				p.mu.Lock()
				if old, ok := p.records[next.ID]; !ok && p.usable(c) == nil {
					p.put(next)
				} else if ok && old.Version != next.Version {
					p.mu.Unlock()
					return &durabletasks.ConflictError{Expected: next.Version, Actual: old.Version}
				}
				p.mu.Unlock()
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S10/update-and-sweep-agree"},
	},
	{
		name: "a reopen removes expired tasks",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) { return r, !p.expired(r, p.now()) }
		},
		fails: []string{"S10/reopen-removes-nothing", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a record that was found expired stays expired",
		plant: func(p *planted) {
			found := make(map[string]bool)
			p.expired = func(r record, now time.Time) bool {
				if r.Expired(p.now()) {
					found[r.ID] = true
				}
				return r.Expired(now) || found[r.ID] && r.TTL >= 0
			}
		},
		fails: []string{"S10/clock-set-back-finds-all"},
		also:  []string{"S10/*"},
	},
}
