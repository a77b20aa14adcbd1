package storetest

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// record returns a plain record, which is working, never expires and was created
// when the check began.
func (t *trial) record(id string) durabletasks.Record {
	return durabletasks.Record{
		ID:            id,
		Status:        durabletasks.StatusWorking,
		CreatedAt:     t.began,
		LastUpdatedAt: t.began,
		TTL:           durabletasks.NoLimit,
		PollInterval:  time.Second,
	}
}

// expiring returns a plain record that expires ttl after the check began.
func (t *trial) expiring(id string, ttl time.Duration) durabletasks.Record {
	r := t.record(id)
	r.TTL = ttl
	return r
}

// full returns a record in which every field is set, with contents that depend
// on n. The engine never writes such a record, because a result and an error
// exclude each other. A store must not care.
func (t *trial) full(id string, n int) durabletasks.Record {
	r := t.record(id)
	r.Status = statuses[n%len(statuses)]
	r.StatusMessage = fmt.Sprintf("step %d", n)
	r.LastUpdatedAt = r.CreatedAt.Add(time.Duration(n)*time.Second + 7*time.Millisecond)
	r.TTL = time.Duration(n+1)*24*time.Hour + 123*time.Millisecond
	r.PollInterval = time.Duration(n+1)*time.Second + 5*time.Millisecond
	r.InputRequests = map[string]wire.JSON{
		"name": number(`{"method":"elicitation/create","params":{"message":"%d"}}`, n),
		"root": number(`{"method":"roots/list","n":%d}`, n),
	}
	r.InputResponses = map[string]wire.JSON{"name": number(`{"action":"accept","content":{"n":%d}}`, n)}
	r.Questions = questions("older", fmt.Sprint("z", n), "name", "a", "root")
	r.Result = number(`{"content":[],"n":%d}`, n)
	r.Error = number(`{"code":-32603,"message":"error %d"}`, n)
	r.Owner = fmt.Sprint("owner ", n)
	r.Tool = fmt.Sprint("tool ", n)
	r.CancelRequested = true
	r.UnsupportedInput = wire.InputKinds(255 - n)
	r.Payload = number(`{"tool":"crawl","arguments":[%d]}`, n)
	r.Checkpoint = number(`{"page":%d}`, n)
	return r
}

// questions returns one question for each key. Their digests are different, and
// the first has no deadline.
func questions(keys ...string) []durabletasks.Question {
	var list []durabletasks.Question
	for i, key := range keys {
		q := durabletasks.Question{Key: key, Digest: digest(fmt.Sprint(i, key))}
		if i > 0 {
			q.Deadline = time.Date(2026, time.January, 2, 3, 4, i, 567e6, time.UTC)
		}
		list = append(list, q)
	}
	return list
}

