package wal_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

func mustInspect(t *testing.T, dir string) *wal.Report {
	t.Helper()
	before := snapshot(t, dir)
	r, err := wal.Inspect(ctx, dir)
	if err != nil {
		t.Fatalf("Inspect: %v", err)
	}
	sameFiles(t, before, snapshot(t, dir))
	return r
}

func TestInspect(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, _ := manySegments(t, dir)
	r := mustInspect(t, dir)
	records := states[len(states)-1]
	if r.Records != len(records) || r.Statuses[durabletasks.StatusWorking] != len(records) || r.Expiring != len(records) {
		t.Errorf("%d records, %d expire, statuses %v; want %d", r.Records, r.Expiring, r.Statuses, len(records))
	}
	if len(r.Segments) != len(whole.segments()) || r.Segments[0].Name != whole.segments()[0] || r.Segments[0].Entries != 1 {
		t.Errorf("segments %+v, want %v", r.Segments, whole.segments())
	}
	n := r.Entries
	if total := n.Creates + n.Copies + n.Updates + n.Sweeps + n.Cuts; uint64(total) != r.Next-r.First || n.Copies == 0 || n.Cuts == 0 || n.Updates == 0 {
		t.Errorf("entries %+v of %d to %d", n, r.First, r.Next)
	}
	if r.Format != "durabletasks wal 1" || r.Process != os.Getpid() || r.Torn != nil || r.Corrupt != nil {
		t.Errorf("%+v", r)
	}
	text := r.String()
	for id, record := range records {
		for _, secret := range []string{id, record.Payload.String(), record.StatusMessage} {
			if secret != "" && strings.Contains(text, secret) {
				t.Errorf("the report shows %q", secret)
			}
		}
	}

	// A torn end, a copy of an earlier one, and a file to remove.
	name := whole.segments()[len(whole.segments())-1]
	torn := whole.clone()
	torn[name] += "\x7ftorn"
	torn[name+".START.TEMP"], torn["torn-1-x"] = "x", "y"
	torn.restore(t, dir)
	r = mustInspect(t, dir)
	if r.Torn == nil || r.Torn.Bytes != 5 || r.Torn.Offset != int64(len(whole[name])) || len(r.Obsolete) != 1 || len(r.Copies) != 1 || r.Corrupt != nil {
		t.Errorf("torn: %+v", r)
	}

	// Damage in the middle.
	name = whole.segments()[3]
	damaged := whole.clone()
	damaged[name] = damaged[name][:60] + "?" + damaged[name][61:]
	damaged.restore(t, dir)
	r = mustInspect(t, dir)
	if r.Corrupt == nil || r.Corrupt.File != filepath.Join(dir, name) || !strings.Contains(r.String(), r.Corrupt.Reason) {
		t.Errorf("damaged: %+v", r)
	}

	// No format file, another one, and no store at all.
	delete(whole, "FORMAT")
	whole.restore(t, dir)
	if r := mustInspect(t, dir); r.Corrupt == nil || r.Format != "" || r.Records != len(records) {
		t.Errorf("without a format file: %+v", r)
	}
	if r := mustInspect(t, t.TempDir()); r.Corrupt != nil || r.Format != "" || r.Records != 0 {
		t.Errorf("an empty directory: %+v", r)
	}
	if _, err := wal.Inspect(ctx, filepath.Join(dir, "nothing")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no directory: %v", err)
	}
}

// Inspect works while a store is running.
func TestInspectARunningStore(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	for i := range 100 {
		mustCreate(t, s, task(fmt.Sprint(i)))
	}
	if r := mustInspect(t, dir); r.Records != 100 || r.Corrupt != nil {
		t.Errorf("%+v", r)
	}
	mustCreate(t, s, task("after"))
}

func salvage(t *testing.T, from string) (*wal.Salvaged, *wal.Store) {
	t.Helper()
	before := snapshot(t, from)
	to := filepath.Join(ramDir(t), "new")
	out, err := wal.Salvage(ctx, from, to)
	if err != nil {
		t.Fatalf("Salvage: %v", err)
	}
	sameFiles(t, before, snapshot(t, from))
	return out, mustOpen(t, to, nil)
}

