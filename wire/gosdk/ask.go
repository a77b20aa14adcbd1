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

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// ErrAnswersGone: a worker asks again for what was answered before its last
// checkpoint.
var ErrAnswersGone = errors.New("gosdk: the answers to these requests are no longer kept")

// Ask asks the client of a task, and waits for all the answers. It is
// [durabletasks.Handle.Ask] with the SDK's types: a worker that runs anew
// after a restart asks the same again, and gets what its predecessor was
// answered, without the client being asked twice.
//
// A checkpoint (see [durabletasks.ProgressOptions].Checkpoint) stands for what
// came before it. A worker that goes on from one does not ask again for what
// it was answered before; otherwise it gets [ErrAnswersGone].
//
// A client's refusal is an answer: an [mcp.ElicitResult] whose Action is
// "decline" or "cancel". Whether an accepted form fits the schema is not
// checked.
//
// What the client did not declare on its tools/call is an
// [*durabletasks.UndeclaredError]. The other errors are those of Handle.Ask, and that of a request that has no
// JSON.
func Ask(ctx context.Context, h *durabletasks.Handle, requests mcp.InputRequestMap) (mcp.InputResponseMap, error) {
	text, err := wire.Marshal(requests)
	if err != nil {
		return nil, fmt.Errorf("gosdk: ask: %w", err)
	}
	round := make(map[string]wire.JSON, len(requests))
	for key, request := range text.Members() {
		round[key] = request
	}
	given, err := h.Ask(ctx, round)
	if errors.Is(err, durabletasks.ErrDuplicateKey) {
		return nil, ErrAnswersGone
	}
	if err != nil {
		return nil, err
	}
	answers := make(mcp.InputResponseMap, len(given))
	for key, answer := range given {
		if answers[key], err = decodeAnswer(round[key], answer); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// decodeAnswer returns the SDK's form of the answer to one request: of the kind
// that was asked for, and with the members that were checked. The SDK itself
// would guess the kind from the answer, and take members for each other that
// differ in case alone, so that a client could have one answer checked and
// another one heard.
func decodeAnswer(request, answer wire.JSON) (mcp.InputResponse, error) {
	if wire.CheckInputResponse(request, answer) != nil { // the round was another worker's, which asked otherwise
		return nil, errAnswer
	}
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

var errAnswer = errors.New("gosdk: ask: the SDK does not understand an answer")

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
		if json.Unmarshal([]byte(value.String()), &v) != nil {
			v = json.Number(value.String()) // it is one that no float64 can hold
		}
		content[name] = v
	}
	return content
}
