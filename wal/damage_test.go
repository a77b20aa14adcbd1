package wal_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// files is the content of a directory.
type files map[string]string

func snapshot(t testing.TB, dir string) files {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	fs := files{}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if e.Name() != "LOCK" {
			fs[e.Name()] = string(data)
		}
	}
	return fs
}

func (fs files) clone() files {
	c := files{}
	for name, data := range fs {
		c[name] = data
	}
	return c
}

// restore makes dir hold exactly the files.
func (fs files) restore(t testing.TB, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if _, ok := fs[e.Name()]; !ok && e.Name() != "LOCK" {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, data := range fs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// segments names the segments in order.
func (fs files) segments() []string {
	var names []string
	for name := range fs {
		if len(name) == 20 {
			names = append(names, name)
		}
	}
	sort.Strings(names)
	return names
}

func sameFiles(t testing.TB, want, got files) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("file %s has changed", name)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("file %s is new", name)
		}
	}
}

// contents is what a store holds, by id.
type contents map[string]durabletasks.Record

// read returns the named records that the store has.
func read(t testing.TB, s *wal.Store, ids []string) contents {
	t.Helper()
	c := contents{}
	for _, id := range ids {
		r, err := s.Get(ctx, id)
		if err == nil {
			c[id] = r
		} else if !errors.Is(err, durabletasks.ErrNotFound) {
			t.Fatalf("Get: %v", err)
		}
	}
	return c
}

// script is a workload of known steps on a store.
type script struct {
	ids   []string
	steps []func(s *wal.Store) error
}

// scripted is a workload of every kind of entry: creates, updates of several
// kinds, a sweep, and an id that is used again.
func scripted(n int) script {
	var sc script
	add := func(step func(s *wal.Store) error) { sc.steps = append(sc.steps, step) }
	update := func(id string, change func(r *durabletasks.Record)) {
		add(func(s *wal.Store) error {
			r, err := s.Get(ctx, id)
			if err != nil {
				return err
			}
			change(&r)
			err = s.Update(ctx, r)
			return err
		})
	}
	for i := range n {
		id := fmt.Sprintf("task-%d", i)
		sc.ids = append(sc.ids, id)
		r := task(id)
		if i%3 == 1 {
			r = fullTask(id)
			r.Questions = questions("a", "b")
		}
		add(func(s *wal.Store) error { return s.Create(ctx, r) })
		update(id, func(r *durabletasks.Record) { r.StatusMessage = fmt.Sprintf("page %d", i) })
		if i%2 == 1 {
			update(fmt.Sprintf("task-%d", i/2), func(r *durabletasks.Record) {
				r.Status = durabletasks.StatusCompleted
				r.Result = fullTask("x").Result
			})
		}
		if i%4 == 2 {
			short := task("short")
			short.TTL = 1
			short.CreatedAt = epoch.Add(-1)
			short.StatusMessage = fmt.Sprint(i)
			add(func(s *wal.Store) error { return s.Create(ctx, short) })
			add(func(s *wal.Store) error { _, err := s.Sweep(ctx, epoch); return err })
		}
	}
	return sc
}

