package gosdk

import (
	"bytes"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wiring knows how the server is connected to its clients, so that a piece that
// was forgotten is noticed: without it, tasks seem to work, but some clients
// miss their notifications or cannot call at all.
type wiring struct {
	transport atomic.Bool // Adapter.Transport was connected
	handler   atomic.Bool // Adapter.Handler has served a request

	noTransport, noHandler, notStateless sync.Once
}

// checkWiring looks at how a request for a task has come in.
func (a *Adapter) checkWiring(req mcp.Request) {
	w := &a.wiring
	switch extra := req.GetExtra(); {
	case extra != nil && extra.Header != nil:
		if !w.handler.Load() {
			w.noHandler.Do(func() {
				a.log.Error("gosdk: HTTP is served without Adapter.HTTPHandler or Adapter.Handler: clients cannot listen to tasks")
			})
		}
	case !w.transport.Load():
		w.noTransport.Do(func() {
			a.log.Error("gosdk: the server's transport is not wrapped by Adapter.Transport: clients cannot listen to tasks")
		})
	}
}

// statelessness watches the answer to one HTTP request for what the SDK says of
// the revision that has tasks if its handler is not stateless.
type statelessness struct {
	http.ResponseWriter
	adapter *Adapter
	status  int
}

// WriteHeader implements [http.ResponseWriter].
func (s *statelessness) WriteHeader(status int) {
	s.status = status
	s.ResponseWriter.WriteHeader(status)
}

// Write implements [http.ResponseWriter].
func (s *statelessness) Write(text []byte) (int, error) {
	if s.status == http.StatusBadRequest && bytes.Contains(text, []byte("-32022")) {
		s.adapter.wiring.notStateless.Do(func() {
			s.adapter.log.Error("gosdk: the HTTP handler is not stateless: no client can use tasks; " +
				"use Adapter.HTTPHandler or set StreamableHTTPOptions.Stateless")
		})
	}
	return s.ResponseWriter.Write(text)
}

// Unwrap gives an [http.ResponseController] access to the rest.
func (s *statelessness) Unwrap() http.ResponseWriter { return s.ResponseWriter }
