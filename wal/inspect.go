package wal

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/mcp-durable-tasks/durabletasks"
)

// Report is what [Inspect] finds in a directory. It holds numbers and names
// of files, and never an id, a payload or anything else that was stored.
type Report struct {
	Dir     string
	Format  string // first line of the format file; empty if there is no store
	Process int    // the process that has the directory open, or had it last; 0 if unknown

	Segments []SegmentReport // in order, up to the first that could not be read
	First    uint64          // the log's first entry
	Next     uint64          // the entry that the next commit becomes
	Durable  uint64          // every entry up to this one is known to have been synced
	Cut      uint64          // no entry below this one is needed
	Entries  EntryCounts

	Records  int                         // records in the log, expired ones included
	Expiring int                         // how many of them expire at some time
	Statuses map[durabletasks.Status]int // how many have each status
	Live     int64                       // bytes of all records, with one whole entry for each

	Obsolete []string      // files that the next Open removes
	Copies   []string      // files that keep torn ends that were removed before
	Torn     *Tear         // what the next Open removes from the end of the log, or nil
	Corrupt  *CorruptError // why the next Open refuses the directory, or nil
}

// SegmentReport describes one file of the log.
type SegmentReport struct {
	Name    string
	First   uint64 // its first entry
	Entries int
	Bytes   int64 // of whole entries
}

// EntryCounts counts a log's entries by kind.
type EntryCounts struct{ Creates, Copies, Updates, Sweeps, Cuts int }

// Inspect reads a store's directory and reports what is there and what [Open]
// would do with it. It changes nothing and takes no lock, so it works on a
// copy, on read-only media, and while a store is running; then it may see a
// commit that is half written, or miss files that are being removed.
//
// The report includes damage. An error means that a file could not be read,
// and the report has what could be read; or it is [durabletasks.ErrInvalid]
// for an empty dir.
func Inspect(ctx context.Context, dir string) (*Report, error) {
	r := &Report{Dir: dir, Statuses: map[durabletasks.Status]int{}}
	if dir == "" {
		return r, errNoDir
	}
	r.Process = lockHolder(dir)
	text, err := os.ReadFile(filepath.Join(dir, formatName))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, fmt.Errorf("wal: read the format file: %w", err)
	}
	r.Format, _, _ = strings.Cut(string(text), "\n")
	if r.Copies, err = listTornCopies(dir); err != nil {
		return r, fmt.Errorf("wal: list the directory: %w", err)
	}

	exists, _, err := findStore(dir)
	if err != nil && !errors.As(err, &r.Corrupt) || err == nil && !exists {
		return r, err
	}
	v := &inspection{replay: newReplay(newIndex()), report: r}
	found, err := readLog(ctx, dir, v)
	if err != nil {
		var corrupt *CorruptError
		if !errors.As(err, &corrupt) {
			return r, err
		}
		if r.Corrupt == nil {
			r.Corrupt = corrupt
		}
	}
	r.Next, r.Durable, r.Cut, r.Obsolete = found.next, found.durable, found.cut, found.obsolete
	r.Torn = found.tear(dir)
	for _, s := range found.segments {
		r.Segments = append(r.Segments, SegmentReport{Name: segmentName(s.first), First: s.first, Entries: s.entries, Bytes: s.bytes})
	}
	l := v.replay.finish()
	for n := range l.fromOldest() {
		r.Records++
		r.Statuses[n.st.Load().status]++
	}
	r.Live, r.Expiring = l.bytes, len(l.expiries.entries)
	return r, nil
}

// inspection counts entries while they are replayed.
type inspection struct {
	replay *replay
	report *Report
}

func (v *inspection) begin(first uint64) {
	v.report.First, v.report.Entries = first, EntryCounts{}
	v.replay.begin(first)
}

func (v *inspection) entry(f *frame) error {
	n := &v.report.Entries
	switch f.kind {
	case kindCreate:
		n.Creates++
	case kindCopy:
		n.Copies++
	case kindUpdate:
		n.Updates++
	case kindSweep:
		n.Sweeps++
	case kindCut:
		n.Cuts++
	}
	return v.replay.entry(f)
}

// String describes the directory in some lines of text.
func (r *Report) String() string {
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("directory  %s", r.Dir)
	line("format     %q, last opened by process %d", r.Format, r.Process)
	line("log        entries %d to %d in %d segments; synced up to %d, needed from %d", r.First, r.Next-1, len(r.Segments), r.Durable, r.Cut)
	n := r.Entries
	line("entries    %d creates, %d updates, %d copies, %d sweeps, %d cuts", n.Creates, n.Updates, n.Copies, n.Sweeps, n.Cuts)
	line("records    %d, of which %d expire; %d bytes", r.Records, r.Expiring, r.Live)
	for _, s := range append(statuses[1:], "") {
		if count := r.Statuses[s]; count > 0 {
			line("           %d %s", count, s)
		}
	}
	var bytes int64
	for _, s := range r.Segments {
		bytes += s.Bytes
	}
	line("segments   %d bytes", bytes)
	for _, s := range r.Segments {
		line("           %s %d entries, %d bytes", s.Name, s.Entries, s.Bytes)
	}
	for _, name := range r.Obsolete {
		line("obsolete   %s", name)
	}
	for _, name := range r.Copies {
		line("copy       %s", name)
	}
	if t := r.Torn; t != nil {
		line("torn       %s at offset %d (entry %d), %d bytes", filepath.Base(t.File), t.Offset, t.Index, t.Bytes)
	}
	if r.Corrupt != nil {
		line("corrupt    %v", r.Corrupt)
	}
	return b.String()
}
