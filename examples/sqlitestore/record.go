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

// millis returns a time as columns hold it. Records have whole milliseconds;
// of another time it is the millisecond that has begun.
func millis(t time.Time) int64 { return t.UnixMilli() }

// fieldsOf returns what the columns named in fields hold of a record.
func fieldsOf(r *durabletasks.Record) []any {
	expires := int64(never)
	if at, limited := r.ExpiresAt(); limited {
		expires = millis(at)
	}
	return []any{
		expires, string(r.Status), millis(r.CreatedAt), millis(r.LastUpdatedAt), int64(r.TTL), int64(r.PollInterval), r.CancelRequested, int64(r.Undeclared),
		[]byte(r.StatusMessage), []byte(r.Owner), appendTexts(nil, r.UsedInputKeys), appendValues(nil, r.InputRequests), appendValues(nil, r.InputResponses),
		r.Error.String(), r.Checkpoint.String(), r.Payload.String(), r.Result.String(),
	}
}

// readRecord reads a row of selectRecord.
func readRecord(scan func(dest ...any) error) (durabletasks.Record, error) {
	var r durabletasks.Record
	var expires, created, updated int64
	var id, message, owner, keys, requests, responses []byte
	var failure, checkpoint, payload, result string
	err := scan(&id, &r.Version,
		&expires, &r.Status, &created, &updated, &r.TTL, &r.PollInterval, &r.CancelRequested, &r.Undeclared,
		&message, &owner, &keys, &requests, &responses,
		&failure, &checkpoint, &payload, &result)
	if err != nil {
		return durabletasks.Record{}, err
	}
	r.ID, r.StatusMessage, r.Owner = string(id), string(message), string(owner)
	r.CreatedAt, r.LastUpdatedAt = time.UnixMilli(created).UTC(), time.UnixMilli(updated).UTC()
	var errs [7]error
	r.UsedInputKeys, errs[0] = readTexts(keys)
	r.InputRequests, errs[1] = readValues(requests)
	r.InputResponses, errs[2] = readValues(responses)
	r.Error, errs[3] = readJSON(failure)
	r.Checkpoint, errs[4] = readJSON(checkpoint)
	r.Payload, errs[5] = readJSON(payload)
	r.Result, errs[6] = readJSON(result)
	if err := errors.Join(errs[:]...); err != nil {
		return durabletasks.Record{}, fmt.Errorf("a stored record is damaged: %w", err)
	}
	return r, nil
}

// readJSON reads a JSON column, in which nothing stands for absent: no JSON
// text is empty.
func readJSON(text string) (wire.JSON, error) {
	if text == "" {
		return wire.JSON{}, nil
	}
	return wire.ParseJSON(text)
}

// Keys of input requests are arbitrary strings, which no JSON object can keep:
// an encoder would make U+FFFD of their invalid bytes, and one key of two. So
// containers are sequences of texts, each behind its length.

var errCut = errors.New("a sequence of texts is cut short")

func appendText(b []byte, text string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(text))), text...)
}

func cutText(b []byte) (text string, rest []byte, err error) {
	n, size := binary.Uvarint(b)
	if size <= 0 || n > uint64(len(b)-size) {
		return "", nil, errCut
	}
	b = b[size:]
	return string(b[:n]), b[n:], nil
}

func appendTexts(b []byte, texts []string) []byte {
	b = slices.Grow(b, 1) // SQLite takes nil for NULL
	for _, text := range texts {
		b = appendText(b, text)
	}
	return b
}

func readTexts(b []byte) ([]string, error) {
	var texts []string
	for len(b) > 0 {
		text, rest, err := cutText(b)
		if err != nil {
			return nil, err
		}
		texts, b = append(texts, text), rest
	}
	return texts, nil
}

// appendValues appends the keys, sorted, each followed by its value.
func appendValues(b []byte, values map[string]wire.JSON) []byte {
	b = slices.Grow(b, 1) // SQLite takes nil for NULL
	for _, key := range slices.Sorted(maps.Keys(values)) {
		b = appendText(b, key)
		b = appendText(b, values[key].String())
	}
	return b
}

func readValues(b []byte) (map[string]wire.JSON, error) {
	texts, err := readTexts(b)
	if err != nil || len(texts) == 0 {
		return nil, err
	}
	if len(texts)%2 != 0 {
		return nil, errCut
	}
	values := make(map[string]wire.JSON, len(texts)/2)
	for i := 0; i < len(texts); i += 2 {
		if values[texts[i]], err = readJSON(texts[i+1]); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// TooLargeError reports a record that is larger than [Options].MaxRecordBytes.
// Nothing of it was stored.
type TooLargeError struct {
	Size  int // of the record's texts and payloads, in bytes
	Limit int
}

// Error names both numbers.
func (e *TooLargeError) Error() string {
	return fmt.Sprintf("sqlitestore: a record of %d bytes is larger than the limit of %d", e.Size, e.Limit)
}

// sizeOf returns the size of what fieldsOf returned, where it can be large.
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
