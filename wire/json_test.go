package wire_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// nested returns depth arrays, one in the other.
func nested(depth int) string {
	return strings.Repeat("[", depth) + strings.Repeat("]", depth)
}

// manyMembers returns the members "k0":0 to "k<n-1>":<n-1>, without braces.
func manyMembers(n int) string {
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, `"k%d":%d`, i, i)
	}
	return b.String()
}

func TestParseJSONAccepts(t *testing.T) {
	same := func(texts ...string) (rows [][2]string) {
		for _, s := range texts {
			rows = append(rows, [2]string{s, s})
		}
		return rows
	}
	for _, group := range []struct {
		name string
		rows [][2]string // text, stored text
	}{
		{"scalars", same(`null`, `true`, `false`, `""`, `"a"`, `0`, `{}`, `[]`)},
		{"white space goes, and only outside of strings", [][2]string{
			{" \t\r\n1\n", `1`},
			{"[ 1 ,\r\n2\t]", `[1,2]`},
			{"{ \"a b\" : \"c \\n d\" , \"e\":\t[ ] }", `{"a b":"c \n d","e":[]}`},
			{"[\n]", `[]`},
			{"{\n}", `{}`},
		}},
		{"a negative zero loses its sign", [][2]string{
			{`-0`, `0`},
			{`-0.0`, `0.0`},
			{`-0e5`, `0e5`},
			{`-0.00E-10`, `0.00E-10`},
			{`[-0,-0.5, -0 ,1]`, `[0,-0.5,0,1]`},
			{`{"-0":"-0","a":-0}`, `{"-0":"-0","a":0}`},
			{`-0e-0`, `0e-0`},
		}},
		{"every other number keeps its digits", same(
			`-1`, `1.0`, `10`, `-0.1`, `-1e0`, `1E+2`, `1e-2`, `0e0`, `0.0`, `-0.01e1`,
			`9007199254740993`, `123456789012345678901234567890`, `1e400`, `-1e-400`,
			`0.1000000000000000055511151231257827021181583404541015625`,
		)},
		{"members keep their order", same(`{"b":1,"a":2,"10":3,"9":4,"__proto__":5,"":6}`)},
		{"nothing is escaped or unescaped", same(
			`"<>&"`, "\"\u2028\u2029\"", `"\u2028"`, `"\/"`, `"/"`, `"\u0041"`, `"\"\\\b\f\n\r\t"`, "\"\x7f\"", "\"é😀\"", `"\ud83d\ude00"`, "\"\ufffd\"", "\"\ufeff\"",
		)},
		{"an unpaired surrogate stays as it is written", same(
			`"\ud800"`, `"\uDFFF"`, `"\ud800\ud800"`, `"\udc00\ud800"`, `"\ud800x"`, `{"\ud800":1,"\udfff":2}`,
		)},
		{"names that only look alike are different", same(
			`{"taskId":1,"taskid":2,"ta\u017fkId":3}`, `{"a":1,"a ":2,"a\u0000":3,"":4}`, "{\"\u00e9\":1,\"e\u0301\":2}", `{"\ud800":1,"\ud800\ud800":2,"\ufffd":3,"\ud801":4,"\ud840":5,"\udc00":6}`,
			`{"a":{"a":{"a":1}},"b":[{"a":1},{"a":2}]}`,
		)},
		{"the deepest nesting", same(
			nested(wire.MaxDepth), strings.Repeat(`{"a":`, wire.MaxDepth)+`1`+strings.Repeat(`}`, wire.MaxDepth),
			`[`+nested(wire.MaxDepth-1)+`,`+nested(wire.MaxDepth-1)+`]`, `"`+strings.Repeat(`[`, 1000)+`"`,
		)},
		{"objects of any width", same(`{`+manyMembers(16)+`}`, `{`+manyMembers(17)+`}`, `{`+manyMembers(100)+`}`, `[{`+manyMembers(40)+`},{`+manyMembers(40)+`}]`)},
	} {
		t.Run(group.name, func(t *testing.T) {
			for _, row := range group.rows {
				got, err := wire.ParseJSON(row[0])
				if err != nil {
					t.Errorf("ParseJSON(%.80q) = %v", row[0], err)
					continue
				}
				if got.String() != row[1] {
					t.Errorf("ParseJSON(%.80q) = %.80s, want %.80s", row[0], got, row[1])
				}
				if fromBytes, err := wire.ParseJSON([]byte(row[0])); err != nil || fromBytes != got {
					t.Errorf("ParseJSON of the same bytes = %.80s, %v, want %.80s", fromBytes, err, got)
				}
			}
		})
	}
}

