package sqlitestore_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// execution is one run of a task's worker.
type execution struct {
	server *process
	begun  time.Time
	from   int // the step that it began with
	saved  int // the last step that it saved
}

// history is what workers have reported.
type history struct {
	t    *testing.T
	mu   sync.Mutex
	runs map[string][]*execution // by task, in the order of the reports
}

// add adds a worker's report.
func (h *history) add(p *process, r report) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch r.What {
	case "begun":
		h.runs[r.ID] = append(h.runs[r.ID], &execution{server: p, begun: r.At, from: r.Step})
	case "saved":
		for _, run := range h.runs[r.ID] {
			if run.server == p {
				run.saved = r.Step
			}
		}
	case "recover":
		h.t.Errorf("server %d: Recover: %s", p.number, r.Error)
	}
}

// check checks, when all reports are in, that no task was run by two servers at
// once, or resumed before a step that was acknowledged. It returns how often tasks
// were resumed.
func (h *history) check() (resumed int) {
	for _, runs := range h.runs {
		// The last reports of a server that was killed may arrive after the first
		// of the server that took its task over.
		slices.SortFunc(runs, func(a, b *execution) int { return a.begun.Compare(b.begun) })
		for i, next := range runs[1:] {
			last := runs[i]
			if left := last.server.left(); left.IsZero() || next.begun.Before(left) {
				h.t.Errorf("server %d ran a task of server %d, which was alive", next.server.number, last.server.number)
			}
			if saved := max(last.from, last.saved); next.from < saved {
				h.t.Errorf("a worker began with step %d after step %d was acknowledged", next.from, saved)
			}
			resumed++
		}
	}
	return resumed
}

// knownTask is what a client knows of a task from what was acknowledged.
type knownTask struct {
	id, kind  string
	answer    string // the one that was given, acknowledged or not
	cancelled bool
	step      int
	ended     *task
}

// TestProcesses lets several servers share one file, and uses any of them for any
// task, while servers are killed, shut down and started. Every server must show
// what any of them has acknowledged, and every task must end, run by one server at
// a time.
func TestProcesses(t *testing.T) {
	const servers = 3
	rounds, deaths := 400, 8
	if testing.Short() {
		rounds, deaths = 100, 2
	}
	path := filepath.Join(t.TempDir(), "tasks.db")
	past := &history{t: t, runs: make(map[string][]*execution)}
	running := make([]*process, servers)
	started := 0
	begin := func(i int) {
		started++
		running[i] = start(t, path, started, past.add)
	}
	for i := range running {
		begin(i)
	}
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	anyServer := func() *process { return running[random.IntN(len(running))] }
	var tasks []*knownTask
	stopped := 0

	for round := range rounds {
		if round%(rounds/deaths) == rounds/deaths-1 {
			// The victim ends while all servers are busy.
			victim := random.IntN(servers)
			die := running[victim].kill
			if round/(rounds/deaths)%4 == 1 {
				die = running[victim].stop
				stopped++
			}
			dead := make(chan struct{})
			go func() {
				defer close(dead)
				time.Sleep(rand.N(3 * time.Millisecond))
				die()
			}()
			var group sync.WaitGroup
			created := make([]*knownTask, 6)
			for i := range created {
				kind := []string{"count", "ask", "wait"}[i%3]
				group.Go(func() { created[i] = newTask(t, running[i%servers], kind) })
			}
			group.Wait()
			for _, k := range created {
				if k != nil {
					tasks = append(tasks, k)
				}
			}
			<-dead
			begin(victim)
			continue
		}
		if len(tasks) < 6 || random.IntN(4) == 0 {
			kind := []string{"count", "ask", "wait"}[random.IntN(3)]
			if k := newTask(t, anyServer(), kind); k != nil {
				tasks = append(tasks, k)
			}
			continue
		}
		k := tasks[random.IntN(len(tasks))]
		switch random.IntN(3) {
		case 0:
			k.check(t, anyServer())
		default:
			k.end(t, anyServer())
		}
	}

	// The last victim has no successor: the others must notice. Its task to wait
	// cannot have ended, so it must be resumed.
	for _, kind := range []string{"count", "ask", "wait"} {
		if k := newTask(t, running[0], kind); k != nil {
			tasks = append(tasks, k)
		}
	}
	running[0].kill()
	running = running[1:]

	deadline := time.Now().Add(time.Minute)
	for _, k := range tasks {
		for k.ended == nil {
			if time.Now().After(deadline) {
				t.Fatalf("a task to %s has not ended", k.kind)
			}
			k.end(t, anyServer())
			k.check(t, anyServer())
			time.Sleep(5 * time.Millisecond)
		}
		for _, p := range running {
			k.check(t, p)
		}
	}

	for _, p := range running {
		p.stop() // all its reports are in then
	}
	for _, k := range tasks {
		if len(past.runs[k.id]) == 0 {
			t.Errorf("a task to %s ended without a worker", k.kind)
		}
	}
	resumed := past.check()
	t.Logf("%d tasks, %d servers of which %d were killed and %d stopped, %d resumptions", len(tasks), started, deaths-stopped+1, stopped, resumed)
	if resumed == 0 {
		t.Error("no server resumed a task of another")
	}
}

// newTask creates a task; nil if the server dies before it answers.
func newTask(t *testing.T, p *process, kind string) *knownTask {
	r, alive := p.ask(order{Do: "create", Text: kind})
	if alive && r.Error != "" {
		t.Errorf("create: %s", r.Error)
	}
	if !alive || r.ID == "" {
		return nil
	}
	return &knownTask{id: r.ID, kind: kind}
}

