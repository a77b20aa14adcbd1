package wire

import (
	"errors"
	"fmt"
	"strconv"
)

// The JSON-RPC error codes that a server of tasks answers with.
const (
	CodeMethodNotFound             = -32601 // no such method here
	CodeInvalidParams              = -32602 // malformed parameters, or an unknown task
	CodeInternalError              = -32603 // a fault of the server
	CodeHeaderMismatch             = -32020 // a routing header contradicts the body
	CodeMissingCapability          = -32021 // the request does not declare a capability that it needs
	CodeUnsupportedProtocolVersion = -32022 // the request's protocol version is not served
)

// ErrTaskNotFound is what a [Backend] reports for a task that is unknown,
// expired or somebody else's. On the wire these are one answer.
var ErrTaskNotFound = errors.New("task not found")

// Error is a JSON-RPC error object: the answer to a request that failed, or
// the payload of a failed task. It is safe for concurrent reading.
type Error struct {
	Code    int64
	Message string
	Data    JSON // optional, sent as it is

	cause error // of an internal error, for logs; never sent
}

// Error returns the code and the message, without the data.
func (e *Error) Error() string {
	return fmt.Sprintf("%s (JSON-RPC error %d)", e.Message, e.Code)
}

// Unwrap returns what caused an internal error, for logs; nil if that is not
// known. It is never sent.
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
// Tasks extension and does not declare it (tasks.md, "Capability
// Negotiation").
func MissingCapability() error {
	return &Error{
		Code:    CodeMissingCapability,
		Message: "Missing required client capability: " + ExtensionID,
		Data:    MustParse(`{"requiredCapabilities":{"extensions":{"` + ExtensionID + `":{}}}}`),
	}
}

// errTaskNotFound returns the -32602 error for a task that is unknown, expired,
// or somebody else's: one answer, the same to the byte, for all three.
func errTaskNotFound() error {
	return &Error{Code: CodeInvalidParams, Message: "Task not found"}
}

func invalidParams(format string, args ...any) *Error {
	return &Error{Code: CodeInvalidParams, Message: "Invalid params: " + fmt.Sprintf(format, args...)}
}
