module github.com/mcp-durable-tasks/durabletasks/internal/schemacheck

go 1.25.0

require (
	github.com/mcp-durable-tasks/durabletasks v0.1.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	pgregory.net/rapid v1.3.0
)

require (
	github.com/google/uuid v1.6.0 // indirect
	golang.org/x/text v0.14.0 // indirect
)
