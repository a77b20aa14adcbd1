package wire

import "strings"

// The Tasks extension, the protocol revision that it is served on, and its
// three methods.
const (
	ExtensionID     = "io.modelcontextprotocol/tasks"
	ProtocolVersion = "2026-07-28"

	MethodGet    = "tasks/get"
	MethodUpdate = "tasks/update"
	MethodCancel = "tasks/cancel"
)

// The _meta keys in which every request says what its sender speaks.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
)

// DeclaresTasks reports whether a request's params declare, in their own
// _meta, that the client takes tasks. What earlier requests declared does not
// count (tasks.md, "Capability Negotiation"). The declaration is an object;
// null or a flag is none.
func DeclaresTasks(params JSON) bool {
	return params.Get("_meta").Get(MetaClientCapabilities).Get("extensions").Get(ExtensionID).Kind() == Object
}

// request is one decoded request for a task.
type request struct {
	Method string // one of the three
	TaskID string // never empty

	// InputResponses are the answers of a tasks/update, by key; nil for the
	// other methods. Their shapes are not checked yet: that is done against
	// the requests that they answer. A key that no request can have, because
	// it is not well-formed text, is left out.
	InputResponses map[string]JSON
}

// decodeRequest decodes and checks the params of a tasks/get, tasks/update or
// tasks/cancel. The order of the checks is: the method (-32601), the params'
// syntax (-32602), the protocol version (-32022), the declared extension
// (-32021), the members (-32602). Member names are compared exactly, and a
// duplicate is refused. An error never quotes what was sent.
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

// ParseParams parses the params of a request, which must be an object. Absent
// params are an empty object.
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

// CheckEnvelope checks what every request for tasks must say in its _meta: a
// protocol version that is served here, if it names one (-32022), and the
// Tasks extension among the client's capabilities (-32021). It comes before
// any look-up.
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
	if len(requested) > 64 { // not a version; the answer stays small
		requested = requested[:64]
	}
	data := appendString([]byte(`{"supported":["`+ProtocolVersion+`"],"requested":`), requested)
	return &Error{
		Code:    CodeUnsupportedProtocolVersion,
		Message: "Unsupported protocol version",
		Data:    MustParse(string(append(data, '}'))),
	}
}
