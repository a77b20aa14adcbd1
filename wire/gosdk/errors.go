package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"runtime/debug"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// rescue turns a panic into the answer that a client may see. The SDK does not
// recover from panics.
func (a *Adapter) rescue(err *error, attrs ...any) {
	if p := recover(); p != nil {
		a.log.Error("gosdk: panic while serving a request", append(attrs, describePanic(p), "stack", string(debug.Stack()))...)
		*err = internalError("Internal error")
	}
}

// describePanic says what kind of value a panic had, not the value, which may
// hold anything. The text of a runtime.Error, such as an index out of range,
// holds no data.
func describePanic(p any) slog.Attr {
	if err, ok := p.(runtime.Error); ok {
		return slog.String("panic", err.Error())
	}
	return slog.String("panic", fmt.Sprintf("%T", p))
}

func internalError(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: wire.CodeInternalError, Message: message}
}

func shuttingDown() *jsonrpc.Error { return internalError("The server is shutting down") }

// protocolError returns an error of package wire as the SDK sends it. The SDK
// keeps its data only if it is not wrapped.
func protocolError(err error) *jsonrpc.Error {
	var e *wire.Error
	if !errors.As(err, &e) {
		return internalError("Internal error")
	}
	out := &jsonrpc.Error{Code: e.Code, Message: e.Message}
	if !e.Data.IsZero() {
		out.Data = json.RawMessage(e.Data.String())
	}
	return out
}

// failed logs what went wrong and returns what the client may know of it.
func (a *Adapter) failed(what string, err error, attrs ...any) *jsonrpc.Error {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		return known
	}
	if errors.Is(err, durabletasks.ErrShutdown) || errors.Is(err, durabletasks.ErrClosed) {
		return shuttingDown()
	}
	if !errors.Is(err, context.Canceled) { // the client has gone
		a.log.Error("gosdk: "+what+" failed", append(attrs, "error", err)...)
	}
	switch {
	case errors.Is(err, durabletasks.ErrTooLarge):
		return &jsonrpc.Error{Code: wire.CodeInvalidParams, Message: "Invalid params: the arguments are too large to store"}
	case errors.Is(err, durabletasks.ErrBusy):
		return internalError("Too many tasks are running")
	}
	return internalError("Internal error")
}
