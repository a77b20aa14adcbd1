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
//	err = server.Run(ctx, &mcp.StdioTransport{})
//
// # Streamable HTTP
//
// The protocol revision that has tasks needs a stateless handler. Wrap it
// with [Adapter.Handler], which checks the Mcp-Name header:
//
//	streamable := mcp.NewStreamableHTTPHandler(
//		func(*http.Request) *mcp.Server { return server },
//		&mcp.StreamableHTTPOptions{Stateless: true})
//	err := http.ListenAndServe(addr, adapter.Handler(streamable))
//
// # Processes
//
// A worker runs in the process that created its task, and does not end with
// the request that did. When the process dies, the task stays in its store,
// and with [Options].Recover the next process runs the worker of a task tool
// again, from the start; [durabletasks.Handle.Checkpoint] tells it how far the
// last one came, and [Ask] takes up the questions that are already asked.
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
// error.
package gosdk
