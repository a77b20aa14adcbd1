package wire

import (
	"io"
	"maps"
	"slices"
	"strconv"
	"time"
)

// Status is the state of a task, as the protocol spells it (tasks.md, "Task
// Status").
type Status string

// The five states of a task. A task starts in StatusWorking. The last three are
// terminal: a task never leaves them.
const (
	StatusWorking       Status = "working"        // runs
	StatusInputRequired Status = "input_required" // waits for answers from the client
	StatusCompleted     Status = "completed"      // has a result, which may be one with isError
	StatusFailed        Status = "failed"         // has a JSON-RPC error
	StatusCancelled     Status = "cancelled"      // ended before completion
)

// Terminal reports whether the status is completed, failed or cancelled.
func (s Status) Terminal() bool {
	return s == StatusCompleted || s == StatusFailed || s == StatusCancelled
}

// Valid reports whether the status is one of the five states.
func (s Status) Valid() bool {
	return s == StatusWorking || s == StatusInputRequired || s.Terminal()
}

// NoLimit as a time to live means that a task never expires (ttlMs: null). As a
// poll interval it means that the client gets no hint.
const NoLimit time.Duration = -1

// A Task is a task as its client sees it, the DetailedTask of the
// specification. A field that the specification calls optional is not encoded
// if it has its zero value.
type Task struct {
	TaskID        string
	Status        Status
	StatusMessage string        // optional
	CreatedAt     time.Time     // encoded in UTC with milliseconds
	LastUpdatedAt time.Time     // encoded in UTC with milliseconds
	TTL           time.Duration // from CreatedAt; [NoLimit] encodes as null
	PollInterval  time.Duration // optional; 0 and [NoLimit] are not encoded

	InputRequests map[string]JSON // the questions without an answer by key; only if input_required
	Result        JSON            // an object; only if completed
	Error         JSON            // a JSON-RPC error object; only if failed
}

// A Result is the result member of the response to one request. Its encoding
// has a resultType. It is safe for concurrent use.
type Result interface {
	// AppendJSON appends the encoding to dst.
	AppendJSON(dst []byte) []byte
	// WriteTo writes the encoding to w. It does not copy the payload of a task.
	WriteTo(w io.Writer) (int64, error)
	// MarshalJSON returns the encoding.
	MarshalJSON() ([]byte, error)
}

var (
	_ Result = CreateTaskResult{}
	_ Result = GetTaskResult{}
	_ Result = UpdateTaskResult{}
	_ Result = CancelTaskResult{}
)

// CreateTaskResult is the answer to a tools/call that became a task. Its
// encoding has the resultType "task", and no payload whatever the status
// (tasks.md, "Task Creation").
type CreateTaskResult struct{ Task }