// history runs the script and returns the contents after each number of
// steps.
func (sc script) history(t testing.TB, s *wal.Store) []contents {
	t.Helper()
	states := []contents{read(t, s, sc.ids)}
	for i, step := range sc.steps {
		if err := step(s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		states = append(states, read(t, s, sc.ids))
	}
	return states
}

// position returns which of the states got is, the last one if there are
// several, or -1.
func position(states []contents, got contents) int {
	for i := len(states) - 1; i >= 0; i-- {
		if reflect.DeepEqual(states[i], got) {
			return i
		}
	}
	return -1
}

// wantRepaired opens the directory twice, and requires both times the same one
// of the states and a store that works. It returns the state's number.
func wantRepaired(t *testing.T, what, dir string, states []contents, ids []string) int {
	t.Helper()
	first := -1
	for again := range 2 {
		s, err := wal.Open(dir, fixed(nil))
		if err != nil {
			t.Errorf("%s, open %d: %v", what, again+1, err)
			return -1
		}
		at := position(states, read(t, s, ids))
		if at < 0 {
			t.Errorf("%s, open %d: a state that never existed", what, again+1)
		}
		if again == 0 {
			first = at
			mustCreate(t, s, task("after"))
		} else {
			if at != first {
				t.Errorf("%s: state %d after one recovery, %d after two", what, first, at)
			}
			equal(t, what+": what was written after repairing", mustGet(t, s, "after"), task("after"))
		}
		mustClose(t, s)
	}
	return first
}

// wantRefused opens the directory and requires a CorruptError and that
// nothing has changed.
func wantRefused(t *testing.T, what, dir string) *wal.CorruptError {
	t.Helper()
	before := snapshot(t, dir)
	s, err := wal.Open(dir, fixed(nil))
	if err == nil {
		_ = s.Close()
		t.Errorf("%s: opened", what)
		return nil
	}
	var corrupt *wal.CorruptError
	if !errors.As(err, &corrupt) || !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("%s: %v, want a CorruptError", what, err)
		return nil
	}
	sameFiles(t, before, snapshot(t, dir))
	return corrupt
}

// smallLog makes a log of one segment and returns its files and what it held
// after each step.
func smallLog(t *testing.T, dir string, opts *wal.Options) (files, []contents, script) {
	t.Helper()
	sc := scripted(6)
	s := mustOpen(t, dir, opts)
	states := sc.history(t, s)
	mustClose(t, s)
	return snapshot(t, dir), states, sc
}

// If the last segment is cut at any byte, the log opens with what it held at
// some earlier moment, and stays that way.
func TestCutAtEveryByte(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, sc := smallLog(t, dir, nil)
	name := whole.segments()[0]
	data := whole[name]
	const first = 27 // the size of the log's first entry, which is synced before the store exists
	want, got := map[int]bool{}, map[int]bool{}
	for _, c := range states {
		want[position(states, c)] = true
	}
	last := len(states) - 1
	got[last] = true
	for n := len(data) - 1; n >= first; n-- {
		cut := whole.clone()
		cut[name] = data[:n]
		cut.restore(t, dir)
		at := wantRepaired(t, fmt.Sprintf("cut at %d", n), dir, states, sc.ids)
		if at > last {
			t.Errorf("cut at %d: state %d follows state %d", n, at, last)
		}
		last = at
		got[at] = true
		if t.Failed() {
			return
		}
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("the cuts left the states %v, want each of %v", got, want)
	}
}

// A power loss leaves zeros after the end or in place of it.
func TestZeroTails(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, sc := smallLog(t, dir, nil)
	name := whole.segments()[0]
	data := whole[name]
	for _, n := range []int{1, 2, 3, 7, 16, 511, 512, 513, 4096, 100_000} {
		tail := whole.clone()
		tail[name] = data + strings.Repeat("\x00", n)
		tail.restore(t, dir)
		if at := wantRepaired(t, fmt.Sprintf("%d zeros appended", n), dir, states, sc.ids); at != len(states)-1 {
			t.Errorf("%d zeros appended: state %d of %d", n, at, len(states)-1)
		}
	}
	// The last sectors of the file, as they are when only its size was written.
	for n := len(data) / 512 * 512; n > 600; n -= 512 {
		tail := whole.clone()
		tail[name] = data[:n] + strings.Repeat("\x00", len(data)-n)
		tail.restore(t, dir)
		wantRepaired(t, fmt.Sprintf("zeros from %d on", n), dir, states, sc.ids)
	}
}

// The beginning of an entry that runs past the end of the file is torn, with
// any bytes in it.
func TestGarbageTail(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, sc := smallLog(t, dir, nil)
	name := whole.segments()[0]
	for _, garbage := range []string{"\xff", "\x80\x80", "\xf0\x01garbage", "\x7fgarbage", strings.Repeat("\xff\x7f", 100)} {
		tail := whole.clone()
		tail[name] += garbage
		tail.restore(t, dir)
		if at := wantRepaired(t, fmt.Sprintf("garbage %q", garbage), dir, states, sc.ids); at != len(states)-1 {
			t.Errorf("garbage %q: state %d of %d", garbage, at, len(states)-1)
		}
	}
}

