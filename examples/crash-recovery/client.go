package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// process is a server, with the client's end of its stdin and stdout.
type process struct {
	command *exec.Cmd
	stdin   io.WriteCloser
	lines   <-chan string // closed when the server's stdout ends
	ended   bool
	verbose bool
	lastID  int
}

// startServer starts this program again, as a server.
func startServer(dir string, verbose bool) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	command := exec.Command(self, "-serve", dir)
	command.Stderr = os.Stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := command.Start(); err != nil {
		return nil, err
	}
	lines := make(chan string)
	go func() {
		defer close(lines)
		reader := bufio.NewReader(stdout)
		for {
			line, err := reader.ReadString('\n')
			if err != nil {
				return
			}
			lines <- line
		}
	}()
	p := &process{command: command, stdin: stdin, lines: lines, verbose: verbose}
	note("process %d", p.pid())
	return p, nil
}

func (p *process) pid() int { return p.command.Process.Pid }

// kill ends the server as an operating system does that has run out of
// memory. It does nothing to one that has ended.
func (p *process) kill() error {
	if p.ended {
		return nil
	}
	if err := p.command.Process.Kill(); err != nil {
		return err
	}
	return p.reap(func(*os.ProcessState) bool { return true })
}

// hangUp closes the server's stdin, which is how a client ends a session.
func (p *process) hangUp() error {
	if err := p.stdin.Close(); err != nil {
		return err
	}
	return p.reap((*os.ProcessState).Success)
}

// reap waits for the server's end.
func (p *process) reap(good func(*os.ProcessState) bool) error {
	late := time.AfterFunc(patience, func() { _ = p.command.Process.Kill() }) // if it has ended meanwhile, all the better
	defer late.Stop()
	for range p.lines { // nothing may be left in the pipe when Wait closes it
	}
	err := p.command.Wait()
	p.ended = true
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		return err
	}
	if !good(p.command.ProcessState) {
		return fmt.Errorf("the server ended with %v", p.command.ProcessState)
	}
	return nil
}

// request sends one request and returns its result. Params are the members
// in addition to _meta. Every request says for itself what the client can do.
func (p *process) request(method, params string) (wire.JSON, error) {
	const meta = `"_meta":{` +
		`"io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
		`"io.modelcontextprotocol/clientInfo":{"name":"crash-recovery","version":"1.0.0"},` +
		`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}`
	p.lastID++
	line := fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":%q,"params":{%s,%s}}`, p.lastID, method, params, meta)
	p.show("-->", line)
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		return wire.JSON{}, err
	}
	select {
	case line, ok := <-p.lines:
		if !ok {
			return wire.JSON{}, fmt.Errorf("%s: the server has gone", method)
		}
		p.show("<--", line)
		answer, err := wire.ParseJSON(line)
		if err != nil {
			return wire.JSON{}, fmt.Errorf("%s: %w", method, err)
		}
		if answer.Get("id").String() != fmt.Sprint(p.lastID) || answer.Get("result").IsZero() {
			return wire.JSON{}, fmt.Errorf("%s: the server answers %s", method, answer)
		}
		return answer.Get("result"), nil
	case <-time.After(patience):
		return wire.JSON{}, fmt.Errorf("%s: no answer in %v", method, patience)
	}
}

func (p *process) show(direction, line string) {
	if p.verbose {
		note("%s %s", direction, strings.TrimSpace(line))
	}
}

// callTool calls a tool and returns the id of the task that the call became.
func (p *process) callTool(name, arguments string) (taskID string, err error) {
	result, err := p.request("tools/call", fmt.Sprintf(`"name":%q,"arguments":%s`, name, arguments))
	if err != nil {
		return "", err
	}
	if kind, _ := result.Get("resultType").Text(); kind != "task" {
		return "", fmt.Errorf("the call of %s did not become a task: %s", name, result)
	}
	taskID, _ = result.Get("taskId").Text()
	return taskID, nil
}

func (p *process) get(taskID string) (wire.JSON, error) {
	return p.request(wire.MethodGet, fmt.Sprintf(`"taskId":%q`, taskID))
}

func (p *process) answer(taskID, responses string) error {
	_, err := p.request(wire.MethodUpdate, fmt.Sprintf(`"taskId":%q,"inputResponses":%s`, taskID, responses))
	return err
}

// expect checks that a task is what it was before.
func (p *process) expect(what, taskID string, before wire.JSON) error {
	now, err := p.get(taskID)
	if err != nil {
		return err
	}
	if now != before {
		return fmt.Errorf("%s was %s, and is now %s", what, before, now)
	}
	note("%s: unchanged, %s since %s", what, now.Get("status"), now.Get("lastUpdatedAt"))
	return nil
}

// await polls a task until it has a status.
func (p *process) await(taskID string, want wire.Status) (wire.JSON, error) {
	return p.poll(taskID, func(task wire.JSON) bool {
		status, _ := task.Get("status").Text()
		return wire.Status(status) == want
	})
}

// awaitPages polls the crawler's task until it has read some pages, and
// returns how many.
func (p *process) awaitPages(taskID string, atLeast int) (task wire.JSON, read int, err error) {
	task, err = p.poll(taskID, func(task wire.JSON) bool {
		message, _ := task.Get("statusMessage").Text()
		n, _ := fmt.Sscanf(message, "read %d of", &read) // there is no message before the first page
		return n == 1 && read >= atLeast
	})
	return task, read, err
}

// poll asks for a task, as often as the server suggests, until it is as
// wanted.
func (p *process) poll(taskID string, wanted func(task wire.JSON) bool) (wire.JSON, error) {
	for deadline := time.Now().Add(patience); ; {
		task, err := p.get(taskID)
		if err != nil || wanted(task) {
			return task, err
		}
		status, _ := task.Get("status").Text()
		if wire.Status(status).Terminal() || time.Now().After(deadline) {
			return wire.JSON{}, fmt.Errorf("the task is still, or for good: %s", task)
		}
		var interval int64
		if err := task.Get("pollIntervalMs").Decode(&interval); err != nil {
			return wire.JSON{}, err
		}
		time.Sleep(time.Duration(interval) * time.Millisecond)
	}
}
