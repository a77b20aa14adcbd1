// Package storetest checks that a [durabletasks.TaskStore] keeps its contract.
//
// If you write a store, begin with [Run]. Describe your store by a [Subject] and
// call Run from a test:
//
//	func TestStore(t *testing.T) {
//		storetest.Run(t, storetest.Subject{
//			New: func(tb testing.TB) durabletasks.TaskStore { return open(tb) },
//		})
//	}
//
// Run is a table of rules. Each rule belongs to a numbered clause of the
// contract in the comment of TaskStore, and is a subtest with a stable name. When
// it fails, it prints the sentence of its clause and what the store did instead:
//
//	--- FAIL: TestStore/S09/ttl-raised
//	    S09: a record expires at CreatedAt + TTL, that moment included, ...
//	    	Get of task "task" with a TTL raised from 1s to 2s, after 1.5s: durabletasks: task not found
//
// New is all that Run needs. The other fields of Subject say what else the suite
// can do with your store: move its clock, reopen it, or open a second instance on
// its data. Rules that need a field which is nil are skipped and say so. Give
// every field that your store can support.
//
// Then add the others: [RunInBubble] runs the same rules in bubbles of
// testing/synctest and finds goroutines that outlive Close, for stores that live
// in the process. [Model] compares random histories with a plain map. [Benchmark]
// measures.
//
// # What a green run proves
//
// It proves that the store keeps the contract in every way that a caller in the
// same process can see without a crash. Each rule has been seen to fail on a
// store that breaks it, while no others fail except those that depend on it. Run
// the suite with -race: the race detector may see what the results of calls do
// not show.
//
// For rules about concurrent calls, a green run proves less than a red one: the
// bad moment may just not have come. Run these often (-count) before you trust
// them.
//
// A green run does not prove that a commit survives the death of the process, a
// loss of power, or a disk that is full or fails, because Reopen follows an
// orderly Close. It says nothing about stores of more than about a thousand
// tasks, and little about records above 4 MiB. A durable store needs tests of its
// own for these; package wal of this module has some.
//
// Rules that were skipped prove nothing. At its end, Run logs how many there
// were; go test shows it with -v. A struct that embeds the TaskStore interface
// has only its five methods: it hides that the store is a Scanner or a Watcher,
// and the rules of these are skipped. Embed the concrete type.
//
// # Rules that surprise
//
// S01, S15: JSON values and strings come back byte for byte, even strings that
// are not valid UTF-8. Times come back in UTC. A record that goes through
// encoding/json as it is does not: absent values become null, and texts are
// escaped or repaired. A nil map or slice is equal to an empty one.
//
// S04, S10: a read does not remove a record that has expired. Only Sweep removes
// records, because only Sweep counts them. When a clock that was ahead is set
// right, the records that seemed expired are there again, also after a reopen.
//
// S06: Update compares next.Version with the stored version, and never times. A
// version that is ahead of the stored one is a conflict too.
//
// S08: Update replaces the whole record. A field that is zero in the new record
// must not keep its old value.
//
// S09: the expiry of a record follows from its current CreatedAt and TTL, never
// from the time of a write. A TTL of zero is not NoLimit: the record expires at
// once. It is no error to create such a record, or one that expired long ago.
//
// S13: a context that ends during a call leaves one of two outcomes: the call had
// no effect and reports the context's error, or it had its full effect and
// reports none. The error is that of ctx.Err, not the cause. A Scan checks the
// context before each visit.
//
// S15: a store may refuse a record for its size if it has more than 4 MiB, but
// only with a *TooLargeError. The error of a database driver is not enough.
//
// S16: no error contains the id of a task.
//
// # The rules
//
// The brackets say which fields of Subject a rule needs in addition to New;
// "back" is an Advance that can set the time back. The rules of an optional
// interface need a store that implements it.
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
//	         unknown-and-expired-have-one-error
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
//	S07      record-passed-to-create
//	         record-passed-to-update
//	         record-returned-by-get
//	         arguments-are-not-changed
//	S08      update-replaces-the-whole-record
//	         omitted-keys-disappear
//	         empty-containers-replace-full-ones
//	         readers-see-whole-updates
//	S09      expiry-includes-its-moment [Advance]
//	         expiry-is-exact-to-the-millisecond [Advance]
//	         ttl-counts-from-created-at [Advance]
//	         updates-do-not-postpone-expiry [Advance]
//	         ttl-raised [Advance]
//	         ttl-lowered [Advance]
//	         ttl-lowered-below-the-age
//	         ttl-of-zero-expires-at-once
//	         ttl-removed [Advance]
//	         ttl-added [Advance]
//	         no-limit-never-expires [Advance]
//	         longest-ttl-has-not-expired
//	         every-status-expires [Advance]
//	         expiry-holds-across-a-reopen [Reopen, Advance]
//	S10      empty-store-sweeps-nothing
//	         expired-are-counted-and-removed
//	         expired-by-the-clock-are-counted [Advance]
//	         argument-decides
//	         any-time-is-accepted
//	         earlier-time-keeps-what-expired-later
//	         changed-ttl-counts
//	         swept-ids-are-free
//	         no-limit-is-never-swept
//	         many-are-swept-at-once
//	         concurrent-sweeps-count-once
//	         update-and-sweep-agree
//	         reopen-removes-nothing [Reopen]
//	         clock-set-back-finds-all [Advance, back]
//	         clock-set-back-finds-all-after-a-reopen [Reopen, Advance, back]
//	         sweeps-of-instances-count-once [Share]
//	S11      created-records-survive [Reopen]
//	         updated-records-survive [Reopen]
//	         removed-fields-stay-removed [Reopen]
//	         versions-survive [Reopen]
//	         hostile-strings-and-json-survive [Reopen]
//	         one-mebibyte-survives [Reopen]
//	         long-strings-and-many-keys-survive [Reopen]
//	         swept-records-stay-away [Reopen]
//	         refused-calls-leave-nothing [Reopen]
//	         reopened-store-works [Reopen]
//	         acknowledged-during-close-survives [Reopen]
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
//	         cancelled-call-is-all-or-nothing
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
//	S16      errors-reveal-nothing
//	         get-with-an-error-returns-a-zero-record
//	Scanner  shows-the-unfinished
//	         shows-every-id
//	         shows-each-of-many
//	         shows-each-of-many-that-visit-updates
//	         shows-current-records
//	         omits-expired [Advance]
//	         stops-when-visit-returns-false
//	         visits-one-at-a-time
//	         visit-may-call-the-store
//	         continues-while-tasks-end
//	         records-do-not-alias
//	         changes-nothing
//	         done-context-stops-it
//	         context-done-during-scan-stops-it
//	         reports-closed
//	         reports-close-during-scan
//	         sees-whole-updates
//	         shows-the-unfinished-after-a-reopen [Reopen]
//	         instances-show-only-their-own [Share]
//	         tasks-of-a-closed-instance-go-to-one [Share]
//	Watcher  reports-other-instances [Share]
//	         changed-may-call-the-store [Share]
//	         ends-with-its-context
//	         ends-with-close
package storetest
