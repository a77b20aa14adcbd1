package wire

import (
	"math"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A shape checks one value. It returns nil, or what is wrong and where, with
// a pointer that starts at the value.
type shape func(JSON) *ShapeError

func expected(what string) *ShapeError { return &ShapeError{Expected: what} }

// under moves the error into the member or element of this name.
func (e *ShapeError) under(name string) *ShapeError {
	e.Pointer = "/" + pointerEscape.Replace(name) + e.Pointer
	return e
}

var pointerEscape = strings.NewReplacer("~", "~0", "/", "~1") // RFC 6901, section 3

// A field is one known member of an object.
type field struct {
	name     string
	required bool
	shape    shape
}

func required(name string, s shape) field { return field{name, true, s} }
func optional(name string, s shape) field { return field{name, false, s} }

// object is the shape of an object with these members, and any others.
func object(fields ...field) shape {
	return func(v JSON) *ShapeError {
		if v.Kind() != Object {
			return expected("an object")
		}
		seen := make([]bool, len(fields))
		for name, value := range v.members(false) {
			i := slices.IndexFunc(fields, func(f field) bool { return f.name == name })
			if i < 0 {
				continue
			}
			seen[i] = true
			if err := fields[i].shape(value); err != nil {
				return err.under(name)
			}
		}
		for i, f := range fields {
			if f.required && !seen[i] {
				return f.shape(JSON{}).under(f.name) // no shape takes the absent value
			}
		}
		return nil
	}
}

// members is the shape of an object whose members all have one shape.
func members(s shape) shape {
	return func(v JSON) *ShapeError {
		if v.Kind() != Object {
			return expected("an object")
		}
		for name, value := range v.Members() {
			if err := s(value); err != nil {
				return err.under(name)
			}
		}
		return nil
	}
}

// array is the shape of an array whose elements all have one shape.
func array(s shape) shape {
	return func(v JSON) *ShapeError {
		if v.Kind() != Array {
			return expected("an array")
		}
		i := 0
		for e := range v.Elements() {
			if err := s(e); err != nil {
				return err.under(strconv.Itoa(i))
			}
			i++
		}
		return nil
	}
}

// nonEmpty is an array shape that wants an element.
func nonEmpty(s shape) shape {
	return func(v JSON) *ShapeError {
		if v.text == "[]" {
			return expected("an array with at least one element")
		}
		return s(v)
	}
}

// An alternative is the shape of an object whose tag has this value.
type alternative struct {
	tag   string
	shape shape
}

// tagged is the shape of an object whose member name says which alternative
// it must have.
func tagged(name string, alternatives ...alternative) shape {
	var tags []string
	for _, a := range alternatives {
		tags = append(tags, a.tag)
	}
	tag := oneOf(tags...)
	return func(v JSON) *ShapeError {
		if v.Kind() != Object {
			return expected("an object")
		}
		value := v.Get(name)
		if err := tag(value); err != nil {
			return err.under(name)
		}
		which, _ := value.Text()
		return alternatives[slices.Index(tags, which)].shape(v)
	}
}

// oneOf is the shape of a string that is one of these.
func oneOf(values ...string) shape {
	what := "one of " + strings.Join(values, ", ")
	if len(values) == 1 {
		what = strconv.Quote(values[0])
	}
	return func(v JSON) *ShapeError {
		if s, ok := v.Text(); !ok || !slices.Contains(values, s) {
			return expected(what)
		}
		return nil
	}
}

// kind is the shape of any value of one kind.
func kind(k Kind) shape {
	return func(v JSON) *ShapeError {
		if v.Kind() != k {
			return expected(k.String())
		}
		return nil
	}
}

var (
	text      = kind(String)
	boolean   = kind(Bool)
	anyObject = kind(Object)
	texts     = array(text)
)

// number is the shape of a number that a float64 can hold, within bounds.
func number(lowest, highest float64, what string) shape {
	return func(v JSON) *ShapeError {
		if f, err := strconv.ParseFloat(v.text, 64); v.Kind() != Number || err != nil || f < lowest || f > highest {
			return expected(what)
		}
		return nil
	}
}

var (
	finite   = number(-math.MaxFloat64, math.MaxFloat64, "a number within the range of a float64")
	fraction = number(0, 1, "a number from 0 to 1")
)

// maxSafe is the largest integer that every JSON implementation reads
// exactly, and the largest that the official client takes.
const maxSafe = 1<<53 - 1

// whole is the shape of a number without a fraction, in any notation, between
// lowest and maxSafe.
func whole(lowest int64, what string) shape {
	return func(v JSON) *ShapeError {
		if i, ok := integral(v); !ok || i < lowest || i > maxSafe {
			return expected(what)
		}
		return nil
	}
}

var (
	integer = whole(-maxSafe, "an integer between -(2^53-1) and 2^53-1")
	count   = whole(0, "an integer between 0 and 2^53-1")
)

// integral returns the value of a number that is an integer, in any notation.
// It reports false for a number with a fraction, and for an integer that no
// int64 holds, or that is written with a point or an exponent and lies beyond
// maxSafe.
func integral(v JSON) (int64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	if i, err := strconv.ParseInt(v.text, 10, 64); err == nil {
		return i, true
	}
	f, err := strconv.ParseFloat(v.text, 64)
	if err != nil || f != math.Trunc(f) || math.Abs(f) > maxSafe {
		return 0, false
	}
	return int64(f), true
}

// fileURI is the shape of a root's uri.
func fileURI(v JSON) *ShapeError {
	if s, _ := v.Text(); !strings.HasPrefix(s, "file://") {
		return expected("a URI that starts with file://")
	}
	return nil
}

// webURL is the shape of a URL that a user can be sent to.
func webURL(v JSON) *ShapeError {
	s, _ := v.Text()
	u, err := url.Parse(s)
	if err != nil || strings.ContainsFunc(s, notInURL) || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
		return expected("an http or https URL with a host and without user information")
	}
	if port := u.Port(); port != "" {
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return expected("a URL with a port up to 65535")
		}
	}
	return nil
}

