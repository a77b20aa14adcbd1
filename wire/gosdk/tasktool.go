package gosdk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// TaskHandlerFor does the work of one call of a task tool. It has the shape of
// [mcp.ToolHandlerFor], with the task's handle in place of the request, and so
// have its results: the output becomes the result's StructuredContent and, if
// the result has no Content, a text block too; the result may then be nil. An
// error ends the task as a [Work]'s does.
//
// A handler that has ended its task by its handle, or whose context has ended,
// returns nil, the zero Out and nil. A handler whose Out is any must otherwise
// return a result or an output.
//
// It may run more than once for a task: when a process dies, the next one runs
// it again from the start, with the same arguments, unless
// [TaskToolOptions].Resume says otherwise. [durabletasks.Checkpoint] returns what
// the last run saved, and [durabletasks.Handle.RequestInput] the answers to what
// it asked.
type TaskHandlerFor[In, Out any] func(ctx context.Context, h *durabletasks.Handle, in In) (result *mcp.CallToolResult, out Out, _ error)

// Fallback says what a task tool does for a client that did not declare the
// Tasks extension on the request.
type Fallback int

const (
	// RunInline does the work while the client waits, and answers with its
	// result. Nothing is stored; if the client stops waiting, the work is
	// cancelled. Work that asks the client for input is refused at that moment
	// as Refuse does: without a task, the client cannot answer.
	RunInline Fallback = iota

	// Refuse answers with error -32021, which names the extension.
	Refuse
)

// TaskToolOptions are the settings of a task tool. The zero value of a field
// is its default.
type TaskToolOptions struct {
	// Fallback is the policy for clients without the extension; RunInline by
	// default.
	Fallback Fallback

	// TTL is how long a task of the tool lives after its creation. The default
	// is that of [durabletasks.Options].TTL, and [durabletasks.NoLimit] is no
	// limit.
	TTL time.Duration

	// PollInterval is how often clients are asked to poll. The default is that
	// of [durabletasks.Options].PollInterval, and [durabletasks.NoLimit] is no
	// hint.
	PollInterval time.Duration

	// StatusMessage is a text for people that describes the state of a new
	// task; none if empty.
	StatusMessage string

	// Resume returns the worker of a task that an earlier process left
	// unfinished, or nil to leave the task as it is. Nil runs the handler
	// again; [FailInterrupted] fails the task.
	Resume func(durabletasks.Record) durabletasks.Worker
}

func (o *TaskToolOptions) check() error {
	switch {
	case o.Fallback != RunInline && o.Fallback != Refuse:
		return errors.New("TaskToolOptions.Fallback is unknown")
	case o.TTL < 0 && o.TTL != durabletasks.NoLimit:
		return errors.New("TaskToolOptions.TTL is negative")
	case o.PollInterval < 0 && o.PollInterval != durabletasks.NoLimit:
		return errors.New("TaskToolOptions.PollInterval is negative")
	case !utf8.ValidString(o.StatusMessage):
		return errors.New("TaskToolOptions.StatusMessage is not valid UTF-8")
	}
	return nil
}

