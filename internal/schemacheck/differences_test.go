package schemacheck

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"math/big"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// A difference is a class of documents on which wire and the official schema
// disagree, and why.
type difference struct {
	name   string
	reason string
	// refused says which of the two refuses the documents: wire or the schema.
	refused string

	// at matches the pointer at which wire refuses the documents, and holds
	// decides, without help from wire, whether what stands there belongs to the
	// class.
	at    *regexp.Regexp
	holds func(v *verdicts, document any, pointer string) bool

	// repaired makes a document that the schema refuses into one of no
	// difference.
	repaired func(document any) any

	// examples are documents of the class: requests, or answers to the request
	// of that method.
	examples []example
}

// An example is a request or, if method is given, an answer to a request.
type example struct{ method, text string }

const byWire, bySchema = "wire", "the schema"

var differences = []difference{
	{
		name:    "URLs that a user cannot be sent to",
		reason:  "elicitation.mdx: url MUST be a valid URL and carry no credentials; javascript: and the like are an attack on the user. The schema's format is only an annotation.",
		refused: byWire, at: regexp.MustCompile(`^/params/url$`), holds: stringThat(func(s string) bool {
			u, err := url.Parse(s)
			return err != nil || !slices.Contains([]string{"http", "https"}, u.Scheme) || u.Hostname() == "" || u.User != nil || strings.ContainsAny(s, " \\")
		}),
		examples: []example{{"", `{"method":"elicitation/create","params":{"mode":"url","message":"","url":"javascript:alert(1)"}}`}},
	},
	{
		name:    "roots that are no files",
		reason:  "roots.mdx and the schema's own comment: uri MUST start with file://.",
		refused: byWire, at: regexp.MustCompile(`^/roots/\d+/uri$`), holds: stringThat(func(s string) bool { return !strings.HasPrefix(s, "file://") }),
		examples: []example{{wire.MethodRoots, `{"roots":[{"uri":"https://example.com"}]}`}},
	},
	{
		name:    "binary data that are not Base64",
		reason:  "The schema's format is byte, which is only an annotation; the official SDK refuses what atob refuses.",
		refused: byWire, at: regexp.MustCompile(`/(data|blob)$`), holds: stringThat(func(s string) bool {
			s = strings.Map(func(r rune) rune {
				if strings.ContainsRune(" \t\n\f\r", r) {
					return -1
				}
				return r
			}, s)
			_, padded := base64.StdEncoding.DecodeString(s)
			_, bare := base64.RawStdEncoding.DecodeString(s)
			return padded != nil && bare != nil
		}),
		examples: []example{{wire.MethodSampling, `{"role":"user","model":"m","content":{"type":"image","mimeType":"m","data":"a"}}`}},
	},
	{
		name:    "times that are none",
		reason:  "The schema's comment asks for an ISO 8601 string; the original demands a full time, too.",
		refused: byWire, at: regexp.MustCompile(`/annotations/lastModified$`), holds: stringThat(func(s string) bool {
			_, err := time.Parse(time.RFC3339, s)
			return err != nil
		}),
		examples: []example{{wire.MethodSampling, `{"role":"user","model":"m","content":{"type":"text","text":"","annotations":{"lastModified":"2026-02-30T12:00:00Z"}}}`}},
	},
	{
		name:    "integers beyond 2^53-1",
		reason:  "The official client refuses them: its numbers are doubles.",
		refused: byWire, at: regexp.MustCompile(`/(maxTokens|size|minLength|maxLength|minItems|maxItems)$`), holds: numberThat(func(r *big.Rat) bool {
			return r.IsInt() && new(big.Rat).Abs(r).Cmp(new(big.Rat).SetInt64(1<<53-1)) > 0
		}),
		examples: []example{{"", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":9007199254740992}}`}},
	},
	{
		name:    "numbers beyond the range of a double",
		reason:  "They are infinite for the official client, which refuses them.",
		refused: byWire, at: regexp.MustCompile(`/(temperature|minimum|maximum|default)$`), holds: numberThat(func(r *big.Rat) bool {
			f, _ := r.Float64()
			return f-f != 0 // infinite
		}),
		examples: []example{{"", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"temperature":1e400}}`}},
	},
	{
		name:    "negative lengths",
		reason:  "A requestedSchema is a JSON Schema, and JSON Schema allows no negative length; clients that compile it fail.",
		refused: byWire, at: regexp.MustCompile(`^/params/requestedSchema/properties/.*/(minLength|maxLength|minItems|maxItems)$`),
		holds:    numberThat(func(r *big.Rat) bool { return r.IsInt() && r.Sign() < 0 }),
		examples: []example{{"", form(`{"type":"string","minLength":-1}`)}},
	},
	{
		name:    "choices without an option",
		reason:  "JSON Schema wants an element in oneOf and anyOf, and nothing can be chosen from an empty enum.",
		refused: byWire, at: regexp.MustCompile(`^/params/requestedSchema/properties/.*/(enum|oneOf|anyOf)$`),
		holds: valueThat(func(v any) bool {
			list, ok := v.([]any)
			return ok && len(list) == 0
		}),
		examples: []example{{"", form(`{"type":"string","oneOf":[]}`)}, {"", form(`{"type":"array","items":{"type":"string","enum":[]}}`)}},
	},
	{
		name:    "names that are required twice",
		reason:  "JSON Schema wants the names in required to be unique.",
		refused: byWire, at: regexp.MustCompile(`^/params/requestedSchema/required$`),
		holds: valueThat(func(v any) bool {
			list, ok := v.([]any)
			different := map[string]bool{}
			for _, e := range list {
				different[encode(e)] = true
			}
			return ok && len(different) < len(list)
		}),
		examples: []example{{"", `{"method":"elicitation/create","params":{"message":"","requestedSchema":{"type":"object","properties":{},"required":["a","a"]}}}`}},
	},
	{
		name: "keywords of a field with a wrong type",
		reason: "The schema's union takes a string schema with a malformed enum as a plain one with an unknown member, and the other way round. " +
			"A client that looks for the enum would meet it.",
		refused: byWire, at: keywordPointer, holds: (*verdicts).noAlternativeTakes,
		examples: []example{
			{"", form(`{"type":"string","enum":"a"}`)}, {"", form(`{"type":"string","enum":["a"],"minLength":"1"}`)}, {"", form(`{"type":"string","oneOf":[{"const":"a"}]}`)},
			{"", form(`{"type":"string","enum":["a"],"format":"phone"}`)}, {"", form(`{"type":"array","items":{"type":"number","anyOf":[{"const":"a","title":"A"}]}}`)},
		},
	},
	{
		name:    "enumNames without an enum",
		reason:  "Names of nothing. The original refuses them, too.",
		refused: byWire, at: regexp.MustCompile(`^/params/requestedSchema/properties/[^/]*$`),
		holds: valueThat(func(v any) bool {
			object, _ := v.(map[string]any)
			_, names := object["enumNames"]
			_, values := object["enum"]
			return names && !values
		}),
		examples: []example{{"", form(`{"type":"string","enumNames":["A"]}`)}},
	},
	{
		name:    "a resource with a wrong text with a good blob, or vice versa",
		reason:  "The official client refuses it.",
		refused: byWire, at: regexp.MustCompile(`/resource/(text|blob)$`),
		holds: valueThat(func(v any) bool { _, ok := v.(string); return !ok }),
		examples: []example{
			{wire.MethodSampling, `{"role":"user","model":"m","content":{"type":"tool_result","toolUseId":"1","content":[{"type":"resource","resource":{"uri":"","text":1,"blob":""}}]}}`},
			{wire.MethodSampling, `{"role":"user","model":"m","content":{"type":"tool_result","toolUseId":"1","content":[{"type":"resource","resource":{"uri":"","text":"","blob":1}}]}}`},
		},
	},
	{
		name:    "tool uses without their results",
		reason:  "sampling.mdx: each tool use MUST be answered in the next message, which MUST hold nothing else. Providers refuse the conversation otherwise.",
		refused: byWire, at: regexp.MustCompile(`^/params/messages/\d+(/content)?$`),
		holds: func(_ *verdicts, document any, _ string) bool { return brokenRounds(document) },
		examples: []example{
			{"", `{"method":"sampling/createMessage","params":{"maxTokens":1,"messages":[{"role":"assistant","content":{"type":"tool_use","id":"1","name":"f","input":{}}}]}}`},
		},
	},
	{
		name:    "fractions in the answer to a form",
		reason:  "A form can ask for a number, but the schema takes only integers in its answer: an oversight.",
		refused: bySchema, repaired: func(document any) any { return wholeUnder(document, "content") },
		examples: []example{
			{wire.MethodElicit, `{"action":"accept","content":{"a":1.5}}`},
		},
	},
	{
		name:    "fractions and nulls in metadata",
		reason:  "metadata is a JSONObject, any object in the schema's source, but its JSON form has lost null and fractions from JSONValue: the same oversight.",
		refused: bySchema, repaired: func(document any) any {
			object, _ := document.(map[string]any)
			object = maps.Clone(object)
			object["params"] = wholeUnder(object["params"], "metadata")
			return object
		},
		examples: []example{
			{"", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"metadata":{"a":[null]}}}`},
			{"", `{"method":"sampling/createMessage","params":{"messages":[],"maxTokens":1,"metadata":{"a":{"b":0.5}}}}`},
		},
	},
}

