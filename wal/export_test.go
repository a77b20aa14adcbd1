package wal

import (
	"context"
	"runtime"
)

// OpenSeam is Open with small segments and with a function that is called
// before each step that reaches the disk and can fail it.
func OpenSeam(dir string, opts *Options, segmentSize int, step func(string, int) error) (*Store, error) {
	return open(context.Background(), dir, opts, seam{segmentSize: segmentSize, step: step})
}

// LogBytes returns the size of the log.
func (s *Store) LogBytes() (n int64) {
	_ = s.alone(context.Background(), func() error { n = s.journal.bytes; return nil })
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
