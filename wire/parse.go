package wire

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// A parser validates one JSON text in a single pass. It copies nothing as long as
// the text is in its stored form. The first byte that must go (white space, the
// sign of a negative zero) starts a copy in out.
type parser struct {
	src   string
	pos   int
	depth int

	copied bool   // out holds the stored form of src[:kept]
	out    []byte // see copied
	kept   int    // end of what out covers

	names []string // the decoded member names of the open objects
}

func (p *parser) fail(at int, reason string) error {
	return &SyntaxError{Offset: at, Reason: reason}
}

// drop leaves src[from:to] out of the stored form.
func (p *parser) drop(from, to int) {
	if from == to {
		return
	}
	if !p.copied {
		p.copied, p.out = true, make([]byte, 0, len(p.src))
	}
	p.out = append(p.out, p.src[p.kept:from]...)
	p.kept = to
}

func (p *parser) text() string {
	if !p.copied {
		return p.src
	}
	return string(append(p.out, p.src[p.kept:]...))
}

func (p *parser) space() {
	start := p.pos
	for p.pos < len(p.src) {
		switch p.src[p.pos] {
		case ' ', '\t', '\n', '\r':
			p.pos++
			continue
		}
		break
	}
	p.drop(start, p.pos)
}

func (p *parser) peek() byte {
	if p.pos < len(p.src) {
		return p.src[p.pos]
	}
	return 0
}

func (p *parser) document() error {
	p.space()
	if err := p.value(); err != nil {
		return err
	}
	if p.space(); p.pos < len(p.src) {
		return p.fail(p.pos, "more text after the value")
	}
	return nil
}

func (p *parser) value() error {
	if p.pos >= len(p.src) {
		return p.fail(p.pos, "the text ends where a value is expected")
	}
	switch c := p.src[p.pos]; {
	case c == '{':
		return p.object()
	case c == '[':
		return p.array()
	case c == '"':
		_, err := p.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return p.number()
	default:
		for _, lit := range [...]string{"true", "false", "null"} {
			if strings.HasPrefix(p.src[p.pos:], lit) {
				p.pos += len(lit)
				return nil
			}
		}
		return p.fail(p.pos, "a value is expected")
	}
}

func (p *parser) open() error {
	if p.depth == MaxDepth {
		return p.fail(p.pos, "nested too deep")
	}
	p.depth++
	p.pos++
	p.space()
	return nil
}

func (p *parser) object() error {
	if err := p.open(); err != nil {
		return err
	}
	first := len(p.names)
	var seen map[string]struct{} // replaces the linear search in big objects
	for more := p.peek() != '}'; more; {
		at := p.pos
		if p.peek() != '"' {
			return p.fail(at, "a member name is expected")
		}
		lit, err := p.str()
		if err != nil {
			return err
		}
		name := nameKey(lit)
		if seen == nil {
			for _, n := range p.names[first:] {
				if n == name {
					return p.fail(at, "a member name occurs twice in one object")
				}
			}
			p.names = append(p.names, name)
			if len(p.names)-first > 16 {
				seen = make(map[string]struct{}, 64)
				for _, n := range p.names[first:] {
					seen[n] = struct{}{}
				}
			}
		} else {
			if _, dup := seen[name]; dup {
				return p.fail(at, "a member name occurs twice in one object")
			}
			seen[name] = struct{}{}
		}
		if p.space(); p.peek() != ':' {
			return p.fail(p.pos, "a colon is expected after a member name")
		}
		p.pos++
		p.space()
		if err := p.value(); err != nil {
			return err
		}
		if more, err = p.next('}', "a comma or the end of the object is expected"); err != nil {
			return err
		}
	}
	p.names = p.names[:first]
	p.depth--
	p.pos++
	return nil
}

func (p *parser) array() error {
	if err := p.open(); err != nil {
		return err
	}
	for more := p.peek() != ']'; more; {
		err := p.value()
		if err != nil {
			return err
		}
		if more, err = p.next(']', "a comma or the end of the array is expected"); err != nil {
			return err
		}
	}
	p.depth--
	p.pos++
	return nil
}

// next steps over the comma before another element, or stands at closer.
func (p *parser) next(closer byte, reason string) (more bool, err error) {
	p.space()
	switch p.peek() {
	case ',':
		p.pos++
		p.space()
		return true, nil
	case closer:
		return false, nil
	}
	return false, p.fail(p.pos, reason)
}

func (p *parser) number() error {
	start := p.pos
	if p.peek() == '-' {
		p.pos++
	}
	zero := true
	digits := func() bool {
		from := p.pos
		for ; p.pos < len(p.src) && p.src[p.pos] >= '0' && p.src[p.pos] <= '9'; p.pos++ {
			zero = zero && p.src[p.pos] == '0'
		}
		return p.pos > from
	}
	if p.peek() == '0' {
		p.pos++
	} else if !digits() {
		return p.fail(p.pos, "a digit is expected")
	}
	if p.peek() == '.' {
		p.pos++
		if !digits() {
			return p.fail(p.pos, "a digit is expected after the decimal point")
		}
	}
	mantissaZero := zero
	if c := p.peek(); c == 'e' || c == 'E' {
		p.pos++
		if c := p.peek(); c == '+' || c == '-' {
			p.pos++
		}
		if !digits() {
			return p.fail(p.pos, "a digit is expected in the exponent")
		}
	}
	if mantissaZero && p.src[start] == '-' {
		p.drop(start, start+1)
	}
	return nil
}

// str steps over a string and returns its literal.
func (p *parser) str() (string, error) {
	start := p.pos
	for p.pos++; p.pos < len(p.src); {
		switch c := p.src[p.pos]; {
		case c == '"':
			p.pos++
			return p.src[start:p.pos], nil
		case c == '\\':
			if err := p.escape(); err != nil {
				return "", err
			}
		case c < 0x20:
			return "", p.fail(p.pos, "a control character in a string")
		case c < utf8.RuneSelf:
			p.pos++
		default:
			r, size := utf8.DecodeRuneInString(p.src[p.pos:])
			if r == utf8.RuneError && size == 1 {
				return "", p.fail(p.pos, "invalid UTF-8")
			}
			p.pos += size
		}
	}
	return "", p.fail(p.pos, "the text ends inside a string")
}

func (p *parser) escape() error {
	rest := p.src[p.pos+1:]
	if rest == "" {
		return p.fail(p.pos, "the text ends inside a string")
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		p.pos += 2
		return nil
	case 'u':
		if len(rest) < 5 {
			return p.fail(p.pos, "an incomplete escape sequence")
		}
		for _, c := range []byte(rest[1:5]) {
			if !(c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F') {
				return p.fail(p.pos, "an escape sequence with a wrong digit")
			}
		}
		p.pos += 6
		return nil
	}
	return p.fail(p.pos, "an unknown escape sequence")
}

// nameKey decodes a member name for comparison. Unpaired surrogates stay
// distinct: each becomes the three bytes that UTF-8 would give it, which no
// valid text contains.
func nameKey(lit string) string {
	if name, ok := unquote(lit); ok {
		return name
	}
	s := lit[1 : len(lit)-1]
	var b []byte
	for s != "" {
		if s[0] != '\\' {
			b = append(b, s[0])
			s = s[1:]
			continue
		}
		var r rune
		r, s = unescape(s)
		if utf16.IsSurrogate(r) {
			b = append(b, 0xE0|byte(r>>12), 0x80|byte(r>>6)&0xBF, 0x80|byte(r)&0xBF)
		} else {
			b = utf8.AppendRune(b, r)
		}
	}
	return string(b)
}
