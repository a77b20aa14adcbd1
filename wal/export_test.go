package wal

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
)

// OpenSeam is Open with small segments and with a function that is called
// before each step that reaches the disk and can fail it.
func OpenSeam(dir string, opts *Options, segmentSize int, step func(string, int) error) (*Store, error) {
	return open(context.Background(), dir, opts, seam{segmentSize: segmentSize, step: step})
}

// UserDirOn is UserDir on another system.
func UserDirOn(goos string, getenv func(string) string, name string) (string, error) {
	return userDir(name, goos, getenv)
}

// LockFiles returns the files that the store has locked.
func (s *Store) LockFiles() []*os.File { return []*os.File{s.lock.file, s.lock.format} }

// LogBytes returns the size of the log.
func (s *Store) LogBytes() (n int64) {
	_ = s.exclusively(context.Background(), func() error { n = s.journal.bytes; return nil })
	return n
}

// WaitQueued waits until n calls wait for somebody else's write.
func (s *Store) WaitQueued(n int) {
	for {
		s.mu.Lock()
		queued := len(s.queue)
		s.mu.Unlock()
		if queued == n {
			return
		}
		runtime.Gosched()
	}
}

// Audit reports where the store's books do not agree with each other.
func (s *Store) Audit() (err error) {
	_ = s.exclusively(context.Background(), func() error { err = s.audit(); return nil })
	return err
}

func (s *Store) audit() error {
	l, j := s.live, s.journal
	records, live, expiring, base := 0, int64(0), 0, uint64(0)
	for n := range l.fromOldest() {
		st := n.st.Load()
		if n.base <= base && records > 0 {
			return fmt.Errorf("base %d comes after %d", n.base, base)
		}
		base = n.base
		if s.index.get(st.id) != n || n.gone || n.staged != nil {
			return fmt.Errorf("record %q is listed but not in the index", st.id)
		}
		if size := entrySize(headerSize + wholeSize(st)); st.pending == nil && int(n.size) < size { // replay may book a little more
			return fmt.Errorf("record %q is booked with %d bytes, takes %d", st.id, n.size, size)
		}
		live += int64(n.size)
		if at, ok := st.expiry(); ok {
			expiring++
			if n.slot < 0 || int(n.slot) >= len(l.expiries.entries) || l.expiries.entries[n.slot].n != n || l.expiries.entries[n.slot].at != at {
				return fmt.Errorf("record %q is in slot %d, which is not its", st.id, n.slot)
			}
			if n.slot > 0 && at.before(l.expiries.entries[(n.slot-1)/2].at) {
				return fmt.Errorf("slot %d expires before its parent", n.slot)
			}
		} else if n.slot != noSlot {
			return fmt.Errorf("record %q never expires, but is in slot %d", st.id, n.slot)
		}
		records++
	}
	indexed := 0
	for i := range s.index.shards {
		indexed += len(s.index.shards[i].nodes)
	}
	if indexed != records || expiring != len(l.expiries.entries) || live != l.bytes {
		return fmt.Errorf("%d records of %d in the index, %d of %d that expire, %d bytes of %d", records, indexed, expiring, len(l.expiries.entries), live, l.bytes)
	}
	var bytes, dead int64
	names, err := listLog(j.dir)
	if err != nil {
		return err
	}
	if len(names.segments) != len(j.segments) {
		return fmt.Errorf("%d segments are booked, %d are there", len(j.segments), len(names.segments))
	}
	for i, seg := range j.segments {
		bytes += seg.bytes
		if i < j.dead {
			dead += seg.bytes
		}
		info, err := os.Stat(filepath.Join(j.dir, names.segments[i].name))
		if err != nil {
			return err
		}
		if names.segments[i].first != seg.first || info.Size() != seg.bytes {
			return fmt.Errorf("segment %d of %d bytes is booked, %d of %d bytes is there", seg.first, seg.bytes, names.segments[i].first, info.Size())
		}
	}
	if bytes != j.bytes || dead != j.deadSize {
		return fmt.Errorf("the segments have %d bytes, %d of them dead; %d and %d are booked", bytes, dead, j.bytes, j.deadSize)
	}
	if oldest := l.oldest(); oldest != nil && j.dead > 0 && oldest.base < j.segments[j.dead].first {
		return fmt.Errorf("segments below %d are dead, but entry %d is needed", j.segments[j.dead].first, oldest.base)
	}
	return nil
}

// Entry returns what a segment holds for an entry of this kind and body, with
// a checksum that is right.
func Entry(k byte, index, durable uint64, body []byte) []byte {
	f := append(startFrame(nil, kind(k)), body...)
	sealFrame(f, index, durable)
	return append(binary.AppendUvarint(nil, uint64(len(f))), f...)
}

// Bodies returns the kind and the body of each entry in a segment that begins
// with the entry first.
func Bodies(segment []byte, first uint64) (kinds []byte, bodies [][]byte) {
	for len(segment) > 0 {
		f, size, reason := openEntry(segment, first)
		if reason != "" {
			return kinds, bodies
		}
		kinds, bodies = append(kinds, byte(f.kind)), append(bodies, f.body)
		segment = segment[size:]
		first++
	}
	return kinds, bodies
}
