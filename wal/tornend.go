package wal

import (
	"encoding/binary"
	"fmt"
)

// sector is the unit in which disks write.
const sector = 512

// whyNotTorn examines the end of the last segment from buf[at] on, where the
// entry index should be and is not. It returns "" if a crash can have left the
// end like that, and otherwise why not.
//
// A process that dies leaves the beginning of an entry, which runs past the
// end of the file. A power loss can leave sectors unwritten, which read as
// zeros, among entries that were never synced. Everything else is damage.
func whyNotTorn(buf []byte, at int, index uint64) string {
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

// leastZeros is how many bytes of a sector must lie in a range, all zero, for
// the sector to count as unwritten. A frame's header has up to seven zeros in
// a row.
const leastZeros = 16

// hasZeroSector reports whether buf[from:to] is all zero or holds an unwritten
// sector of the file, or the part of one at either end.
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
