package gosdk

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// rescue turns a panic into the answer that a client may see. The SDK
// recovers from none.
func (a *Adapter) rescue(err *error) {
	if p := recover(); p != nil {
		a.log.Error("gosdk: panic while serving a request", "type", fmt.Sprintf("%T", p), "stack", string(debug.Stack()))
		*err = internalError()
	}
}

func internalError() *jsonrpc.Error {
	return &jsonrpc.Error{Code: wire.CodeInternalError, Message: "Internal error"}
}

// protocolError returns an error of package wire as the SDK sends it. The SDK
// keeps its data only if it is not wrapped.
func protocolError(e *wire.Error) *jsonrpc.Error {
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if !e.Data.IsZero() {
		out.Data = json.RawMessage(e.Data.String())
	}
	return out
}

// failed logs what went wrong and returns what the client may know of it.
func (a *Adapter) failed(what string, err error) *jsonrpc.Error {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		return known
	}
	a.log.Error("gosdk: "+what, "error", err)
	switch {
	case errors.Is(err, durabletasks.ErrBusy):
		return &jsonrpc.Error{Code: wire.CodeInternalError, Message: "Too many tasks are running"}
	case errors.Is(err, durabletasks.ErrShutdown), errors.Is(err, durabletasks.ErrClosed):
		return shuttingDown()
	}
	return internalError()
}

func shuttingDown() *jsonrpc.Error {
	return &jsonrpc.Error{Code: wire.CodeInternalError, Message: "The server is shutting down"}
}
