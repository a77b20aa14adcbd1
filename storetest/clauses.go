package storetest

// clauses holds the sentences of the contract as the comments of
// [durabletasks.TaskStore], [durabletasks.Scanner] and [durabletasks.Watcher]
// state them. A failure is printed below its sentence.
var clauses = map[string]string{
	"S01":   "when Create or Update returns without an error, the record is as durable as the store makes it, and every later call sees it, each field but Version as it was passed in, times in UTC.",
	"S02":   "Create never overwrites. An id that is taken is ErrExists, and the stored record is unchanged. An expired record that is still stored may count as taken.",
	"S03":   "an unknown and an expired record are the same ErrNotFound, also for Update, which never creates.",
	"S04":   "reads change nothing.",
	"S05":   "Create stores version 0, no matter which version is passed in, and every Update raises the version by exactly one.",
	"S06":   "an Update whose Version is not the stored one, be it lower or higher, changes nothing and reports a *ConflictError. Of several concurrent updates from one version, exactly one wins. Only versions decide, never times.",
	"S07":   "no record that is passed in or returned aliases what is stored, and no call changes its arguments.",
	"S08":   "an Update replaces the whole record, and every reader sees it whole or not at all.",
	"S09":   "a record expires at CreatedAt + TTL, that moment included, whether it has been swept or not. This holds after its TTL has changed and after a reopen.",
	"S10":   "Sweep removes every record that is expired at the time it is given and returns how many; their ids are then free for Create. Nothing else removes a record, so a clock that was wrong deletes nothing.",
	"S11":   "a durable store returns every committed record after Close and a reopen, byte for byte.",
	"S12":   "after Close every call reports ErrClosed, except Close, which returns nil again.",
	"S13":   "a context that is done stops a call before it commits. The call then reports the context's error and has no effect. A call that has committed reports success. If another error applies as well, the call may report either.",
	"S14":   "every method is safe for concurrent use.",
	"S15":   "ids, keys and texts are arbitrary strings: empty, with NUL, not ASCII, not UTF-8, long, or special in some language. A store accepts ids of 10 KiB, keys and texts of 65 KiB, JSON values of 1 MiB and 1000 keys in each container, in a record of up to 4 MiB. It may refuse a larger record with a *TooLargeError, and then has changed nothing.",
	"S16":   "no error holds an id, a key, a text or a payload, and a Get that reports an error returns a zero Record.",
	scanner: "Scan calls visit once for each record whose status is not terminal and which has not expired, in no particular order and one call after the other, until visit returns false. It holds no lock during visit, which may call the store. A record that changes during a Scan is shown as it was before or after the change. A record that ends or is removed during a Scan is shown as it was before or not at all, and every other is still shown. A store that several processes share shows a record to only one of them, and to none while the process that runs it is alive: the caller runs every record it is shown. Errors: ErrClosed, ctx's, or one of the store's own, possibly after some visits. Nil means that every record was shown or that visit returned false. Once ctx is done, Scan does not call visit again.",
	watcher: "Watch calls changed with the id of each record that another instance of the store has created, updated or removed, soon after; the store documents how soon. It may also call changed for commits of this instance and for records that have not changed. It holds no lock during changed, which may call the store. Watch returns ctx's error when ctx ends, or the reason why it cannot continue. A store that may have missed a change, such as during a sleep of the machine, ends its Watch with an error. The engine then starts another, and a moment later reads every task that it holds.",
}

// These stand in place of a clause's number for the checks of the optional
// interfaces.
const (
	scanner = "Scanner"
	watcher = "Watcher"
)