// AddTaskTool adds a tool whose calls become tasks, for clients that support
// them. Nil opts mean the defaults.
//
// The tool's schemas are inferred from In and Out as by [mcp.AddTool], unless
// tool sets them; an Out of any has no output schema. Arguments get the input
// schema's defaults, are validated, and are decoded into In. Arguments that do
// not fit are a tool error at once, not a task. Unlike with mcp.AddTool,
// numbers keep every digit, and an object that has a member twice is refused;
// see [wire.JSON.Decode].
//
// A task keeps the tool's name as its [durabletasks.Record].Tool and the
// arguments, as the client sent them, as its Payload. After a restart they are
// validated and decoded again. If they no longer fit, because the tool has
// changed, the task fails with an error that says so.
//
// The output must fit the output schema: whether it is out or a result's own
// StructuredContent, and on every path. Output that does not fit, or that is
// missing from a result without IsError, fails the call with error -32603. What
// a handler stores by [durabletasks.Handle.Complete] is not checked.
//
// AddTaskTool panics where mcp.AddTool does, such as for an In without a
// schema, and if an argument but opts is nil, opts are wrong, a default of the
// schema has a number that no float64 can hold, or the adapter has a task tool of
// this name. Add tools before the server is connected or run.
func AddTaskTool[In, Out any](a *Adapter, tool *mcp.Tool, handler TaskHandlerFor[In, Out], opts *TaskToolOptions) {
	switch {
	case a == nil:
		panic("AddTaskTool: the adapter is nil")
	case tool == nil:
		panic("AddTaskTool: the tool is nil")
	case handler == nil:
		panic(fmt.Sprintf("AddTaskTool: tool %q: the handler is nil", tool.Name))
	}
	t := &taskTool{adapter: a, name: tool.Name}
	if opts != nil {
		t.opts = *opts
	}
	in, out := reflect.TypeFor[In](), reflect.TypeFor[Out]()
	declared, err := t.declare(tool, in, out)
	if err != nil {
		panic(fmt.Sprintf("AddTaskTool: tool %q: %v", tool.Name, err))
	}
	t.prepare = func(arguments wire.JSON) (durabletasks.Worker, error) {
		var in In
		if err := t.decode(arguments, &in); err != nil {
			return nil, err
		}
		return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
			result, output, err := handler(ctx, h, in)
			if err != nil {
				return wire.JSON{}, a.workerError(t.name, err)
			}
			zero := reflect.ValueOf(&output).Elem().IsZero()
			if result == nil && zero && (ctx.Err() != nil || out == anyType) {
				return wire.JSON{}, nil // the engine knows whether that is right
			}
			return t.complete(result, output, zero)
		}, nil
	}
	a.addTool(t)
	a.server.AddTool(declared, t.call)
}

var anyType = reflect.TypeFor[any]()

// taskTool is a tool whose calls become tasks.
type taskTool struct {
	adapter *Adapter
	name    string
	opts    TaskToolOptions
	input   *schema
	output  *schema // nil: any output
	zeroOut any     // what a nil pointer is as output, if the output is a pointer

	// prepare checks arguments and returns the worker that has them.
	prepare func(arguments wire.JSON) (durabletasks.Worker, error)
}

// declare sets the schemas and returns the tool as clients are to see it.
func (t *taskTool) declare(tool *mcp.Tool, in, out reflect.Type) (*mcp.Tool, error) {
	if err := t.opts.check(); err != nil {
		return nil, err
	}
	declared := *tool
	if in == anyType && declared.InputSchema == nil {
		declared.InputSchema = &jsonschema.Schema{Type: "object"}
	}
	var err error
	if t.input, declared.InputSchema, err = newSchema(declared.InputSchema, in); err != nil {
		return nil, fmt.Errorf("input schema: %w", err)
	}
	if declared.OutputSchema != nil || out != anyType {
		if t.output, declared.OutputSchema, err = newSchema(declared.OutputSchema, out); err != nil {
			return nil, fmt.Errorf("output schema: %w", err)
		}
	}
	if out.Kind() == reflect.Pointer {
		t.zeroOut = reflect.Zero(out.Elem()).Interface()
	}
	return &declared, nil
}

// decode validates arguments and stores them in the value that in points to.
// The error is for the client: its text may quote the arguments.
func (t *taskTool) decode(arguments wire.JSON, in any) error {
	arguments, err := t.input.apply(arguments)
	if err != nil {
		return fmt.Errorf("validating \"arguments\": %w", err)
	}
	if err := arguments.Decode(in); err != nil {
		return fmt.Errorf("decoding \"arguments\": %s", unprefixed(err))
	}
	return nil
}

// parseArguments parses the arguments of a tools/call. Absent ones are an empty
// object.
func parseArguments(text json.RawMessage) (wire.JSON, error) {
	if len(text) == 0 {
		return wire.MustParse("{}"), nil
	}
	arguments, err := wire.ParseJSON(text)
	if err != nil {
		return wire.JSON{}, fmt.Errorf("parsing \"arguments\": %s", unprefixed(err))
	}
	return arguments, nil
}

