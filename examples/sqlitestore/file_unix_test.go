//go:build unix

package sqlitestore_test

import (
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
)

// TestFilesAreForWhoeverMayWriteTheDatabase: who can use the database must be
// able to lock the files of others, or their tasks are never taken over.
func TestFilesAreForWhoeverMayWriteTheDatabase(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "tasks.db")
	if err := openStore(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	const owner, group = 12345, 12346
	root := os.Geteuid() == 0
	if root {
		if err := os.Chown(path, owner, group); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(path, 0o666); err != nil { // more than any umask leaves
		t.Fatal(err)
	}
	s := openStore(t, path, nil)
	create(t, s, newRecord("task"))
	check := func(when string) {
		t.Helper()
		for name := range entries(t, dir) {
			info, err := os.Stat(filepath.Join(dir, name))
			if err != nil {
				t.Fatal(err)
			}
			if info.Mode() != 0o666 {
				t.Errorf("%s, %s has mode %v, want the database's", when, name, info.Mode())
			}
			stat := info.Sys().(*syscall.Stat_t)
			if root && (stat.Uid != owner || stat.Gid != group) {
				t.Errorf("%s, %s belongs to %d and %d, want the database's owner and group", when, name, stat.Uid, stat.Gid)
			}
		}
	}
	check("after an Open")
	if err := os.Remove(sqlitestore.Presence(s)); err != nil {
		t.Fatal(err)
	}
	shown(t, s)
	check("after the file was made anew")
}

func TestOpenRefusesLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "tasks.db"), filepath.Join(dir, "link.db")
	first := openStore(t, path, nil)
	create(t, first, newRecord("task"))
	if err := os.Link(path, link); err != nil {
		t.Skip("skipped, because the file system makes no links: ", err)
	}
	for _, name := range []string{link, path} {
		if _, err := sqlitestore.Open(name, nil); !errors.Is(err, sqlitestore.ErrLinked) {
			t.Errorf("Open of %s, a database with two names: got error %v, want %v", filepath.Base(name), err, sqlitestore.ErrLinked)
		}
	}
	if err := os.Remove(link); err != nil {
		t.Fatal(err)
	}
	if got := shown(t, openStore(t, path, nil)); len(got) != 0 {
		t.Errorf("Scan shows %q of a store that is open", got)
	}
}
