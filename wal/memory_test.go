package wal_test

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

const (
	kib = 1 << 10
	mib = 1 << 20
)

// heap returns how many bytes the program's live objects take. It collects
// garbage once only: what a sync.Pool holds then still counts.
func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// memorySegment is small, because the log library keeps the last segment in
// memory.
const memorySegment = 64 * kib

// memory measures what a store and its records take.
type memory struct {
	*testing.T
	before int64
	dir    string
	clock  *clock
	s      *wal.Store
}

func newMemory(t *testing.T) *memory {
	m := &memory{T: t, dir: ramDir(t), clock: newClock()}
	m.before = heap()
	m.open()
	return m
}

func (m *memory) open() {
	m.Helper()
	m.s, _ = openFaulty(m, m.dir, &wal.Options{Now: m.clock.now}, memorySegment)
}

func (m *memory) reopen() {
	m.Helper()
	mustClose(m, m.s)
	m.s = nil
	m.open()
}

// want requires that the store takes at most this many bytes.
func (m *memory) want(what string, most int64) {
	m.Helper()
	got := heap() - m.before
	runtime.KeepAlive(m.s)
	m.Logf("%s: %d KiB of %d", what, got/kib, most/kib)
	if got > most {
		m.Errorf("%s: the store takes %d KiB, want at most %d", what, got/kib, most/kib)
	}
}

// bare is what a store without records takes: a page for each of its 64 index
// shards, the library's buffers, and pooled frames.
const bare = 640 * kib

// What each task takes in memory, in a store that has made it and in one that
// has read it; and what remains when the tasks have been swept, some or all of
// them, or the store is closed.
func TestMemoryOfSmallTasks(t *testing.T) {
	const n, each = 30_000, 600
	m := newMemory(t)
	create := func() {
		for i := range n {
			r := task(id(i))
			if i%100 == 0 {
				r.TTL = durabletasks.NoLimit
			}
			mustCreate(m, m.s, r)
		}
	}
	create()
	m.want("created", bare+n*each)
	m.reopen()
	m.want("reopened", bare+n*each)
	for i := range n {
		mustGet(m, m.s, id(i))
	}
	m.want("read", bare+n*(each+100)) // an entry holds more than its values
	m.clock.advance(2 * time.Hour)
	if removed, err := m.s.Sweep(ctx, m.clock.now()); removed != n-n/100 || err != nil {
		t.Fatal(removed, err)
	}
	m.want("swept", bare+n/100*(each+100))
	m.reopen()
	m.want("swept and reopened", bare+n/100*each)
	mustClose(m, m.s)
	m.want("closed", 128*kib)
}

// Large values do not stay in memory when an update has removed or replaced
// them, in a store that has made them and in one that has read them.
func TestMemoryOfLargeValues(t *testing.T) {
	const n, size = 32, 512 * kib
	large := strings.Repeat("x", size)
	value := func(page int) wire.JSON { return wire.MustParse(fmt.Sprintf(`"%d %s"`, page, large)) }
	full := func(i int) durabletasks.Record {
		// What stays when the payload goes must not hold it, or the text that
		// it was a part of.
		request := id(i) + "page 7 of 100" + "alice" + "crawl" + large
		r := task(request[:36])
		r.StatusMessage, r.Owner, r.Tool = request[36:49], request[49:54], request[54:59]
		r.Status = "paused"
		r.Questions = questions("q1", "q2")
		r.InputRequests = map[string]wire.JSON{"q1": wire.MustParse(`{"method":"elicitation/create"}`)}
		r.InputResponses = map[string]wire.JSON{"q2": wire.MustParse(`{"action":"accept"}`)}
		r.Checkpoint, r.Result = wire.MustParse(`{"page":7}`), wire.MustParse(`{"pages":7}`)
		r.Payload = value(0)
		return r
	}
	change := func(m *memory, n int, change func(r *durabletasks.Record)) {
		for i := range n {
			r := mustGet(m, m.s, id(i))
			change(&r)
			mustUpdate(m, m.s, r)
		}
	}
	for _, reopened := range []bool{false, true} {
		t.Run(fmt.Sprintf("reopened=%v", reopened), func(t *testing.T) {
			m := newMemory(t)
			for i := range n {
				mustCreate(m, m.s, full(i))
			}
			if reopened {
				m.reopen()
			}
			m.want("with payloads", bare+n*(size+16*kib)+3*mib)
			const few = 5 // so that the log is not cleaned
			for page := range 6 {
				change(m, few, func(r *durabletasks.Record) { r.Checkpoint = value(page) })
			}
			if reopened {
				m.reopen()
			}
			m.want("with checkpoints that were replaced", bare+n*(size+16*kib)+few*2*size+3*mib)
			change(m, n, func(r *durabletasks.Record) {
				r.Payload, r.Checkpoint = wire.JSON{}, wire.MustParse(`{"page":8}`)
				r.Owner = strings.Clone(large)[:5]
			})
			m.want("without payloads and checkpoints", bare+n*kib+mib)
		})
	}
}

