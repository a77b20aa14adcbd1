//go:build !arm

package wal

import (
	"os"
	"path/filepath"
	"syscall"
)

// early makes the system begin to write a segment to the disk while it is
// still being filled. It promises nothing and waits for nothing; but the sync
// of the full segment, which is the longest regular pause, then finds most of
// its work done.
type early struct {
	file *os.File // the segment, or nil
	at   int64    // up to here the system has been told
}

// earlyBytes is how much is worth telling the system about.
const earlyBytes = 128 << 10

// syncFileRangeWrite begins the writing of what is not being written already.
const syncFileRangeWrite = 2

// wrote takes note of what the segment holds by now.
func (e *early) wrote(dir string, s *segment) {
	if s.bytes-e.at < earlyBytes {
		return
	}
	if e.file == nil {
		f, err := os.Open(filepath.Join(dir, segmentName(s.first)))
		if err != nil {
			return
		}
		e.file = f
	}
	_ = syscall.SyncFileRange(int(e.file.Fd()), e.at, s.bytes-e.at, syncFileRangeWrite)
	e.at = s.bytes
}

// close forgets the segment: it is full, or the log is closed.
func (e *early) close() {
	if e.file != nil {
		_ = e.file.Close()
	}
	*e = early{}
}
