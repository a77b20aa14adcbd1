package wal_test

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// manySegments makes a log of many small segments whose first ones have been
// cleaned away, and returns its files and what it held after each step.
func manySegments(t *testing.T, dir string) (files, []contents, script) {
	t.Helper()
	sc := workload()
	s, _ := openFaulty(t, dir, nil, workloadSegment)
	states := sc.history(t, s)
	// Some more, so that several segments are needed.
	for i := range 12 {
		r := mustGet(t, s, fmt.Sprint("task-", i%6))
		r.StatusMessage = strings.Repeat("more ", 40)
		mustUpdate(t, s, r)
		states = append(states, read(t, s, sc.ids))
	}
	mustClose(t, s)
	return snapshot(t, dir), states, sc
}

// Open refuses a directory whose files were lost or changed so that records
// could be lost or mixed up, and changes nothing. It accepts harmless changes.
func TestDamagedSegments(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, sc := manySegments(t, dir)
	names := whole.segments()
	if len(names) < 6 || names[0] == "00000000000000000001" {
		t.Fatalf("the log has the segments %v", names)
	}
	last := names[len(names)-1]
	if whole[last] == "" { // an empty one, as after a roll
		last = names[len(names)-2]
	}
	needed := names[2 : len(names)-2]
	type damage struct {
		name string
		do   func(fs files)
	}
	var refused, harmless, older []damage
	for _, name := range needed {
		refused = append(refused,
			damage{name + " is missing", func(fs files) { delete(fs, name) }},
			damage{name + " is empty", func(fs files) { fs[name] = "" }},
			damage{name + " is zero", func(fs files) { fs[name] = strings.Repeat("\x00", len(fs[name])) }},
			damage{name + " is cut", func(fs files) { fs[name] = fs[name][:len(fs[name])-1] }},
			damage{name + " is cut between entries", func(fs files) {
				n, size := binary.Uvarint([]byte(fs[name]))
				fs[name] = fs[name][:size+int(n)]
			}},
			damage{name + " has a zero more", func(fs files) { fs[name] += "\x00" }},
			damage{name + " is a copy of another", func(fs files) { fs[name] = fs[names[2]] + fs[names[3]] }},
			damage{name + " is doubled under the next number", func(fs files) { fs[next(name)] = fs[name] }},
		)
	}
	refused = append(refused,
		damage{"two segments have changed places", func(fs files) {
			fs[needed[0]], fs[needed[1]] = fs[needed[1]], fs[needed[0]]
		}},
		damage{"an empty segment far behind", func(fs files) { fs["00000000000000009999"] = "" }},
		damage{"all segments are missing", func(fs files) {
			for _, name := range names {
				delete(fs, name)
			}
		}},
		damage{"the first segments are missing", func(fs files) {
			for _, name := range names[:3] {
				delete(fs, name)
			}
		}},
		damage{"an end file", func(fs files) { fs[last+".END"] = fs[last] }},
		damage{"two start files", func(fs files) {
			fs[needed[0]+".START"], fs[needed[1]+".START"] = fs[needed[0]], fs[needed[1]]
		}},
		damage{"a torn start file", func(fs files) { fs[needed[0]+".START"] = fs[needed[0]][:20] }},
		damage{"a start file of what is needed", func(fs files) { fs[needed[1]+".START"] = fs[needed[1]] }},
		damage{"the format file is missing", func(fs files) { delete(fs, "FORMAT") }},
		damage{"the format file is another", func(fs files) { fs["FORMAT"] = "something else" }},
		damage{"the format file is empty", func(fs files) { fs["FORMAT"] = "" }},
	)
	harmless = []damage{
		{"nothing", func(fs files) {}},
		{"temporary files", func(fs files) {
			fs[names[1]+".START.TEMP"], fs[names[1]+".END.TEMP"], fs["FORMAT.TEMP"] = "rest", "rest", "rest"
		}},
		{"foreign files", func(fs files) {
			fs["notes.txt"], fs[names[1]+".bak"], fs["1234567890123456789012345"], fs["00000000000000000000"] = "a", "b", "c", "d"
		}},
		{"the dead first segment is missing", func(fs files) { delete(fs, names[0]) }},
		{"the dead first segment is empty", func(fs files) { fs[names[0]] = "" }},
		{"the dead first segment is a start file", func(fs files) {
			fs[names[0]+".START"] = fs[names[0]]
			delete(fs, names[0])
		}},
	}
	older = []damage{ // which nothing tells from a crash
		{"the last segment is missing", func(fs files) {
			delete(fs, names[len(names)-1])
			delete(fs, last)
		}},
		{"the last segment is empty", func(fs files) {
			delete(fs, names[len(names)-1])
			fs[last] = ""
		}},
	}
	for _, d := range refused {
		fs := whole.clone()
		d.do(fs)
		fs.restore(t, dir)
		wantRefused(t, d.name, dir)
	}
	for _, d := range append(harmless, older...) {
		fs := whole.clone()
		d.do(fs)
		fs.restore(t, dir)
		at := wantRepaired(t, d.name, dir, states, sc.ids)
		if isLast := at == len(states)-1; isLast != (len(d.name) > 0 && !strings.HasPrefix(d.name, "the last")) {
			t.Errorf("%s: opened with state %d of %d", d.name, at, len(states)-1)
		}
		for name := range snapshot(t, dir) {
			if strings.HasSuffix(name, ".TEMP") && name != "FORMAT.TEMP" || strings.HasSuffix(name, ".START") {
				t.Errorf("%s: %s is still there", d.name, name)
			}
		}
	}
}