// notInURL reports whether RFC 3986 gives the character no place in a URI.
// Browsers read some of these, such as a backslash, in ways of their own.
func notInURL(r rune) bool {
	return r <= ' ' || r >= 0x7F || strings.ContainsRune("\"<>\\^`{|}", r)
}

// base64Text is the shape of Base64 data, as the forgiving decoder of the
// WHATWG takes it.
func base64Text(v JSON) *ShapeError {
	s, _ := v.Text()
	var count [base64Kinds]int
	for i := range len(s) {
		kind := base64Kind[s[i]]
		if count[kind]++; kind == base64Digit && count[base64Padding] > 0 {
			return expected("Base64 data with the padding at its end")
		}
	}
	digits, padding := count[base64Digit], count[base64Padding]
	if v.Kind() != String || count[base64Other] > 0 || digits%4 == 1 || padding > 2 || padding > 0 && (digits+padding)%4 != 0 {
		return expected("Base64 data")
	}
	return nil
}

// The kinds of bytes in Base64 data.
const (
	base64Other = iota
	base64Digit
	base64Padding
	base64Space
	base64Kinds
)

var base64Kind = func() (kinds [256]byte) {
	const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
	for kind, bytes := range map[byte]string{base64Digit: digits, base64Padding: "=", base64Space: " \t\n\f\r"} {
		for _, b := range []byte(bytes) {
			kinds[b] = kind
		}
	}
	return kinds
}()

// timestamp is the shape of an RFC 3339 time. The package time knows the
// calendar, but not how strict the RFC is about the form.
func timestamp(v JSON) *ShapeError {
	s, _ := v.Text()
	if _, err := time.Parse(time.RFC3339, s); err != nil || !rfc3339.MatchString(s) {
		return expected("an RFC 3339 time")
	}
	return nil
}

var rfc3339 = regexp.MustCompile(`^[0-9-]{10}T[0-9:]{8}(\.[0-9]+)?(Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9])$`)
