package sqlitestore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// never stands for the expiry of a record that has none.
const never = math.MaxInt64

// millis returns a time as columns hold it: in milliseconds, rounded down. The
// times of records are whole milliseconds.
func millis(t time.Time) int64 { return t.UnixMilli() }

func fromMillis(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// encodeFields returns the values of the columns in fields.
func encodeFields(r *durabletasks.Record) []any {
	expires := int64(never)
	if at, limited := r.ExpiresAt(); limited {
		expires = millis(at)
	}
	return []any{
		expires, string(r.Status), millis(r.CreatedAt), millis(r.LastUpdatedAt), int64(r.TTL), int64(r.PollInterval), r.CancelRequested, int64(r.UnsupportedInput),
		[]byte(r.StatusMessage), []byte(r.Owner), []byte(r.Tool), encodeQuestions(r.Questions), encodeValues(r.InputRequests), encodeValues(r.InputResponses),
		r.Error.String(), r.Checkpoint.String(), r.Payload.String(), r.Result.String(),
	}
}

// readRecord reads a row of selectRecord.
func readRecord(scan func(dest ...any) error) (durabletasks.Record, error) {
	var r durabletasks.Record
	var expires, created, updated int64
	var id, message, owner, tool, questions, requests, responses []byte
	var failure, checkpoint, payload, result string
	err := scan(&id, &r.Version,
		&expires, &r.Status, &created, &updated, &r.TTL, &r.PollInterval, &r.CancelRequested, &r.UnsupportedInput,
		&message, &owner, &tool, &questions, &requests, &responses,
		&failure, &checkpoint, &payload, &result)
	if err != nil {
		return durabletasks.Record{}, err
	}
	r.ID, r.StatusMessage, r.Owner, r.Tool = string(id), string(message), string(owner), string(tool)
	r.CreatedAt, r.LastUpdatedAt = fromMillis(created), fromMillis(updated)
	var errs [7]error
	r.Questions, errs[0] = decodeQuestions(questions)
	r.InputRequests, errs[1] = decodeValues(requests)
	r.InputResponses, errs[2] = decodeValues(responses)
	r.Error, errs[3] = decodeJSON(failure)
	r.Checkpoint, errs[4] = decodeJSON(checkpoint)
	r.Payload, errs[5] = decodeJSON(payload)
	r.Result, errs[6] = decodeJSON(result)
	if err := errors.Join(errs[:]...); err != nil {
		return durabletasks.Record{}, fmt.Errorf("a stored record is damaged: %w", err)
	}
	return r, nil
}

// decodeJSON reads a JSON column. An empty column is an absent value: no JSON
// text is empty.
func decodeJSON(text string) (wire.JSON, error) {
	if text == "" {
		return wire.JSON{}, nil
	}
	return wire.ParseJSON(text)
}

// Keys of input requests are arbitrary strings. A JSON object cannot keep them:
// an encoder replaces each invalid byte by U+FFFD, which can make two keys one.
// So a column that holds several entries is a sequence of binary fields, and a
// text is preceded by its length.
//
// An entry of questions is its key, the digest and the deadline in milliseconds.
// An entry of input_requests or input_responses is its key and its value's JSON
// text; entries are sorted by key.

var errTruncated = errors.New("a list is truncated")

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

// cutText returns the text that b begins with, and what follows it.
func cutText(b []byte) (text string, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, errTruncated
	}
	b = b[size:]
	return string(b[:n]), b[n:], nil
}

func encodeQuestions(questions []durabletasks.Question) []byte {
	b := []byte{} // nil would be NULL
	for _, q := range questions {
		b = appendText(b, q.Key)
		b = append(b, q.Digest[:]...)
		b = binary.AppendVarint(b, millis(q.Deadline))
	}
	return b
}

func decodeQuestions(b []byte) ([]durabletasks.Question, error) {
	var questions []durabletasks.Question
	for len(b) > 0 {
		var q durabletasks.Question
		var err error
		if q.Key, b, err = cutText(b); err != nil {
			return nil, err
		}
		if len(b) < len(q.Digest) {
			return nil, errTruncated
		}
		b = b[copy(q.Digest[:], b):]
		deadline, size := binary.Varint(b)
		if size <= 0 {
			return nil, errTruncated
		}
		q.Deadline, b = fromMillis(deadline), b[size:]
		questions = append(questions, q)
	}
	return questions, nil
}

func encodeValues(values map[string]wire.JSON) []byte {
	b := []byte{} // nil would be NULL
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b = appendText(b, key)
		b = appendText(b, values[key].String())
	}
	return b
}

func decodeValues(b []byte) (map[string]wire.JSON, error) {
	if len(b) == 0 {
		return nil, nil
	}
	values := make(map[string]wire.JSON)
	for len(b) > 0 {
		key, rest, err := cutText(b)
		if err != nil {
			return nil, err
		}
		text, rest, err := cutText(rest)
		if err != nil {
			return nil, err
		}
		if values[key], err = decodeJSON(text); err != nil {
			return nil, err
		}
		b = rest
	}
	return values, nil
}

// sizeOf returns the size of the texts and payloads that encodeFields returned.
func sizeOf(id string, columns []any) int {
	size := len(id)
	for _, c := range columns {
		switch c := c.(type) {
		case string:
			size += len(c)
		case []byte:
			size += len(c)
		}
	}
	return size
}
