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

// ErrAnswersGone: a worker that runs again asks what was answered in an
// earlier round, whose answers are no longer kept.
var ErrAnswersGone = errors.New("gosdk: the answers to these requests are no longer kept")

// Ask asks the client of a task, and waits for all the answers. It is
// [durabletasks.Handle.Ask] with the SDK's types: a worker that runs anew
// after a restart asks the same again, and gets the answers to the round that
// is under way, or that its predecessor had not made use of yet, without the
// client being asked twice.
//
// A task keeps the answers of one round. A worker with several rounds saves
// what it has learned with a checkpoint (see
// [durabletasks.ProgressOptions].Checkpoint) before it asks the next, and does
// not ask for it again; otherwise it gets [ErrAnswersGone].
//
// A client's refusal is an answer: an [mcp.ElicitResult] whose Action is
// "decline" or "cancel". Whether an accepted form fits the schema is not
// checked.
//
// The other errors are those of Handle.Ask, and that of a request that has no
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
		if answers[key], err = decodeAnswer(answer); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// decodeAnswer returns the SDK's form of one answer. The SDK decodes only
// whole maps.
func decodeAnswer(answer wire.JSON) (mcp.InputResponse, error) {
	const key = "answer"
	var decoded mcp.InputResponseMap
	if err := json.Unmarshal([]byte(`{"`+key+`":`+answer.String()+`}`), &decoded); err != nil {
		return nil, errors.New("gosdk: ask: the SDK does not understand an answer") // the cause may quote it
	}
	return decoded[key], nil
}