// Open refuses a log with any single bit flipped, even in its last entry.
func TestEveryBitFlip(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		t.Run(fmt.Sprintf("sync=%v", sync), func(t *testing.T) {
			t.Parallel()
			dir := ramDir(t)
			sc := scripted(2)
			s := mustOpen(t, dir, &wal.Options{Sync: sync})
			sc.history(t, s)
			mustClose(t, s)
			whole := snapshot(t, dir)
			name := whole.segments()[0]
			path := filepath.Join(dir, name)
			data := []byte(whole[name])
			for i := range data {
				for bit := range 8 {
					flipped := bytes.Clone(data)
					flipped[i] ^= 1 << bit
					if err := os.WriteFile(path, flipped, 0o600); err != nil {
						t.Fatal(err)
					}
					what := fmt.Sprintf("bit %d of byte %d", bit, i)
					var e *wal.CorruptError
					if bit == i%8 { // compares all files, which takes longer
						e = wantRefused(t, what, dir)
					} else if s, err := wal.Open(dir, fixed(nil)); !errors.As(err, &e) {
						if err == nil {
							_ = s.Close()
						}
						t.Errorf("%s: %v, want a CorruptError", what, err)
					}
					if e != nil && (e.File != path || e.Offset > int64(i) || e.Index == 0 || e.Reason == "") {
						t.Errorf("bit %d of byte %d: reported as %v", bit, i, e)
					}
					if t.Failed() {
						return
					}
				}
			}
		})
	}
}

func TestTornCopiesAreBounded(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	c := newClock()
	name := snapshot(t, dir).segments()[0]
	for i := range 6 {
		f, err := os.OpenFile(filepath.Join(dir, name), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			t.Fatal(err)
		}
		torn := fmt.Sprintf("\x7ftorn %d", i)
		if _, err := f.WriteString(torn); err != nil {
			t.Fatal(err)
		}
		f.Close()
		c.advance(1e9)
		s := mustOpen(t, dir, &wal.Options{Now: c.now})
		tear := s.Torn()
		if tear == nil || tear.Bytes != int64(len(torn)) || filepath.Base(tear.File) != name {
			t.Fatalf("tear %d is reported as %+v", i, tear)
		}
		if kept, err := os.ReadFile(tear.Copy); err != nil || string(kept) != torn {
			t.Errorf("tear %d is kept as %q, %v", i, kept, err)
		}
		mustCreate(t, s, task(fmt.Sprint(i)))
		mustClose(t, s)
	}
	n := 0
	for name := range snapshot(t, dir) {
		if strings.HasPrefix(name, "torn-") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("%d copies of torn ends are kept, want 3", n)
	}
	if s := mustOpen(t, dir, nil); s.Torn() != nil {
		t.Error("a whole log is reported as torn")
	}
}

// Open refuses a segment that is not a regular file: reading it might never
// end.
func TestSegmentThatIsNoFile(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	next := filepath.Join(dir, "00000000000000000002")
	for what, place := range map[string]func() error{
		"directory":        func() error { return os.Mkdir(next, 0o700) },
		"link to a file":   func() error { return os.Symlink(filepath.Join(dir, "LOCK"), next) },
		"link to a device": func() error { return os.Symlink("/dev/zero", next) },
		"link to nowhere":  func() error { return os.Symlink(filepath.Join(dir, "nowhere"), next) },
	} {
		if err := place(); err != nil {
			t.Logf("%s: %v", what, err)
			continue
		}
		var corrupt *wal.CorruptError
		if _, err := wal.Open(dir, fixed(nil)); !errors.As(err, &corrupt) || corrupt.File != next {
			t.Errorf("%s in the place of a segment: %v, want a CorruptError", what, err)
		}
		if err := os.Remove(next); err != nil {
			t.Fatal(err)
		}
	}
	mustClose(t, mustOpen(t, dir, nil))
}
