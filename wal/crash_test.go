package wal_test

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// childWriter opens a directory, takes a task as far as the log says, and
// goes on creating, updating and sweeping, and prints each step after it was
// acknowledged. Its arguments: directory, sync, number of steps (0: no end).
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
				_, err = s.Update(ctx, r, r.Version)
			}
		}
		if err != nil {
			exit("step %d: %v", at, err)
		}
		fmt.Println(at + 1)
	}
	waitForKill()
}

// A child that is killed after each acknowledged step has lost none of them:
// the next one finds at least as many.
func TestKillAfterEachStep(t *testing.T) {
	for _, sync := range []string{"false", "true"} {
		t.Run("sync="+sync, func(t *testing.T) {
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

// A child that is killed at any moment has lost nothing that it said was
// done, and has at most the one step more that was under way.
func TestKillAnywhere(t *testing.T) {
	rounds := 20
	if os.Getenv("DURABLETASKS_LONG") != "" {
		rounds = 500
	}
	for _, sync := range []string{"false", "true"} {
		t.Run("sync="+sync, func(t *testing.T) {
			dir := t.TempDir()
			acknowledged := 0
			for round := range rounds {
				c := start(t, "writer", dir, sync, "0")
				line, ok := c.line()
				if !ok {
					t.Fatalf("round %d: the child did not open", round)
				}
				var found int
				if _, err := fmt.Sscanf(line, "open %d", &found); err != nil {
					t.Fatalf("child says %q", line)
				}
				if found != acknowledged && found != acknowledged+1 {
					t.Fatalf("round %d: %d steps were acknowledged, %d are there", round, acknowledged, found)
				}
				acknowledged = found
				for range 1 + round*7%50 {
					if line, ok = c.line(); !ok {
						t.Fatal("the child has ended")
					}
					acknowledged, _ = strconv.Atoi(line)
				}
				rest := c.kill()
				for _, line := range splitLines(rest) {
					acknowledged, _ = strconv.Atoi(line)
				}
			}
		})
	}
}

// splitLines returns the whole lines in b.
func splitLines(b []byte) []string {
	var lines []string
	for len(b) > 0 {
		for i, c := range b {
			if c == '\n' {
				lines = append(lines, string(b[:i]))
				b = b[i+1:]
				break
			}
			if i == len(b)-1 {
				return lines
			}
		}
	}
	return lines
}
