package wal

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// kind is the kind of an entry. The values are part of the format.
type kind byte

const (
	kindCreate kind = 1
	kindCopy   kind = 2
	kindUpdate kind = 3
	kindSweep  kind = 4
	kindCut    kind = 5
)

// The layout of a frame, drawn in the package comment. Part of the format.
const (
	offsetLength  = 4
	offsetIndex   = 8
	offsetDurable = 16
	offsetKind    = 24
	headerSize    = 25
	baseSize      = 8 // at the start of an update's body
	formatVersion = 1
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// startFrame returns the beginning of a frame of this kind, in dst's memory. Its
// header is completed by sealFrame, when its place in the log is known.
func startFrame(dst []byte, k kind) []byte {
	var header [headerSize]byte
	header[offsetKind] = byte(k) | formatVersion<<4
	return append(dst[:0], header[:]...)
}

// sealFrame completes a frame with its place in the log.
func sealFrame(f []byte, index, durable uint64) {
	binary.LittleEndian.PutUint32(f[offsetLength:], uint32(len(f)-headerSize))
	binary.LittleEndian.PutUint64(f[offsetIndex:], index)
	binary.LittleEndian.PutUint64(f[offsetDurable:], durable)
	binary.LittleEndian.PutUint32(f, crc32.Checksum(f[offsetLength:], castagnoli))
}

// setBase sets the base of an update.
func setBase(f []byte, base uint64) { binary.LittleEndian.PutUint64(f[headerSize:], base) }

// frame is a frame that was read from the log.
type frame struct {
	index   uint64
	durable uint64
	kind    kind
	format  byte
	body    []byte
}

// openFrame reads a frame that must be all of b and be the entry index. The
// reason says what is wrong with it, or is "".
func openFrame(b []byte, index uint64) (f frame, reason string) {
	if len(b) < headerSize {
		return frame{}, fmt.Sprintf("entry of %d bytes is shorter than a frame's header", len(b))
	}
	if n := binary.LittleEndian.Uint32(b[offsetLength:]); uint64(n) != uint64(len(b)-headerSize) {
		return frame{}, fmt.Sprintf("frame of %d bytes in an entry of %d", uint64(n)+headerSize, len(b))
	}
	if binary.LittleEndian.Uint32(b) != crc32.Checksum(b[offsetLength:], castagnoli) {
		return frame{}, "checksum does not match"
	}
	f = frame{
		index:   binary.LittleEndian.Uint64(b[offsetIndex:]),
		durable: binary.LittleEndian.Uint64(b[offsetDurable:]),
		kind:    kind(b[offsetKind] & 0xF),
		format:  b[offsetKind] >> 4,
		body:    b[headerSize:],
	}
	if f.index != index {
		return frame{}, fmt.Sprintf("holds entry %d instead", f.index)
	}
	return f, ""
}

// entrySize returns how many bytes a frame of n bytes takes in a segment.
func entrySize(n int) int { return uvarintSize(uint64(n)) + n }

func uvarintSize(x uint64) int {
	n := 1
	for ; x >= 0x80; x >>= 7 {
		n++
	}
	return n
}

// openEntry reads the entry index at the start of b. It returns the entry's
// size in the segment. The reason says what is wrong with it, or is "".
func openEntry(b []byte, index uint64) (f frame, size int, reason string) {
	length, n := binary.Uvarint(b)
	switch {
	case n == 0:
		return frame{}, 0, "length prefix is cut off"
	case n < 0:
		return frame{}, 0, "length prefix is not a number"
	case length > uint64(len(b)-n):
		return frame{}, 0, fmt.Sprintf("entry of %d bytes, only %d left in the file", length, len(b)-n)
	}
	size = n + int(length)
	f, reason = openFrame(b[n:size], index)
	return f, size, reason
}