// Commits at the same time leave no memory behind, and neither does cleaning.
func TestMemoryOfLargeCommits(t *testing.T) {
	const n, size = 32, 512 * kib
	m := newMemory(t)
	for i := range n {
		mustCreate(m, m.s, task(id(i)))
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			r := mustGet(m, m.s, id(i))
			r.Payload = text(size)
			mustUpdate(m, m.s, r)
		})
	}
	wg.Wait()
	m.clock.advance(2 * time.Hour)
	if removed, err := m.s.Sweep(ctx, m.clock.now()); removed != n || err != nil {
		t.Fatal(removed, err)
	}
	m.want("after large updates at the same time, swept", bare+mib)

	m.clock.advance(-2 * time.Hour)
	mustCreate(m, m.s, task(id(0)))
	r := task("large")
	r.Payload = text(6 * mib)
	mustCreate(m, m.s, r)
	r.Payload = wire.JSON{}
	for small := task(id(0)); ; { // until the large record has been copied
		small = mustGet(m, m.s, small.ID)
		small.StatusMessage = strings.Repeat("x", 10*kib+int(small.Version))
		before := m.s.LogBytes()
		mustUpdate(m, m.s, small)
		if m.s.LogBytes()-before > 5*mib {
			break
		}
	}
	large := mustGet(m, m.s, "large")
	large.Payload = wire.JSON{}
	mustUpdate(m, m.s, large)
	large = durabletasks.Record{}
	m.want("after a large record was copied", bare+2*mib)
}

// An id that is used again does not stay in memory twice.
func TestMemoryOfReusedIDs(t *testing.T) {
	const n, size = 500, 10 * kib
	m := newMemory(t)
	for range 3 {
		for i := range n {
			r := task(fmt.Sprintf("%0*d", size, i))
			r.CreatedAt = m.clock.now().UTC()
			mustCreate(m, m.s, r)
		}
		m.want("created", bare+n*(size+kib)+mib)
		m.clock.advance(2 * time.Hour)
	}
}

// Nothing of a torn end that was removed stays in memory.
func TestMemoryOfTornEnd(t *testing.T) {
	dir := ramDir(t)
	mustClose(t, mustOpen(t, dir, nil))
	f, err := os.OpenFile(filepath.Join(dir, "00000000000000000001"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString("\xff\xff\xff\x7f" + strings.Repeat("torn", mib)); err != nil {
		t.Fatal(err)
	}
	f.Close()
	before := heap()
	s := mustOpen(t, dir, nil)
	if s.Torn() == nil {
		t.Fatal("no torn end was removed")
	}
	if got := heap() - before; got > mib {
		t.Errorf("the store takes %d KiB", got/kib)
	}
	runtime.KeepAlive(s)
}
