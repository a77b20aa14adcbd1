package storetest_test

import (
	"errors"
	"maps"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// deadline makes the store keep the expiry of each record in a table, which set
// changes with each write. The zero time means no expiry.
func deadline(p *planted, set func(old time.Time, known bool, r record) time.Time) {
	at := make(map[string]time.Time)
	in := p.in
	p.in = func(r record) record {
		old, known := at[r.ID]
		at[r.ID] = set(old, known && r.Version > 0, r)
		return in(r)
	}
	p.expired = func(r record, now time.Time) bool {
		when, ok := at[r.ID]
		if !ok { // it is from before a reopen
			return r.Expired(now)
		}
		return !when.IsZero() && !now.Before(when)
	}
}

// right returns the moment at which a record expires, or zero.
func right(r record) time.Time {
	at, ok := r.ExpiresAt()
	if !ok {
		return time.Time{}
	}
	return at
}

var expiryDefects = []defect{
	{
		name: "the moment itself has not expired",
		plant: func(p *planted) {
			p.expired = func(r record, now time.Time) bool { return r.Expired(now.Add(-time.Millisecond)) }
		},
		fails: []string{"S09/expiry-includes-its-moment", "S09/ttl-counts-from-created-at", "S10/argument-decides"},
		also: []string{
			"S02/expired-id-is-refused-or-free", "S03/*", "S04/reads-of-expired-remove-nothing", "S09/*", "S10/*",
			"S11/swept-records-stay-away", "S11/reopened-store-works", "S05/recreated-task-starts-at-zero",
			"S13/done-context-stops-sweep", "S14/every-method-at-once", "Scanner/*",
			"S13/cancelled-sweep-is-all-or-nothing",
		},
	},
	{
		name: "a record expires a little early",
		plant: func(p *planted) {
			p.expired = func(r record, now time.Time) bool { return r.Expired(now.Add(time.Millisecond)) }
		},
		fails: []string{"S09/expiry-includes-its-moment", "S10/argument-decides"},
		also:  []string{"S09/*", "S10/*"},
	},
	{
		name: "the TTL counts from the create",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if !known {
					r.CreatedAt = p.now()
				} else {
					r.CreatedAt = r.CreatedAt.Add(0)
				}
				return right(r)
			})
		},
		fails: []string{"S09/ttl-counts-from-created-at"},
		also:  []string{"S04/scans-of-expired-remove-nothing", "S10/earlier-time-keeps-what-expired-later"},
	},
	{
		name: "the TTL counts from the last update",
		plant: func(p *planted) {
			deadline(p, func(_ time.Time, _ bool, r record) time.Time {
				r.CreatedAt = r.LastUpdatedAt
				return right(r)
			})
		},
		fails: []string{"S09/updates-do-not-postpone-expiry"},
		also:  []string{"S09/*", "S10/swept-ids-are-free", "S04/scans-of-expired-remove-nothing", "S10/earlier-time-keeps-what-expired-later"},
	},
	{
		name: "the TTL counts from the write",
		plant: func(p *planted) {
			deadline(p, func(_ time.Time, _ bool, r record) time.Time {
				r.CreatedAt = p.now()
				return right(r)
			})
		},
		fails: []string{"S09/updates-do-not-postpone-expiry", "S09/ttl-counts-from-created-at", "S09/ttl-raised", "S09/ttl-lowered-below-the-age"},
		also:  []string{"S09/*", "S04/scans-of-expired-remove-nothing", "S10/earlier-time-keeps-what-expired-later"},
	},
	{
		name: "a changed the TTL counts from the change",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if known && r.TTL != p.records[r.ID].TTL {
					r.CreatedAt = p.now()
				}
				return right(r)
			})
		},
		fails: []string{"S09/ttl-raised", "S09/ttl-lowered", "S09/ttl-added"},
		also:  []string{"S09/*"},
	},
	{
		name: "the first TTL holds",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if known {
					return old
				}
				return right(r)
			})
		},
		fails: []string{
			"S09/ttl-raised", "S09/ttl-lowered", "S09/ttl-lowered-below-the-age", "S09/ttl-removed",
			"S09/ttl-added", "S10/changed-ttl-counts",
		},
		also: []string{"S11/reopened-store-works", "S09/expiry-holds-across-a-reopen", "S09/ttl-of-zero-expires-at-once", "S10/update-and-sweep-agree"},
	},
	{
		name: "a TTL only grows",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if at := right(r); !known || old.IsZero() || at.IsZero() || at.After(old) {
					return at
				}
				return old
			})
		},
		fails: []string{"S09/ttl-lowered"},
		also:  []string{"S09/*", "S10/changed-ttl-counts"},
	},
	{
		name: "a TTL cannot be removed",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if at := right(r); !known || !at.IsZero() {
					return at
				}
				return old
			})
		},
		fails: []string{"S09/ttl-removed"},
		also:  []string{"S10/changed-ttl-counts", "S10/update-and-sweep-agree"},
	},
	{
		name: "a TTL cannot be added",
		plant: func(p *planted) {
			deadline(p, func(old time.Time, known bool, r record) time.Time {
				if known && old.IsZero() {
					return old
				}
				return right(r)
			})
		},
		fails: []string{"S09/ttl-added"},
		also:  []string{"S09/ttl-lowered-below-the-age", "S10/changed-ttl-counts", "S09/ttl-of-zero-expires-at-once"},
	},
	{
		name: "no limit is a month",
		plant: func(p *planted) {
			p.expired = func(r record, now time.Time) bool {
				if r.TTL < 0 {
					r.TTL = 30 * 24 * time.Hour
				}
				return r.Expired(now)
			}
		},
		fails: []string{"S09/no-limit-never-expires", "S10/no-limit-is-never-swept"},
		also:  []string{"S01/times-of-every-year-are-kept", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "the expiry is computed in nanoseconds",
		plant: func(p *planted) {
			p.expired = func(r record, now time.Time) bool {
				return r.TTL >= 0 && r.CreatedAt.UnixNano()+int64(r.TTL) <= now.UnixNano()
			}
		},
		fails: []string{"S09/longest-ttl-has-not-expired"},
		also:  []string{"S01/durations-are-kept", "S10/any-time-is-accepted"},
	},
	{
		name: "an input round does not expire",
		plant: func(p *planted) {
			get := p.get
			p.get = func(c ctx, id string) (record, error) {
				p.mu.Lock()
				r, ok := p.records[id]
				usable := p.usable(c)
				p.mu.Unlock()
				if ok && usable == nil && r.Status == durabletasks.StatusInputRequired {
					return r.Clone(), nil
				}
				return get(c, id)
			}
		},
		fails: []string{"S09/every-status-expires"},
		also:  []string{"S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a record expires when it is swept",
		plant: func(p *planted) {
			p.get = func(c ctx, id string) (record, error) {
				p.mu.Lock()
				defer p.mu.Unlock()
				if err := p.usable(c); err != nil {
					return record{}, err
				}
				r, ok := p.records[id]
				if !ok {
					return record{}, durabletasks.ErrNotFound
				}
				return p.out(r), nil
			}
		},
		fails: []string{"S09/expiry-includes-its-moment", "S09/ttl-counts-from-created-at", "S03/expired-is-not-found"},
		also:  []string{"S09/*", "S02/expired-id-is-refused-or-free", "S04/reads-of-expired-remove-nothing", "S10/clock-set-back-finds-all", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a reopen makes records young again",
		plant: func(p *planted) {
			opened := p.now()
			before := maps.Clone(p.records)
			p.expired = func(r record, now time.Time) bool {
				if _, ok := before[r.ID]; ok {
					r.CreatedAt = opened
				}
				return r.Expired(now)
			}
		},
		fails: []string{"S09/expiry-holds-across-a-reopen"},
		also:  []string{"S10/clock-set-back-finds-all-after-a-reopen", "S10/reopen-removes-nothing"},
	},
	{
		name: "a reopen finds the first TTL",
		plant: func(p *planted) {
			first := make(map[string]time.Duration)
			p.in = func(r record) record {
				if r.Version == 0 {
					first[r.ID] = r.TTL
				}
				return r.Clone()
			}
			p.saved = func(r record) (record, bool) {
				r.TTL = first[r.ID]
				return r, true
			}
		},
		fails: []string{"S09/expiry-holds-across-a-reopen"},
		also:  []string{"S11/*", "S10/clock-set-back-finds-all-after-a-reopen"},
	},
	{
		name: "a TTL of zero becomes NoLimit",
		plant: func(p *planted) {
			p.in = func(r record) record {
				if r.TTL == 0 {
					r.TTL = durabletasks.NoLimit
				}
				return r.Clone()
			}
		},
		fails: []string{"S09/ttl-of-zero-expires-at-once"},
	},
	{
		name: "create refuses an expired record",
		plant: func(p *planted) {
			p.admit = func(r record) error {
				if r.Expired(p.now()) {
					return errors.New("expired")
				}
				return p.doAdmit(r)
			}
		},
		fails: []string{"S09/ttl-of-zero-expires-at-once"},
		also:  []string{"S04/scans-of-expired-remove-nothing", "S10/earlier-time-keeps-what-expired-later", "S10/reopen-removes-nothing"},
	},
	{
		name: "expiry is kept in whole seconds",
		plant: func(p *planted) {
			p.expired = func(r record, now time.Time) bool {
				at, ok := r.ExpiresAt()
				return ok && !now.Before(at.Truncate(time.Second))
			}
		},
		fails: []string{"S09/expiry-is-exact-to-the-millisecond"},
		also:  []string{"S10/swept-ids-are-free"},
	},
}
