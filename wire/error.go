package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// The JSON-RPC error codes of a server that serves tasks.
const (
	CodeMethodNotFound             = -32601 // the server does not have the method
	CodeInvalidParams              = -32602 // malformed params, or an unknown task
	CodeInternalError              = -32603 // a fault of the server
	CodeHeaderMismatch             = -32020 // a routing header contradicts the body
	CodeMissingCapability          = -32021 // the request needs a capability that it does not declare
	CodeUnsupportedProtocolVersion = -32022 // the server does not serve the protocol version of the request
)

// ErrTaskNotFound is returned by a [Backend] for a task that is unknown, expired
// or somebody else's. The client gets the same answer for all three.
var ErrTaskNotFound = errors.New("task not found")

// An Error is a JSON-RPC error object: the answer to a request that failed, or
// the payload of a failed task. It is safe for concurrent reading.
type Error struct {
	Code    int64
	Message string
	Data    JSON // optional

	cause error // of an internal error
}

// Error returns the code and the message, without the data.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (JSON-RPC error %d)", e.Message, e.Code)
}

// Unwrap returns the cause of an internal error, for logs, or nil if there is
// none. The cause is never sent to the client.
func (e *Error) Unwrap() error { return e.cause }

// AppendJSON appends the error object to dst.
func (e *Error) AppendJSON(dst []byte) []byte {
	dst = strconv.AppendInt(append(dst, `{"code":`...), e.Code, 10)
	dst = appendString(append(dst, `,"message":`...), e.Message)
	if !e.Data.IsZero() {
		dst = e.Data.AppendJSON(append(dst, `,"data":`...))
	}
	return append(dst, '}')
}

// MarshalJSON returns the error object.
func (e *Error) MarshalJSON() ([]byte, error) { return e.AppendJSON(nil), nil }

// MissingCapability returns the -32021 error for a request that needs the
// Tasks extension but does not declare it (tasks.md, "Capability
// Negotiation").
func MissingCapability() error {
	return &Error{
		Code:    CodeMissingCapability,
		Message: "Missing required client capability: " + ExtensionID,
		Data:    MustParse(`{"requiredCapabilities":{"extensions":{"` + ExtensionID + `":{}}}}`),
	}
}

// errTaskNotFound returns the -32602 error for a task that is unknown, expired
// or somebody else's. It is the same for all three, to the byte.
func errTaskNotFound() error {
	return &Error{Code: CodeInvalidParams, Message: "Task not found"}
}

func invalidParams(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}
