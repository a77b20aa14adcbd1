package storetest

// clauses holds the sentences of the contract as [durabletasks.TaskStore] and
// [durabletasks.Scanner] and [durabletasks.Watcher] state them; a failure is printed below its sentence.
var clauses = map[string]string{
	"S01":   "when Create or Update returns without an error, the record is as durable as the store makes it, and visible to every later call, field for field as it was passed in, times in UTC.",
	"S02":   "Create never overwrites: an id that is taken is ErrExists, and the stored record is unchanged. An expired record that is still stored may count as taken.",
	"S03":   "an unknown and an expired record are the same ErrNotFound, for Update too, which never creates.",
	"S04":   "reads change nothing.",
	"S05":   "Create stores version 0 and every Update raises the version by exactly one, whatever the record that is passed in says.",
	"S06":   "an Update whose expected version is not the stored one changes nothing and reports a *ConflictError. Of several concurrent updates from one version exactly one wins. Only versions decide, never times.",
	"S07":   "what is handed in or out never aliases what is stored.",
	"S08":   "an Update replaces the whole record, and is seen whole or not at all, by every reader.",
	"S09":   "a record expires at CreatedAt + TTL, that moment included, whether swept or not, also after its TTL has changed, and across a reopen.",
	"S10":   "Sweep removes every record that is expired at the time it is given and returns how many; after it their ids are free for Create. Nothing else removes a record, so that a clock that was wrong deletes nothing.",
	"S11":   "a durable store gives back every committed record after Close and a reopen, byte for byte.",
	"S12":   "after Close every call reports ErrClosed; Close itself is idempotent and reports nil then.",
	"S13":   "a context that is done stops a call before it commits, with the context's error, and leaves nothing half done. A call that has committed reports success. Where another error applies, too, either may be reported.",
	"S14":   "every method is safe for concurrent use.",
	"S15":   "ids, keys and texts are arbitrary strings: empty, with NUL, not ASCII, long, or named like something special. A store takes ids of 10 KiB, keys and texts of 65 KiB, JSON values of 1 MiB and 1000 keys in each container, in a record of up to 4 MiB.",
	"S16":   "no error holds an id, a key, a text or a payload, and a call that reports one returns a zero Record.",
	scanner: "Scan calls visit once for each record whose status is not terminal and which is not expired, in no particular order and one call after the other, until visit returns false. It holds no lock while it calls visit, which may call the store; a record that changes meanwhile is shown before or after the change. One that ends or is removed meanwhile is shown as it was before or not at all, and keeps no other from being shown. A store that several processes share shows a record to one of them only, and never one whose process is alive elsewhere: what it shows is run again. Errors: ErrClosed, ctx's, or one of the store's own, also midway: nil means that every record was shown or that visit returned false. When ctx is done, visit is not called again.",
	watcher: "Watch calls changed with the id of each record that another instance of the store has created, updated or removed, soon after; the store documents how soon. It may also call it for this instance's own commits and for records that have not changed. It holds no lock while it calls changed, which may call the store. Watch returns ctx's error when ctx ends, or why it cannot go on watching. A store that may have missed something, such as after a sleep of the machine, ends its Watch with an error: the engine begins another, and looks a moment later at every task that it holds on to.",
}

// These stand where a clause's number does, for the checks of the optional
// interfaces.
const (
	scanner = "Scanner"
	watcher = "Watcher"
)
