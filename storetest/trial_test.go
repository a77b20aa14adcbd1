package storetest_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// outcome runs one check on a subject.
func outcome(t *testing.T, s storetest.Subject, check string) storetest.Outcome {
	outcomes := storetest.Outcomes(t, s, func(name string) bool { return name == check })
	if len(outcomes) != 1 {
		t.Fatalf("there is no check %q", check)
	}
	return outcomes[check]
}

func TestFailureSaysWhatAndWhy(t *testing.T) {
	const check = "S06/stale-version-changes-nothing"
	for name, tt := range map[string]struct {
		subject storetest.Subject
		check   string
		want    []string
	}{
		"a wrong answer": {
			subject: subject(func(p *planted) {
				p.accept = func(record) error { return nil }
			}),
			check: check,
			want: []string{
				"S06: an Update whose Version is not the stored one, be it lower or higher, changes nothing and reports a *ConflictError.",
				"Update from version 0 of a task at version 1: got no error, want a *ConflictError",
			},
		},
		"a wrong field": {
			subject: subject(func(p *planted) {
				p.in = func(r record) record {
					r.Owner = strings.ToUpper(r.Owner)
					return r.Clone()
				}
			}),
			check: "S01/every-field-is-kept",
			want:  []string{`task "full working" after Create: Owner is "OWNER 0", want "owner 0"`},
		},
		"a hanging call": {
			subject: func() storetest.Subject {
				s := subject(func(p *planted) {
					p.update = func(ctx, record) error { select {} }
				})
				s.Timeout = 2 * time.Second // enough to get to that call
				return s
			}(),
			check: check,
			want: []string{
				`the check did not end within 2s; calls that have not returned: Update of task "task" from version 0`,
				"goroutine ",
			},
		},
		"a hanging New": {
			subject: storetest.Subject{
				New:     func(testing.TB) durabletasks.TaskStore { select {} },
				Timeout: 100 * time.Millisecond,
			},
			check: check,
			want:  []string{"calls that have not returned: New"},
		},
		"a panic": {
			subject: subject(func(p *planted) {
				p.update = func(ctx, record) error { panic("no table") }
			}),
			check: check,
			want:  []string{`Update of task "task" from version 0 panicked: no table`, "trial_test.go:"},
		},
		"a New that fails": {
			subject: storetest.Subject{New: func(tb testing.TB) durabletasks.TaskStore {
				tb.Fatal("no disk")
				return nil
			}},
			check: check,
			want:  []string{"no disk"},
		},
		"no store": {
			subject: storetest.Subject{New: func(testing.TB) durabletasks.TaskStore { return nil }},
			check:   check,
			want:    []string{"Subject.New returned nil"},
		},
		"a store that is not empty": {
			subject: storetest.Subject{New: func(testing.TB) durabletasks.TaskStore {
				p := plant(time.Now, func(*planted) {}, newDisk(make(map[string]record)))
				p.admit = func(record) error { return durabletasks.ErrExists }
				return p
			}},
			check: check,
			want:  []string{"Subject.New must return an empty store"},
		},
		"a close that fails": {
			subject: subject(func(p *planted) {
				p.close = func() error { return errors.New("disk full") }
			}),
			check: check,
			want:  []string{"Close at the end of the check: disk full"},
		},
		"a panic in New": {
			subject: storetest.Subject{New: func(testing.TB) durabletasks.TaskStore { panic("no directory") }},
			check:   check,
			want:    []string{"S06: ", "Subject.New panicked: no directory", "trial_test.go:"},
		},
		"a panic in Reopen": {
			subject: func() storetest.Subject {
				s := subject(func(*planted) {})
				s.Reopen = func(_ testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore {
					return old.(*durabletasks.MemStore)
				}
				return s
			}(),
			check: "S11/versions-survive",
			want:  []string{"S11: ", "Subject.Reopen panicked: interface conversion", "trial_test.go:"},
		},
		"a Reopen that returns the closed store": {
			subject: func() storetest.Subject {
				s := subject(func(*planted) {})
				s.Reopen = func(_ testing.TB, old durabletasks.TaskStore) durabletasks.TaskStore { return old }
				return s
			}(),
			check: "S11/versions-survive",
			want:  []string{"durabletasks: closed", "Hint: Subject.Reopen returned the store that was closed"},
		},
		"a Reopen of something else": {
			subject: func() storetest.Subject {
				s := subject(func(*planted) {})
				s.Reopen = func(tb testing.TB, _ durabletasks.TaskStore) durabletasks.TaskStore { return s.New(tb) }
				return s
			}(),
			check: "S11/versions-survive",
			want:  []string{"got error", "Hint: the store that Subject.Reopen returned has none of the records"},
		},
		"a store on the system's clock": {
			subject: func() storetest.Subject {
				var clock storetest.Clock
				s := subjectBy(time.Now, func(*planted) {})
				s.Now, s.Advance = clock.Now, clock.Advance
				return s
			}(),
			check: "S09/expiry-includes-its-moment",
			want:  []string{"Hint: the clock of the Subject says 2026-01-01 00:00:00 +0000 UTC, but the store uses one that says about 20"},
		},
		"a store on a clock that the subject does not have": {
			subject: subjectBy(new(storetest.Clock).Now, func(*planted) {}),
			check:   "S09/ttl-lowered-below-the-age",
			want:    []string{"Hint: the clock of the Subject says 20", "but the store uses one that says about 2026-01-01 00:00:00 +0000 UTC"},
		},
		"times that print alike": {
			subject: subject(func(p *planted) {
				p.out = func(r record) record {
					r.CreatedAt = r.CreatedAt.In(time.FixedZone("UTC", 0))
					return r.Clone()
				}
			}),
			check: "S01/created-record-is-visible",
			want:  []string{`CreatedAt is 2026-01-01 00:00:00 +0000 UTC (whose Location is "UTC" and not time.UTC), want 2026-01-01 00:00:00 +0000 UTC`},
		},
		"a clock that runs": {
			subject: storetest.Subject{
				New: func(testing.TB) durabletasks.TaskStore {
					return plant(time.Now, func(*planted) {}, newDisk(make(map[string]record)))
				},
				Advance: func(time.Duration) {},
			},
			check: "S09/expiry-includes-its-moment",
			want:  []string{"only Advance may move the time"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := outcome(t, tt.subject, tt.check).Failure
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("failure without %q:\n%s", want, got)
				}
			}
		})
	}
}