// check reads the task and compares it with what is known.
func (k *knownTask) check(t *testing.T, p *process) {
	t.Helper()
	r, alive := p.ask(order{Do: "get", ID: k.id})
	if !alive {
		return
	}
	if r.Error != "" {
		t.Fatalf("a task to %s that was acknowledged: %s", k.kind, r.Error)
	}
	now := r.Task
	switch {
	case k.ended != nil:
		if now.Status != k.ended.Status || now.Result != k.ended.Result {
			t.Errorf("a task to %s that had ended as %v is now %v", k.kind, k.ended, now)
		}
		return
	case k.kind == "count":
		step := 0
		fmt.Sscan(now.StatusMessage, &step)
		if step < k.step {
			t.Errorf("a counting task is at step %d after step %d", step, k.step)
		}
		k.step = step
	}
	if !now.Status.Terminal() {
		return
	}
	k.ended = now
	want := task{Status: durabletasks.StatusCompleted}
	switch k.kind {
	case "count":
		want.Result = fmt.Sprintf(`{"resultType":"complete","counted":%d}`, countTo)
	case "ask":
		want.Result = fmt.Sprintf(`{"resultType":"complete","name":%q}`, k.answer)
	case "wait":
		want.Status = durabletasks.StatusCancelled
	}
	if now.Status != want.Status || now.Result != want.Result || k.kind == "wait" && !k.cancelled {
		t.Errorf("a task to %s has ended as %s with result %s, want %s with %s", k.kind, now.Status, now.Result, want.Status, want.Result)
	}
}

// end does what a client can do to end the task.
func (k *knownTask) end(t *testing.T, p *process) {
	t.Helper()
	o := order{ID: k.id}
	switch {
	case k.ended != nil:
		return
	case k.kind == "wait":
		o.Do, k.cancelled = "cancel", true
	case k.kind == "ask":
		r, alive := p.ask(order{Do: "get", ID: k.id})
		if !alive || r.Task == nil || r.Task.Asks == 0 {
			return
		}
		k.answer = "Ann " + k.id // if it was not acknowledged, the next attempt gives the same
		o.Do, o.Text = "answer", k.answer
	default:
		return
	}
	if r, alive := p.ask(o); alive && r.Error != "" {
		t.Errorf("%s: %s", o.Do, r.Error)
	}
}

// TestReachesAnotherProcess sends cancellations and answers to one process that
// are for workers in another, and measures how long they take from the
// acknowledgement.
func TestReachesAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	arrived := make(chan report, 100)
	working := start(t, path, 1, func(_ *process, r report) {
		if r.What != "begun" {
			arrived <- r
		}
	})
	other := start(t, path, 2, func(_ *process, r report) { t.Errorf("the wrong server's worker: %v", r) })
	for _, c := range []struct{ kind, do string }{{"wait", "cancel"}, {"ask", "answer"}} {
		t.Run(c.do, func(t *testing.T) {
			var delays []time.Duration
			for range 5 {
				id := working.must(order{Do: "create", Text: c.kind}).ID
				for c.kind == "ask" && other.must(order{Do: "get", ID: id}).Task.Asks == 0 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Duration(rand.N(int64(50 * time.Millisecond)))) // at any moment between two reads of the log
				acknowledged := other.must(order{Do: c.do, ID: id, Text: "Ann"})
				select {
				case r := <-arrived:
					if r.ID != id {
						t.Fatalf("the %s reached the worker of another task", c.do)
					}
					delays = append(delays, r.At.Sub(acknowledged.At))
				case <-time.After(10 * time.Second):
					t.Fatalf("the %s did not reach the worker", c.do)
				}
			}
			slices.Sort(delays)
			t.Logf("after the acknowledgement: median %v, longest %v", delays[len(delays)/2], delays[len(delays)-1])
		})
	}
}

// TestProcessesCompareAndSwap lets three servers change one task at once.
func TestProcessesCompareAndSwap(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	running := make([]*process, 3)
	for i := range running {
		running[i] = start(t, path, i+1, func(*process, report) {})
	}
	all := func(o order) []report {
		reports := make([]report, len(running))
		var group sync.WaitGroup
		for i, p := range running {
			o := o
			if o.Do == "complete" {
				o.Text = fmt.Sprint("server ", i)
			}
			group.Go(func() { reports[i], _ = p.ask(o) })
		}
		group.Wait()
		return reports
	}

	const times = 30
	id := running[0].must(order{Do: "create", Text: "none"}).ID
	for _, r := range all(order{Do: "increment", ID: id, Times: times}) {
		if r.Error != "" {
			t.Error(r.Error)
		}
	}
	s := openStore(t, path, nil)
	r, err := s.Get(t.Context(), id)
	if want := len(running) * times; err != nil || r.Version != int64(want) || r.Checkpoint.String() != fmt.Sprint(want) {
		t.Errorf("%d increments made version %d and counted to %v; error %v", want, r.Version, r.Checkpoint, err)
	}

	for range 20 {
		id := running[0].must(order{Do: "create", Text: "none"}).ID
		winner := -1
		for i, r := range all(order{Do: "complete", ID: id}) {
			switch {
			case r.Error == "" && winner < 0:
				winner = i
			case r.Error == "":
				t.Error("two servers completed one task")
			case !strings.Contains(r.Error, "task has ended"):
				t.Error(r.Error)
			}
		}
		want := fmt.Sprintf(`{"resultType":"complete","by":"server %d"}`, winner)
		if got := running[1].must(order{Do: "get", ID: id}).Task; got.Result != want {
			t.Errorf("a task has the result %s, want %s", got.Result, want)
		}
	}
}
