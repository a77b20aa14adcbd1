package wire

import (
	"fmt"
	"math"
	"strconv"
)

// A builder collects the members of an object, or the elements of an array,
// in the order in which they are to stand.
type builder struct{ b []byte }

// element appends an element.
func (b *builder) element(value JSON) { b.b = value.AppendJSON(b.next()) }

// add appends a member.
func (b *builder) add(name string, value JSON) {
	b.b = value.AppendJSON(append(appendString(b.next(), name), ':'))
}

// text appends a string member, unless it is empty.
func (b *builder) text(name, value string) {
	if value != "" {
		b.add(name, textJSON(value))
	}
}

func (b *builder) next() []byte {
	if len(b.b) == 0 {
		return b.b
	}
	return append(b.b, ',')
}

func (b *builder) object() JSON { return JSON{"{" + string(b.b) + "}"} }
func (b *builder) array() JSON  { return JSON{"[" + string(b.b) + "]"} }

// newRequest returns the input request with these params. What was built is
// parsed, because a caller's values may have made it invalid.
func newRequest(method string, params *builder) (JSON, error) {
	var b builder
	b.text("method", method)
	b.add("params", params.object())
	request, err := ParseJSON(b.object().text)
	if err != nil {
		return JSON{}, err
	}
	if err := CheckInputRequest(request); err != nil {
		return JSON{}, fmt.Errorf("wire: %s: %w", method, err)
	}
	return request, nil
}

// textJSON returns the JSON string of s. An invalid UTF-8 byte becomes U+FFFD.
func textJSON(s string) JSON { return JSON{string(appendString(nil, s))} }

func textArray(list []string) JSON {
	var b builder
	for _, s := range list {
		b.element(textJSON(s))
	}
	return b.array()
}

// floatJSON returns the shortest text of a finite number, and an integer that
// is safe as its digits.
func floatJSON(f float64) JSON {
	if f == math.Trunc(f) && math.Abs(f) <= maxSafe {
		return JSON{strconv.FormatInt(int64(f), 10)}
	}
	return JSON{strconv.FormatFloat(f, 'g', -1, 64)}
}
