package wal_test

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

func TestUserDir(t *testing.T) {
	home, state, local := t.TempDir(), t.TempDir(), t.TempDir()
	for _, tt := range []struct {
		goos string
		env  map[string]string
		want string // empty: an error
	}{
		{"linux", map[string]string{"HOME": home}, filepath.Join(home, ".local", "state", "my-server", "tasks")},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": state}, filepath.Join(state, "my-server", "tasks")},
		{"linux", map[string]string{"XDG_STATE_HOME": state}, filepath.Join(state, "my-server", "tasks")},
		{"linux", map[string]string{"HOME": home, "XDG_STATE_HOME": "state"}, filepath.Join(home, ".local", "state", "my-server", "tasks")},
		{"linux", map[string]string{"XDG_STATE_HOME": "state"}, ""},
		{"linux", map[string]string{"HOME": "home"}, ""},
		{"linux", nil, ""},
		{"freebsd", map[string]string{"HOME": home}, filepath.Join(home, ".local", "state", "my-server", "tasks")},
		{"darwin", map[string]string{"HOME": home, "XDG_STATE_HOME": state}, filepath.Join(home, "Library", "Application Support", "my-server", "tasks")},
		{"darwin", nil, ""},
		{"windows", map[string]string{"LocalAppData": local, "HOME": home}, filepath.Join(local, "my-server", "tasks")},
		{"windows", map[string]string{"HOME": home}, ""},
	} {
		got, err := wal.UserDirOn(tt.goos, func(name string) string { return tt.env[name] }, "my-server")
		if got != tt.want || (err != nil) != (tt.want == "") || errors.Is(err, durabletasks.ErrInvalid) {
			t.Errorf("UserDir on %s with %v: %q, %v, want %q", tt.goos, tt.env, got, err, tt.want)
		}
	}
}

// UserDir finds a directory in the environment of the test, creates nothing,
// and Open can use it.
func TestOpenUserDir(t *testing.T) {
	base := t.TempDir()
	for _, variable := range []string{"HOME", "XDG_STATE_HOME", "LocalAppData"} {
		t.Setenv(variable, base)
	}
	dir, err := wal.UserDir("my server 1.0")
	if err != nil {
		t.Fatal(err)
	}
	if entries, err := os.ReadDir(base); err != nil || len(entries) > 0 {
		t.Errorf("UserDir has created %v, %v", entries, err)
	}
	mustClose(t, mustOpen(t, dir, nil))
	if runtime.GOOS == "linux" && dir != filepath.Join(base, "my server 1.0", "tasks") {
		t.Errorf("UserDir: %q", dir)
	}
}

func TestUserDirRefusesNames(t *testing.T) {
	for _, name := range []string{"", ".", "..", "a/b", `a\b`, "/a", "a/", "../a", "a\x00b"} {
		if dir, err := wal.UserDir(name); dir != "" || !errors.Is(err, durabletasks.ErrInvalid) {
			t.Errorf("UserDir(%q): %q, %v, want ErrInvalid", name, dir, err)
		}
	}
}

// An empty name does not stand for the current directory.
func TestEmptyDirectoryName(t *testing.T) {
	t.Chdir(t.TempDir())
	_, openErr := wal.Open("", nil)
	_, contextErr := wal.OpenContext(ctx, "", nil)
	report, inspectErr := wal.Inspect(ctx, "")
	_, fromErr := wal.Salvage(ctx, "", "new")
	_, toErr := wal.Salvage(ctx, ".", "")
	for what, err := range map[string]error{
		"Open": openErr, "OpenContext": contextErr, "Inspect": inspectErr, "Salvage from": fromErr, "Salvage to": toErr,
	} {
		if !errors.Is(err, durabletasks.ErrInvalid) {
			t.Errorf("%s with an empty name: %v, want ErrInvalid", what, err)
		}
	}
	if report == nil {
		t.Error("Inspect has returned no report")
	}
	if entries, err := os.ReadDir("."); err != nil || len(entries) > 0 {
		t.Errorf("the current directory has got %v, %v", entries, err)
	}
}
