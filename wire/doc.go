// Package wire holds the shapes of the MCP Tasks extension
// (io.modelcontextprotocol/tasks, SEP-2663, protocol revision 2026-07-28):
// the JSON value, the views of a task, the requests for one, what a task may
// ask its client, and the errors. It knows no engine, no store and no
// transport.
//
// [Dispatch] serves the three methods from the text of a request. A host that
// has its own way of handing messages over needs nothing else of this
// package.
//
// A task asks its client with a [FormRequest], [URLRequest],
// [SamplingRequest] or [RootsRequest], or with any other [JSON] that
// [CheckInputRequest] lets through, and reads the answers as an
// [ElicitResult], [SamplingResult] or [RootsResult]. What its client cannot be
// asked for, [UnsupportedInput] tells.
//
// "tasks.md" in a comment is the extension's specification, revision
// 2026-07-28; "elicitation.mdx", "sampling.mdx" and "roots.mdx" are the
// client pages of the core protocol's, of the same revision, and "mrtr.mdx"
// is its page on multi round-trip requests.
package wire
