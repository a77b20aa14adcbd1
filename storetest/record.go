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

// record returns a plain new record: working, never expiring, made when the
// check began.
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

// expiring returns a plain new record that expires ttl after the check began.
func (t *trial) expiring(id string, ttl time.Duration) durabletasks.Record {
	r := t.record(id)
	r.TTL = ttl
	return r
}

// full returns a record in which every field is set, with contents that
// depend on n. No engine writes such a record: a result and an error exclude
// each other. To a store that is all the same.
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

// digest returns what the engine keeps of a question's text.
func digest(text string) [16]byte {
	sum := sha256.Sum256([]byte(text))
	return [16]byte(sum[:16])
}

// at returns the record with this version.
func at(version int64, r durabletasks.Record) durabletasks.Record {
	r.Version = version
	return r
}

// statuses are the five.
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

// mebibytes and bulk are different values of 1 MiB, and of 32 KiB.
var (
	mebibytes = sync.OnceValue(func() [3]wire.JSON { return repeated(1 << 20) })
	bulk      = sync.OnceValue(func() [3]wire.JSON { return repeated(32 << 10) })
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
	d.add("ID", got.ID == want.ID, quoted(got.ID), quoted(want.ID))
	d.add("Status", got.Status == want.Status, got.Status, want.Status)
	d.add("StatusMessage", got.StatusMessage == want.StatusMessage, quoted(got.StatusMessage), quoted(want.StatusMessage))
	d.add("CreatedAt", sameTime(got.CreatedAt, want.CreatedAt), located(got.CreatedAt), located(want.CreatedAt))
	d.add("LastUpdatedAt", sameTime(got.LastUpdatedAt, want.LastUpdatedAt), located(got.LastUpdatedAt), located(want.LastUpdatedAt))
	d.add("TTL", got.TTL == want.TTL, got.TTL, want.TTL)
	d.add("PollInterval", got.PollInterval == want.PollInterval, got.PollInterval, want.PollInterval)
	d.addMap("InputRequests", got.InputRequests, want.InputRequests)
	d.addMap("InputResponses", got.InputResponses, want.InputResponses)
	d.addQuestions(got.Questions, want.Questions)
	d.addJSON("Result", got.Result, want.Result)
	d.addJSON("Error", got.Error, want.Error)
	d.add("Owner", got.Owner == want.Owner, quoted(got.Owner), quoted(want.Owner))
	d.add("CancelRequested", got.CancelRequested == want.CancelRequested, got.CancelRequested, want.CancelRequested)
	d.add("Tool", got.Tool == want.Tool, quoted(got.Tool), quoted(want.Tool))
	d.add("UnsupportedInput", got.UnsupportedInput == want.UnsupportedInput, uint8(got.UnsupportedInput), uint8(want.UnsupportedInput))
	d.addJSON("Payload", got.Payload, want.Payload)
	d.addJSON("Checkpoint", got.Checkpoint, want.Checkpoint)
	d.add("Version", got.Version == want.Version, got.Version, want.Version)
	return strings.Join(d, "; ")
}

type differences []string

func (d *differences) add(field string, equal bool, got, want any) {
	if !equal {
		*d = append(*d, fmt.Sprintf("%s is %v, want %v", field, got, want))
	}
}

func (d *differences) addJSON(field string, got, want wire.JSON) {
	d.add(field, got == want, quotedJSON(got), quotedJSON(want))
}

func (d *differences) addMap(field string, got, want map[string]wire.JSON) {
	for _, key := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[key]; !ok {
			d.add(field, false, "with a key "+clip(key), "without it")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if value, ok := got[key]; !ok {
			d.add(field, false, "without the key "+clip(key), "with it")
		} else {
			if value != want[key] {
				d.addJSON(field+"["+clip(key)+"]", value, want[key])
			}
		}
	}
}

// addQuestions compares two lists. Of lists of the same length it names what
// differs in the first two questions that do.
func (d *differences) addQuestions(got, want []durabletasks.Question) {
	if len(got) != len(want) {
		*d = append(*d, fmt.Sprintf("Questions has %d entries, want %d", len(got), len(want)))
		return
	}
	for i, q := range got {
		before, field := len(*d), fmt.Sprintf("Questions[%d]", i)
		d.add(field+".Key", q.Key == want[i].Key, quoted(q.Key), quoted(want[i].Key))
		d.add(field+".Digest", q.Digest == want[i].Digest, hex.EncodeToString(q.Digest[:]), hex.EncodeToString(want[i].Digest[:]))
		d.add(field+".Deadline", sameTime(q.Deadline, want[i].Deadline), located(q.Deadline), located(want[i].Deadline))
		if len(*d) > before {
			return
		}
	}
}

// quoted, quotedJSON and located print as a failure shows them: quoted and cut
// short; a time with its location unless that is UTC, because a location may be
// named UTC and be another.
type (
	quoted     string
	quotedJSON wire.JSON
	located    time.Time
)

func (l located) String() string {
	if t := time.Time(l); t.Location() != time.UTC {
		return fmt.Sprintf("%v (whose Location is %q and not time.UTC)", t, t.Location())
	}
	return time.Time(l).String()
}

func (q quoted) String() string { return clip(string(q)) }

func (q quotedJSON) String() string {
	if j := wire.JSON(q); !j.IsZero() {
		return clip(j.String())
	}
	return "absent"
}

// clip quotes a text, shortened if it is long.
func clip(s string) string {
	if len(s) > 60 {
		return fmt.Sprintf("%q... (%d bytes)", s[:60], len(s))
	}
	return fmt.Sprintf("%q", s)
}

// sameTime reports whether two times are the same moment, both in UTC.
func sameTime(got, want time.Time) bool {
	return got.Equal(want) && got.Location() == want.Location()
}
