// Package wal keeps durabletasks records in a directory, so that they survive
// the process, and with [Options.Sync] the machine. It is a
// [durabletasks.TaskStore] on the segmented log github.com/tidwall/wal.
//
// # What it promises
//
// What was acknowledged is never lost, and what is stored is never wrong.
// [Open] takes an exclusive lock, verifies every byte of the log before it
// changes anything, removes the torn end that a crash leaves, and refuses
// damage with a [*CorruptError]. The first failed write stops all writing
// ([ErrFailed]) until the directory is opened again. One process owns a
// directory at a time; others get a [*LockedError].
//
// Without Sync a commit survives the death of the process, including SIGKILL.
// After a power loss the newest commits may be missing, but the store is as it
// was after some earlier commit. With Sync a commit is on the disk before it
// is acknowledged. Concurrent commits share one write and one sync.
//
// Three kinds of damage look exactly like a crash: the last segment cut
// between two entries, the last segment removed or emptied, and a zeroed
// sector in the last entries of the log. Open does not detect them. The lock
// is only as good as the file system's; NFS is not supported.
//
// If the directory is moved or removed while a store runs, the store fails
// when it next starts or removes a segment. What it has committed is in its
// files, wherever they are now.
//
// # Records
//
// Every field of a record comes back byte for byte, and every time as the same
// instant in UTC. Empty maps and slices come back nil. All records are kept in
// memory. Payloads that were read from the disk are decoded when they are first
// needed. Reads never use the disk and never wait for a write.
//
// # Files
//
//	LOCK                         locked while the directory is open; holds the owner's process id; never removed
//	FORMAT                       says that a store exists here, and in which format; locked too
//	00000000000000000001         a segment of the log, named after its first entry
//	00000000000000000001.START   a segment that is about to become the first; the next open completes that
//	torn-<entry>-<time>          bytes that were removed from the torn end of the log; the newest three are kept
//
// # Format
//
// A segment is a sequence of entries. The log library writes the length of
// each; the rest is a frame of this package. Fixed numbers are little endian,
// uvarint and varint are those of encoding/binary, and a text is its length as
// uvarint and its bytes. Everything below is part of the format.
//
//	entry    uvarint length of the frame | frame
//	frame    0  checksum  4 bytes  CRC-32C over the rest of the frame
//	         4  length    4 bytes  of the body
//	         8  index     8 bytes  of this entry; the log's first is 1, and no index is left out
//	        16  durable   8 bytes  the entries up to this index were synced before this entry was written
//	        24  kind      1 byte   low 4 bits: kind; high 4 bits: format, 1
//	        25  body
//
//	kind     body
//	1 create text id | uvarint version (0) | fields
//	2 copy   text id | uvarint version | fields: a whole record again, moved to the end of the log
//	3 update base 8 bytes | text id | uvarint version | fields: what changed since version-1;
//	         base is the index of the whole record that this update and those before it change
//	4 sweep  varint seconds, uvarint nanoseconds: the records that are expired at this time are removed
//	5 cut    uvarint index: no entry below it is needed any more
//
//	field    tag, 1 byte, then by tag
//	 1 status          varint 1 to 5: working, input_required, completed, failed, cancelled
//	 2 status          text, for any other
//	 3 message         text
//	 4 created         varint seconds, uvarint nanoseconds
//	 5 updated         varint seconds, uvarint nanoseconds
//	 6 TTL             varint nanoseconds
//	 7 poll interval   varint nanoseconds
//	 8 owner           text
//	 9 cancel          varint 0 or 1
//	10 result          text, JSON; empty: absent
//	11 error           text, JSON; empty: absent
//	12 payload         text, JSON; empty: absent
//	13 checkpoint      text, JSON; empty: absent
//	14 questions kept  varint: how many stay; the later ones are removed
//	15 question        text key, 16 bytes digest: appended
//	16 requests gone   nothing: all are removed
//	17 request gone    text key: it is removed
//	18 request         text key, text JSON: added or replaced
//	19 responses gone  nothing: all are removed
//	20 response gone   text key: it is removed
//	21 response        text key, text JSON: added or replaced
//	22 unsupported     varint 0 to 255: the bits of wire.InputKinds
//	23 tool            text
//	24 deadline        varint seconds, uvarint nanoseconds: of the question before it
//
// A field that is not written is zero in a whole record and unchanged in an
// update; the zero time is 1970, and a question without a deadline has none.
// The log begins with the cut 1, so that an emptied log does not look like a
// new one. The log's first entry is never above its newest cut.
package wal