// AppendJSON implements [Result].
func (r CreateTaskResult) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"resultType":"task",`...)
	return append(r.appendBase(dst), '}')
}

// WriteTo implements [Result].
func (r CreateTaskResult) WriteTo(w io.Writer) (int64, error) {
	return writeBytes(w, r.AppendJSON(nil))
}

// MarshalJSON implements [Result].
func (r CreateTaskResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// GetTaskResult is the answer to tasks/get. Its encoding has the resultType
// "complete" and the payload that belongs to the status (tasks.md, "Task
// Polling").
type GetTaskResult struct{ Task }

// AppendJSON implements [Result].
func (r GetTaskResult) AppendJSON(dst []byte) []byte {
	dst = append(dst, `{"resultType":"complete",`...)
	return append(r.appendDetailed(dst), '}')
}

// WriteTo implements [Result].
func (r GetTaskResult) WriteTo(w io.Writer) (int64, error) {
	return r.writeDetailed(w, `{"resultType":"complete",`, "}")
}

// MarshalJSON implements [Result].
func (r GetTaskResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

const acknowledgement = `{"resultType":"complete"}`

// UpdateTaskResult is the answer to tasks/update. It says nothing about the task
// (tasks.md, "Task Update Requests").
type UpdateTaskResult struct{}

// AppendJSON implements [Result].
func (UpdateTaskResult) AppendJSON(dst []byte) []byte { return append(dst, acknowledgement...) }

// WriteTo implements [Result].
func (UpdateTaskResult) WriteTo(w io.Writer) (int64, error) { return writeText(w, acknowledgement) }

// MarshalJSON implements [Result].
func (r UpdateTaskResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// CancelTaskResult is the answer to tasks/cancel. It says nothing about the task
// (tasks.md, "Task Cancellation").
type CancelTaskResult struct{}

// AppendJSON implements [Result].
func (CancelTaskResult) AppendJSON(dst []byte) []byte { return append(dst, acknowledgement...) }

// WriteTo implements [Result].
func (CancelTaskResult) WriteTo(w io.Writer) (int64, error) { return writeText(w, acknowledgement) }

// MarshalJSON implements [Result].
func (r CancelTaskResult) MarshalJSON() ([]byte, error) { return r.AppendJSON(nil), nil }

// TaskNotification is the params member of a [MethodTaskNotification] message.
// It shows the task as tasks/get would at that moment, without a resultType
// (tasks.md, "Task Status Notifications").
type TaskNotification struct {
	// SubscriptionID is the id of the subscriptions/listen request, as the
	// client sent it. If it is absent, the params have no _meta.
	SubscriptionID JSON
	Task
}

// AppendJSON appends the encoding of the params member to dst.
func (n TaskNotification) AppendJSON(dst []byte) []byte {
	return append(n.appendDetailed(append(dst, n.head()...)), '}')
}

// WriteTo writes the encoding of the params member to w.
func (n TaskNotification) WriteTo(w io.Writer) (int64, error) {
	return n.writeDetailed(w, n.head(), "}")
}

// MarshalJSON returns the encoding of the params member.
func (n TaskNotification) MarshalJSON() ([]byte, error) { return n.AppendJSON(nil), nil }

func (n TaskNotification) head() string {
	if n.SubscriptionID.IsZero() {
		return "{"
	}
	return `{"_meta":{"` + MetaSubscriptionID + `":` + n.SubscriptionID.String() + `},`
}

// appendBase appends the members that every view of a task has.
func (t *Task) appendBase(dst []byte) []byte {
	dst = appendString(append(dst, `"taskId":`...), t.TaskID)
	dst = appendString(append(dst, `,"status":`...), string(t.Status))
	if t.StatusMessage != "" {
		dst = appendString(append(dst, `,"statusMessage":`...), t.StatusMessage)
	}
	dst = appendTime(append(dst, `,"createdAt":`...), t.CreatedAt)
	dst = appendTime(append(dst, `,"lastUpdatedAt":`...), t.LastUpdatedAt)
	dst = append(dst, `,"ttlMs":`...)
	if t.TTL == NoLimit {
		dst = append(dst, "null"...)
	} else {
		dst = strconv.AppendInt(dst, Milliseconds(t.TTL), 10)
	}
	if t.PollInterval > 0 {
		dst = strconv.AppendInt(append(dst, `,"pollIntervalMs":`...), Milliseconds(t.PollInterval), 10)
	}
	return dst
}

// payload returns the member that belongs to the status, as its prefix and its
// text. For a task that waits for input, the prefix holds the whole member.
func (t *Task) payload() (prefix, text string) {
	switch {
	case t.Status == StatusCompleted && !t.Result.IsZero():
		return `,"result":`, t.Result.text
	case t.Status == StatusFailed && !t.Error.IsZero():
		return `,"error":`, t.Error.text
	case t.Status == StatusInputRequired:
		return `,"inputRequests":` + string(appendObject(nil, t.InputRequests)), ""
	}
	return "", ""
}

func (t *Task) appendDetailed(dst []byte) []byte {
	prefix, text := t.payload()
	return append(append(t.appendBase(dst), prefix...), text...)
}

// writeDetailed is appendDetailed to a writer. It does not copy the text of the
// payload.
func (t *Task) writeDetailed(w io.Writer, before, after string) (int64, error) {
	prefix, text := t.payload()
	head := append(t.appendBase(append(make([]byte, 0, 512), before...)), prefix...)
	n, err := writeBytes(w, head)
	for _, s := range [...]string{text, after} {
		if err != nil {
			return n, err
		}
		var m int64
		m, err = writeText(w, s)
		n += m
	}
	return n, err
}

// Milliseconds returns d in whole milliseconds, rounded up, as the protocol
// counts time.
func Milliseconds(d time.Duration) int64 {
	ms := d.Milliseconds()
	if d > time.Duration(ms)*time.Millisecond {
		ms++
	}
	return ms
}

// appendObject appends a JSON object with its members sorted by name, so that
// equal maps have equal texts.
func appendObject(dst []byte, members map[string]JSON) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(members)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(appendString(dst, name), ':')
		dst = members[name].AppendJSON(dst)
	}
	return append(dst, '}')
}

func appendTime(dst []byte, t time.Time) []byte {
	return t.UTC().AppendFormat(dst, `"2006-01-02T15:04:05.000Z"`)
}

func writeBytes(w io.Writer, b []byte) (int64, error) {
	n, err := w.Write(b)
	return int64(n), err
}

func writeText(w io.Writer, s string) (int64, error) {
	n, err := io.WriteString(w, s)
	return int64(n), err
}
