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

// MaxDepth is the number of arrays and objects that may be nested in one [JSON]
// value. It is far below the limits of the decoders that read the value later,
// inside further objects: 1,000 levels in common MCP hosts, 10,000 in
// encoding/json. So a value that was accepted once can always be read again.
const MaxDepth = 512

// A JSON is an immutable JSON value, held as its compact text. The zero value
// means "absent". It is not a JSON value, and it is not JSON null.
//
// [ParseJSON] and [Marshal] validate what they return. So every value but the
// zero value is well-formed UTF-8 text on a single line, without duplicate
// member names, and nested at most [MaxDepth] levels. Numbers keep their digits,
// objects keep the order of their members.
//
// Copying a JSON costs the same for 10 bytes and for 8 MiB. Two are equal by ==
// if their texts are. A JSON is safe for concurrent use.
type JSON struct{ text string }

// A Kind is the type of a JSON value.
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

// String returns the kind as an error message names it, such as "a string".
func (k Kind) String() string {
	if int(k) < len(kindNames) {
		return kindNames[k]
	}
	return fmt.Sprintf("Kind(%d)", byte(k))
}

// A SyntaxError reports why [ParseJSON] does not accept a text. It never holds
// a part of the text.
type SyntaxError struct {
	Offset int    // the number of bytes before the error
	Reason string // what is wrong there
}

// Error returns the place and the reason.
func (e *SyntaxError) Error() string {
	return fmt.Sprintf("wire: invalid JSON at offset %d: %s", e.Offset, e.Reason)
}

// ParseJSON validates a JSON text and returns it as a compact value. It returns
// a [*SyntaxError] for text that RFC 8259 does not allow, for invalid UTF-8, for
// an object with two members of one name (compared after decoding escapes), and
// for more than [MaxDepth] levels. It keeps an unpaired surrogate escape as it is
// written. A negative zero loses its sign; every other number keeps all its
// digits.
//
// Time and memory are linear in the length of the text.
func ParseJSON[T ~string | ~[]byte](text T) (JSON, error) {
	p := parser{src: string(text)}
	if err := p.document(); err != nil {
		return JSON{}, err
	}
	return JSON{p.text()}, nil
}

// Marshal returns the JSON encoding of a Go value. It encodes as [json.Marshal]
// does, but without HTML escapes, and returns an error where [ParseJSON] would,
// such as for a value that is nested too deep. An invalid UTF-8 byte in a Go
// string becomes U+FFFD.
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

// MustParse is like [ParseJSON] but panics if the text is not valid. It is for
// texts that are part of the program.
func MustParse(text string) JSON {
	j, err := ParseJSON(text)
	if err != nil {
		panic(err)
	}
	return j
}

// IsZero reports whether the value is absent.
func (j JSON) IsZero() bool { return j.text == "" }

// Clone returns a copy of the value in memory of its own. A value that was taken
// out of a larger one shares its memory, and keeps all of it alive.
func (j JSON) Clone() JSON { return JSON{strings.Clone(j.text)} }

// String returns the compact text. It is empty for the zero value.
func (j JSON) String() string { return j.text }

// Len returns the length of the compact text in bytes.
func (j JSON) Len() int { return len(j.text) }

// Kind returns the type of the value. It is [Absent] for the zero value.
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

// AppendJSON appends the compact text to dst, or null for the zero value.
func (j JSON) AppendJSON(dst []byte) []byte {
	if j.text == "" {
		return append(dst, "null"...)
	}
	return append(dst, j.text...)
}

// WriteTo writes the compact text to w, or null for the zero value.
func (j JSON) WriteTo(w io.Writer) (int64, error) {
	text := j.text
	if text == "" {
		text = "null"
	}
	n, err := io.WriteString(w, text)
	return int64(n), err
}

// MarshalJSON implements [json.Marshaler]. The zero value encodes as null, or
// not at all in a struct field with the option omitzero. Note that
// [json.Marshal] escapes <, > and & in the text; use [JSON.String], or a
// [json.Encoder] with SetEscapeHTML(false), to keep every byte.
func (j JSON) MarshalJSON() ([]byte, error) { return j.AppendJSON(nil), nil }

// UnmarshalJSON implements [json.Unmarshaler] with [ParseJSON].
func (j *JSON) UnmarshalJSON(text []byte) error {
	v, err := ParseJSON(text)
	if err != nil {
		return err
	}
	*j = v
	return nil
}

// Get returns the member of an object with exactly this name. It returns the
// zero value if there is none, or if j is not an object.
func (j JSON) Get(name string) JSON {
	for k, v := range j.members(false) {
		if k == name {
			return v
		}
	}
	return JSON{}
}

// Members iterates over the members of an object in the order of the text. It
// yields nothing for any other value. If a name has an unpaired surrogate
// escape, which no Go string can hold, Members yields U+FFFD in its place. Only
// such a name can occur twice, and [JSON.Get] does not find it.
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

// Elements iterates over the elements of an array. It yields nothing for any
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

// Text returns the decoded text of a JSON string. It reports false for any other
// value, and for a string with an unpaired surrogate escape, which no Go string
// can hold.
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

// With returns the object with one more member in front. It panics if j is not
// an object, if it has a member of this name, or if value is absent.
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
