package storetest_test

import (
	"errors"
	"slices"

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
				if _, ok := p.records[r.ID]; ok && err == nil { // it was not swept in between
					r.Version = 0
					p.records[r.ID] = r
				}
				return err
			}
		},
		fails: []string{"S07/record-passed-to-create"},
	},
	{
		name: "update keeps the caller's record",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				if err == nil {
					p.mu.Lock()
					defer p.mu.Unlock()
					next.Version++
					p.records[next.ID] = next
				}
				return err
			}
		},
		fails: []string{"S07/record-passed-to-update"},
		also:  everyRace, // it writes twice
	},
	{
		name: "get does not copy the record",
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
		name: "get does not copy the questions",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				r.Questions = p.records[id].Questions
				return r, err
			}
		},
		fails: []string{"S07/record-returned-by-get"},
		also:  []string{"S08/readers-see-whole-updates", "S06/*", "S14/*", "S16/get-with-an-error-returns-a-zero-record"}, // it reads twice
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
		name: "update appends to the caller's questions",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				_ = append(next.Questions, durabletasks.Question{Key: "later"})
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S07/arguments-are-not-changed"},
	},
	{
		name: "an update that is refused reverses the caller's questions",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				if errors.Is(err, durabletasks.ErrConflict) {
					slices.Reverse(next.Questions)
				}
				return err
			}
		},
		fails: []string{"S07/arguments-are-not-changed"},
	},
	{
		name: "a create that is refused empties the caller's maps",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				if errors.Is(err, durabletasks.ErrExists) {
					clear(r.InputRequests)
				}
				return err
			}
		},
		fails: []string{"S07/arguments-are-not-changed"},
		also:  []string{"S02/same-record-is-refused"},
	},
}
