package wire_test

import (
	"fmt"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A worker asks for a few values and reads the answer by type.
func ExampleFormRequest() {
	form := wire.FormRequest{
		Message: "How shall the report be sent?",
		Fields: []wire.Field{
			{Name: "to", Title: "Your address", Required: true, Schema: wire.StringSchema{Format: wire.FormatEmail}},
			{Name: "copies", Title: "Copies", Schema: wire.IntegerSchema{Range: wire.Between(1, 9)}},
			{Name: "format", Title: "Format", Required: true, Schema: wire.SingleSelectSchema{
				Options: []wire.Option{{Value: "pdf", Title: "PDF document"}, {Value: "html", Title: "Web page"}},
				Default: "pdf",
			}},
			{Name: "parts", Title: "Parts", Schema: wire.MultiSelectSchema{Options: wire.Options("summary", "tables", "sources")}},
			{Name: "urgent", Title: "Send at once", Schema: wire.BooleanSchema{}},
		},
	}
	request, err := form.JSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(request.Get("method"), request.Get("params").Get("requestedSchema").Get("required"))

	// In a worker: answers, err := handle.RequestInput(ctx, map[string]wire.JSON{"report": request})
	answers := map[string]wire.JSON{
		"report": wire.MustParse(`{"action":"accept","content":{"to":"ada@example.com","copies":2,"format":"pdf","parts":["summary"],"urgent":true}}`),
	}
	result := wire.ElicitResult(answers["report"])
	switch result.Action() {
	case wire.ActionDecline, wire.ActionCancel:
		fmt.Println("the user would rather not")
		return
	}
	if err := form.Check(result); err != nil {
		fmt.Println(err)
		return
	}
	to, _ := result.Text("to")
	copies, ok := result.Int("copies")
	parts, _ := result.Texts("parts")
	urgent, _ := result.Bool("urgent")
	fmt.Println(to, copies, ok, parts, urgent)
	// Output:
	// "elicitation/create" ["to","format"]
	// ada@example.com 2 true [summary] true
}

// What must not pass through the client is asked for on a page of the
// server's own.
func ExampleURLRequest() {
	request, err := wire.URLRequest{
		Message: "Connect your calendar",
		URL:     "https://mcp.example.com/connect/calendar",
	}.JSON()
	fmt.Println(request, err)

	_, err = wire.URLRequest{Message: "Connect your calendar", URL: "javascript:alert(1)"}.JSON()
	fmt.Println(err)
	// Output:
	// {"method":"elicitation/create","params":{"mode":"url","message":"Connect your calendar","url":"https://mcp.example.com/connect/calendar"}} <nil>
	// wire: elicitation/create: at "/params/url": expected an http or https URL with a host and without user information
}

func ExampleSamplingRequest() {
	request, err := wire.SamplingRequest{
		Messages:     []wire.SamplingMessage{{Text: "Summarise: MCP servers answer slowly."}},
		SystemPrompt: "Answer in one sentence.",
		MaxTokens:    200,
	}.JSON()
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(request.Get("method"))

	answer := wire.MustParse(`{"role":"assistant","model":"small-1","content":{"type":"text","text":"They are slow."},"stopReason":"endTurn"}`)
	fmt.Println(wire.SamplingResult(answer).Text())
	// Output:
	// "sampling/createMessage"
	// They are slow.
}

func ExampleRootsResult() {
	answer := wire.MustParse(`{"roots":[{"uri":"file:///home/ada/report","name":"Report"}]}`)
	for _, root := range wire.RootsResult(answer).Roots() {
		fmt.Println(root.Name, root.URI)
	}
	// Output: Report file:///home/ada/report
}
