package storetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var createChecks = []check{
	{"S01", "created-record-is-visible", 0, createdIsVisible},
	{"S01", "updated-record-is-visible", 0, updatedIsVisible},
	{"S01", "every-field-is-kept", 0, everyFieldIsKept},
	{"S01", "absent-fields-stay-absent", 0, absentStaysAbsent},
	{"S01", "durations-are-kept", 0, durationsAreKept},
	{"S01", "poll-interval-of-zero-is-kept", 0, pollIntervalOfZeroIsKept},
	{"S01", "times-of-every-year-are-kept", 0, timesAreKept},
	{"S01", "order-and-repetition-of-questions-are-kept", 0, questionsInOrder},
	{"S01", "digests-of-questions-are-kept", 0, digestsAreKept},
	{"S01", "json-is-kept-to-the-byte", 0, jsonIsKept},
	{"S01", "one-mebibyte-is-kept", 0, mebibyteIsKept},

	{"S02", "taken-id-is-refused", 0, takenIsRefused},
	{"S02", "same-record-is-refused", 0, sameIsRefused},
	{"S02", "expired-id-is-refused-or-free", needsAdvance, expiredIsRefusedOrFree},
	{"S02", "one-of-many-creators-wins", 0, oneCreatorWins},
}

func createdIsVisible(t *trial) {
	r := t.record("task")
	t.create(r)
	t.stored(r, "after Create")
}

func updatedIsVisible(t *trial) {
	r := t.record("task")
	t.create(r)
	r.StatusMessage = "updated"
	r = t.update(r)
	t.stored(r, "after Update")
}

func everyFieldIsKept(t *trial) {
	for i, status := range statuses {
		r := t.full("full "+string(status), i)
		t.create(r)
		t.stored(r, "after Create")
		r = t.update(t.full(r.ID, i+1))
		t.stored(r, "after Update")
	}
}

// absentStaysAbsent sets one optional field at a time, for stores that guess
// from one field whether another is absent.
func absentStaysAbsent(t *trial) {
	null := wire.MustParse("null")
	for field, set := range map[string]func(r *durabletasks.Record){
		"nothing":                   func(*durabletasks.Record) {},
		"Owner":                     func(r *durabletasks.Record) { r.Owner = "alice" },
		"StatusMessage":             func(r *durabletasks.Record) { r.StatusMessage = "hello" },
		"CancelRequested":           func(r *durabletasks.Record) { r.CancelRequested = true },
		"Tool":                      func(r *durabletasks.Record) { r.Tool = "crawl" },
		"UnsupportedInput":          func(r *durabletasks.Record) { r.UnsupportedInput = wire.InputForm },
		"PollInterval: NoLimit":     func(r *durabletasks.Record) { r.PollInterval = durabletasks.NoLimit },
		"Result: {}":                func(r *durabletasks.Record) { r.Result = wire.MustParse("{}") },
		"Result: null":              func(r *durabletasks.Record) { r.Result = null },
		"Error: null":               func(r *durabletasks.Record) { r.Error = null },
		"Payload: null":             func(r *durabletasks.Record) { r.Payload = null },
		"Checkpoint: null":          func(r *durabletasks.Record) { r.Checkpoint = null },
		`Checkpoint: ""`:            func(r *durabletasks.Record) { r.Checkpoint = wire.MustParse(`""`) },
		"InputRequests: {k: null}":  func(r *durabletasks.Record) { r.InputRequests = map[string]wire.JSON{"k": null} },
		"InputResponses: {k: null}": func(r *durabletasks.Record) { r.InputResponses = map[string]wire.JSON{"k": null} },
		"Questions: [{}]":           func(r *durabletasks.Record) { r.Questions = make([]durabletasks.Question, 1) },
		"InputRequests: {}":         func(r *durabletasks.Record) { r.InputRequests = map[string]wire.JSON{} },
		"Questions: []":             func(r *durabletasks.Record) { r.Questions = []durabletasks.Question{} },
	} {
		r := t.record("only " + field)
		set(&r)
		t.create(r)
		t.stored(r, "after Create")
	}
}

func durationsAreKept(t *trial) {
	const longest = math.MaxInt64 / time.Millisecond * time.Millisecond
	for i, d := range []time.Duration{
		durabletasks.NoLimit,
		time.Minute + time.Millisecond,
		24*time.Hour - time.Millisecond,
		1 << 31 * time.Millisecond,
		1 << 32 * time.Millisecond,
		100 * 365 * 24 * time.Hour,
		longest,
	} {
		r := t.record(fmt.Sprint("duration ", i))
		r.TTL, r.PollInterval = d, d
		t.create(r)
		t.stored(r, "after Create")
	}
}

