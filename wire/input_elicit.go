package wire

// The shapes of elicitation/create.

// elicitParams has the shape of its mode. Without a mode it is a form.
func elicitParams(v JSON) *ShapeError {
	if v.Kind() == Object && v.Get("mode").IsZero() {
		return formParams(v)
	}
	return paramsByMode(v)
}

var paramsByMode = tagged("mode",
	alternative{"form", formParams},
	alternative{"url", object(
		required("message", text),
		required("url", webURL),
	)},
)

var formParams = object(
	required("message", text),
	required("requestedSchema", object(
		required("type", oneOf("object")),
		required("properties", members(fieldSchema)),
		optional("required", distinct),
		optional("$schema", text),
	)),
)

// fieldSchema is the schema of one field of a form: a
// PrimitiveSchemaDefinition. Each keyword is checked wherever it stands.
var fieldSchema = tagged("type",
	alternative{"string", stringSchema},
	alternative{"number", numberSchema},
	alternative{"integer", numberSchema},
	alternative{"boolean", object(
		optional("title", text),
		optional("description", text),
		optional("default", boolean),
	)},
	alternative{"array", object(
		required("items", choices),
		optional("title", text),
		optional("description", text),
		optional("minItems", count),
		optional("maxItems", count),
		optional("default", texts),
	)},
)

func stringSchema(v JSON) *ShapeError {
	if err := stringMembers(v); err != nil {
		return err
	}
	if !v.Get("enumNames").IsZero() && v.Get("enum").IsZero() {
		return expected("an enum in addition to the enumNames")
	}
	return nil
}

var stringMembers = object(
	optional("title", text),
	optional("description", text),
	optional("default", text),
	optional("minLength", count),
	optional("maxLength", count),
	optional("format", oneOf("email", "uri", "date", "date-time")),
	optional("enum", nonEmpty(texts)),
	optional("enumNames", texts),
	optional("oneOf", titledOptions),
)

var numberSchema = object(
	optional("title", text),
	optional("description", text),
	optional("default", finite),
	optional("minimum", finite),
	optional("maximum", finite),
)

// choices describes the elements of a multiple choice: strings of an enum, or
// titled options.
func choices(v JSON) *ShapeError {
	if err := choiceMembers(v); err != nil {
		return err
	}
	switch {
	case !v.Get("anyOf").IsZero():
		return nil
	case v.Get("enum").IsZero():
		return expected("an object with an enum or an anyOf")
	case v.Get("type").IsZero():
		return expected(`a type "string" in addition to the enum`)
	}
	return nil
}

var choiceMembers = object(
	optional("type", oneOf("string")),
	optional("enum", nonEmpty(texts)),
	optional("anyOf", titledOptions),
)

var titledOptions = nonEmpty(array(object(
	required("const", text),
	required("title", text),
)))

// distinct is an array of strings that differ from each other.
func distinct(v JSON) *ShapeError {
	if err := texts(v); err != nil {
		return err
	}
	seen := make(map[string]bool)
	for e := range v.Elements() {
		name := nameKey(e.text)
		if seen[name] {
			return expected("names that occur once")
		}
		seen[name] = true
	}
	return nil
}

var elicitResult = object(
	required("action", oneOf("accept", "decline", "cancel")),
	optional("content", members(formValue)),
)

func formValue(v JSON) *ShapeError {
	switch v.Kind() {
	case String, Number, Bool:
		return nil
	case Array:
		return texts(v)
	default:
		return expected("a string, a number, a boolean or an array of strings")
	}
}
