package storetest_test

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"strings"
	"time"
)

var reopenDefects = []defect{
	{
		name:  "nothing is saved",
		plant: func(p *planted) { p.saved = func(r record) (record, bool) { return r, false } },
		fails: []string{
			"S11/created-records-survive", "S11/updated-records-survive", "S11/removed-fields-stay-removed", "S11/versions-survive",
			"S11/hostile-strings-and-json-survive", "S11/one-mebibyte-survives", "S11/swept-records-stay-away",
			"S11/refused-calls-leave-nothing", "S11/reopened-store-works", "S11/acknowledged-during-close-survives",
			"Scanner/shows-the-unfinished-after-a-reopen",
		},
		also: append([]string{"S10/clock-set-back-finds-all-after-a-reopen", "S10/reopen-removes-nothing"}, everyReopen...),
	},
	{
		name: "records that were never updated are not saved",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) { return r, r.Version > 0 }
		},
		fails: []string{"S11/created-records-survive"},
		also:  append([]string{"S10/reopen-removes-nothing"}, everyReopen...),
	},
	{
		name: "updates are not saved",
		plant: func(p *planted) {
			first := make(map[string]record)
			p.in = func(r record) record {
				if r.Version == 0 {
					first[r.ID] = r.Clone()
				}
				return r.Clone()
			}
			p.saved = func(r record) (record, bool) { return first[r.ID], true }
		},
		fails: []string{"S11/updated-records-survive", "S11/versions-survive"},
		also:  append([]string{"S10/clock-set-back-finds-all-after-a-reopen"}, everyReopen...),
	},
	{
		name: "updates are saved as patches",
		plant: func(p *planted) {
			merged := make(map[string]record)
			for id, r := range p.records {
				merged[id] = r.Clone()
			}
			p.in = func(r record) record {
				old := reflect.ValueOf(merged[r.ID])
				next := r.Clone()
				v := reflect.ValueOf(&next).Elem()
				for i := range v.NumField() {
					if v.Field(i).IsZero() && r.Version > 0 {
						v.Field(i).Set(old.Field(i))
					}
				}
				merged[r.ID] = next
				return r.Clone()
			}
			p.saved = func(r record) (record, bool) { return merged[r.ID], true }
		},
		fails: []string{"S11/removed-fields-stay-removed"},
		also:  []string{"S11/acknowledged-during-close-survives"},
	},
	{
		name: "versions are not saved",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) {
				r.Version = 0
				return r, true
			}
		},
		fails: []string{"S11/versions-survive", "S11/updated-records-survive"},
		also:  append([]string{"S09/expiry-holds-across-a-reopen", "S10/clock-set-back-finds-all-after-a-reopen"}, everyReopen...),
	},
	{
		name: "texts are saved up to a NUL",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) {
				return eachString(r, func(s string) string {
					s, _, _ = strings.Cut(s, "\x00")
					return s
				}), true
			}
		},
		fails: []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "large records are not saved",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) { return r, r.Payload.Len()+r.Checkpoint.Len() < 1<<20 }
		},
		fails: []string{"S11/one-mebibyte-survives"},
	},
	{
		name: "removals are not saved",
		plant: func(p *planted) {
			removed := make(map[string]record)
			p.sweep = func(c ctx, now time.Time) (int, error) {
				p.mu.Lock()
				for id, r := range p.records {
					if p.expired(r, now) && p.usable(c) == nil {
						removed[id] = r
					}
				}
				p.mu.Unlock()
				return p.doSweep(c, now)
			}
			p.close = func() error {
				err := p.doClose()
				p.mu.Lock()
				defer p.mu.Unlock()
				for id, r := range removed {
					if _, ok := p.records[id]; !ok {
						p.records[id] = r
					}
				}
				return err
			}
		},
		fails: []string{"S11/swept-records-stay-away", "S11/reopened-store-works"},
	},
	{
		name: "refused updates are saved",
		plant: func(p *planted) {
			refused := make(map[string]record)
			p.update = func(c ctx, next record) error {
				err := p.doUpdate(c, next)
				p.mu.Lock()
				defer p.mu.Unlock()
				delete(refused, next.ID)
				if errors.Is(err, context.Canceled) {
					next.Version++
					refused[next.ID] = next.Clone()
				}
				return err
			}
			p.saved = func(r record) (record, bool) {
				if next, ok := refused[r.ID]; ok {
					return next, true
				}
				return r, true
			}
		},
		fails: []string{"S11/refused-calls-leave-nothing"},
	},
	{
		name: "a reopened store does not know its ids",
		plant: func(p *planted) {
			before := maps.Clone(p.records)
			p.admit = func(r record) error {
				if _, ok := before[r.ID]; ok {
					return nil
				}
				return p.doAdmit(r)
			}
		},
		fails: []string{"S11/reopened-store-works"},
	},
	{
		name:  "close saves before it stops the writers",
		waits: true,
		plant: func(p *planted) {
			var saved map[string]record
			p.close = func() error {
				p.mu.Lock()
				if saved == nil {
					saved = maps.Clone(p.records)
				}
				p.mu.Unlock()
				time.Sleep(20 * time.Millisecond)
				return p.doClose()
			}
			p.saved = func(r record) (record, bool) {
				r, ok := saved[r.ID]
				return r, ok
			}
		},
		fails: []string{"S11/acknowledged-during-close-survives"},
	},
	{
		name: "lengths are saved in 16 bits",
		plant: func(p *planted) {
			p.saved = func(r record) (record, bool) {
				r.Owner = r.Owner[:len(r.Owner)%(1<<16)]
				return r, true
			}
		},
		fails: []string{"S11/long-strings-and-many-keys-survive"},
	},
}
