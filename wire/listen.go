package wire

import (
	"io"
	"strings"
)

// The request that opens a stream of notifications, and the first message on
// that stream (the core protocol's "Subscriptions").
const (
	MethodListen             = "subscriptions/listen"
	MethodListenAcknowledged = "notifications/subscriptions/acknowledged"
)

// MaxListenTasks is how many task ids one subscriptions/listen may name.
const MaxListenTasks = 1000

// DecodeListen decodes and checks the params of a subscriptions/listen as far
// as they concern tasks: the ids that its notifications.taskIds names, each
// once, in their order. It reports asked = false for a listen without that
// member, which is none of this package's business. An empty list is asked
// for all the same.
//
// The order of the checks is: the params' syntax (-32602), the protocol
// version (-32022), the declared extension (-32021), the member (-32602). An
// id that is not well-formed text is left out, as nobody's. An error never
// quotes what was sent.
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
			text = strings.Clone(text) // not to keep all params for one id
			named[text] = struct{}{}
			ids = append(ids, text)
		}
	}
	return ids, true, nil
}

// ListenAcknowledgement is the parameters of one
// notifications/subscriptions/acknowledged message: what of a
// subscriptions/listen the server agreed to (tasks.md, "Task Status
// Notifications").
type ListenAcknowledgement struct {
	// SubscriptionID is the id of the subscriptions/listen request, as the
	// client sent it. It is required.
	SubscriptionID JSON
	// Others is an object with what was agreed to beside tasks. If it is
	// absent, that is nothing.
	Others JSON
	// TaskIDs are the tasks of which the client will hear. If there are none,
	// the member is left out.
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
