// Package storetest tells the author of a [durabletasks.TaskStore] what
// correct means, and whether the store is.
//
// [Run] is a table of rules. Each is a subtest with a stable name, belongs to
// a numbered clause of the contract that the comment of TaskStore states, and
// prints the clause's sentence when it fails. The store says by a [Subject]
// what the suite may do with it; a rule that needs more is skipped, and says
// what it lacks. [RunInBubble] runs the same rules in a bubble of
// testing/synctest and also finds goroutines that outlive Close. [Model]
// compares random histories with a plain map. [Benchmark] measures.
//
// # What a green run proves
//
// That the store keeps the contract in every way that a caller within the
// process can see without a crash: each rule has been seen to fail on a store
// that breaks it, and no others to fail with it but those that depend on it.
// Run the suite under -race: what a rule cannot see by what is returned, the
// race detector may.
//
// Of rules about concurrent calls, a green run proves less than a red one: the
// bad moment did not come. Run these often (-count) before you trust them.
//
// It does not prove that a commit survives the death of the process, the
// loss of power, or a full or failing disk: Reopen follows an orderly Close.
// Nor does it say how the store does with more than a thousand tasks, or with
// records above 4 MiB. A store that is durable needs tests of its own for
// these; package wal of this module has some.
//
// What was skipped is not proved at all. Run logs at its end how much that is,
// which go test shows with -v. A struct that embeds a TaskStore has its five
// methods and no others: it hides that the store is a Scanner or a Watcher, and
// the rules of these are skipped. Embed the concrete type.
//
// # Rules that surprise
//
// Update replaces the whole record: what is zero in the new one must not
// remain from the old one (S08). The expiry of a record is computed from its
// current TTL and its CreatedAt, never from the time of a write (S09). A read
// does not remove what has expired, because only Sweep counts it (S04). A
// context that ends while a call runs leaves one of two outcomes: nothing was
// committed and its error is reported, or all was and none is (S13). JSON
// values and strings come back byte for byte, also strings that are not valid
// UTF-8 (S01, S15), so a record that goes through encoding/json as it is does
// not come back: absent values become null there, and texts are escaped or
// repaired. Times come back in UTC (S01). The error for a context that is done
// is that of its Err, not its cause (S13). A nil map or slice counts as equal
// to an empty one. A TTL of zero is not NoLimit but expires at once, and to
// create such a record, or one that expired long ago, is no error (S09). What
// has expired is there again when a clock that was ahead is put right, also
// after a reopen, because nobody has swept (S10). An error never names the task
// (S16). A Scan reads the context before each visit.
//
// # The rules
//
// In brackets is what a rule needs of the Subject beside New; back is an
// Advance that can move the time back. The rules of an optional interface need
// a store that implements it.
//
//	S01      created-record-is-visible
//	         updated-record-is-visible
//	         every-field-is-kept
//	         absent-fields-stay-absent
//	         durations-are-kept
//	         poll-interval-of-zero-is-kept
//	         times-of-every-year-are-kept
//	         order-and-repetition-of-questions-are-kept
//	         digests-of-questions-are-kept
//	         json-is-kept-to-the-byte
//	         one-mebibyte-is-kept
//	         commits-are-visible-to-other-instances [Share]
//	S02      taken-id-is-refused
//	         same-record-is-refused
//	         expired-id-is-refused-or-free [Advance]
//	         one-of-many-creators-wins
//	         one-of-many-instances-creates [Share]
//	S03      unknown-id-is-not-found
//	         update-never-creates
//	         expired-is-not-found [Advance]
//	         swept-is-not-found
//	         unknown-and-expired-are-told-alike
//	S04      reads-change-nothing
//	         reads-of-expired-remove-nothing [Advance]
//	         scans-of-expired-remove-nothing
//	S05      create-stores-version-zero
//	         each-update-adds-one
//	         unchanged-update-adds-one
//	         recreated-task-starts-at-zero
//	         hundreds-of-updates-are-counted
//	S06      stale-version-changes-nothing
//	         version-ahead-changes-nothing
//	         conflict-names-both-versions
//	         times-decide-nothing
//	         one-of-many-updates-wins
//	         no-update-is-lost
//	         one-of-many-instances-updates [Share]
//	S07      record-given-to-create
//	         record-given-to-update
//	         record-returned-by-get
//	         arguments-are-left-as-they-are
//	S08      update-replaces-the-whole-record
//	         keys-left-out-disappear
//	         empty-containers-replace-full-ones
//	         readers-see-whole-updates
//	S09      expiry-includes-its-moment [Advance]
//	         expiry-is-exact-to-the-millisecond [Advance]
//	         ttl-counts-from-created-at [Advance]
//	         updates-do-not-postpone-expiry [Advance]
//	         ttl-made-longer [Advance]
//	         ttl-made-shorter [Advance]
//	         ttl-made-shorter-than-the-task-is-old
//	         ttl-of-zero-expires-at-once
//	         ttl-taken-away [Advance]
//	         ttl-given-later [Advance]
//	         no-limit-never-expires [Advance]
//	         longest-ttl-has-not-expired
//	         every-status-expires [Advance]
//	         expiry-holds-across-a-reopen [Reopen, Advance]
//	S10      empty-store-sweeps-nothing
//	         expired-are-counted-and-removed
//	         expired-by-the-clock-are-counted [Advance]
//	         time-given-decides
//	         any-time-is-a-moment
//	         earlier-time-leaves-what-expired-since
//	         changed-ttl-counts
//	         swept-ids-are-free
//	         no-limit-is-never-swept
//	         many-are-swept-at-once
//	         concurrent-sweeps-count-once
//	         update-and-sweep-agree
//	         reopen-removes-nothing [Reopen]
//	         clock-that-went-back-finds-all [Advance, back]
//	         clock-that-went-back-finds-all-after-a-reopen [Reopen, Advance, back]
//	         sweeps-of-instances-count-once [Share]
//	S11      created-records-survive [Reopen]
//	         updated-records-survive [Reopen]
//	         fields-taken-away-stay-away [Reopen]
//	         versions-survive [Reopen]
//	         hostile-strings-and-json-survive [Reopen]
//	         one-mebibyte-survives [Reopen]
//	         long-strings-and-many-keys-survive [Reopen]
//	         swept-records-stay-away [Reopen]
//	         refused-calls-leave-nothing [Reopen]
//	         reopened-store-goes-on [Reopen]
//	         what-was-acknowledged-during-close-survives [Reopen]
//	S12      every-call-reports-closed
//	         close-of-an-unused-store
//	         close-is-idempotent
//	         close-while-calls-run
//	         instances-close-alone [Share]
//	S13      done-context-stops-create
//	         done-context-stops-get
//	         done-context-stops-update
//	         done-context-stops-sweep
//	         cancelled-after-return-undoes-nothing
//	         cancelled-meanwhile-is-all-or-nothing
//	         cancelled-sweep-is-all-or-nothing
//	S14      tasks-do-not-mix
//	         every-method-at-once
//	S15      ids-are-arbitrary-strings
//	         keys-are-arbitrary-strings
//	         texts-are-arbitrary-strings
//	         invalid-utf-8-is-kept
//	         long-strings-are-kept
//	         many-keys-are-kept
//	         large-records-are-kept
//	         oversized-records-are-kept-or-refused
//	S16      errors-hold-nothing-of-records
//	         get-with-an-error-returns-a-zero-record
//	Scanner  shows-the-unfinished
//	         shows-every-id
//	         shows-each-of-many
//	         shows-each-of-many-that-visit-updates
//	         shows-current-records
//	         leaves-expired-out [Advance]
//	         stops-when-told
//	         visits-one-at-a-time
//	         visit-may-call-the-store
//	         goes-on-when-tasks-end-meanwhile
//	         records-do-not-alias
//	         changes-nothing
//	         done-context-stops-it
//	         context-that-ends-meanwhile-stops-it
//	         reports-closed
//	         reports-a-close-meanwhile
//	         sees-whole-updates
//	         shows-the-unfinished-after-a-reopen [Reopen]
//	         instances-show-only-their-own [Share]
//	         what-an-instance-leaves-goes-to-one [Share]
//	Watcher  tells-of-other-instances [Share]
//	         changed-may-call-the-store [Share]
//	         ends-with-its-context
//	         ends-with-close
package storetest