func TestParseJSONRefuses(t *testing.T) {
	for _, test := range []struct {
		name, text string
		offset     int
	}{
		{"nothing", ``, 0},
		{"only white space", " \n", 2},
		{"a byte order mark", "\ufeff1", 0},
		{"two values", `1 2`, 2},
		{"a trailing comma in an array", `[1,]`, 3},
		{"a trailing comma in an object", `{"a":1,}`, 7},
		{"a leading comma", `[,1]`, 1},
		{"an open array", `[1`, 2},
		{"an open object", `{"a":1`, 6},
		{"a member without a value", `{"a":}`, 5},
		{"a member without a colon", `{"a" 1}`, 5},
		{"a member name without quotes", `{a:1}`, 1},
		{"a number as a member name", `{1:1}`, 1},
		{"mismatched brackets", `[1}`, 2},
		{"a comment", `[1/**/]`, 2},
		{"single quotes", `'a'`, 0},
		{"a literal cut short", `tru`, 0},
		{"a literal in capitals", `True`, 0},
		{"a literal with more behind it", `nullx`, 4},
		{"NaN", `NaN`, 0},
		{"Infinity", `-Infinity`, 1},
		{"a plus sign", `+1`, 0},
		{"a leading zero", `01`, 1},
		{"a leading zero after the sign", `-01`, 2},
		{"a bare minus", `-`, 1},
		{"a point without digits", `1.`, 2},
		{"a point without digits before an exponent", `1.e5`, 2},
		{"a leading point", `.5`, 0},
		{"an exponent without digits", `1e`, 2},
		{"a signed exponent without digits", `1e+`, 3},
		{"a hexadecimal number", `0x10`, 1},
		{"an underscore in a number", `1_000`, 1},
		{"an open string", `"a`, 2},
		{"an open string after a backslash", `"a\`, 2},
		{"an unknown escape", `"\x41"`, 1},
		{"a capital escape", `"\N"`, 1},
		{"a short unicode escape", `"\u12"`, 1},
		{"a unicode escape at the end of the text", `"\u12`, 1},
		{"a unicode escape with a wrong digit", `"\u12g4"`, 1},
		{"a raw line feed in a string", "\"a\nb\"", 2},
		{"a raw tab in a string", "\"\t\"", 1},
		{"a raw NUL in a string", "\"\x00\"", 1},
		{"a NUL after the value", "1\x00", 1},
		{"another kind of space", "\u00a01", 0},
		{"a vertical tab", "\v1", 0},
		{"an invalid byte in a string", "\"a\xffb\"", 2},
		{"an invalid byte in a name", "{\"\xff\":1}", 2},
		{"an invalid byte outside of strings", "[\xff]", 1},
		{"an overlong encoding", "\"\xc0\x80\"", 1},
		{"a surrogate encoded as UTF-8", "\"\xed\xa0\x80\"", 1},
		{"a rune beyond U+10FFFF", "\"\xf4\x90\x80\x80\"", 1},
		{"a rune cut short", "\"\xe2\x82\"", 1},
		{"a duplicate member", `{"a":1,"b":2,"a":3}`, 13},
		{"a duplicate member with an escape", `{"a":1,"\u0061":2}`, 7},
		{"a duplicate member with another escape", `{"a\/b":1,"a/b":2}`, 10},
		{"a duplicate member with a surrogate pair", "{\"😀\":1,\"\\ud83d\\uDE00\":2}", 10},
		{"a duplicate member with an unpaired surrogate", `{"\ud800":1,"\uD800":2}`, 12},
		{"a duplicate empty name", `{"":1,"":2}`, 6},
		{"a duplicate deep inside", `[{"a":[{"b":1,"b":2}]}]`, 14},
		{"a duplicate that spans an inner object", `{"a":{"a":1,"b":2},"a":3}`, 19},
		{"a duplicate at the 17th member", `{` + manyMembers(16) + `,"k0":1}`, 2 + len(manyMembers(16))},
		{"a duplicate of the 17th member", `{` + manyMembers(17) + `,"k16":1}`, 2 + len(manyMembers(17))},
		{"a duplicate of the first of many members", `{` + manyMembers(100) + `,"k0":1}`, 2 + len(manyMembers(100))},
		{"a duplicate of the last of many members", `{` + manyMembers(100) + `,"\u006b99":1}`, 2 + len(manyMembers(100))},
		{"one array too deep", nested(wire.MaxDepth + 1), wire.MaxDepth},
		{"one object too deep", strings.Repeat(`{"a":`, wire.MaxDepth+1), 5 * wire.MaxDepth},
		{"far too deep", nested(1_000_000), wire.MaxDepth},
		{"an invalid text far too deep", strings.Repeat("[", 1_000_000), wire.MaxDepth},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := wire.ParseJSON(test.text)
			var syntax *wire.SyntaxError
			if !errors.As(err, &syntax) {
				t.Fatalf("ParseJSON(%.80q) = %.80q, %v, want a *SyntaxError", test.text, got, err)
			}
			if syntax.Offset != test.offset {
				t.Errorf("ParseJSON(%.80q) fails at offset %d, want %d (%v)", test.text, syntax.Offset, test.offset, err)
			}
			if !got.IsZero() {
				t.Errorf("ParseJSON returns %.80q with an error", got)
			}
		})
	}
}

