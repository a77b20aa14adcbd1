package wire

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// A FormRequest asks the user to fill in a form (elicitation.mdx, "Form Mode
// Elicitation Requests"). The answer is an [ElicitResult]. A form must not ask
// for passwords, keys or other secrets: a [URLRequest] can.
type FormRequest struct {
	Message string  // why the user is asked; required
	Fields  []Field // in the order in which they are to be shown
}

// A Field is one entry of a form. With a name alone it is an optional line of
// text.
type Field struct {
	Name        string      // of the answer's member; required
	Title       string      // what the user sees in place of Name
	Description string      // more words for the user
	Required    bool        // whether the user must fill it in
	Schema      FieldSchema // what it takes; nil is a StringSchema{}
}

// A FieldSchema says which values a field of a form takes. It is one of
// [StringSchema], [NumberSchema], [IntegerSchema], [BooleanSchema],
// [SingleSelectSchema] and [MultiSelectSchema].
type FieldSchema interface {
	// build appends the schema's members, or reports why they make no sense.
	build(*builder) error
	// value is the shape of the values that the field takes.
	value() shape
}

// JSON returns the request. It refuses a form that nobody could fill in, such
// as one with two fields of one name, or a default that the field does not
// take. The error names the field.
func (r FormRequest) JSON() (JSON, error) {
	if r.Message == "" {
		return JSON{}, errors.New("wire: form: the message is empty")
	}
	var properties builder
	var required []string
	names := make(map[string]bool)
	for i, f := range r.Fields {
		if f.Name == "" || !utf8.ValidString(f.Name) {
			return JSON{}, fmt.Errorf("wire: form: field %d: the name is empty or no text", i)
		}
		if names[f.Name] {
			return JSON{}, fmt.Errorf("wire: form: two fields are named %.64q", f.Name)
		}
		names[f.Name] = true
		var schema builder
		if err := f.schema().build(&schema); err != nil {
			return JSON{}, fmt.Errorf("wire: form: field %.64q: %w", f.Name, err)
		}
		schema.text("title", f.Title)
		schema.text("description", f.Description)
		properties.add(f.Name, schema.object())
		if f.Required {
			required = append(required, f.Name)
		}
	}
	var form builder
	form.text("type", "object")
	form.add("properties", properties.object())
	if required != nil {
		form.add("required", textArray(required))
	}
	var params builder
	params.text("mode", "form")
	params.text("message", r.Message)
	params.add("requestedSchema", form.object())
	return newRequest(MethodElicit, &params)
}

// Check compares an accepted answer with the form: every required field is
// there, and each field's value is one that it takes. Members that are no
// fields of the form are not looked at, and neither is an answer that the user
// declined or cancelled. It returns nil or a [*ShapeError].
//
// Nothing else compares the two: clients should, but a server is told to
// check again (elicitation.mdx, "Form Mode Security").
func (r FormRequest) Check(answer ElicitResult) error {
	if !answer.Accepted() {
		return nil
	}
	var fields []field
	for _, f := range r.Fields {
		fields = append(fields, field{f.Name, f.Required, f.schema().value()})
	}
	content := answer.Content()
	if content.IsZero() {
		content = JSON{"{}"}
	}
	if err := object(fields...)(content); err != nil {
		return err.under("content")
	}
	return nil
}

func (f Field) schema() FieldSchema {
	if f.Schema == nil {
		return StringSchema{}
	}
	return f.Schema
}

// A Range bounds a number, the length of a text or the number of choices. The
// zero Range has no bounds. The bounds themselves lie within.
type Range struct {
	min, max       float64
	hasMin, hasMax bool
}

// AtLeast returns the range without an upper bound.
func AtLeast(min float64) Range { return Range{min: min, hasMin: true} }

// AtMost returns the range without a lower bound.
func AtMost(max float64) Range { return Range{max: max, hasMax: true} }

// Between returns the range from min to max.
func Between(min, max float64) Range { return Range{min, max, true, true} }

func (r Range) holds(f float64) bool {
	return (!r.hasMin || f >= r.min) && (!r.hasMax || f <= r.max)
}

// String describes the range in words that follow what it bounds.
func (r Range) String() string {
	lowest, highest := strconv.FormatFloat(r.min, 'f', -1, 64), strconv.FormatFloat(r.max, 'f', -1, 64)
	switch {
	case r.hasMin && r.hasMax:
		return "from " + lowest + " to " + highest
	case r.hasMin:
		return "of at least " + lowest
	case r.hasMax:
		return "of at most " + highest
	}
	return "of any size"
}

