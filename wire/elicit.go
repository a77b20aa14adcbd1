package wire

import (
	"errors"
	"strconv"
)

// A URLRequest sends the user to a page, for what must not pass through the
// client: secrets, payments, the consent of a third party (elicitation.mdx,
// "URL Mode Elicitation Requests"). The answer is an [ElicitResult]: accepting
// means that the user agrees to open the page, not that anything has been done
// there.
type URLRequest struct {
	Message string // why the user is sent there; required
	URL     string // http or https, without user information; https outside of development
}

// JSON returns the request.
func (r URLRequest) JSON() (JSON, error) {
	if r.Message == "" {
		return JSON{}, errors.New("wire: URL request: the message is empty")
	}
	var params builder
	params.text("mode", "url")
	params.text("message", r.Message)
	params.add("url", textJSON(r.URL))
	return newRequest(MethodElicit, &params)
}

// An Action is what a user did with an elicitation (elicitation.mdx,
// "Response Actions").
type Action string

// The actions of a user.
const (
	ActionAccept  Action = "accept"  // submitted the form, or agreed to open the URL
	ActionDecline Action = "decline" // refused
	ActionCancel  Action = "cancel"  // dismissed it without a choice
)

// An ElicitResult is a client's answer to a [FormRequest] or [URLRequest]. An
// answer that a task has received is converted to it:
//
//	result := wire.ElicitResult(answers["key"])
//
// The methods that return a field of the form take its name and report whether
// the user accepted and the field has a value of that type.
type ElicitResult JSON

// Action returns what the user did.
func (r ElicitResult) Action() Action {
	s, _ := JSON(r).Get("action").Text()
	return Action(s)
}

// Accepted reports whether the user accepted.
func (r ElicitResult) Accepted() bool { return r.Action() == ActionAccept }

// Content returns the fields of an accepted form, as an object. It is absent
// if the user did not accept, and may be absent if he did.
func (r ElicitResult) Content() JSON {
	if !r.Accepted() {
		return JSON{}
	}
	return JSON(r).Get("content")
}

// Text returns the text of a field, which is also what a single selection has
// as its value. A text with an unpaired surrogate is none.
func (r ElicitResult) Text(name string) (string, bool) { return r.Content().Get(name).Text() }

// Int returns the whole number of a field, in whatever notation it is
// written: 1e3 is 1000.
func (r ElicitResult) Int(name string) (int64, bool) { return integral(r.Content().Get(name)) }

// Float returns the number of a field.
func (r ElicitResult) Float(name string) (float64, bool) { return float(r.Content().Get(name)) }

// Bool returns the boolean of a field.
func (r ElicitResult) Bool(name string) (value, ok bool) {
	switch r.Content().Get(name).text {
	case "true":
		return true, true
	case "false":
		return false, true
	}
	return false, false
}

// Texts returns the choices of a multiple selection.
func (r ElicitResult) Texts(name string) ([]string, bool) {
	v := r.Content().Get(name)
	if v.Kind() != Array {
		return nil, false
	}
	list := []string{}
	for e := range v.Elements() {
		s, ok := e.Text()
		if !ok {
			return nil, false
		}
		list = append(list, s)
	}
	return list, true
}

// float returns the value of a number that a float64 can hold.
func float(v JSON) (float64, bool) {
	if v.Kind() != Number {
		return 0, false
	}
	f, err := strconv.ParseFloat(v.text, 64)
	return f, err == nil
}
