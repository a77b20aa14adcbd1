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
// directory at a time; the next one gets a [*LockedError].
//
// Without Sync a commit survives the death of the process, SIGKILL included;
// after a power loss the newest commits may be missing, but what is left is
// the state as it was after some earlier commit. With Sync a commit is on the
// disk before it is acknowledged. Concurrent commits share one write and one
// sync.
//
// Three kinds of damage look exactly like a crash and cannot be told from it:
// a last segment that was cut between two entries, one that was removed or
// emptied, and a zeroed sector in the last entries of the log. A lock is only
// as good as the file system's: NFS is not supported.
//
// A store whose directory is moved or removed while it runs notices when it
// next starts or removes a segment, and has failed then. What it has committed
// is where its files are.
//
// # Records
//
// Every field of a record comes back byte for byte, and every time as the same
// instant in UTC. Empty maps and slices come back nil. All records are held in
// memory; payloads that were read from disk are decoded when they are first
// asked for. Reads never touch the disk and never wait for a write.
//
// # Files
//
//	LOCK                         locked while the directory is open; holds the owner's process id; never removed
//	FORMAT                       says that a store exists here, and in which format; locked too
//	00000000000000000001         a segment of the log, named after its first entry
//	00000000000000000001.START   a segment that is about to become the first; the log finishes it on the next open
//	torn-<entry>-<time>          the bytes that were removed from the torn end of the log; the newest three are kept
//
// # Format
//
// A segment is a sequence of entries; the log library gives each its length,
// the rest is a frame of this package. Fixed numbers are little endian,
// uvarint and varint are those of encoding/binary, and a text is its length as
// uvarint and its bytes. All that follows is part of the format.
//
//	entry    uvarint length of the frame | frame
//	frame    0  checksum  4 bytes  CRC-32C over the rest of the frame
//	         4  length    4 bytes  of the body
//	         8  index     8 bytes  of this entry; the log's first is 1, and none is left out
//	        16  durable   8 bytes  all entries up to this one were synced before this one was written
//	        24  kind      1 byte   low 4 bits: kind; high 4 bits: format, 1
//	        25  body
//
//	kind     body
//	1 create text id | uvarint version (0) | fields
//	2 copy   text id | uvarint version | fields: a whole record again, moved towards the end of the log
//	3 update base 8 bytes | text id | uvarint version | fields: what changed since version-1;
//	         base is the entry that holds the whole record which this and the updates before it build on
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
//	14 questions kept  varint: only the first so many stay
//	15 question        text key, 16 bytes digest: appended
//	16 requests gone   nothing: all are removed
//	17 request gone    text key
//	18 request         text key, text JSON
//	19 responses gone  nothing: all are removed
//	20 response gone   text key
//	21 response        text key, text JSON
//	22 unsupported     varint 0 to 255: the bits of wire.InputKinds
//	23 tool            text
//	24 deadline        varint seconds, uvarint nanoseconds: of the question before it
//
// A field that is not written is zero in a whole record and unchanged in an
// update. The log begins with the cut 1, so that an emptied log is not taken
// for a new one. Its first entry is never later than its newest cut says.
package wal
