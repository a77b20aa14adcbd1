package wal_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// openAnything requires of a directory with arbitrary files that Open either
// refuses it with a CorruptError and changes nothing, or opens it, and that the
// next Open then shows the same records.
func openAnything(t *testing.T, dir string) {
	t.Helper()
	before := snapshot(t, dir)
	var first []durabletasks.Record
	for again := range 2 {
		s, err := wal.Open(dir, fixed(nil))
		if err != nil {
			var corrupt *wal.CorruptError
			if again > 0 {
				t.Fatalf("what opened once does not open again: %v", err)
			}
			if errors.As(err, &corrupt) {
				sameFiles(t, before, snapshot(t, dir))
			}
			return
		}
		if err := s.Audit(); err != nil {
			t.Fatal(err)
		}
		records := everything(t, s)
		if again > 0 && !reflect.DeepEqual(first, records) {
			t.Fatalf("the second open shows something else")
		}
		first = records
		if err := s.Compact(ctx); err != nil && again == 0 {
			// JSON that no store has written cannot be copied.
			t.Logf("Compact: %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// everything returns what a scan shows, by id; nothing, if the scan ends at a
// record with JSON that no store has written.
func everything(t *testing.T, s *wal.Store) []durabletasks.Record {
	t.Helper()
	byID := contents{}
	err := s.Scan(ctx, func(r durabletasks.Record) bool { byID[r.ID] = r; return true })
	if errors.Is(err, wal.ErrCorrupt) {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	var all []durabletasks.Record
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		all = append(all, byID[id])
	}
	return all
}

func fuzzDir(t testing.TB) string {
	dir := ramDir(t)
	if err := os.WriteFile(filepath.Join(dir, "FORMAT"), []byte("durabletasks wal 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

func put(t testing.TB, dir, name string, data []byte) {
	if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
		var path *fs.PathError
		if errors.As(err, &path) {
			t.Skip("not a name for a file")
		}
		t.Fatal(err)
	}
}

// logs are the segments of real logs.
func logs(f *testing.F) [][]byte {
	f.Helper()
	var segments [][]byte
	for _, sc := range []script{scripted(3), workload()} {
		dir := ramDir(f)
		s := mustOpen(f, dir, nil)
		sc.history(f, s)
		mustClose(f, s)
		segments = append(segments, []byte(snapshot(f, dir)["00000000000000000001"]))
	}
	return segments
}

// Arbitrary bytes as a store's only segment.
func FuzzSegment(f *testing.F) {
	for _, log := range logs(f) {
		f.Add(log)
		f.Add(log[:len(log)-7])
		f.Add(append(bytes.Clone(log), make([]byte, 600)...))
		f.Add(append(bytes.Clone(log), log...))
	}
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := fuzzDir(t)
		put(t, dir, "00000000000000000001", data)
		openAnything(t, dir)
	})
}

// Arbitrary entries whose checksums are right: a kind and a length before each
// body.
func FuzzEntries(f *testing.F) {
	for _, log := range logs(f) {
		var data []byte
		kinds, bodies := wal.Bodies(log, 1)
		for i, body := range bodies {
			data = append(data, kinds[i])
			data = binary.AppendUvarint(data, uint64(len(body)))
			data = append(data, body...)
			if i < 4 || i == len(bodies)-1 {
				f.Add(bytes.Clone(data))
			}
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		segment := wal.Entry(5, 1, 0, []byte{1})
		for index := uint64(2); len(data) > 0; index++ {
			kind := data[0]
			n, size := binary.Uvarint(data[1:])
			if size <= 0 {
				break
			}
			data = data[1+size:]
			n = min(n, uint64(len(data)))
			segment = append(segment, wal.Entry(kind, index, index-1, data[:n])...)
			data = data[n:]
		}
		dir := fuzzDir(t)
		put(t, dir, "00000000000000000001", segment)
		openAnything(t, dir)
	})
}

// Arbitrary files: a number that stands for a name, and a length, before the
// content of each.
func FuzzDirectory(f *testing.F) {
	names := []string{
		"FORMAT", "00000000000000000001", "00000000000000000002", "00000000000000000007", "00000000000000000007.START",
		"00000000000000000009", "00000000000000000009.END", "00000000000000000009.START.TEMP", "00000000000000000100", "torn-x",
		"18446744073709551615", "LOCK",
	}
	dir := ramDir(f)
	s, _ := openFaulty(f, dir, nil, workloadSegment)
	workload().history(f, s)
	mustClose(f, s)
	var data []byte
	for name, content := range snapshot(f, dir) {
		for i, known := range names {
			if name == known {
				data = append(data, byte(i))
				data = binary.AppendUvarint(data, uint64(len(content)))
				data = append(data, content...)
				f.Add(bytes.Clone(data))
			}
		}
	}
	log := logs(f)[0]
	for i := range names {
		data := binary.AppendUvarint([]byte{1}, uint64(len(log)))
		data = append(append(data, log...), byte(i))
		f.Add(append(binary.AppendUvarint(data, uint64(len(log))), log...))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := fuzzDir(t)
		for len(data) > 0 {
			name := names[int(data[0])%len(names)]
			n, size := binary.Uvarint(data[1:])
			if size <= 0 {
				break
			}
			data = data[1+size:]
			n = min(n, uint64(len(data)))
			put(t, dir, name, data[:n])
			data = data[n:]
		}
		openAnything(t, dir)
	})
}
