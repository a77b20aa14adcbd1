package wire

import "strings"

// InputKinds is a set of kinds of input requests, by what a client declares
// to be able to answer (elicitation.mdx, sampling.mdx and roots.mdx,
// "Capabilities"). The zero value is the empty set. The numbers are kept: a
// set may be stored.
type InputKinds uint8

// The kinds.
const (
	InputForm          InputKinds = 1 << iota // elicitation/create, in form mode or without a mode
	InputURL                                  // elicitation/create, in url mode
	InputSampling                             // sampling/createMessage
	InputSamplingTools                        // sampling/createMessage with tools or toolChoice, beside InputSampling
	InputRoots                                // roots/list
)

// inputKinds tells by which member of the client's capabilities, and which
// member of that, each kind is declared.
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

// KindsOf returns the kinds that a client must be able to answer to answer
// this input request: none for one that [CheckInputRequest] refuses for its
// method.
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

// UnsupportedInput returns the kinds that the params of a request, such as the
// tools/call that becomes a task, do not declare in their own _meta. A server
// must not ask for them (mrtr.mdx, "Server Requirements"). An elicitation
// capability without a mode means forms.
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

// MissingInput returns the -32021 error for what needs a client that can
// answer these kinds of input requests, and has one that cannot.
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
		panic(err) // maps of fixed names always have an encoding
	}
	return &Error{
		Code:    CodeMissingCapability,
		Message: "Missing required client capability: " + kinds.String(),
		Data:    data,
	}
}

// String names the capabilities, such as "elicitation.form, roots".
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
