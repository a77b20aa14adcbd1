package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// reader reads the parts of a body. The texts that it returns share memory with
// the body. After the first part that does not fit, bad is true and the reader
// returns zeros.
type reader struct {
	rest string
	bad  bool
	size int // of the body, if the reader is used for texts that are kept
}

// largeBody is the size from which a body is not kept for its short texts: a
// record that has dropped a large payload must not keep it through its id.
const largeBody = 1 << 10

func newReader(body string) reader { return reader{rest: body, size: len(body)} }

// kept reads a text that is kept in memory. It is a copy if the body is large
// and the text is less than half of it.
func (r *reader) kept() string {
	s := r.text()
	if r.size > largeBody && len(s) < r.size/2 {
		return strings.Clone(s)
	}
	return s
}

func (r *reader) uvarint() uint64 {
	var x uint64
	for i := 0; i < len(r.rest) && i < binary.MaxVarintLen64; i++ {
		b := r.rest[i]
		if b < 0x80 {
			if i == binary.MaxVarintLen64-1 && b > 1 {
				break
			}
			r.rest = r.rest[i+1:]
			return x | uint64(b)<<(7*i)
		}
		x |= uint64(b&0x7F) << (7 * i)
	}
	r.rest, r.bad = "", true
	return 0
}

func (r *reader) varint() int64 {
	x := r.uvarint()
	return int64(x>>1) ^ -int64(x&1)
}

func (r *reader) text() string {
	n := r.uvarint()
	if n > uint64(len(r.rest)) {
		r.rest, r.bad = "", true
		return ""
	}
	s := r.rest[:n]
	r.rest = r.rest[n:]
	return s
}

func (r *reader) tag() tag {
	t := tag(r.rest[0])
	r.rest = r.rest[1:]
	return t
}

// skip reads past a field whose tag was read. The tag must be known.
func (r *reader) skip(t tag) {
	switch t {
	case tagStatus, tagTTL, tagPoll, tagCancel, tagQuestionsKept, tagUnsupported:
		r.varint()
	case tagCreated, tagUpdated, tagDeadline:
		r.instant()
	case tagRequestsGone, tagResponsesGone:
	case tagRequest, tagResponse:
		r.text()
		r.text()
	case tagQuestion:
		r.question()
	default:
		r.text()
	}
}

// question reads a question without its deadline.
func (r *reader) question() (q durabletasks.Question) {
	q.Key = r.kept()
	if len(r.rest) < len(q.Digest) {
		r.rest, r.bad = "", true
		return durabletasks.Question{}
	}
	r.rest = r.rest[copy(q.Digest[:], r.rest):]
	return q
}

func (r *reader) instant() moment {
	sec, nsec := r.varint(), r.uvarint()
	if nsec >= 1e9 {
		r.bad = true
	}
	return moment{sec, int32(nsec)}
}

var errBody = errors.New("body does not fit the format")

// apply changes st by fields from the log. JSON in the fields stays pending
// until a caller asks for the record. Nobody else may use the state.
func (st *state) apply(fields string) error {
	r := newReader(fields)
	hasJSON := false
	for r.rest != "" {
		switch t := r.tag(); t {
		case tagStatus:
			n := r.varint()
			if n < 1 || n >= int64(len(statuses)) {
				return errBody
			}
			st.status = statuses[n]
		case tagOtherStatus:
			st.status = durabletasks.Status(r.kept())
		case tagMessage:
			st.message = r.kept()
		case tagCreated:
			st.created = r.instant()
		case tagUpdated:
			st.updated = r.instant()
		case tagTTL:
			st.ttl = time.Duration(r.varint())
		case tagPoll:
			st.poll = time.Duration(r.varint())
		case tagOwner:
			st.owner = r.kept()
		case tagCancel:
			st.cancel = r.varint() != 0
		case tagUnsupported:
			n := r.varint()
			if n < 0 || n > math.MaxUint8 {
				return errBody
			}
			st.unsupported = wire.InputKinds(n)
		case tagTool:
			st.tool = r.kept()
		case tagJSON, tagJSON + 1, tagJSON + 2, tagJSON + 3,
			tagRequestsGone, tagRequestGone, tagRequest,
			tagResponsesGone, tagResponseGone, tagResponse:
			r.skip(t)
			hasJSON = true
		case tagQuestionsKept:
			n := r.varint()
			if n < 0 || n > int64(len(st.in().questions)) {
				return errBody
			}
			in := st.ownInputs()
			in.questions = in.questions[:n]
		case tagQuestion:
			in := st.ownInputs()
			in.questions = append(in.questions, r.question())
		case tagDeadline:
			at, n := r.instant(), len(st.in().questions)
			if n == 0 {
				return errBody
			}
			st.inputs.questions[n-1].Deadline = at.time()
		default:
			return fmt.Errorf("field %d is unknown, perhaps of a newer version", t)
		}
		if r.bad {
			return errBody
		}
	}
	if hasJSON {
		st.pending = append(st.pending, fields)
	}
	return nil
}

func (st *state) ownInputs() *inputs {
	if st.inputs == nil {
		st.inputs = new(inputs)
	}
	return st.inputs
}

// decoded returns st with nothing pending: st itself, or a copy.
func (st *state) decoded() (*state, error) {
	if st.pending == nil {
		return st, nil
	}
	c := *st
	c.pending = nil
	if st.inputs != nil {
		c.inputs = &inputs{
			requests:  maps.Clone(st.inputs.requests),
			responses: maps.Clone(st.inputs.responses),
			questions: st.inputs.questions,
		}
	}
	for _, fields := range st.pending {
		if err := c.applyJSON(fields); err != nil {
			return nil, err
		}
	}
	if in := c.inputs; in != nil && len(in.requests) == 0 && len(in.responses) == 0 && len(in.questions) == 0 {
		c.inputs = nil
	}
	return &c, nil
}

// applyJSON changes st by the JSON in fields that apply has read.
func (st *state) applyJSON(fields string) error {
	r := newReader(fields)
	for r.rest != "" {
		var err error
		switch t := r.tag(); t {
		case tagJSON, tagJSON + 1, tagJSON + 2, tagJSON + 3:
			var v wire.JSON
			if text := r.kept(); text != "" {
				v, err = wire.ParseJSON(text)
			}
			st.json[t-tagJSON] = v
		case tagRequestsGone:
			st.ownInputs().requests = nil
		case tagResponsesGone:
			st.ownInputs().responses = nil
		case tagRequestGone:
			delete(st.ownInputs().requests, r.text())
		case tagResponseGone:
			delete(st.ownInputs().responses, r.text())
		case tagRequest:
			err = setPair(&st.ownInputs().requests, &r)
		case tagResponse:
			err = setPair(&st.ownInputs().responses, &r)
		default:
			r.skip(t)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func setPair(m *map[string]wire.JSON, r *reader) error {
	key, text := r.kept(), r.kept()
	var v wire.JSON
	if text != "" {
		var err error
		if v, err = wire.ParseJSON(text); err != nil {
			return err
		}
	}
	if *m == nil {
		*m = make(map[string]wire.JSON)
	}
	(*m)[key] = v
	return nil
}
