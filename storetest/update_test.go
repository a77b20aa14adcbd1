package storetest_test

import (
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

var updateDefects = []defect{
	{
		name: "create keeps the version passed in",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				p.mu.Lock()
				defer p.mu.Unlock()
				if _, ok := p.records[r.ID]; ok && err == nil { // it was not swept in between
					p.put(r)
				}
				return err
			}
		},
		fails: []string{"S05/create-stores-version-zero"},
	},
	{
		name: "every tenth update adds two",
		plant: func(p *planted) {
			p.raise = func(next record) int64 {
				if next.Version%10 == 9 {
					return next.Version + 2
				}
				return next.Version + 1
			}
		},
		fails: []string{"S05/each-update-adds-one"},
		also:  append([]string{"S12/close-while-calls-run", "S15/texts-are-arbitrary-strings", "S05/hundreds-of-updates-are-counted"}, everyRace...),
	},
	{
		name: "an update that changes nothing is skipped",
		plant: func(p *planted) {
			p.raise = func(next record) int64 {
				if storetest.Diff(p.records[next.ID], next) == "" {
					return next.Version
				}
				return next.Version + 1
			}
		},
		fails: []string{"S05/unchanged-update-adds-one"},
		also:  []string{"S05/*", "S01/json-is-kept-to-the-byte", "S02/taken-id-is-refused", "S03/expired-is-not-found", "S06/*", "S11/versions-survive", "S12/close-while-calls-run", "S01/poll-interval-of-zero-is-kept", "S01/times-of-every-year-are-kept", "S01/order-and-repetition-of-questions-are-kept", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a swept task's version is remembered",
		plant: func(p *planted) {
			last := make(map[string]int64)
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				for id, r := range p.records {
					last[id] = r.Version
				}
				p.mu.Unlock()
				return p.doSweep(c, now)
			}
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				p.mu.Lock()
				defer p.mu.Unlock()
				if r := p.records[r.ID]; err == nil && last[r.ID] > 0 {
					r.Version = last[r.ID] + 1
					p.records[r.ID] = r
				}
				return err
			}
		},
		fails: []string{"S05/recreated-task-starts-at-zero"},
		also:  []string{"S10/swept-ids-are-free"},
	},

	{
		name: "every update wins",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				_, err := p.find(next.ID)
				return err
			}
		},
		fails: []string{
			"S06/stale-version-changes-nothing", "S06/version-ahead-changes-nothing", "S06/conflict-names-both-versions",
			"S06/times-decide-nothing", "S06/one-of-many-updates-wins",
		},
		also: append([]string{"S11/*"}, everyRace...),
	},
	{
		name: "an update from a version ahead wins",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if old, err := p.find(next.ID); err == nil && next.Version > old.Version {
					return nil
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S06/version-ahead-changes-nothing"},
		also:  []string{"S06/conflict-names-both-versions", "S11/versions-survive"},
	},
	{
		name: "a conflict has no type",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				err := p.doAccept(next)
				if errors.Is(err, durabletasks.ErrConflict) {
					err = durabletasks.ErrConflict
				}
				return err
			}
		},
		fails: []string{"S06/stale-version-changes-nothing", "S06/conflict-names-both-versions", "S06/one-of-many-updates-wins"},
		also:  append([]string{"S06/*", "S11/*"}, everyRace...),
	},
	{
		name: "a conflict names the versions the wrong way round",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				err := p.doAccept(next)
				var conflict *durabletasks.ConflictError
				if errors.As(err, &conflict) {
					err = &durabletasks.ConflictError{Expected: conflict.Actual, Actual: conflict.Expected}
				}
				return err
			}
		},
		fails: []string{"S06/conflict-names-both-versions"},
	},
	{
		name: "an update from the past loses",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if old := p.records[next.ID]; next.LastUpdatedAt.Before(old.LastUpdatedAt) {
					return &durabletasks.ConflictError{Expected: next.Version, Actual: old.Version}
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S06/times-decide-nothing"},
		also:  everything, // the suite's records go back in time
	},
	{
		name: "a stale update with a later time wins",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				if old, err := p.find(next.ID); err == nil && next.Version == old.Version-1 && next.LastUpdatedAt.After(old.LastUpdatedAt.Add(30*time.Minute)) {
					return nil
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S06/times-decide-nothing"},
	},
	{
		name:  "an update checks first and writes later",
		waits: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
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
		fails: []string{"S06/one-of-many-updates-wins", "S06/no-update-is-lost"},
		also:  append([]string{"S11/acknowledged-during-close-survives", "S10/update-and-sweep-agree"}, everyRace...),
	},
	{
		name: "a refused update leaves its message",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				err := p.doAccept(next)
				if errors.Is(err, durabletasks.ErrConflict) {
					old := p.records[next.ID]
					old.StatusMessage = next.StatusMessage
					p.records[next.ID] = old
				}
				return err
			}
		},
		fails: []string{"S06/stale-version-changes-nothing", "S06/version-ahead-changes-nothing", "S06/times-decide-nothing"},
		also:  append([]string{"S11/*"}, everyRace...),
	},
	{
		name: "updates of one version merge",
		plant: func(p *planted) {
			p.accept = func(next record) error {
				old, err := p.find(next.ID)
				if err == nil && old.Version == next.Version+1 && old.Status != next.Status && next.Version%2 == 1 {
					return nil
				}
				return p.doAccept(next)
			}
		},
		fails: []string{"S06/one-of-many-updates-wins"},
		also:  append([]string{"S06/*", "S11/versions-survive"}, everyRace...),
	},
	{
		name:  "versions are bytes",
		plant: func(p *planted) { p.raise = func(next record) int64 { return int64(uint8(next.Version + 1)) } },
		fails: []string{"S05/hundreds-of-updates-are-counted"},
		also:  append([]string{"S12/close-while-calls-run"}, everyRace...), // which may update a task often
	},
}
