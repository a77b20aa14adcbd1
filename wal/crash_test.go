package wal_test

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// childWriter opens a directory, finds the step at which the last one stopped,
// and goes on creating and updating tasks. It prints each step after it was
// acknowledged. Arguments: directory, sync, number of steps (0: no end).
func childWriter(args []string) {
	sync, _ := strconv.ParseBool(args[1])
	steps, _ := strconv.Atoi(args[2])
	s, err := wal.Open(args[0], fixed(&wal.Options{Sync: sync}))
	if err != nil {
		exit("%v", err)
	}
	// Where the process before this one has stopped.
	at := 0
	for ; ; at++ {
		r, err := s.Get(ctx, fmt.Sprintf("task-%d", at/4))
		if errors.Is(err, durabletasks.ErrNotFound) || r.Version < int64(at%4) {
			break
		}
	}
	fmt.Println("open", at)
	for ; steps == 0 || at < steps; at++ {
		id := fmt.Sprintf("task-%d", at/4)
		if at%4 == 0 {
			err = s.Create(ctx, task(id))
		} else {
			var r durabletasks.Record
			if r, err = s.Get(ctx, id); err == nil {
				r.StatusMessage = fmt.Sprint("step ", at%4)
				err = s.Update(ctx, r)
			}
		}
		if err != nil {
			exit("step %d: %v", at, err)
		}
		fmt.Println(at + 1)
	}
	waitForKill()
}

// A child that is killed after an acknowledged step has not lost it: the next
// one finds at least as many steps.
func TestKillAfterEachStep(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"false", "true"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for steps := 1; steps <= 12; steps++ {
				c := start(t, "writer", dir, sync, fmt.Sprint(steps))
				line, ok := c.line()
				if want := fmt.Sprint("open ", steps-1); !ok || line != want {
					t.Fatalf("child says %q, want %q", line, want)
				}
				if line, ok := c.line(); !ok || line != fmt.Sprint(steps) {
					t.Fatalf("child says %q, want %d", line, steps)
				}
				c.kill()
			}
		})
	}
}

// childLanes has several goroutines update a task each, with small segments, so
// that the log is cleaned all the time. Each prints the version that was
// acknowledged. Arguments: directory, sync.
func childLanes(args []string) {
	sync, _ := strconv.ParseBool(args[1])
	s, err := wal.OpenSeam(args[0], fixed(&wal.Options{Sync: sync}), 4<<10, nil)
	if err != nil {
		exit("%v", err)
	}
	for lane := range lanes {
		go func() {
			id := fmt.Sprint("lane-", lane)
			r, err := s.Get(ctx, id)
			if errors.Is(err, durabletasks.ErrNotFound) {
				r = task(id)
				r.Payload = text(100 * (lane + 1))
				err = s.Create(ctx, r)
			}
			for {
				if err != nil {
					exit("%s: %v", id, err)
				}
				fmt.Printf("%d %d\n", lane, r.Version)
				r.StatusMessage = fmt.Sprintf("version %d of %s", r.Version+1, id)
				err = s.Update(ctx, r)
				r.Version++
			}
		}()
	}
	waitForKill()
}

const lanes = 8

// A child that is killed at any moment, under load and with constant cleaning,
// has lost nothing that it has printed, and each of its goroutines has at most
// one more step: the one in progress.
func TestKillAnywhere(t *testing.T) {
	t.Parallel()
	for _, sync := range []string{"false", "true"} {
		t.Run("sync="+sync, func(t *testing.T) {
			t.Parallel()
			r := newRand(t)
			dir := t.TempDir()
			acknowledged := [lanes]int64{}
			for lane := range acknowledged {
				acknowledged[lane] = -1
			}
			torn := 0
			for round := range rounds(8, 600) {
				c := start(t, "lanes", dir, sync)
				for range 1 + r.IntN(2000) {
					line, ok := c.line()
					if !ok {
						t.Fatal("the child has ended")
					}
					note(&acknowledged, line)
				}
				for line := range strings.Lines(string(c.kill())) {
					if strings.HasSuffix(line, "\n") {
						note(&acknowledged, line)
					}
				}
				s, err := wal.OpenSeam(dir, fixed(nil), 4<<10, nil)
				if err != nil {
					t.Fatalf("round %d: %v", round, err)
				}
				if s.Torn() != nil {
					torn++
				}
				for lane, acked := range acknowledged {
					got, err := s.Get(ctx, fmt.Sprint("lane-", lane))
					if errors.Is(err, durabletasks.ErrNotFound) && acked < 0 {
						continue
					}
					if err != nil {
						t.Fatalf("round %d, lane %d: %v", round, lane, err)
					}
					message := ""
					if got.Version > 0 {
						message = fmt.Sprintf("version %d of lane-%d", got.Version, lane)
					}
					if got.Version < acked || got.Version > acked+1 || got.StatusMessage != message || got.Payload != text(100*(lane+1)) {
						t.Fatalf("round %d, lane %d: version %d was acknowledged, stored is %+v", round, lane, acked, got)
					}
					acknowledged[lane] = got.Version
				}
				mustClose(t, s)
			}
			t.Logf("%d of the kills have torn the log's end; it has %d bytes", torn, dirSize(t, dir))
		})
	}
}

// note reads a line that a lane has printed.
func note(acknowledged *[lanes]int64, line string) {
	var lane int
	var version int64
	if _, err := fmt.Sscan(line, &lane, &version); err == nil {
		acknowledged[lane] = max(acknowledged[lane], version)
	}
}
