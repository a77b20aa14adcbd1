package wire

import (
	"iter"
	"slices"
	"strconv"
)

// The shapes of sampling/createMessage and of what it shares with other
// messages: content blocks, tools and icons.

var role = oneOf("user", "assistant")

var createMessageParams = func() shape {
	params := object(
		required("messages", array(object(
			required("role", role),
			required("content", messageContent),
			optional("_meta", anyObject),
		))),
		required("maxTokens", integer),
		optional("modelPreferences", object(
			optional("hints", array(object(optional("name", text)))),
			optional("costPriority", fraction),
			optional("speedPriority", fraction),
			optional("intelligencePriority", fraction),
		)),
		optional("systemPrompt", text),
		optional("includeContext", oneOf("none", "thisServer", "allServers")),
		optional("temperature", finite),
		optional("stopSequences", texts),
		optional("metadata", anyObject),
		optional("tools", array(tool)),
		optional("toolChoice", object(optional("mode", oneOf("auto", "required", "none")))),
	)
	return func(v JSON) *ShapeError {
		if err := params(v); err != nil {
			return err
		}
		if err := toolRounds(v.Get("messages")); err != nil {
			return err.under("messages")
		}
		return nil
	}
}()

var createMessageResult = object(
	required("model", text),
	required("role", role),
	required("content", messageContent),
	optional("stopReason", text),
	optional("_meta", anyObject),
)

// toolRounds checks that tool uses and their results alternate, as providers
// demand (sampling.mdx, "Message Content Constraints"): the message after one
// with tool uses holds a result for each of them, and a message with results
// holds nothing else.
func toolRounds(messages JSON) *ShapeError {
	var open []string // the tool uses of the message before
	i := 0
	for message := range messages.Elements() {
		var uses, results []string
		others := false
		for block := range contentBlocks(message.Get("content")) {
			switch kind, _ := block.Get("type").Text(); kind {
			case "tool_use":
				uses = append(uses, nameKey(block.Get("id").text))
			case "tool_result":
				results = append(results, nameKey(block.Get("toolUseId").text))
			default:
				others = true
			}
		}
		slices.Sort(results)
		if !slices.Equal(open, results) || len(results) > 0 && (others || len(uses) > 0) {
			return expected("exactly the results of the tool uses in the message before").under("content").under(strconv.Itoa(i))
		}
		slices.Sort(uses)
		open = uses
		i++
	}
	if len(open) > 0 {
		return expected("a message with the results of the tool uses in the message before").under(strconv.Itoa(i))
	}
	return nil
}

// contentBlocks iterates over the blocks of a message's content, which is one
// block or an array of them.
func contentBlocks(content JSON) iter.Seq[JSON] {
	if content.Kind() == Array {
		return content.Elements()
	}
	return func(yield func(JSON) bool) { yield(content) }
}

// messageContent is the content of a sampled message: the blocks of a
// SamplingMessage, which do not include a resource or a link to one.
func messageContent(v JSON) *ShapeError {
	switch v.Kind() {
	case Object:
		return samplingBlock(v)
	case Array:
		return samplingBlocks(v)
	default:
		return expected("a content block or an array of content blocks")
	}
}

var (
	samplingBlock  = tagged("type", textBlock, imageBlock, audioBlock, toolUseBlock, toolResultBlock)
	samplingBlocks = array(samplingBlock)
)

var (
	textBlock = alternative{"text", object(
		required("text", text),
		optional("annotations", annotations),
		optional("_meta", anyObject),
	)}
	imageBlock   = alternative{"image", mediaBlock}
	audioBlock   = alternative{"audio", mediaBlock}
	toolUseBlock = alternative{"tool_use", object(
		required("id", text),
		required("name", text),
		required("input", anyObject),
		optional("_meta", anyObject),
	)}
	// structuredContent may be any value.
	toolResultBlock = alternative{"tool_result", object(
		required("toolUseId", text),
		required("content", array(tagged("type", textBlock, imageBlock, audioBlock, resourceLinkBlock, resourceBlock))),
		optional("isError", boolean),
		optional("_meta", anyObject),
	)}
	resourceLinkBlock = alternative{"resource_link", object(
		required("name", text),
		required("uri", text),
		optional("title", text),
		optional("description", text),
		optional("mimeType", text),
		optional("size", integer),
		optional("icons", icons),
		optional("annotations", annotations),
		optional("_meta", anyObject),
	)}
	resourceBlock = alternative{"resource", object(
		required("resource", resourceContents),
		optional("annotations", annotations),
		optional("_meta", anyObject),
	)}
)

var mediaBlock = object(
	required("data", base64Text),
	required("mimeType", text),
	optional("annotations", annotations),
	optional("_meta", anyObject),
)

var annotations = object(
	optional("audience", array(role)),
	optional("priority", fraction),
	optional("lastModified", timestamp),
)

// resourceContents has a text, a blob or both.
func resourceContents(v JSON) *ShapeError {
	if err := resourceMembers(v); err != nil {
		return err
	}
	if v.Get("text").IsZero() && v.Get("blob").IsZero() {
		return expected("an object with a text or a blob")
	}
	return nil
}

var resourceMembers = object(
	required("uri", text),
	optional("text", text),
	optional("blob", base64Text),
	optional("mimeType", text),
	optional("_meta", anyObject),
)

// A tool's outputSchema may have any type at its root; its inputSchema
// describes an object.
var tool = object(
	required("name", text),
	required("inputSchema", object(required("type", oneOf("object")), optional("$schema", text))),
	optional("outputSchema", object(optional("$schema", text))),
	optional("title", text),
	optional("description", text),
	optional("annotations", object(
		optional("title", text),
		optional("readOnlyHint", boolean),
		optional("destructiveHint", boolean),
		optional("idempotentHint", boolean),
		optional("openWorldHint", boolean),
	)),
	optional("icons", icons),
	optional("_meta", anyObject),
)

var icons = array(object(
	required("src", text),
	optional("mimeType", text),
	optional("sizes", texts),
	optional("theme", oneOf("light", "dark")),
))
