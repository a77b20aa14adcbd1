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

// Subject describes the store under test: how to make one, and what the suite
// can do with it. Only New is required. A check that needs another field which
// is nil is skipped and says why.
type Subject struct {
	// New returns a new, empty store. The suite calls it once for each check, and
	// again after a failure, to look for a mistake in the Subject. The suite
	// closes the store; use tb.Cleanup for anything else.
	New func(tb testing.TB) durabletasks.TaskStore

	// Reopen returns a new store on the data of old, which the suite has closed.
	// Nil means that the records of a store end with it.
	Reopen func(tb testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore

	// Share returns another store on the data of with, which stays open, as if
	// in another process. Nil means that only one store at a time can use the
	// data.
	Share func(tb testing.TB, with durabletasks.TaskStore) durabletasks.TaskStore

	// Now returns the time of the clock by which the store expires records. Nil
	// means [time.Now].
	Now func() time.Time

	// Advance moves the time that Now returns, which must otherwise stand still.
	// A [Clock] has both. Nil means that the time cannot be moved. Some checks
	// call Advance with a negative d, to set the time back; they are skipped if
	// it ignores that, as [time.Sleep] does.
	Advance func(d time.Duration)

	// Timeout is how long a check may take; zero means a minute. A check that
	// takes longer fails and names the calls that have not returned. A check
	// never gets more than half of the time that is left of go test's -timeout.
	Timeout time.Duration
}

// Run checks the store against every rule of the contract, each in a subtest
// with a stable name, such as "S06/stale-version-changes-nothing". With -short,
// checks repeat less.
//
// The checks run one after the other. New, Reopen, Share and Advance are called
// by one goroutine at a time, Now by several.
//
// When three checks have timed out, or one has and go test's -timeout is near,
// the rest is skipped. At the end, Run logs how many checks were skipped and why.
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

// summary counts the checks of a run that say nothing about the store.
type summary struct {
	hung    int
	skipped int
	reasons map[string]int
}

// run runs a check, unless too many have hung: each takes its whole Timeout, and
// nothing is printed if go test's own -timeout comes first.
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
		t.skip = "skipped, because earlier checks did not end"
		t.tb.Skip(t.skip)
		return
	}
	run(t)
}

// log logs how many checks were skipped and why.
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

// check checks one rule.
type check struct {
	clause string // a key of clauses
	title  string
	needs  seam
	f      func(*trial)
}

func (c check) name() string { return c.clause + "/" + c.title }

// checks are all checks in the order of the clauses.
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

// seam is the set of what a check needs in addition to New.
type seam int

const (
	needsReopen seam = 1 << iota
	needsShare
	needsAdvance
	needsRewind
	needsScanner
	needsWatcher
)

// missing returns why a check with these needs cannot run, or "".
func (s *Subject) missing(needs seam) string {
	switch {
	case needs&needsReopen != 0 && s.Reopen == nil:
		return "skipped, because Subject.Reopen is nil: the records of a store end with it"
	case needs&needsShare != 0 && s.Share == nil:
		return "skipped, because Subject.Share is nil: only one store at a time can use the data"
	case needs&needsAdvance != 0 && s.Advance == nil:
		return "skipped, because Subject.Advance is nil: the store's time cannot be moved"
	}
	return ""
}
