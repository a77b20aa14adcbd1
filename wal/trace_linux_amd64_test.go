package wal_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"unsafe"
)

// sysCall is a system call by which a child changes its directory, or a line
// that it prints. Its order among the others is that in which they were made.
type sysCall struct {
	name  string // open, write, pwrite, fsync, ftruncate, rename, unlink, mkdir or print
	path  string // below the directory; "." is the directory itself
	to    string // of a rename
	data  string // of a write or a print
	at    int64  // offset of a pwrite, size of an ftruncate
	trunc bool   // of an open
}

func (c *sysCall) String() string {
	s := c.name + " " + c.path
	switch c.name {
	case "rename":
		s += " to " + c.to
	case "write", "pwrite":
		s += fmt.Sprintf(" %d bytes", len(c.data))
	case "print":
		s += fmt.Sprintf("%q", c.data)
	}
	return s
}

// verdict is what becomes of a system call.
type verdict struct {
	kill  bool          // the child dies before it
	after bool          // the child dies after it
	errno syscall.Errno // it fails, without any effect, if not 0
	short bool          // a write takes half of its bytes only
}

// traced runs this binary as the named child under ptrace, calls decide for
// each system call on dir, and returns those that were made with success.
func traced(t *testing.T, dir, name string, args []string, decide func(n int, c *sysCall) verdict) []*sysCall {
	t.Helper()
	runtime.LockOSThread() // a process is traced by a thread
	defer runtime.UnlockOSThread()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe, args...)
	cmd.Env = append(os.Environ(), childVariable+"="+name, tracedVariable+"=1", "GODEBUG=asyncpreemptoff=1", "GOMAXPROCS=1")
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	if err := cmd.Start(); err != nil {
		t.Skipf("this system does not allow tracing: %v", err)
	}
	pid := cmd.Process.Pid
	tr := &tracer{dir: dir, pid: pid, decide: decide, fds: map[uint64]string{}, inside: map[int]*pendingCall{}}
	if tr.mem, err = os.Open(fmt.Sprintf("/proc/%d/mem", pid)); err != nil {
		t.Fatal(err)
	}
	defer tr.mem.Close()
	status, err := tr.run()
	if err != nil {
		_ = cmd.Process.Kill()
		t.Fatalf("trace: %v", err)
	}
	if status == unfiltered {
		t.Skip("this system does not allow a filter for system calls")
	}
	_ = cmd.Process.Release()
	return tr.calls
}

const tracedVariable = "DURABLETASKS_WAL_TEST_TRACED"

// unfiltered is the exit status of a child that could not install the filter.
const unfiltered = 77

// tracedSysCalls are those of which a child stops for its tracer. All others
// run at full speed.
var tracedSysCalls = []uint32{
	syscall.SYS_OPENAT, syscall.SYS_CLOSE, syscall.SYS_WRITE, syscall.SYS_PWRITE64, syscall.SYS_FSYNC, syscall.SYS_FDATASYNC,
	syscall.SYS_FTRUNCATE, syscall.SYS_RENAMEAT, syscall.SYS_UNLINKAT, syscall.SYS_MKDIRAT,
}

var _ = prepare(func() {
	if os.Getenv(tracedVariable) != "" && filterSysCalls() != 0 {
		os.Exit(unfiltered)
	}
})

// filterSysCalls makes all threads of this process, those to come included,
// stop at the traced system calls.
func filterSysCalls() syscall.Errno {
	const (
		load, jumpIfEqual, ret = 0x20, 0x15, 0x06
		trace, allow           = 0x7ff00000, 0x7fff0000
		setNoNewPrivileges     = 38
		seccomp                = 317
		setFilter, allThreads  = 1, 1
	)
	filter := []syscall.SockFilter{{Code: load, K: 0}} // the system call's number
	for i, nr := range tracedSysCalls {
		filter = append(filter, syscall.SockFilter{Code: jumpIfEqual, K: nr, Jt: uint8(len(tracedSysCalls) - i)})
	}
	filter = append(filter, syscall.SockFilter{Code: ret, K: allow}, syscall.SockFilter{Code: ret, K: trace})
	program := syscall.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if _, _, err := syscall.RawSyscall6(syscall.SYS_PRCTL, setNoNewPrivileges, 1, 0, 0, 0, 0); err != 0 {
		return err
	}
	_, _, err := syscall.RawSyscall(seccomp, setFilter, allThreads, uintptr(unsafe.Pointer(&program)))
	runtime.KeepAlive(filter)
	return err
}

