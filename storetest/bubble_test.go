package storetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// TestEveryCheckInBubble runs the suite where a deadlock of the suite shows.
func TestEveryCheckInBubble(t *testing.T) {
	storetest.RunInBubble(t, subjectBy(time.Now, func(*planted) {}))
}

func TestBubble(t *testing.T) {
	const check = "S01/created-record-is-visible"
	for name, tt := range map[string]struct {
		plant func(*planted)
		want  []string // "" for no failure
	}{
		"no defect": {plant: func(*planted) {}},
		"a sweeper that close stops": {
			plant: func(p *planted) {
				stop := make(chan struct{})
				go sweepEvery(p, stop)
				p.close = func() error {
					if !p.closed {
						close(stop)
					}
					return p.doClose()
				}
			},
		},
		"a sweeper that nothing stops": {
			plant: func(p *planted) { go sweepEvery(p, nil) },
			want:  []string{"S01: ", "goroutines of the store still run after Close", "storetest_test.sweepEvery"},
		},
		"a call that waits for ever": {
			plant: func(p *planted) {
				p.create = func(ctx, record) error {
					<-make(chan struct{})
					return nil
				}
			},
			want: []string{"S01: ", "all goroutines in bubble are blocked", `calls that have not returned: Create of task "task"`},
		},
		"a record that is lost": {
			plant: func(p *planted) { p.admit = func(record) error { return durabletasks.ErrExists } },
			want:  []string{"S01: ", "Create of task"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := storetest.Subject{
				New: func(testing.TB) durabletasks.TaskStore {
					return plant(time.Now, tt.plant, newDisk(make(map[string]record)))
				},
			}
			got := storetest.OutcomesInBubble(t, s, func(name string) bool { return name == check })[check].Failure
			if len(tt.want) == 0 && got != "" {
				t.Errorf("the check fails: %s", got)
			}
			for _, want := range tt.want {
				if !strings.Contains(got, want) {
					t.Errorf("failure without %q:\n%s", want, got)
				}
			}
		})
	}
}

// TestBubbleHint uses a store with its own clock.
func TestBubbleHint(t *testing.T) {
	const check = "S09/expiry-includes-its-moment"
	s := subject(func(*planted) {})
	got := storetest.OutcomesInBubble(t, s, func(name string) bool { return name == check })[check].Failure
	if want := "Hint: the clock of the Subject says 2000-01-01 "; !strings.Contains(got, want) {
		t.Errorf("failure without %q:\n%s", want, got)
	}
}

func sweepEvery(p *planted, stop <-chan struct{}) {
	for tick := time.Tick(time.Minute); ; {
		select {
		case now := <-tick:
			p.Sweep(context.Background(), now)
		case <-stop:
			return
		}
	}
}
