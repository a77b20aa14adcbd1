//go:build !arm

package wal

import (
	"os"
	"path/filepath"
	"syscall"
)

// writeback asks the system to begin writing a segment to the disk while the
// segment is still being filled. It promises nothing and waits for nothing.
// But the sync of a full segment is the longest regular pause, and then finds
// most of its work done.
type writeback struct {
	file *os.File // the segment, or nil
	at   int64    // the system has been asked to write everything before this
}

// writebackBytes is the least that is worth a system call.
const writebackBytes = 128 << 10

// syncFileRangeWrite begins the writing of pages that are not being written
// already.
const syncFileRangeWrite = 2

// start begins the writing of what the segment holds now.
func (w *writeback) start(dir string, s *segment) {
	if s.bytes-w.at < writebackBytes {
		return
	}
	if w.file == nil {
		f, err := os.Open(filepath.Join(dir, segmentName(s.first)))
		if err != nil {
			return
		}
		w.file = f
	}
	_ = syscall.SyncFileRange(int(w.file.Fd()), w.at, s.bytes-w.at, syncFileRangeWrite)
	w.at = s.bytes
}

// close forgets the segment: it is full, or the log is closed.
func (w *writeback) close() {
	if w.file != nil {
		_ = w.file.Close()
	}
	*w = writeback{}
}
