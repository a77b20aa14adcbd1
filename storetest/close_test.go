package storetest_test

import (
	"errors"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

var closeDefects = []defect{
	{
		name: "a closed store still reads",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := c.Err(); err != nil {
					return record{}, err
				}
				r, err := p.find(id)
				return p.out(r), err
			}
		},
		fails: []string{"S12/every-call-reports-closed", "S12/close-of-an-unused-store"},
		also:  []string{"S12/close-while-calls-run"},
	},
	{
		name: "a closed store still sweeps",
		plant: func(p *planted) {
			p.sweep = func(c ctx, now time.Time) (int, error) {
				n, err := p.doSweep(c, now)
				if errors.Is(err, durabletasks.ErrClosed) {
					err = nil
				}
				return n, err
			}
		},
		fails: []string{"S12/every-call-reports-closed", "S12/close-of-an-unused-store", "S12/close-while-calls-run"},
	},
	{
		name: "create checks the id before it checks for close",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				p.mu.Lock()
				_, taken := p.records[r.ID]
				p.mu.Unlock()
				if taken && c.Err() == nil {
					return durabletasks.ErrExists
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S12/every-call-reports-closed"},
		also:  []string{"S12/close-while-calls-run"},
	},
	{
		name: "a second close is an error",
		plant: func(p *planted) {
			p.close = func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if p.closed {
					return durabletasks.ErrClosed
				}
				p.closed = true
				p.note("")
				return nil
			}
		},
		fails: []string{"S12/close-is-idempotent", "S12/close-while-calls-run"},
		also:  []string{"S11/acknowledged-during-close-survives"},
	},
	{
		name: "close of an unused store panics",
		plant: func(p *planted) {
			p.close = func() error {
				p.mu.Lock()
				defer p.mu.Unlock()
				if len(p.records) == 0 {
					var unopened *planted
					unopened.closed = true
				}
				p.closed = true
				p.note("")
				return nil
			}
		},
		fails: []string{"S12/close-of-an-unused-store"},
		also:  everything, // many end with an empty store
	},
	{
		name:  "a call during close reports what broke",
		waits: true,
		plant: func(p *planted) {
			var closing atomic.Bool
			p.close = func() error {
				closing.Store(true)
				time.Sleep(20 * time.Millisecond)
				err := p.doClose()
				closing.Store(false)
				return err
			}
			p.create = func(c ctx, r record) error {
				if closing.Load() {
					return errors.New("write to closed file")
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S12/close-while-calls-run"},
		also:  []string{"S11/acknowledged-during-close-survives"},
	},
	{
		name: "a second close hangs",
		plant: func(p *planted) {
			var closing atomic.Bool
			closed := make(chan struct{}) // never closed
			p.close = func() error {
				if !closing.CompareAndSwap(false, true) {
					<-closed
				}
				return p.doClose()
			}
		},
		hangs: true,
		fails: []string{"S12/close-is-idempotent", "S12/close-while-calls-run"},
		also:  []string{"S11/acknowledged-during-close-survives"},
	},
}