// With any single byte of a log damaged, or any of its segments missing, every
// record that comes back was stored like that, and only those that the damage
// has hit are older or missing.
func TestSalvage(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	whole, states, sc := manySegments(t, dir)
	want := states[len(states)-1]
	check := func(what string, s *wal.Store, out *wal.Salvaged) (changed int) {
		t.Helper()
		for _, id := range sc.ids {
			r, err := s.Get(ctx, id)
			if err != nil {
				if _, ok := want[id]; ok {
					changed++
				}
				continue
			}
			genuine := false
			for _, state := range states {
				if old, ok := state[id]; ok && old.Version == r.Version {
					genuine = true
					equal(t, what+": "+id, r, old)
					break
				}
			}
			if !genuine {
				t.Errorf("%s: %s was never stored like this: %+v", what, id, r)
			}
			if r.Version != want[id].Version {
				changed++
			}
		}
		mustClose(t, s)
		return changed
	}

	out, s := salvage(t, dir)
	if out.Records != len(want) || out.Incomplete != 0 || out.Lost != 0 || len(out.Damage) != 0 {
		t.Errorf("an undamaged log: %+v", out)
	}
	if check("undamaged", s, out) != 0 {
		t.Error("salvaging an undamaged log has lost something")
	}
	incomplete := 0
	for _, name := range whole.segments() {
		missing := whole.clone()
		delete(missing, name)
		missing.restore(t, dir)
		out, s := salvage(t, dir)
		check(name+" is missing", s, out)
		for at := 0; at < len(whole[name]); at += 37 {
			damaged := whole.clone()
			damaged[name] = whole[name][:at] + string(whole[name][at]^0x20) + whole[name][at+1:]
			damaged.restore(t, dir)
			out, s := salvage(t, dir)
			what := fmt.Sprintf("byte %d of %s is damaged", at, name)
			if len(out.Damage) != 1 || out.Damage[0].File != filepath.Join(dir, name) ||
				out.Damage[0].Offset > int64(at) || out.Damage[0].Offset+out.Damage[0].Bytes <= int64(at) {
				t.Errorf("%s: reported as %+v", what, out.Damage)
			}
			if n := check(what, s, out); n > 1 || out.Incomplete > n {
				t.Errorf("%s: %d records have changed, %d are reported", what, n, out.Incomplete)
			}
			incomplete += out.Incomplete
		}
	}
	if incomplete == 0 {
		t.Error("no record was ever reported as incomplete")
	}
}

// A whole copy of a record replaces one that has lost updates, so that the
// record is complete again. A copy that is older than the record does not.
func TestSalvageUsesNewerCopy(t *testing.T) {
	t.Parallel()
	r := task("a")
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	mustCreate(t, s, r)
	r.StatusMessage = "updated"
	mustUpdate(t, s, r)
	mustClose(t, s)
	whole := snapshot(t, dir)
	const name = "00000000000000000001"
	log := []byte(whole[name])
	_, bodies := wal.Bodies(log, 1)
	version := 1 + len(r.ID) // where a create's body has it
	copyOf := func(v byte) []byte {
		body := append(bytes.Clone(bodies[1]), "\x03\x07updated"...) // the message
		body[version] = v
		return wal.Entry(2, 4, 0, body)
	}
	damaged := bytes.Clone(log)
	damaged[len(damaged)-1] ^= 1

	files{"FORMAT": whole["FORMAT"], name: string(append(damaged, copyOf(1)...))}.restore(t, dir)
	wantRefused(t, "a damaged update before a copy", dir)
	out, salvaged := salvage(t, dir)
	r.Version = 1
	equal(t, "salvaged", mustGet(t, salvaged, "a"), r)
	if out.Records != 1 || out.Incomplete != 0 || out.Lost != 0 || len(out.Damage) != 1 {
		t.Errorf("a newer copy behind the damage: %+v", out)
	}

	files{"FORMAT": whole["FORMAT"], name: string(append(log, copyOf(0)...))}.restore(t, dir)
	wantRefused(t, "a copy of an older version", dir)
	out, salvaged = salvage(t, dir)
	equal(t, "salvaged", mustGet(t, salvaged, "a"), r)
	if out.Records != 1 || out.Lost != 1 {
		t.Errorf("an older copy: %+v", out)
	}
}

func TestSalvageRefuses(t *testing.T) {
	t.Parallel()
	dir := ramDir(t)
	s := mustOpen(t, dir, nil)
	if _, err := wal.Salvage(ctx, dir, filepath.Join(ramDir(t), "new")); !errors.Is(err, wal.ErrLocked) {
		t.Errorf("a store that is open: %v, want ErrLocked", err)
	}
	mustClose(t, s)
	if _, err := wal.Salvage(ctx, dir, dir); !errors.Is(err, os.ErrExist) {
		t.Errorf("onto itself: %v, want ErrExist", err)
	}
	if _, err := wal.Salvage(ctx, filepath.Join(dir, "nothing"), filepath.Join(ramDir(t), "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("from nothing: %v, want ErrNotExist", err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := wal.Salvage(cancelled, dir, filepath.Join(ramDir(t), "new")); !errors.Is(err, context.Canceled) {
		t.Errorf("with a cancelled context: %v", err)
	}
}
