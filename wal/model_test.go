package wal_test

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

var seed = flag.Uint64("wal.seed", 0, "seed of the random walks; 0: another one each time")

func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("-wal.seed=%d", s)
	return rand.New(rand.NewPCG(s, 0))
}

// walk makes random changes to a store and to a model of it.
type walk struct {
	*rand.Rand
	clock *clock
	model contents
	ids   []string
}

func newWalk(r *rand.Rand) *walk {
	w := &walk{Rand: r, clock: newClock(), model: contents{}}
	for i := range 30 {
		w.ids = append(w.ids, fmt.Sprint("task-", i))
	}
	return w
}

func (w *walk) id() string { return w.ids[w.IntN(len(w.ids))] }

func (w *walk) json() wire.JSON {
	if w.IntN(4) == 0 {
		return wire.JSON{}
	}
	n := 2 + w.IntN(40)
	if w.IntN(20) == 0 {
		n = 3000
	}
	return text(n)
}

func (w *walk) change(r *durabletasks.Record) {
	for range 1 + w.IntN(3) {
		key := fmt.Sprint(w.IntN(5))
		switch w.IntN(12) {
		case 0:
			r.Status = []durabletasks.Status{durabletasks.StatusWorking, durabletasks.StatusCompleted, "odd", ""}[w.IntN(4)]
		case 1, 2, 3:
			r.StatusMessage = fmt.Sprint("page ", w.IntN(1000))
		case 4:
			r.TTL = []time.Duration{durabletasks.NoLimit, time.Minute, time.Hour}[w.IntN(3)]
		case 5:
			r.LastUpdatedAt = w.clock.now().UTC()
		case 6:
			r.Checkpoint = w.json()
		case 7:
			r.Result = w.json()
		case 8:
			r.Questions = append(r.Questions, questions("", key)[w.IntN(2)])
		case 9:
			r.Questions = r.Questions[:w.IntN(len(r.Questions)+1)]
		case 10:
			r.InputRequests = changeMap(w, r.InputRequests, key)
		case 11:
			r.InputResponses = changeMap(w, r.InputResponses, key)
		}
	}
	if len(r.Questions) == 0 {
		r.Questions = nil
	}
}

func changeMap(w *walk, m map[string]wire.JSON, key string) map[string]wire.JSON {
	switch w.IntN(4) {
	case 0:
		return nil
	case 1:
		delete(m, key)
	default:
		if m == nil {
			m = map[string]wire.JSON{}
		}
		m[key] = w.json()
	}
	if len(m) == 0 {
		return nil
	}
	return m
}

// alive returns the model's record, if it is not expired.
func (w *walk) alive(id string) (durabletasks.Record, bool) {
	r, ok := w.model[id]
	return r.Clone(), ok && !r.Expired(w.clock.now())
}

// step makes one change to both and compares the outcomes.
func (w *walk) step(s *wal.Store) error {
	id := w.id()
	old, alive := w.alive(id)
	switch n := w.IntN(100); {
	case n < 20:
		r := task(id)
		r.CreatedAt = w.clock.now().UTC()
		w.change(&r)
		err := s.Create(ctx, r)
		if alive && errors.Is(err, durabletasks.ErrExists) {
			return nil
		}
		if err != nil || alive {
			return fmt.Errorf("create %s: %w, alive: %v", id, err, alive)
		}
		w.model[id] = r
	case n < 90:
		if !alive {
			if err := s.Update(ctx, from(old.Version, task(id))); !errors.Is(err, durabletasks.ErrNotFound) {
				return fmt.Errorf("update of %s, which is not there: %w", id, err)
			}
			return nil
		}
		next := old.Clone()
		w.change(&next)
		if err := s.Update(ctx, next); err != nil {
			return fmt.Errorf("update %s: %w", id, err)
		}
		next.Version++
		w.model[id] = next
	case n < 94:
		w.clock.advance(time.Duration(w.IntN(600)-150) * time.Second)
	case n < 99:
		now := w.clock.now().Add(time.Duration(w.IntN(300)-150) * time.Second)
		want := 0
		for id, r := range w.model {
			if r.Expired(now) {
				delete(w.model, id)
				want++
			}
		}
		if got, err := s.Sweep(ctx, now); err != nil || got != want {
			return fmt.Errorf("sweep: %d, %w, want %d", got, err, want)
		}
	default:
		now := w.clock.now()
		for id, r := range w.model {
			if r.Expired(now) {
				delete(w.model, id)
			}
		}
		if err := s.Compact(ctx); err != nil {
			return fmt.Errorf("compact: %w", err)
		}
	}
	return nil
}

// compare reports where store and model differ.
func (w *walk) compare(s *wal.Store) error {
	for _, id := range w.ids {
		want, alive := w.alive(id)
		got, err := s.Get(ctx, id)
		switch {
		case !alive && errors.Is(err, durabletasks.ErrNotFound):
		case err != nil || !alive:
			return fmt.Errorf("%s: %w, alive: %v", id, err, alive)
		case !reflect.DeepEqual(got, want):
			return fmt.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
	return nil
}

// The store always holds what a plain map would hold, in a random walk over
// every operation, with the clock going back and forth, constant cleaning, and
// reopens in between, with sync and without.
func TestRandomWalk(t *testing.T) {
	t.Parallel()
	r := newRand(t)
	dir := ramDir(t)
	w := newWalk(r)
	opts := &wal.Options{Now: w.clock.now}
	s, _ := openFaulty(t, dir, opts, 2048)
	for i := range rounds(20_000, 400_000) {
		if err := w.step(s); err != nil {
			t.Fatalf("step %d: %v", i, err)
		}
		if r.IntN(100) == 0 {
			if err := w.compare(s); err != nil {
				t.Fatalf("after step %d: %v", i, err)
			}
		}
		if r.IntN(300) == 0 {
			mustClose(t, s)
			opts.Sync = r.IntN(2) == 0
			s, _ = openFaulty(t, dir, opts, 1<<(9+r.IntN(4)))
			if err := s.Audit(); err != nil {
				t.Fatalf("reopened after step %d: %v", i, err)
			}
			if r.IntN(2) == 0 { // or leave everything undecoded for what comes
				if err := w.compare(s); err != nil {
					t.Fatalf("reopened after step %d: %v", i, err)
				}
			}
		}
		if r.IntN(500) == 0 {
			if err := s.Audit(); err != nil {
				t.Fatalf("after step %d: %v", i, err)
			}
		}
	}
}
