package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// tag names a field in the body of an entry. The values are part of the
// format.
type tag byte

const (
	tagStatus        tag = 1
	tagOtherStatus   tag = 2
	tagMessage       tag = 3
	tagCreated       tag = 4
	tagUpdated       tag = 5
	tagTTL           tag = 6
	tagPoll          tag = 7
	tagOwner         tag = 8
	tagCancel        tag = 9
	tagJSON          tag = 10 // and the next three, in the order of state.json
	tagQuestionsKept tag = 14
	tagQuestion      tag = 15
	tagRequestsGone  tag = 16
	tagRequestGone   tag = 17
	tagRequest       tag = 18
	tagResponsesGone tag = 19
	tagResponseGone  tag = 20
	tagResponse      tag = 21
	tagUnsupported   tag = 22
	tagTool          tag = 23
	tagDeadline      tag = 24 // of the question before it
)

// statuses gives the known states their number in the format.
var statuses = [...]durabletasks.Status{
	1: durabletasks.StatusWorking,
	2: durabletasks.StatusInputRequired,
	3: durabletasks.StatusCompleted,
	4: durabletasks.StatusFailed,
	5: durabletasks.StatusCancelled,
}

func appendText(dst []byte, s string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(s)))
	return append(dst, s...)
}

func appendInstant(dst []byte, t moment) []byte {
	dst = binary.AppendVarint(dst, t.sec)
	return binary.AppendUvarint(dst, uint64(t.nsec))
}

func appendTextField(dst []byte, t tag, s string) []byte {
	return appendText(append(dst, byte(t)), s)
}

func appendPairField(dst []byte, t tag, key string, v wire.JSON) []byte {
	return appendText(appendTextField(dst, t, key), v.String())
}

func appendNumberField(dst []byte, t tag, n int64) []byte {
	return binary.AppendVarint(append(dst, byte(t)), n)
}

func appendInstantField(dst []byte, t tag, at moment) []byte {
	return appendInstant(append(dst, byte(t)), at)
}

func appendHead(dst []byte, st *state) []byte {
	return binary.AppendUvarint(appendText(dst, st.id), uint64(st.version))
}

// blank is what a whole record's fields are written against.
var blank state

// appendWhole appends the body of a create or a copy.
func appendWhole(dst []byte, st *state) []byte {
	return appendChanges(appendHead(dst, st), &blank, st)
}

// appendUpdate appends the body of an update from old to st, with a base that
// is to be filled in.
func appendUpdate(dst []byte, old, st *state) []byte {
	var base [baseSize]byte
	return appendChanges(appendHead(append(dst, base[:]...), st), old, st)
}

// appendChanges appends the fields in which st differs from old. Both must be
// decoded.
func appendChanges(dst []byte, old, st *state) []byte {
	if st.status != old.status {
		if n := slices.Index(statuses[1:], st.status); n >= 0 {
			dst = appendNumberField(dst, tagStatus, int64(n+1))
		} else {
			dst = appendTextField(dst, tagOtherStatus, string(st.status))
		}
	}
	if st.message != old.message {
		dst = appendTextField(dst, tagMessage, st.message)
	}
	if st.created != old.created {
		dst = appendInstantField(dst, tagCreated, st.created)
	}
	if st.updated != old.updated {
		dst = appendInstantField(dst, tagUpdated, st.updated)
	}
	if st.ttl != old.ttl {
		dst = appendNumberField(dst, tagTTL, int64(st.ttl))
	}
	if st.poll != old.poll {
		dst = appendNumberField(dst, tagPoll, int64(st.poll))
	}
	if st.owner != old.owner {
		dst = appendTextField(dst, tagOwner, st.owner)
	}
	if st.cancel != old.cancel {
		n := int64(0)
		if st.cancel {
			n = 1
		}
		dst = appendNumberField(dst, tagCancel, n)
	}
	if st.unsupported != old.unsupported {
		dst = appendNumberField(dst, tagUnsupported, int64(st.unsupported))
	}
	if st.tool != old.tool {
		dst = appendTextField(dst, tagTool, st.tool)
	}
	for i := range jsonFields {
		if st.json[i] != old.json[i] {
			dst = appendTextField(dst, tagJSON+tag(i), st.json[i].String())
		}
	}
	if st.inputs == old.inputs {
		return dst
	}
	was, is := old.in(), st.in()
	kept := 0
	for kept < len(was.questions) && kept < len(is.questions) && was.questions[kept] == is.questions[kept] {
		kept++
	}
	if kept < len(was.questions) {
		dst = appendNumberField(dst, tagQuestionsKept, int64(kept))
	}
	for i := range is.questions[kept:] {
		dst = appendQuestion(dst, &is.questions[kept+i])
	}
	dst = appendMapChanges(dst, tagRequestsGone, was.requests, is.requests)
	return appendMapChanges(dst, tagResponsesGone, was.responses, is.responses)
}

// appendQuestion appends a question, and its deadline if it has one.
func appendQuestion(dst []byte, q *durabletasks.Question) []byte {
	dst = append(appendTextField(dst, tagQuestion, q.Key), q.Digest[:]...)
	if !q.Deadline.IsZero() {
		dst = appendInstantField(dst, tagDeadline, instant(q.Deadline))
	}
	return dst
}

