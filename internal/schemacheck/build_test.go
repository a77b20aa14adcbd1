package schemacheck

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
	"github.com/santhosh-tekuri/jsonschema/v6"
	"pgregory.net/rapid"
)

// TestForms builds forms of any kind. A form that is built is valid, its
// schema is a JSON Schema, and FormRequest.Check says of an answer what that
// schema says.
func TestForms(t *testing.T) {
	v := newVerdicts(t)
	built, accepted, refused := 0, 0, 0
	rapid.Check(t, func(t *rapid.T) {
		g := generator{v.core, t}
		form := wire.FormRequest{Message: "Please fill in"}
		for range g.pick(4, "fields") {
			form.Fields = append(form.Fields, g.field())
		}
		request, err := form.JSON()
		if err != nil {
			return
		}
		built++
		text := request.String()
		if _, ours, official := v.of(t, "", text); ours != nil || official != nil {
			t.Fatalf("%s\nwire says %v, the schema %v", text, ours, official)
		}
		schema := g.compile(request.Get("params").Get("requestedSchema").String())
		content := map[string]any{}
		for _, f := range form.Fields {
			if g.pick(8, "leave out") > 0 {
				content[f.Name] = oneOf(g, []any{"a", "b", "ab", "éé", true, false, json.Number("0"), json.Number("2"), json.Number("1.5"), json.Number("2.0"), []any{"a"}, []any{"b", "a"}, []any{}, []any{"c"}, json.Number("9007199254740993")})
			}
		}
		answer := wire.MustParse(encode(map[string]any{"action": "accept", "content": content}))
		ours, official := form.Check(wire.ElicitResult(answer)), schema.Validate(any(content))
		if (ours == nil) != (official == nil) {
			t.Fatalf("%s\n%s\nCheck says %v, the schema %v", text, answer, ours, official)
		}
		if ours == nil {
			accepted++
		} else {
			refused++
		}
	})
	t.Logf("%d built, %d answers accepted, %d refused", built, accepted, refused)
	if min(built, accepted, refused) < 50 {
		t.Error("the generator is lopsided")
	}
}

func (g generator) compile(text string) *jsonschema.Schema {
	c := jsonschema.NewCompiler()
	if err := c.AddResource("form.json", decode(text)); err != nil {
		g.t.Fatal(err)
	}
	schema, err := c.Compile("form.json")
	if err != nil {
		g.t.Fatalf("%s\n%v", text, err)
	}
	return schema
}

// field makes a field, which need not make sense.
func (g generator) field() wire.Field {
	f := wire.Field{
		Name:     oneOf(g, []string{"a", "b", "c/d~e", "é", "$ref", "type", "__proto__"}),
		Title:    oneOf(g, []string{"", "T"}),
		Required: g.pick(2, "required") == 1,
	}
	options := oneOf(g, [][]wire.Option{wire.Options("a"), wire.Options("a", "b"), {{Value: "a", Title: "A"}, {Value: "b"}}, wire.Options("a", "b"), nil, wire.Options("a", "a")})
	switch g.pick(7, "kind") {
	case 0:
		f.Schema = wire.StringSchema{Length: g.bounds(), Default: oneOf(g, []string{"", "", "a", "abc"})}
	case 1:
		f.Schema = wire.NumberSchema{Range: g.bounds(), Default: oneOf(g, []*float64{nil, ptr(0.0), ptr(1.5), ptr(1e300), ptr(math.Inf(1))})}
	case 2:
		f.Schema = wire.IntegerSchema{Range: g.bounds(), Default: oneOf(g, []*int64{nil, ptr(int64(0)), ptr(int64(-7)), ptr(int64(1 << 60))})}
	case 3:
		f.Schema = wire.BooleanSchema{Default: g.pick(2, "default") == 1}
	case 4:
		f.Schema = wire.SingleSelectSchema{Options: options, Default: oneOf(g, []string{"", "a", "c"})}
	case 5:
		f.Schema = wire.MultiSelectSchema{Options: options, Items: g.bounds(), Default: oneOf(g, [][]string{nil, {"a"}, {"b", "a"}, {"c"}})}
	}
	return f
}

func (g generator) bounds() wire.Range {
	a, b := oneOf(g, []float64{0, 1, 2, -1, 1.5, 1e300}), oneOf(g, []float64{2, 1, 3, 9007199254740991, math.NaN()})
	return oneOf(g, []wire.Range{{}, {}, wire.AtLeast(a), wire.AtMost(b), wire.Between(a, b)})
}

func ptr[T any](v T) *T { return &v }
