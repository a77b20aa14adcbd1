package storetest_test

import (
	"errors"

	"github.com/mcp-durable-tasks/durabletasks"
)

var aliasDefects = []defect{
	{
		name: "create keeps the caller's record",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				p.mu.Lock()
				defer p.mu.Unlock()
				if _, ok := p.records[r.ID]; ok && err == nil { // not swept meanwhile
					r.Version = 0
					p.records[r.ID] = r
				}
				return err
			}
		},
		fails: []string{"S07/record-given-to-create"},
	},
	{
		name: "update keeps the caller's record",
		plant: func(p *planted) {
			p.update = func(c ctx, next record, expected int64) (record, error) {
				r, err := p.doUpdate(c, next, expected)
				if err == nil {
					p.mu.Lock()
					defer p.mu.Unlock()
					next.Version = r.Version
					p.records[next.ID] = next
				}
				return r, err
			}
		},
		fails: []string{"S07/record-given-to-update"},
		also:  everyRace, // it writes twice
	},
	{
		name: "get gives the stored record away",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := p.usable(c); err != nil {
					return record{}, err
				}
				return p.find(id)
			}
		},
		fails: []string{"S07/record-returned-by-get"},
	},
	{
		name: "get gives the stored keys away",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				r.UsedInputKeys = p.records[id].UsedInputKeys
				return r, err
			}
		},
		fails: []string{"S07/record-returned-by-get"},
		also:  []string{"S08/readers-see-whole-updates", "S06/*", "S14/*", "S16/records-beside-errors-are-zero"}, // it reads twice
	},
	{
		name: "get answers from a cache",
		plant: func(p *planted) {
			cache := make(map[string]record)
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if cached, ok := cache[id]; ok && err == nil && cached.Version == r.Version && cached.StatusMessage == r.StatusMessage {
					r.InputResponses = cached.InputResponses
				}
				cache[id] = r
				return r, err
			}
		},
		fails: []string{"S07/record-returned-by-get"},
	},
	{
		name: "update gives the stored record away",
		plant: func(p *planted) {
			p.update = func(c ctx, next record, expected int64) (record, error) {
				if _, err := p.doUpdate(c, next, expected); err != nil {
					return record{}, err
				}
				p.mu.Lock()
				defer p.mu.Unlock()
				r := p.records[next.ID]
				r.Version = expected + 1
				return r, nil
			}
		},
		fails: []string{"S07/record-returned-by-update"},
		also:  everyRace, // it reads what another may have written
	},
	{
		name: "a conflict gives the stored record away",
		plant: func(p *planted) {
			p.update = func(c ctx, next record, expected int64) (record, error) {
				r, err := p.doUpdate(c, next, expected)
				if errors.Is(err, durabletasks.ErrConflict) {
					p.mu.Lock()
					defer p.mu.Unlock()
					r = p.records[next.ID]
				}
				return r, err
			}
		},
		fails: []string{"S07/record-returned-by-update"},
		also:  []string{"S16/records-beside-errors-are-zero"},
	},
}