// build appends the bounds under the names that a schema has for them. A
// count is a whole number and not negative.
func (r Range) build(b *builder, minName, maxName string, whole, count bool) error {
	for _, bound := range [...]float64{r.min, r.max} {
		switch {
		case math.IsNaN(bound) || math.IsInf(bound, 0):
			return errors.New("a bound is not finite")
		case whole && (bound != math.Trunc(bound) || math.Abs(bound) > maxSafe):
			return errors.New("a bound is not a whole number up to 2^53-1")
		case count && bound < 0:
			return errors.New("a bound is negative")
		}
	}
	if r.hasMin && r.hasMax && r.min > r.max {
		return errors.New("the lower bound is above the upper one")
	}
	if r.hasMin {
		b.add(minName, floatJSON(r.min))
	}
	if r.hasMax {
		b.add(maxName, floatJSON(r.max))
	}
	return nil
}

// A Format is what the text of a [StringSchema] must be.
type Format string

// The formats that a form can ask for.
const (
	FormatEmail    Format = "email"
	FormatURI      Format = "uri"
	FormatDate     Format = "date"      // such as 2026-07-28
	FormatDateTime Format = "date-time" // RFC 3339
)

// StringSchema is a field for a text.
type StringSchema struct {
	Length  Range // in characters
	Format  Format
	Default string // none if empty
}

func (s StringSchema) build(b *builder) error {
	b.text("type", "string")
	if err := s.Length.build(b, "minLength", "maxLength", true, true); err != nil {
		return err
	}
	switch s.Format {
	case "", FormatEmail, FormatURI, FormatDate, FormatDateTime:
		b.text("format", string(s.Format))
	default:
		return errors.New("the format is not one of email, uri, date, date-time")
	}
	if s.Default == "" {
		return nil
	}
	value := textJSON(s.Default)
	b.add("default", value)
	return checkDefault(s, value)
}

func (s StringSchema) value() shape {
	return func(v JSON) *ShapeError {
		t, ok := v.Text()
		switch {
		case !ok:
			return expected("a string")
		case !s.Length.holds(float64(utf8.RuneCountInString(t))):
			return expected("a string with a length " + s.Length.String())
		case !s.Format.holds(t):
			return expected("a string in the format " + s.Format.describe())
		}
		return nil
	}
}

func (f Format) describe() string {
	switch f {
	case FormatDate:
		return "date, such as 2026-07-28"
	case FormatDateTime:
		return "date-time, such as 2026-07-28T12:00:00Z"
	}
	return string(f)
}

// holds is lenient where the standards behind a format are wide: what it
// refuses cannot be meant.
func (f Format) holds(s string) bool {
	switch f {
	case FormatEmail:
		at := strings.LastIndexByte(s, '@')
		return at > 0 && at < len(s)-1 && !strings.ContainsAny(s, " \t\r\n")
	case FormatURI:
		scheme, rest, found := strings.Cut(s, ":")
		return found && scheme != "" && rest != "" && !strings.ContainsAny(s, " \t\r\n")
	case FormatDate:
		_, err := time.Parse(time.DateOnly, s)
		return err == nil
	case FormatDateTime:
		return timestamp(textJSON(s)) == nil
	}
	return true
}

// NumberSchema is a field for a number, with or without a fraction.
type NumberSchema struct {
	Range   Range
	Default *float64 // none if nil
}

func (s NumberSchema) build(b *builder) error {
	b.text("type", "number")
	if err := s.Range.build(b, "minimum", "maximum", false, false); err != nil {
		return err
	}
	if s.Default == nil {
		return nil
	}
	if math.IsNaN(*s.Default) || math.IsInf(*s.Default, 0) {
		return errors.New("the default is not finite")
	}
	value := floatJSON(*s.Default)
	b.add("default", value)
	return checkDefault(s, value)
}

func (s NumberSchema) value() shape {
	return func(v JSON) *ShapeError {
		if f, ok := float(v); !ok || !s.Range.holds(f) {
			return expected("a number " + s.Range.String())
		}
		return nil
	}
}

// IntegerSchema is a field for a whole number. Its bounds are whole, too.
type IntegerSchema struct {
	Range   Range
	Default *int64 // none if nil
}

func (s IntegerSchema) build(b *builder) error {
	b.text("type", "integer")
	if err := s.Range.build(b, "minimum", "maximum", true, false); err != nil {
		return err
	}
	if s.Default == nil {
		return nil
	}
	if *s.Default < -maxSafe || *s.Default > maxSafe {
		return errors.New("the default is beyond 2^53-1")
	}
	value := JSON{strconv.FormatInt(*s.Default, 10)}
	b.add("default", value)
	return checkDefault(s, value)
}

func (s IntegerSchema) value() shape {
	return func(v JSON) *ShapeError {
		if i, ok := integral(v); !ok || !s.Range.holds(float64(i)) {
			return expected("an integer " + s.Range.String())
		}
		return nil
	}
}

