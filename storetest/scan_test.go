package storetest_test

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"sync"

	"github.com/mcp-durable-tasks/durabletasks"
)

// scanning makes Scan show what change makes of all records.
func scanning(p *planted, change func(all []record) []record) {
	p.scan = func(c ctx, visit func(record) bool) error {
		p.mu.Lock()
		err := p.usable(c)
		all := change(slices.Collect(maps.Values(p.records)))
		p.mu.Unlock()
		for _, r := range all {
			if err == nil {
				err = c.Err()
			}
			if err != nil || !visit(r) {
				return err
			}
		}
		return err
	}
}

// scanAtMost makes the store show no more than n records.
func scanAtMost(p *planted, n int) {
	p.scan = func(c ctx, visit func(record) bool) error {
		shown := 0
		return p.doScan(c, func(r record) bool {
			shown++
			return shown <= n && visit(r)
		})
	}
}

func (p *planted) unfinished(r record) bool { return !r.Status.Terminal() && !p.expired(r, p.now()) }

var scanDefects = []defect{
	{
		name: "a scan shows finished tasks",
		plant: func(p *planted) {
			scanning(p, func(all []record) []record {
				return slices.DeleteFunc(all, func(r record) bool { return p.expired(r, p.now()) })
			})
		},
		fails: []string{"Scanner/shows-the-unfinished", "Scanner/shows-current-records"},
		also:  []string{"Scanner/*"},
	},
	{
		name: "a scan shows only working tasks",
		plant: func(p *planted) {
			scanning(p, func(all []record) []record {
				return slices.DeleteFunc(all, func(r record) bool {
					return r.Status != durabletasks.StatusWorking || p.expired(r, p.now())
				})
			})
		},
		fails: []string{"Scanner/shows-the-unfinished"},
		also:  []string{"Scanner/*"},
	},
	{
		name: "a scan shows records as they were created",
		plant: func(p *planted) {
			first := make(map[string]record)
			in := p.in
			p.in = func(r record) record {
				if r.Version == 0 {
					first[r.ID] = in(r)
				}
				return in(r)
			}
			scanning(p, func(all []record) []record {
				var shown []record
				for _, r := range all {
					if p.unfinished(r) {
						if f, ok := first[r.ID]; ok {
							r = f
						}
						shown = append(shown, r.Clone())
					}
				}
				return shown
			})
		},
		fails: []string{"Scanner/shows-current-records"},
		also:  []string{"Scanner/sees-whole-updates", "Scanner/shows-each-of-many-that-visit-updates"},
	},
	{
		name: "a scan shows expired tasks",
		plant: func(p *planted) {
			scanning(p, func(all []record) []record {
				return slices.DeleteFunc(all, func(r record) bool { return r.Status.Terminal() })
			})
		},
		fails: []string{"Scanner/omits-expired"},
		also:  []string{"Scanner/records-do-not-alias", "S04/scans-of-expired-remove-nothing"},
	},
	{
		name: "a scan does not stop",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					visit(r)
					return true
				})
			}
		},
		fails: []string{"Scanner/stops-when-visit-returns-false"},
	},
	{
		name: "a scan that is stopped is an error",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				var stopped error
				err := p.doScan(c, func(r record) bool {
					if !visit(r) {
						stopped = errors.New("stopped")
					}
					return stopped == nil
				})
				return errors.Join(err, stopped)
			}
		},
		fails: []string{"Scanner/stops-when-visit-returns-false"},
		also:  []string{"Scanner/visit-may-call-the-store"},
	},
	{
		name: "a scan holds the lock",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				p.mu.Lock()
				defer p.mu.Unlock()
				for _, r := range p.records {
					if p.usable(c) == nil && p.unfinished(r) && !visit(p.out(r)) {
						return nil
					}
				}
				return p.usable(c)
			}
		},
		hangs: true,
		fails: []string{"Scanner/visit-may-call-the-store"},
		also:  []string{"Scanner/continues-while-tasks-end", "Scanner/shows-each-of-many-that-visit-updates"},
	},
	{
		name: "a scan does not copy records",
		plant: func(p *planted) {
			scanning(p, func(all []record) []record {
				return slices.DeleteFunc(all, func(r record) bool { return !p.unfinished(r) })
			})
		},
		fails: []string{"Scanner/records-do-not-alias"},
	},
	{
		name: "a scan shows a record once and never again",
		plant: func(p *planted) {
			shown := make(map[string]bool)
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					p.mu.Lock()
					again := shown[r.ID]
					shown[r.ID] = true
					p.mu.Unlock()
					return again || visit(r)
				})
			}
		},
		fails: []string{"Scanner/changes-nothing"},
		also:  []string{"Scanner/*"},
	},
	{
		name: "a scan shows a record twice",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					again := r.Clone()
					return visit(r) && visit(again)
				})
			}
		},
		fails: []string{"Scanner/shows-the-unfinished"},
		also:  []string{"Scanner/*"},
	},
	{
		name: "scan does not check its context",
		plant: func(p *planted) {
			p.scan = func(_ ctx, visit func(record) bool) error { return p.doScan(context.Background(), visit) }
		},
		fails: []string{"Scanner/done-context-stops-it"},
		also:  []string{"Scanner/context-done-during-scan-stops-it"},
	},
	{
		name: "a closed store has nothing to scan",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				err := p.doScan(c, visit)
				if errors.Is(err, durabletasks.ErrClosed) {
					err = nil
				}
				return err
			}
		},
		fails: []string{"Scanner/reports-closed"},
	},
	{
		name:  "a scan reads the status first and the record later",
		waits: true,
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					betweenLookAndWrite()
					p.mu.Lock()
					if now, ok := p.records[r.ID]; ok {
						r = p.out(now)
					}
					p.mu.Unlock()
					return visit(r)
				})
			}
		},
		fails: []string{"Scanner/sees-whole-updates"},
		also:  []string{"Scanner/visit-may-call-the-store", "Scanner/continues-while-tasks-end"},
	},
	{
		name: "a scan after a reopen shows only new tasks",
		plant: func(p *planted) {
			before := maps.Clone(p.records)
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					_, old := before[r.ID]
					return old || visit(r)
				})
			}
		},
		fails: []string{"Scanner/shows-the-unfinished-after-a-reopen"},
	},
	{
		name: "a scan does not show the empty id",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool { return r.ID == "" || visit(r) })
			}
		},
		fails: []string{"Scanner/shows-every-id"},
	},
	{
		name:  "a scan ends after a thousand",
		plant: func(p *planted) { scanAtMost(p, 1000) },
		fails: []string{"Scanner/shows-each-of-many"},
	},
	{
		name:  "a scan ends after a hundred",
		plant: func(p *planted) { scanAtMost(p, 100) },
		fails: []string{"Scanner/shows-each-of-many", "Scanner/shows-each-of-many-that-visit-updates"},
	},
	{
		name: "a scan counts pages in an order that updates change",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				for begin := 0; ; begin += 100 {
					var all []record
					collect := func(r record) bool {
						all = append(all, r)
						return true
					}
					if err := p.doScan(c, collect); err != nil {
						return err
					}
					if begin >= len(all) {
						return nil
					}
					slices.SortFunc(all, func(a, b record) int {
						return cmp.Or(a.LastUpdatedAt.Compare(b.LastUpdatedAt), cmp.Compare(a.ID, b.ID))
					})
					for _, r := range all[begin:min(begin+100, len(all))] {
						if err := c.Err(); err != nil {
							return err
						}
						if !visit(r) {
							return nil
						}
					}
				}
			}
		},
		fails: []string{"Scanner/shows-each-of-many-that-visit-updates"},
	},
	{
		name: "a scan ends where a task is gone",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				var gone error
				err := p.doScan(c, func(r record) bool {
					p.mu.Lock()
					_, gone = p.find(r.ID)
					p.mu.Unlock()
					return gone == nil && visit(r)
				})
				return errors.Join(err, gone)
			}
		},
		fails: []string{"Scanner/continues-while-tasks-end"},
		also:  []string{"S14/every-method-at-once"},
	},
	{
		name: "a scan calls visit from many goroutines",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				var group sync.WaitGroup
				defer group.Wait()
				return p.doScan(c, func(r record) bool {
					group.Go(func() { visit(r) })
					return true
				})
			}
		},
		fails: []string{"Scanner/visits-one-at-a-time"},
		also:  []string{"Scanner/*", "S12/close-while-calls-run", "S14/*"},
	},
	{
		name: "a scan goes on when its context ends",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				if err := c.Err(); err != nil {
					return err
				}
				return p.doScan(context.WithoutCancel(c), visit)
			}
		},
		fails: []string{"Scanner/context-done-during-scan-stops-it"},
	},
	{
		name: "a scan whose context ends returns nil",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				begun := c.Err() == nil
				err := p.doScan(c, visit)
				if begun && err == c.Err() {
					err = nil
				}
				return err
			}
		},
		fails: []string{"Scanner/context-done-during-scan-stops-it"},
	},
	{
		name: "a scan that close ends returns nil",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool {
					p.mu.Lock()
					closed := p.closed
					p.mu.Unlock()
					return !closed && visit(r)
				})
			}
		},
		fails: []string{"Scanner/reports-close-during-scan"},
	},
	{
		name: "a scan shows only tasks with a payload",
		plant: func(p *planted) {
			p.scan = func(c ctx, visit func(record) bool) error {
				return p.doScan(c, func(r record) bool { return r.Payload.IsZero() || visit(r) })
			}
		},
		fails: []string{"Scanner/shows-current-records", "Scanner/reports-close-during-scan"},
		also:  []string{"Scanner/*"},
	},
}
