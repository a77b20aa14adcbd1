// Package gosdk serves the tasks of a [durabletasks.TaskLifecycle] through
// the official Go SDK for MCP, github.com/modelcontextprotocol/go-sdk: over
// stdio, in memory, and over Streamable HTTP.
//
// [Install] teaches an mcp.Server the three methods tasks/get, tasks/update
// and tasks/cancel, and makes it say in its capabilities that it does.
// [AddTaskTool] adds a tool whose calls become tasks; [Defer] lets the handler
// of any other tool decide so, call by call.
//
//	server := mcp.NewServer(&mcp.Implementation{Name: "reports", Version: "1.0"}, nil)
//	adapter, err := gosdk.Install(server, tasks, &gosdk.Options{Recover: true})
//	...
//	gosdk.AddTaskTool(adapter, &mcp.Tool{Name: "report"}, writeReport, nil)
//	err = server.Run(ctx, adapter.Transport(&mcp.StdioTransport{}))
//
// # Streamable HTTP
//
// The protocol revision that has tasks needs a stateless handler. Wrap it
// with [Adapter.Handler], which checks the Mcp-Name header and lets clients
// listen to their tasks:
//
//	streamable := mcp.NewStreamableHTTPHandler(
//		func(*http.Request) *mcp.Server { return server },
//		&mcp.StreamableHTTPOptions{Stateless: true})
//	err := http.ListenAndServe(addr, adapter.Handler(streamable))
//
// # Notifications
//
// Instead of asking again and again, a client may send a subscriptions/listen
// whose filter names tasks by taskIds, at most [wire.MaxListenTasks]. Over
// [Adapter.Transport] and [Adapter.Handler] it is served so:
//
//   - A client that does not declare the extension on this very request gets
//     error -32021, and taskIds of a wrong form error -32602, before anything
//     is looked up.
//   - The first message acknowledges the listen. It names the tasks that the
//     caller may see; others are left out, whatever the reason. If none is
//     left, the message has no taskIds.
//   - Then comes a notifications/tasks with the present view of each task, and
//     one after each change. A client that reads slowly misses views that are
//     out of date, and never the last one of a task.
//   - When all tasks have ended or expired, the listen ends with its result:
//     at once if there were none. It ends earlier, also with its result, when
//     the client cancels it, at [Adapter.EndListens], when the engine closes,
//     and when the bearer token of the request expires.
//   - What the listen asks beside tasks is served by the SDK, on the same
//     stream and with the same acknowledgement; it then lasts until the client
//     cancels it.
//
// A listen starts nothing that outlives its connection. A client that was cut
// off listens again: it gets the present views first, so it has missed
// nothing.
//
// # Processes
//
// A worker runs in the process that created its task, and does not end with
// the request that did. When the process dies, the task stays in its store,
// and with [Options].Recover the next process runs the worker of a task tool
// again, from the start; [durabletasks.Handle.Checkpoint] tells it how far the
// last one came, and [Ask] takes up the questions that are already asked. Of
// processes that share a store, such as the servers of two editor windows,
// those that live take up what one that died has left, with
// [Options].RecoverEvery.
//
// On stdio a client may start a process only to ask what the server can do,
// and end it at once. Recovery therefore waits for the first request that
// calls a tool or concerns a task. After mcp.Server.Run has returned, because
// stdin ended or a signal ended its context, call
// [durabletasks.TaskLifecycle.Shutdown] with a short deadline: the official
// client kills the process one second later.
//
// On HTTP, stop taking requests before that: a task request that meets a
// closed engine is an error to the client, and clients give a task up on any
// error. Streams are requests that http.Server.Shutdown waits for; have it end
// them:
//
//	web.RegisterOnShutdown(adapter.EndListens)
package gosdk