func TestSyntaxErrorDoesNotQuote(t *testing.T) {
	const secret = "hunter2"
	for _, text := range []string{secret, `{"` + secret + `":1,"` + secret + `":2}`, `["` + secret + `"`, `"` + secret + `\x"`, `{"` + secret + `" 1}`} {
		if _, err := wire.ParseJSON(text); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("ParseJSON(%q) = %v, want an error that does not quote the text", text, err)
		}
	}
}

// TestParseJSONDoesNotCopy holds the promise on which polls of big results
// rest: a text that is already compact is stored as it is.
func TestParseJSONDoesNotCopy(t *testing.T) {
	text := `["` + strings.Repeat("x", 1<<16) + `",{"a":1}]`
	allocs := testing.AllocsPerRun(10, func() {
		if _, err := wire.ParseJSON(text); err != nil {
			t.Fatal(err)
		}
	})
	if allocs > 2 { // the parser and its list of names
		t.Errorf("ParseJSON of a compact string allocates %v times", allocs)
	}
}

func TestParseJSONDoesNotAliasItsArgument(t *testing.T) {
	text := []byte(`{"a":"b"}`)
	j, err := wire.ParseJSON(text)
	if err != nil {
		t.Fatal(err)
	}
	for i := range text {
		text[i] = 'x'
	}
	if j.String() != `{"a":"b"}` {
		t.Errorf("the value changed to %s with its source", j)
	}
	out, _ := j.MarshalJSON()
	for i := range out {
		out[i] = 'x'
	}
	if j.String() != `{"a":"b"}` {
		t.Errorf("the value changed to %s with its encoding", j)
	}
}

func TestMarshal(t *testing.T) {
	for _, test := range []struct {
		value any
		want  string
	}{
		{nil, `null`},
		{"<a>&\u2028", `"<a>&\u2028"`},
		{[]string(nil), `null`},
		{map[string]any{"b": 1, "a": []int{}}, `{"a":[],"b":1}`},
		{json.RawMessage(` { "n" : -0 } `), `{"n":0}`},
		{json.Number("123456789012345678901234567890"), `123456789012345678901234567890`},
		{wire.MustParse(`{"z":1,"a":2}`), `{"z":1,"a":2}`},
		{struct {
			J wire.JSON `json:"j,omitzero"`
			K wire.JSON `json:"k"`
		}{}, `{"k":null}`},
		{wire.JSON{}, `null`},
	} {
		got, err := wire.Marshal(test.value)
		if err != nil || got.String() != test.want {
			t.Errorf("Marshal(%#v) = %s, %v, want %s", test.value, got, err, test.want)
		}
	}

	// How U+FFFD is written differs between versions of encoding/json.
	if got, err := wire.Marshal("a\xffb"); err != nil {
		t.Error(err)
	} else if text, ok := got.Text(); text != "a\ufffdb" || !ok {
		t.Errorf("Marshal of invalid UTF-8 = %s", got)
	}

	var deep any = 1
	for range wire.MaxDepth + 1 {
		deep = []any{deep}
	}
	for name, value := range map[string]any{
		"a value nested too deep":   deep,
		"a channel":                 make(chan int),
		"a duplicate name in raw":   json.RawMessage(`{"a":1,"a":2}`),
		"an invalid byte in raw":    json.RawMessage("\"\xff\""),
		"an empty raw message":      json.RawMessage(""),
		"a map with colliding keys": map[string]int{"\xfe": 1, "\xff": 2},
	} {
		if got, err := wire.Marshal(value); err == nil {
			t.Errorf("Marshal of %s = %s, want an error", name, got)
		}
	}
}

func TestMustParsePanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("MustParse of an invalid text does not panic")
		}
	}()
	wire.MustParse(`{`)
}

func TestZeroJSON(t *testing.T) {
	var j wire.JSON
	if !j.IsZero() || j.Kind() != wire.Absent || j.Len() != 0 || j.String() != "" {
		t.Errorf("the zero value is %v, %v, %d bytes, %q", j.IsZero(), j.Kind(), j.Len(), j)
	}
	if got := string(j.AppendJSON([]byte("x"))); got != "xnull" {
		t.Errorf("AppendJSON of the zero value = %s", got)
	}
	var b strings.Builder
	if n, err := j.WriteTo(&b); n != 4 || err != nil || b.String() != "null" {
		t.Errorf("WriteTo of the zero value = %d, %v, %q", n, err, b.String())
	}
	if !j.Get("a").IsZero() {
		t.Error("Get of the zero value is not zero")
	}
	if _, ok := j.Text(); ok {
		t.Error("Text of the zero value is ok")
	}
	if err := j.Decode(new(any)); err == nil {
		t.Error("Decode of the zero value does not fail")
	}
}

func TestKind(t *testing.T) {
	for text, want := range map[string]wire.Kind{
		`null`: wire.Null, `true`: wire.Bool, `false`: wire.Bool, `0`: wire.Number, `-1`: wire.Number, `""`: wire.String, `[]`: wire.Array, `{}`: wire.Object,
	} {
		if got := wire.MustParse(text).Kind(); got != want {
			t.Errorf("%s is %v, want %v", text, got, want)
		}
	}
	if got := wire.Kind(99).String(); got != "Kind(99)" {
		t.Errorf("an unknown kind is %q", got)
	}
}

func TestJSONText(t *testing.T) {
	for _, test := range []struct {
		text, want string
		ok         bool
	}{
		{`""`, "", true},
		{`"a"`, "a", true},
		{`"\"\\\/\b\f\n\r\t"`, "\"\\/\b\f\n\r\t", true},
		{`"\u0041\u00e9\u20AC\uabCD"`, "Aé€\uabcd", true},
		{`"a\u0000b"`, "a\x00b", true},
		{`"\ud83d\ude00!"`, "😀!", true},
		{`"\ufffd"`, "\ufffd", true},
		{`"\ud83d"`, "\ufffd", false},
		{`"a\ud83db"`, "a\ufffdb", false},
		{`"\ude00\ud83d"`, "\ufffd\ufffd", false},
		{`"\ud83d\ud83d\ude00"`, "\ufffd😀", false},
		{`"\ud83d\u0041"`, "\ufffdA", false},
		{`1`, "", false},
		{`["a"]`, "", false},
	} {
		if got, ok := wire.MustParse(test.text).Text(); got != test.want || ok != test.ok {
			t.Errorf("Text of %s = %q, %v, want %q, %v", test.text, got, ok, test.want, test.ok)
		}
	}
}

func TestJSONMembers(t *testing.T) {
	j := wire.MustParse(`{"a":1,"b":[1,{"c":"}"}],"\u0063":"x,\"]","":null,"d":{},"e":-1.5e3,"\ud800":7,"f":"\\"}`)
	var got []string
	for name, value := range j.Members() {
		got = append(got, name+"="+value.String())
	}
	want := []string{"a=1", `b=[1,{"c":"}"}]`, `c="x,\"]"`, "=null", "d={}", "e=-1.5e3", "\ufffd=7", `f="\\"`}
	if !slices.Equal(got, want) {
		t.Errorf("Members = %q, want %q", got, want)
	}
	for name, want := range map[string]string{"a": "1", "c": `"x,\"]"`, "": "null", "f": `"\\"`, "A": "", "g": "", "\ufffd": ""} {
		if got := j.Get(name).String(); got != want {
			t.Errorf("Get(%q) = %q, want %q", name, got, want)
		}
	}
	for range j.Members() {
		break // a loop may end early
	}
	for name, value := range wire.MustParse(`[{"a":1}]`).Members() {
		t.Errorf("an array yields the member %q=%v", name, value)
	}
}

