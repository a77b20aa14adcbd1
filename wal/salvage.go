package wal

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
)

// Salvaged is what [Salvage] has found in a damaged store.
type Salvaged struct {
	Records    int      // records in the new store
	Incomplete int      // how many of them have lost their newest updates, as far as the log shows
	Entries    int      // whole entries that were found
	Lost       int      // how many of them are of no use, because an earlier entry is lost
	Damage     []Region // the parts of files that could not be read as entries
}

// Region is a part of a file.
type Region struct {
	File   string
	Offset int64
	Bytes  int64
}

// Salvage creates a new store in the directory to, which must be empty or not
// exist, from every record that can still be read in the damaged store in the
// directory from. An operator calls it after [Open] has returned a
// [*CorruptError]; the library never does. In from it changes only the lock
// file.
//
// Each record is whole, and as it was after one of its commits. The damage may
// have hit some records and not others: those fall back to an older commit
// (Incomplete counts them) or are missing. A record that was swept can be back,
// still expired.
//
// Errors: [*LockedError], [durabletasks.ErrInvalid] if a name is empty, one of
// the file system's, or ctx's.
func Salvage(ctx context.Context, from, to string) (*Salvaged, error) {
	if from == "" || to == "" {
		return nil, errNoDir
	}
	if info, err := os.Stat(from); err != nil {
		return nil, fmt.Errorf("wal: salvage: %w", err)
	} else if !info.IsDir() {
		return nil, fmt.Errorf("wal: salvage: %w", &fs.PathError{Op: "open", Path: from, Err: errors.New("not a directory")})
	}
	names, err := os.ReadDir(to)
	if err == nil && len(names) > 0 {
		return nil, fmt.Errorf("wal: salvage: %w", &fs.PathError{Op: "create", Path: to, Err: fs.ErrExist})
	}
	lock, err := lockDir(ctx, from, 0)
	if err != nil {
		return nil, err
	}
	out, l, err := salvageRecords(ctx, from)
	if err == nil {
		err = writeStore(ctx, to, l, out)
	}
	if err = errors.Join(err, lock.release()); err != nil {
		return nil, err
	}
	return out, nil
}

// foundEntry is a whole entry somewhere in a damaged log.
type foundEntry struct {
	index uint64
	frame []byte
}

// salvageRecords replays every whole entry of the files of a log.
func salvageRecords(ctx context.Context, dir string) (*Salvaged, *liveRecords, error) {
	names, err := os.ReadDir(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("wal: salvage: %w", err)
	}
	out := new(Salvaged)
	var entries []foundEntry
	for _, e := range names {
		if err := ctx.Err(); err != nil {
			return nil, nil, err
		}
		if !isSegmentName(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		path := filepath.Join(dir, e.Name())
		buf, err := readFile(path, nil)
		if err != nil {
			return nil, nil, err
		}
		entries = append(entries, out.search(path, buf)...)
	}
	slices.SortStableFunc(entries, func(a, b foundEntry) int { return cmp.Compare(a.index, b.index) })
	entries = slices.CompactFunc(entries, func(a, b foundEntry) bool { return a.index == b.index })
	out.Entries = len(entries)

	r := newReplay(newIndex())
	r.gaps = true
	incomplete := map[*node]bool{}
	cut := newestCut(entries)
	for _, e := range entries {
		f, _ := openFrame(e.frame, e.index)
		if err := r.entry(&f); err != nil {
			n, base := r.updated(&f)
			if n == nil && base < cut {
				continue // it was given up when its base was
			}
			out.Lost++
			if n != nil {
				incomplete[n] = true
			}
			continue
		}
		if f.kind == kindCreate || f.kind == kindCopy {
			body := reader{rest: string(f.body)}
			delete(incomplete, r.index.get(body.text()))
		}
	}
	l := r.finish()
	for n := range l.fromOldest() {
		if incomplete[n] {
			out.Incomplete++
		}
	}
	return out, l, nil
}

// isSegmentName reports whether a file of this name holds entries of a log.
func isSegmentName(name string) bool {
	if len(name) < digits {
		return false
	}
	_, err := strconv.ParseUint(name[:digits], 10, 64)
	return err == nil && (name[digits:] == "" || name[digits:] == startSuffix)
}

// newestCut returns the highest entry below which none is needed.
func newestCut(entries []foundEntry) (cut uint64) {
	for _, e := range entries {
		if f, _ := openFrame(e.frame, e.index); f.kind == kindCut {
			body := reader{rest: string(f.body)}
			cut = max(cut, body.uvarint())
		}
	}
	return cut
}

// updated returns what an update that could not be replayed is for: the
// record, or nil if there is none, and the entry that it builds on.
func (r *replay) updated(f *frame) (*node, uint64) {
	if f.kind != kindUpdate || len(f.body) < baseSize {
		return nil, f.index
	}
	body := reader{rest: string(f.body[baseSize:])}
	return r.index.get(body.text()), binary.LittleEndian.Uint64(f.body)
}

// search returns the whole entries in a file. It skips other bytes one at a
// time, up to the next entry.
func (out *Salvaged) search(path string, buf []byte) []foundEntry {
	var entries []foundEntry
	damage := 0 // how many bytes before at belong to no entry
	note := func(end int) {
		if damage > 0 {
			out.Damage = append(out.Damage, Region{File: path, Offset: int64(end - damage), Bytes: int64(damage)})
			damage = 0
		}
	}
	at := 0
	for at < len(buf) {
		length, n := binary.Uvarint(buf[at:])
		if n > 0 && length >= headerSize && length <= uint64(len(buf)-at-n) {
			f := buf[at+n : at+n+int(length)]
			if index, ok := anyFrame(f); ok {
				note(at)
				entries = append(entries, foundEntry{index, bytes.Clone(f)})
				at += n + int(length)
				continue
			}
		}
		at++
		damage++
	}
	note(at)
	return entries
}

// anyFrame reports whether b is a whole frame of a known kind, and of which
// entry.
func anyFrame(b []byte) (index uint64, ok bool) {
	k := kind(b[offsetKind] & 0xF)
	if b[offsetKind]>>4 != formatVersion || k < kindCreate || k > kindCut {
		return 0, false
	}
	index = binary.LittleEndian.Uint64(b[offsetIndex:])
	_, reason := openFrame(b, index)
	return index, reason == ""
}

// writeStore creates a store with these records, their versions included.
func writeStore(ctx context.Context, dir string, l *liveRecords, out *Salvaged) error {
	s, err := OpenContext(ctx, dir, &Options{Sync: true, MaxRecordBytes: largestMaxRecordBytes})
	if err != nil {
		return err
	}
	for n := range l.fromOldest() {
		if err != nil {
			break
		}
		err = s.exclusively(ctx, func() error {
			o, err := s.copyOp(n)
			if err != nil { // JSON that was never valid, so no store has written it
				out.Lost++
				return nil
			}
			out.Records++
			return s.append(o)
		})
	}
	if err == nil {
		err = s.exclusively(ctx, s.flush)
	}
	return errors.Join(err, s.Close())
}