// BooleanSchema is a field for yes or no.
type BooleanSchema struct {
	Default bool // no default if false
}

func (s BooleanSchema) build(b *builder) error {
	b.text("type", "boolean")
	if s.Default {
		b.add("default", JSON{"true"})
	}
	return nil
}

func (s BooleanSchema) value() shape {
	return func(v JSON) *ShapeError {
		if v.Kind() != Bool {
			return expected("true or false")
		}
		return nil
	}
}

// An Option is one of the values that a selection offers.
type Option struct {
	Value string // what the answer holds
	Title string // what the user sees; Value if empty
}

// Options returns options whose titles are their values.
func Options(values ...string) []Option {
	options := make([]Option, len(values))
	for i, v := range values {
		options[i].Value = v
	}
	return options
}

// SingleSelectSchema is a field for one of some options.
type SingleSelectSchema struct {
	Options []Option // at least one
	Default string   // one of the values; none if empty
}

func (s SingleSelectSchema) build(b *builder) error {
	b.text("type", "string")
	if err := buildOptions(b, "oneOf", s.Options); err != nil {
		return err
	}
	if s.Default == "" {
		return nil
	}
	value := textJSON(s.Default)
	b.add("default", value)
	return checkDefault(s, value)
}

func (s SingleSelectSchema) value() shape { return optionShape(s.Options) }

// MultiSelectSchema is a field for any number of some options.
type MultiSelectSchema struct {
	Options []Option // at least one
	Items   Range    // how many the user may choose
	Default []string // some of the values; none if empty
}

func (s MultiSelectSchema) build(b *builder) error {
	b.text("type", "array")
	if err := s.Items.build(b, "minItems", "maxItems", true, true); err != nil {
		return err
	}
	if s.Items.hasMin && s.Items.min > float64(len(s.Options)) {
		return errors.New("there are fewer options than must be chosen")
	}
	var items builder
	if !titled(s.Options) {
		items.text("type", "string")
	}
	if err := buildOptions(&items, "anyOf", s.Options); err != nil {
		return err
	}
	b.add("items", items.object())
	if len(s.Default) == 0 {
		return nil
	}
	value := textArray(s.Default)
	b.add("default", value)
	return checkDefault(s, value)
}

func (s MultiSelectSchema) value() shape {
	elements := array(optionShape(s.Options))
	return func(v JSON) *ShapeError {
		if err := elements(v); err != nil {
			return err
		}
		n := 0
		for range v.Elements() {
			n++
		}
		if !s.Items.holds(float64(n)) {
			return expected("an array with a length " + s.Items.String())
		}
		return nil
	}
}

// buildOptions appends an enum or, if there are titles, the titled options.
func buildOptions(b *builder, titledName string, options []Option) error {
	if len(options) == 0 {
		return errors.New("there are no options")
	}
	var list builder
	seen := make(map[string]bool)
	for i, o := range options {
		if seen[o.Value] || !utf8.ValidString(o.Value) {
			return fmt.Errorf("option %d has the value of another, or one that is no text", i)
		}
		seen[o.Value] = true
		if !titled(options) {
			list.element(textJSON(o.Value))
			continue
		}
		if o.Title == "" {
			o.Title = o.Value
		}
		var option builder
		option.add("const", textJSON(o.Value))
		option.add("title", textJSON(o.Title))
		list.element(option.object())
	}
	if titled(options) {
		b.add(titledName, list.array())
	} else {
		b.add("enum", list.array())
	}
	return nil
}

func titled(options []Option) bool {
	return slices.ContainsFunc(options, func(o Option) bool { return o.Title != "" })
}

func optionShape(options []Option) shape {
	return func(v JSON) *ShapeError {
		s, ok := v.Text()
		if !ok || !slices.ContainsFunc(options, func(o Option) bool { return o.Value == s }) {
			return expected(listOptions(options))
		}
		return nil
	}
}

// listOptions names the options for an error message, as many as a few hundred
// bytes hold.
func listOptions(options []Option) string {
	if len(options) == 0 {
		return "an option, but there are none"
	}
	var b strings.Builder
	b.WriteString("one of ")
	for i, o := range options {
		value := fmt.Sprintf("%.64q", o.Value)
		if i > 0 && b.Len()+len(value) > 400 {
			fmt.Fprintf(&b, " and %d more", len(options)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(value)
	}
	return b.String()
}

// checkDefault checks that a field takes its own default.
func checkDefault(s FieldSchema, value JSON) error {
	if err := s.value()(value); err != nil {
		return errors.New("the default is not " + err.Expected)
	}
	return nil
}
