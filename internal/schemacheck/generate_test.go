package schemacheck

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"pgregory.net/rapid"
)

// A generator makes documents from a schema: each is valid, until it is
// broken. It knows the keywords that the official files use.
type generator struct {
	*schemas
	t *rapid.T
}

func (g generator) pick(n int, what string) int { return rapid.IntRange(0, n-1).Draw(g.t, what) }

func oneOf[T any](g generator, list []T) T { return list[g.pick(len(list), "choice")] }

// value makes a value of the schema. The name is that of the member which it
// becomes.
func (g generator) value(schema map[string]any, name string, depth int) any {
	if ref, ok := schema["$ref"].(string); ok {
		return g.value(g.def(ref[len("#/$defs/"):]), name, depth)
	}
	if list, ok := schema["anyOf"].([]any); ok {
		return g.value(oneOf(g, list).(map[string]any), name, depth)
	}
	if c, ok := schema["const"]; ok {
		return c
	}
	if list, ok := schema["enum"].([]any); ok {
		return oneOf(g, list)
	}
	kind := schema["type"]
	if list, ok := kind.([]any); ok {
		kind = oneOf(g, list)
	}
	switch kind {
	case "object":
		return g.object(schema, depth)
	case "array":
		list := []any{}
		for range g.pick(4, "length") {
			list = append(list, g.value(schema["items"].(map[string]any), name, depth+1))
		}
		return list
	case "string":
		if texts, ok := texts[name]; ok && g.pick(10, "other text") > 0 {
			return oneOf(g, texts)
		}
		return oneOf(g, []any{"", "a", "b", "é😀", "file:///a"})
	case "integer":
		return json.Number(oneOf(g, []string{"0", "1", "-1", "7", "1.0", "1e3", "9007199254740991", "9007199254740993", "-1e30"}))
	case "number":
		if _, bounded := schema["maximum"]; bounded {
			return json.Number(oneOf(g, []string{"0", "1", "0.5", "1e-3", "1.0"}))
		}
		return json.Number(oneOf(g, []string{"0", "-1", "0.5", "1e308", "1e400", "9007199254740993"}))
	case "boolean":
		return g.pick(2, "bool") == 1
	case nil:
		return g.junk()
	}
	panic(kind)
}

// object makes an object with the required members, some of the optional
// ones, and some that the schema does not name.
func (g generator) object(schema map[string]any, depth int) any {
	object := map[string]any{}
	required, _ := schema["required"].([]any)
	properties, _ := schema["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		if slices.Contains(required, any(name)) || g.pick(4+depth, "optional") < 2 {
			object[name] = g.value(properties[name].(map[string]any), name, depth+1)
		}
	}
	if more, ok := schema["additionalProperties"].(map[string]any); ok {
		for range g.pick(4, "members") {
			name := oneOf(g, []string{"a", "b", "", "c/d~e"})
			if _, taken := object[name]; !taken {
				object[name] = g.value(more, name, depth+1)
			}
		}
	} else if g.pick(8, "unknown member") == 0 {
		object["unknown"] = g.junk()
	}
	return object
}

// texts are what a string is worth making as, by the name of its member.
var texts = map[string][]any{
	"url":          {"https://example.com/", "http://localhost:80", "javascript:alert(1)", "https://u@example.com", "/x", "https://example.com/a b"},
	"uri":          {"file:///a", "file:///b", "file://", "file:///a%20b", "https://example.com", "FILE:///a"},
	"data":         {"aGk=", "aGk", "", "aG k=", "a", "_-8="},
	"blob":         {"aGk=", "", "a"},
	"lastModified": {"2026-07-28T12:00:00Z", "2026-07-28", "2026-02-30T12:00:00Z"},
	"id":           {"1", "2"},
	"toolUseId":    {"1", "2"},
	"required":     {"a", "b"},
	"enum":         {"a", "b"},
}

// junk makes a value that is unlikely to fit.
func (g generator) junk() any {
	return oneOf(g, []any{
		nil, true, false, "", "a", "none", "user", "text", "file:///a", "string", "object",
		json.Number("0"), json.Number("1.5"), json.Number("-1"), json.Number("2"), json.Number("9007199254740992"), json.Number("1e400"),
		[]any{}, []any{"a"}, []any{"a", "a"}, []any{nil}, []any{json.Number("1")}, map[string]any{}, map[string]any{"type": "text", "text": "a"}, map[string]any{"type": "object"}, map[string]any{"a": nil},
	})
}

// broken returns the document after a change to one of its places: another
// value, another member, or one less. The document itself stays as it is.
func (g generator) broken(document any) any {
	return g.change(document, g.pick(places(document), "place"))
}

// places counts the values in a value.
func places(v any) int {
	n := 1
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += places(e)
		}
	case []any:
		for _, e := range v {
			n += places(e)
		}
	}
	return n
}

// removed stands for a value that is to be left out.
type removed struct{}

// change copies a value with its i-th place changed.
func (g generator) change(v any, i int) any {
	if i == 0 {
		object, _ := v.(map[string]any)
		switch how := g.pick(5, "change"); {
		case how == 0:
			return removed{}
		case how == 1 && object != nil:
			object = maps.Clone(object)
			object[oneOf(g, keywords)] = g.junk()
			return object
		default:
			return g.junk()
		}
	}
	i--
	switch v := v.(type) {
	case map[string]any:
		object := maps.Clone(v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			n := places(v[name])
			if i >= 0 && i < n {
				if object[name] = g.change(v[name], i); object[name] == any(removed{}) {
					delete(object, name)
				}
			}
			i -= n
		}
		return object
	case []any:
		list := []any{}
		for _, e := range v {
			n := places(e)
			if i >= 0 && i < n {
				if e = g.change(e, i); e == any(removed{}) {
					i -= n
					continue
				}
			}
			i -= n
			list = append(list, e)
		}
		return list
	}
	panic("no such place: " + strconv.Itoa(i))
}

// keywords are member names that mean something in one place or other.
var keywords = []string{
	"_meta", "annotations", "enum", "enumNames", "oneOf", "anyOf", "default", "minLength", "maxItems", "minimum", "format", "title", "required", "$schema",
	"mode", "text", "blob", "size", "icons", "content", "structuredContent", "isError", "stopReason", "name", "tools", "metadata", "params", "type",
}