func TestJSONElements(t *testing.T) {
	var got []string
	for e := range wire.MustParse(`[1,"a,]",[],[2,[3]],{"a":[1,2]},null,-0.5,true]`).Elements() {
		got = append(got, e.String())
	}
	if want := []string{"1", `"a,]"`, "[]", "[2,[3]]", `{"a":[1,2]}`, "null", "-0.5", "true"}; !slices.Equal(got, want) {
		t.Errorf("Elements = %q, want %q", got, want)
	}
	for e := range wire.MustParse(`{"a":[1]}`).Elements() {
		t.Errorf("an object yields the element %v", e)
	}
}

func TestJSONUnmarshal(t *testing.T) {
	var v struct{ A, B wire.JSON }
	if err := json.Unmarshal([]byte(`{"A": {"x" : -0}, "B": null}`), &v); err != nil {
		t.Fatal(err)
	}
	if v.A.String() != `{"x":0}` || v.B.Kind() != wire.Null {
		t.Errorf("Unmarshal = %v, %v", v.A, v.B)
	}
	before := v.A
	if err := v.A.UnmarshalJSON([]byte(`{"x":1,"x":2}`)); err == nil || v.A != before {
		t.Errorf("UnmarshalJSON of a duplicate = %v, the value is %v", err, v.A)
	}
}

// failingWriter takes n bytes and then fails.
type failingWriter struct{ n int }

var errFull = errors.New("full")

func (w *failingWriter) Write(p []byte) (int, error) {
	if len(p) > w.n {
		n := w.n
		w.n = 0
		return n, errFull
	}
	w.n -= len(p)
	return len(p), nil
}

func TestJSONWriteTo(t *testing.T) {
	j := wire.MustParse(`{"a":"` + strings.Repeat("x", 100) + `"}`)
	var b bytes.Buffer
	if n, err := j.WriteTo(&b); n != int64(j.Len()) || err != nil || b.String() != j.String() {
		t.Errorf("WriteTo = %d, %v, %q", n, err, b.String())
	}
	if n, err := j.WriteTo(&failingWriter{10}); n != 10 || !errors.Is(err, errFull) {
		t.Errorf("WriteTo to a full writer = %d, %v, want 10, %v", n, err, errFull)
	}
}

// referenceParse says by encoding/json, regular expressions and UTF-16 code
// units what ParseJSON must make of a text.
func referenceParse(text []byte) (string, bool) {
	if !json.Valid(text) || !utf8.Valid(text) || !referenceStructure(text) {
		return "", false
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, text); err != nil {
		return "", false
	}
	return string(stringOrNumber.ReplaceAllFunc(compact.Bytes(), func(token []byte) []byte {
		if mantissa, _, _ := bytes.Cut(bytes.ToLower(token), []byte("e")); token[0] == '-' && !bytes.ContainsAny(mantissa, "123456789") {
			return token[1:]
		}
		return token
	})), true
}

var stringOrNumber = regexp.MustCompile(`"(?:[^"\\]|\\.)*"|-?[0-9][-+.0-9eE]*`)

