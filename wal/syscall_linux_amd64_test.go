package wal_test

import (
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// acknowledged returns the last step that the child has printed.
func acknowledged(calls []*sysCall) int {
	n := 0
	for _, c := range calls {
		if c.name == "print" {
			if step, err := strconv.Atoi(strings.TrimSpace(c.data)); err == nil {
				n = step
			}
		}
	}
	return n
}

// wantSurvived opens the directory of a workload twice, and requires that each
// acknowledged step is there and at most one more.
func wantSurvived(t *testing.T, what, dir string, sc script, states []contents, steps int) {
	t.Helper()
	for range 2 {
		s, err := wal.OpenSeam(dir, fixed(nil), workloadSegment, nil)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		got := read(t, s, sc.ids)
		if position(states[steps:min(steps+2, len(states))], got) < 0 {
			t.Fatalf("%s: %d steps were acknowledged, %d are there", what, steps, position(states, got))
		}
		if _, err := s.Get(ctx, "refused"); err == nil {
			t.Fatalf("%s: what was refused is there", what)
		}
		if err := s.Audit(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		mustClose(t, s)
	}
}

// workloadCalls runs the workload undisturbed and returns its system calls.
func workloadCalls(t *testing.T, sync bool, segment int) []*sysCall {
	t.Helper()
	dir := ramDir(t)
	calls := traced(t, dir, "workload", []string{dir, fmt.Sprint(sync), fmt.Sprint(segment)}, func(int, *sysCall) verdict { return verdict{} })
	if acknowledged(calls) == 0 {
		t.Fatal("the workload did not run")
	}
	return calls
}

// every calls f for each n below count, or, usually, for a sample of about
// so many.
func every(count, sample int, f func(n int)) {
	stride := 1
	if raced {
		sample /= 5
	}
	if rounds(0, 1) == 0 {
		stride = max(1, count/sample)
	}
	for n := stride / 2; n < count; n += stride {
		f(n)
	}
}

// A child that is killed at any of its system calls, from the creation of the
// store on, loses nothing, even if the next one is killed while it recovers.
func TestKillAtEachSystemCall(t *testing.T) {
	t.Parallel()
	sc, states := workloadStates(t)
	for _, sync := range []bool{false, true} {
		count := len(workloadCalls(t, sync, workloadSegment))
		every(count, 15, func(n int) {
			dir := ramDir(t)
			after := n%2 == 1
			calls := traced(t, dir, "workload", []string{dir, fmt.Sprint(sync), fmt.Sprint(workloadSegment)}, func(i int, c *sysCall) verdict {
				return verdict{kill: i == n && !after, after: i == n && after}
			})
			steps := acknowledged(calls)
			what := fmt.Sprintf("sync %v, killed at call %d of %d", sync, n, count)
			if len(calls) > 0 {
				what += fmt.Sprintf(", the last is %v", calls[len(calls)-1])
			}
			// Recovery is killed too, early and later.
			for _, m := range []int{n % 3, 3 + n%7} {
				traced(t, dir, "reopen", []string{dir, fmt.Sprint(sync)}, func(i int, c *sysCall) verdict {
					return verdict{kill: i == m}
				})
			}
			wantSurvived(t, what, dir, sc, states, steps)
		})
	}
}

// After any system call has failed, with or without a part of its effect, the
// store reports it, takes no more writes, still reads, releases the directory
// on Close, and has lost nothing that was acknowledged.
func TestEachSystemCallFails(t *testing.T) {
	t.Parallel()
	sc, states := workloadStates(t)
	for _, sync := range []bool{false, true} {
		count := len(workloadCalls(t, sync, workloadSegment))
		for _, errno := range []syscall.Errno{syscall.EIO, syscall.ENOSPC} {
			every(count, 15, func(n int) {
				dir := ramDir(t)
				var what string
				failed := false
				calls := traced(t, dir, "workload", []string{dir, fmt.Sprint(sync), fmt.Sprint(workloadSegment)}, func(i int, c *sysCall) verdict {
					switch {
					case c.name == "print":
					case i == n && c.name == "write" && errno == syscall.ENOSPC && len(c.data) > 1:
						what = fmt.Sprintf("sync %v, half of call %d (%v), then no space", sync, n, c)
						return verdict{short: true}
					case i == n, i == n+1 && strings.HasSuffix(what, "then no space"):
						what = fmt.Sprintf("sync %v, %v at call %d (%v)", sync, errno, n, c)
						failed = true
						return verdict{errno: errno}
					}
					return verdict{}
				})
				last := calls[len(calls)-1]
				if last.name != "print" || last.data != "closed\n" && last.data != "not opened\n" {
					t.Fatalf("%s: the child has ended with %v", what, last)
				}
				if failed {
					wantSurvived(t, what, dir, sc, states, acknowledged(calls))
				}
			})
		}
	}
}
