package wire

import (
	"fmt"
	"strings"
)

// The methods of input requests, the questions that a task may ask its client
// (tasks.md, "Task Update Requests").
const (
	MethodElicit   = "elicitation/create"
	MethodSampling = "sampling/createMessage"
	MethodRoots    = "roots/list"
)

// A ShapeError reports an input request or an answer that does not have the
// shape that the protocol or a form demands. It says where the error is and what
// was expected there, never what was found.
type ShapeError struct {
	Key      string // of the request; may be empty
	Pointer  string // the place in the request or answer, an RFC 6901 JSON pointer; "" is the whole
	Expected string // what should be there, such as "a string"
}

// Error names the key, the place and what was expected. Clients and models read
// this text, so it has no prefix.
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

// CheckInputRequest checks a question that a task is about to ask its client. It
// returns nil or a [*ShapeError].
//
// The request must follow the schema of revision 2026-07-28 for
// CreateMessageRequest, ListRootsRequest or ElicitRequest: required members are
// there, and each member has its type, range and enumeration. An optional member
// may be absent but not null. Members that the schema does not define are
// allowed.
//
// The server's own code makes the request, and a client that fails on it ends
// the task. So CheckInputRequest demands more than the schema: what the prose of
// the specification demands, and what known clients need.
//
//   - The url of an elicitation is an absolute http or https URL with a host,
//     without user information, in the characters of RFC 3986
//     (elicitation.mdx, "URL Mode Elicitation Requests", "Safe URL Handling").
//     A user cannot be sent to a javascript, data or file URL.
//   - A requestedSchema is a JSON Schema (elicitation.mdx, "Requested
//     Schema"). So a length or a number of items is not negative, required has
//     no name twice, and a choice has at least one option. Each keyword of a
//     field has its type, even where the schema's union would accept it as an
//     unknown member of another alternative. The keyword enumNames needs enum.
//   - Integers lie within ±(2^53-1) and numbers within the range of a float64,
//     as the official client reads them. The notation is free: 1e3 is an
//     integer.
//   - image, audio and blob data are Base64 as browsers accept it, with white
//     space and without padding too.
//   - lastModified is an RFC 3339 time on a day that exists.
//   - An embedded resource has a text, a blob or both, each of the right type.
//   - A message with tool uses is followed by a message that holds their results
//     and nothing else (sampling.mdx, "Message Content Constraints").
//
// Well-formed but meaningless values are accepted: a maxTokens of 0, a minimum
// above the maximum, a default that is not an option, a required name that is
// not a property. The types that build requests, such as [FormRequest], refuse
// these too.
func CheckInputRequest(request JSON) error {
	if err := inputRequest(request); err != nil {
		return err
	}
	return nil
}

// CheckInputResponse checks the answer of a client. The answer to a request that
// has passed [CheckInputRequest] must be a CreateMessageResult, ListRootsResult
// or ElicitResult of revision 2026-07-28, whose members are checked as in a
// request. It returns nil or a [*ShapeError].
//
// Beyond the schema, the uri of a root starts with file:// (roots.mdx, "Root"),
// and the content of sampled messages follows the rules for requests, except for
// the order of tool uses and results. The content of an ElicitResult may hold
// any number; the schema allows only integers there, by an oversight, although a
// form can ask for other numbers.
//
// CheckInputResponse does not compare the content of an ElicitResult with the
// requested schema, and it accepts an answer without content. Clients differ
// here, so the worker decides; see [FormRequest.Check].
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
