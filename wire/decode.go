package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// Decode stores the value in the Go value that v points to, as [json.Unmarshal]
// does, with two differences:
//
//   - A number that is decoded into an interface keeps its digits, as a
//     [json.Number].
//   - The names of struct fields are compared exactly. A member whose name
//     differs from that of a field in case is unknown, so it is ignored. Two
//     members whose names differ only in case are an error in an object that is
//     decoded into a struct, unless the struct has a field for each.
//
// An error may name a place in the value. It never quotes the value.
func (j JSON) Decode(v any) error {
	if j.IsZero() {
		return errors.New("wire: decode: the value is absent")
	}
	text, err := exactNames(j.text, v)
	if err != nil {
		return fmt.Errorf("wire: decode: %w", err)
	}
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(v); err != nil {
		return fmt.Errorf("wire: decode: %w", redact(err, v))
	}
	return nil
}

// redact keeps what encoding/json says of types and drops what it quotes of the
// document, such as the path to the place, which may lead through the keys of a
// map. An error of a type that decodes itself, such as time.Time, may quote too,
// so redact drops it.
func redact(err error, v any) error {
	var typeErr *json.UnmarshalTypeError
	var misuse *json.InvalidUnmarshalError
	switch {
	case errors.As(err, &typeErr):
		what, _, _ := strings.Cut(typeErr.Value, " ") // "number 12" quotes the document
		return fmt.Errorf("a %s does not fit Go type %v", what, typeErr.Type)
	case errors.As(err, &misuse):
		return misuse
	default:
		return fmt.Errorf("a value does not fit into %T", v)
	}
}

// exactNames returns the compact text of a valid value without the members
// that encoding/json would store in a struct field with another name. That is
// the text itself, not copied, if there are none.
func exactNames(text string, v any) (string, error) {
	pointer := reflect.ValueOf(v)
	if pointer.Kind() != reflect.Pointer { // encoding/json reports it
		return text, nil
	}
	m := nameMatcher{text: text}
	if _, err := m.value(0, targetOf(pointer.Type()), pointer); err != nil {
		return "", err
	}
	if m.cuts == nil {
		return text, nil
	}
	var kept strings.Builder
	at := 0
	for _, c := range m.cuts {
		kept.WriteString(text[at:c.from])
		at = c.to
	}
	kept.WriteString(text[at:])
	return kept.String(), nil
}

// A nameMatcher goes through a text together with the Go value that it will be
// decoded into, and finds the members to leave out. It skips every part that
// cannot reach a struct.
type nameMatcher struct {
	text string
	cuts []span // in order
}

type span struct{ from, to int }

// value goes through the value at text[i] and returns its end. v is invalid if
// decoding will create the Go value.
func (m *nameMatcher) value(i int, t *target, v reflect.Value) (end int, err *caseError) {
	t, v = t.follow(v)
	if !t.structs && !(t.interfaces && v.IsValid()) {
		return skipValue(m.text, i), nil
	}
	switch {
	case m.text[i] == '{' && t.kind == reflect.Struct:
		return m.object(i, t, v)
	case m.text[i] == '{' && t.kind == reflect.Map:
		return m.mapping(i, t)
	case m.text[i] == '[' && t.elem != nil && t.kind != reflect.Map:
		return m.array(i, t, v)
	}
	return skipValue(m.text, i), nil // null, or what encoding/json will refuse
}

// follow follows the pointers and interfaces in v, as encoding/json does.
func (t *target) follow(v reflect.Value) (*target, reflect.Value) {
	for range MaxDepth { // an interface may hold a pointer to itself
		for n := t.pointers; n > 0 && v.IsValid(); n-- {
			v = v.Elem()
		}
		if t.kind != reflect.Interface {
			return t, v
		}
		if !v.IsValid() || v.IsNil() || v.Elem().Kind() != reflect.Pointer || v.Elem().IsNil() {
			break
		}
		v = v.Elem()
		t = targetOf(v.Type())
	}
	return &nowhere, reflect.Value{}
}

