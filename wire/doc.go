// Package wire implements the messages of the MCP Tasks extension
// (io.modelcontextprotocol/tasks, SEP-2663, protocol revision 2026-07-28). It
// needs no engine, no store, no SDK and no transport, and imports the standard
// library only.
//
// # Values
//
// A [JSON] is an immutable JSON value that has been validated. [ParseJSON],
// [Marshal] and [MustParse] make one, and [JSON.Decode] stores one in a Go
// value.
//
// # Asking the client
//
// A worker builds a question for its client as a [FormRequest], [URLRequest],
// [SamplingRequest] or [RootsRequest]. It converts the answer to an
// [ElicitResult], [SamplingResult] or [RootsResult] and reads it there;
// [FormRequest.Check] compares an answer with its form. Any other JSON value
// that passes [CheckInputRequest] is a question too.
//
// A server must not ask for what the client did not declare in its request.
// [UnsupportedInput] returns what that is.
//
// # Serving tasks
//
// A host hands the method and the params of a tasks/get, tasks/update or
// tasks/cancel to [Dispatch] and sends what it returns. To answer a tools/call
// with a task, the host checks the request with [CheckEnvelope] and sends a
// [CreateTaskResult]. To push changes of tasks, it decodes subscriptions/listen
// with [DecodeListen] and sends a [ListenAcknowledgement] and
// [TaskNotification] values.
//
// An error for the client is an [*Error], also where a function returns it as
// an error: find it with [errors.As].
//
// # Sources
//
// "tasks.md" in a comment is the specification of the extension, revision
// 2026-07-28. The other names are pages of the core protocol's specification,
// of the same revision: "elicitation.mdx", "sampling.mdx" and "roots.mdx"
// describe what a server can ask a client, "mrtr.mdx" describes multi
// round-trip requests.
package wire
