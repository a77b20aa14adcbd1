// Roots and sampling are deprecated in revision 2026-07-28, and still what a
// task may ask.
//
//lint:file-ignore SA1019 see above

package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// RequestInput asks the client of a task and waits for all the answers. It is
// [durabletasks.Handle.RequestInput] with the SDK's types, and reports the same
// errors. [durabletasks.Handle.Confirm], [durabletasks.Handle.Choose] and
// [durabletasks.Handle.Prompt] ask one simple question.
//
// A client's refusal is an answer: an [mcp.ElicitResult] whose Action is
// "decline" or "cancel". The values of an accepted form fit the form's schema;
// if one does not, the error is a [*wire.ShapeError] that says what the form
// takes. Fields that the client left out, even required ones, are the worker's
// to check. A number is a float64, but a whole number that no float64 can hold
// is a [json.Number] with its digits.
//
// With an error that wraps [durabletasks.ErrUnanswered], RequestInput returns
// the answers that were given.
func RequestInput(ctx context.Context, h *durabletasks.Handle, requests mcp.InputRequestMap, opts *durabletasks.InputOptions) (mcp.InputResponseMap, error) {
	text, err := wire.Marshal(requests)
	if err != nil {
		return nil, fmt.Errorf("%w: the requests: %s", durabletasks.ErrInvalid, unprefixed(err))
	}
	round := make(map[string]wire.JSON, len(requests))
	for key, request := range text.Members() {
		round[key] = request
	}
	given, unanswered := h.RequestInput(ctx, round, opts)
	if unanswered != nil && given == nil {
		return nil, unanswered
	}
	answers := make(mcp.InputResponseMap, len(given))
	for key, answer := range given {
		if err := checkForm(round[key], answer, key); err != nil {
			return nil, err
		}
		if answers[key], err = decodeAnswer(round[key], answer); err != nil {
			return nil, err
		}
	}
	return answers, unanswered
}

// decodeAnswer returns the SDK's form of the answer to one request: of the kind
// that was asked for, and with the members that were checked. The SDK itself
// would guess the kind from the answer, and take members for each other that
// differ in case alone, so that a client could have one answer checked and
// another one used.
func decodeAnswer(request, answer wire.JSON) (mcp.InputResponse, error) {
	switch method, _ := request.Get("method").Text(); method {
	case wire.MethodElicit:
		action, _ := answer.Get("action").Text()
		return &mcp.ElicitResult{Meta: metaOf(answer), Action: action, Content: contentOf(answer.Get("content"))}, nil
	case wire.MethodRoots:
		list := &mcp.ListRootsResult{Meta: metaOf(answer), Roots: []*mcp.Root{}}
		for root := range answer.Get("roots").Elements() {
			uri, _ := root.Get("uri").Text()
			name, _ := root.Get("name").Text()
			list.Roots = append(list.Roots, &mcp.Root{Meta: metaOf(root), Name: name, URI: uri})
		}
		return list, nil
	default:
		var message mcp.CreateMessageWithToolsResult // whose own decoding is exact
		if message.UnmarshalJSON([]byte(answer.String())) != nil {
			return nil, errAnswer // the cause may quote it
		}
		return &message, nil
	}
}

var errAnswer = errors.New("the client's answer is not one that the SDK understands")

// metaOf returns the _meta of an answer, if the SDK can have it.
func metaOf(v wire.JSON) mcp.Meta {
	var meta mcp.Meta
	if json.Unmarshal([]byte(v.Get("_meta").String()), &meta) != nil {
		return nil
	}
	return meta
}

// contentOf returns what was filled into a form.
func contentOf(form wire.JSON) map[string]any {
	if form.IsZero() {
		return nil
	}
	content := map[string]any{}
	for name, value := range form.Members() {
		var v any
		if err := value.Decode(&v); err == nil {
			content[name] = mapNumbers(v, answerNumber)
		}
	}
	return content
}

// answerNumber returns a number of an answer: a float64 if that is exact, or
// if the number is a fraction.
func answerNumber(n json.Number) any {
	f, err := n.Float64()
	if err != nil {
		return n
	}
	if i := integer(n); i != nil && new(big.Rat).SetFloat64(f).Cmp(new(big.Rat).SetInt(i)) != 0 {
		return n
	}
	return f
}

// checkForm compares the values of an accepted form with the schema that the
// form was made from.
func checkForm(request, answer wire.JSON, key string) error {
	if !wire.ElicitResult(answer).Accepted() {
		return nil
	}
	fields := request.Get("params").Get("requestedSchema").Get("properties")
	for name, value := range answer.Get("content").Members() {
		field := fields.Get(name)
		if field.IsZero() {
			continue
		}
		s, _, err := newSchema(field, nil)
		if err != nil {
			continue // wire.CheckInputRequest knows what a form may be
		}
		if _, err := s.apply(value); err != nil {
			return &wire.ShapeError{Key: key, Pointer: "/content/" + escapePointer.Replace(name), Expected: expected(field)}
		}
	}
	return nil
}

var escapePointer = strings.NewReplacer("~", "~0", "/", "~1")

// expected says what a field of a form takes.
func expected(field wire.JSON) string {
	var options []string
	for _, of := range []wire.JSON{field, field.Get("items")} {
		for option := range of.Get("enum").Elements() {
			options = append(options, option.String())
		}
		for _, list := range []string{"oneOf", "anyOf"} {
			for option := range of.Get(list).Elements() {
				options = append(options, option.Get("const").String())
			}
		}
	}
	const most = 20
	if n := len(options) - most; n > 0 {
		options = append(options[:most], fmt.Sprintf("%d more", n))
	}
	kind, _ := field.Get("type").Text()
	switch {
	case len(options) > 0 && kind == "array":
		return "an array of " + strings.Join(options, ", ")
	case len(options) > 0:
		return "one of " + strings.Join(options, ", ")
	case kind != "":
		return "a value of type " + kind + " that fits the form's schema"
	}
	return "a value that fits the form's schema"
}
