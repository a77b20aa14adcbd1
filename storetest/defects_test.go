package storetest_test

import (
	"flag"
	"maps"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// defect is a mistake in a store.
type defect struct {
	name   string
	plant  func(*planted)
	shared bool     // only stores with several instances have it
	hangs  bool     // a check fails by timing out
	waits  bool     // it sleeps to let other calls in; its checks run in bubbles, where that is certain and takes no time
	fails  []string // the checks that must fail
	also   []string // patterns of checks that may fail as well
}

// mayFail reports whether the check must or may fail.
func (d defect) mayFail(check string) bool {
	return slices.Contains(d.fails, check) || slices.ContainsFunc(d.also, func(pattern string) bool {
		ok, err := path.Match(pattern, check)
		if err != nil {
			panic(err) // of a pattern in the table
		}
		return ok
	})
}

// TestMain runs more parallel tests than there are processors, because some of
// them wait.
func TestMain(m *testing.M) {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		if err := flag.Set("test.parallel", "16"); err != nil {
			panic(err)
		}
	}
	os.Exit(m.Run())
}

// TestDefects proves the suite: each defect makes the checks fail that are meant
// for it, and no others except those that may. Each check finds a defect.
func TestDefects(t *testing.T) {
	for _, none := range []defect{
		{name: "the store without a defect", plant: func(*planted) {}, shared: true},
		{name: "a slow store", plant: slow, shared: true, waits: true},
	} {
		if failed := none.failing(t, 0, everyCheck); len(failed) > 0 {
			t.Fatalf("checks fail on %s: %v", none.name, failed)
		}
	}
	found := make(map[string]bool)
	alone := make(map[string]bool)
	for _, d := range defects {
		clauses := make(map[string]bool)
		for _, name := range d.fails {
			found[name] = true
			clauses[path.Dir(name)] = true
		}
		for _, pattern := range d.also {
			clauses[path.Dir(pattern)] = true
		}
		if len(clauses) == 1 {
			maps.Copy(alone, clauses)
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			may := d.failing(t, 200*time.Millisecond, d.mayFail) // only for checks that hang
			for _, name := range d.fails {
				if !slices.Contains(may, name) {
					t.Errorf("%s passes", name)
				}
			}
			for _, name := range d.failing(t, 0, func(name string) bool { return !d.mayFail(name) }) {
				t.Errorf("%s fails as well", name)
			}
		})
	}
	for _, name := range storetest.CheckNames() {
		if !found[name] {
			t.Errorf("no defect makes %s fail", name)
		}
	}
	for number := range storetest.Clauses() {
		if !alone[number] {
			t.Errorf("no defect breaks %s alone", number)
		}
	}
}

func everyCheck(string) bool { return true }

// failing returns which of the accepted checks fail on the store with the
// defect. The timeout counts only if the defect makes checks hang.
func (d defect) failing(t *testing.T, timeout time.Duration, accept func(string) bool) []string {
	s := subject(d.plant)
	if !d.shared {
		s.Share = nil
	}
	if d.hangs {
		s.Timeout = timeout
	}
	outcomes := storetest.Outcomes
	if d.waits {
		outcomes = func(_ testing.TB, s storetest.Subject, accept func(string) bool) map[string]storetest.Outcome {
			return storetest.OutcomesWithoutWaiting(t, s, accept)
		}
	}
	return failing(t, s, outcomes(t, s, accept))
}

// failing returns the checks that failed on the subject.
func failing(t *testing.T, s storetest.Subject, outcomes map[string]storetest.Outcome) []string {
	var failed []string
	for name, outcome := range outcomes {
		if outcome.Skip != "" && s.Share != nil {
			t.Errorf("%s is skipped: %s", name, outcome.Skip)
		}
		if outcome.Failure != "" {
			number, _, _ := strings.Cut(name, "/")
			if sentence := number + ": " + storetest.Clauses()[number]; !strings.HasPrefix(outcome.Failure, sentence+"\n\t") {
				t.Errorf("%s fails without its clause: %s", name, outcome.Failure)
			}
			failed = append(failed, name)
		}
	}
	slices.Sort(failed)
	return failed
}

