package wal

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// visitor takes the entries of a log in their order.
type visitor interface {
	begin(first uint64)   // the log begins here; forget what came before
	entry(f *frame) error // an error is why the entry cannot be
}

// findings is what reading a log found, and what is to be done about it.
type findings struct {
	segments []segment
	next     uint64   // index of the next entry
	durable  uint64   // every entry up to this one is on the disk
	cut      uint64   // what the newest cut says
	obsolete []string // files to remove: temporary ones, and segments below the cut

	tail    string // name of the last segment
	tailBuf []byte // its whole entries
	torn    []byte // what follows them and is to be removed
}

// listing is what a directory holds of a log.
type listing struct {
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

// list names the files of the log in dir. The file of an interrupted removal
// counts as a segment; those that it was about to remove overlap it.
func list(dir string) (*listing, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: list the directory: %w", err)
	}
	l := new(listing)
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

// largestSegment bounds what is read into memory of a file that can't be a
// segment: the largest record, and what may stand before it.
const largestSegment = largestMaxRecordBytes + 64<<20

// readLog verifies every byte of the log in dir and shows its entries to v.
// It changes nothing. With an error come the findings up to there.
//
// Only the last segment can be torn by a crash; anything else that does not
// fit is damage. Where a segment does not continue the one before it, the log
// begins with it, and everything before must be below the newest cut: that is
// what a power loss can leave of an interrupted removal.
func readLog(ctx context.Context, dir string, v visitor) (*findings, error) {
	found := new(findings)
	files, err := list(dir)
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
			Reason: fmt.Sprintf("log begins at entry %d, but only those below %d were given up: segments are missing, short or doubled", started.first, max(found.cut, 1))}
	}
	if found.next == 1 {
		return found, &CorruptError{File: filepath.Join(dir, started.name), Index: 1,
			Reason: "log is empty, not even its first entry is there"}
	}
	return found, nil
}

// readFile reads a whole file into buf, or a larger one.
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
			if damage := judge(buf, at, found.next); damage != "" {
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

// sector is the unit in which disks write.
const sector = 512

// judge looks at the end of the last segment from buf[at] on, where the entry
// index should be and is not. It returns "" if a crash can have left it like
// that, and otherwise why not.
//
// A process that dies leaves the beginning of an entry, so that it runs past
// the end of the file. A power loss can leave sectors unwritten, which read as
// zeros, among entries that were never synced. Everything else is damage.
func judge(buf []byte, at int, index uint64) string {
	tail := buf[at:]
	for q := 0; q+headerSize <= len(tail); q++ {
		j := binary.LittleEndian.Uint64(tail[q+offsetIndex:])
		if j < index || j > index+uint64(len(tail)/headerSize) {
			continue
		}
		size := uint64(binary.LittleEndian.Uint32(tail[q+offsetLength:])) + headerSize
		if size > uint64(len(tail)-q) {
			continue
		}
		f, reason := openFrame(tail[q:q+int(size)], j)
		if reason != "" {
			continue
		}
		switch {
		case j == index && (q == 0 || !isZero(tail[:q])):
			return fmt.Sprintf("a whole frame of this entry lies %d bytes further on: the length before it is damaged", q)
		case f.durable >= index:
			return fmt.Sprintf("entry %d further on says that this one was on the disk", j)
		case !hasZeroSector(buf, at, at+q):
			return fmt.Sprintf("entry %d lies whole %d bytes further on, and nothing between is missing", j, q)
		}
		return ""
	}
	if length, n := binary.Uvarint(tail); n == 0 || n > 0 && length > uint64(len(tail)-n) {
		return ""
	}
	if hasZeroSector(buf, at, len(buf)) {
		return ""
	}
	return "the entry is all there, so it was damaged after it was written"
}

func isZero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// leastZeros is how much of a sector at either end of a range must be there,
// and be zero, to be taken for unwritten. A frame's header has up to seven
// zeros in a row.
const leastZeros = 16

// hasZeroSector reports whether buf[from:to] holds a sector of the file, or
// the part of one at either end, that is all zero; or is itself all zero.
func hasZeroSector(buf []byte, from, to int) bool {
	if isZero(buf[from:to]) {
		return true
	}
	for from < to {
		end := min((from/sector+1)*sector, to)
		if end-from >= leastZeros && isZero(buf[from:end]) {
			return true
		}
		from = end
	}
	return false
}

// tear describes the torn end of the log, or is nil.
func (found *findings) tear(dir string) *Tear {
	if len(found.torn) == 0 {
		return nil
	}
	return &Tear{
		File:   filepath.Join(dir, found.tail),
		Offset: int64(len(found.tailBuf)),
		Index:  found.next,
		Bytes:  int64(len(found.torn)),
	}
}

// heal makes the directory what readLog took it for: it removes obsolete
// files and the torn end of the log, of which it keeps a copy. A crash at any
// moment leaves what the next reading takes the same way: the copy is not part
// of the log, and what is removed was going to be removed.
func (found *findings) heal(dir string, now time.Time) (*Tear, error) {
	tear := found.tear(dir)
	if tear != nil {
		var err error
		if tear.Copy, err = keepTorn(dir, found.next, now, found.torn); err != nil {
			return nil, fmt.Errorf("wal: keep a copy of the log's torn end: %w", err)
		}
		if err := truncate(tear.File, tear.Offset); err != nil {
			return nil, fmt.Errorf("wal: remove the log's torn end: %w", err)
		}
	}
	for _, name := range found.obsolete {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return nil, fmt.Errorf("wal: remove an obsolete file: %w", err)
		}
	}
	if tear != nil || len(found.obsolete) > 0 {
		if err := syncDir(dir); err != nil {
			return nil, fmt.Errorf("wal: %w", err)
		}
	}
	return tear, nil
}

