package schemacheck

import (
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
	"pgregory.net/rapid"
)

// verdicts asks wire and both official files about a document.
type verdicts struct {
	core, ext           *schemas
	requests, responses map[string][2]func(string) error // by method; core and extension
	asked               map[string]wire.JSON             // a request of each method
}

var requestDefinitions = map[string]string{wire.MethodSampling: "CreateMessageRequest", wire.MethodRoots: "ListRootsRequest", wire.MethodElicit: "ElicitRequest"}

var responseDefinitions = map[string]string{wire.MethodSampling: "CreateMessageResult", wire.MethodRoots: "ListRootsResult", wire.MethodElicit: "ElicitResult"}

func newVerdicts(t *testing.T) *verdicts {
	v := &verdicts{core: load(t, core), ext: load(t, ext), requests: map[string][2]func(string) error{}, responses: map[string][2]func(string) error{}, asked: map[string]wire.JSON{}}
	both := func(name string) [2]func(string) error {
		return [2]func(string) error{v.core.validator(core + "#/$defs/" + name), v.ext.validator(ext + "#/$defs/" + name)}
	}
	for method, name := range requestDefinitions {
		v.requests[method] = both(name)
		v.responses[method] = both(responseDefinitions[method])
		v.asked[method] = wire.MustParse(`{"method":"` + method + `"}`)
	}
	v.requests[""] = both("InputRequest")
	return v
}

// of returns the schema's check for requests, or for answers to a request of
// the method, and wire's and the schema's verdict on one of them.
func (v *verdicts) of(t interface{ Fatalf(string, ...any) }, method, text string) (validate func(string) error, ours, official error) {
	value, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	checks := v.requests[""]
	if method == "" {
		ours = wire.CheckInputRequest(value)
	} else {
		ours = wire.CheckInputResponse(v.asked[method], value)
		checks = v.responses[method]
	}
	official = checks[0](text)
	if second := checks[1](text); (official == nil) != (second == nil) {
		t.Fatalf("%s: the core schema says %v, the extension's %v", text, official, second)
	}
	return checks[0], ours, official
}

// TestVerdicts compares wire with the official schemas on generated requests
// and answers.
func TestVerdicts(t *testing.T) {
	v := newVerdicts(t)
	met := map[string]int{} // how often each difference explained a verdict
	for method, name := range requestDefinitions {
		for _, kind := range []struct{ name, definition, method string }{{"request", name, ""}, {"response", responseDefinitions[method], method}} {
			t.Run(kind.definition, func(t *testing.T) {
				accepted, refused := 0, 0
				rapid.Check(t, func(t *rapid.T) {
					g := generator{v.core, t}
					document := g.value(v.core.def(kind.definition), "", 0)
					for range max(0, g.pick(4, "changes")-1) {
						if changed := g.broken(document); changed != any(removed{}) {
							document = changed
						}
					}
					text := encode(document)
					validate, ours, official := v.of(t, kind.method, text)
					if ours == nil {
						accepted++
					} else {
						refused++
					}
					if (ours == nil) == (official == nil) {
						return
					}
					d := v.explain(decode(text), ours, validate)
					if d == nil {
						t.Fatalf("%s\nwire says %v, the schema %v", text, ours, official)
					}
					met[d.name]++
				})
				t.Logf("%d accepted, %d refused", accepted, refused)
				if all := accepted + refused; accepted*20 < all || refused*20 < all {
					t.Errorf("of %d documents wire accepts %d and refuses %d: the generator is lopsided", all, accepted, refused)
				}
			})
		}
	}
	for i := range differences {
		t.Logf("%5d times: %s", met[differences[i].name], differences[i].name)
	}
}