// TestLostFields loses each field of a record in turn.
func TestLostFields(t *testing.T) {
	for i := range reflect.TypeFor[record]().NumField() {
		field := reflect.TypeFor[record]().Field(i)
		if field.Name == "ID" || field.Name == "Version" {
			continue // a store that loses these has no records
		}
		t.Run(field.Name, func(t *testing.T) {
			const want = "S01/every-field-is-kept"
			lose := defect{plant: func(p *planted) {
				p.in = func(r record) record {
					r = r.Clone()
					reflect.ValueOf(&r).Elem().FieldByIndex(field.Index).SetZero()
					return r
				}
			}}
			failed := lose.failing(t, 0, func(name string) bool { return name == want })
			if len(failed) == 0 {
				t.Errorf("%s passes", want)
			}
		})
	}
}

// TestTornFields returns each field of a record in turn from a later read.
func TestTornFields(t *testing.T) {
	for i := range reflect.TypeFor[record]().NumField() {
		field := reflect.TypeFor[record]().Field(i)
		if field.Name == "ID" || field.Name == "CreatedAt" {
			continue // these never change
		}
		t.Run(field.Name, func(t *testing.T) {
			const want = "S08/readers-see-whole-updates"
			tear := defect{waits: true, plant: func(p *planted) {
				p.get = func(c ctx, id string) (record, error) {
					r, err := p.doGet(c, id)
					betweenLookAndWrite()
					if later, laterErr := p.doGet(c, id); err == nil && laterErr == nil {
						reflect.ValueOf(&r).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(later).FieldByIndex(field.Index))
					}
					return r, err
				}
			}}
			failed := tear.failing(t, 0, func(name string) bool { return name == want })
			if len(failed) == 0 {
				t.Errorf("%s passes", want)
			}
		})
	}
}

// betweenLookAndWrite lets other goroutines run after the store has read and
// before it writes. In a bubble it returns when no other goroutine can run.
func betweenLookAndWrite() { time.Sleep(time.Millisecond) }

// slow makes every call take time before and after it does something.
func slow(p *planted) {
	wait := func() func() {
		betweenLookAndWrite()
		return betweenLookAndWrite
	}
	p.create = func(c ctx, r record) error { defer wait()(); return p.doCreate(c, r) }
	p.get = func(c ctx, id string) (record, error) { defer wait()(); return p.doGet(c, id) }
	p.update = func(c ctx, next record) error { defer wait()(); return p.doUpdate(c, next) }
	p.sweep = func(c ctx, now time.Time) (int, error) { defer wait()(); return p.doSweep(c, now) }
	p.scan = func(c ctx, visit func(record) bool) error { defer wait()(); return p.doScan(c, visit) }
	p.close = func() error { defer wait()(); return p.doClose() }
}

// lock is a mutex on which a goroutine of a bubble can wait.
type lock chan struct{}

func newLock() lock { return make(lock, 1) }

func (l lock) lock()   { l <- struct{}{} }
func (l lock) unlock() { <-l }

// lookFirst checks an update for a store that writes later.
func (p *planted) lookFirst(c ctx, next record) error {
	p.mu.Lock()
	err := p.usable(c)
	if err == nil {
		err = p.accept(next)
	}
	p.mu.Unlock()
	if err == nil {
		betweenLookAndWrite()
	}
	return err
}

var (
	// A store with such a defect cannot pass checks that only use what is broken.
	everything  = []string{"S*/*", "Scanner/*", "Watcher/*"}
	everyReopen = []string{"S11/*", "S09/expiry-holds-across-a-reopen", "Scanner/shows-the-unfinished-after-a-reopen"}
	everyRace   = []string{"S06/one-of-many-updates-wins", "S06/no-update-is-lost", "S08/readers-see-whole-updates", "S14/*", "Scanner/sees-whole-updates"}
)

var defects = slices.Concat(
	createDefects, getDefects, updateDefects, aliasDefects, wholenessDefects, expiryDefects, sweepDefects,
	reopenDefects, closeDefects, contextDefects, concurrencyDefects, stringDefects, errorDefects, shareDefects, scanDefects, watchDefects,
)
