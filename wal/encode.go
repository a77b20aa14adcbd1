package wal

import (
	"encoding/binary"

	"maps"

	"slices"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// tag identifies a field in the body of an entry. The values are part of the
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

// statuses maps the numbers in the format to the known states.
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

// blank is the state that a whole record is encoded as a change of.
var blank state

// appendWhole appends the body of a create or a copy.
func appendWhole(dst []byte, st *state) []byte {
	return appendChanges(appendHead(dst, st), &blank, st)
}

// appendUpdate appends the body of an update from old to st. Its base is set
// later, by setBase.
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

// appendMapChanges appends the changes between two maps under three tags: gone,
// for all keys are gone; gone+1, for one key is gone; gone+2, for one is set.
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