// digest returns the digest of a question's text, as the engine computes it.
func digest(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// at returns the record with this version.
func at(version int64, r durabletasks.Record) durabletasks.Record {
	r.Version = version
	return r
}

// statuses are all states of a task.
var statuses = []durabletasks.Status{
	durabletasks.StatusWorking,
	durabletasks.StatusInputRequired,
	durabletasks.StatusCompleted,
	durabletasks.StatusFailed,
	durabletasks.StatusCancelled,
}

// number returns a JSON value with n in the place of %d.
func number(format string, n int) wire.JSON {
	return wire.MustParse(fmt.Sprintf(format, n))
}

// mebibytes and bulk return different values of 1 MiB and of 32 KiB.
var (
	mebibytes    = sync.OnceValue(func() [3]wire.JSON { return repeated(1 << 20) })
	halfMebibyte = sync.OnceValue(func() wire.JSON { return repeated(1 << 19)[0] })
	bulk         = sync.OnceValue(func() [3]wire.JSON { return repeated(32 << 10) })
)

func repeated(n int) (values [3]wire.JSON) {
	for i, letter := range []string{"a", "b", "c"} {
		values[i] = text(strings.Repeat(letter, n))
	}
	return values
}

// text returns s as a JSON string.
func text(s string) wire.JSON {
	j, err := wire.Marshal(s)
	if err != nil {
		panic(err) // a string always has an encoding
	}
	return j
}

// diff names the fields in which two records differ, or returns "". A nil
// container is equal to an empty one.
func diff(got, want durabletasks.Record) string {
	var d differences
	field(&d, "ID", got.ID, want.ID, clip)
	field(&d, "Status", got.Status, want.Status, shown)
	field(&d, "StatusMessage", got.StatusMessage, want.StatusMessage, clip)
	d.time("CreatedAt", got.CreatedAt, want.CreatedAt)
	d.time("LastUpdatedAt", got.LastUpdatedAt, want.LastUpdatedAt)
	field(&d, "TTL", got.TTL, want.TTL, shown)
	field(&d, "PollInterval", got.PollInterval, want.PollInterval, shown)
	d.maps("InputRequests", got.InputRequests, want.InputRequests)
	d.maps("InputResponses", got.InputResponses, want.InputResponses)
	d.questions(got.Questions, want.Questions)
	field(&d, "Result", got.Result, want.Result, clipJSON)
	field(&d, "Error", got.Error, want.Error, clipJSON)
	field(&d, "Owner", got.Owner, want.Owner, clip)
	field(&d, "Tool", got.Tool, want.Tool, clip)
	field(&d, "CancelRequested", got.CancelRequested, want.CancelRequested, shown)
	field(&d, "UnsupportedInput", uint8(got.UnsupportedInput), uint8(want.UnsupportedInput), shown)
	field(&d, "Payload", got.Payload, want.Payload, clipJSON)
	field(&d, "Checkpoint", got.Checkpoint, want.Checkpoint, clipJSON)
	field(&d, "Version", got.Version, want.Version, shown)
	return strings.Join(d, "; ")
}

// differences are what diff finds. Equal records, which are almost all, cost no
// allocation.
type differences []string

func (d *differences) add(name, got, want string) {
	*d = append(*d, fmt.Sprintf("%s is %s, want %s", name, got, want))
}

// field compares two values of a field, which show turns into a text.
func field[T comparable](d *differences, name string, got, want T, show func(T) string) {
	if got != want {
		d.add(name, show(got), show(want))
	}
}

func (d *differences) time(name string, got, want time.Time) {
	if !sameTime(got, want) {
		d.add(name, located(got), located(want))
	}
}

func (d *differences) maps(name string, got, want map[string]wire.JSON) {
	if maps.Equal(got, want) {
		return
	}
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			*d = append(*d, fmt.Sprintf("%s has the key %s, want none", name, clip(key)))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[key]; ok {
			field(d, name+"["+clip(key)+"]", value, want[key], clipJSON)
		} else {
			*d = append(*d, fmt.Sprintf("%s does not have the key %s", name, clip(key)))
		}
	}
}

// questions compares two lists. Of lists of one length it compares the first
// two questions that differ.
func (d *differences) questions(got, want []durabletasks.Question) {
	if len(got) != len(want) {
		*d = append(*d, fmt.Sprintf("Questions has %d entries, want %d", len(got), len(want)))
		return
	}
	for i := range got {
		g, w := &got[i], &want[i]
		if g.Key != w.Key || g.Digest != w.Digest || !sameTime(g.Deadline, w.Deadline) {
			name := fmt.Sprintf("Questions[%d]", i)
			field(d, name+".Key", g.Key, w.Key, clip)
			field(d, name+".Digest", g.Digest, w.Digest, func(b [16]byte) string { return hex.EncodeToString(b[:]) })
			d.time(name+".Deadline", g.Deadline, w.Deadline)
			return
		}
	}
}

// sameTime reports whether two times are the same moment, both in UTC.
func sameTime(got, want time.Time) bool {
	return got.Equal(want) && got.Location() == want.Location()
}

// located returns the time with its location unless that is UTC: another
// location may print like UTC.
func located(t time.Time) string {
	if t.Location() != time.UTC {
		return fmt.Sprintf("%v (whose Location is %q and not time.UTC)", t, t.Location())
	}
	return t.String()
}

func shown[T any](v T) string { return fmt.Sprint(v) }

// clip quotes a text, shortened if it is long.
func clip(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// clipJSON quotes a JSON value, shortened if it is long.
func clipJSON(j wire.JSON) string {
	if j.IsZero() {
		return "absent"
	}
	return clip(j.String())
}

// quoted is a text that prints clipped.
type quoted string

func (q quoted) String() string { return clip(string(q)) }
