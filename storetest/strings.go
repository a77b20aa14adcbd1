package storetest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var stringChecks = []check{
	{"S15", "ids-are-arbitrary-strings", 0, idsAreArbitrary},
	{"S15", "keys-are-arbitrary-strings", 0, keysAreArbitrary},
	{"S15", "texts-are-arbitrary-strings", 0, textsAreArbitrary},
	{"S15", "invalid-utf-8-is-kept", 0, invalidUTF8IsKept},
	{"S15", "long-strings-are-kept", 0, longIsKept},
	{"S15", "many-keys-are-kept", 0, manyKeysAreKept},
	{"S15", "large-records-are-kept", 0, largeIsKept},
	{"S15", "oversized-records-are-kept-or-refused", 0, oversizedIsKeptOrRefused},
}

// hostile are strings that something between a caller and a disk is known to
// trim, fold, escape, cut, interpret or confuse. All are valid UTF-8.
var hostile = []string{
	"", " ", "a", "A", "a ", " a", "\ta", "a\n", "a\r\n", "\n",
	"\x00", "a\x00", "a\x00b", "\x1b[31m", "\x7f",
	"é", "e\u0301", "ß", "ss", "ſ", "İ", "日本語", "😀", "\u2028", "\ufeff", "\ufffd", "\u202eabc", "\U0010ffff",
	"__proto__", "constructor", "toString", "null", "undefined", "true", "NaN", "0", "00", "-1", "1e3",
	".", "..", "/", "a/b", "../../etc/passwd", `\`, `a\b`, "CON", "a:b", "a|b", "a,b", "a;b", "a=b&c",
	"'", `"`, "`", "'; DROP TABLE tasks; --", "%", "_", "*", "?", "%s%n", "${a}", "{{a}}", "{}", "[]", `"a"`, `\u0061`,
	"<script>&amp;</script>",
	strings.Repeat("x", 10<<10), strings.Repeat("x", 10<<10) + "y",
}

// hostileMap has every hostile string as a key, each with a value of its own.
func hostileMap() map[string]wire.JSON {
	m := make(map[string]wire.JSON, len(hostile))
	for i, s := range hostile {
		m[s] = number(`{"value":%d}`, i)
	}
	return m
}

func idsAreArbitrary(t *trial) {
	t.idsAreKept(hostile)
}

// idsAreKept creates a task with each id before it reads any, to find ids that
// the store confuses.
func (t *trial) idsAreKept(ids []string) {
	for i, id := range ids {
		r := t.record(id)
		r.Checkpoint = number("%d", i)
		t.create(r)
	}
	for i, id := range ids {
		r := t.record(id)
		r.Checkpoint = number("%d", i)
		t.stored(r, "after Create, with similar ids stored")
		r.Checkpoint = number(`{"updated":%d}`, i)
		t.update(r)
	}
	for i, id := range ids {
		r := t.record(id)
		r.Checkpoint = number(`{"updated":%d}`, i)
		r.Version = 1
		t.stored(r, "after Update, with similar ids stored")
	}
}

func keysAreArbitrary(t *trial) {
	for i, s := range hostile {
		r := t.record(fmt.Sprint("key ", i))
		r.InputRequests = map[string]wire.JSON{s: text("request")}
		r.InputResponses = map[string]wire.JSON{s: text("response")}
		r.Questions = questions(s)
		t.create(r)
		t.stored(r, "with the key "+clip(s))
	}
	r := t.record("all keys")
	t.create(r)
	r.InputRequests, r.InputResponses = hostileMap(), hostileMap()
	r.Questions = questions(hostile...)
	t.stored(t.update(r), "with many keys")
}

func textsAreArbitrary(t *trial) {
	r := t.record("task")
	t.create(r)
	for i, s := range hostile {
		r.StatusMessage = s
		r.Owner = hostile[len(hostile)-1-i]
		r.Tool = hostile[(i+1)%len(hostile)]
		r = t.update(r)
		t.stored(r, "with the text "+clip(s))
	}
}

// broken are strings that are not valid UTF-8, and U+FFFD, which replaces what
// is not valid.
var broken = []string{"\xff", "\xfe", "a\xffb", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\ufffd"}

// invalidUTF8IsKept uses strings that are not valid UTF-8. A JSON encoder
// replaces their bytes by U+FFFD, which can make two ids one.
func invalidUTF8IsKept(t *trial) {
	t.idsAreKept(broken)
	r := t.record("task")
	r.StatusMessage, r.Owner, r.Tool = "\xff", "\xfe", "\xc0\x80"
	r.Questions = questions(broken...)
	r.InputRequests = make(map[string]wire.JSON)
	for i, s := range broken {
		r.InputRequests[s] = number("%d", i)
	}
	t.create(r)
	t.stored(r, "with strings that are not UTF-8")
}

// What a store must accept.
const (
	longID      = 10 << 10
	longText    = 65 << 10
	manyKeys    = 1000
	largeRecord = 4 << 20
)

// long returns a record whose strings are as long as a store must accept, and
// end in letter.
func (t *trial) long(letter string) durabletasks.Record {
	r := t.record(strings.Repeat("i", longID-1) + letter)
	s := strings.Repeat("s", longText-1) + letter
	r.StatusMessage, r.Owner, r.Tool = s, s, s
	r.InputRequests = map[string]wire.JSON{s: text("request " + letter)}
	r.InputResponses = map[string]wire.JSON{s: text("response " + letter)}
	r.Questions = questions(s)
	return r
}

func longIsKept(t *trial) {
	for _, letter := range []string{"a", "b"} {
		t.create(t.long(letter))
	}
	for _, letter := range []string{"a", "b"} {
		t.stored(t.long(letter), "with long strings, with similar ones stored")
		next := t.long(letter)
		next.StatusMessage, next.Owner, next.Tool = next.Owner+"!", next.Owner+"?", next.Owner+"."
		t.stored(t.update(next), "with long strings, after Update")
	}
}

// many returns a record with as many keys as a store must accept.
func (t *trial) many(id string) durabletasks.Record {
	r := t.record(id)
	containers := containersOfMany().Clone()
	r.InputRequests, r.InputResponses, r.Questions = containers.InputRequests, containers.InputResponses, containers.Questions
	return r
}

// containersOfMany returns a record with only the containers of many, which cost
// too much to build for each check.
var containersOfMany = sync.OnceValue(func() (r durabletasks.Record) {
	r.InputRequests, r.InputResponses = make(map[string]wire.JSON), make(map[string]wire.JSON)
	var keys []string
	for i := range manyKeys {
		key := fmt.Sprint("key ", i)
		r.InputRequests[key] = number(`{"request":%d}`, i)
		r.InputResponses[key] = number(`{"response":%d}`, i)
		keys = append(keys, key)
	}
	r.Questions = questions(keys...)
	return r
})

func manyKeysAreKept(t *trial) {
	r := t.many("created")
	t.create(r)
	t.stored(r, "after Create with many keys")
	r = t.record("updated")
	t.create(r)
	t.stored(t.update(t.many("updated")), "after Update with many keys")
}

// largeIsKept uses a record of almost 4 MiB, spread over many fields.
func largeIsKept(t *trial) {
	r := t.many("large")
	r.StatusMessage, r.Owner = t.long("a").StatusMessage, t.long("b").Owner
	r.Payload, r.Checkpoint, r.Result = mebibytes()[0], mebibytes()[1], mebibytes()[2]
	r.InputResponses["large"] = halfMebibyte()
	t.create(r)
	t.stored(r, "after Create, with almost 4 MiB")
	r.Payload, r.Checkpoint = r.Checkpoint, r.Payload
	t.stored(t.update(r), "after Update, with almost 4 MiB")
}

// oversized returns a record of 17 MiB, which is more than package wal and some
// databases accept. It is small in memory, because its values are the same.
func (t *trial) oversized(id string) durabletasks.Record {
	r := t.record(id)
	r.InputResponses = make(map[string]wire.JSON)
	for i := range 17 {
		r.InputResponses[fmt.Sprint("key ", i)] = mebibytes()[0]
	}
	return r
}

func oversizedIsKeptOrRefused(t *trial) {
	ctx := context.Background()
	r := t.oversized("created")
	if t.fits(t.store.Create(ctx, r), "Create of a record of 17 MiB") {
		t.stored(r, "after Create, with 17 MiB")
	} else {
		t.gone(r.ID, "whose Create was refused for its size")
	}
	r = t.record("updated")
	t.create(r)
	next := t.oversized(r.ID)
	if t.fits(t.store.Update(ctx, next), "Update to a record of 17 MiB") {
		t.stored(at(1, next), "after Update, with 17 MiB")
	} else {
		t.stored(r, "after an Update that was refused for its size")
		t.stored(t.update(r), "after an Update that was refused for its size, and another")
	}
}

// fits reports whether a call with an oversized record succeeded. It may only
// fail with a *TooLargeError.
func (t *trial) fits(err error, call string) bool {
	if err == nil {
		return true
	}
	var tooLarge *durabletasks.TooLargeError
	if !errors.As(err, &tooLarge) {
		t.fatalf("%s: got %s, want none or a *TooLargeError", call, quoteError(err))
	}
	if tooLarge.Limit < largeRecord {
		t.fatalf("%s: the *TooLargeError has the Limit %d, but a store must accept records of %d bytes", call, tooLarge.Limit, largeRecord)
	}
	return false
}