// appendMapChanges appends the changes between two maps under the three tags
// from gone on: all are gone, one is gone, one is set.
func appendMapChanges(dst []byte, gone tag, was, is map[string]wire.JSON) []byte {
	if len(is) == 0 {
		if len(was) > 0 {
			dst = append(dst, byte(gone))
		}
		return dst
	}
	for key := range was {
		if _, ok := is[key]; !ok {
			dst = appendTextField(dst, gone+1, key)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if old, ok := was[key]; !ok || old != is[key] {
			dst = appendPairField(dst, gone+2, key, is[key])
		}
	}
	return dst
}

// wholeSize is the length of what appendWhole appends.
func wholeSize(st *state) int {
	n := textSize(len(st.id)) + uvarintSize(uint64(st.version))
	if st.status != "" {
		if slices.Contains(statuses[1:], st.status) {
			n += 2
		} else {
			n += 1 + textSize(len(st.status))
		}
	}
	n += textFieldSize(len(st.message)) + textFieldSize(len(st.owner))
	n += instantFieldSize(st.created) + instantFieldSize(st.updated)
	n += numberFieldSize(int64(st.ttl)) + numberFieldSize(int64(st.poll))
	if st.cancel {
		n += 2
	}
	n += numberFieldSize(int64(st.unsupported)) + textFieldSize(len(st.tool))
	for _, v := range st.json {
		n += textFieldSize(v.Len())
	}
	in := st.in()
	for i := range in.questions {
		n += questionSize(&in.questions[i])
	}
	for key, v := range in.requests {
		n += 1 + textSize(len(key)) + textSize(v.Len())
	}
	for key, v := range in.responses {
		n += 1 + textSize(len(key)) + textSize(v.Len())
	}
	return n
}

// pendingSize is about how much pending fields add to wholeSize: requests and
// responses that were replaced or removed one by one still count.
func pendingSize(pending []string) int {
	var scalars [jsonFields]int
	requests, responses := 0, 0
	for _, fields := range pending {
		r := reader{rest: fields}
		for r.rest != "" {
			before := len(r.rest)
			switch t := r.tag(); t {
			case tagJSON, tagJSON + 1, tagJSON + 2, tagJSON + 3:
				scalars[t-tagJSON] = textFieldSize(len(r.text()))
			case tagRequestsGone:
				requests = 0
			case tagResponsesGone:
				responses = 0
			case tagRequest:
				r.skip(t)
				requests += before - len(r.rest)
			case tagResponse:
				r.skip(t)
				responses += before - len(r.rest)
			default:
				r.skip(t)
			}
		}
	}
	size := requests + responses
	for _, n := range scalars {
		size += n
	}
	return size
}

func questionSize(q *durabletasks.Question) int {
	n := 1 + textSize(len(q.Key)) + len(q.Digest)
	if !q.Deadline.IsZero() {
		n += 1 + instantSize(instant(q.Deadline))
	}
	return n
}

func textSize(n int) int { return uvarintSize(uint64(n)) + n }

func textFieldSize(n int) int {
	if n == 0 {
		return 0
	}
	return 1 + textSize(n)
}

func varintSize(x int64) int { return uvarintSize(uint64(x)<<1 ^ uint64(x>>63)) }

func numberFieldSize(x int64) int {
	if x == 0 {
		return 0
	}
	return 1 + varintSize(x)
}

func instantFieldSize(t moment) int {
	if t == (moment{}) {
		return 0
	}
	return 1 + instantSize(t)
}

func instantSize(t moment) int { return varintSize(t.sec) + uvarintSize(uint64(t.nsec)) }

// reader takes a body apart. Its texts are pieces of the body. After the
// first thing that does not fit it is bad and returns zeros.
type reader struct {
	rest string
	bad  bool
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

// skip reads past a field whose tag was read and is known.
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
	q.Key = r.text()
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

// apply changes st by fields from the log, all but the JSON in them, which
// stays pending until somebody asks for the record. The state must belong to
// the caller alone.
func (st *state) apply(fields string) error {
	r := reader{rest: fields}
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
			st.status = durabletasks.Status(r.text())
		case tagMessage:
			st.message = r.text()
		case tagCreated:
			st.created = r.instant()
		case tagUpdated:
			st.updated = r.instant()
		case tagTTL:
			st.ttl = time.Duration(r.varint())
		case tagPoll:
			st.poll = time.Duration(r.varint())
		case tagOwner:
			st.owner = r.text()
		case tagCancel:
			st.cancel = r.varint() != 0
		case tagUnsupported:
			n := r.varint()
			if n < 0 || n > math.MaxUint8 {
				return errBody
			}
			st.unsupported = wire.InputKinds(n)
		case tagTool:
			st.tool = r.text()
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

// applyJSON changes st by the JSON in fields that apply has accepted.
func (st *state) applyJSON(fields string) error {
	r := reader{rest: fields}
	for r.rest != "" {
		var err error
		switch t := r.tag(); t {
		case tagJSON, tagJSON + 1, tagJSON + 2, tagJSON + 3:
			var v wire.JSON
			if text := r.text(); text != "" {
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
	key, text := r.text(), r.text()
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
