package wire

import "strings"

// InputKinds is a set of kinds of input requests. A client declares which kinds
// it can answer (elicitation.mdx, sampling.mdx and roots.mdx, "Capabilities").
// The zero value is the empty set. The numbers will not change, so a set may be
// stored.
type InputKinds uint8

// The kinds of input requests.
const (
	InputForm          InputKinds = 1 << iota // elicitation/create, in form mode or without a mode
	InputURL                                  // elicitation/create, in url mode
	InputSampling                             // sampling/createMessage
	InputSamplingTools                        // tools or toolChoice in sampling/createMessage; needs InputSampling too
	InputRoots                                // roots/list
)

// inputKinds names the capability that declares each kind, and the member of
// that capability, if it needs one.
var inputKinds = []struct {
	kind               InputKinds
	capability, member string
}{
	{InputForm, "elicitation", "form"},
	{InputURL, "elicitation", "url"},
	{InputSampling, "sampling", ""},
	{InputSamplingTools, "sampling", "tools"},
	{InputRoots, "roots", ""},
}

// KindsOf returns the kinds that a client must support to answer this input
// request. It returns the empty set if the method is not that of an input
// request.
func KindsOf(request JSON) InputKinds {
	params := request.Get("params")
	switch method, _ := request.Get("method").Text(); method {
	case MethodElicit:
		if mode, _ := params.Get("mode").Text(); mode == "url" {
			return InputURL
		}
		return InputForm
	case MethodSampling:
		if params.Get("tools").IsZero() && params.Get("toolChoice").IsZero() {
			return InputSampling
		}
		return InputSampling | InputSamplingTools
	case MethodRoots:
		return InputRoots
	}
	return 0
}

// UnsupportedInput returns the kinds that a client does not declare in the _meta
// of a request, such as the tools/call that becomes a task. A server must not
// ask for these (mrtr.mdx, "Server Requirements"). An elicitation capability
// without a mode declares forms.
func UnsupportedInput(params JSON) InputKinds {
	capabilities := params.Get("_meta").Get(MetaClientCapabilities)
	var undeclared InputKinds
	for _, k := range inputKinds {
		declared := capabilities.Get(k.capability)
		noMode := k.kind == InputForm && declared.Get("form").IsZero() && declared.Get("url").IsZero()
		if k.member != "" && !noMode {
			declared = declared.Get(k.member)
		}
		if declared.Kind() != Object {
			undeclared |= k.kind
		}
	}
	return undeclared
}

// MissingInput returns the -32021 error for a client that does not support these
// kinds of input requests although the server needs them.
func MissingInput(kinds InputKinds) error {
	required := make(map[string]map[string]struct{})
	for _, k := range inputKinds {
		if kinds&k.kind == 0 {
			continue
		}
		if required[k.capability] == nil {
			required[k.capability] = make(map[string]struct{})
		}
		if k.member != "" {
			required[k.capability][k.member] = struct{}{}
		}
	}
	data, err := Marshal(map[string]any{"requiredCapabilities": required})
	if err != nil {
		panic(err) // maps with fixed names have an encoding
	}
	return &Error{
		Code:    CodeMissingCapability,
		Message: "Missing required client capability: " + kinds.String(),
		Data:    data,
	}
}

// String names the capabilities that declare the kinds, such as
// "elicitation.form, roots".
func (k InputKinds) String() string {
	var names []string
	for _, kind := range inputKinds {
		if k&kind.kind == 0 {
			continue
		}
		name := kind.capability
		if kind.member != "" {
			name += "." + kind.member
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}
