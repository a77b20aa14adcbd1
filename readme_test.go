package durabletasks_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// Each Go block of a README is code that the compiler sees: it occurs, line by
// line, in an example or a test. Indentation does not count.
func TestReadmeCodeCompiles(t *testing.T) {
	var code, readmes []string
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && strings.HasPrefix(d.Name(), ".") && path != ".":
			return fs.SkipDir
		case d.Name() == "README.md":
			readmes = append(readmes, path)
		case strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, ".go") && strings.HasPrefix(path, "examples"):
			text, err := os.ReadFile(path)
			code = append(code, trimLines(string(text)))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```go\n(.*?)```")
	blocks := 0
	for _, readme := range readmes {
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Fatal(err)
		}
	search:
		for _, m := range block.FindAllStringSubmatch(string(text), -1) {
			blocks++
			want := trimLines(m[1])
			for _, c := range code {
				if strings.Contains(c, want) {
					continue search
				}
			}
			t.Errorf("%s: no example or test contains this block:\n%s", readme, m[1])
		}
	}
	if blocks == 0 {
		t.Error("no Go block found in any README")
	}
}

func trimLines(s string) string {
	lines := strings.Split(strings.TrimSpace(s), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}
