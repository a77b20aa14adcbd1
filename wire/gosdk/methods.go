package gosdk

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// taskParams are the params of a request for a task, as the client wrote
// them. What is in them is for package wire to decode: a typed field that
// does not fit would make the SDK quote the client's params in the error. The
// SDK hands over a nil pointer for absent params.
type taskParams struct {
	mcp.ParamsBase
	text []byte
}

// UnmarshalJSON keeps the text. Only the _meta is decoded, as far as possible,
// for other middleware of the server.
func (p *taskParams) UnmarshalJSON(text []byte) error {
	p.text = bytes.Clone(text)
	params, err := wire.ParseJSON(text) // encoding/json would also take _META
	if err != nil {
		return nil
	}
	p.Meta = metaOf(params)
	return nil
}

// GetMeta returns the _meta, even of absent params.
func (p *taskParams) GetMeta() map[string]any {
	if p == nil {
		return nil
	}
	return p.Meta
}

func (p *taskParams) raw() []byte {
	if p == nil {
		return nil
	}
	return p.text
}

// serve answers one request for a task.
func (a *Adapter) serve(ctx context.Context, method string, params []byte) (_ *taskResult, err error) {
	defer a.rescue(&err)
	result, err := wire.Dispatch(ctx, a.tasks, method, params)
	if err != nil {
		if cause := errors.Unwrap(err); cause != nil {
			a.log.Error("gosdk: request failed", "method", method, "error", cause)
		}
		return nil, protocolError(err)
	}
	return &taskResult{Result: result}, nil
}

// taskResult is an answer that package wire has made, as the SDK takes it.
// The SDK adds the server's name to its _meta.
type taskResult struct {
	mcp.ResultBase
	wire.Result
}

// MarshalJSON returns the text that package wire makes, with the _meta
// appended as its last member.
func (r *taskResult) MarshalJSON() ([]byte, error) {
	text := r.AppendJSON(nil)
	if len(r.Meta) == 0 {
		return text, nil
	}
	meta, err := json.Marshal(r.Meta)
	if err != nil {
		return nil, err
	}
	text = append(text[:len(text)-1], `,"_meta":`...)
	text = append(text, meta...)
	return append(text, '}'), nil
}
