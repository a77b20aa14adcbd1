package wal

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// visitor is shown the entries of a log in their order.
type visitor interface {
	begin(first uint64)   // the log begins with this entry: forget all earlier ones
	entry(f *frame) error // an error says why a right log cannot have this entry
}

// findings is what reading a log found, and what repair has to do.
type findings struct {
	segments []segment
	next     uint64   // index of the next entry
	durable  uint64   // every entry up to this one is on the disk
	cut      uint64   // from the newest cut: no entry below is needed
	obsolete []string // files to remove: temporary ones, and segments below the cut

	tail    string // name of the last segment
	tailBuf []byte // its whole entries
	torn    []byte // the bytes after them, which repair removes
}

// logFiles are the files of a log in a directory.
type logFiles struct {
	segments  []segmentFile // in order
	temporary []string
}

type segmentFile struct {
	name  string
	first uint64
}

const (
	startSuffix = ".START"
	endSuffix   = ".END"
	tempSuffix  = ".TEMP"
	digits      = 20
)

func segmentName(first uint64) string { return fmt.Sprintf("%0*d", digits, first) }

// listLog returns the files of the log in dir. The file of an interrupted
// removal counts as a segment; the segments that were being removed overlap it.
func listLog(dir string) (*logFiles, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: list the directory: %w", err)
	}
	l := new(logFiles)
	started := false
	for _, e := range entries {
		name := e.Name()
		if len(name) < digits {
			continue
		}
		first, err := strconv.ParseUint(name[:digits], 10, 64)
		if err != nil || first == 0 {
			continue
		}
		corrupt := func(reason string) error {
			return &CorruptError{File: filepath.Join(dir, name), Index: first, Reason: reason}
		}
		switch suffix := name[digits:]; suffix {
		case startSuffix + tempSuffix, endSuffix + tempSuffix:
			l.temporary = append(l.temporary, name)
			continue
		case endSuffix:
			return nil, corrupt("this store never cuts the end of a log")
		case startSuffix:
			if started {
				return nil, corrupt("a second file of an interrupted removal")
			}
			started = true
		case "":
		default:
			continue
		}
		if !e.Type().IsRegular() { // reading a pipe or a device may never end
			return nil, corrupt("is not a regular file")
		}
		l.segments = append(l.segments, segmentFile{name, first})
	}
	return l, nil
}

// largestSegment is the size of the largest file that can be a segment: the
// largest record, and the entries before it. Larger files are not read.
const largestSegment = largestMaxRecordBytes + 64<<20

// readLog verifies every byte of the log in dir and shows its entries to v.
// It changes nothing. With an error it returns the findings up to there.
//
// A crash can tear only the last segment; anything else that does not fit is
// damage. Where a segment does not continue the one before it, the log begins
// with it, and everything before must be below the newest cut: a power loss
// can leave that of an interrupted removal.
func readLog(ctx context.Context, dir string, v visitor) (*findings, error) {
	found := new(findings)
	files, err := listLog(dir)
	if err != nil {
		return found, err
	}
	found.obsolete = files.temporary
	if len(files.segments) == 0 {
		return found, &CorruptError{File: dir, Reason: "the segments of the log are missing"}
	}
	started := files.segments[0]
	begin := func(i int) {
		for _, s := range files.segments[:i] {
			if !slices.Contains(found.obsolete, s.name) {
				found.obsolete = append(found.obsolete, s.name)
			}
		}
		started = files.segments[i]
		found.segments = found.segments[:0]
		found.next = started.first
		v.begin(started.first)
	}
	begin(0)
	var buf []byte
	for i, file := range files.segments {
		if err := ctx.Err(); err != nil {
			return found, err
		}
		path := filepath.Join(dir, file.name)
		if file.first != found.next {
			begin(i)
		}
		if buf, err = readFile(path, buf); err != nil {
			return found, err
		}
		last := i == len(files.segments)-1
		if last && i > 0 {
			found.durable = max(found.durable, file.first-1)
		}
		if err := found.segment(path, file, buf, last, v); err != nil {
			return found, err
		}
	}
	if started.first > max(found.cut, 1) {
		return found, &CorruptError{File: filepath.Join(dir, started.name), Index: started.first,
			Reason: fmt.Sprintf("log begins at entry %d, but only entries below %d were removed: segments are missing, short or doubled", started.first, max(found.cut, 1))}
	}
	if found.next == 1 {
		return found, &CorruptError{File: filepath.Join(dir, started.name), Index: 1,
			Reason: "log is empty, even its first entry is missing"}
	}
	return found, nil
}

// readFile reads a whole file into buf, or into a larger buffer.
func readFile(path string, buf []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("wal: read a segment: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("wal: read a segment: %w", err)
	}
	if info.Size() > largestSegment {
		return nil, &CorruptError{File: path, Reason: fmt.Sprintf("%d bytes are more than a segment can have", info.Size())}
	}
	buf = slices.Grow(buf[:0], int(info.Size()))[:info.Size()]
	if _, err := io.ReadFull(f, buf); err != nil {
		return nil, fmt.Errorf("wal: read a segment: %w", err)
	}
	return buf, nil
}

// segment reads one segment.
func (found *findings) segment(path string, file segmentFile, buf []byte, last bool, v visitor) error {
	seg := segment{first: file.first}
	at := 0
	defer func() { found.segments = append(found.segments, seg) }()
	for at < len(buf) {
		f, size, reason := openEntry(buf[at:], found.next)
		if reason != "" {
			corrupt := &CorruptError{File: path, Offset: int64(at), Index: found.next, Reason: reason}
			if !last || strings.HasSuffix(file.name, startSuffix) {
				return corrupt
			}
			if damage := whyNotTorn(buf, at, found.next); damage != "" {
				corrupt.Reason += "; " + damage
				return corrupt
			}
			found.torn = bytes.Clone(buf[at:])
			break
		}
		if err := found.entry(&f, v); err != nil {
			return &CorruptError{File: path, Offset: int64(at), Index: found.next, Reason: err.Error()}
		}
		at += size
		seg.bytes += int64(size)
		seg.last = size
		seg.entries++
		found.next++
	}
	if last {
		found.tail, found.tailBuf = file.name, buf[:at]
	}
	return nil
}

func (found *findings) entry(f *frame, v visitor) error {
	if f.format != formatVersion {
		return fmt.Errorf("entry is of format %d, this library knows %d", f.format, formatVersion)
	}
	if f.durable >= f.index {
		return fmt.Errorf("entry says that entry %d was synced before it", f.durable)
	}
	if f.kind == kindCut {
		body := reader{rest: string(f.body)}
		cut := body.uvarint()
		if body.bad || body.rest != "" || cut > f.index || cut < found.cut {
			return errBody
		}
		found.cut = cut
	}
	found.durable = max(found.durable, f.durable)
	return v.entry(f)
}
