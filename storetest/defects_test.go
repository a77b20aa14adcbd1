package storetest_test

import (
	"maps"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

// defect is one way to get a store wrong.
type defect struct {
	name   string
	plant  func(*planted)
	shared bool     // it is one of stores with several instances, and shows only there
	hangs  bool     // a check fails by its watchdog
	fails  []string // the checks that must fail
	also   []string // patterns of checks that cannot but fail too, or may
}

// TestDefects is the proof of the suite: each defect makes the checks fail
// that are for it, and no others; each check has a defect that it finds.
func TestDefects(t *testing.T) {
	if failed := failing(t, subject(func(*planted) {}), everyCheck); len(failed) > 0 {
		t.Fatalf("checks fail on the store without a defect: %v", failed)
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
			s := subject(d.plant)
			if !d.shared {
				s.Share = nil
			}
			if d.hangs {
				s.Timeout = time.Second
			}
			failed := failing(t, s, everyCheck)
			for _, name := range d.fails {
				if !slices.Contains(failed, name) {
					t.Errorf("%s passes", name)
				}
			}
			for _, name := range failed {
				may := slices.Contains(d.fails, name)
				for _, pattern := range d.also {
					ok, err := path.Match(pattern, name)
					may = may || ok
					if err != nil {
						t.Fatal(err)
					}
				}
				if !may {
					t.Errorf("%s fails, too", name)
				}
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

// failing returns the checks that fail on the store.
func failing(t *testing.T, s storetest.Subject, accept func(string) bool) []string {
	var failed []string
	for name, outcome := range storetest.Outcomes(t, s, accept) {
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
			lose := func(p *planted) {
				p.in = func(r record) record {
					r = r.Clone()
					reflect.ValueOf(&r).Elem().FieldByIndex(field.Index).SetZero()
					return r
				}
			}
			failed := failing(t, subject(lose), func(name string) bool { return name == want })
			if len(failed) == 0 {
				t.Errorf("%s passes", want)
			}
		})
	}
}

// TestTornFields takes each field of a record in turn from a later read.
func TestTornFields(t *testing.T) {
	for i := range reflect.TypeFor[record]().NumField() {
		field := reflect.TypeFor[record]().Field(i)
		if field.Name == "ID" || field.Name == "CreatedAt" {
			continue // these never change
		}
		t.Run(field.Name, func(t *testing.T) {
			t.Parallel()
			const want = "S08/readers-see-whole-updates"
			tear := func(p *planted) {
				p.get = func(c ctx, id string) (record, error) {
					r, err := p.doGet(c, id)
					betweenLookAndWrite()
					if later, laterErr := p.doGet(c, id); err == nil && laterErr == nil {
						reflect.ValueOf(&r).Elem().FieldByIndex(field.Index).Set(reflect.ValueOf(later).FieldByIndex(field.Index))
					}
					return r, err
				}
			}
			failed := failing(t, subject(tear), func(name string) bool { return name == want })
			if len(failed) == 0 {
				t.Errorf("%s passes", want)
			}
		})
	}
}

// betweenLookAndWrite lets others in after the store has looked and before it
// writes. It sleeps, which is no way to wait for something but makes slow what
// takes its time on a disk.
func betweenLookAndWrite() { time.Sleep(time.Millisecond) }

// lookFirst decides about an update, for a store that writes only later.
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
	// A store that gets these wrong cannot pass what only uses them.
	everything  = []string{"S*/*", "Scanner/*", "Watcher/*"}
	everyReopen = []string{"S11/*", "S09/expiry-holds-across-a-reopen", "Scanner/shows-the-unfinished-after-a-reopen"}
	everyRace   = []string{"S06/one-of-many-updates-wins", "S06/no-update-is-lost", "S08/readers-see-whole-updates", "S14/*", "Scanner/sees-whole-updates"}
)

var defects = slices.Concat(
	createDefects, getDefects, updateDefects, aliasDefects, wholenessDefects, expiryDefects, sweepDefects,
	reopenDefects, closeDefects, contextDefects, concurrencyDefects, stringDefects, errorDefects, shareDefects, scanDefects, watchDefects,
)
