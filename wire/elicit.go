package wire

import (
	"errors"
	"strconv"
)

// A URLRequest asks the user to open a web page. It is for what must not pass
// through the client, such as secrets, payments and the consent of a third party
// (elicitation.mdx, "URL Mode Elicitation Requests"). The answer is an
// [ElicitResult]. A user who accepts has agreed to open the page; what happens on
// the page, the server must find out itself.
type URLRequest struct {
	Message string // why the user is sent there; required
	URL     string // http or https, without user information; use https outside of development
}

// JSON returns the request. It returns an error if the message is empty or a user
// cannot be sent to the URL.
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

// An Action is the reaction of a user to a [FormRequest] or [URLRequest]
// (elicitation.mdx, "Response Actions").
type Action string

// The actions of a user.
const (
	ActionAccept  Action = "accept"  // submitted the form, or agreed to open the URL
	ActionDecline Action = "decline" // refused
	ActionCancel  Action = "cancel"  // dismissed the request without a choice
)

// An ElicitResult is the answer of a client to a [FormRequest] or [URLRequest].
// Convert the answer that a task has received:
//
//	result := wire.ElicitResult(answers["key"])
//
// The methods Text, Int, Float, Bool and Texts return the value of the named
// field. They report false if the user did not accept, or if the field has no
// value of that type.
type ElicitResult JSON

// Action returns the reaction of the user.
func (r ElicitResult) Action() Action {
	s, _ := JSON(r).Get("action").Text()
	return Action(s)
}

// Accepted reports whether the user accepted.
func (r ElicitResult) Accepted() bool { return r.Action() == ActionAccept }

// Content returns the fields of an accepted form as an object. It is absent if
// the user did not accept, and it can be absent if the user did.
func (r ElicitResult) Content() JSON {
	if !r.Accepted() {
		return JSON{}
	}
	return JSON(r).Get("content")
}

// Text returns the text of a field. The value of a [SingleSelectSchema] is a
// text too. A text with an unpaired surrogate escape does not count as one.
func (r ElicitResult) Text(name string) (string, bool) { return r.Content().Get(name).Text() }

// Int returns the whole number of a field. The notation does not matter: 1e3 is
// 1000.
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

// Texts returns the options that the user chose in a [MultiSelectSchema].
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
