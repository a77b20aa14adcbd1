package storetest

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Subject is the store under test: how to make one, and what the suite may do
// with it. Only New is required. A check that needs a seam which is nil is
// skipped, and says so.
type Subject struct {
	// New returns a new, empty store. It is called once for each check, and
	// again where one has failed, to look for a mistake in the Subject. The
	// suite closes the store; what else must go is for tb.Cleanup.
	New func(tb testing.TB) durabletasks.TaskStore

	// Reopen returns a store on the data of old, which the suite has closed.
	// Nil means that the store's records end with it.
	Reopen func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore

	// Share returns a store on the data of with, which stays open: two
	// instances, as two processes have them. Nil means that the data has one
	// owner at a time.
	Share func(tb testing.TB, with durabletasks.TaskStore) durabletasks.TaskStore

	// Now returns the time by which the store takes records for expired; nil
	// means [time.Now].
	Now func() time.Time

	// Advance moves the time that Now returns, which otherwise stands still;
	// a [Clock] does both. Nil means that the time cannot be moved. Checks of
	// a clock that goes back call it with a negative d; they are skipped if it
	// ignores that, as [time.Sleep] does.
	Advance func(d time.Duration)

	// Timeout is how long one check may take; zero means a minute. A check
	// that takes longer fails and names the calls that have not returned. It
	// gets no more than half of the time that go test's -timeout leaves.
	Timeout time.Duration
}

// Run runs every check of the contract against the store, each as a subtest
// with a stable name such as "S06/stale-version-changes-nothing". With
// -short, the checks that repeat something repeat it less often.
//
// The checks run one after the other. New, Reopen, Share and Advance are called
// by one goroutine at a time, Now by several.
//
// When three checks have not ended in time, or one has not and go test's
// -timeout is near, the rest is skipped. At the end Run logs how many checks
// were skipped, and why.
func Run(t *testing.T, s Subject) {
	t.Helper()
	if s.New == nil {
		t.Fatal("storetest: Subject.New is nil")
	}
	var sum summary
	for _, c := range checks {
		t.Run(c.name(), func(t *testing.T) {
			sum.run(newTrial(t, s, testing.Short()), c.run)
		})
	}
	sum.log(t)
}

// summary is what has become of the checks of a run.
type summary struct {
	hung    int
	skipped int
	reasons map[string]int
}

// run runs a check, unless too many before it have not ended: each of them
// waits for its Timeout, and what go test ends by its own is never printed.
func (s *summary) run(t *trial, run func(*trial)) {
	t.tb.Helper()
	defer func() { // Skip does not return
		if t.hung.Load() {
			s.hung++
		} else if t.skip != "" {
			if s.reasons == nil {
				s.reasons = make(map[string]int)
			}
			s.reasons[t.skip]++
			s.skipped++
		}
	}()
	if s.hung >= 3 || s.hung > 0 && t.hurried {
		t.skip = "skipped, because checks before it did not end"
		t.tb.Skip(t.skip)
		return
	}
	run(t)
}

// log logs which checks say nothing about the store.
func (s *summary) log(t testing.TB) {
	t.Helper()
	if s.skipped == 0 {
		return
	}
	lines := []string{fmt.Sprintf("storetest: %d of %d checks were skipped", s.skipped, len(checks))}
	for _, reason := range slices.Sorted(maps.Keys(s.reasons)) {
		lines = append(lines, fmt.Sprintf("%d %s", s.reasons[reason], reason))
	}
	t.Log(strings.Join(lines, "\n\t"))
}

// check is one rule for a store.
type check struct {
	clause string // a key of clauses
	title  string
	needs  seam
	f      func(*trial)
}

func (c check) name() string { return c.clause + "/" + c.title }

// checks has every check, in the order of the clauses.
var checks = slices.SortedStableFunc(slices.Values(slices.Concat(
	createChecks,
	getChecks,
	updateChecks,
	aliasChecks,
	wholenessChecks,
	expiryChecks,
	sweepChecks,
	reopenChecks,
	closeChecks,
	contextChecks,
	concurrencyChecks,
	stringChecks,
	errorChecks,
	shareChecks,
	scanChecks,
	watchChecks,
)), func(a, b check) int { return strings.Compare(a.clause, b.clause) })

// seam is a set of what a check needs beside New.
type seam int

const (
	needsReopen seam = 1 << iota
	needsShare
	needsAdvance
	needsRewind
	needsScanner
	needsWatcher
)

// missing returns why a check that has needs cannot run, or "".
func (s *Subject) missing(needs seam) string {
	switch {
	case needs&needsReopen != 0 && s.Reopen == nil:
		return "skipped, because Subject.Reopen is nil: the store's records end with it"
	case needs&needsShare != 0 && s.Share == nil:
		return "skipped, because Subject.Share is nil: the store's data has one owner at a time"
	case needs&needsAdvance != 0 && s.Advance == nil:
		return "skipped, because Subject.Advance is nil: the store's time cannot be moved"
	}
	return ""
}
