package storetest_test

import (
	"errors"
	"strings"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var stringDefects = []defect{
	{
		name:  "ids are trimmed",
		plant: func(p *planted) { underID(p, strings.TrimSpace) },
		fails: []string{"S15/ids-are-arbitrary-strings"},
		also:  []string{"S03/unknown-id-is-not-found", "S11/hostile-strings-and-json-survive", "Scanner/shows-every-id"},
	},
	{
		name:  "ids are without case",
		plant: func(p *planted) { underID(p, strings.ToLower) },
		fails: []string{"S15/ids-are-arbitrary-strings"},
		also:  []string{"S03/unknown-id-is-not-found", "S11/hostile-strings-and-json-survive", "S15/*", "Scanner/visit-may-call-the-store", "Scanner/shows-every-id"},
	},
	{
		name: "ids end at a NUL",
		plant: func(p *planted) {
			underID(p, func(s string) string {
				s, _, _ = strings.Cut(s, "\x00")
				return s
			})
		},
		fails: []string{"S15/ids-are-arbitrary-strings"},
		also:  []string{"S03/unknown-id-is-not-found", "S11/hostile-strings-and-json-survive", "Scanner/shows-every-id"},
	},
	{
		name:  "ids have 255 bytes",
		plant: func(p *planted) { underID(p, func(s string) string { return s[:min(len(s), 255)] }) },
		fails: []string{"S15/ids-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive", "S15/long-strings-are-kept", "Scanner/shows-every-id"},
	},
	{
		name: "the empty id is none",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				if r.ID == "" {
					return errors.New("no id")
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S15/ids-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive", "Scanner/shows-every-id"},
	},
	{
		name: "a key named like a prototype is dropped",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				delete(r.InputRequests, "__proto__")
				return r
			}
		},
		fails: []string{"S15/keys-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "used keys are joined by commas",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				if joined := strings.Join(r.UsedInputKeys, ","); joined != "" {
					r.UsedInputKeys = strings.Split(joined, ",")
				}
				return r
			}
		},
		fails: []string{"S15/keys-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "texts have Unix line ends",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.StatusMessage = strings.ReplaceAll(r.StatusMessage, "\r\n", "\n")
				return r.Clone()
			}
		},
		fails: []string{"S15/texts-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "owners have 255 bytes",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.Owner = r.Owner[:min(len(r.Owner), 255)]
				return r.Clone()
			}
		},
		fails: []string{"S15/texts-are-arbitrary-strings"},
		also:  []string{"S11/hostile-strings-and-json-survive", "S11/long-strings-and-many-keys-survive", "S15/long-strings-are-kept", "S15/large-records-are-kept"},
	},
	{
		name: "strings are made valid UTF-8",
		plant: func(p *planted) {
			valid := func(s string) string { return strings.ToValidUTF8(s, "\ufffd") }
			in := p.in
			p.in = func(r record) record { return eachString(in(r), valid) }
		},
		fails: []string{"S15/invalid-utf-8-is-kept"},
	},
	{
		name: "ids are made valid UTF-8",
		plant: func(p *planted) {
			underID(p, func(s string) string { return strings.ToValidUTF8(s, "\ufffd") })
		},
		fails: []string{"S15/invalid-utf-8-is-kept"},
		also:  []string{"Scanner/shows-every-id"},
	},
	{
		name: "texts have 64 KiB less one",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.StatusMessage = r.StatusMessage[:min(len(r.StatusMessage), 1<<16-1)]
				return r.Clone()
			}
		},
		fails: []string{"S15/long-strings-are-kept"},
		also:  []string{"S11/long-strings-and-many-keys-survive", "S15/large-records-are-kept"},
	},
	{
		name: "keys have 64 KiB less one",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				for key, j := range r.InputRequests {
					delete(r.InputRequests, key)
					r.InputRequests[key[:min(len(key), 1<<16-1)]] = j
				}
				return r
			}
		},
		fails: []string{"S15/long-strings-are-kept"},
		also:  []string{"S11/long-strings-and-many-keys-survive"},
	},
	{
		name: "there are 255 keys",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.UsedInputKeys = r.UsedInputKeys[:min(len(r.UsedInputKeys), 255)]
				return r.Clone()
			}
		},
		fails: []string{"S15/many-keys-are-kept"},
		also:  []string{"S11/long-strings-and-many-keys-survive", "S15/large-records-are-kept"},
	},
	{
		name: "records have 3 MiB",
		plant: func(p *planted) {
			p.admit = func(r record) error {
				size := 0
				eachJSON(r, func(j wire.JSON) wire.JSON {
					size += j.Len()
					return j
				})
				if size > 3<<20 {
					return errors.New("too large")
				}
				return p.doAdmit(r)
			}
		},
		fails: []string{"S15/large-records-are-kept"},
	},
}

// eachString returns r with f applied to its texts and keys.
func eachString(r record, f func(string) string) record {
	r = r.Clone()
	r.StatusMessage, r.Owner = f(r.StatusMessage), f(r.Owner)
	for i, key := range r.UsedInputKeys {
		r.UsedInputKeys[i] = f(key)
	}
	for _, m := range []*map[string]wire.JSON{&r.InputRequests, &r.InputResponses} {
		changed := make(map[string]wire.JSON)
		for key, j := range *m {
			changed[f(key)] = j
		}
		*m = changed
	}
	return r
}

// underID makes the store use another id than it is given.
func underID(p *planted, f func(string) string) {
	stored := func(r record) record {
		r.ID = f(r.ID)
		return r
	}
	named := func(r record, id string, err error) (record, error) {
		if err == nil {
			r.ID = id
		}
		return r, err
	}
	p.create = func(c ctx, r record) error { return p.doCreate(c, stored(r)) }
	p.get = func(c ctx, id string) (record, error) {
		r, err := p.doGet(c, f(id))
		return named(r, id, err)
	}
	p.update = func(c ctx, next record, expected int64) (record, error) {
		r, err := p.doUpdate(c, stored(next), expected)
		return named(r, next.ID, err)
	}
}
