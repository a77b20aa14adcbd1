package storetest_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var createDefects = []defect{
	{
		name: "a created record is visible from the second read on",
		plant: func(p *planted) {
			seen := make(map[string]bool)
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil && !seen[id] {
					seen[id] = true
					return record{}, durabletasks.ErrNotFound
				}
				return r, err
			}
		},
		fails: []string{"S01/created-record-is-visible"},
		also:  everything,
	},
	{
		name: "the first read after an update is one version behind",
		plant: func(p *planted) {
			behind := make(map[string]record)
			p.update = func(c ctx, next record) error {
				old, _ := p.doGet(c, next.ID)
				err := p.doUpdate(c, next)
				p.mu.Lock()
				defer p.mu.Unlock()
				if err == nil {
					behind[next.ID] = old
				}
				return err
			}
			p.get = func(c ctx, id string) (record, error) {
				r, err := p.doGet(c, id)
				p.mu.Lock()
				defer p.mu.Unlock()
				if old, ok := behind[id]; ok && err == nil {
					r = old
				}
				delete(behind, id)
				return r, err
			}
		},
		fails: []string{"S01/updated-record-is-visible"},
		also:  everything,
	},
	{
		name: "JSON null becomes absent",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachJSON(r, func(j wire.JSON) wire.JSON {
					if j.Kind() == wire.Null {
						return wire.JSON{}
					}
					return j
				})
			}
		},
		fails: []string{"S01/absent-fields-stay-absent", "S01/json-is-kept-to-the-byte"},
		also:  []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "a poll interval of NoLimit becomes zero",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.PollInterval = max(r.PollInterval, 0)
				return r.Clone()
			}
		},
		fails: []string{"S01/absent-fields-stay-absent", "S01/durations-are-kept"},
		also:  []string{"S01/poll-interval-of-zero-is-kept"},
	},
	{
		name: "durations are 32 bits of milliseconds",
		plant: func(p *planted) {
			p.in = func(r record) record {
				if r.PollInterval > 0 {
					r.PollInterval = time.Duration(int32(r.PollInterval.Milliseconds())) * time.Millisecond
				}
				return r.Clone()
			}
		},
		fails: []string{"S01/durations-are-kept"},
	},
	{
		name: "durations are whole seconds",
		plant: func(p *planted) {
			p.in = func(r record) record {
				if r.PollInterval > 0 {
					r.PollInterval = r.PollInterval.Truncate(time.Second)
				}
				return r.Clone()
			}
		},
		fails: []string{"S01/durations-are-kept", "S01/every-field-is-kept"},
		also:  everything,
	},
	{
		name: "JSON goes through Go values",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachJSON(r, func(j wire.JSON) wire.JSON {
					var v any
					if json.Unmarshal([]byte(j.String()), &v) != nil {
						return j
					}
					return remarshal(j, v)
				})
			}
		},
		fails: []string{"S01/json-is-kept-to-the-byte"},
		also:  everything, // members are sorted
	},
	{
		name: "JSON is escaped for HTML",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachJSON(r, func(j wire.JSON) wire.JSON { return remarshal(j, json.RawMessage(j.String())) })
			}
		},
		fails: []string{"S01/json-is-kept-to-the-byte"},
		also:  []string{"S11/hostile-strings-and-json-survive"},
	},
	{
		name: "payloads have 64 KiB",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachJSON(r, func(j wire.JSON) wire.JSON {
					if j.Len() > 64<<10 {
						return wire.MustParse(`"..."`)
					}
					return j
				})
			}
		},
		fails: []string{"S01/one-mebibyte-is-kept"},
		also:  []string{"S11/one-mebibyte-survives", "S15/large-records-are-kept", "S15/oversized-records-are-kept-or-refused"},
	},
	{
		name: "times come back in the local zone",
		plant: func(p *planted) {
			p.out = func(r record) record {
				r.CreatedAt = r.CreatedAt.In(time.FixedZone("CET", 3600))
				return r.Clone()
			}
		},
		fails: []string{"S01/created-record-is-visible", "S01/updated-record-is-visible", "S01/every-field-is-kept"},
		also:  everything,
	},

	{
		name: "create overwrites",
		plant: func(p *planted) {
			p.admit = func(record) error { return nil }
		},
		fails: []string{"S02/taken-id-is-refused", "S02/one-of-many-creators-wins"},
		also:  []string{"S11/refused-calls-leave-nothing", "S11/reopened-store-works", "S02/same-record-is-refused"},
	},
	{
		name: "create overwrites and reports ErrExists",
		plant: func(p *planted) {
			p.admit = func(r record) error {
				err := p.doAdmit(r)
				p.put(r)
				return err
			}
		},
		fails: []string{"S02/taken-id-is-refused"},
		also:  []string{"S02/*", "S11/refused-calls-leave-nothing", "S11/reopened-store-works"},
	},
	{
		name: "create overwrites finished tasks",
		plant: func(p *planted) {
			p.admit = func(r record) error {
				if p.records[r.ID].Status.Terminal() {
					return nil
				}
				return p.doAdmit(r)
			}
		},
		fails: []string{"S02/taken-id-is-refused"},
		also:  []string{"S02/one-of-many-creators-wins", "S12/every-call-reports-closed"},
	},
	{
		name: "create over an expired record is accepted and does nothing",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				err := p.doCreate(c, r)
				if _, gone := p.doGet(c, r.ID); errors.Is(err, durabletasks.ErrExists) && gone != nil {
					return nil
				}
				return err
			}
		},
		fails: []string{"S02/expired-id-is-refused-or-free"},
	},
	{
		name:  "create checks first and writes later",
		waits: true,
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				p.mu.Lock()
				_, taken := p.records[r.ID]
				err := p.usable(c)
				p.mu.Unlock()
				if err != nil {
					return err
				}
				if taken {
					return durabletasks.ErrExists
				}
				betweenLookAndWrite()
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := p.usable(context.Background()); err != nil {
					return err
				}
				r.Version = 0
				p.put(r)
				return nil
			}
		},
		fails: []string{"S02/one-of-many-creators-wins"},
	},
	{
		name: "a poll interval of zero becomes NoLimit",
		plant: func(p *planted) {
			p.in = func(r record) record {
				if r.PollInterval == 0 {
					r.PollInterval = durabletasks.NoLimit
				}
				return r.Clone()
			}
		},
		fails: []string{"S01/poll-interval-of-zero-is-kept"},
	},
	{
		name: "a poll interval of zero leaves the old one",
		plant: func(p *planted) {
			p.update = func(c ctx, next record) error {
				p.mu.Lock()
				if next.PollInterval == 0 {
					next.PollInterval = p.records[next.ID].PollInterval
				}
				p.mu.Unlock()
				return p.doUpdate(c, next)
			}
		},
		fails: []string{"S01/poll-interval-of-zero-is-kept"},
	},
	{
		name: "times are nanoseconds",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r.CreatedAt = time.Unix(0, r.CreatedAt.UnixNano()).UTC()
				return r.Clone()
			}
		},
		fails: []string{"S01/times-of-every-year-are-kept"},
	},
	{
		name: "times are 32 bits of seconds",
		plant: func(p *planted) {
			p.in = func(r record) record {
				at := r.LastUpdatedAt
				r.LastUpdatedAt = time.Unix(int64(int32(at.Unix())), int64(at.Nanosecond())).UTC()
				return r.Clone()
			}
		},
		fails: []string{"S01/times-of-every-year-are-kept"},
	},
	{
		name: "answers have 64 KiB",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				maps.DeleteFunc(r.InputResponses, func(_ string, j wire.JSON) bool { return j.Len() > 64<<10 })
				return r
			}
		},
		fails: []string{"S01/one-mebibyte-is-kept"},
		also:  []string{"S15/large-records-are-kept", "S15/oversized-records-are-kept-or-refused"},
	},
	{
		name: "questions of one key that follow each other are one",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				r.Questions = slices.CompactFunc(r.Questions, func(a, b durabletasks.Question) bool { return a.Key == b.Key })
				return r
			}
		},
		fails: []string{"S01/order-and-repetition-of-questions-are-kept"},
		also:  []string{"S01/digests-of-questions-are-kept"},
	},
	{
		name: "the same question is kept once",
		plant: func(p *planted) {
			p.in = func(r record) record {
				r = r.Clone()
				r.Questions = slices.Compact(r.Questions)
				return r
			}
		},
		fails: []string{"S01/order-and-repetition-of-questions-are-kept"},
		also:  []string{"S01/digests-of-questions-are-kept"},
	},
	{
		name: "digests lose their leading zeros",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					significant := bytes.TrimLeft(q.Digest[:], "\x00")
					q.Digest = [16]byte(append(significant, make([]byte, 16-len(significant))...))
				})
			}
		},
		fails: []string{"S01/digests-of-questions-are-kept"},
		also:  []string{"S11/long-strings-and-many-keys-survive", "S15/*"}, // some digests begin with a zero
	},
	{
		name: "a digest of 0xff bytes is lost",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					if len(bytes.Trim(q.Digest[:], "\xff")) == 0 {
						q.Digest = [16]byte{}
					}
				})
			}
		},
		fails: []string{"S01/digests-of-questions-are-kept"},
	},
	{
		name: "digests are made valid UTF-8",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					copy(q.Digest[:], strings.ToValidUTF8(string(q.Digest[:]), "\ufffd"))
				})
			}
		},
		fails: []string{"S01/digests-of-questions-are-kept", "S01/every-field-is-kept"},
		also:  everything,
	},
	{
		name: "deadlines of questions are whole seconds",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) { q.Deadline = q.Deadline.Truncate(time.Second) })
			}
		},
		fails: []string{"S01/every-field-is-kept"},
		also:  everything,
	},
	{
		name: "a question without a deadline gets one in 1970",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					if q.Deadline.IsZero() {
						q.Deadline = time.Unix(0, 0).UTC()
					}
				})
			}
		},
		fails: []string{"S01/every-field-is-kept", "S01/absent-fields-stay-absent", "S01/times-of-every-year-are-kept"},
		also:  everything,
	},
	{
		name: "a deadline in 1970 is lost",
		plant: func(p *planted) {
			p.in = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					if q.Deadline.Equal(time.Unix(0, 0)) {
						q.Deadline = time.Time{}
					}
				})
			}
		},
		fails: []string{"S01/times-of-every-year-are-kept"},
	},
	{
		name: "deadlines of questions come back in the local zone",
		plant: func(p *planted) {
			p.out = func(r record) record {
				return eachQuestion(r, func(q *durabletasks.Question) {
					if !q.Deadline.IsZero() {
						q.Deadline = q.Deadline.In(time.FixedZone("UTC", 0))
					}
				})
			}
		},
		fails: []string{"S01/every-field-is-kept"},
		also:  everything,
	},
	{
		name: "create with an equal record succeeds",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				p.mu.Lock()
				old, ok := p.records[r.ID]
				same := ok && p.usable(c) == nil && storetest.Diff(old, r) == ""
				p.mu.Unlock()
				if same {
					return nil
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S02/same-record-is-refused"},
	},
	{
		name: "create over an expired record continues its versions",
		plant: func(p *planted) {
			p.create = func(c ctx, r record) error {
				p.mu.Lock()
				old, ok := p.records[r.ID]
				over := ok && p.usable(c) == nil && p.expired(old, p.now())
				if over {
					r.Version = old.Version
					p.put(r)
				}
				p.mu.Unlock()
				if over {
					return nil
				}
				return p.doCreate(c, r)
			}
		},
		fails: []string{"S02/expired-id-is-refused-or-free"},
	},
}

// eachJSON returns r with f applied to every JSON value that it has.
func eachJSON(r record, f func(wire.JSON) wire.JSON) record {
	r = r.Clone()
	for _, j := range []*wire.JSON{&r.Result, &r.Error, &r.Payload, &r.Checkpoint} {
		if !j.IsZero() {
			*j = f(*j)
		}
	}
	for _, m := range []map[string]wire.JSON{r.InputRequests, r.InputResponses} {
		for key, j := range m {
			m[key] = f(j)
		}
	}
	return r
}

// eachQuestion returns r with f applied to every question that it has.
func eachQuestion(r record, f func(*durabletasks.Question)) record {
	r = r.Clone()
	for i := range r.Questions {
		f(&r.Questions[i])
	}
	return r
}

// remarshal returns the value as encoding/json encodes v.
func remarshal(j wire.JSON, v any) wire.JSON {
	b, err := json.Marshal(v)
	if err != nil {
		return j
	}
	out, err := wire.ParseJSON(b)
	if err != nil {
		return j
	}
	return out
}
