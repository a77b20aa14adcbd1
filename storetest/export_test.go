package storetest

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Outcome is how one check ended.
type Outcome struct {
	Failure string // what it reported; "" if it did not fail
	Skip    string // why it was skipped; "" if it was not
}

// Outcomes runs every check whose name is accepted, as Run does with -short,
// and returns how each ended.
func Outcomes(tb testing.TB, s Subject, accept func(name string) bool) map[string]Outcome {
	outcomes := make(map[string]Outcome)
	for _, c := range checks {
		if accept(c.name()) {
			r := &recorder{TB: tb}
			c.run(newTrial(r, s, true))
			outcomes[c.name()] = r.Outcome
		}
	}
	return outcomes
}

// OutcomesBefore runs every check as Run does in a test with this deadline, or
// without a deadline if that is zero.
func OutcomesBefore(tb testing.TB, s Subject, deadline time.Time) map[string]Outcome {
	outcomes := make(map[string]Outcome)
	var sum summary
	for _, c := range checks {
		r := &recorder{TB: tb, deadline: deadline}
		sum.run(newTrial(r, s, true), c.run)
		outcomes[c.name()] = r.Outcome
	}
	return outcomes
}

// Summary returns what Run logs at its end.
func Summary(tb testing.TB, s Subject) string {
	var sum summary
	for _, c := range checks {
		sum.run(newTrial(&recorder{TB: tb}, s, true), c.run)
	}
	r := &recorder{TB: tb}
	sum.log(r)
	return r.logged
}

// OutcomesInBubble is Outcomes as RunInBubble runs the checks.
func OutcomesInBubble(t *testing.T, s Subject, accept func(name string) bool) map[string]Outcome {
	outcomes := make(map[string]Outcome)
	for _, c := range checks {
		if accept(c.name()) {
			r := &recorder{TB: t}
			c.runInBubble(t, newTrial(r, s, true))
			outcomes[c.name()] = r.Outcome
		}
	}
	return outcomes
}

// OutcomesWithoutWaiting is Outcomes in bubbles, where a sleep takes no time and
// lasts until no other goroutine can run. The subject keeps its clock.
func OutcomesWithoutWaiting(t *testing.T, s Subject, accept func(name string) bool) map[string]Outcome {
	outcomes := make(map[string]Outcome)
	for _, c := range checks {
		if accept(c.name()) {
			r := &recorder{TB: t}
			trial := newTrial(r, s, true)
			trial.attempt(c, func() { trial.performInBubble(t, c) })
			outcomes[c.name()] = r.Outcome
		}
	}
	return outcomes
}

// recorder is a test that records its failure instead of failing.
type recorder struct {
	testing.TB
	Outcome
	deadline time.Time
	logged   string
}

func (r *recorder) Errorf(format string, args ...any) { r.Failure += fmt.Sprintf(format, args...) }
func (r *recorder) Skip(args ...any)                  { r.Outcome.Skip += fmt.Sprint(args...) }
func (r *recorder) Fatal(args ...any)                 { r.Failure += fmt.Sprint(args...); r.FailNow() }
func (r *recorder) Failed() bool                      { return r.Failure != "" }
func (r *recorder) FailNow()                          { runtime.Goexit() }
func (r *recorder) Log(args ...any)                   { r.logged += fmt.Sprint(args...) }
func (r *recorder) Deadline() (time.Time, bool)       { return r.deadline, !r.deadline.IsZero() }
func (r *recorder) Logf(string, ...any)               {}

// ModelFailure returns what Model reports.
func ModelFailure(tb testing.TB, s Subject) string {
	r := &recorder{TB: tb}
	newTrial(r, s, true).model()
	return r.Failure
}

// CheckNames returns the name of every check, in the order of Run.
func CheckNames() []string {
	var names []string
	for _, c := range checks {
		names = append(names, c.name())
	}
	return names
}

// Clauses returns the sentences of the contract by number.
func Clauses() map[string]string { return clauses }

// Diff compares two records as the checks do.
var Diff = diff

// FullRecord returns the record in which checks look for lost fields.
func FullRecord() durabletasks.Record {
	t := &trial{began: time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC)}
	return t.full("task", 1)
}

// Table returns the rules as the package comment lists them.
func Table() []string {
	var lines []string
	last := ""
	for _, c := range checks {
		line := fmt.Sprintf("%-7s  %s", c.clause, c.title)
		if c.clause == last {
			line = fmt.Sprintf("%-7s  %s", "", c.title)
		}
		last = c.clause
		var needs []string
		for _, s := range []struct {
			seam seam
			name string
		}{{needsReopen, "Reopen"}, {needsShare, "Share"}, {needsAdvance, "Advance"}, {needsRewind, "back"}} {
			if c.needs&s.seam != 0 {
				needs = append(needs, s.name)
			}
		}
		if len(needs) > 0 {
			line += " [" + strings.Join(needs, ", ") + "]"
		}
		lines = append(lines, line)
	}
	return lines
}
