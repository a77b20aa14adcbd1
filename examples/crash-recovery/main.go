// Crash-recovery tells a story: an MCP server with three tasks is killed in
// the middle of its work, started again, and has lost nothing.
//
//	go run ./crash-recovery      the story
//	go run ./crash-recovery -v   with every JSON-RPC message
//
// It starts itself a second time as a real MCP server on stdio, and plays the
// client that speaks JSON-RPC to it. Each step is checked; the exit status
// is 1 if one fails.
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func main() {
	serve := flag.String("serve", "", "be the server, with tasks in this `directory`")
	verbose := flag.Bool("v", false, "show every message")
	flag.Parse()
	var err error
	if *serve != "" {
		err = runServer(*serve)
	} else {
		err = tell(*verbose)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crash-recovery:", err)
		os.Exit(1)
	}
}

// patience is how long the story waits for anything that should happen soon.
const patience = 15 * time.Second

const (
	pages      = 10
	killedPast = 4 // pages have been read when the server is killed
)

// tell plays the story from beginning to end.
func tell(verbose bool) (err error) {
	dir, err := os.MkdirTemp("", "crash-recovery-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()

	say("A server starts, with an empty directory for its tasks.")
	first, err := startServer(dir, verbose)
	if err != nil {
		return err
	}
	defer first.kill() // also when a step fails

	say("The client calls three tools. Each call answers at once with a task.")
	crawl, err := first.callTool("crawl", fmt.Sprintf(`{"pages":%d}`, pages))
	if err != nil {
		return err
	}
	note("crawl reads %d pages, slowly", pages)
	add, err := first.callTool("add", `{"a":40,"b":2}`)
	if err != nil {
		return err
	}
	note("add adds two numbers")
	publish, err := first.callTool("publish", `{"title":"The crash"}`)
	if err != nil {
		return err
	}
	note("publish asks before it publishes")

	say("The sum is soon there, and the question.")
	sum, err := first.await(add, wire.StatusCompleted)
	if err != nil {
		return err
	}
	note("add: %s", sum.Get("result").Get("structuredContent"))
	question, err := first.await(publish, wire.StatusInputRequired)
	if err != nil {
		return err
	}
	note("publish: %s", question.Get("inputRequests").Get("publish").Get("params").Get("message"))

	say("The crawler gets time for %d of its pages.", killedPast)
	before, seen, err := first.awaitPages(crawl, killedPast)
	if err != nil {
		return err
	}
	note("crawl: %s", before.Get("statusMessage"))

	say("Now the server process is killed: SIGKILL, no chance to save anything.")
	if err := first.kill(); err != nil {
		return err
	}
	note("process %d is gone", first.pid())

	say("A new process starts on the same directory.")
	second, err := startServer(dir, verbose)
	if err != nil {
		return err
	}
	defer second.kill()

	say("The finished result is there, to the byte.")
	if err := second.expect("add", add, sum); err != nil {
		return err
	}

	say("The interrupted task is there, and goes on from its checkpoint.")
	still, err := second.get(crawl)
	if err != nil {
		return err
	}
	if still.Get("createdAt") != before.Get("createdAt") {
		return fmt.Errorf("the crawler's task was created at %s, and now at %s", before.Get("createdAt"), still.Get("createdAt"))
	}
	note("crawl: %s, %s", still.Get("status"), still.Get("statusMessage"))
	crawled, err := second.await(crawl, wire.StatusCompleted)
	if err != nil {
		return err
	}
	if err := checkCrawl(crawled.Get("result").Get("structuredContent"), seen, first.pid(), second.pid()); err != nil {
		return err
	}

	say("The question still stands, word for word. The client answers it.")
	if err := second.expect("publish", publish, question); err != nil {
		return err
	}
	if err := second.answer(publish, `{"publish":{"action":"accept","content":{"confirm":true}}}`); err != nil {
		return err
	}
	published, err := second.await(publish, wire.StatusCompleted)
	if err != nil {
		return err
	}
	const want = `{"title":"The crash","published":true}`
	if published.Get("result").Get("structuredContent") != wire.MustParse(want) {
		return fmt.Errorf("publish ended with %s", published.Get("result"))
	}
	note("publish: %s", want)

	say("The client hangs up, and the server ends cleanly.")
	if err := second.hangUp(); err != nil {
		return err
	}
	fmt.Println("\nNothing was lost.")
	return nil
}

// checkCrawl checks who has read which page: the first process those that the
// client has seen, and perhaps one more, the second one the rest, and none
// twice.
func checkCrawl(result wire.JSON, seen, first, second int) error {
	var read []pageRead
	if err := result.Get("pages").Decode(&read); err != nil {
		return err
	}
	if len(read) != pages {
		return fmt.Errorf("%d pages were read, not %d", len(read), pages)
	}
	by := make(map[int]int)
	for i, page := range read {
		if page.Number != i+1 || page.Process != first && page.Process != second || page.Process == first && by[second] > 0 {
			return fmt.Errorf("page %d of the result is %+v", i+1, page)
		}
		by[page.Process]++
	}
	if by[first] < seen || by[second] == 0 {
		return fmt.Errorf("the processes read %d and %d pages", by[first], by[second])
	}
	note("crawl: %d pages read by process %d before the crash, %d by process %d after it", by[first], first, by[second], second)
	return nil
}

var step int

func say(format string, args ...any) {
	step++
	fmt.Printf("\n%2d. %s\n", step, fmt.Sprintf(format, args...))
}

func note(format string, args ...any) { fmt.Printf("    %s\n", fmt.Sprintf(format, args...)) }
