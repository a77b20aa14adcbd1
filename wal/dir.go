package wal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

const (
	dirPerm  = 0o700
	filePerm = 0o600
)

// The format file's name and content. Part of the format.
const (
	formatName = "FORMAT"
	formatText = "durabletasks wal 1\n"
)

// makeDir creates dir and what is missing above it, durably.
func makeDir(dir string) error {
	info, err := os.Stat(dir)
	if err == nil && !info.IsDir() {
		return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New("a file has this name")}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := makeDir(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, dirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

// cutFrame returns the frame of an entry that says that no entry below cut is
// needed.
func cutFrame(cut uint64) []byte {
	return binary.AppendUvarint(startFrame(nil, kindCut), cut)
}

// firstEntry returns the content of a new log's first segment.
func firstEntry() []byte {
	f := cutFrame(1)
	sealFrame(f, 1, 0)
	return append(binary.AppendUvarint(nil, uint64(len(f))), f...)
}

// findStore reports whether dir holds a store. If a process has died while it
// created one, which nobody can have used yet, unfinished is the path of the
// segment that it left.
func findStore(dir string) (exists bool, unfinished string, err error) {
	path := filepath.Join(dir, formatName)
	text, err := os.ReadFile(path)
	if err == nil {
		switch {
		case string(text) == formatText:
			return true, "", nil
		case bytes.HasPrefix(text, []byte("durabletasks wal ")):
			return false, "", fmt.Errorf("wal: %s: this library does not know the format of the store: %.40q", path, text)
		}
		return false, "", &CorruptError{File: path, Reason: "not the format file of a store"}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return false, "", fmt.Errorf("wal: read the format file: %w", err)
	}
	files, err := listLog(dir)
	if err != nil {
		return false, "", err
	}
	if len(files.segments) == 0 && len(files.temporary) == 0 {
		return false, "", nil
	}
	first := firstEntry()
	if len(files.segments) != 1 || len(files.temporary) > 0 || files.segments[0].name != segmentName(1) {
		return false, "", &CorruptError{File: path, Reason: "missing, but there are segments of a log"}
	}
	segment := filepath.Join(dir, files.segments[0].name)
	info, err := os.Stat(segment)
	if err != nil {
		return false, "", fmt.Errorf("wal: %w", err)
	}
	if info.Size() <= int64(len(first)) {
		content, err := os.ReadFile(segment)
		if err != nil {
			return false, "", fmt.Errorf("wal: %w", err)
		}
		if bytes.HasPrefix(first, content) || isZero(content) {
			return false, segment, nil
		}
	}
	return false, "", &CorruptError{File: path, Reason: "missing, but there is a segment of a log"}
}

// createLog creates a store's log. It writes the format file last: once that
// is there, the log is complete, and an empty log has lost its entries.
func createLog(dir string, sm seam) (*journal, error) {
	j, err := openJournal(dir, &findings{segments: []segment{{first: 1}}, next: 1}, sm)
	if err != nil {
		return nil, err
	}
	_, err = j.add(cutFrame(1))
	if err == nil {
		err = j.flush()
	}
	if err == nil {
		err = j.sync()
	}
	if err == nil {
		err = j.syncDir()
	}
	if err == nil {
		err = replaceFile(filepath.Join(dir, formatName), []byte(formatText))
	}
	if err == nil {
		err = j.syncDir()
	}
	if err != nil {
		j.abandon()
		return nil, fmt.Errorf("wal: create the store: %w", err)
	}
	return j, nil
}

// writeFile writes a file durably, or leaves none.
func writeFile(path string, data []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, filePerm)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(path) // the first error is the one to report
	}
	return err
}

// replaceFile writes a file so that all of it is there or nothing.
func replaceFile(path string, data []byte) error {
	if err := writeFile(path+tempSuffix, data); err != nil {
		return err
	}
	return os.Rename(path+tempSuffix, path)
}

// warnTorn logs what repair removed.
func (o *Options) warnTorn(t *Tear) {
	o.log(slog.LevelWarn, "wal: removed the torn end of the log",
		"file", t.File, "offset", t.Offset, "entry", t.Index, "bytes", t.Bytes, "copy", t.Copy)
}
