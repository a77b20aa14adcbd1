package gosdk

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// keepAlive is how long a stream is silent before a comment is sent, so
	// that nobody on the way takes the connection for dead.
	keepAlive = 15 * time.Second

	// readTimeout is how long a client may leave a stream unread.
	readTimeout = 30 * time.Second

	// lastTimeout is the same once the stream is to end.
	lastTimeout = time.Second
)

// eventStream is the answer to one listen over Streamable HTTP: a stream of
// server-sent events that the SDK and the adapter write in turns.
type eventStream struct {
	http.ResponseWriter
	control *http.ResponseController // of the ResponseWriter

	ending atomic.Bool // hurry was called

	mu      sync.Mutex  // held while writing
	over    bool        // the request has been served
	silence *time.Timer // sends a comment; nil before the first notification
}

func newEventStream(w http.ResponseWriter) *eventStream {
	return &eventStream{ResponseWriter: w, control: http.NewResponseController(w)}
}

var errStreamOver = errors.New("gosdk: the stream is over")

// Write implements [http.ResponseWriter]. The SDK writes each event at once.
func (s *eventStream) Write(event []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return 0, errStreamOver
	}
	s.renew()
	return s.ResponseWriter.Write(event)
}

// FlushError is what an [http.ResponseController] calls.
func (s *eventStream) FlushError() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return errStreamOver
	}
	return s.control.Flush()
}

// Flush implements [http.Flusher], for middleware that knows no other way.
func (s *eventStream) Flush() { _ = s.FlushError() }

// Unwrap gives an [http.ResponseController] access to the rest.
func (s *eventStream) Unwrap() http.ResponseWriter { return s.ResponseWriter }

// renew gives the client time to read what is written next: the server's own
// timeout is meant for responses that are no streams. A writer without
// deadlines does without.
func (s *eventStream) renew() {
	timeout := keepAlive + readTimeout
	if s.ending.Load() {
		timeout = lastTimeout
	}
	_ = s.control.SetWriteDeadline(time.Now().Add(timeout))
}

// send implements [line].
func (s *eventStream) send(ctx context.Context, method string, params notification) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.over:
		return errStreamOver
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	s.renew()
	_, err := io.WriteString(s.ResponseWriter, "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\""+method+"\",\"params\":")
	if err == nil {
		_, err = params.WriteTo(s.ResponseWriter) // one line, as every JSON of package wire
	}
	if err == nil {
		_, err = io.WriteString(s.ResponseWriter, "}\n\n")
	}
	if err == nil {
		err = s.control.Flush()
	}
	if s.silence == nil {
		s.silence = time.AfterFunc(keepAlive, s.comment)
	} else {
		s.silence.Reset(keepAlive)
	}
	return err
}

// comment breaks the silence.
func (s *eventStream) comment() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return
	}
	s.renew()
	if _, err := io.WriteString(s.ResponseWriter, ": still here\n\n"); err != nil {
		return // the request ends when the server notices
	}
	_ = s.control.Flush()
	s.silence.Reset(keepAlive)
}

// hurry implements [line].
func (s *eventStream) hurry() time.Duration {
	s.ending.Store(true)
	s.renew()
	return 2 * lastTimeout
}

// close ends the use of the ResponseWriter, when the handler that it belongs
// to returns.
func (s *eventStream) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
	if s.silence != nil {
		s.silence.Stop()
	}
}

var _ line = (*eventStream)(nil)
