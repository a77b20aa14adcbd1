package durabletasks

import (
	"testing"
	"testing/synctest"
	"time"
)

// A reading of the wall clock: at this much elapsed it was this much off, and
// the clock is expected to be off by want.
type reading struct {
	elapsed, off, want time.Duration
}

func TestClock(t *testing.T) {
	const m, h = time.Minute, time.Hour
	for name, readings := range map[string][]reading{
		"runs with the wall clock":             {{0, 0, 0}, {m, 0, 0}, {h, 0, 0}},
		"ignores a jump that is taken back":    {{m, h, 0}, {2 * m, h, 0}, {9 * m, h, 0}, {10 * m, 0, 0}, {h, 0, 0}},
		"believes a jump that stays":           {{m, h, 0}, {10 * m, h, 0}, {11 * m, h, h}, {12 * m, h, h}},
		"begins to wait anew after a return":   {{m, h, 0}, {6 * m, 0, 0}, {7 * m, h, 0}, {16 * m, h, 0}, {17 * m, h, h}},
		"believes only what was always so":     {{m, 3 * h, 0}, {5 * m, h, 0}, {11 * m, 2 * h, h}, {12 * m, 2 * h, h}, {22 * m, 2 * h, 2 * h}},
		"follows back at once":                 {{m, -h, -h}, {2 * m, -h, -h}},
		"a step back and forth costs patience": {{m, -h, -h}, {2 * m, 0, -h}, {11 * m, 0, -h}, {12 * m, 0, 0}},
		"seldom read, twice is enough":         {{m, h, 0}, {5 * h, h, h}},
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Date(2026, 7, 28, 0, 0, 0, 0, time.UTC)
			c := Clock{start: start}
			for _, r := range readings {
				got := c.read(start.Add(r.elapsed+r.off), r.elapsed).Sub(start.Add(r.elapsed))
				if got != r.want {
					t.Errorf("after %v with the wall clock off by %v: off by %v, want %v", r.elapsed, r.off, got, r.want)
				}
			}
		})
	}
}

func TestClockMoves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		first := c.Now()
		time.Sleep(3 * time.Hour)
		if got := c.Now().Sub(first); got != 3*time.Hour {
			t.Errorf("after three hours the clock has moved %v", got)
		}
	})
}
