package wal

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// state is a record as the index holds it. It is smaller than a
// [durabletasks.Record], and never changes once it is in the index.
type state struct {
	id      string
	message string
	owner   string
	tool    string
	status  durabletasks.Status

	created moment
	updated moment
	ttl     time.Duration
	poll    time.Duration
	version int64

	json    [jsonFields]wire.JSON
	inputs  *inputs  // nil if all of them are empty
	pending []string // fields from the log whose JSON is not decoded yet, oldest first
	cancel  bool

	unsupported wire.InputKinds
}

// The indexes of state.json.
const (
	jsonResult = iota
	jsonError
	jsonPayload
	jsonCheckpoint
	jsonFields
)

// inputs are the containers of a record.
type inputs struct {
	requests  map[string]wire.JSON
	responses map[string]wire.JSON
	questions []durabletasks.Question // with deadlines as moment.time returns them, so that equal questions are ==
}

var noInputs inputs

func (st *state) in() *inputs {
	if st.inputs == nil {
		return &noInputs
	}
	return st.inputs
}

// moment is an instant without a location. The zero moment is the beginning of
// 1970.
type moment struct {
	sec  int64
	nsec int32
}

func instant(t time.Time) moment { return moment{t.Unix(), int32(t.Nanosecond())} }

func (t moment) time() time.Time { return time.Unix(t.sec, int64(t.nsec)).UTC() }

func (t moment) before(u moment) bool {
	return t.sec < u.sec || t.sec == u.sec && t.nsec < u.nsec
}

// newState returns the state for a record. The two share only what cannot
// change. Where the state equals old, if that is not nil, it shares old's
// memory.
func newState(r *durabletasks.Record, version int64, old *state) *state {
	st := &state{
		status:  r.Status,
		created: instant(r.CreatedAt),
		updated: instant(r.LastUpdatedAt),
		ttl:     r.TTL,
		poll:    r.PollInterval,
		version: version,
		json:    [jsonFields]wire.JSON{r.Result, r.Error, r.Payload, r.Checkpoint},
		cancel:  r.CancelRequested,

		unsupported: r.UnsupportedInput,
	}
	if old == nil {
		// A short text may be a part of a large one, such as a whole request,
		// and would keep all of it in memory.
		st.id = strings.Clone(r.ID)
		st.message = strings.Clone(r.StatusMessage)
		st.owner = strings.Clone(r.Owner)
		st.tool = strings.Clone(r.Tool)
	} else {
		st.id = old.id
		st.message = sameOrClone(r.StatusMessage, old.message)
		st.owner = sameOrClone(r.Owner, old.owner)
		st.tool = sameOrClone(r.Tool, old.tool)
	}
	if len(r.InputRequests) == 0 && len(r.InputResponses) == 0 && len(r.Questions) == 0 {
		return st
	}
	if old != nil {
		was := old.in()
		if maps.Equal(r.InputRequests, was.requests) && maps.Equal(r.InputResponses, was.responses) &&
			slices.EqualFunc(r.Questions, was.questions, sameQuestion) {
			st.inputs = old.inputs
			return st
		}
	}
	st.inputs = &inputs{
		requests:  cloneMap(r.InputRequests),
		responses: cloneMap(r.InputResponses),
		questions: cloneQuestions(r.Questions),
	}
	return st
}

func sameQuestion(a, b durabletasks.Question) bool {
	return a.Key == b.Key && a.Digest == b.Digest && a.Deadline.Equal(b.Deadline)
}

// cloneQuestions returns a copy whose deadlines are in UTC and without a
// monotonic clock reading.
func cloneQuestions(questions []durabletasks.Question) []durabletasks.Question {
	c := slices.Clone(questions)
	for i := range c {
		c[i].Deadline = instant(c[i].Deadline).time()
	}
	return c
}

func sameOrClone(s, old string) string {
	if s == old {
		return old
	}
	return strings.Clone(s)
}

// cloneMap is maps.Clone, but nil for an empty map.
func cloneMap(m map[string]wire.JSON) map[string]wire.JSON {
	if len(m) == 0 {
		return nil
	}
	return maps.Clone(m)
}

// record returns a record for a caller to keep. The state must be decoded.
func (st *state) record() durabletasks.Record {
	r := durabletasks.Record{
		ID:               st.id,
		Status:           st.status,
		StatusMessage:    st.message,
		CreatedAt:        st.created.time(),
		LastUpdatedAt:    st.updated.time(),
		TTL:              st.ttl,
		PollInterval:     st.poll,
		Result:           st.json[jsonResult],
		Error:            st.json[jsonError],
		Owner:            st.owner,
		CancelRequested:  st.cancel,
		Tool:             st.tool,
		UnsupportedInput: st.unsupported,
		Payload:          st.json[jsonPayload],
		Checkpoint:       st.json[jsonCheckpoint],
		Version:          st.version,
	}
	if in := st.inputs; in != nil {
		r.InputRequests = cloneMap(in.requests)
		r.InputResponses = cloneMap(in.responses)
		if len(in.questions) > 0 {
			r.Questions = slices.Clone(in.questions)
		}
	}
	return r
}

// expiry returns the moment from which the record is expired. It returns false
// if the record never expires.
func (st *state) expiry() (moment, bool) {
	if st.ttl < 0 {
		return moment{}, false
	}
	r := durabletasks.Record{CreatedAt: st.created.time(), TTL: st.ttl}
	at, ok := r.ExpiresAt()
	return instant(at), ok
}

// expired reports whether the record is expired at now.
func (st *state) expired(now moment) bool {
	at, ok := st.expiry()
	return ok && !now.before(at)
}
