package gosdk_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// channel is a client that takes the messages of the server as they come.
type channel struct {
	messages chan wire.JSON
	post     func(t *testing.T, text string)
	giveUp   func(t *testing.T, id string) // the request with this id
	hangUp   func()
	shared   bool // all requests share one connection
}

// onEveryChannel runs a story on each transport that the SDK has.
func onEveryChannel(t *testing.T, h func(t *testing.T) *host, story func(t *testing.T, h *host, c *channel)) {
	t.Run("in memory", func(t *testing.T) { h := h(t); story(t, h, h.channelInMemory(t)) })
	t.Run("pipes", func(t *testing.T) { h := h(t); story(t, h, h.channelOverPipes(t)) })
	t.Run("http", func(t *testing.T) { h := h(t); story(t, h, channelOverHTTP(t, h.listen(t, nil), nil)) })
}

// send sends the text of a request.
func (c *channel) send(t *testing.T, text string) {
	t.Helper()
	c.post(t, text)
}

// next returns the next message of the server.
func (c *channel) next(t *testing.T) wire.JSON {
	t.Helper()
	select {
	case m, ok := <-c.messages:
		if !ok {
			t.Fatal("the server has hung up")
		}
		return m
	case <-time.After(10 * time.Second):
		t.Fatal("the server says nothing")
	}
	return wire.JSON{}
}

// quiet checks that the server has nothing to say. It asks something, and
// nothing may come before the answer.
func (c *channel) quiet(t *testing.T) {
	t.Helper()
	c.send(t, strings.Replace(taskRequest(wire.MethodGet, noSuchTask), `"r-1"`, `"quiet?"`, 1))
	if m := c.next(t); m.Get("id").String() != `"quiet?"` {
		t.Fatalf("unexpected: %s", m)
	}
}

func (h *host) channelInMemory(t *testing.T) *channel {
	t.Helper()
	ours, theirs := mcp.NewInMemoryTransports()
	session, err := h.server.Connect(context.Background(), h.adapter.Transport(theirs), nil)
	if err != nil {
		t.Fatal(err)
	}
	conn, err := ours.Connect(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	c := over(t, conn)
	c.hangUp = func() {
		conn.Close()
		session.Wait()
	}
	t.Cleanup(c.hangUp)
	return c
}

// over returns a client on the SDK's kind of connection.
func over(t *testing.T, conn mcp.Connection) *channel {
	t.Helper()
	c := &channel{messages: make(chan wire.JSON, 100), shared: true}
	go func() {
		defer close(c.messages)
		for {
			message, err := conn.Read(context.Background())
			if err != nil {
				return
			}
			text, err := jsonrpc.EncodeMessage(message)
			if err != nil {
				t.Error(err)
			}
			c.messages <- parse(t, text)
		}
	}()
	c.post = func(t *testing.T, text string) {
		t.Helper()
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := conn.Write(t.Context(), message); err != nil {
			t.Fatal(err)
		}
	}
	c.giveUp = func(t *testing.T, id string) { t.Helper(); c.post(t, cancelled(id)) }
	return c
}

func (h *host) channelOverPipes(t *testing.T) *channel {
	t.Helper()
	stdin, toServer := io.Pipe()
	fromServer, stdout := io.Pipe()
	ran := make(chan error, 1)
	go func() {
		ran <- h.server.Run(context.Background(), h.adapter.Transport(&mcp.IOTransport{Reader: stdin, Writer: stdout}))
	}()
	c := &channel{messages: make(chan wire.JSON, 100), shared: true}
	go func() {
		defer close(c.messages)
		for lines := bufio.NewReader(fromServer); ; {
			line, err := lines.ReadString('\n')
			if err != nil {
				return
			}
			c.messages <- parse(t, []byte(line))
		}
	}()
	c.post = func(t *testing.T, text string) {
		t.Helper()
		if _, err := io.WriteString(toServer, text+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	c.giveUp = func(t *testing.T, id string) { t.Helper(); c.post(t, cancelled(id)) }
	var once sync.Once
	c.hangUp = func() {
		once.Do(func() {
			toServer.Close()
			if err := <-ran; err != nil {
				t.Errorf("server ended with %v", err)
			}
		})
	}
	t.Cleanup(c.hangUp)
	return c
}

// channelOverHTTP posts each request on its own.
func channelOverHTTP(t *testing.T, url string, change func(http.Header)) *channel {
	t.Helper()
	c := &channel{messages: make(chan wire.JSON, 100)}
	ctx, hangUp := context.WithCancel(context.Background())
	var mu sync.Mutex
	pending := make(map[string]func())
	var posts sync.WaitGroup
	c.post = func(t *testing.T, text string) {
		t.Helper()
		ctx, giveUp := context.WithCancel(ctx)
		message, err := jsonrpc.DecodeMessage([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		id, err := wire.Marshal(message.(*jsonrpc.Request).ID.Raw())
		if err != nil {
			t.Fatal(err)
		}
		gone := make(chan struct{})
		mu.Lock()
		pending[id.String()] = func() {
			giveUp()
			<-gone
		}
		mu.Unlock()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		addHeaders(t, r.Header, text)
		if change != nil {
			change(r.Header)
		}
		posts.Go(func() {
			defer close(gone)
			defer giveUp()
			answer, err := http.DefaultClient.Do(r)
			if err != nil {
				if ctx.Err() == nil {
					t.Error(err)
				}
				return
			}
			defer answer.Body.Close()
			if !strings.HasPrefix(answer.Header.Get("Content-Type"), "text/event-stream") {
				text, err := io.ReadAll(answer.Body)
				if err != nil {
					t.Error(err)
					return
				}
				c.messages <- parse(t, text)
				return
			}
			if answer.StatusCode != http.StatusOK {
				t.Errorf("HTTP %d", answer.StatusCode)
			}
			for lines := bufio.NewReader(answer.Body); ; {
				line, err := lines.ReadString('\n')
				if err != nil {
					if err != io.EOF && ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				if data, ok := strings.CutPrefix(line, "data: "); ok {
					c.messages <- parse(t, []byte(data))
				}
			}
		})
	}
	c.giveUp = func(t *testing.T, id string) {
		mu.Lock()
		defer mu.Unlock()
		pending[id]()
	}
	c.hangUp = func() {
		hangUp()
		posts.Wait()
	}
	t.Cleanup(c.hangUp)
	return c
}

// cancelled returns the notification that gives up the request with the id.
func cancelled(id string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%s}}`, id)
}
