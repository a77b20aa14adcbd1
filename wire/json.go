package wire

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// MaxDepth is how many arrays and objects may be nested in one [JSON] value.
// It stays far below the limits of the decoders that the value meets later
// (1,000 levels in common MCP hosts, 10,000 in encoding/json), with room for
// the envelopes around it: what was accepted once can always be read again.
const MaxDepth = 512

// JSON is an immutable JSON value, held as its compact text. The zero value
// means "absent" and is not a JSON value; JSON null is a value of its own.
//
// A JSON is made only by validating ([ParseJSON], [Marshal]), so every
// non-zero value is well-formed UTF-8 text on a single line, without
// duplicate member names, nested at most [MaxDepth] levels. Numbers keep
// their digits and objects their member order. A JSON is comparable, and
// sharing or copying one costs the same for 10 bytes and for 8 MiB. It is
// safe for concurrent use.
type JSON struct{ text string }

// Kind says which of JSON's types a value has.
type Kind byte

// The kinds of JSON values. Absent is the kind of the zero [JSON].
const (
	Absent Kind = iota
	Null
	Bool
	Number
	String
	Array
	Object
)

var kindNames = [...]string{"nothing", "null", "a boolean", "a number", "a string", "an array", "an object"}

// String returns the kind in words that fit an error message: "a string".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", byte(k))
}

// SyntaxError reports why a text is not a JSON value that the library
// accepts. It never holds any of the text.
type SyntaxError struct {
	Offset int    // bytes before the place of the error
	Reason string // what is wrong there
}

// Error describes the error and its place.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("wire: invalid JSON at offset %d: %s", e.Offset, e.Reason)
}

// ParseJSON validates one JSON text and returns it as a compact value. It
// refuses, with a [*SyntaxError]: anything that RFC 8259 refuses, invalid
// UTF-8, an object with two members of one name (compared after decoding
// escapes), and more than [MaxDepth] levels. An unpaired surrogate escape is
// kept as it is written. A negative zero loses its sign; every other number
// keeps all its digits, whatever its size.
//
// ParseJSON runs in time and memory linear in the text.
func ParseJSON[T ~string | ~[]byte](text T) (JSON, error) {
	p := parser{src: string(text)}
	if err := p.document(); err != nil {
		return JSON{}, err
	}
	return JSON{p.text()}, nil
}

// Marshal returns the JSON encoding of a Go value, as encoding/json makes it
// but without HTML escapes. It refuses what [ParseJSON] refuses, such as a
// value nested too deep; an invalid UTF-8 byte in a Go string becomes U+FFFD,
// as encoding/json has it.
func Marshal(v any) (JSON, error) {
	if j, ok := v.(JSON); ok && !j.IsZero() {
		return j, nil
	}
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return JSON{}, fmt.Errorf("wire: marshal: %w", err)
	}
	return ParseJSON(buf.Bytes())
}

// MustParse is [ParseJSON] for texts that the program itself contains. It
// panics if text is not valid.
func MustParse(text string) JSON {
	j, err := ParseJSON(text)
	if err != nil {
		panic(err)
	}
	return j
}

// IsZero reports whether the value is absent.
func (j JSON) IsZero() bool { return j.text == "" }

// Clone returns the value with memory of its own. A value that was taken out
// of another shares that one's text; a small one that is kept for long would
// keep all of it.
func (j JSON) Clone() JSON { return JSON{strings.Clone(j.text)} }

// String returns the compact text; it is empty for the zero value.
func (j JSON) String() string { return j.text }

// Len returns the length of the compact text in bytes.
func (j JSON) Len() int { return len(j.text) }

// Kind returns the value's type; [Absent] for the zero value.
func (j JSON) Kind() Kind {
	if j.text == "" {
		return Absent
	}
	switch j.text[0] {
	case '{':
		return Object
	case '[':
		return Array
	case '"':
		return String
	case 't', 'f':
		return Bool
	case 'n':
		return Null
	default:
		return Number
	}
}

// AppendJSON appends the compact text to dst, without another scan; "null"
// for the zero value.
func (j JSON) AppendJSON(dst []byte) []byte {
	if j.text == "" {
		return append(dst, "null"...)
	}
	return append(dst, j.text...)
}

// WriteTo writes the compact text to w; "null" for the zero value.
func (j JSON) WriteTo(w io.Writer) (int64, error) {
	text := j.text
	if text == "" {
		text = "null"
	}
	n, err := io.WriteString(w, text)
	return int64(n), err
}

// MarshalJSON implements [json.Marshaler]. The zero value encodes as null;
// the option omitzero leaves it out. Note that [json.Marshal] escapes <, > and
// & in what it is given here; to keep every byte use [JSON.String], or a
// [json.Encoder] with SetEscapeHTML(false).
func (j JSON) MarshalJSON() ([]byte, error) { return j.AppendJSON(nil), nil }

// UnmarshalJSON implements [json.Unmarshaler] by [ParseJSON].
func (j *JSON) UnmarshalJSON(text []byte) error {
	v, err := ParseJSON(text)
	if err != nil {
		return err
	}
	*j = v
	return nil
}

// Get returns the member of an object with exactly this name, compared
// case-sensitively. It returns the zero value if there is none, or if the
// value is not an object.
func (j JSON) Get(name string) JSON {
	for k, v := range j.members(false) {
		if k == name {
			return v
		}
	}
	return JSON{}
}

