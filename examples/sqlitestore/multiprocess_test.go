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
	from   int // the step that it found saved
	saved  int // the last step that it saved itself
}

// history is what workers have told of their tasks.
type history struct {
	t    *testing.T
	mu   sync.Mutex
	runs map[string][]*execution // in the order in which they were heard of
}

// hear takes note of what a worker says.
func (h *history) hear(p *process, r report) {
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

// check finds out, when everything was heard, whether any task was run by two
// servers at once, or resumed behind what was acknowledged. It returns how
// often tasks were resumed.
func (h *history) check() (resumed int) {
	for _, runs := range h.runs {
		// What a server said before it was killed may be heard after the first
		// words of the one that has taken its task over.
		slices.SortFunc(runs, func(a, b *execution) int { return a.begun.Compare(b.begun) })
		for i, next := range runs[1:] {
			last := runs[i]
			if left := last.server.left(); left.IsZero() || next.begun.Before(left) {
				h.t.Errorf("server %d ran a task that server %d was running, which was alive", next.server.number, last.server.number)
			}
			if saved := max(last.from, last.saved); next.from < saved {
				h.t.Errorf("a worker found step %d saved, after step %d was acknowledged", next.from, saved)
			}
			resumed++
		}
	}
	return resumed
}

// known is what a client knows of a task: what was acknowledged.
type known struct {
	id, kind  string
	answer    string // that was acknowledged, or is being given
	cancelled bool
	step      int
	ended     *task
}

// TestProcesses lets several servers work on one file, with clients that use
// any server for any task, while servers are killed, or stopped in good order,
// and started. What was acknowledged must be there, for every server, and every
// task must come to its end, run by one server at a time.
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
		running[i] = start(t, path, started, past.hear)
	}
	for i := range running {
		begin(i)
	}
	random := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	anyone := func() *process { return running[random.IntN(len(running))] }
	var tasks []*known
	stopped := 0

	for round := range rounds {
		if round%(rounds/deaths) == rounds/deaths-1 {
			// The victim ends while it and the others are busy.
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
			created := make([]*known, 6)
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
			if k := newTask(t, anyone(), kind); k != nil {
				tasks = append(tasks, k)
			}
			continue
		}
		k := tasks[random.IntN(len(tasks))]
		switch random.IntN(3) {
		case 0:
			k.look(t, anyone())
		default:
			k.end(t, anyone())
		}
	}

	// The last victim leaves no successor: those who live must notice.
	for range 3 {
		if k := newTask(t, running[0], "count"); k != nil {
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
			k.end(t, anyone())
			k.look(t, anyone())
			time.Sleep(5 * time.Millisecond)
		}
		for _, p := range running {
			k.look(t, p)
		}
	}

	for _, p := range running {
		p.stop() // everything that it said has been heard
	}
	for _, k := range tasks {
		if len(past.runs[k.id]) == 0 {
			t.Errorf("a task to %s has ended without a worker", k.kind)
		}
	}
	resumed := past.check()
	t.Logf("%d tasks, %d servers of which %d were killed and %d stopped, %d resumptions", len(tasks), started, deaths-stopped+1, stopped, resumed)
	if resumed == 0 {
		t.Error("no server has resumed a task of another")
	}
}

// newTask creates a task; nil if the server dies over it.
func newTask(t *testing.T, p *process, kind string) *known {
	r, alive := p.ask(order{Do: "create", Text: kind})
	if alive && r.Error != "" {
		t.Errorf("create: %s", r.Error)
	}
	if !alive || r.ID == "" {
		return nil
	}
	return &known{id: r.ID, kind: kind}
}

// look reads the task and checks it against what is known.
func (k *known) look(t *testing.T, p *process) {
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
			t.Errorf("a task to %s that had ended as %v is %v", k.kind, k.ended, now)
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

// end does what a client can do for the task's end.
func (k *known) end(t *testing.T, p *process) {
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
		k.answer = "Ann " + k.id // the same again, if the first was not acknowledged
		o.Do, o.Text = "answer", k.answer
	default:
		return
	}
	if r, alive := p.ask(o); alive && r.Error != "" {
		t.Errorf("%s: %s", o.Do, r.Error)
	}
}

// TestReachesAnotherProcess measures how long it takes until the worker in one
// process hears of a cancellation, or an answer, that another has acknowledged.
func TestReachesAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tasks.db")
	heard := make(chan report, 100)
	working := start(t, path, 1, func(_ *process, r report) {
		if r.What != "begun" {
			heard <- r
		}
	})
	other := start(t, path, 2, func(_ *process, r report) { t.Errorf("the wrong server's worker: %v", r) })
	for _, c := range []struct{ kind, do string }{{"wait", "cancel"}, {"ask", "answer"}} {
		t.Run(c.do, func(t *testing.T) {
			var delays []time.Duration
			for range 20 {
				id := working.must(order{Do: "create", Text: c.kind}).ID
				for c.kind == "ask" && other.must(order{Do: "get", ID: id}).Task.Asks == 0 {
					time.Sleep(time.Millisecond)
				}
				time.Sleep(time.Duration(rand.N(int64(50 * time.Millisecond)))) // at any moment between two looks
				acknowledged := other.must(order{Do: c.do, ID: id, Text: "Ann"})
				select {
				case r := <-heard:
					if r.ID != id {
						t.Fatal("another task's worker has heard of it")
					}
					delays = append(delays, r.At.Sub(acknowledged.At))
				case <-time.After(10 * time.Second):
					t.Fatalf("the worker did not hear of the %s", c.do)
				}
			}
			slices.Sort(delays)
			t.Logf("after the acknowledgement: median %v, longest %v", delays[len(delays)/2], delays[len(delays)-1])
		})
	}
}

// TestProcessesRace lets three servers change one task at once.
func TestProcessesRace(t *testing.T) {
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
				t.Error("two servers have completed one task")
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
