package wal_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// disk is a model of a file system that keeps only what was synced: of a file
// what its fsync has covered, of a directory the names that its own fsync has
// covered. What was not synced may be there after a power loss or not, sector
// by sector and name by name.
type disk struct {
	names   map[string]*inode
	durable map[string]*inode
	changes []func(names map[string]*inode) // of the directory, since it was synced
}

type inode struct {
	data, durable string
}

func newDisk() *disk { return &disk{names: map[string]*inode{}, durable: map[string]*inode{}} }

func (d *disk) rename(f func(names map[string]*inode)) {
	f(d.names)
	d.changes = append(d.changes, f)
}

// apply makes a system call on the model.
func (d *disk) apply(c *sysCall) {
	file := d.names[c.path]
	switch c.name {
	case "open":
		if file == nil {
			file = new(inode)
			d.rename(func(names map[string]*inode) { names[c.path] = file })
		}
		if c.trunc {
			file.data = ""
		}
	case "write":
		file.data += c.data
	case "pwrite":
		end := int(c.at) + len(c.data)
		if len(file.data) < end {
			file.data += strings.Repeat("\x00", end-len(file.data))
		}
		file.data = file.data[:c.at] + c.data + file.data[end:]
	case "ftruncate":
		file.data = file.data[:c.at]
	case "fsync":
		if c.path == "." {
			d.changes = nil
			d.durable = map[string]*inode{}
			for name, file := range d.names {
				d.durable[name] = file
			}
			return
		}
		file.durable = file.data
	case "rename":
		d.rename(func(names map[string]*inode) {
			if file, ok := names[c.path]; ok {
				delete(names, c.path)
				names[c.to] = file
			}
		})
	case "unlink":
		d.rename(func(names map[string]*inode) { delete(names, c.path) })
	}
}

// loss says what survives of what was not synced.
type loss struct {
	name   string
	change func() bool            // a change of the directory
	sector func() bool            // a sector of a file
	size   func(old, new int) int // a file's size
}

func always(b bool) func() bool { return func() bool { return b } }

func losses(r *rand.Rand) []loss {
	toss := func() bool { return r.IntN(2) == 0 }
	least := func(old, new int) int { return old }
	most := func(old, new int) int { return new }
	prefix := func() func() bool {
		left := r.IntN(8)
		return func() bool { left--; return left >= 0 }
	}
	return []loss{
		{"everything survives", always(true), always(true), most},
		{"nothing survives", always(false), always(false), least},
		{"only names survive", always(true), always(false), least},
		{"names and sizes survive", always(true), always(false), most},
		{"some names, no data", toss, always(false), least},
		{"some names, all data", toss, always(true), most},
		{"the first names, some data", prefix(), toss, most},
		{"all names, some data", always(true), toss, func(old, new int) int { return min(old, new) + r.IntN(max(old, new)-min(old, new)+1) }},
		{"some names, some data", toss, toss, most},
	}
}

// after returns what a power loss leaves.
func (d *disk) after(l loss) files {
	names := map[string]*inode{}
	for name, file := range d.durable {
		names[name] = file
	}
	for _, change := range d.changes {
		if l.change() {
			change(names)
		}
	}
	fs := files{}
	for name, file := range names {
		fs[name] = file.after(l)
	}
	return fs
}

func (f *inode) after(l loss) string {
	if f.data == f.durable {
		return f.data
	}
	out := []byte(f.durable)
	size := l.size(len(f.durable), len(f.data))
	for len(out) < size {
		out = append(out, 0)
	}
	for at := 0; at < size && at < len(f.data); at += 512 {
		end := min(at+512, size, len(f.data))
		if l.sector() {
			copy(out[at:end], f.data[at:end])
		}
	}
	return string(out[:size])
}