// pollIntervalOfZeroIsKept uses a zero that is easily mistaken for an absent
// value.
func pollIntervalOfZeroIsKept(t *trial) {
	for i, before := range []time.Duration{0, time.Second, durabletasks.NoLimit} {
		r := t.record(fmt.Sprint("task ", i))
		r.PollInterval = before
		t.create(r)
		t.stored(r, "after Create")
		r.PollInterval = 0
		r = t.update(r)
		t.stored(r, fmt.Sprintf("with its PollInterval changed from %v to zero", before))
	}
}

// questionsInOrder uses lists that a set, a map by key or a sorted list does not
// preserve. The engine never asks one key twice; a store must not care.
func questionsInOrder(t *trial) {
	for i, keys := range [][]string{{"b", "a", "c"}, {"a", "a"}, {"b", "b", "a", "b", "", ""}} {
		r := t.record(fmt.Sprint("task ", i))
		for _, key := range keys {
			r.Questions = append(r.Questions, durabletasks.Question{Key: key, Digest: digest(key)})
		}
		t.create(r)
		t.stored(r, "after Create")
		r.Questions = slices.Clone(r.Questions)
		slices.Reverse(r.Questions)
		r = t.update(r)
		t.stored(r, "after Update")
	}
}

// digestsAreKept uses bytes that a text, a number or a C string does not
// preserve, and questions that differ only in their digest.
func digestsAreKept(t *trial) {
	var every [256]byte
	for b := range every {
		every[b] = byte(b)
	}
	digests := [][]byte{
		nil,
		slices.Repeat([]byte{0xff}, 16),
		append(make([]byte, 15), 1),
		append([]byte{1}, make([]byte, 15)...),
		[]byte("  0123456789ab  "),
		[]byte("\xc0\x80\xed\xa0\x80\r\n\t\\'\"\x1a\x7f%_*"),
	}
	for bytes := range slices.Chunk(every[:], 16) {
		digests = append(digests, bytes)
	}
	all := t.record("all")
	for i, digest := range digests {
		r := t.record(fmt.Sprint("digest ", i))
		r.Questions = questions("question")
		r.Questions[0].Digest = [16]byte(append(slices.Clone(digest), make([]byte, 16)...)[:16])
		all.Questions = append(all.Questions, r.Questions[0])
		t.create(r)
		t.stored(r, "after Create")
	}
	t.create(t.record(all.ID))
	t.stored(t.update(all), "after Update")
}

// timesAreKept uses times before 1970, and times beyond the range of 32 bits of
// seconds and of 64 bits of nanoseconds.
func timesAreKept(t *trial) {
	for i, moment := range []time.Time{
		{},
		time.Date(1600, time.February, 29, 12, 0, 0, 0, time.UTC),
		time.Date(1969, time.December, 31, 23, 59, 59, 999e6, time.UTC),
		time.Date(1970, time.January, 1, 0, 0, 0, 0, time.UTC),
		time.Date(2040, time.January, 1, 0, 0, 0, 1e6, time.UTC),
		time.Date(2110, time.January, 1, 0, 0, 0, 1e6, time.UTC),
		time.Date(2300, time.January, 1, 0, 0, 0, 1e6, time.UTC),
		time.Date(9999, time.December, 31, 23, 59, 59, 999e6, time.UTC),
	} {
		r := t.record(fmt.Sprint("time ", i))
		r.CreatedAt, r.LastUpdatedAt = moment, moment
		r.Questions = []durabletasks.Question{{Key: "question", Deadline: moment}}
		t.create(r)
		t.stored(r, "after Create")
		r = t.update(r)
		t.stored(r, "after Update")
	}
}

// fragileJSON are JSON texts that some encoder or decoder is known to change.
var fragileJSON = []string{
	`{"id":9007199254740993}`,
	`[123456789012345678901234567890,0.1000,1.0,1e400,-1E-400,1e2,-0,0.0]`,
	`{"z":1,"a":2,"Z":3,"__proto__":{"toString":null},"":0}`,
	`{"html":"<script>&</script>","slash":"a\/b","line":"\u2028 ` + "\u2028\u2029" + `"}`,
	`{"escapes":"\u0000\u001f\u00e9\ud83d\ude00\b\f\n\r\t\"\\","raw":"é😀\u007f"}`,
	`{"surrogates":["\ud800","\udfff","\ud800x"],"\ud800":1}`,
	`{"empty":[{},[],"",null,false]}`,
	`null`,
	`""`,
	`-0`,
	`{}`,
	strings.Repeat("[", wire.MaxDepth) + strings.Repeat("]", wire.MaxDepth),
}