// onlyStore hides the optional interfaces of a store.
type onlyStore struct{ durabletasks.TaskStore }

func TestMissingSeamsSkip(t *testing.T) {
	s := storetest.Subject{New: func(testing.TB) durabletasks.TaskStore { return onlyStore{new(durabletasks.MemStore)} }}
	seams := map[string]int{"Subject.Reopen is nil": 0, "Subject.Share is nil": 0, "Subject.Advance is nil": 0, "does not implement durabletasks.Scanner": 0, "does not implement durabletasks.Watcher": 0}
	for name, outcome := range storetest.Outcomes(t, s, everyCheck) {
		if outcome.Failure != "" {
			t.Errorf("%s fails on a bare MemStore: %s", name, outcome.Failure)
		}
		if outcome.Skip == "" {
			continue
		}
		known := false
		for reason := range seams {
			if strings.Contains(outcome.Skip, reason) {
				seams[reason]++
				known = true
			}
		}
		if !known {
			t.Errorf("%s is skipped without a reason: %q", name, outcome.Skip)
		}
	}
	for reason, n := range seams {
		if n == 0 {
			t.Errorf("no check is skipped because %s", reason)
		}
	}
}

// TestNoHintForTheStoresOwnMistakes uses defects that look like mistakes in the
// subject.
func TestNoHintForTheStoresOwnMistakes(t *testing.T) {
	for check, plant := range map[string]func(*planted){
		"S09/expiry-includes-its-moment": func(p *planted) { p.expired = func(record, time.Time) bool { return false } },
		"S01/created-record-is-visible":  func(p *planted) { p.expired = func(record, time.Time) bool { return true } },
		"S11/created-records-survive": func(p *planted) {
			p.saved = func(r record) (record, bool) { return r, r.Status == durabletasks.StatusWorking }
		},
	} {
		failure := outcome(t, subject(plant), check).Failure
		if failure == "" {
			t.Errorf("%s passes", check)
		}
		if strings.Contains(failure, "Hint: ") {
			t.Errorf("%s fails with a hint: %s", check, failure)
		}
	}
}

// TestHangsBeforeTheDeadline has a deadline, as go test's -timeout sets one.
func TestHangsBeforeTheDeadline(t *testing.T) {
	t.Parallel()
	s := subject(func(p *planted) { p.create = func(ctx, record) error { select {} } })
	began := time.Now()
	outcomes := storetest.OutcomesBefore(t, s, time.Now().Add(6*time.Second))
	if took := time.Since(began); took > 6*time.Second {
		t.Errorf("the suite took %v, where go test would end it after 6s", took)
	}
	failed, skipped := 0, 0
	for _, outcome := range outcomes {
		if strings.Contains(outcome.Failure, "calls that have not returned: Create of task") {
			failed++
		}
		if strings.Contains(outcome.Skip, "earlier checks did not end") {
			skipped++
		}
	}
	if failed != 1 || skipped < 50 {
		t.Errorf("%d checks failed and %d were skipped, want 1 and the rest", failed, skipped)
	}
}

// TestHangsEndTheSuite has no deadline.
func TestHangsEndTheSuite(t *testing.T) {
	s := subject(func(p *planted) { p.create = func(ctx, record) error { select {} } })
	s.Timeout = 20 * time.Millisecond
	failed := 0
	for _, outcome := range storetest.OutcomesBefore(t, s, time.Time{}) {
		if strings.Contains(outcome.Failure, "did not end within 20ms") {
			failed++
		}
	}
	if failed != 3 {
		t.Errorf("%d checks did not end before the rest was skipped, want 3", failed)
	}
}

func TestSummary(t *testing.T) {
	got := storetest.Summary(t, storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore { return onlyStore{new(durabletasks.MemStore)} },
	})
	for _, want := range []string{
		" checks were skipped\n", "skipped, because the store does not implement durabletasks.Scanner\n", "skipped, because Subject.Reopen is nil",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("summary without %q:\n%s", want, got)
		}
	}
	if got := storetest.Summary(t, subject(func(*planted) {})); got != "" {
		t.Errorf("summary of a run in which nothing is skipped: %s", got)
	}
}
