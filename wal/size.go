package wal

import (
	"slices"

	"github.com/mcp-durable-tasks/durabletasks"
)

// wholeSize returns the length of what appendWhole appends.
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

// pendingSize returns about how much pending fields add to wholeSize. Requests
// and responses that were replaced or removed one at a time still count.
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
