package storetest_test

import (
	"errors"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var getDefects = []defect{
	{
		name: "an unknown task is an empty record",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				if errors.Is(err, durabletasks.ErrNotFound) {
					err = nil
				}
				return r, err
			}
		},
		fails: []string{"S03/unknown-id-is-not-found", "S03/expired-is-not-found", "S03/swept-is-not-found", "S03/update-never-creates"},
		also:  everything,
	},
	{
		name: "ids are searched without case",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				if errors.Is(err, durabletasks.ErrNotFound) {
					p.mu.Lock()
					defer p.mu.Unlock()
					for other, r := range p.records {
						if strings.EqualFold(other, id) && !p.expired(r, p.now()) {
							return p.out(r), nil
						}
					}
				}
				return r, err
			}
		},
		fails: []string{"S03/unknown-id-is-not-found"},
	},
	{
		name: "update creates",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if _, ok := p.records[next.ID]; !ok {
					return nil
				}
				return p.doAccept(next)
			}
			p.raise = func(next record) int64 {
				if _, ok := p.records[next.ID]; !ok {
					return 0
				}
				return next.Version + 1
			}
		},
		fails: []string{"S03/update-never-creates", "S03/swept-is-not-found"},
		also:  []string{"S10/expired-are-counted-and-removed", "S11/*", "S13/done-context-stops-create", "S13/cancelled-call-is-all-or-nothing", "S10/update-and-sweep-agree"},
	},
	{
		name: "update of an unknown task is a conflict",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				err := p.doAccept(next)
				if errors.Is(err, durabletasks.ErrNotFound) {
					err = &durabletasks.ConflictError{Expected: next.Version}
				}
				return err
			}
		},
		fails: []string{"S03/update-never-creates", "S03/expired-is-not-found", "S03/swept-is-not-found"},
		also:  []string{"S02/*", "S10/expired-are-counted-and-removed", "S11/*", "S13/*", "S09/ttl-of-zero-expires-at-once", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen", "S10/update-and-sweep-agree"},
	},
	{
		name: "update revives what has expired",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if old, ok := p.records[next.ID]; ok && old.Version == next.Version {
					return nil
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S03/expired-is-not-found"},
		also:  []string{"S02/expired-id-is-refused-or-free", "S09/ttl-of-zero-expires-at-once", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "update checks the version before the expiry",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if old, ok := p.records[next.ID]; ok && old.Version != next.Version {
					return &durabletasks.ConflictError{Expected: next.Version, Actual: old.Version}
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S03/expired-is-not-found"},
		also:  []string{"S09/ttl-of-zero-expires-at-once", "S02/expired-id-is-refused-or-free"},
	},
	{
		name: "update finds swept tasks",
		plant: func(p *planted) {
			swept := make(map[string]record)
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				for id, r := range p.records {
					if p.expired(r, now) {
						swept[id] = r
					}
				}
				p.mu.Unlock()
				return p.doSweep(c, now)
			}
			p.accept = func(next record) error {
				if _, ok := swept[next.ID]; ok {
					return nil
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S03/swept-is-not-found"},
		also:  []string{"S10/expired-are-counted-and-removed", "S10/update-and-sweep-agree"},
	},

	{
		name: "a read of an unknown id makes it taken",
		plant: func(p *planted) {
			taken := make(map[string]bool)
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				taken[id] = taken[id] || errors.Is(err, durabletasks.ErrNotFound)
				return r, err
			}
			p.admit = func(r record) error {
				if taken[r.ID] {
					return durabletasks.ErrExists
				}
				return p.doAdmit(r)
			}
		},
		fails: []string{"S04/reads-change-nothing"},
		also:  []string{"S03/update-never-creates", "S11/swept-records-stay-away", "S13/done-context-stops-create", "S13/cancelled-call-is-all-or-nothing", "S14/every-method-at-once"},
	},
	{
		name: "a second read of a version marks the record",
		plant: func(p *planted) {
			reads := make(map[string]int64)
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				if err != nil {
					return r, err
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				if reads[id]++; reads[id] == 3 {
					stored := p.records[id]
					stored.LastUpdatedAt = stored.LastUpdatedAt.Add(time.Millisecond)
					p.records[id] = stored
					return p.out(stored), nil
				}
				return r, err
			}
		},
		fails: []string{"S04/reads-change-nothing"},
		also:  everything,
	},
	{
		name: "a read removes expired tasks",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if old, ok := p.records[id]; ok && !p.closed && p.expired(old, p.now()) {
					delete(p.records, id)
				}
				return r, err
			}
		},
		fails: []string{"S04/reads-of-expired-remove-nothing"},
		also:  []string{"S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a scan removes expired tasks",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				if _, err := p.doSweep(c, p.now()); err != nil {
					return err
				}
				return p.doScan(c, visit)
			}
		},
		fails: []string{"S04/scans-of-expired-remove-nothing"},
	},
}