// settle makes sure that everything that was read is on the disk. It writes
// what may not be once more, the same bytes at the same place: after a failed
// sync the system's memory can hold pages that it believes written, and
// another sync alone would not write them.
func (found *findings) settle(dir string) error {
	at, index := 0, found.segments[len(found.segments)-1].first
	for at < len(found.tailBuf) && index <= found.durable {
		length, n := binary.Uvarint(found.tailBuf[at:])
		at += n + int(length)
		index++
	}
	if at == len(found.tailBuf) {
		return nil
	}
	f, err := os.OpenFile(filepath.Join(dir, found.tail), os.O_WRONLY, 0)
	if err == nil {
		_, err = f.WriteAt(found.tailBuf[at:], int64(at))
		if err == nil {
			err = f.Sync()
		}
		err = errors.Join(err, f.Close())
	}
	if err != nil {
		return fmt.Errorf("wal: sync the log's end: %w", err)
	}
	found.durable = found.next - 1
	return nil
}

// truncate cuts a file and makes that durable.
func truncate(path string, size int64) error {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	err = f.Truncate(size)
	if err == nil {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// keptTears is how many copies of torn ends are kept.
const keptTears = 3

const tornPrefix = "torn-"

// keepTorn writes the torn end of a log to a file of its own and removes
// older such files. It returns the file's path.
func keepTorn(dir string, index uint64, now time.Time, torn []byte) (string, error) {
	name := fmt.Sprintf("%s%s-%s", tornPrefix, segmentName(index), now.UTC().Format("20060102T150405.000Z"))
	path := filepath.Join(dir, name)
	if err := writeFile(path, torn); err != nil {
		return "", err
	}
	copies, err := tornCopies(dir)
	if err != nil {
		return "", err
	}
	copies = slices.DeleteFunc(copies, func(n string) bool { return n == name })
	for len(copies) >= keptTears {
		if err := os.Remove(filepath.Join(dir, copies[0])); err != nil {
			return "", err
		}
		copies = copies[1:]
	}
	return path, nil
}

// tornCopies names the files that keep what was torn off, in the order of
// their entries, then of their times.
func tornCopies(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var copies []string
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tornPrefix) {
			copies = append(copies, e.Name())
		}
	}
	return copies, nil
}