// next is the name of a segment that begins one entry later.
func next(name string) string {
	var n uint64
	_, _ = fmt.Sscan(strings.TrimLeft(name, "0"), &n)
	return fmt.Sprintf("%020d", n+1)
}

func TestDirectoryInASegmentsPlace(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	if err := os.Mkdir(filepath.Join(dir, "00000000000000000002"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := wal.Open(dir, nil); !errors.Is(err, wal.ErrCorrupt) {
		t.Errorf("Open: %v, want ErrCorrupt", err)
	}
}

// A store of a later format is not reported as damage.
func TestLaterFormat(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("durabletasks wal 2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := wal.Open(dir, nil)
	if err == nil || errors.Is(err, wal.ErrCorrupt) || !strings.Contains(err.Error(), "durabletasks wal 2") {
		t.Errorf("Open of a later format: %v", err)
	}
}

// A process that dies while it creates a store does not keep the next one from
// creating it. A log that is not ours is left alone.
func TestUnfinishedCreation(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	whole := snapshot(t, dir)
	const name = "00000000000000000001"
	for n := range len(whole[name]) + 1 {
		for _, content := range []string{whole[name][:n], strings.Repeat("\x00", n)} {
			files{name: content, "FORMAT.TEMP": "dura"}.restore(t, dir)
			s := mustOpen(t, dir, nil)
			mustCreate(t, s, task("a"))
			mustClose(t, s)
			s = mustOpen(t, dir, nil)
			equal(t, "a", mustGet(t, s, "a"), task("a"))
			mustClose(t, s)
		}
	}
	for _, content := range []string{"\x03abc", whole[name] + "\x00", strings.Repeat("\x00", len(whole[name])+1)} {
		files{name: content}.restore(t, dir)
		wantRefused(t, fmt.Sprintf("a log of somebody else: %q", content), dir)
	}
	files{name: "", "FORMAT": whole["FORMAT"]}.restore(t, dir)
	wantRefused(t, "a finished store that was emptied", dir)
	files{name: "", "00000000000000000002": ""}.restore(t, dir)
	wantRefused(t, "two segments without a format file", dir)
}

// entries returns where each entry of a segment begins, and where the last
// one ends.
func entries(segment string) []int {
	at := []int{0}
	for {
		i := at[len(at)-1]
		n, size := binary.Uvarint([]byte(segment[i:]))
		if size <= 0 {
			return at
		}
		at = append(at, i+size+int(n))
	}
}

// Zeros in the part of the log that was synced are damage. In the part that was
// not, a power loss has left them.
func TestLostSector(t *testing.T) {
	t.Parallel()
	for _, sync := range []bool{false, true} {
		dir := ramDir(t)
		whole, states, sc := smallLog(t, dir, &wal.Options{Sync: sync})
		name := whole.segments()[0]
		data := whole[name]
		for at := 512; at+512 < len(data)-300; at += 512 {
			lost := whole.clone()
			lost[name] = data[:at] + strings.Repeat("\x00", 512) + data[at+512:]
			lost.restore(t, dir)
			what := fmt.Sprintf("sync %v: sector at %d is lost", sync, at)
			if sync {
				wantRefused(t, what, dir)
			} else {
				wantRepaired(t, what, dir, states, sc.ids)
			}
		}
	}
}

// Open refuses ends that look a little like a torn one, but that no crash can
// leave.
func TestNotTorn(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, _, _ := smallLog(t, dir, nil)
	name := whole.segments()[0]
	data := whole[name]
	at := entries(data)
	begin := at[len(at)-2]
	_, size := binary.Uvarint([]byte(data[begin:]))
	frame := begin + size
	for what, tail := range map[string]string{
		"the last entry behind its own place":          "\xff" + strings.Repeat("\x00", 1024) + data[frame:],
		"the last entry without its length":            data[frame:],
		"the last entry behind some other bytes":       "\xff\xff" + data[begin:],
		"the entry before the last one left out":       data[begin:],
		"the last entry twice":                         data[begin:] + data[begin:],
		"an entry of garbage that ends within the log": "\x20" + strings.Repeat("x", 0x30),
	} {
		fs := whole.clone()
		switch what {
		case "the entry before the last one left out":
			fs[name] = data[:at[len(at)-3]] + tail
		default:
			fs[name] = data[:begin] + tail
		}
		fs.restore(t, dir)
		wantRefused(t, what, dir)
	}
}

// Open refuses entries whose checksums are right but whose fields do not fit
// the format, and accepts one that differs from them in this alone.
func TestFieldsThatDoNotFit(t *testing.T) {
	t.Parallel()
	digest := strings.Repeat("d", 16)
	question := "\x0f\x01q" + digest
	dir := fuzzDir(t)
	log := func(fields string) {
		segment := append(wal.Entry(5, 1, 0, []byte{1}), wal.Entry(1, 2, 0, []byte("\x01a\x00"+fields))...)
		put(t, dir, "00000000000000000001", segment)
	}
	for what, fields := range map[string]string{
		"a digest that is cut off":           question[:len(question)-1],
		"a deadline before any question":     "\x18\x00\x00",
		"a deadline without nanoseconds":     question + "\x18\x00",
		"a second of too many nanoseconds":   question + "\x18\x00\x80\x94\xeb\xdc\x03",
		"more questions kept than there are": question + "\x0e\x04",
		"a number of kept questions below 0": question + "\x0e\x01",
		"an input kind beyond a byte":        "\x16\x80\x04",
		"a field that is unknown":            "\x19\x00",
		"a tool that is cut off":             "\x17\x05tool",
	} {
		log(fields)
		wantRefused(t, what, dir)
	}
	log("\x06\x01" + question + "\x18\x02\x03" + question + "\x0e\x02\x17\x04tool\x16\xfe\x03")
	s := mustOpen(t, dir, nil)
	r := mustGet(t, s, "a")
	want := durabletasks.Question{Key: "q", Digest: [16]byte([]byte(digest)), Deadline: time.Unix(1, 3).UTC()}
	if len(r.Questions) != 1 || r.Questions[0] != want || r.Tool != "tool" || r.UnsupportedInput != 255 {
		t.Errorf("read %+v", r)
	}
}
