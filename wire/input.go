package wire

import (
	"fmt"
	"strings"
)

// The methods of the requests that a task may ask its client (tasks.md,
// "Task Update Requests").
const (
	MethodElicit   = "elicitation/create"
	MethodSampling = "sampling/createMessage"
	MethodRoots    = "roots/list"
)

// ShapeError reports an input request, or the answer to one, that does not
// have the shape that the protocol gives it. It says where and what was
// expected there, never what was found.
type ShapeError struct {
	Key      string // the request's key, where it is known
	Pointer  string // RFC 6901 JSON pointer into the request or answer; "" is the whole
	Expected string // what should stand there, such as "a string"
}

// Error names the key, the place and the expectation.
func (e *ShapeError) Error() string {
	var b strings.Builder
	b.WriteString("wire: ")
	if e.Key != "" {
		fmt.Fprintf(&b, "input %.64q: ", e.Key)
	}
	if e.Pointer != "" {
		fmt.Fprintf(&b, "at %.256q: ", e.Pointer)
	}
	b.WriteString("expected " + e.Expected)
	return b.String()
}

// CheckInputRequest checks the shape of a request that a task is about to ask
// its client. It returns nil or a [*ShapeError].
func CheckInputRequest(request JSON) error {
	if request.Kind() != Object {
		return &ShapeError{Expected: "an object"}
	}
	params := request.Get("params")
	switch method, _ := request.Get("method").Text(); method {
	case MethodElicit, MethodSampling:
		if params.Kind() != Object {
			return &ShapeError{Pointer: "/params", Expected: "an object"}
		}
	case MethodRoots:
		if k := params.Kind(); k != Object && k != Absent {
			return &ShapeError{Pointer: "/params", Expected: "an object, or nothing"}
		}
	default:
		return &ShapeError{Pointer: "/method", Expected: "one of " + MethodElicit + ", " + MethodSampling + ", " + MethodRoots}
	}
	return nil
}

// CheckInputResponse checks the shape of a client's answer against the
// request that it answers, which has passed [CheckInputRequest]. It returns
// nil or a [*ShapeError]. The content of an elicitation's answer is not
// compared with the requested schema: that is the worker's to judge.
func CheckInputResponse(request, response JSON) error {
	if response.Kind() != Object {
		return &ShapeError{Expected: "an object"}
	}
	if method, _ := request.Get("method").Text(); method == MethodElicit {
		switch action, _ := response.Get("action").Text(); action {
		case "accept", "decline", "cancel":
		default:
			return &ShapeError{Pointer: "/action", Expected: "one of accept, decline, cancel"}
		}
	}
	return nil
}
