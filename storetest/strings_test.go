package storetest_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
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
		name: "the empty id is refused",
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
		name: "a key of a question ends at a comma",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) { q.Key, _, _ = strings.Cut(q.Key, ",") })
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
		name: "names of tools are trimmed",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.Tool = strings.TrimSpace(r.Tool)
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
		name: "there are 255 questions",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.Questions = r.Questions[:min(len(r.Questions), 255)]
				return r.Clone()
			}
		},
		fails: []string{"S15/many-keys-are-kept"},
		also:  []string{"S11/long-strings-and-many-keys-survive", "S15/large-records-are-kept"},
	},
	{
		name: "records have 3 MiB",
		plant: func(p *planted) {
			limit(p, 3<<20, func(size int) error { return &durabletasks.TooLargeError{Size: size, Limit: 3 << 20} })
		},
		fails: []string{"S15/large-records-are-kept"},
		also:  []string{"S15/oversized-records-are-kept-or-refused"},
	},
	{
		name:  "records have 8 MiB, and the error for more has no type",
		plant: func(p *planted) { limit(p, 8<<20, func(int) error { return durabletasks.ErrTooLarge }) },
		fails: []string{"S15/oversized-records-are-kept-or-refused"},
	},
	{
		name:  "records have 8 MiB, and the error for more is the database's",
		plant: func(p *planted) { limit(p, 8<<20, func(int) error { return errors.New("packet too large") }) },
		fails: []string{"S15/oversized-records-are-kept-or-refused"},
	},
	{
		name: "records have 8 MiB, and the error for more names a limit of 1 MiB",
		plant: func(p *planted) {
			limit(p, 8<<20, func(size int) error { return &durabletasks.TooLargeError{Size: size, Limit: 1 << 20} })
		},
		fails: []string{"S15/oversized-records-are-kept-or-refused"},
	},
	{
		name: "records have 8 MiB, and what is refused for its size is stored",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				if err := p.doUpdate(c, next); err != nil {
					return err
				}
				return tooLarge(next)
			}
		},
		fails: []string{"S15/oversized-records-are-kept-or-refused"},
	},
	{
		name: "records have 8 MiB, and the rest is cut off",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				if tooLarge(r) != nil {
					clear(r.InputResponses)
				}
				return r
			}
		},
		fails: []string{"S15/oversized-records-are-kept-or-refused"},
	},
}

// size returns how much JSON a record has.
func size(r record) int {
	n := 0
	eachJSON(r, func(j wire.JSON) wire.JSON {
		n += j.Len()
		return j
	})
	return n
}

// limit makes the store refuse records with more JSON than this.
func limit(p *planted, most int, refuse func(size int) error) {
	p.admit = func(r record) error {
		if n := size(r); n > most {
			return refuse(n)
		}
		return p.doAdmit(r)
	}
	p.accept = func(next record) error {
		if n := size(next); n > most {
			return refuse(n)
		}
		return p.doAccept(next)
	}
}

// tooLarge returns the error for a record with more than 8 MiB, or nil.
func tooLarge(r record) error {
	const most = 8 << 20
	if n := size(r); n > most {
		return &durabletasks.TooLargeError{Size: n, Limit: most}
	}
	return nil
}

// TestOversizedRecordsMayBeRefused has a store that does, as package wal does.
func TestOversizedRecordsMayBeRefused(t *testing.T) {
	s := subject(func(p *planted) {
		limit(p, 8<<20, func(n int) error {
			return fmt.Errorf("wrapped: %w", &durabletasks.TooLargeError{Size: n, Limit: 8 << 20})
		})
	})
	if failure := outcome(t, s, "S15/oversized-records-are-kept-or-refused").Failure; failure != "" {
		t.Error(failure)
	}
}

// eachString returns r with f applied to its texts and keys.
func eachString(r record, f func(string) string) record {
	r = r.Clone()
	r.StatusMessage, r.Owner, r.Tool = f(r.StatusMessage), f(r.Owner), f(r.Tool)
	for i := range r.Questions {
		r.Questions[i].Key = f(r.Questions[i].Key)
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
	p.create = func(c ctx, r record) error { return p.doCreate(c, stored(r)) }
	p.get = func(c ctx, id string) (record, error) {
		r, err := p.doGet(c, f(id))
		if err == nil {
			r.ID = id
		}
		return r, err
	}
	p.update = func(c ctx, next record) error { return p.doUpdate(c, stored(next)) }
}
