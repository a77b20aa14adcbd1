package wal

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/mcp-durable-tasks/durabletasks"
)

// UserDir returns a directory for the tasks of the server with this name, for
// [Open]. It is an absolute path below the directory in which the user's
// programs keep their state:
//
//   - Unix: $XDG_STATE_HOME/name/tasks, or ~/.local/state/name/tasks if that
//     variable is not set to an absolute path
//   - macOS: ~/Library/Application Support/name/tasks
//   - Windows: %LocalAppData%\name\tasks
//
// An MCP client may start its servers in any directory, often in the root
// directory, so a relative path is no place for a server's tasks. UserDir
// creates nothing; Open does.
//
// Errors: [durabletasks.ErrInvalid] if the name is empty, "." or "..", has a
// path separator in it, or cannot be the name of a directory for another
// reason; another error if the variables of the environment that UserDir needs
// are not set.
func UserDir(name string) (string, error) {
	return userDir(name, runtime.GOOS, os.Getenv)
}

func userDir(name, goos string, getenv func(string) string) (string, error) {
	if name == "." || strings.ContainsAny(name, "/\\\x00") || !filepath.IsLocal(name) {
		return "", fmt.Errorf("wal: %w: %.64q cannot be the name of a directory", durabletasks.ErrInvalid, name)
	}
	var base, missing string
	switch goos {
	case "windows":
		base, missing = getenv("LocalAppData"), "%LocalAppData% is not an absolute path"
	case "darwin", "ios":
		base, missing = filepath.Join(getenv("HOME"), "Library", "Application Support"), "$HOME is not an absolute path"
	default:
		// A relative path in the variable is invalid and to be ignored (XDG
		// Base Directory Specification).
		if base = getenv("XDG_STATE_HOME"); !filepath.IsAbs(base) {
			base, missing = filepath.Join(getenv("HOME"), ".local", "state"), "neither $XDG_STATE_HOME nor $HOME is an absolute path"
		}
	}
	if !filepath.IsAbs(base) {
		return "", fmt.Errorf("wal: find the user's state directory: %s", missing)
	}
	return filepath.Join(base, name, "tasks"), nil
}