// object goes through an object that is decoded into a struct.
func (m *nameMatcher) object(i int, t *target, v reflect.Value) (end int, err *caseError) {
	if !t.interfaces {
		v = reflect.Value{}
	}
	// seen says which members there were, for each set of field names that
	// differ only in case.
	const exact, other = 1, 2
	var room [64]byte
	seen := room[:]
	if n := len(t.fields.byFold); n > len(seen) {
		seen = make([]byte, n)
	}
	var unknown map[string]struct{} // the folded names of members without a field

	i++
	kept, cut := i, false // the end of the last member that stays, and whether one follows it that does not
	for m.text[i] != '}' {
		start := i
		i = closingQuote(m.text, i) + 1
		name, isText := unquote(m.text[start:i])
		i++ // the colon
		if n, ok := t.fields.byName[name]; ok && isText {
			f := &t.fields.list[n]
			if seen[f.fold] == other {
				return 0, new(caseError).under(name)
			}
			seen[f.fold] = exact
			if i, err = m.value(i, f.target, fieldOf(v, f.index)); err != nil {
				return 0, err.under(name)
			}
			kept, cut = i, false
			if m.text[i] == ',' {
				i++
			}
			continue
		}
		i = skipValue(m.text, i)
		last := m.text[i] != ','
		var folded []byte
		var foldRoom [64]byte
		if isText {
			folded = appendFold(foldRoom[:0], name)
		}
		fold, ok := t.fields.byFold[string(folded)]
		switch {
		case !isText: // no field has such a name
			kept, cut = i, false
		case ok:
			if seen[fold] != 0 {
				return 0, new(caseError).under(t.fields.nameOf(fold))
			}
			seen[fold] = other
			if cut = true; !last {
				m.cuts = append(m.cuts, span{start, i + 1})
			}
		default:
			if _, twice := unknown[string(folded)]; twice {
				return 0, new(caseError)
			}
			if unknown == nil {
				unknown = make(map[string]struct{})
			}
			unknown[string(folded)] = struct{}{}
			kept, cut = i, false
		}
		if !last {
			i++
		}
	}
	if cut { // the comma before goes, too
		for n := len(m.cuts); n > 0 && m.cuts[n-1].from >= kept; n-- {
			m.cuts = m.cuts[:n-1]
		}
		m.cuts = append(m.cuts, span{kept, i})
	}
	return i + 1, nil
}

// nameOf returns the name of a field with this number in byFold.
func (s *structFields) nameOf(fold int) string {
	for _, f := range s.list {
		if f.fold == fold {
			return f.name
		}
	}
	return ""
}

// fieldOf returns a field of a struct. It is invalid if the struct is, or if
// it lies behind a nil pointer.
func fieldOf(v reflect.Value, index []int) reflect.Value {
	for _, i := range index {
		if v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		if !v.IsValid() {
			break
		}
		v = v.Field(i)
	}
	return v
}

// mapping goes through an object that is decoded into a map. Its names are
// data, and its elements are new.
func (m *nameMatcher) mapping(i int, t *target) (end int, err *caseError) {
	for i++; m.text[i] != '}'; {
		i = closingQuote(m.text, i) + 2
		if i, err = m.value(i, t.elem, reflect.Value{}); err != nil {
			return 0, err.under("*")
		}
		if m.text[i] == ',' {
			i++
		}
	}
	return i + 1, nil
}

// array goes through an array. encoding/json decodes into the elements that
// are there already, up to the capacity of a slice.
func (m *nameMatcher) array(i int, t *target, v reflect.Value) (end int, err *caseError) {
	if v.Kind() == reflect.Slice {
		v = v.Slice(0, v.Cap())
	}
	i++
	for n := 0; m.text[i] != ']'; n++ {
		var elem reflect.Value
		if v.IsValid() && n < v.Len() {
			elem = v.Index(n)
		}
		if t.kind == reflect.Array && n >= t.length { // ignored
			i = skipValue(m.text, i)
		} else if i, err = m.value(i, t.elem, elem); err != nil {
			return 0, err.under(strconv.Itoa(n))
		}
		if m.text[i] == ',' {
			i++
		}
	}
	return i + 1, nil
}

// A caseError reports two members that differ only in case. The place is a
// JSON pointer of field names and array indices, with a * for the key of a
// map: it quotes nothing of the document.
type caseError struct{ place string }

func (e *caseError) Error() string {
	if e.place == "" {
		return "two members differ only in case"
	}
	return fmt.Sprintf("at %.256q: two members differ only in case", e.place)
}

func (e *caseError) under(name string) *caseError {
	return &caseError{"/" + pointerEscape.Replace(name) + e.place}
}