func form(field string) string {
	return `{"method":"elicitation/create","params":{"message":"","requestedSchema":{"type":"object","properties":{"a":` + field + `}}}}`
}

func valueThat(holds func(any) bool) func(*verdicts, any, string) bool {
	return func(_ *verdicts, document any, pointer string) bool { return holds(at(document, pointer)) }
}

func stringThat(holds func(string) bool) func(*verdicts, any, string) bool {
	return valueThat(func(v any) bool {
		s, ok := v.(string)
		return ok && holds(s)
	})
}

func numberThat(holds func(*big.Rat) bool) func(*verdicts, any, string) bool {
	return valueThat(func(v any) bool {
		n, _ := v.(json.Number)
		r, ok := new(big.Rat).SetString(string(n))
		return ok && holds(r)
	})
}

var keywordPointer = regexp.MustCompile(`^(/params/requestedSchema/properties/[^/]*)(/items)?/([^/]+)`)

// noAlternativeTakes reports whether no alternative of a field's schema that
// knows the keyword at the pointer takes the value that it has.
func (v *verdicts) noAlternativeTakes(document any, pointer string) bool {
	match := keywordPointer.FindStringSubmatch(pointer)
	field, _ := at(document, match[1]).(map[string]any)
	value := at(document, match[0])
	for _, alternative := range v.core.def("PrimitiveSchemaDefinition")["anyOf"].([]any) {
		name := strings.TrimPrefix(alternative.(map[string]any)["$ref"].(string), "#/$defs/")
		path := "/properties/" + match[3]
		if match[2] != "" {
			path = "/properties/items" + path
		}
		if v.core.validator("core.schema.json#/$defs/"+name+"/properties/type")(encode(field["type"])) != nil || at(v.core.def(name), path) == nil {
			continue
		}
		if v.core.validator("core.schema.json#/$defs/"+name+path)(encode(value)) == nil {
			return false
		}
	}
	return true
}

