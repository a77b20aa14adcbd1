// Odd tags and fields that nobody uses are what is tested here.
//
//lint:file-ignore SA5008,U1000 see above

package wire_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func TestDecode(t *testing.T) {
	var v struct {
		N any
		J wire.JSON
	}
	if err := wire.MustParse(`{"N":9007199254740993,"J":[1e400]}`).Decode(&v); err != nil {
		t.Fatal(err)
	}
	if v.N != json.Number("9007199254740993") || v.J.String() != `[1e400]` {
		t.Errorf("Decode = %v, %v", v.N, v.J)
	}
	for name, v := range map[string]any{
		`{"A":424242}`:          new(struct{ A bool }),
		`{"A":"424242"}`:        new(struct{ A bool }),
		`{"A":{"424242":true}}`: new(struct{ A map[string]int }),
		`"424242"`:              new(time.Time),
		`{"A":"424242x"}`: new(struct {
			A int `json:",string"`
		}),
		`{"A":["424242","4242"]}`: new(struct{ A []time.Time }),
	} {
		if err := wire.MustParse(name).Decode(v); err == nil || strings.Contains(err.Error(), "4242") {
			t.Errorf("Decode of %s into %T = %v, want an error that does not quote it", name, v, err)
		}
	}
	var misuse *json.InvalidUnmarshalError
	if err := wire.MustParse(`1`).Decode(0); !errors.As(err, &misuse) {
		t.Errorf("Decode into a value that is not a pointer = %v", err)
	}
}

type (
	order struct {
		Amount int `json:"amount"`
		Note   string
	}
	inner struct {
		Amount int `json:"amount"`
		Deep   int
	}
	Outer struct {
		*Inner2
		inner
		Amount string `json:"amount,omitempty"` // hides the inner one
	}
	Inner2 struct{ Second int }
	both   struct {
		Lower int `json:"a"`
		Upper int `json:"A"`
	}
	tags struct {
		Hidden  int `json:"-"`
		Dash    int `json:"-,"`
		Quoted  int `json:"quoted,string"`
		private int
		Kelvin  int `json:"kelvin"`
		Size    int `json:"size"`
		Umlaut  int `json:"größe"`
	}
	tree struct {
		Name     string            `json:"name"`
		Children []*tree           `json:"children"`
		ByName   map[string]tree   `json:"byName"`
		Pair     [2]tree2          `json:"pair"`
		Any      any               `json:"any"`
		Anon     []struct{ X int } `json:"anon"`
	}
	tree2  struct{ T *tree }
	self   struct{ Got string }
	text   struct{ Got string }
	Left   struct{ X, L int }
	Right  struct{ X, R int }
	Left2  struct{ V order }
	Right2 struct{ V order }
	Map2   struct {
		W map[string]int `json:"V"`
	}
	Holder1 struct{ Left2 }
	Holder2 struct{ Left2 }
	twice   struct { // X is ambiguous, so neither is seen
		Left
		Right
	}
)

func (s *self) UnmarshalJSON(text []byte) error { s.Got = string(text); return nil }
func (t *text) UnmarshalText(text []byte) error { t.Got = string(text); return nil }

