// Package gosdk serves the tasks of a [durabletasks.TaskLifecycle] through
// the official Go SDK for MCP, github.com/modelcontextprotocol/go-sdk: over
// stdio, in memory, and over Streamable HTTP.
//
// [Install] adds the methods tasks/get, tasks/update and tasks/cancel to an
// mcp.Server. [AddTaskTool] adds a tool whose calls become tasks, and
// [Adapter.RunStdio] or [Adapter.RunHTTP] serves:
//
//	server := mcp.NewServer(&mcp.Implementation{Name: "indexer", Version: "1.0.0"}, nil)
//	adapter, err := gosdk.Install(server, tasks, nil)
//	...
//	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "index"}, index, nil)
//	err = adapter.RunStdio(ctx)
//
// # Tools
//
// The handler of a task tool, a [TaskHandlerFor], is that of an [mcp.AddTool],
// with a [durabletasks.Handle] in place of the request. Through it the handler
// reports progress, saves checkpoints and asks the user; [RequestInput] asks with the
// SDK's types. A client that does not support tasks gets the result of the
// same handler as the answer to its call, or an error; see [Fallback].
//
// The handler of any other tool can decide for each call, with [Defer].
//
// # Restarts
//
// A worker runs in the process that created its task, and does not end with
// the request. When the process dies, the task stays in its store. The next
// process resumes it: a task tool's handler runs again, from the start and with
// the same arguments. [durabletasks.Checkpoint] returns what the last run saved,
// and a question that was asked already is not asked again. Where work must not
// be done twice, [FailInterrupted] fails the task instead.
//
// Processes may share a store, such as the servers of two editor windows.
// [Options].RecoverEvery makes the surviving processes resume the tasks of one
// that died.
//
// On stdio a client may start a process only to ask what the server can do,
// and end it at once. Recovery therefore waits for the first request that
// calls a tool or concerns a task. On HTTP it begins with
// [Adapter.HTTPHandler] or RunHTTP.
//
// # Serving without RunStdio or RunHTTP
//
// Over stdio, in memory, or any other transport with one connection, wrap the
// transport with [Adapter.Transport]. When mcp.Server.Run has returned, call
// [durabletasks.TaskLifecycle.Shutdown] with a short deadline: the official
// JavaScript client kills the process one second after it has closed stdin.
//
// Over HTTP, serve [Adapter.HTTPHandler]. Call [Adapter.EndListens] when the
// http.Server shuts down, and shut the engine down only after that: a request
// for a task that meets a closed engine gets an error, and clients give a task
// up on any error.
//
// # Notifications
//
// Instead of polling, a client may send a subscriptions/listen whose filter
// names tasks by taskIds, at most [wire.MaxListenTasks]:
//
//   - A client that does not declare the extension on this very request gets
//     error -32021, and taskIds of a wrong form error -32602, before any task
//     is looked up.
//   - The first message acknowledges the listen. It names the tasks that the
//     caller may see; others are left out, for any reason. If none is left, the
//     message has no taskIds.
//   - Then comes a notifications/tasks with the present view of each task, and
//     one after each change. A client that reads slowly misses views that are
//     out of date, and never the last one of a task.
//   - When all tasks have ended or expired, the listen ends with its result:
//     at once if there were none. It ends earlier, also with its result, when
//     the client cancels it, at [Adapter.EndListens], when the engine closes,
//     and when the bearer token of the request expires.
//   - The SDK serves the rest of the filter, on the same stream and with the
//     same acknowledgement; the listen then lasts until the client cancels it.
//
// A listen starts nothing that outlives its connection. A client that was cut
// off listens again. It gets the present views first, so it has missed
// nothing.
package gosdk
