package wal_test

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// children are what this binary can be when a test runs it again: each is a
// process of its own, which a test can kill.
var children = map[string]func(args []string){
	"hold":     childHold,
	"sleep":    func([]string) { waitForKill() },
	"writer":   childWriter,
	"lanes":    childLanes,
	"workload": childWorkload,
	"reopen":   childReopen,
	"recover":  childRecover,
}

// register adds a child that only some systems have.
func register(name string, run func(args []string)) bool {
	children[name] = run
	return true
}

// prepareChild runs in each child first.
var prepareChild = func() {}

// prepare sets prepareChild on a system that has something to prepare.
func prepare(f func()) bool {
	prepareChild = f
	return true
}

const childVariable = "DURABLETASKS_WAL_TEST_CHILD"

func TestMain(m *testing.M) {
	if run, ok := children[os.Getenv(childVariable)]; ok {
		prepareChild()
		run(os.Args[1:])
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a running child process.
type child struct {
	*exec.Cmd
	out *bufio.Reader
}

// start runs this binary as the named child.
func start(t testing.TB, name string, args ...string) *child {
	t.Helper()
	return startWith(t, nil, name, args...)
}

// startWith is start with open files that the child inherits.
func startWith(t testing.TB, files []*os.File, name string, args ...string) *child {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+name)
	cmd.Stderr = os.Stderr
	cmd.ExtraFiles = files
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, bufio.NewReader(out)}
	t.Cleanup(func() { c.kill() })
	return c
}

// line returns the next line that the child prints, without its end; it
// reports false when there is none any more.
func (c *child) line() (string, bool) {
	s, err := c.out.ReadString('\n')
	if err != nil {
		return "", false
	}
	return s[:len(s)-1], true
}

// kill ends the child as nothing can be caught or finished (SIGKILL), and
// returns what it had still printed.
func (c *child) kill() []byte {
	_ = c.Process.Kill()
	rest, _ := io.ReadAll(c.out)
	_ = c.Wait()
	return rest
}

// exit ends a child that cannot go on.
func exit(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "child: "+format+"\n", args...)
	os.Exit(1)
}

// waitForKill keeps a child alive.
func waitForKill() { time.Sleep(time.Hour) }

// ramDir is t.TempDir in memory, where there is such a place: for tests that
// open thousands of stores and don't care what a disk does.
func ramDir(t testing.TB) string {
	t.Helper()
	const shm = "/dev/shm"
	dir, err := os.MkdirTemp(shm, "durabletasks-")
	if err != nil {
		if dir, err = filepath.EvalSymlinks(t.TempDir()); err != nil { // as errors name it
			t.Fatal(err)
		}
		return dir
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// rounds is how often a test repeats what it repeats: usually, and when
// DURABLETASKS_LONG is set.
func rounds(usual, long int) int {
	if os.Getenv("DURABLETASKS_LONG") != "" {
		return long
	}
	return usual
}
