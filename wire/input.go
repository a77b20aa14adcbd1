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

// Error names the key, the place and the expectation. It has no prefix: it is
// what a client or a model reads.
func (e *ShapeError) Error() string {
	var b strings.Builder
	if e.Key != "" {
		fmt.Fprintf(&b, "input %.64q: ", e.Key)
	}
	if e.Pointer != "" {
		fmt.Fprintf(&b, "at %.256q: ", e.Pointer)
	}
	b.WriteString("expected " + e.Expected)
	return b.String()
}

// CheckInputRequest checks a request that a task is about to ask its client:
// each member that the schema of revision 2026-07-28 defines for
// CreateMessageRequest, ListRootsRequest or ElicitRequest must be there if it
// is required, and have its type, range and enumeration. A member that may be
// left out may not be null instead, and a member that the schema does not
// know is let through. It returns nil or a [*ShapeError].
//
// A request comes from the server's own code, and a client that cannot take
// it ends the task. So CheckInputRequest refuses, beyond the schema, what the
// prose of the specification forbids and what clients are known to fail on:
//
//   - The url of an elicitation is an absolute http or https URL with a host,
//     without user information, in the characters of RFC 3986
//     (elicitation.mdx, "URL Mode Elicitation Requests", "Safe URL Handling").
//     A javascript, data or file URL is not one that a user can be sent to.
//   - A requestedSchema is a JSON Schema (elicitation.mdx, "Requested
//     Schema"), so a length or a number of items is not negative, a name is
//     required once, and a choice has something to choose from. Each keyword
//     of a field has its type, also where the schema's union would let it
//     pass as an unknown member of another alternative; enumNames needs an
//     enum.
//   - Integers are at most 2^53-1 in size and numbers within the range of a
//     float64, which is what the official client reads. The notation is free:
//     1e3 is an integer.
//   - image, audio and blob data are Base64, as browsers take it: white space
//     and a missing padding are no error.
//   - lastModified is an RFC 3339 time, on a day that exists.
//   - An embedded resource has a text or a blob, and neither with a wrong type.
//   - The tool uses of a message are answered by the next message, which holds
//     their results and nothing else (sampling.mdx, "Message Content
//     Constraints").
//
// What has the right shape but little sense passes: a maxTokens of 0, a
// minimum above the maximum, a default that is no option, a required name
// that is no property. The types that build requests, such as [FormRequest], refuse
// those too.
func CheckInputRequest(request JSON) error {
	if err := inputRequest(request); err != nil {
		return err
	}
	return nil
}

// CheckInputResponse checks a client's answer against the request that it
// answers, which has passed [CheckInputRequest]: a CreateMessageResult,
// ListRootsResult or ElicitResult of revision 2026-07-28, member by member as
// CheckInputRequest does. It returns nil or a [*ShapeError].
//
// Beyond the schema, the uri of a root starts with file:// (roots.mdx,
// "Root"), and the content of sampled messages follows the same rules as in a
// request, but for the order of tool uses and results. Other than the schema,
// which takes only integers there by an oversight, the content of an
// elicitation's answer may hold any number: a form can ask for one.
//
// The content of an elicitation's answer is not compared with the requested
// schema, and an answer may accept without content: clients differ, and what
// to make of the difference is for the worker to judge (see
// [FormRequest.Check]).
func CheckInputResponse(request, response JSON) error {
	answer := elicitResult
	switch method, _ := request.Get("method").Text(); method {
	case MethodSampling:
		answer = createMessageResult
	case MethodRoots:
		answer = listRootsResult
	}
	if err := answer(response); err != nil {
		return err
	}
	return nil
}

var inputRequest = tagged("method",
	alternative{MethodElicit, object(required("params", elicitParams))},
	alternative{MethodSampling, object(required("params", createMessageParams))},
	alternative{MethodRoots, object(optional("params", object(optional("_meta", anyObject))))},
)

var listRootsResult = object(
	required("roots", array(object(
		required("uri", fileURI),
		optional("name", text),
		optional("_meta", anyObject),
	))),
)
