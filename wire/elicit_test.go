package wire_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func TestURLRequest(t *testing.T) {
	got, err := wire.URLRequest{Message: "Sign in", URL: "https://example.com/?a=1&b=2"}.JSON()
	if want := `{"method":"elicitation/create","params":{"mode":"url","message":"Sign in","url":"https://example.com/?a=1&b=2"}}`; err != nil || got.String() != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
	for _, r := range []wire.URLRequest{{URL: "https://example.com/"}, {Message: "M"}, {Message: "M", URL: "javascript:alert(1)"}, {Message: "M", URL: "https://user:hunter2@example.com/"}, {Message: "M", URL: "https://example.com/\xff"}} {
		if got, err := r.JSON(); err == nil || !got.IsZero() || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%+v = %s, %v", r, got, err)
		}
	}
}

func TestElicitResult(t *testing.T) {
	const content = `{"text":"a\n","int":9007199254740993,"float":1.5,"exp":1e3,"huge":1e400,"yes":true,"no":false,"list":["a","b"],"none":[],"lone":"\ud800","lones":["a","\ud800"]}`
	r := wire.ElicitResult(wire.MustParse(`{"action":"accept","content":` + content + `}`))
	if r.Action() != wire.ActionAccept || !r.Accepted() || r.Content().String() != content {
		t.Errorf("got %v, %v, %v", r.Action(), r.Accepted(), r.Content())
	}
	for name, want := range map[string]string{"text": "a\n"} {
		if got, ok := r.Text(name); got != want || !ok {
			t.Errorf("Text(%q) = %q, %v", name, got, ok)
		}
	}
	for name, want := range map[string]int64{"int": 9007199254740993, "exp": 1000} {
		if got, ok := r.Int(name); got != want || !ok {
			t.Errorf("Int(%q) = %d, %v", name, got, ok)
		}
	}
	for name, want := range map[string]float64{"float": 1.5, "exp": 1000, "int": 9007199254740992} {
		if got, ok := r.Float(name); got != want || !ok {
			t.Errorf("Float(%q) = %v, %v", name, got, ok)
		}
	}
	for name, want := range map[string]bool{"yes": true, "no": false} {
		if got, ok := r.Bool(name); got != want || !ok {
			t.Errorf("Bool(%q) = %v, %v", name, got, ok)
		}
	}
	for name, want := range map[string][]string{"list": {"a", "b"}, "none": {}} {
		if got, ok := r.Texts(name); !slices.Equal(got, want) || got == nil || !ok {
			t.Errorf("Texts(%q) = %q, %v", name, got, ok)
		}
	}

	types := map[string]string{"text": "text", "int": "int float", "float": "float", "exp": "int float", "yes": "bool", "no": "bool", "list": "list", "none": "list"}
	for _, name := range []string{"text", "int", "float", "exp", "huge", "yes", "no", "list", "none", "lone", "lones", "absent", "TEXT"} {
		if got := typesOf(r, name); got != types[name] {
			t.Errorf("%q has the types %q, want %q", name, got, types[name])
		}
	}
	for _, answer := range []wire.JSON{
		wire.MustParse(`{"action":"decline","content":` + content + `}`), wire.MustParse(`{"action":"cancel","content":` + content + `}`), wire.MustParse(`{"action":"accept"}`), wire.MustParse(`[]`), {},
	} {
		r := wire.ElicitResult(answer)
		for name := range types {
			if got := typesOf(r, name); got != "" || !r.Content().IsZero() {
				t.Errorf("%v has a field %q of the types %q", answer, name, got)
			}
		}
	}
}

// typesOf names the methods that return the field.
func typesOf(r wire.ElicitResult, name string) string {
	var types []string
	if _, ok := r.Text(name); ok {
		types = append(types, "text")
	}
	if _, ok := r.Int(name); ok {
		types = append(types, "int")
	}
	if _, ok := r.Float(name); ok {
		types = append(types, "float")
	}
	if _, ok := r.Bool(name); ok {
		types = append(types, "bool")
	}
	if _, ok := r.Texts(name); ok {
		types = append(types, "list")
	}
	return strings.Join(types, " ")
}