func jsonIsKept(t *trial) {
	for i, fragile := range fragileJSON {
		j := wire.MustParse(fragile)
		r := t.record(fmt.Sprint("json ", i))
		r.Result, r.Error, r.Payload, r.Checkpoint = j, j, j, j
		r.InputRequests = map[string]wire.JSON{"key": j}
		r.InputResponses = map[string]wire.JSON{"key": j}
		t.create(r)
		t.stored(r, "after Create")
		r = t.update(r)
		t.stored(r, "after Update")
	}
}

func mebibyteIsKept(t *trial) {
	r := t.record("large")
	r.Payload = mebibytes()[0]
	t.create(r)
	t.stored(r, "after Create")
	for i, set := range []func(j wire.JSON){
		func(j wire.JSON) { r.InputRequests = map[string]wire.JSON{"key": j} },
		func(j wire.JSON) { r.InputResponses = map[string]wire.JSON{"key": j} },
		func(j wire.JSON) { r.Checkpoint = j },
		func(j wire.JSON) { r.Error = j },
		func(j wire.JSON) { r.Result = j },
	} {
		r = at(int64(i), t.record("large"))
		set(mebibytes()[i%3])
		t.stored(t.update(r), "after Update")
	}
}

func takenIsRefused(t *trial) {
	ctx := context.Background()
	for i, status := range statuses {
		r := t.record("taken " + string(status))
		r.Status = status
		r.TTL = time.Hour
		t.create(r)

		other := t.full(r.ID, i)
		err := t.store.Create(ctx, other)
		t.wants(err, durabletasks.ErrExists, "second Create of task %s", clip(r.ID))
		t.stored(r, "after a refused Create")

		r.StatusMessage = "updated"
		r = t.update(r)
		err = t.store.Create(ctx, other)
		t.wants(err, durabletasks.ErrExists, "second Create of task %s, which was updated", clip(r.ID))
		t.stored(r, "after a refused Create")
	}
}

// sameIsRefused is for stores that mistake a Create with an equal record for a
// repeated call.
func sameIsRefused(t *trial) {
	for _, r := range []durabletasks.Record{t.record("plain"), t.full("full", 1)} {
		t.create(r)
		for range 2 {
			err := t.store.Create(context.Background(), r)
			t.wants(err, durabletasks.ErrExists, "second Create of task %s with the same record", clip(r.ID))
			t.stored(r, "after a refused Create")
		}
	}
}

func expiredIsRefusedOrFree(t *trial) {
	t.create(t.expiring("task", time.Second))
	for version := range int64(3) { // a new record must not continue from here
		r := t.expiring("task", time.Second)
		r.StatusMessage = fmt.Sprint("from version ", version)
		t.update(at(version, r))
	}
	t.advance(time.Second)
	r := t.record("task")
	r.StatusMessage = "new"
	err := t.store.Create(context.Background(), r)
	switch {
	case err == nil:
		t.stored(r, "created with the id of an expired record")
	case errors.Is(err, durabletasks.ErrExists):
		t.gone("task", "which has expired, after a refused Create")
	default:
		t.fatalf("Create with the id of an expired record: got %s, want none or %q", quoteError(err), durabletasks.ErrExists)
	}
}

func oneCreatorWins(t *trial) {
	for round := range t.rounds(20) {
		t.oneCreates(fmt.Sprint("round ", round), []*trial{t})
	}
}

// oneCreates has several callers, spread over the instances, create one task at
// the same time.
func (t *trial) oneCreates(id string, instances []*trial) {
	const creators = 8
	var errs [creators]error
	t.parallel(creators, func(i int) {
		errs[i] = instances[i%len(instances)].store.Create(context.Background(), t.full(id, i))
	})
	winner := -1
	for i, err := range errs {
		if err != nil {
			t.wants(err, durabletasks.ErrExists, "concurrent Create of task %s", clip(id))
		} else if winner >= 0 {
			t.fatalf("two concurrent Creates of task %s succeeded, want one", clip(id))
		} else {
			winner = i
		}
	}
	if winner < 0 {
		t.fatalf("none of %d concurrent Creates of task %s succeeded, want one", creators, clip(id))
	}
	for _, t := range instances {
		t.stored(t.full(id, winner), "after concurrent Creates")
	}
}