// unprefixed returns an error's text as a client should see it.
func unprefixed(err error) string {
	return strings.TrimPrefix(strings.TrimPrefix(err.Error(), "wire: "), "decode: ")
}

// call handles a tools/call: it becomes a task, or is run inline. Every error
// is a [*jsonrpc.Error], except for the end of ctx.
func (t *taskTool) call(ctx context.Context, req *mcp.CallToolRequest) (_ *mcp.CallToolResult, err error) {
	defer t.adapter.rescue(&err, "tool", t.name) // the decoding of a type of the tool's own may panic
	var work durabletasks.Worker
	arguments, err := parseArguments(req.Params.Arguments)
	if err == nil {
		work, err = t.prepare(arguments)
	}
	if err != nil {
		var refused mcp.CallToolResult
		refused.SetError(err)
		return &refused, nil
	}
	c, _ := ctx.Value(callKey{}).(*call)
	switch {
	case c != nil && c.declared:
		return nil, c.start(ctx, durabletasks.CreateOptions{
			TTL:           t.opts.TTL,
			PollInterval:  t.opts.PollInterval,
			StatusMessage: t.opts.StatusMessage,
			Tool:          t.name,
			Payload:       arguments,
		}, work)
	case t.opts.Fallback == Refuse:
		return nil, protocolError(wire.MissingCapability())
	default:
		return t.adapter.runInline(ctx, t.name, work)
	}
}

// resume returns the worker of a task that an earlier process left unfinished.
func (t *taskTool) resume(r durabletasks.Record) durabletasks.Worker {
	if t.opts.Resume != nil {
		return t.opts.Resume(r)
	}
	return func(ctx context.Context, h *durabletasks.Handle) (wire.JSON, error) {
		work, err := t.prepare(r.Payload)
		if err == nil {
			return work(ctx, h)
		}
		what := err.Error()
		if misfit := (*schemaError)(nil); errors.As(err, &misfit) {
			what = misfit.place()
		}
		t.adapter.log.Error("gosdk: stored arguments do not fit the tool", "tool", t.name, "error", what)
		return wire.JSON{}, &wire.Error{
			Code:    wire.CodeInvalidParams,
			Message: "The tool has changed and no longer takes the arguments of this call (" + what + "). Call it again.",
		}
	}
}

// complete returns the text of a handler's result, with its output.
func (t *taskTool) complete(result *mcp.CallToolResult, output any, zero bool) (wire.JSON, error) {
	var complete mcp.CallToolResult
	if result != nil {
		complete = *result
	}
	if zero && t.zeroOut != nil {
		output = t.zeroOut
	}
	if output != nil && !(zero && complete.IsError) && complete.InputRequests == nil {
		complete.StructuredContent = output
	}
	if complete.StructuredContent == nil {
		if t.output != nil && !complete.IsError && complete.InputRequests == nil {
			return t.misfit("the output is missing")
		}
		return t.adapter.encode(t.name, &complete)
	}
	structured, err := wire.Marshal(complete.StructuredContent)
	if err != nil {
		return t.adapter.unstorable(t.name, err)
	}
	if t.output != nil {
		if structured, err = t.output.apply(structured); err != nil {
			if misfit := (*schemaError)(nil); errors.As(err, &misfit) {
				return t.misfit(misfit.place())
			}
			return t.adapter.unstorable(t.name, err)
		}
	}
	complete.StructuredContent = json.RawMessage(structured.String())
	if output != nil {
		switch text := (&mcp.TextContent{Text: structured.String()}); {
		case complete.Content == nil:
			complete.Content = []mcp.Content{text}
		case structured.Kind() != wire.Object: // clients of older revisions know objects only
			complete.Content = append(complete.Content[:len(complete.Content):len(complete.Content)], text)
		}
	}
	return t.adapter.encode(t.name, &complete)
}

// misfit reports an output that does not fit the tool's output schema.
func (t *taskTool) misfit(what string) (wire.JSON, error) {
	t.adapter.log.Error("gosdk: output does not match the tool's output schema", "tool", t.name, "error", what)
	return wire.JSON{}, &wire.Error{
		Code:    wire.CodeInternalError,
		Message: "The tool's output does not match its output schema",
	}
}
