module github.com/mcp-durable-tasks/durabletasks

go 1.25.0
