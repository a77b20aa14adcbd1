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
				p.accept = func(record, int64) error { return nil }
			}),
			check: check,
			want: []string{
				"S06: an Update whose expected version is not the stored one changes nothing and reports a *ConflictError.",
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
					p.update = func(ctx, record, int64) (record, error) { select {} }
				})
				s.Timeout = 100 * time.Millisecond
				return s
			}(),
			check: check,
			want: []string{
				`the check did not end in 100ms; calls that have not returned: Update of task "task" from version 0`,
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
				p.update = func(ctx, record, int64) (record, error) { panic("no table") }
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
			want:  []string{"Close, when the check had ended: disk full"},
		},
		"a clock that runs": {
			subject: storetest.Subject{
				New: func(testing.TB) durabletasks.TaskStore {
					return plant(time.Now, func(*planted) {}, newDisk(make(map[string]record)))
				},
				Advance: func(time.Duration) {},
			},
			check: "S09/expiry-includes-its-moment",
			want:  []string{"the time must stand still but for Advance"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := outcome(t, tt.subject, tt.check).Failure
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("failure without %q:\n%s", want, got)
				}
			}
		})
	}
}

// onlyStore hides what a store has beyond a TaskStore.
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
