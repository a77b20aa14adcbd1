package wal

import (
	"errors"
	"fmt"
	"os"

	tidwall "github.com/tidwall/wal"
)

// segmentSize is the size at which the log starts another file. Small segments
// keep the pauses short that a segment's sync and removal cause.
const segmentSize = 1 << 20

// segment is what the journal knows about one file of the log.
type segment struct {
	first   uint64 // its first entry, and its name
	bytes   int64
	last    int // size of its last entry; 0 if it is empty
	entries int // that were read from it
}

// journal writes to the log library and tracks what the library does with
// files, which its API does not tell. It only appends, syncs, and drops whole
// segments from the front; it never reads. After an error the library's memory
// and the disk may differ, and nothing may be written any more.
//
// A segment is always synced, even if commits are not, before the next one is
// created; so only the last segment can be torn. The directory is synced after
// that and before the next entry is written, so no segment can be missing in
// front of one that is there.
type journal struct {
	dir       string
	dirFile   *os.File // dir, kept open so that a sync of it needs no free descriptor
	log       *tidwall.Log
	seam      seam
	verifyDir func() error // returns an error if dir is no longer the directory that is locked
	segments  []segment    // never empty; the last one is written to
	bytes     int64        // of all segments
	next      uint64       // index of the next entry
	durable   uint64       // every entry up to this one is synced
	dead      int          // leading segments without a needed entry
	deadSize  int64        // their bytes

	writeback  writeback // of the segment that is written to
	batch      tidwall.Batch
	batchBytes int
	rolled     uint64 // the batch starts a segment with this entry, if not 0
}

// seam lets tests see and fail the steps that reach the disk, and use small
// segments.
type seam struct {
	step        func(step string, bytes int) error // called before each step, with the bytes of a write; may be nil
	segmentSize int
}

// The steps that a test can fail.
const (
	stepWrite   = "write"
	stepSync    = "sync"
	stepSyncDir = "sync directory"
	stepDrop    = "drop"
)

func (s *seam) before(step string, bytes int) error {
	if s.step == nil {
		return nil
	}
	return s.step(step, bytes)
}

// openJournal opens the log that was found, or a new one, for writing.
func openJournal(dir string, found *findings, sm seam) (_ *journal, err error) {
	dirFile, err := openDir(dir)
	if err != nil {
		return nil, fmt.Errorf("wal: open the directory: %w", err)
	}
	defer func() {
		if err != nil {
			_ = closeDir(dirFile) // nothing was written
		}
	}()
	log, err := tidwall.Open(dir, &tidwall.Options{
		NoSync:           true, // the journal syncs, to tell a write's error from a sync's
		SegmentSize:      sm.segmentSize,
		SegmentCacheSize: 1,
		NoCopy:           true,
		AllowEmpty:       true,
		DirPerms:         dirPerm,
		FilePerms:        filePerm,
	})
	if err != nil {
		return nil, fmt.Errorf("wal: open the log: %w", fromLibrary(err))
	}
	j := &journal{dir: dir, dirFile: dirFile, log: log, seam: sm, segments: found.segments, next: found.next, durable: found.durable}
	for _, s := range j.segments {
		j.bytes += s.bytes
	}
	first, err := log.FirstIndex()
	if err == nil {
		var last uint64
		if last, err = log.LastIndex(); err == nil && (first != j.segments[0].first || last != j.next-1) {
			err = fmt.Errorf("it holds entries %d to %d instead of %d to %d", first, last, j.segments[0].first, j.next-1)
		}
	}
	if err != nil {
		_ = log.Close() // nothing was written
		return nil, fmt.Errorf("wal: open the log: %w", fromLibrary(err))
	}
	return j, nil
}

// add gives a frame its place in the log. The next flush writes it; if it ends
// a segment, add does.
func (j *journal) add(f []byte) (index uint64, err error) {
	if j.batchBytes == 0 && j.segments[len(j.segments)-1].bytes > int64(j.seam.segmentSize) {
		j.roll() // a crash has left the segment too long, and the library rolls before it writes
	}
	index = j.next
	sealFrame(f, index, j.durable)
	j.batch.Write(index, f)
	j.next++
	size := entrySize(len(f))
	j.batchBytes += size
	j.bytes += int64(size)
	tail := &j.segments[len(j.segments)-1]
	tail.bytes += int64(size)
	tail.last = size
	if tail.bytes < int64(j.seam.segmentSize) {
		return index, nil
	}
	j.roll()
	return index, j.flush()
}

// roll records that the library starts a segment with the next entry.
func (j *journal) roll() {
	j.segments = append(j.segments, segment{first: j.next})
	j.rolled = j.next
}

