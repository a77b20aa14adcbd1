package storetest_test

import (
	"context"
	"errors"

	"github.com/mcp-durable-tasks/durabletasks"
)

// reporting makes Watch report only the changes that accept accepts.
func reporting(p *planted, accept func(r record, stored bool) bool) {
	p.watch = func(c ctx, changed func(string)) error {
		return p.doWatch(c, func(id string) {
			p.mu.Lock()
			r, stored := p.records[id]
			p.mu.Unlock()
			if accept(r, stored) {
				changed(id)
			}
		})
	}
}

var watchDefects = []defect{
	{
		name:   "a watch does not report new tasks",
		shared: true,
		plant: func(p *planted) {
			reporting(p, func(r record, stored bool) bool { return !stored || r.Version > 0 })
		},
		hangs: true,
		fails: []string{"Watcher/reports-other-instances"},
		also:  []string{"Watcher/changed-may-call-the-store"},
	},
	{
		name:   "a watch reports only new tasks",
		shared: true,
		plant: func(p *planted) {
			reported := make(map[string]bool)
			reporting(p, func(r record, stored bool) bool {
				again := reported[r.ID]
				reported[r.ID] = true
				return !again
			})
		},
		hangs: true,
		fails: []string{"Watcher/reports-other-instances"},
	},
	{
		name:   "a watch does not report removed tasks",
		shared: true,
		plant: func(p *planted) {
			reporting(p, func(_ record, stored bool) bool { return stored })
		},
		hangs: true,
		fails: []string{"Watcher/reports-other-instances"},
	},
	{
		name:   "a watch reports only commits of this instance",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(c ctx, changed func(string)) error { return p.doWatch(c, func(string) {}) }
		},
		hangs: true,
		fails: []string{"Watcher/reports-other-instances", "Watcher/changed-may-call-the-store"},
	},
	{
		name:   "a watch holds the lock",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(c ctx, changed func(string)) error {
				return p.doWatch(c, func(id string) {
					p.mu.Lock()
					defer p.mu.Unlock()
					changed(id)
				})
			}
		},
		hangs: true,
		fails: []string{"Watcher/changed-may-call-the-store"},
	},
	{
		name:   "a watch does not check its context",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(_ ctx, changed func(string)) error { return p.doWatch(context.Background(), changed) }
		},
		hangs: true,
		fails: []string{"Watcher/ends-with-its-context"},
		also:  []string{"Watcher/reports-other-instances", "Watcher/changed-may-call-the-store"},
	},
	{
		name:   "a watch whose context ends returns nil",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(c ctx, changed func(string)) error {
				if err := p.doWatch(c, changed); !errors.Is(err, context.Canceled) {
					return err
				}
				return nil
			}
		},
		fails: []string{"Watcher/ends-with-its-context"},
		also:  []string{"Watcher/reports-other-instances", "Watcher/changed-may-call-the-store"},
	},
	{
		name:   "a watch outlives close",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(c ctx, changed func(string)) error {
				if err := p.doWatch(c, changed); !errors.Is(err, durabletasks.ErrClosed) {
					return err
				}
				<-c.Done()
				return c.Err()
			}
		},
		hangs: true,
		fails: []string{"Watcher/ends-with-close"},
	},
	{
		name:   "a watch that close ends returns nil",
		shared: true,
		plant: func(p *planted) {
			p.watch = func(c ctx, changed func(string)) error {
				if err := p.doWatch(c, changed); !errors.Is(err, durabletasks.ErrClosed) {
					return err
				}
				return nil
			}
		},
		fails: []string{"Watcher/ends-with-close"},
	},
}
