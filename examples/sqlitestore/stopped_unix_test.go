//go:build unix

package sqlitestore_test

import (
	"errors"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
)

// TestStoppedProcessKeepsItsTasks stops a server, as a debugger, a shell's Ctrl-Z
// or a machine's sleep does. Measured by time it looks dead, but it will continue,
// and with it the workers of its tasks.
func TestStoppedProcessKeepsItsTasks(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	interrupted := make(chan struct{}, 1)
	server := start(t, path, 1, func(_ *process, r report) {
		if r.What == "interrupted" {
			interrupted <- struct{}{}
		}
	})
	task := server.must(order{Do: "create", Text: "wait"}).ID
	signal := func(s syscall.Signal) {
		if err := server.cmd.Process.Signal(s); err != nil {
			t.Fatal(err)
		}
	}
	other := openStore(t, path, &sqlitestore.Options{BusyTimeout: 100 * time.Millisecond})
	for {
		signal(syscall.SIGSTOP)
		err := other.Create(t.Context(), newRecord("probe"))
		if err == nil {
			break
		}
		signal(syscall.SIGCONT)
		if !errors.Is(err, sqlitestore.ErrBusy) { // unless it was stopped in the middle of a commit
			t.Fatal(err)
		}
	}
	if got := shown(t, other); len(got) != 1 || got[0] != "probe" {
		t.Errorf("Scan next to a stopped server shows %q, want only its own task", got)
	}
	r, err := other.Get(t.Context(), task)
	if err != nil {
		t.Fatal(err)
	}
	r.CancelRequested = true
	if err := other.Update(t.Context(), r); err != nil {
		t.Fatal(err)
	}
	signal(syscall.SIGCONT)
	select {
	case <-interrupted:
	case <-time.After(10 * time.Second):
		t.Error("a cancellation that came while the server was stopped did not reach the worker")
	}
}
