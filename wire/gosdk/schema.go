package gosdk

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"reflect"
	"strconv"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// schema is the schema of a tool's arguments or of its output.
type schema struct {
	resolved *jsonschema.Resolved
	defaults bool // it may have some
}

// newSchema returns the schema that a tool declares, or that of the Go type t
// if it declares none, and what the tool has to declare then. A pointer has the
// schema of what it points to. It is what [mcp.AddTool] does.
func newSchema(declared any, t reflect.Type) (*schema, any, error) {
	var root *jsonschema.Schema
	var err error
	switch d := declared.(type) {
	case nil:
		if t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		root, err = jsonschema.ForType(t, &jsonschema.ForOptions{})
		declared = root
	case *jsonschema.Schema:
		root = d
	default:
		var text []byte
		if text, err = json.Marshal(d); err == nil {
			err = json.Unmarshal(text, &root)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	if root == nil {
		return nil, nil, errors.New("the schema is nil")
	}
	resolved, err := root.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		return nil, nil, err
	}
	text, err := json.Marshal(root)
	if err != nil {
		return nil, nil, err
	}
	defaults := bytes.Contains(text, []byte(`"default"`))
	if defaults {
		if err := checkDefaults(text); err != nil {
			return nil, nil, err
		}
	}
	return &schema{resolved: resolved, defaults: defaults}, declared, nil
}

// apply adds the schema's defaults to a value and validates it. Numbers keep
// every digit. Whole numbers in another notation, such as 1e3, get the one that
// Go's integers are decoded from. JSON null is taken for an empty object where
// the schema wants an object.
func (s *schema) apply(v wire.JSON) (wire.JSON, error) {
	var tree any
	if err := v.Decode(&tree); err != nil {
		return wire.JSON{}, err
	}
	changed := false
	if tree == nil && s.resolved.Schema().Type == "object" {
		tree, changed = map[string]any{}, true
	}
	if _, ok := tree.(map[string]any); ok && s.defaults {
		if err := s.resolved.ApplyDefaults(&tree); err != nil {
			return wire.JSON{}, fmt.Errorf("applying schema defaults: %w", err)
		}
		changed = true
	}
	tree = mapNumbers(tree, func(n json.Number) any {
		plain := plainNotation(n)
		changed = changed || plain != n
		return plain
	})
	if changed {
		var err error
		if v, err = wire.Marshal(tree); err != nil {
			return wire.JSON{}, err
		}
	}
	lost := false
	tree = mapNumbers(tree, func(n json.Number) any {
		lost = lost || isLostFraction(n)
		return numeric(n)
	})
	if err := s.resolved.Validate(tree); err != nil {
		return wire.JSON{}, &schemaError{err}
	}
	if !lost {
		return v, nil
	}
	// A fraction whose float64 is whole is a fraction all the same: it must fit
	// as the value that is decoded, and as a number that is not whole.
	if err := v.Decode(&tree); err != nil {
		return wire.JSON{}, err
	}
	tree = mapNumbers(tree, func(n json.Number) any {
		if f, ok := numeric(n).(float64); ok && isLostFraction(n) {
			return math.Nextafter(f, f+1)
		}
		return numeric(n)
	})
	if err := s.resolved.Validate(tree); err != nil && strings.HasSuffix((&schemaError{err}).place(), "type") {
		return wire.JSON{}, &schemaError{err}
	}
	return v, nil
}

// schemaError reports a value that does not fit its schema. Its text, which is
// the validator's, may quote the value.
type schemaError struct{ error }

// place says where in the schema the value has failed, and by which keyword,
// without anything of the value.
func (e *schemaError) place() string {
	err, where := e.error, "root"
	for inner := errors.Unwrap(err); inner != nil; err, inner = inner, errors.Unwrap(inner) {
		where = strings.TrimPrefix(strings.TrimSuffix(err.Error(), ": "+inner.Error()), "validating ")
	}
	keyword, rest, ok := strings.Cut(err.Error(), ":")
	switch {
	case ok && keyword == "required":
		return where + ": required:" + rest // the names are the schema's
	case ok && !strings.ContainsAny(keyword, " \""):
		return where + ": " + keyword
	}
	return where + ": additionalProperties"
}

// mapNumbers replaces each number in a decoded value, in place where it can.
func mapNumbers(v any, f func(json.Number) any) any {
	switch v := v.(type) {
	case json.Number:
		return f(v)
	case map[string]any:
		for name, member := range v {
			v[name] = mapNumbers(member, f)
		}
	case []any:
		for i, element := range v {
			v[i] = mapNumbers(element, f)
		}
	}
	return v
}

// plainNotation returns a whole number of up to 64 bits as its digits, and any
// other number as it is.
func plainNotation(n json.Number) json.Number {
	if !strings.ContainsAny(n.String(), ".eE") {
		return n
	}
	if i := integer(n); i != nil && i.BitLen() <= 64 {
		return json.Number(i.String())
	}
	return n
}

// maxDigits is how many digits the whole numbers of a float64 have at most.
const maxDigits = 309

// integer returns the value of a number that is whole, or nil. It takes time
// linear in the number's text. A number beyond a float64 has no value here.
func integer(n json.Number) *big.Int {
	mantissa, exponent, _ := strings.Cut(strings.ToLower(n.String()), "e")
	whole, fraction, _ := strings.Cut(strings.TrimPrefix(mantissa, "-"), ".")
	all := whole + fraction
	digits := strings.TrimRight(all, "0") // the value is these times a power of ten
	if digits == "" {
		return new(big.Int)
	}
	power := len(all) - len(digits) - len(fraction)
	if exponent != "" {
		e, err := strconv.Atoi(exponent)
		if err != nil || e > maxDigits+len(all) {
			return nil
		}
		power += e
	}
	digits = strings.TrimLeft(digits, "0")
	if power < 0 || len(digits)+power > maxDigits {
		return nil
	}
	if mantissa[0] == '-' {
		digits = "-" + digits
	}
	i, _ := new(big.Int).SetString(digits+strings.Repeat("0", power), 10)
	return i
}

// numeric returns a number in a form that the validator knows, the one that Go
// decodes it to; to the validator, a [json.Number] is a string.
func numeric(n json.Number) any {
	text := n.String()
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return i
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return u
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return math.Copysign(math.MaxFloat64, f) // of the right sign and beyond every other
	}
	return f
}

// isLostFraction reports whether a number is a fraction whose float64 is whole.
func isLostFraction(n json.Number) bool {
	f, err := n.Float64()
	return err == nil && f == math.Trunc(f) && math.Abs(f) < 1<<53 && integer(n) == nil
}

// checkDefaults refuses a schema with a default that would lose digits on its
// way through a float64.
func checkDefaults(text []byte) error {
	schema, err := wire.ParseJSON(text)
	if err != nil {
		return err
	}
	var tree any
	if err := schema.Decode(&tree); err != nil {
		return err
	}
	var walk func(v any) error
	walk = func(v any) (err error) {
		members, _ := v.(map[string]any)
		elements, _ := v.([]any)
		for name, member := range members {
			if name == "default" {
				mapNumbers(member, func(n json.Number) any {
					if _, exact := answerNumber(n).(float64); !exact {
						err = errors.New("a default has a number that no float64 can hold")
					}
					return n
				})
			}
			elements = append(elements, member)
		}
		for _, element := range elements {
			err = errors.Join(err, walk(element))
		}
		return err
	}
	return walk(tree)
}
