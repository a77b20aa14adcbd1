//go:build unix

package sqlitestore_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
)

// TestFilesGetTheDatabasesModeAndOwner: every user of the database must be able to
// lock the lock files of other users, or their tasks are never taken over.
func TestFilesGetTheDatabasesModeAndOwner(t *testing.T) {
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
	if err := os.Chmod(path, 0o666); err != nil { // no umask leaves that
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
				t.Errorf("%s, %s has owner %d and group %d, want the database's", when, name, stat.Uid, stat.Gid)
			}
		}
	}
	check("after an Open")
	if err := os.Remove(sqlitestore.LockPath(s)); err != nil {
		t.Fatal(err)
	}
	shown(t, s)
	check("after the lock file was restored")
}

// TestAnotherUserTakesOver kills a server whose lock file the next user may lock,
// but not remove, as in /tmp.
func TestAnotherUserTakesOver(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("skipped, because only the superuser can start servers as two users")
	}
	dir := t.TempDir()
	path, executable := filepath.Join(dir, "tasks.db"), filepath.Join(dir, "server")
	if err := openStore(t, path, nil).Close(); err != nil {
		t.Fatal(err)
	}
	copyOfThis(t, executable) // the original may be in a private directory
	for file, mode := range map[string]os.FileMode{path: 0o666, executable: 0o755, filepath.Dir(dir): 0o755, dir: 0o777 | os.ModeSticky} {
		if err := os.Chmod(file, mode); err != nil {
			t.Fatal(err)
		}
	}
	first := start(t, path, 1, func(*process, report) {})
	id := first.must(order{Do: "create", Text: "wait"}).ID
	first.kill()
	begun := make(chan string, 1)
	cmd := exec.Command(executable)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 12345, Gid: 12345}}
	next := startBy(t, cmd, path, 2, func(_ *process, r report) {
		if r.What == "begun" {
			begun <- r.ID
		}
	})
	select {
	case got := <-begun:
		if got != id {
			t.Error("another user's server took over another task")
		}
	case <-next.read:
		t.Fatal("another user's server ended")
	case <-time.After(10 * time.Second):
		t.Fatal("another user's server did not take the task over")
	}
}

// copyOfThis copies the test binary.
func copyOfThis(t *testing.T, to string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	content, err := os.ReadFile(executable)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o700); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefusesHardLinks(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "tasks.db"), filepath.Join(dir, "link.db")
	first := openStore(t, path, nil)
	create(t, first, newRecord("task"))
	if err := os.Link(path, link); err != nil {
		t.Skip("skipped, because the file system cannot make hard links: ", err)
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
