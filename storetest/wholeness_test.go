package storetest_test

import (
	"reflect"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var wholenessDefects = []defect{
	{
		name: "an update is a patch",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				old := reflect.ValueOf(p.records[next.ID])
				p.mu.Unlock()
				next = next.Clone()
				v := reflect.ValueOf(&next).Elem()
				for i := range v.NumField() {
					if v.Field(i).IsZero() {
						v.Field(i).Set(old.Field(i))
					}
				}
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S08/update-replaces-the-whole-record"},
		also:  everything,
	},
	{
		name: "a flag cannot be lowered",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				next.CancelRequested = next.CancelRequested || p.records[next.ID].CancelRequested
				p.mu.Unlock()
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S08/update-replaces-the-whole-record"},
		also:  []string{"S11/*", "S08/empty-containers-replace-full-ones", "S08/readers-see-whole-updates", "S14/every-method-at-once", "S14/tasks-do-not-mix", "Scanner/sees-whole-updates"},
	},
	{
		name: "keys are merged",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				old := p.records[next.ID]
				p.mu.Unlock()
				next = next.Clone()
				for _, m := range [][2]map[string]wire.JSON{{next.InputRequests, old.InputRequests}, {next.InputResponses, old.InputResponses}} {
					for key, j := range m[1] {
						if _, ok := m[0][key]; !ok && len(m[0]) > 0 {
							m[0][key] = j
						}
					}
				}
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S08/omitted-keys-disappear"},
	},
	{
		name:  "the status is written before the rest",
		waits: true,
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				if p.usable(c) == nil && p.accept(next) == nil {
					half := p.records[next.ID]
					half.Status = next.Status
					p.records[next.ID] = half
					p.mu.Unlock()
					betweenLookAndWrite()
					p.mu.Lock()
				}
				p.mu.Unlock()
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S08/readers-see-whole-updates"},
		also:  append([]string{"S11/acknowledged-during-close-survives", "S13/cancelled-call-is-all-or-nothing"}, everyRace...),
	},
	{
		name: "an empty container leaves the old one",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				if next.InputResponses != nil && len(next.InputResponses) == 0 {
					next.InputResponses = p.records[next.ID].InputResponses
				}
				p.mu.Unlock()
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S08/empty-containers-replace-full-ones"},
	},
}
