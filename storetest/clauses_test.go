package storetest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// TestClauses compares the suite's sentences with the contract's, and the checks
// with the clauses.
func TestClauses(t *testing.T) {
	contract := contract(t)
	if len(contract) < 15 {
		t.Fatalf("found %d clauses in the contract, the pattern no longer fits it", len(contract))
	}
	clauses := storetest.Clauses()
	for number, sentence := range contract {
		if got := clauses[number]; got != sentence {
			t.Errorf("%s:\n the suite says %q\n the contract is %q", number, got, sentence)
		}
	}
	for number := range clauses {
		if _, ok := contract[number]; !ok {
			t.Errorf("%s is not in the contract", number)
		}
	}
	checked := make(map[string]int)
	for _, name := range storetest.CheckNames() {
		number, title, _ := strings.Cut(name, "/")
		if _, ok := contract[number]; !ok {
			t.Errorf("check %q is for no clause", name)
		}
		if !regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`).MatchString(title) {
			t.Errorf("check %q: the title is not words joined by hyphens", name)
		}
		checked[name]++
		checked[number]++
		if checked[name] > 1 {
			t.Errorf("check %q occurs twice", name)
		}
	}
	for number := range contract {
		if checked[number] == 0 {
			t.Errorf("no check for %s", number)
		}
	}
}

// contract returns the sentences of the numbered clauses in TaskStore's
// comment, and those of Scan and Watch, without their links.
func contract(t *testing.T) map[string]string {
	file, err := parser.ParseFile(token.NewFileSet(), "../store.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	sentences := make(map[string]string)
	plain := func(text string) string {
		return regexp.MustCompile(`\[([^\]]+)\]`).ReplaceAllString(strings.Join(strings.Fields(text), " "), "$1")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			if len(n.Specs) == 1 {
				if spec, ok := n.Specs[0].(*ast.TypeSpec); ok && spec.Name.Name == "TaskStore" {
					for _, item := range regexp.MustCompile(`(?m)^ *- S`).Split(n.Doc.Text(), -1)[1:] {
						number, sentence, _ := strings.Cut(item, ": ")
						if len(number) == 1 {
							number = "0" + number
						}
						sentences["S"+number] = plain(sentence)
					}
				}
			}
		case *ast.Field:
			if len(n.Names) == 1 && n.Names[0].Name == "Scan" {
				sentences["Scanner"] = plain(n.Doc.Text())
			}
			if len(n.Names) == 1 && n.Names[0].Name == "Watch" {
				sentences["Watcher"] = plain(n.Doc.Text())
			}
		}
		return true
	})
	return sentences
}

// TestDiff changes one field after another. diff must see each, and the full
// record must have each.
func TestDiff(t *testing.T) {
	full := storetest.FullRecord()
	if d := storetest.Diff(full, full.Clone()); d != "" {
		t.Fatalf("a record differs from its clone: %s", d)
	}
	for field := range reflect.TypeFor[durabletasks.Record]().NumField() {
		name := reflect.TypeFor[durabletasks.Record]().Field(field).Name
		changed := full.Clone()
		v := reflect.ValueOf(&changed).Elem().Field(field)
		if name == "Version" {
			v.SetInt(1)
		} else if v.IsZero() {
			t.Errorf("the full record has no %s", name)
		} else {
			v.SetZero()
		}
		if d := storetest.Diff(changed, full); !strings.HasPrefix(d, name+" ") {
			t.Errorf("diff of records that differ in %s: %q", name, d)
		}
	}
	if d := storetest.Diff(durabletasks.Record{
		InputRequests: map[string]wire.JSON{},
		Questions:     []durabletasks.Question{},
	}, durabletasks.Record{}); d != "" {
		t.Errorf("empty containers differ from absent ones: %s", d)
	}
	keys := full.Clone()
	slices.Reverse(keys.Questions)
	extra := full.Clone()
	extra.InputResponses["extra"] = wire.MustParse("1")
	for field, r := range map[string]durabletasks.Record{"Questions": keys, "InputResponses": extra} {
		if d := storetest.Diff(r, full); !strings.HasPrefix(d, field) {
			t.Errorf("diff of records whose %s differ: %q", field, d)
		}
	}
}

// TestTable compares the list in the package comment with the checks.
func TestTable(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "doc.go", nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	_, rules, _ := strings.Cut(file.Doc.Text(), "# The rules\n")
	_, got, _ := strings.Cut(rules, "\n\n\t")
	want := strings.Join(storetest.Table(), "\n")
	if got = strings.ReplaceAll(strings.TrimSpace(got), "\n\t", "\n"); got != want {
		t.Errorf("the package comment lists\n%s\n\nwant\n%s", got, want)
	}
}
