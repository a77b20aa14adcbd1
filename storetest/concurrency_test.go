package storetest_test

import (
	"errors"
	"maps"
	"sync"
	"time"
)

var concurrencyDefects = []defect{
	{
		name:  "concurrent reads of two tasks fail",
		waits: true,
		plant: func(p *planted) {
			reading := make(map[string]int)
			p.get = func(c ctx, id string) (record, error) {
				p.mu.Lock()
				reading[id]++
				others := len(reading) > 1
				p.mu.Unlock()
				betweenLookAndWrite()
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if reading[id]--; reading[id] == 0 {
					delete(reading, id)
				}
				if others {
					err = errors.New("statement is in use")
				}
				return r, err
			}
		},
		fails: []string{"S14/tasks-do-not-mix", "S14/every-method-at-once"},
	},
	{
		name:  "all reads share a buffer",
		waits: true,
		plant: func(p *planted) {
			var buffer record
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				buffer = r
				p.mu.Unlock()
				betweenLookAndWrite()
				p.mu.Lock()
				defer p.mu.Unlock()
				return buffer, err
			}
		},
		fails: []string{"S14/tasks-do-not-mix"},
		also:  append([]string{"S06/*", "S12/*"}, everyRace...),
	},
	{
		name:  "a store in use is busy",
		waits: true,
		plant: func(p *planted) {
			var using sync.Mutex
			p.sweep = func(c ctx, now time.Time) (int, error) {
				if !using.TryLock() {
					return 0, errors.New("database is locked")
				}
				defer using.Unlock()
				betweenLookAndWrite()
				return p.doSweep(c, now)
			}
		},
		fails: []string{"S14/every-method-at-once"},
		also:  []string{"S10/concurrent-sweeps-count-once"},
	},
	{
		name:  "an update is lost to an update of another task",
		waits: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				all := maps.Clone(p.records)
				err := p.usable(c)
				if err == nil {
					err = p.accept(next)
				}
				p.mu.Unlock()
				if err != nil {
					return err
				}
				betweenLookAndWrite()
				p.mu.Lock()
				defer p.mu.Unlock()
				next.Version++
				all[next.ID] = p.in(next)
				p.records = all
				return nil
			}
		},
		fails: []string{"S14/tasks-do-not-mix"},
		also:  append([]string{"S12/*", "S11/acknowledged-during-close-survives", "S10/update-and-sweep-agree"}, everyRace...),
	},
}
