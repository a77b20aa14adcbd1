package storetest_test

import (
	"errors"
	"fmt"

	"github.com/mcp-durable-tasks/durabletasks"
)

var errorDefects = []defect{
	{
		name: "the error for an expired task differs",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if _, there := p.records[id]; there && errors.Is(err, durabletasks.ErrNotFound) {
					err = fmt.Errorf("expired: %w", err)
				}
				return r, err
			}
		},
		fails: []string{"S03/unknown-and-expired-have-one-error"},
	},
	{
		name: "an error names the task",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				if err != nil {
					err = fmt.Errorf("update task %q: %w", next.ID, err)
				}
				return err
			}
		},
		fails: []string{"S16/errors-reveal-nothing"},
		also:  []string{"S03/unknown-and-expired-have-one-error"},
	},
	{
		name: "the error for a taken id names its owner",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				p.mu.Lock()
				defer p.mu.Unlock()
				if errors.Is(err, durabletasks.ErrExists) {
					err = fmt.Errorf("%w: it is a task of %s", err, p.records[r.ID].Owner)
				}
				return err
			}
		},
		fails: []string{"S16/errors-reveal-nothing"},
	},
	{
		name: "get returns an expired record with its error",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if errors.Is(err, durabletasks.ErrNotFound) {
					r = p.out(p.records[id])
				}
				return r, err
			}
		},
		fails: []string{"S16/get-with-an-error-returns-a-zero-record"},
	},
}