// flush hands what was added to the operating system.
func (j *journal) flush() error {
	if j.batchBytes == 0 {
		return nil
	}
	if j.rolled != 0 { // the library creates a file, and truncates one of that name
		if err := j.verifyDir(); err != nil {
			return err
		}
	}
	if err := j.seam.before(stepWrite, j.batchBytes); err != nil {
		return err
	}
	if err := j.log.WriteBatch(&j.batch); err != nil {
		return fmt.Errorf("write: %w", fromLibrary(err))
	}
	if j.batchBytes > segmentSize {
		j.batch = tidwall.Batch{} // free the memory of a large batch
	}
	j.batchBytes = 0
	if j.rolled == 0 {
		j.writeback.start(j.dir, &j.segments[len(j.segments)-1])
		return nil
	}
	j.writeback.close()
	j.durable = j.rolled - 1 // the library has synced the full segment
	j.rolled = 0
	return j.syncDir()
}

// sync makes everything that was flushed durable.
func (j *journal) sync() error {
	if j.durable == j.next-1 {
		return nil
	}
	if err := j.seam.before(stepSync, 0); err != nil {
		return err
	}
	if err := j.log.Sync(); err != nil {
		return fmt.Errorf("sync: %w", fromLibrary(err))
	}
	j.durable = j.next - 1
	return nil
}

func (j *journal) syncDir() error {
	if err := j.seam.before(stepSyncDir, 0); err != nil {
		return err
	}
	return syncOpenDir(j.dirFile)
}

// retire records that no entry before needed is needed any more.
func (j *journal) retire(needed uint64) {
	for j.dead+1 < len(j.segments) && j.segments[j.dead+1].first <= needed {
		j.deadSize += j.segments[j.dead].bytes
		j.dead++
	}
}

// length is the log's size without the dead segments at its front.
func (j *journal) length() int64 { return j.bytes - j.deadSize }

// droppable reports whether drop would remove a file. The rest of an earlier
// drop, a single dead entry, is not worth one.
func (j *journal) droppable() bool {
	return j.dead > 0 && j.segments[j.dead].first-1 > j.segments[0].first
}

// drop removes up to limit dead segments. If broken is true, the journal cannot
// go on; otherwise an error leaves it as it was.
//
// It is called if droppable is true, after every entry below the cut was
// copied or became dead. A crash may come between any two steps:
//
//  1. The cut is appended. It changes nothing for a reader: all below it is
//     dead, and a reader accepts a log that begins earlier than its cut.
//  2. Log and directory are synced, even if commits are not: the entries that
//     replace those that go (copies, sweeps, later updates), and the cut that
//     allows them to go, lie before this point, so a power loss cannot take
//     them and leave the removal.
//  3. The library writes the last dead entry to a temporary file, syncs it,
//     renames it to .START, removes the segments before the cut and renames
//     the file once more. It cuts one entry below the first needed segment,
//     so that what it rewrites is one dead entry and not that whole segment;
//     if the renames get lost and the removals stay, the log begins at the
//     cut itself, and nothing is missing. If only some of the removals stay,
//     the gaps lie below the cut and repair removes the rest.
//  4. The directory is synced, so that space that was reported free stays so.
func (j *journal) drop(limit int) (broken bool, err error) {
	if err := j.verifyDir(); err != nil {
		return true, err
	}
	if j.segments[0].first+1 == j.segments[1].first {
		limit++ // the rest of an earlier drop does not count
	}
	count := min(j.dead, limit)
	cut := j.segments[count].first
	if _, err := j.add(cutFrame(cut)); err != nil {
		return true, err
	}
	if err := j.flush(); err != nil {
		return true, err
	}
	if err := j.sync(); err != nil {
		return true, err
	}
	if err := j.seam.before(stepDrop, 0); err != nil {
		return false, err
	}
	if err := j.log.TruncateFront(cut - 1); err != nil {
		_, unusable := j.log.LastIndex()
		return unusable != nil, fmt.Errorf("remove dead segments: %w", fromLibrary(err))
	}
	rest := segment{first: cut - 1, last: j.segments[count-1].last}
	rest.bytes = int64(rest.last)
	for _, s := range j.segments[:count] {
		j.bytes -= s.bytes
		j.deadSize -= s.bytes
	}
	j.bytes += rest.bytes
	j.deadSize += rest.bytes
	j.dead -= count - 1
	j.segments = append(j.segments[:0:0], j.segments[count-1:]...)
	j.segments[0] = rest
	if err := j.syncDir(); err != nil {
		return true, err
	}
	return false, nil
}

// close syncs and closes the log.
func (j *journal) close() error {
	j.writeback.close()
	err := j.sync()
	if cerr := j.log.Close(); err == nil && cerr != nil {
		err = fmt.Errorf("close: %w", fromLibrary(cerr))
	}
	return errors.Join(err, closeDir(j.dirFile))
}

// abandon closes the log after an error, whose outcome only the next open
// decides. If the library can no longer close its file, the runtime does once
// the journal is unreachable.
func (j *journal) abandon() {
	j.writeback.close()
	_ = j.log.Close()
	_ = closeDir(j.dirFile)
}
