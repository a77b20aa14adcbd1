package wire_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func ptr[T any](v T) *T { return &v }

func TestFormRequest(t *testing.T) {
	titled := []wire.Option{{"pdf", "PDF"}, {"html", ""}}
	for _, test := range []struct {
		name  string
		field wire.Field
		want  string // the field's schema
	}{
		{"a name alone", wire.Field{}, `{"type":"string"}`},
		{"title and description", wire.Field{Title: "<T>", Description: "D\n"}, `{"type":"string","title":"<T>","description":"D\n"}`},
		{"a string", wire.Field{Schema: wire.StringSchema{Length: wire.Between(3, 20), Format: wire.FormatEmail, Default: "a@b.example"}}, `{"type":"string","minLength":3,"maxLength":20,"format":"email","default":"a@b.example"}`},
		{"a string of any length", wire.Field{Schema: wire.StringSchema{Length: wire.AtLeast(0)}}, `{"type":"string","minLength":0}`},
		{"a number", wire.Field{Schema: wire.NumberSchema{Range: wire.Between(-0.5, 1e21), Default: ptr(0.25)}}, `{"type":"number","minimum":-0.5,"maximum":1e+21,"default":0.25}`},
		{"a number that is zero", wire.Field{Schema: wire.NumberSchema{Range: wire.AtMost(0), Default: ptr(math.Copysign(0, -1))}}, `{"type":"number","maximum":0,"default":0}`},
		{"an integer", wire.Field{Schema: wire.IntegerSchema{Range: wire.Between(1, 9007199254740991), Default: ptr(int64(9007199254740991))}}, `{"type":"integer","minimum":1,"maximum":9007199254740991,"default":9007199254740991}`},
		{"an integer that is zero", wire.Field{Schema: wire.IntegerSchema{Default: ptr(int64(0))}}, `{"type":"integer","default":0}`},
		{"a boolean", wire.Field{Schema: wire.BooleanSchema{}}, `{"type":"boolean"}`},
		{"a boolean that is set", wire.Field{Schema: wire.BooleanSchema{Default: true}}, `{"type":"boolean","default":true}`},
		{"one of some", wire.Field{Schema: wire.SingleSelectSchema{Options: wire.Options("a", "b"), Default: "b"}}, `{"type":"string","enum":["a","b"],"default":"b"}`},
		{"one of some with titles", wire.Field{Schema: wire.SingleSelectSchema{Options: titled}}, `{"type":"string","oneOf":[{"const":"pdf","title":"PDF"},{"const":"html","title":"html"}]}`},
		{"some of some", wire.Field{Schema: wire.MultiSelectSchema{Options: wire.Options("a", "b"), Items: wire.Between(0, 2), Default: []string{"b", "a"}}}, `{"type":"array","minItems":0,"maxItems":2,"items":{"type":"string","enum":["a","b"]},"default":["b","a"]}`},
		{"some of some with titles", wire.Field{Schema: wire.MultiSelectSchema{Options: titled}}, `{"type":"array","items":{"anyOf":[{"const":"pdf","title":"PDF"},{"const":"html","title":"html"}]}}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.field.Name = "f"
			got, err := wire.FormRequest{Message: "M", Fields: []wire.Field{test.field}}.JSON()
			if err != nil {
				t.Fatal(err)
			}
			if want := `{"method":"elicitation/create","params":{"mode":"form","message":"M","requestedSchema":{"type":"object","properties":{"f":` + test.want + `}}}}`; got.String() != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}

func TestFormRequestKeepsTheOrderOfItsFields(t *testing.T) {
	got, err := wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "z", Required: true}, {Name: "a"}, {Name: "é/\"", Required: true}}}.JSON()
	if err != nil {
		t.Fatal(err)
	}
	if want := `{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"},"é/\"":{"type":"string"}},"required":["z","é/\""]}`; got.Get("params").Get("requestedSchema").String() != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, err := (wire.FormRequest{Message: "Ready?"}).JSON(); err != nil || got.Get("params").Get("requestedSchema").String() != `{"type":"object","properties":{}}` {
		t.Errorf("a form without fields = %s, %v", got, err)
	}
}

func TestFormRequestRefuses(t *testing.T) {
	field := func(s wire.FieldSchema) wire.FormRequest {
		return wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "age", Schema: s}}}
	}
	for _, test := range []struct {
		name string
		form wire.FormRequest
		want string
	}{
		{"no message", wire.FormRequest{Fields: []wire.Field{{Name: "a"}}}, "the message is empty"},
		{"no name", wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "a"}, {Title: "T"}}}, "field 1: the name is empty"},
		{"a name that is no text", wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "\xff"}}}, "field 0: the name is empty or no text"},
		{"a name twice", wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "a"}, {Name: "a"}}}, `two fields are named "a"`},
		{"an unknown format", field(wire.StringSchema{Format: "phone"}), "format"},
		{"a negative length", field(wire.StringSchema{Length: wire.AtLeast(-1)}), "negative"},
		{"a fractional length", field(wire.StringSchema{Length: wire.AtMost(1.5)}), "whole"},
		{"an empty range", field(wire.StringSchema{Length: wire.Between(5, 4)}), "above"},
		{"a default that is too short", field(wire.StringSchema{Length: wire.AtLeast(5), Default: "four"}), "default"},
		{"a default in another format", field(wire.StringSchema{Format: wire.FormatDate, Default: "2026-02-30"}), "default"},
		{"a bound that is no number", field(wire.NumberSchema{Range: wire.AtLeast(math.NaN())}), "finite"},
		{"an infinite bound", field(wire.NumberSchema{Range: wire.AtMost(math.Inf(1))}), "finite"},
		{"an infinite default", field(wire.NumberSchema{Default: ptr(math.Inf(-1))}), "finite"},
		{"a default out of range", field(wire.NumberSchema{Range: wire.Between(0, 1), Default: ptr(1.5)}), "default is not a number from 0 to 1"},
		{"a fractional bound", field(wire.IntegerSchema{Range: wire.AtMost(1.5)}), "whole"},
		{"a bound too big", field(wire.IntegerSchema{Range: wire.AtMost(1 << 53)}), "2^53-1"},
		{"an integer default out of range", field(wire.IntegerSchema{Range: wire.AtLeast(1), Default: ptr(int64(0))}), "default is not an integer of at least 1"},
		{"an integer default too big", field(wire.IntegerSchema{Default: ptr(int64(1 << 53))}), "2^53-1"},
		{"no options", field(wire.SingleSelectSchema{}), "no options"},
		{"an option twice", field(wire.SingleSelectSchema{Options: wire.Options("a", "b", "a")}), "option 2"},
		{"an option that is no text", field(wire.SingleSelectSchema{Options: wire.Options("a\xff")}), "option 0"},
		{"a default that is no option", field(wire.SingleSelectSchema{Options: wire.Options("a"), Default: "b"}), "default"},
		{"no options to choose from", field(wire.MultiSelectSchema{}), "no options"},
		{"too few options", field(wire.MultiSelectSchema{Options: wire.Options("a"), Items: wire.AtLeast(2)}), "fewer"},
		{"defaults that are no options", field(wire.MultiSelectSchema{Options: wire.Options("a"), Default: []string{"a", "b"}}), "default"},
		{"too many defaults", field(wire.MultiSelectSchema{Options: wire.Options("a", "b"), Items: wire.AtMost(1), Default: []string{"a", "b"}}), "default"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := test.form.JSON()
			if err == nil || !strings.HasPrefix(err.Error(), "wire: form: ") || !strings.Contains(err.Error(), test.want) || !got.IsZero() {
				t.Errorf("got %s, %v, want an error with %q", got, err, test.want)
			}
			if test.form.Message != "" && test.form.Fields[0].Schema != nil && !strings.Contains(fmt.Sprint(err), `"age"`) {
				t.Errorf("%v does not name the field", err)
			}
		})
	}
}

func TestFormCheck(t *testing.T) {
	form := wire.FormRequest{Message: "M", Fields: []wire.Field{
		{Name: "text", Schema: wire.StringSchema{Length: wire.Between(2, 3)}},
		{Name: "mail", Schema: wire.StringSchema{Format: wire.FormatEmail}},
		{Name: "uri", Schema: wire.StringSchema{Format: wire.FormatURI}},
		{Name: "date", Schema: wire.StringSchema{Format: wire.FormatDate}},
		{Name: "time", Schema: wire.StringSchema{Format: wire.FormatDateTime}},
		{Name: "number", Schema: wire.NumberSchema{Range: wire.AtMost(1.5)}},
		{Name: "integer", Schema: wire.IntegerSchema{Range: wire.AtLeast(-1)}},
		{Name: "bool", Schema: wire.BooleanSchema{}},
		{Name: "one", Schema: wire.SingleSelectSchema{Options: wire.Options("a", "b")}},
		{Name: "many", Schema: wire.MultiSelectSchema{Options: wire.Options("a", "b"), Items: wire.Between(1, 2)}},
		{Name: "plain", Required: true},
	}}
	checkFields(t, `{"action":"accept","content":{"plain":""}}`, func(j wire.JSON) error { return form.Check(wire.ElicitResult(j)) }, []fieldTest{
		{at: "/action", either: true, accept: []string{`"decline"`, `"cancel"`}},
		{at: "/content", either: true, accept: []string{`{"plain":"","unknown":{}}`}, inside: map[string]string{`{}`: "/plain"}},
		{at: "/content/plain", required: true, accept: []string{`""`, `"x"`}, refuse: []string{`1`, `true`, `["x"]`, `"\ud800"`}},
		{at: "/content/text", accept: []string{`"éé"`, `"😀😀😀"`}, refuse: []string{`""`, `"a"`, `"aaaa"`, `1`}},
		{at: "/content/mail", accept: []string{`"a@b"`, `"é+x@example.com"`}, refuse: []string{`""`, `"a"`, `"@b"`, `"a@"`, `"a b@c"`}},
		{at: "/content/uri", accept: []string{`"https://example.com"`, `"urn:a"`}, refuse: []string{`""`, `"a"`, `":a"`, `"a:"`, `"https://a b"`}},
		{at: "/content/date", accept: []string{`"2024-02-29"`}, refuse: []string{`""`, `"2025-02-29"`, `"2026-1-1"`, `"01.01.2026"`}},
		{at: "/content/time", accept: []string{`"2026-01-01T00:00:00Z"`}, refuse: []string{`""`, `"2026-01-01"`, `"2026-01-01T00:00:00"`}},
		{at: "/content/number", accept: []string{`1.5`, `-1e300`, `0`}, refuse: []string{`1.6`, `"1"`, `1e400`, `true`}},
		{at: "/content/integer", accept: []string{`-1`, `1e3`, `2.0`, `9007199254740993`}, refuse: []string{`-2`, `1.5`, `"1"`, `1e300`}},
		{at: "/content/bool", accept: []string{`true`, `false`}, refuse: []string{`"true"`, `1`}},
		{at: "/content/one", accept: []string{`"a"`, `"\u0062"`}, refuse: []string{`"c"`, `""`, `["a"]`, `1`}},
		{at: "/content/many", accept: []string{`["a"]`, `["a","b"]`}, refuse: []string{`[]`, `["a","b","a"]`, `"a"`}, inside: map[string]string{`["a","c"]`: "/1", `[1]`: "/0"}},
	})
	var shape *wire.ShapeError
	if err := form.Check(wire.ElicitResult(wire.MustParse(`{"action":"accept"}`))); !errors.As(err, &shape) || shape.Pointer != "/content/plain" {
		t.Errorf("an answer without content = %v", err)
	}
	odd := wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "\ufffd", Required: true}}}
	if err := odd.Check(wire.ElicitResult(wire.MustParse(`{"action":"accept","content":{"\ud800":"x"}}`))); err == nil {
		t.Error("a name that is no text stands for another")
	}
	wide := wire.FormRequest{Message: "M"}
	content := `{"action":"accept","content":{`
	for i := range 100 {
		wide.Fields = append(wide.Fields, wire.Field{Name: fmt.Sprint(i), Required: true})
		content += fmt.Sprintf(`%q:"",`, fmt.Sprint(i))
	}
	if err := wide.Check(wire.ElicitResult(wire.MustParse(strings.TrimSuffix(content, ",") + "}}"))); err != nil {
		t.Errorf("a form of 100 fields: %v", err)
	}
}

// TestFormCheckErrors holds that an error tells a model or a user what the
// answer may be.
func TestFormCheckErrors(t *testing.T) {
	var many []wire.Option
	for i := range 1000 {
		many = append(many, wire.Option{Value: fmt.Sprintf("value-%04d", i), Title: "T"})
	}
	long := wire.Options(strings.Repeat("x", 1<<20), strings.Repeat("y", 1<<20))
	for _, test := range []struct {
		name   string
		schema wire.FieldSchema
		answer string
		want   string
	}{
		{"an option", wire.SingleSelectSchema{Options: wire.Options("pdf", "web page")}, `"doc"`, `at "/content/f": expected one of "pdf", "web page"`},
		{"an option by its title", wire.SingleSelectSchema{Options: []wire.Option{{"pdf", "PDF document"}}}, `"PDF document"`, `at "/content/f": expected one of "pdf"`},
		{"one of several options", wire.MultiSelectSchema{Options: wire.Options("a", "b\"")}, `["a","c"]`, `at "/content/f/1": expected one of "a", "b\""`},
		{"one of many options", wire.SingleSelectSchema{Options: many}, `1`, `at "/content/f": expected one of "value-0000", `},
		{"one of long options", wire.SingleSelectSchema{Options: long}, `1`, `at "/content/f": expected one of "` + strings.Repeat("x", 64) + `", "` + strings.Repeat("y", 64) + `"`},
		{"no options", wire.SingleSelectSchema{}, `1`, `at "/content/f": expected an option, but there are none`},
		{"yes or no", wire.BooleanSchema{}, `"yes"`, `at "/content/f": expected true or false`},
		{"a text", nil, `1`, `at "/content/f": expected a string`},
		{"a text of some length", wire.StringSchema{Length: wire.AtMost(3)}, `"hunter2"`, `at "/content/f": expected a string with a length of at most 3`},
		{"a date", wire.StringSchema{Format: wire.FormatDate}, `"hunter2"`, `at "/content/f": expected a string in the format date, such as 2026-07-28`},
		{"a time", wire.StringSchema{Format: wire.FormatDateTime}, `"hunter2"`, `at "/content/f": expected a string in the format date-time, such as 2026-07-28T12:00:00Z`},
		{"an address", wire.StringSchema{Format: wire.FormatEmail}, `"hunter2"`, `at "/content/f": expected a string in the format email`},
	} {
		t.Run(test.name, func(t *testing.T) {
			form := wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "f", Required: true, Schema: test.schema}}}
			for _, content := range []string{`{"f":` + test.answer + `}`, `{}`} {
				err := form.Check(wire.ElicitResult(wire.MustParse(`{"action":"accept","content":` + content + `}`)))
				if err == nil {
					t.Fatalf("%s is accepted", content)
				}
				if len(err.Error()) > 600 || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s: %v", content, err)
				}
				if content != `{}` && !strings.HasPrefix(err.Error(), test.want) {
					t.Errorf("%s:\ngot  %v\nwant %s", content, err, test.want)
				}
			}
		})
	}
	form := wire.FormRequest{Message: "M", Fields: []wire.Field{{Name: "f", Schema: wire.SingleSelectSchema{Options: many}}}}
	if err := form.Check(wire.ElicitResult(wire.MustParse(`{"action":"accept","content":{"f":1}}`))); !strings.HasSuffix(err.Error(), `"value-0027" and 972 more`) {
		t.Errorf("got %v", err)
	}
}

func TestRangeString(t *testing.T) {
	for want, r := range map[string]wire.Range{"of any size": {}, "of at least 1": wire.AtLeast(1), "of at most 0": wire.AtMost(0), "from -0.5 to 1000000": wire.Between(-0.5, 1e6)} {
		if got := r.String(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
