package storetest_test

import (
	"flag"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
)

func TestModel(t *testing.T) {
	storetest.Model(t, subject(func(*planted) {}))
}

// TestModelWithoutSeams uses a store that can only be made.
func TestModelWithoutSeams(t *testing.T) {
	storetest.Model(t, storetest.Subject{
		New: func(testing.TB) durabletasks.TaskStore { return onlyStore{new(durabletasks.MemStore)} },
	})
}

// beyondModel are the defects that no history shows: they need concurrent calls,
// many or large values, or something else that a history does not do. The test
// omits defects of single strings as well, because a history uses few of these.
var beyondModel = map[string]bool{
	"a call during close reports what broke":                    true,
	"a closed store has nothing to scan":                        true,
	"a commit is undone when its context ends":                  true,
	"a TTL cannot be removed":                                   true,
	"a scan calls visit from many goroutines":                   true,
	"a scan counts pages in an order that updates change":       true,
	"a scan does not stop":                                      true,
	"a scan ends after a hundred":                               true,
	"a scan ends after a thousand":                              true,
	"a scan ends where a task is gone":                          true,
	"a scan goes on when its context ends":                      true,
	"a scan reads the status first and the record later":        true,
	"a scan that close ends returns nil":                        true,
	"a scan that is stopped is an error":                        true,
	"a scan whose context ends returns nil":                     true,
	"a second close is an error":                                true,
	"a store in use is busy":                                    true,
	"a sweep checks its context between removals":               true,
	"a sweep checks first and removes later":                    true,
	"a sweep removes twenty":                                    true,
	"a sweep reports a context that ended after the commit":     true,
	"a sweep rounds its time":                                   true,
	"a sweep ignores the zone of its time":                      true,
	"a sweep whose context is done returns a count":             true,
	"a sweep at the zero time uses the clock":                   true,
	"the error for a taken id names its owner":                  true,
	"an error names the task":                                   true,
	"an update restores what a sweep has just removed":          true,
	"an update is lost to an update of another task":            true,
	"an update checks first and writes later":                   true,
	"the same question is kept once":                            true,
	"a create that is refused empties the caller's maps":        true,
	"a deadline in 1970 is lost":                                true,
	"an update that is refused reverses the caller's questions": true,
	"update appends to the caller's questions":                  true,
	"a digest of 0xff bytes is lost":                            true,
	"answers have 64 KiB":                                       true,
	"close saves before it stops the writers":                   true,
	"create checks first and writes later":                      true,
	"create with an equal record succeeds":                      true,
	"the expiry is computed in nanoseconds":                     true,
	"durations are 32 bits of milliseconds":                     true,
	"every tenth update adds two":                               true,
	"ids are searched without case":                             true,
	"large records are not saved":                               true,
	"lengths are saved in 16 bits":                              true,
	"no limit is a month":                                       true,
	"no limit is swept in the far future":                       true,
	"payloads have 64 KiB":                                      true,
	"concurrent reads of two tasks fail":                        true,
	"all reads share a buffer":                                  true,
	"records have 3 MiB":                                        true,
	"scan does not check its context":                           true,
	"the context's cause is reported":                           true,
	"the status is written before the rest":                     true,
	"times are 32 bits of seconds":                              true,
	"times are nanoseconds":                                     true,
	"two sweeps count the same record":                          true,
	"update reports a context that ended after the commit":      true,
	"updates of one version merge":                              true,
	"versions are bytes":                                        true,
	"the error for an expired task differs":                     true,
}

func TestModelFindsDefects(t *testing.T) {
	if testing.Short() {
		t.Skip("skipped, because fewer histories find less")
	}
	t.Parallel() // the flags are global; the other tests of models have ended by now
	for name, value := range map[string]string{"rapid.nofailfile": "true", "rapid.shrinktime": "1ns", "rapid.checks": "5000"} {
		f := flag.Lookup(name)
		old := f.Value.String()
		t.Cleanup(func() { f.Value.Set(old) })
		if err := f.Value.Set(value); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range defects {
		if d.shared || d.hangs || beyondModel[d.name] || strings.HasPrefix(d.fails[0], "S15/") {
			continue
		}
		t.Run(d.name, func(t *testing.T) {
			t.Parallel()
			if storetest.ModelFailure(t, subject(d.plant)) == "" {
				t.Error("the model does not find it")
			}
		})
	}
}
