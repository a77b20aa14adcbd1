package storetest_test

import (
	"context"
	"errors"
	"runtime"
	"time"
)

var contextDefects = []defect{
	{
		name: "create does not check its context",
		plant: func(p *planted) {
			p.create = func(_ ctx, r record) error { return p.doCreate(context.Background(), r) }
		},
		fails: []string{"S13/done-context-stops-create"},
		also:  []string{"S11/refused-calls-leave-nothing"},
	},
	{
		name: "get does not check its context",
		plant: func(p *planted) {
			p.get = func(_ ctx, id string) (record, error) { return p.doGet(context.Background(), id) }
		},
		fails: []string{"S13/done-context-stops-get"},
	},
	{
		name: "update does not check its context",
		plant: func(p *planted) {
			p.update = func(_ ctx, next record) error {
				return p.doUpdate(context.Background(), next)
			}
		},
		fails: []string{"S13/done-context-stops-update"},
		also:  []string{"S11/refused-calls-leave-nothing"},
	},
	{
		name: "sweep does not check its context",
		plant: func(p *planted) {
			p.sweep = func(_ ctx, now time.Time) (int, error) { return p.doSweep(context.Background(), now) }
		},
		fails: []string{"S13/done-context-stops-sweep"},
	},
	{
		name: "create checks its context last",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				return errors.Join(p.doCreate(context.Background(), r), c.Err())
			}
		},
		fails: []string{"S13/done-context-stops-create"},
		also:  []string{"S13/cancelled-call-is-all-or-nothing", "S11/refused-calls-leave-nothing"},
	},
	{
		name:  "update reports a context that ended after the commit",
		waits: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				betweenLookAndWrite()
				if err == nil {
					err = c.Err()
				}
				return err
			}
		},
		fails: []string{"S13/cancelled-call-is-all-or-nothing"},
	},
	{
		name: "the context's cause is reported",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				if c.Err() != nil {
					return record{}, context.Cause(c)
				}
				return p.doGet(c, id)
			}
		},
		fails: []string{"S13/done-context-stops-get"},
	},
	{
		name: "a commit is undone when its context ends",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				old := p.records[next.ID]
				p.mu.Unlock()
				err := p.doUpdate(c, next)
				if err == nil {
					context.AfterFunc(c, func() {
						p.mu.Lock()
						defer p.mu.Unlock()
						p.records[next.ID] = old
					})
				}
				return err
			}
		},
		fails: []string{"S13/cancelled-after-return-undoes-nothing"},
		also:  []string{"S13/cancelled-call-is-all-or-nothing"},
	},
	{
		name: "a sweep checks its context between removals",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				err := p.usable(c)
				var ids []string
				for id := range p.records {
					ids = append(ids, id)
				}
				p.mu.Unlock()
				n := 0
				for _, id := range ids {
					if err != nil {
						return 0, err
					}
					p.mu.Lock()
					if r, ok := p.records[id]; ok && p.expired(r, now) {
						p.remove(id)
						n++
					}
					p.mu.Unlock()
					runtime.Gosched()
					err = c.Err()
				}
				return n, err
			}
		},
		fails: []string{"S13/cancelled-sweep-is-all-or-nothing"},
	},
	{
		name: "a sweep whose context is done returns a count",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				n, err := p.doSweep(c, now)
				if err != nil && err == c.Err() {
					n = len(p.records)
				}
				return n, err
			}
		},
		fails: []string{"S13/done-context-stops-sweep"},
		also:  []string{"S13/cancelled-sweep-is-all-or-nothing"},
	},
	{
		name: "a sweep of nothing does not check its context",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				nothing := len(p.records) == 0 && !p.closed
				p.mu.Unlock()
				if nothing {
					return 0, nil
				}
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S13/done-context-stops-sweep"},
	},
	{
		name: "a sweep reports a context that ended after the commit",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				n, err := p.doSweep(c, now)
				if err == nil && c.Err() != nil {
					return 0, c.Err()
				}
				return n, err
			}
		},
		fails: []string{"S13/cancelled-sweep-is-all-or-nothing"},
	},
}