// brokenRounds reports whether a sampling request breaks the rules on tool
// uses and results.
func brokenRounds(document any) bool {
	messages, _ := at(document, "/params/messages").([]any)
	open := ""
	for _, message := range messages {
		blocks, ok := at(message, "/content").([]any)
		if !ok {
			blocks = []any{at(message, "/content")}
		}
		var uses, results []string
		for _, block := range blocks {
			switch at(block, "/type") {
			case "tool_use":
				uses = append(uses, encode(at(block, "/id")))
			case "tool_result":
				results = append(results, encode(at(block, "/toolUseId")))
			}
		}
		slices.Sort(uses)
		slices.Sort(results)
		if strings.Join(results, " ") != open || len(results) > 0 && len(results) < len(blocks) {
			return true
		}
		open = strings.Join(uses, " ")
	}
	return open != ""
}

// wholeUnder returns an object whose member has 1 in place of every number
// and every null inside.
func wholeUnder(v any, name string) any {
	object, _ := v.(map[string]any)
	object = maps.Clone(object)
	if value, ok := object[name].(map[string]any); ok {
		object[name] = whole(value)
	}
	return object
}

func whole(v any) any {
	switch v := v.(type) {
	case json.Number, nil:
		return json.Number("1")
	case []any:
		list := []any{}
		for _, e := range v {
			list = append(list, whole(e))
		}
		return list
	case map[string]any:
		object := map[string]any{}
		for name, e := range v {
			object[name] = whole(e)
		}
		return object
	}
	return v
}

// at returns the value at a pointer, or nil.
func at(document any, pointer string) any {
	if pointer == "" {
		return document
	}
	for _, name := range strings.Split(pointer[1:], "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		switch v := document.(type) {
		case map[string]any:
			document = v[name]
		case []any:
			i, err := strconv.Atoi(name)
			if err != nil || i >= len(v) {
				return nil
			}
			document = v[i]
		default:
			return nil
		}
	}
	return document
}

// explain returns the difference that makes the two verdicts on a document
// differ, or nil.
func (v *verdicts) explain(document any, ours error, official func(string) error) *difference {
	for i := range differences {
		d := &differences[i]
		switch {
		case ours == nil && d.refused == bySchema:
			if official(encode(d.repaired(document))) == nil {
				return d
			}
		case ours != nil && d.refused == byWire:
			var shape *wire.ShapeError
			if errors.As(ours, &shape) && d.at.MatchString(shape.Pointer) && d.holds(v, document, shape.Pointer) {
				return d
			}
		}
	}
	return nil
}

// TestDifferences holds that each difference is one: its examples get the two
// verdicts, and no other difference explains them.
func TestDifferences(t *testing.T) {
	verdicts := newVerdicts(t)
	for i := range differences {
		d := &differences[i]
		t.Run(d.name, func(t *testing.T) {
			if d.reason == "" || len(d.examples) == 0 {
				t.Error("it has no reason or no example")
			}
			for _, e := range d.examples {
				validate, ours, official := verdicts.of(t, e.method, e.text)
				if (ours != nil) != (d.refused == byWire) || (official != nil) != (d.refused == bySchema) {
					t.Errorf("%s: wire says %v, the schema %v", e.text, ours, official)
				}
				if got := verdicts.explain(decode(e.text), ours, validate); got != d {
					t.Errorf("%s is explained by %+v", e.text, got)
				}
			}
		})
	}
}
