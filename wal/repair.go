package wal

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// tear describes the torn end of the log. It returns nil if there is none.
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

// repair makes the directory what readLog took it for: it removes obsolete
// files and the torn end of the log, of which it keeps a copy. A crash at any
// moment leaves a directory that the next readLog takes for the same: the copy
// is not part of the log, and the rest was to be removed anyway.
func (found *findings) repair(dir string, now time.Time) (*Tear, error) {
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

// rewriteUnsynced makes sure that everything that was read is on the disk. It
// writes the entries that may not be there once more, the same bytes at the
// same place: after a failed sync the system can hold pages in memory that it
// believes written, and another sync alone would not write them.
func (found *findings) rewriteUnsynced(dir string) error {
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

// keptCopies is how many copies of torn ends are kept.
const keptCopies = 3

const tornPrefix = "torn-"

// keepTorn writes a copy of the torn end of a log and removes the oldest
// copies. It returns the copy's path.
func keepTorn(dir string, index uint64, now time.Time, torn []byte) (string, error) {
	name := fmt.Sprintf("%s%s-%s", tornPrefix, segmentName(index), now.UTC().Format("20060102T150405.000Z"))
	path := filepath.Join(dir, name)
	if err := writeFile(path, torn); err != nil {
		return "", err
	}
	copies, err := listTornCopies(dir)
	if err != nil {
		return "", err
	}
	copies = slices.DeleteFunc(copies, func(n string) bool { return n == name })
	for len(copies) >= keptCopies {
		if err := os.Remove(filepath.Join(dir, copies[0])); err != nil {
			return "", err
		}
		copies = copies[1:]
	}
	return path, nil
}

// listTornCopies returns the names of the copies of torn ends, ordered by their
// entries, then by their times.
func listTornCopies(dir string) ([]string, error) {
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
