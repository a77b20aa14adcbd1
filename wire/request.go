package wire

import "strings"

// The Tasks extension, the protocol revision that this package implements, and
// the three methods that [Dispatch] serves.
const (
	ExtensionID     = "io.modelcontextprotocol/tasks"
	ProtocolVersion = "2026-07-28"

	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"
)

// The keys in the _meta member of messages. Every request states its protocol
// version and the capabilities of its client; a notification names the
// subscriptions/listen request that it belongs to.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
)

// DeclaresTasks reports whether the params of a request declare, in their own
// _meta, that the client supports the Tasks extension. Earlier requests do not
// count (tasks.md, "Capability Negotiation"). A declaration is an object; null
// or a boolean declares nothing.
func DeclaresTasks(params JSON) bool {
	return params.Get("_meta").Get(MetaClientCapabilities).Get("extensions").Get(ExtensionID).Kind() == Object
}

// A request is one decoded request for a task.
type request struct {
	Method string // one of the three
	TaskID string // never empty

	// InputResponses are the answers of a tasks/update by key, and nil for the
	// other methods. Their shapes are not checked yet: that needs the questions.
	// A key that is not well-formed text is left out: no question has it.
	InputResponses map[string]JSON
}

// decodeRequest checks and decodes the params of a tasks/get, tasks/update or
// tasks/cancel, in the order that Dispatch documents.
func decodeRequest(method string, params []byte) (request, error) {
	switch method {
	case MethodGet, MethodUpdate, MethodCancel:
	default:
		return request{}, &Error{Code: CodeMethodNotFound, Message: "Method not found"}
	}
	p, err := ParseParams(params)
	if err != nil {
		return request{}, err
	}
	if err := CheckEnvelope(p); err != nil {
		return request{}, err
	}
	r := request{Method: method}
	id := p.Get("taskId")
	switch text, ok := id.Text(); {
	case id.Kind() != String:
		return request{}, invalidParams("taskId must be a string, not %v", id.Kind())
	case !ok || strings.TrimSpace(text) == "":
		return request{}, errTaskNotFound()
	default:
		r.TaskID = text
	}
	if method == MethodUpdate {
		answers := p.Get("inputResponses")
		if answers.Kind() != Object {
			return request{}, invalidParams("inputResponses must be an object, not %v", answers.Kind())
		}
		r.InputResponses = make(map[string]JSON)
		for key, answer := range answers.members(false) {
			r.InputResponses[key] = answer
		}
	}
	return r, nil
}

// ParseParams parses the params of a request. They must be an object; if they
// are absent, ParseParams returns an empty object. The error is an [*Error]
// with [CodeInvalidParams].
func ParseParams(params []byte) (JSON, error) {
	if len(params) == 0 {
		return JSON{"{}"}, nil
	}
	p, err := ParseJSON(params)
	if err != nil {
		return JSON{}, invalidParams("%s", strings.TrimPrefix(err.Error(), "wire: "))
	}
	if p.Kind() != Object {
		return JSON{}, invalidParams("params must be an object, not %v", p.Kind())
	}
	return p, nil
}

// CheckEnvelope checks the _meta member that every request concerning tasks
// must have. If it names a protocol version, that must be [ProtocolVersion]
// (-32022), and the capabilities of the client must include the Tasks extension
// (-32021). The error is an [*Error]. Check the envelope before you look for
// the task.
func CheckEnvelope(params JSON) error {
	version := params.Get("_meta").Get(MetaProtocolVersion)
	switch text, _ := version.Text(); {
	case version.IsZero():
	case version.Kind() != String:
		return invalidParams("_meta[%q] must be a string, not %v", MetaProtocolVersion, version.Kind())
	case text != ProtocolVersion:
		return unsupportedVersion(text)
	}
	if !DeclaresTasks(params) {
		return MissingCapability()
	}
	return nil
}

func unsupportedVersion(requested string) *Error {
	if len(requested) > 64 { // not a version: keep the answer small
		requested = requested[:64]
	}
	data := appendString([]byte(`{"supported":["`+ProtocolVersion+`"],"requested":`), requested)
	return &Error{
		Code:    CodeUnsupportedProtocolVersion,
		Message: "Unsupported protocol version",
		Data:    MustParse(string(append(data, '}'))),
	}
}
