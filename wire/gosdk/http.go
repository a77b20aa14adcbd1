package gosdk

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net/http"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

const (
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
	headerVersion = "Mcp-Protocol-Version"
)

// maxChecked is how much of a body is read to find the task that it names.
// It is the SDK's own default limit.
const maxChecked = 4 << 20

// Handler wraps the SDK's Streamable HTTP handler, which must be stateless; see
// [Adapter.HTTPHandler] for both in one. It does two things:
//
// It refuses a request for a task whose Mcp-Name header names another one,
// with HTTP status 400 and error -32020: an intermediary may have routed or
// allowed the request by that header (tasks.md, "Streamable HTTP: Routing
// Headers"). See also [Options].RequireTaskName. Without Handler, a server
// refuses such requests too, but with HTTP status 200.
//
// It lets a client listen to its tasks: a subscriptions/listen may name them,
// and the stream that answers it also carries their notifications. Without
// Handler, the server acknowledges none. A stream is kept alive with comments,
// a client that leaves it unread for long is cut off, and [Adapter.EndListens]
// ends it when the server shuts down.
func (a *Adapter) Handler(streamable http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.wiring.handler.Store(true)
		if r.Method != http.MethodPost {
			streamable.ServeHTTP(w, r)
			return
		}
		if r.Header.Get(headerVersion) == wire.ProtocolVersion {
			w = &statelessness{ResponseWriter: w, adapter: a}
		}
		switch method := r.Header.Get(headerMethod); {
		case isTaskMethod(method):
			if request := peek(r); request != nil && isTaskMethod(request.Method) {
				if err := a.checkName(r.Header, request.Params); err != nil {
					refuse(w, request.ID, err)
					return
				}
			}
		case method == wire.MethodListen:
			if request := peek(r); request != nil {
				stream := newEventStream(w)
				if l := newListen(request, stream); l != nil {
					defer stream.close()
					w, r = stream, r.WithContext(context.WithValue(r.Context(), listenKey{}, l))
				}
			}
		}
		streamable.ServeHTTP(w, r)
	})
}

// peek returns the request that a body holds, and leaves the body as it was.
// It returns nil if there is no such request: that is the SDK's to refuse,
// which also compares the method with its header.
func peek(r *http.Request) *jsonrpc.Request {
	body := r.Body
	head, err := io.ReadAll(io.LimitReader(body, maxChecked))
	r.Body = struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(head), body), body}
	if err != nil {
		return nil
	}
	message, err := jsonrpc.DecodeMessage(head)
	if err != nil {
		return nil
	}
	request, _ := message.(*jsonrpc.Request)
	return request
}

// checkRouted is [Adapter.checkName] for a request that the SDK has decoded,
// over any transport.
func (a *Adapter) checkRouted(req mcp.Request) error {
	extra := req.GetExtra()
	if extra == nil || extra.Header == nil {
		return nil // not over HTTP
	}
	params, _ := req.GetParams().(*taskParams)
	if err := a.checkName(extra.Header, params.raw()); err != nil {
		return protocolError(err)
	}
	return nil
}

// checkName compares the Mcp-Name header with the task that params name.
// Params that name none are refused later.
func (a *Adapter) checkName(header http.Header, params []byte) error {
	names := header.Values(headerName)
	if len(names) == 0 && !a.opts.RequireTaskName {
		return nil
	}
	p, err := wire.ParseParams(params)
	if err != nil {
		return nil
	}
	id, ok := p.Get("taskId").Text()
	if !ok {
		return nil
	}
	switch {
	case len(names) == 0:
		return &wire.Error{Code: wire.CodeHeaderMismatch, Message: "Header mismatch: the Mcp-Name header is missing"}
	case len(names) > 1 || decodeName(names[0]) != id:
		return &wire.Error{Code: wire.CodeHeaderMismatch, Message: "Header mismatch: the Mcp-Name header does not name the task of params.taskId"}
	}
	return nil
}

// decodeName returns the value of a Mcp-Name header. A client encodes one
// that a header cannot carry as =?base64?...?=.
func decodeName(value string) string {
	value = strings.TrimSpace(value)
	if encoded, ok := strings.CutPrefix(value, "=?base64?"); ok {
		if encoded, ok = strings.CutSuffix(encoded, "?="); ok {
			if text, err := base64.StdEncoding.DecodeString(encoded); err == nil {
				return string(text)
			}
		}
	}
	return value
}

func isTaskMethod(method string) bool {
	return method == wire.MethodGet || method == wire.MethodUpdate || method == wire.MethodCancel
}

// refuse answers a request before the SDK has seen it.
func refuse(w http.ResponseWriter, id jsonrpc.ID, err error) {
	text, err := jsonrpc.EncodeMessage(&jsonrpc.Response{ID: id, Error: protocolError(err)})
	if err != nil {
		http.Error(w, "Bad Request", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, _ = w.Write(text) // fails only if the client has gone
}