// referenceStructure reports whether a valid text is nested at most MaxDepth
// levels and has no duplicate names.
func referenceStructure(text []byte) bool {
	type level struct {
		names   map[string]bool // nil in an array
		isValue bool            // the next token of an object is a value
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	var levels []level
	for {
		before := dec.InputOffset()
		token, err := dec.Token()
		if err != nil {
			return errors.Is(err, io.EOF)
		}
		top := len(levels) - 1
		switch {
		case token == json.Delim('}') || token == json.Delim(']'):
			levels = levels[:top]
			continue
		case top >= 0 && levels[top].names != nil && !levels[top].isValue:
			raw := text[before:dec.InputOffset()]
			name := utf16Name(raw[bytes.IndexByte(raw, '"'):])
			if levels[top].names[name] {
				return false
			}
			levels[top].names[name] = true
			levels[top].isValue = true
			continue
		case top >= 0:
			levels[top].isValue = false
		}
		if delim, ok := token.(json.Delim); ok {
			var names map[string]bool
			if delim == '{' {
				names = make(map[string]bool)
			}
			if levels = append(levels, level{names: names}); len(levels) > wire.MaxDepth {
				return false
			}
		}
	}
}

var escapeSequence = regexp.MustCompile(`\\u[0-9a-fA-F]{4}|\\.|[^\\]+`)

// utf16Name returns a name's UTF-16 code units, in decimal.
func utf16Name(literal []byte) string {
	var units []uint16
	for _, part := range escapeSequence.FindAllString(string(literal[1:len(literal)-1]), -1) {
		if !strings.HasPrefix(part, `\`) {
			units = append(units, utf16.Encode([]rune(part))...)
			continue
		}
		var unit uint16
		if part[1] == 'u' {
			fmt.Sscanf(part[2:], "%x", &unit)
		} else {
			var s string
			if err := json.Unmarshal([]byte(`"`+part+`"`), &s); err != nil {
				panic(err)
			}
			unit = uint16(s[0])
		}
		units = append(units, unit)
	}
	return fmt.Sprint(units)
}

func FuzzParseJSON(f *testing.F) {
	for _, seed := range []string{
		`{"b":[1,-0,1e400,"<>&"],"a":{"\u0061":null,"\ud800":true}}`, ` [ 1.0 , "\ud83d\ude00" ] `, `{"a":1,"\u0061":2}`, "\"\u2028\"", `-0.0e-0`,
		`{` + manyMembers(20) + `}`, `{` + manyMembers(20) + `,"k3":1}`, nested(wire.MaxDepth), nested(wire.MaxDepth + 1), `{"\ud800":1,"\uD800":2}`, "\"\xff\"",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := wire.ParseJSON(text)
		want, ok := referenceParse(text)
		if (err == nil) != ok {
			t.Fatalf("ParseJSON(%q) = %v; the reference accepts it: %v", text, err, ok)
		}
		if err != nil {
			var syntax *wire.SyntaxError
			if !errors.As(err, &syntax) || syntax.Offset < 0 || syntax.Offset > len(text) || !got.IsZero() {
				t.Fatalf("ParseJSON(%q) = %v, %#v", text, got, err)
			}
			return
		}
		if got.String() != want {
			t.Fatalf("ParseJSON(%q) = %s, want %s", text, got, want)
		}
		if again, err := wire.ParseJSON(got.String()); err != nil || again != got {
			t.Fatalf("ParseJSON(%q) a second time = %v, %v", got, again, err)
		}
		checkAccess(t, got)
	})
}

// checkAccess compares what the accessors say of a value with encoding/json.
func checkAccess(t *testing.T, j wire.JSON) {
	t.Helper()
	switch j.Kind() {
	case wire.String:
		var want string
		if err := json.Unmarshal([]byte(j.String()), &want); err != nil {
			t.Fatal(err)
		}
		if got, _ := j.Text(); got != want {
			t.Fatalf("Text of %s = %q, want %q", j, got, want)
		}
	case wire.Array:
		var parts []string
		for e := range j.Elements() {
			checkAccess(t, e)
			parts = append(parts, e.String())
		}
		if got := "[" + strings.Join(parts, ",") + "]"; got != j.String() {
			t.Fatalf("the elements of %s are %s", j, got)
		}
	case wire.Object:
		var want map[string]json.RawMessage
		if err := json.Unmarshal([]byte(j.String()), &want); err != nil {
			t.Fatal(err)
		}
		size := 2
		for name, value := range j.Members() {
			checkAccess(t, value)
			size += value.Len()
			if strings.Contains(name, "\ufffd") {
				continue
			}
			if string(want[name]) != value.String() || j.Get(name) != value {
				t.Fatalf("the member %q of %s is %s, and Get yields %s, want %s", name, j, value, j.Get(name), want[name])
			}
		}
		if size > j.Len() {
			t.Fatalf("the members of %s are longer than the whole", j)
		}
	default:
		if !json.Valid([]byte(j.String())) {
			t.Fatalf("%q is a part of a value", j)
		}
	}
}
