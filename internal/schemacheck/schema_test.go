package schemacheck

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// The official schemas: the core protocol's and the extension's.
const (
	core = "core.schema.json"
	ext  = "ext-tasks.schema.json"
)

func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "rapid.checks" })
	if !given {
		if err := flag.Set("rapid.checks", "2000"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// schemas is one of the official files.
type schemas struct {
	compiler *jsonschema.Compiler
	root     map[string]any // the parsed file, for the generator
}

// load reads a schema file, or skips the test.
func load(t *testing.T, name string) *schemas {
	t.Helper()
	dir := os.Getenv("DURABLETASKS_SCHEMA")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "schema")
		if _, err := os.Stat(dir); err != nil {
			t.Skipf("the official schemas are not here: %v (set DURABLETASKS_SCHEMA to their folder)", err)
		}
	}
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	s := &schemas{jsonschema.NewCompiler(), doc.(map[string]any)}
	delete(s.root, "$id") // so that the file's name is its address
	if err := s.compiler.AddResource(name, s.root); err != nil {
		t.Fatal(err)
	}
	return s
}

// validator returns a function that says whether a JSON text is valid by the
// schema at a place in the file.
func (s *schemas) validator(place string) func(text string) error {
	schema, err := s.compiler.Compile(place)
	if err != nil {
		panic(err)
	}
	return func(text string) error {
		value, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(value)
	}
}

// def returns the parsed definition.
func (s *schemas) def(name string) map[string]any {
	return s.root["$defs"].(map[string]any)[name].(map[string]any)
}

// decode parses a JSON text into maps, slices and json.Numbers.
func decode(text string) any {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		panic(err)
	}
	return v
}

func encode(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(text)
}