// Members iterates over the members of an object in the order of the text. It
// yields nothing for any other value. A name with an unpaired surrogate
// escape, which no Go string can hold, is yielded with U+FFFD in its place.
// Only such a name can repeat, and [JSON.Get] does not find it.
func (j JSON) Members() iter.Seq2[string, JSON] { return j.members(true) }

// members leaves out the names that no Go string can hold, unless all is set.
func (j JSON) members(all bool) iter.Seq2[string, JSON] {
	return func(yield func(string, JSON) bool) {
		if j.Kind() != Object {
			return
		}
		for i := 1; j.text[i] != '}'; {
			end := skipValue(j.text, i)
			name, ok := unquote(j.text[i:end])
			i = end + 1 // the colon
			end = skipValue(j.text, i)
			if (ok || all) && !yield(name, JSON{j.text[i:end]}) {
				return
			}
			if i = end; j.text[i] == ',' {
				i++
			}
		}
	}
}

// Elements iterates over an array's elements. It yields nothing for any
// other value.
func (j JSON) Elements() iter.Seq[JSON] {
	return func(yield func(JSON) bool) {
		if j.Kind() != Array {
			return
		}
		for i := 1; j.text[i] != ']'; {
			end := skipValue(j.text, i)
			if !yield(JSON{j.text[i:end]}) {
				return
			}
			if i = end; j.text[i] == ',' {
				i++
			}
		}
	}
}

// Text returns the decoded text of a JSON string. It reports false for any
// other value, and for a string with an unpaired surrogate, which no Go
// string can hold.
func (j JSON) Text() (string, bool) {
	if j.Kind() != String {
		return "", false
	}
	return unquote(j.text)
}

// skipValue returns the end of the value that starts at s[i]; s is the
// compact text of a valid value.
func skipValue(s string, i int) int {
	depth := 0
	for ; i < len(s); i++ {
		switch s[i] {
		case '"':
			i = closingQuote(s, i)
		case '{', '[':
			depth++
			continue
		case '}', ']':
			if depth == 0 { // the end of a number or literal before it
				return i
			}
			depth--
		case ',', ':':
			if depth == 0 {
				return i
			}
			continue
		default:
			continue
		}
		if depth == 0 {
			return i + 1
		}
	}
	return i
}

// closingQuote returns the place of the quote that ends the string which
// starts at s[i]: the first one after an even number of backslashes. Long
// strings are searched by machine words.
func closingQuote(s string, i int) int {
	for start := i + 1; ; {
		i += 1 + strings.IndexByte(s[i+1:], '"')
		before := i
		for before > start && s[before-1] == '\\' {
			before--
		}
		if (i-before)%2 == 0 {
			return i
		}
	}
}

// unquote decodes a valid JSON string literal. It reports false if the
// string has an unpaired surrogate, for which it writes U+FFFD.
func unquote(lit string) (string, bool) {
	s := lit[1 : len(lit)-1]
	i := strings.IndexByte(s, '\\')
	if i < 0 {
		return s, true
	}
	ok := true
	b := make([]byte, 0, len(s))
	for i >= 0 {
		b = append(b, s[:i]...)
		var r rune
		r, s = unescape(s[i:])
		if utf16.IsSurrogate(r) {
			r, ok = utf8.RuneError, false
		}
		b = utf8.AppendRune(b, r)
		i = strings.IndexByte(s, '\\')
	}
	return string(append(b, s...)), ok
}

// unescape decodes the escape sequence at the start of s, joining a pair of
// surrogates; an unpaired one is returned as it is.
func unescape(s string) (rune, string) {
	switch c := s[1]; c {
	case 'b':
		return '\b', s[2:]
	case 'f':
		return '\f', s[2:]
	case 'n':
		return '\n', s[2:]
	case 'r':
		return '\r', s[2:]
	case 't':
		return '\t', s[2:]
	case 'u':
		r := hex4(s[2:])
		if utf16.IsSurrogate(r) && len(s) >= 12 && s[6] == '\\' && s[7] == 'u' {
			if full := utf16.DecodeRune(r, hex4(s[8:])); full != utf8.RuneError {
				return full, s[12:]
			}
		}
		return r, s[6:]
	default:
		return rune(c), s[2:]
	}
}

func hex4(s string) (r rune) {
	for i := range 4 {
		c := s[i]
		switch {
		case c <= '9':
			c -= '0'
		case c <= 'F':
			c -= 'A' - 10
		default:
			c -= 'a' - 10
		}
		r = r<<4 | rune(c)
	}
	return r
}

// appendString appends the JSON string literal of s to dst. An invalid UTF-8
// byte becomes U+FFFD.
func appendString(dst []byte, s string) []byte {
	const hex = "0123456789abcdef"
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= 0x20 && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		switch c {
		case '"', '\\':
			dst = append(dst, '\\', c)
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		default:
			if c < 0x20 {
				dst = append(dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xF])
			} else {
				dst = append(dst, "\uFFFD"...)
			}
		}
		i += size
		start = i
	}
	return append(append(dst, s[start:]...), '"')
}

// With returns the object with one more member in front, which it must not
// have yet. It panics if the value is not an object or a name is repeated.
func (j JSON) With(name string, value JSON) JSON {
	if j.Kind() != Object || value.IsZero() || !j.Get(name).IsZero() {
		panic("wire: With needs an object, a value, and a new name")
	}
	b := make([]byte, 0, len(j.text)+len(name)+len(value.text)+8)
	b = append(appendString(append(b, '{'), name), ':')
	b = append(b, value.text...)
	if len(j.text) > 2 {
		b = append(b, ',')
	}
	return JSON{string(append(b, j.text[1:]...))}
}
