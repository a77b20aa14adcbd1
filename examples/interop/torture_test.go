package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// patience is how long anything may take that has to come, on a machine that
// is busy with other things.
const patience = 30 * time.Second

// tortureTime returns for how long servers are killed: DURABLETASKS_TORTURE, a
// duration, or some seconds.
func tortureTime(t *testing.T) time.Duration {
	text, ok := os.LookupEnv("DURABLETASKS_TORTURE")
	switch {
	case ok:
		d, err := time.ParseDuration(text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	case testing.Short():
		return 2 * time.Second
	}
	return 10 * time.Second
}

// Clients create, poll, answer and cancel tasks, while their server is killed
// again and again at any moment, or told to end, and started anew on the same
// directory. Whatever was acknowledged or seen once is true ever after: see
// conversation.
func TestTorture(t *testing.T) {
	dir := t.TempDir()
	tokens := new(tokens)
	h := newHost(t, dir)
	const conversations = 6
	var talking sync.WaitGroup
	all := make([]*conversation, conversations)
	for i := range all {
		c := &conversation{t: t, host: h, tokens: tokens, Rand: rand.New(rand.NewPCG(rand.Uint64(), 0))}
		all[i] = c
		talking.Go(c.talk)
	}
	r := rand.New(rand.NewPCG(rand.Uint64(), 0))
	starts := 0
	for end := time.Now().Add(tortureTime(t)); time.Now().Before(end) && !t.Failed(); starts++ {
		for r.IntN(3) == 0 {
			throwAway(t, h, r)
		}
		s := h.start()
		if r.IntN(4) == 0 {
			h.startSecond(s)
		}
		time.Sleep(rand.N(400 * time.Millisecond))
		h.end(s, r.IntN(4))
	}
	h.stop()
	talking.Wait()
	if t.Failed() {
		return
	}

	// In peace every task comes to its end.
	h.resume()
	last := h.start()
	n := 0
	for _, c := range all {
		n += len(c.tasks)
		talking.Go(c.settle)
	}
	talking.Wait()
	h.end(last, byStdin)
	t.Logf("%d starts, %d tasks, %d of them never acknowledged", starts, n, tokens.lost.Load())

	report, err := wal.Inspect(context.Background(), dir)
	if err != nil || report.Corrupt != nil || report.Torn != nil {
		t.Errorf("the directory afterwards: %v\n%v", err, report)
	}
	log := h.log()
	for _, token := range tokens.list() {
		if strings.Contains(log, token) {
			t.Fatalf("the server's log holds an id or a payload: %q", token)
		}
	}
}

// throwAway runs a server as some clients do at first: only to ask what it can
// do.
func throwAway(t *testing.T, h *host, r *rand.Rand) {
	s := h.launch()
	if r.IntN(2) == 0 {
		if answer, ok := s.call("server/discover", ""); !ok || answer.Get("result").Get("capabilities").Get("extensions").Get(wire.ExtensionID).IsZero() {
			t.Errorf("discover: %v, %v", answer, ok)
		}
	} else {
		time.Sleep(rand.N(50 * time.Millisecond))
	}
	s.kill()
}

// conversation is one client. What it knows of its tasks it has from the
// server: what was acknowledged, and what it has seen.
type conversation struct {
	*rand.Rand
	t      *testing.T
	host   *host
	tokens *tokens
	tasks  []*task
}

// talk goes on until the host stops.
func (c *conversation) talk() {
	for !c.t.Failed() {
		s := c.host.current()
		if s == nil {
			return
		}
		if len(c.tasks) == 0 || c.IntN(6) == 0 {
			c.create(s)
			continue
		}
		// Mostly the newest ones, but also those that have long ended.
		i := len(c.tasks) - 1 - c.IntN(min(len(c.tasks), 6))
		if c.IntN(8) == 0 {
			i = c.IntN(len(c.tasks))
		}
		c.act(s, c.tasks[i])
	}
}

// settle brings every task to its end.
func (c *conversation) settle() {
	s := c.host.current()
	for _, k := range c.tasks {
		for end := time.Now().Add(patience); k.final == "" && !c.t.Failed(); {
			if time.Now().After(end) {
				c.t.Errorf("%s: never ended, last seen: %s", k.tool, k.seen)
				return
			}
			if c.poll(s, k); k.outstanding() {
				c.answer(s, k)
			} else if k.tool == "slow_task" && !k.acknowledged {
				c.cancel(s, k)
			}
		}
		c.poll(s, k)
	}
}

// task is what a client knows of one task.
type task struct {
	id, tool, subject string

	seen             string            // the last view
	created, updated string            // its times
	requests         map[string]string // by key, as they were first seen
	open             map[string]bool   // keys that were outstanding in the last view
	closed           map[string]bool   // keys that never come back
	answers          map[string][]said // by key: those that may have been the first
	cancelled        bool              // a client has asked to, perhaps in vain
	acknowledged     bool              // and was told so
	final            string            // the view that ended the task
}

func (k *task) outstanding() bool { return len(k.open) > 0 }

// said is an answer, and what the task makes of it.
type said struct{ answer, effect string }

func (c *conversation) create(s *server) {
	k := &task{
		subject: c.tokens.token(), requests: map[string]string{},
		open: map[string]bool{}, closed: map[string]bool{}, answers: map[string][]said{},
	}
	params := ""
	switch n := c.IntN(10); n {
	case 0, 1:
		k.tool = "echo_task"
		params = fmt.Sprintf(`"arguments":{"text":%q,"ms":%d}`, k.subject, c.IntN(300))
	case 2, 3, 4:
		k.tool = "ask_task"
	case 5:
		k.tool = "ask_two_task"
	case 6:
		k.tool = "slow_task"
	case 7:
		k.tool = "confirm_delete"
		if c.IntN(2) == 0 {
			k.subject += strings.Repeat("/directory", 10_000) // so that the log has to be cleaned
		}
		params = fmt.Sprintf(`"arguments":{"filename":%q}`, k.subject)
	case 8:
		k.tool = "fail_task"
	default:
		k.tool = "test_tool_with_task"
		params = fmt.Sprintf(`"inputResponses":{"user_name":{"action":"accept","content":{"name":%q}}}`, k.subject)
	}
	if params == "" {
		params = `"arguments":{}`
	}
	answer, ok := s.call("tools/call", fmt.Sprintf(`"name":%q,%s`, k.tool, params))
	if !ok {
		c.tokens.lost.Add(1)
		return
	}
	view := answer.Get("result")
	if member(view, "resultType") != "task" || member(view, "status") != "working" {
		c.t.Errorf("%s: created: %.300v", k.tool, answer)
		return
	}
	k.id = member(view, "taskId")
	c.tokens.add(k.id)
	k.created, k.updated = member(view, "createdAt"), member(view, "lastUpdatedAt")
	c.tasks = append(c.tasks, k)
}

// act does one thing to a task.
func (c *conversation) act(s *server, k *task) {
	switch n := c.IntN(20); {
	case n < 8:
		c.poll(s, k)
	case n < 15:
		c.answer(s, k)
	case n < 16:
		c.refused(s, k)
	case n < 17 || k.tool == "slow_task":
		c.cancel(s, k)
	default:
		c.poll(s, k)
	}
}

func (c *conversation) poll(s *server, k *task) {
	answer, ok := s.call("tasks/get", fmt.Sprintf(`"taskId":%q`, k.id))
	if !ok {
		return
	}
	if err := k.see(answer); err != nil {
		c.t.Errorf("%s: %v\nthe view:    %.1000v\nthe one before: %.1000s", k.tool, err, answer, k.seen)
	}
}

// see compares a view with what is known.
func (k *task) see(answer wire.JSON) error {
	v := answer.Get("result")
	status := wire.Status(member(v, "status"))
	switch updated := member(v, "lastUpdatedAt"); {
	case member(v, "taskId") != k.id:
		return fmt.Errorf("an acknowledged task is not found")
	case k.final != "" && v.String() != k.final:
		return fmt.Errorf("a task that has ended has changed")
	case member(v, "createdAt") != k.created:
		return fmt.Errorf("createdAt has changed")
	case updated < k.updated:
		return fmt.Errorf("lastUpdatedAt went back from %s", k.updated)
	default:
		k.updated = updated
	}
	k.seen = v.String()

	asked := map[string]bool{}
	for key, request := range v.Get("inputRequests").Members() {
		asked[key] = true
		k.answers[key] = nil // whatever was said before has not arrived
		switch first, again := k.requests[key]; {
		case k.closed[key]:
			return fmt.Errorf("key %q is asked again", key)
		case again && request.String() != first:
			return fmt.Errorf("the request %q has changed from %s", key, first)
		}
		k.requests[key] = request.String()
	}
	for key := range k.requests {
		if !asked[key] {
			k.closed[key] = true
		}
	}
	k.open = asked
	if status.Terminal() {
		k.final = v.String()
		return k.ended(v, status)
	}
	if (status == wire.StatusInputRequired) != k.outstanding() {
		return fmt.Errorf("%s with %d requests", status, len(asked))
	}
	return nil
}

// ended compares how a task has ended with what can have come of it.
func (k *task) ended(v wire.JSON, status wire.Status) error {
	if status == wire.StatusCancelled {
		if !k.cancelled {
			return fmt.Errorf("nobody has cancelled it")
		}
		return nil
	}
	got := member(v.Get("error"), "message")
	for content := range v.Get("result").Get("content").Elements() {
		got = member(content, "text")
	}
	var want []string
	switch k.tool {
	case "echo_task":
		want = []string{k.subject}
	case "ask_task":
		for _, a := range k.answers["name"] {
			want = append(want, greeting(a.effect))
		}
	case "ask_two_task":
		for _, a := range k.answers["first"] {
			for _, b := range k.answers["second"] {
				switch {
				case a.effect == "":
					want = append(want, greeting(""))
				case b.effect == "":
					want = append(want, greeting(""))
				default:
					want = append(want, greeting(a.effect+" and "+b.effect))
				}
			}
		}
	case "confirm_delete":
		for _, a := range k.answers["confirm"] {
			want = append(want, a.effect+" "+k.subject)
		}
	case "fail_task":
		want = []string{"The machine is on fire"}
	case "test_tool_with_task":
		want = []string{greeting(k.subject), "The server was restarted while the task ran"}
	}
	for _, w := range want {
		if got == w {
			return nil
		}
	}
	return fmt.Errorf("ended with %.200q, should be one of %.1000q", got, want)
}

func greeting(name string) string {
	if name == "" {
		return "no name was given"
	}
	return "Hello, " + name
}

// answer sends answers to some keys, also to such as are not outstanding, and
// sometimes two at once.
func (c *conversation) answer(s *server, k *task) {
	keys := map[string][]string{
		"ask_task": {"name"}, "ask_two_task": {"first", "second"}, "confirm_delete": {"confirm"},
	}[k.tool]
	if len(keys) == 0 {
		return
	}
	const most = 3
	rounds := make([]map[string]said, 1+c.IntN(most))
	texts := make([]string, len(rounds))
	for i := range rounds {
		rounds[i] = map[string]said{}
		members := []string{}
		for _, key := range keys {
			if c.IntN(3) > 0 {
				a := c.say(k.tool)
				rounds[i][key] = a
				members = append(members, fmt.Sprintf("%q:%s", key, a.answer))
			}
		}
		texts[i] = fmt.Sprintf(`"taskId":%q,"inputResponses":{%s}`, k.id, strings.Join(members, ","))
	}
	acknowledged := make([]bool, len(rounds))
	var sending sync.WaitGroup
	for i, text := range texts {
		sending.Go(func() { acknowledged[i] = c.acknowledged(s, "tasks/update", text) })
	}
	sending.Wait()
	for _, key := range keys {
		if k.closed[key] {
			continue // too late
		}
		for i, round := range rounds {
			if a, ok := round[key]; ok {
				k.answers[key] = append(k.answers[key], a)
				if acknowledged[i] && k.open[key] {
					k.closed[key] = true
				}
			}
		}
	}
}

// say makes up an answer.
func (c *conversation) say(tool string) said {
	if tool == "confirm_delete" {
		if c.IntN(2) == 0 {
			return said{`{"action":"decline"}`, "Kept"}
		}
		return said{`{"action":"accept","content":{"confirm":true}}`, "Deleted"}
	}
	if c.IntN(5) == 0 {
		return said{`{"action":"cancel"}`, ""}
	}
	name := c.tokens.token()
	return said{fmt.Sprintf(`{"action":"accept","content":{"name":%q}}`, name), name}
}

// refused sends an answer that no request can have, beside one that it can.
func (c *conversation) refused(s *server, k *task) {
	good := ""
	for key := range k.open {
		good = key
	}
	if good == "" || k.closed[good] || k.cancelled || len(k.answers[good]) > 0 {
		return // an answer that was not acknowledged may have arrived all the same
	}
	answer, ok := s.call("tasks/update", fmt.Sprintf(`"taskId":%q,"inputResponses":{%q:{"action":"accept","content":{"name":[%q,{}]}}}`, k.id, good, c.tokens.token()))
	if code := answer.Get("error").Get("code").String(); ok && code != "-32602" {
		c.t.Errorf("%s: an answer of the wrong shape: %v", k.tool, answer)
	}
}

func (c *conversation) cancel(s *server, k *task) {
	k.cancelled = true
	if c.acknowledged(s, "tasks/cancel", fmt.Sprintf(`"taskId":%q`, k.id)) {
		k.acknowledged = true
	}
}

// acknowledged reports whether a request was; if not, its outcome is unknown.
func (c *conversation) acknowledged(s *server, method, params string) bool {
	answer, ok := s.call(method, params)
	if ok && member(answer.Get("result"), "resultType") != "complete" {
		c.t.Errorf("%s: %v", method, answer)
	}
	return ok
}

func member(v wire.JSON, name string) string {
	text, _ := v.Get(name).Text()
	return text
}