type tracer struct {
	dir    string
	pid    int
	mem    *os.File
	decide func(n int, c *sysCall) verdict
	seen   int
	calls  []*sysCall
	fds    map[uint64]string
	inside map[int]*pendingCall // by thread
}

// pendingCall is a system call between its entry and its exit.
type pendingCall struct {
	*sysCall        // nil if it does not concern the directory
	opens    string // an open's path
	verdict  verdict
}

const (
	traceSysGood  = 0x1
	traceClone    = 0x8
	traceSeccomp  = 0x80
	eventSeccomp  = 7
	traceExitKill = 0x100000
	waitAll       = 0x40000000
	waitNoThread  = 0x20000000
)

// run traces the child to its end and returns its exit status.
func (tr *tracer) run() (int, error) {
	var ws syscall.WaitStatus
	if _, err := syscall.Wait4(tr.pid, &ws, waitAll, nil); err != nil {
		return 0, err
	}
	if err := syscall.PtraceSetOptions(tr.pid, traceSysGood|traceClone|traceSeccomp|traceExitKill); err != nil {
		return 0, err
	}
	if err := syscall.PtraceCont(tr.pid, 0); err != nil {
		return 0, err
	}
	for {
		tid, err := syscall.Wait4(-1, &ws, waitAll|waitNoThread, nil)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.ECHILD:
			return 0, nil
		case err != nil:
			return 0, err
		}
		if ws.Exited() || ws.Signaled() {
			if tid == tr.pid {
				return ws.ExitStatus(), nil
			}
			continue
		}
		signal, resume := 0, syscall.PtraceCont
		switch sig := ws.StopSignal(); {
		case sig == syscall.SIGTRAP && ws.TrapCause() == eventSeccomp:
			if err = tr.before(tid); tr.inside[tid] != nil {
				resume = syscall.PtraceSyscall // to its end
			}
		case sig == syscall.SIGTRAP|0x80:
			err = tr.after(tid)
		case sig == syscall.SIGTRAP, sig == syscall.SIGSTOP: // a new thread
		default:
			signal = int(sig)
		}
		if err == nil {
			err = resume(tid, signal)
		}
		if err != nil && err != syscall.ESRCH {
			return 0, err
		}
	}
}

// after handles a thread that has made a system call.
func (tr *tracer) after(tid int) error {
	p := tr.inside[tid]
	delete(tr.inside, tid)
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil || p == nil {
		return err
	}
	return tr.exit(tid, &regs, p)
}

// before handles a thread that is about to make a traced system call. If it
// leaves the call in tr.inside, after must handle its end.
func (tr *tracer) before(tid int) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	p := tr.enter(&regs)
	if p.sysCall == nil && p.opens == "" {
		return nil
	}
	tr.inside[tid] = p
	if p.sysCall == nil {
		return nil
	}
	p.verdict = tr.decide(tr.seen, p.sysCall)
	tr.seen++
	switch {
	case p.verdict.kill:
		return syscall.Kill(tr.pid, syscall.SIGKILL)
	case p.verdict.errno != 0:
		regs.Orig_rax = ^uint64(0) // no system call
		return syscall.PtraceSetRegs(tid, &regs)
	case p.verdict.short:
		regs.Rdx /= 2
		p.data = p.data[:regs.Rdx]
		return syscall.PtraceSetRegs(tid, &regs)
	}
	return nil
}