// TestDecodeMatchesNamesExactly decodes each text into a new value of the
// type and prints it as JSON.
func TestDecodeMatchesNamesExactly(t *testing.T) {
	for _, test := range []struct {
		name string
		into any // a pointer to the type
		text string
		want string
	}{
		{"an exact name", new(order), `{"amount":1,"Note":"n"}`, `{"amount":1,"Note":"n"}`},
		{"other letters", new(order), `{"AMOUNT":1,"note":"n"}`, `{"amount":0,"Note":""}`},
		{"other letters first", new(order), `{"AMOUNT":1,"Note":"n"}`, `{"amount":0,"Note":"n"}`},
		{"other letters last", new(order), `{"Note":"n","AMOUNT":1}`, `{"amount":0,"Note":"n"}`},
		{"other letters in the middle", new(order), `{"x":[1,{"y":"}"}],"AMOUNT":{"z":[1]},"Note":"n","y":2}`, `{"amount":0,"Note":"n"}`},
		{"other letters with a value that does not fit", new(order), `{"Amount":"many","amount_":1}`, `{"amount":0,"Note":""}`},
		{"an escaped name", new(order), `{"\u0061mount":1}`, `{"amount":1,"Note":""}`},
		{"an escaped name in other letters", new(order), `{"\u0041mount":1}`, `{"amount":0,"Note":""}`},
		{"the name of the Go field", new(order), `{"Amount":1}`, `{"amount":0,"Note":""}`},
		{"a name that is not text", new(order), `{"\ud800":1,"\udfff":2,"amount":3}`, `{"amount":3,"Note":""}`},
		{"no member", new(order), `{}`, `{"amount":0,"Note":""}`},
		{"null", new(order), `null`, `{"amount":0,"Note":""}`},
		{"fields that differ only in case", new(both), `{"A":1,"a":2}`, `{"a":2,"A":1}`},
		{"one of the fields that differ only in case", new(both), `{"A":1}`, `{"a":0,"A":1}`},
		{"promoted fields", new(Outer), `{"amount":"a","Deep":1,"Second":2}`, `{"Second":2,"Deep":1,"amount":"a"}`},
		{"promoted fields in other letters", new(Outer), `{"Amount":"a","deep":1,"second":2}`, `{"Deep":0}`},
		{"a field that two embedded structs have", new(twice), `{"X":1,"L":2,"R":3}`, `{"L":2,"R":3}`},
		{"a field that two embedded structs have, with a struct in it", new(struct {
			Left2
			Right2
		}), `{"V":{"amount":1,"AMOUNT":2}}`, `{}`},
		{"a field with a tag and one without", new(struct {
			Left2
			Map2
		}), `{"V":{"amount":1,"AMOUNT":2}}`, `{"V":{"AMOUNT":2,"amount":1}}`},
		{"a field above one with a tag", new(struct {
			Map2
			V order
		}), `{"V":{"amount":1,"Note":"n"}}`, `{"V":{"amount":1,"Note":"n"}}`},
		{"a field above one with a tag, in other letters", new(struct {
			Map2
			V order
		}), `{"V":{"AMOUNT":1}}`, `{"V":{"amount":0,"Note":""}}`},
		{"a struct that is embedded twice", new(struct {
			Holder1
			Holder2
		}), `{"V":{"amount":1,"AMOUNT":2}}`, `{}`},
		{"a field that is left out", new(struct {
			V order `json:"-"`
		}), `{"V":{"amount":1,"AMOUNT":2},"-":{"amount":1,"AMOUNT":2}}`, `{}`},
		{"tags", new(tags), `{"Hidden":1,"-":2,"quoted":"3","private":5}`, `{"-":2,"quoted":"3","kelvin":0,"size":0,"größe":0}`},
		{"tags in other letters", new(tags), `{"hidden":1,"QUOTED":"3","\u212aelvin":5,"\u017fize":6,"GRÖSSE":7,"GRÖßE":8}`, `{"-":0,"quoted":"0","kelvin":0,"size":0,"größe":0}`},
		{"a recursive type", new(tree), `{"name":"a","children":[{"name":"b","NAME_":1},{"Name":"c"},null],"byName":{"k":{"name":"d"},"K":{"NAME":"e"}},"pair":[{"T":{"name":"f"}},{"t":{"name":"g"}},{"T":{},"t":{}}]}`,
			`{"name":"a","children":[{"name":"b","children":null,"byName":null,"pair":[{"T":null},{"T":null}],"any":null,"anon":null},{"name":"","children":null,"byName":null,"pair":[{"T":null},{"T":null}],"any":null,"anon":null},null],"byName":{"K":{"name":"","children":null,"byName":null,"pair":[{"T":null},{"T":null}],"any":null,"anon":null},"k":{"name":"d","children":null,"byName":null,"pair":[{"T":null},{"T":null}],"any":null,"anon":null}},"pair":[{"T":{"name":"f","children":null,"byName":null,"pair":[{"T":null},{"T":null}],"any":null,"anon":null}},{"T":null}],"any":null,"anon":null}`},
		{"a struct without a name", new([]struct{ X int }), `[{"X":1},{"x":2},{"x":3,"Y":4}]`, `[{"X":1},{"X":0},{"X":0}]`},
		{"an array that is too long", new([1]order), `[{"amount":1},{"amount":1,"AMOUNT":2}]`, `[{"amount":1,"Note":""}]`},
		{"a map", new(map[string]int), `{"a":1,"A":2}`, `{"A":2,"a":1}`},
		{"a map of structs", new(map[string]*order), `{"a":{"amount":1},"A":{"Amount":2}}`, `{"A":{"amount":0,"Note":""},"a":{"amount":1,"Note":""}}`},
		{"an interface", new(any), `{"a":{"b":9007199254740993},"A":[{"b":1,"B":2}]}`, `{"A":[{"B":2,"b":1}],"a":{"b":9007199254740993}}`},
		{"a value", new(wire.JSON), `{"a":1,"A":2}`, `{"a":1,"A":2}`},
		{"a type that decodes itself", new(struct{ S self }), `{"S":{"got":1,"GOT":2}}`, `{"S":{"Got":"{\"got\":1,\"GOT\":2}"}}`},
		{"a type that decodes text", new(map[string]*text), `{"a":"x","A":"y"}`, `{"A":{"Got":"y"},"a":{"Got":"x"}}`},
		{"a time and raw texts", new(struct {
			T time.Time
			R json.RawMessage
			J wire.JSON
			N json.Number
		}), `{"T":"2026-07-28T00:00:00Z","R":{"a":1,"A":2},"J":{"a":1,"A":2},"N":1e400,"x":1}`, `{"T":"2026-07-28T00:00:00Z","R":{"a":1,"A":2},"J":{"a":1,"A":2},"N":1e400}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if err := wire.MustParse(test.text).Decode(test.into); err != nil {
				t.Fatal(err)
			}
			if got, err := wire.Marshal(test.into); err != nil || got.String() != test.want {
				t.Errorf("got  %v, %v\nwant %s", got, err, test.want)
			}
		})
	}
}

// encoding/json decodes into what an interface points to.
func TestDecodeMatchesNamesExactlyBehindInterfaces(t *testing.T) {
	const text = `{"amount":1,"Amount":2}`
	for name, into := range map[string]func(*order) any{
		"an interface":             func(o *order) any { v := any(o); return &v },
		"an interface in another":  func(o *order) any { v := any(o); w := any(&v); return &w },
		"a field":                  func(o *order) any { return &struct{ V any }{o} },
		"a field of an embedded":   func(o *order) any { return &struct{ *Holder }{&Holder{o}} },
		"an element":               func(o *order) any { return &[]any{o} },
		"an element of an array":   func(o *order) any { return &[1]any{o} },
		"an element beyond length": func(o *order) any { s := []any{o}[:0]; return &s },
		"an error":                 func(o *order) any { return &struct{ V error }{failure{o}.pointer()} },
	} {
		t.Run(name, func(t *testing.T) {
			o := new(order)
			v := into(o)
			text := text
			switch reflect.TypeOf(v).Elem().Kind() {
			case reflect.Struct:
				text = `{"V":` + text + `}`
			case reflect.Slice, reflect.Array:
				text = `[` + text + `]`
			}
			if err := wire.MustParse(text).Decode(v); err == nil {
				t.Errorf("%s is accepted", text)
			}
			text = strings.Replace(text, `"amount":1,`, "", 1)
			if err := wire.MustParse(text).Decode(v); err != nil || o.Amount != 0 {
				t.Errorf("%s = %v, %v", text, o, err)
			}
			text = strings.Replace(text, `"Amount"`, `"amount"`, 1)
			if err := wire.MustParse(text).Decode(v); err != nil || o.Amount != 2 {
				t.Errorf("%s = %v, %v", text, o, err)
			}
		})
	}
}

// TestDecodeAsksEncodingJSONForNames holds for tags that the versions of
// encoding/json read in different ways.
func TestDecodeAsksEncodingJSONForNames(t *testing.T) {
	type embedded struct{ Inner int }
	for _, into := range []func() any{
		func() any {
			return new(struct {
				Field int `json:"qu\"ote"`
			})
		},
		func() any {
			return new(struct {
				Field int `json:"key🔑"`
			})
		},
		func() any {
			return new(struct {
				Field int `json:"e\u0301"`
			})
		},
		func() any {
			return new(struct {
				Field embedded `json:",embed"`
			})
		},
	} {
		sample, err := wire.Marshal(into())
		if err != nil {
			t.Fatal(err)
		}
		exact := strings.Replace(sample.String(), "0", "1", 1)
		v := into()
		if err := wire.MustParse(exact).Decode(v); err != nil || reflect.ValueOf(v).Elem().IsZero() {
			t.Errorf("%s into %T = %+v, %v", exact, v, v, err)
		}
		for _, other := range []string{strings.ToLower(exact), strings.ToUpper(exact)} {
			v := into()
			if err := wire.MustParse(other).Decode(v); other != exact && (err != nil || !reflect.ValueOf(v).Elem().IsZero()) {
				t.Errorf("%s into %T = %+v, %v", other, v, v, err)
			}
		}
	}
}

type Holder struct{ V any }

type failure struct{ *order }

func (f failure) pointer() error { return &f }
func (f *failure) Error() string { return "" }

func TestDecodeRefusesNamesThatDifferOnlyInCase(t *testing.T) {
	for _, test := range []struct {
		name string
		into any
		text string
		want string
	}{
		{"the field first", new(order), `{"amount":424242,"AMOUNT":1}`, `at "/amount": two members differ only in case`},
		{"the field last", new(order), `{"AMOUNT":424242,"x":1,"amount":1}`, `at "/amount": two members differ only in case`},
		{"neither is the field", new(order), `{"AMOUNT":424242,"Amount":1}`, `at "/amount": two members differ only in case`},
		{"no field has the name", new(order), `{"s424242":1,"S424242":2}`, `two members differ only in case`},
		{"with an escape", new(order), `{"x":1,"\u0058":2}`, `two members differ only in case`},
		{"with the Kelvin sign", new(tags), `{"kelvin":1,"Kelvin":2}`, `at "/kelvin": two members differ only in case`},
		{"with a long s", new(tags), `{"ſize":1,"size":2}`, `at "/size": two members differ only in case`},
		{"unknown, with a long s", new(tags), `{"ſ":1,"s":2}`, `two members differ only in case`},
		{"a third one", new(both), `{"a":1,"A":2,"ª":3,"B":4,"b":5}`, `two members differ only in case`},
		{"of an embedded struct", new(Outer), `{"Deep":1,"deep":2}`, `at "/Deep": two members differ only in case`},
		{"a struct without fields", new(struct{}), `{"a":1,"A":2}`, `two members differ only in case`},
		{"deep inside", new(tree), `{"children":[{},{"byName":{"424242":{"pair":[{"T":{"name":"a","nAme":"b"}}]}}}]}`, `at "/children/1/byName/*/pair/0/T/name": two members differ only in case`},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := wire.MustParse(test.text).Decode(test.into)
			if err == nil || err.Error() != "wire: decode: "+test.want {
				t.Errorf("got %v, want %s", err, test.want)
			}
			if !reflect.ValueOf(test.into).Elem().IsZero() {
				t.Errorf("the value is %+v", test.into)
			}
		})
	}
}

// A shapeOf is what the reference knows of a type: the names of a struct's
// fields, written by hand, and the elements of the others.
type shapeOf struct {
	fields map[string]*shapeOf
	elem   *shapeOf // of an array or, if keys is set, of a map
	keys   bool
}

// decodeTypes are the types of the differential test with their shapes.
func decodeTypes() []struct {
	make  func() any
	shape *shapeOf
} {
	plain := &shapeOf{}
	structure := func(names ...string) *shapeOf {
		s := &shapeOf{fields: make(map[string]*shapeOf)}
		for _, name := range names {
			s.fields[name] = plain
		}
		return s
	}
	recursive := structure("name", "any")
	recursive.fields["children"] = &shapeOf{elem: recursive}
	recursive.fields["byName"] = &shapeOf{elem: recursive, keys: true}
	recursive.fields["pair"] = &shapeOf{elem: &shapeOf{fields: map[string]*shapeOf{"T": recursive}}}
	recursive.fields["anon"] = &shapeOf{elem: structure("X")}
	return []struct {
		make  func() any
		shape *shapeOf
	}{
		{func() any { return new(order) }, structure("amount", "Note")},
		{func() any { return new(Outer) }, structure("amount", "Deep", "Second")},
		{func() any { return new(both) }, structure("a", "A")},
		{func() any { return new(twice) }, structure("L", "R")},
		{func() any { return new(tags) }, structure("-", "quoted", "kelvin", "size", "größe")},
		{func() any { return new(tree) }, recursive},
		{func() any { return new(map[string][]order) }, &shapeOf{keys: true, elem: &shapeOf{elem: structure("amount", "Note")}}},
		{func() any { return new(any) }, plain},
		{func() any { return new(struct{ S self }) }, structure("S")},
	}
}

// filter writes the value as encoding/json must see it, and reports false for
// one to be refused.
func (s *shapeOf) filter(j wire.JSON) (string, bool) {
	var parts []string
	switch {
	case j.Kind() == wire.Array && s.elem != nil && !s.keys:
		n := 0
		for e := range j.Elements() {
			part, ok := s.elem.filter(e)
			if !ok {
				return "", false
			}
			parts = append(parts, part)
			n++
		}
		return "[" + strings.Join(parts, ",") + "]", true
	case j.Kind() == wire.Object && (s.keys || s.fields != nil):
		var names []string
		for name, value := range j.Members() {
			inner := s.elem
			if s.fields != nil {
				inner = s.fields[name]
				for _, other := range names {
					if strings.EqualFold(name, other) && (inner == nil || s.fields[other] == nil) && !strings.Contains(name, "\ufffd") {
						return "", false
					}
				}
				names = append(names, name)
				if inner == nil {
					continue
				}
			}
			part, ok := inner.filter(value)
			if !ok {
				return "", false
			}
			quoted, _ := json.Marshal(name)
			parts = append(parts, string(quoted)+":"+part)
		}
		return "{" + strings.Join(parts, ",") + "}", true
	}
	return j.String(), true
}

// checkDecode compares Decode with encoding/json, which gets the text without
// the members that have no field of exactly their name.
func checkDecode(t interface{ Fatalf(string, ...any) }, which int, text string) {
	j, err := wire.ParseJSON(text)
	if err != nil || strings.Contains(text, "ufffd") || strings.Contains(text, "\ufffd") {
		return
	}
	types := decodeTypes()
	of := types[which%len(types)]
	got, want := of.make(), of.make()
	gotErr := j.Decode(got)
	filtered, ok := of.shape.filter(j)
	if !ok {
		if gotErr == nil {
			t.Fatalf("%s into %T is accepted", j, got)
		}
		return
	}
	dec := json.NewDecoder(strings.NewReader(filtered))
	dec.UseNumber()
	wantErr := dec.Decode(want)
	if (gotErr == nil) != (wantErr == nil) || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s into %T\ngot  %+v, %v\nwant %+v, %v", j, got, got, gotErr, want, wantErr)
	}
}

// TestDecodeAgreesWithEncodingJSON draws documents whose names are those of
// the types' fields, often in other letters.
func TestDecodeAgreesWithEncodingJSON(t *testing.T) {
	names := []string{"amount", "Note", "Deep", "Second", "a", "A", "X", "L", "R", "-", "quoted", "kelvin", "size", "größe", "name", "any", "children", "byName", "pair", "anon", "T", "S", "Hidden", "private", "other"}
	name := rapid.Custom(func(t *rapid.T) string {
		name := rapid.SampledFrom(names).Draw(t, "name")
		switch rapid.IntRange(0, 9).Draw(t, "letters") {
		case 0:
			return strings.ToUpper(name)
		case 1:
			return strings.ToLower(name)
		case 2:
			return strings.NewReplacer("k", "\u212a", "s", "\u017f").Replace(name)
		}
		return name
	})
	var value func(t *rapid.T, depth int) any
	value = func(t *rapid.T, depth int) any {
		kind := rapid.IntRange(0, 9).Draw(t, "kind")
		switch {
		case kind < 5 && depth > 0:
			object := make(map[string]any)
			for _, n := range rapid.SliceOfNDistinct(name, 0, 4, rapid.ID[string]).Draw(t, "names") {
				object[n] = value(t, depth-1)
			}
			return object
		case kind < 7 && depth > 0:
			list := make([]any, rapid.IntRange(0, 3).Draw(t, "length"))
			for i := range list {
				list[i] = value(t, depth-1)
			}
			return list
		}
		return rapid.SampledFrom([]any{nil, 1, "1", true, 9007199254740993}).Draw(t, "scalar")
	}
	which := 0
	rapid.Check(t, func(t *rapid.T) {
		text, err := wire.Marshal(value(t, 5))
		if err != nil {
			t.Fatal(err)
		}
		for range decodeTypes() {
			checkDecode(t, which, text.String())
			which++
		}
	})
}

func FuzzDecode(f *testing.F) {
	for i := range decodeTypes() {
		for _, text := range []string{
			`{"amount":1,"Note":"n","x":[{}]}`, `{"AMOUNT":1,"note":"n"}`, `{"Note":"n","AMOUNT":1}`, `{"amount":1,"AMOUNT":2}`, `{"Deep":1,"deep_":2,"amount":"a"}`, `{"a":1,"A":2}`,
			`{"name":"a","children":[{"name":"b"},{"Name":"c"}],"byName":{"k":{"NAME":"d"}},"pair":[{"t":{}},{"T":{"name":"e"}}],"any":{"b":1,"B":2}}`,
			`{"x":[{"amount":1},{"Amount":2},{"amount":1,"amounT":3}]}`, `{"-":1,"quoted":"2","\u212aelvin":3,"\u017fize":4}`, `{"S":{"a":1,"A":2},"s":1}`, `{"X":1,"L":2,"R":3,"x":4}`,
		} {
			f.Add(i, text)
		}
	}
	f.Fuzz(func(t *testing.T, which int, text string) {
		checkDecode(t, max(0, which), text)
	})
}