// After a power loss at any moment, with any part lost of what was not synced:
// with sync on, every acknowledged step is there, and without it the store is
// as it was after some step.
func TestPowerLoss(t *testing.T) {
	t.Parallel()
	sc, states := workloadStates(t)
	for i := range 4 {
		sync, segment := i%2 == 0, []int{workloadSegment, largeSegment}[i/2]
		t.Run(fmt.Sprintf("sync=%v/segment=%d", sync, segment), func(t *testing.T) {
			t.Parallel()
			r := newRand(t)
			calls := workloadCalls(t, sync, segment)
			d := newDisk()
			dir := ramDir(t)
			refused, opened := 0, 0
			for n, c := range calls {
				d.apply(c)
				if c.name == "print" || n%rounds(3, 1) != 0 {
					continue
				}
				steps := acknowledged(calls[:n+1])
				for _, l := range losses(r) {
					what := fmt.Sprintf("sync %v, segments of %d, power lost after call %d (%v), %s", sync, segment, n, c, l.name)
					left := d.after(l)
					left.restore(t, dir)
					first := -1
					for again := range 2 {
						s, err := wal.OpenSeam(dir, fixed(&wal.Options{Sync: again == 1}), segment, nil)
						if errors.Is(err, wal.ErrCorrupt) && again == 0 && strings.Contains(l.name, "some data") {
							refused++ // a half lost entry can look like damage
							break
						}
						if err != nil {
							t.Fatalf("%s, open %d: %v\n%s", what, again+1, err, left.sizes())
						}
						got := read(t, s, sc.ids)
						mustClose(t, s)
						at := position(states[:min(steps+2, len(states))], got)
						if at < 0 || first >= 0 && at != first {
							t.Fatalf("%s, open %d: state %d, before that %d\n%s", what, again+1, at, first, left.sizes())
						}
						if (sync || l.name == "everything survives") && at < position(states[:steps+1], states[steps]) {
							t.Fatalf("%s: %d steps were acknowledged, %d are there\n%s", what, steps, at, left.sizes())
						}
						first = at
						opened++
					}
				}
			}
			t.Logf("opened %d times, refused %d", opened, refused)
		})
	}
}

// After a power loss while a store is being repaired and written to again, the
// torn end does not come back, and what was acknowledged is there.
func TestPowerLossAfterRepair(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, _, sc := smallLog(t, dir, nil)
	name := whole.segments()[0]
	at := entries(whole[name])
	whole[name] = whole[name][:at[len(at)-1]-40]
	whole[name+".START.TEMP"] = "rest"
	whole.restore(t, dir)
	calls := traced(t, dir, "recover", []string{dir}, func(int, *sysCall) verdict { return verdict{} })
	if acknowledged(calls) != recovered {
		t.Fatal("the child did not do its work")
	}
	whole.restore(t, dir)
	s := mustOpen(t, dir, nil)
	want := read(t, s, sc.ids)
	mustClose(t, s)

	d := newDisk()
	for name, data := range whole {
		d.names[name] = &inode{data, data}
		d.durable[name] = d.names[name]
	}
	r := newRand(t)
	for n, c := range calls {
		d.apply(c)
		steps := acknowledged(calls[:n+1])
		for range 5 {
			for _, l := range losses(r) {
				what := fmt.Sprintf("power lost after call %d (%v), %s", n, c, l.name)
				left := d.after(l)
				left.restore(t, dir)
				s, err := wal.Open(dir, fixed(nil))
				if err != nil {
					t.Fatalf("%s: %v\n%s", what, err, left.sizes())
				}
				if position([]contents{want}, read(t, s, sc.ids)) != 0 {
					t.Fatalf("%s: what was there before repairing has changed", what)
				}
				for i := range recovered {
					if _, err := s.Get(ctx, fmt.Sprint("new-", i)); err != nil && i < steps || err == nil && i > steps {
						t.Fatalf("%s: %d new tasks were acknowledged; number %d: %v", what, steps, i, err)
					}
				}
				mustClose(t, s)
			}
		}
	}
}

// sizes lists the files, for a failure's message.
func (fs files) sizes() string {
	var b strings.Builder
	for name, data := range fs {
		fmt.Fprintf(&b, "%s: %d bytes\n", name, len(data))
	}
	return b.String()
}
