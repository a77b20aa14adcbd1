package wire

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A SamplingRequest asks the client's language model for a message
// (sampling.mdx, "Creating Messages"). The answer is a [SamplingResult].
type SamplingRequest struct {
	Messages      []SamplingMessage // the conversation; at least one
	MaxTokens     int               // at least 1
	SystemPrompt  string            // optional
	StopSequences []string          // optional
	ModelHints    []string          // optional; parts of names of models, best first

	// Extra is an object with further members of the params, such as temperature
	// or tools. It may be absent.
	Extra JSON
}

// A SamplingMessage is one message of a conversation.
type SamplingMessage struct {
	Role Role   // RoleUser if empty
	Text string // for a message that is a single text

	// Content is one content block or an array of them, instead of Text. Exactly
	// one of the two must be set.
	Content JSON
}

// A Role is the author of a message.
type Role string

// The roles in a conversation.
const (
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// JSON returns the request. It returns an error if the request is incomplete or
// does not pass [CheckInputRequest].
func (r SamplingRequest) JSON() (JSON, error) {
	if len(r.Messages) == 0 {
		return JSON{}, errors.New("wire: sampling request: there are no messages")
	}
	if r.MaxTokens < 1 {
		return JSON{}, errors.New("wire: sampling request: MaxTokens is below 1")
	}
	var messages, params builder
	for i, m := range r.Messages {
		if (m.Text == "") == m.Content.IsZero() {
			return JSON{}, fmt.Errorf("wire: sampling request: message %d must have either Text or Content", i)
		}
		if m.Role == "" {
			m.Role = RoleUser
		}
		if m.Content.IsZero() {
			m.Content = TextContent(m.Text)
		}
		var message builder
		message.text("role", string(m.Role))
		message.add("content", m.Content)
		messages.element(message.object())
	}
	params.add("messages", messages.array())
	params.add("maxTokens", JSON{strconv.Itoa(r.MaxTokens)})
	params.text("systemPrompt", r.SystemPrompt)
	if len(r.StopSequences) > 0 {
		params.add("stopSequences", textArray(r.StopSequences))
	}
	if len(r.ModelHints) > 0 {
		var hints, preferences builder
		for _, name := range r.ModelHints {
			var hint builder
			hint.add("name", textJSON(name))
			hints.element(hint.object())
		}
		preferences.add("hints", hints.array())
		params.add("modelPreferences", preferences.object())
	}
	if k := r.Extra.Kind(); k != Object && k != Absent {
		return JSON{}, errors.New("wire: sampling request: Extra is not an object")
	}
	said := params.object()
	for name, value := range r.Extra.Members() {
		if !said.Get(name).IsZero() {
			return JSON{}, fmt.Errorf("wire: sampling request: Extra repeats %.64q", name)
		}
		params.add(name, value)
	}
	return newRequest(MethodSampling, &params)
}

// TextContent returns a content block with a text.
func TextContent(text string) JSON {
	var b builder
	b.text("type", "text")
	b.add("text", textJSON(text))
	return b.object()
}

// ImageContent returns a content block with an image.
func ImageContent(mimeType string, data []byte) JSON { return mediaContent("image", mimeType, data) }

// AudioContent returns a content block with an audio recording.
func AudioContent(mimeType string, data []byte) JSON { return mediaContent("audio", mimeType, data) }

func mediaContent(kind, mimeType string, data []byte) JSON {
	var b builder
	b.text("type", kind)
	b.add("mimeType", textJSON(mimeType))
	b.add("data", JSON{`"` + base64.StdEncoding.EncodeToString(data) + `"`})
	return b.object()
}

// A SamplingResult is the answer of a client to a [SamplingRequest]. Convert the
// answer that a task has received:
//
//	result := wire.SamplingResult(answers["key"])
type SamplingResult JSON

// Text returns the text blocks of the message, joined without a separator.
func (r SamplingResult) Text() string {
	var b strings.Builder
	for _, block := range r.Content() {
		if kind, _ := block.Get("type").Text(); kind == "text" {
			s, _ := block.Get("text").Text()
			b.WriteString(s)
		}
	}
	return b.String()
}

// Content returns the content blocks of the message.
func (r SamplingResult) Content() []JSON {
	var blocks []JSON
	for block := range contentBlocks(JSON(r).Get("content")) {
		if block.Kind() == Object {
			blocks = append(blocks, block)
		}
	}
	return blocks
}

// Model returns the name of the model that wrote the message.
func (r SamplingResult) Model() string {
	s, _ := JSON(r).Get("model").Text()
	return s
}

// StopReason returns why the model stopped: "endTurn", "stopSequence",
// "maxTokens", "toolUse", or a word of the provider. It is empty if the client
// did not say.
func (r SamplingResult) StopReason() string {
	s, _ := JSON(r).Get("stopReason").Text()
	return s
}