func (tr *tracer) exit(tid int, regs *syscall.PtraceRegs, p *pendingCall) error {
	if p.verdict.errno != 0 {
		regs.Rax = uint64(-int64(p.verdict.errno))
		return syscall.PtraceSetRegs(tid, regs)
	}
	ok := int64(regs.Rax) >= 0
	if p.opens != "" && ok {
		tr.fds[regs.Rax] = p.opens
	}
	if p.sysCall != nil && ok {
		tr.calls = append(tr.calls, p.sysCall)
	}
	if p.verdict.after {
		return syscall.Kill(tr.pid, syscall.SIGKILL)
	}
	return nil
}

// enter reads a system call from the registers.
func (tr *tracer) enter(regs *syscall.PtraceRegs) *pendingCall {
	p := new(pendingCall)
	made := func(c sysCall) { p.sysCall = &c }
	switch regs.Orig_rax {
	case syscall.SYS_OPENAT:
		path, ok := tr.below(tr.text(regs.Rsi))
		if !ok {
			break
		}
		p.opens = path
		if regs.Rdx&(syscall.O_CREAT|syscall.O_TRUNC) != 0 {
			made(sysCall{name: "open", path: path, trunc: regs.Rdx&syscall.O_TRUNC != 0})
		}
	case syscall.SYS_CLOSE:
		delete(tr.fds, regs.Rdi)
	case syscall.SYS_WRITE, syscall.SYS_PWRITE64:
		if regs.Rdi == 1 {
			made(sysCall{name: "print", data: tr.bytes(regs.Rsi, regs.Rdx)})
		} else if path, ok := tr.fds[regs.Rdi]; ok {
			c := sysCall{name: "write", path: path, data: tr.bytes(regs.Rsi, regs.Rdx)}
			if regs.Orig_rax == syscall.SYS_PWRITE64 {
				c.name, c.at = "pwrite", int64(regs.R10)
			}
			made(c)
		}
	case syscall.SYS_FSYNC, syscall.SYS_FDATASYNC:
		if path, ok := tr.fds[regs.Rdi]; ok {
			made(sysCall{name: "fsync", path: path})
		}
	case syscall.SYS_FTRUNCATE:
		if path, ok := tr.fds[regs.Rdi]; ok {
			made(sysCall{name: "ftruncate", path: path, at: int64(regs.Rsi)})
		}
	case syscall.SYS_RENAMEAT:
		if path, ok := tr.below(tr.text(regs.Rsi)); ok {
			to, _ := tr.below(tr.text(regs.R10))
			made(sysCall{name: "rename", path: path, to: to})
		}
	case syscall.SYS_UNLINKAT:
		if path, ok := tr.below(tr.text(regs.Rsi)); ok {
			made(sysCall{name: "unlink", path: path})
		}
	case syscall.SYS_MKDIRAT:
		if path, ok := tr.below(tr.text(regs.Rsi)); ok {
			made(sysCall{name: "mkdir", path: path})
		}
	}
	return p
}

func (tr *tracer) below(path string) (string, bool) {
	rel, err := filepath.Rel(tr.dir, path)
	return rel, err == nil && !strings.HasPrefix(rel, "..")
}

func (tr *tracer) bytes(addr, n uint64) string {
	b := make([]byte, n)
	if _, err := tr.mem.ReadAt(b, int64(addr)); err != nil {
		return ""
	}
	return string(b)
}

func (tr *tracer) text(addr uint64) string {
	var s []byte
	chunk := make([]byte, 256)
	for {
		n, _ := tr.mem.ReadAt(chunk, int64(addr))
		if i := bytes.IndexByte(chunk[:n], 0); i >= 0 || n == 0 {
			return string(append(s, chunk[:max(i, 0)]...))
		}
		s = append(s, chunk[:n]...)
		addr += uint64(n)
	}
}
