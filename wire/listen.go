package wire

import (
	"io"
	"strings"
)

// The request that opens a stream of notifications, the first message on that
// stream, and the message that tells of a change to a task.
const (
	MethodListen             = "subscriptions/listen"
	MethodListenAcknowledged = "notifications/subscriptions/acknowledged"
	MethodTaskNotification   = "notifications/tasks"
)

// MaxListenTasks is the number of task ids that one subscriptions/listen may
// name.
const MaxListenTasks = 1000

// DecodeListen checks and decodes what the params of a subscriptions/listen say
// about tasks. It returns the ids in notifications.taskIds in their order, each
// once. If there is no such member, asked is false: the request does not concern
// tasks. An empty list does.
//
// DecodeListen checks the syntax of the params (-32602), the protocol version
// (-32022), the declared extension (-32021) and the member (-32602), in this
// order. The error is an [*Error], and its message does not quote the request.
// An id that is not well-formed text is ignored: it cannot name a task.
func DecodeListen(params []byte) (ids []string, asked bool, err error) {
	p, err := ParseParams(params)
	if err != nil {
		return nil, true, err
	}
	list := p.Get("notifications").Get("taskIds")
	if list.IsZero() {
		return nil, false, nil
	}
	if err := CheckEnvelope(p); err != nil {
		return nil, true, err
	}
	if list.Kind() != Array {
		return nil, true, invalidParams("notifications.taskIds must be an array, not %v", list.Kind())
	}
	named := make(map[string]struct{})
	n := 0
	for id := range list.Elements() {
		if id.Kind() != String {
			return nil, true, invalidParams("notifications.taskIds must hold strings, not %v", id.Kind())
		}
		if n++; n > MaxListenTasks {
			return nil, true, invalidParams("notifications.taskIds holds more than %d ids", MaxListenTasks)
		}
		text, ok := id.Text()
		if _, again := named[text]; ok && !again {
			text = strings.Clone(text) // an id must not keep all params in memory
			named[text] = struct{}{}
			ids = append(ids, text)
		}
	}
	return ids, true, nil
}

// ListenAcknowledgement is the params member of a [MethodListenAcknowledged]
// message. It says which parts of a subscriptions/listen the server agreed to
// (tasks.md, "Task Status Notifications").
type ListenAcknowledgement struct {
	// SubscriptionID is the id of the subscriptions/listen request, as the
	// client sent it. It is required.
	SubscriptionID JSON
	// Others is an object with the notifications that the server agreed to
	// besides those of tasks. It may be absent.
	Others JSON
	// TaskIDs names the tasks whose changes the client will be told of. If it
	// is empty, the member is not encoded.
	TaskIDs []string
}

// AppendJSON appends the encoding of the params member to dst.
func (a ListenAcknowledgement) AppendJSON(dst []byte) []byte {
	var agreed builder
	for name, value := range a.Others.Members() {
		agreed.add(name, value)
	}
	if len(a.TaskIDs) > 0 {
		agreed.add("taskIds", textArray(a.TaskIDs))
	}
	dst = a.SubscriptionID.AppendJSON(append(dst, `{"_meta":{"`+MetaSubscriptionID+`":`...))
	dst = agreed.object().AppendJSON(append(dst, `},"notifications":`...))
	return append(dst, '}')
}

// WriteTo writes the encoding of the params member to w.
func (a ListenAcknowledgement) WriteTo(w io.Writer) (int64, error) {
	return writeBytes(w, a.AppendJSON(nil))
}

// MarshalJSON returns the encoding of the params member.
func (a ListenAcknowledgement) MarshalJSON() ([]byte, error) { return a.AppendJSON(nil), nil }
