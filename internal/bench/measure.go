package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// id returns the i-th id, which looks as random as a UUID.
func id(i int) string {
	h := uint64(i) * 0x9E3779B97F4A7C15
	return fmt.Sprintf("%08x-%04x-4%03x-8%03x-%012x", uint32(h), uint16(h>>32), h>>48&0xFFF, h>>52&0xFFF, i)
}

// creates measures how many records per second concurrent writers create.
func creates(sync_ bool, writers int) {
	names, rates := make([]string, len(openers)), make([][]float64, len(openers))
	for range *rounds {
		for i, o := range openers {
			names[i] = o.name
			dir, remove := scratch()
			c, err := o.open(dir, sync_, writers)
			check(err)
			var next atomic.Int64
			var wg sync.WaitGroup
			start := time.Now()
			for range writers {
				wg.Go(func() {
					for time.Since(start) < *duration {
						check(c.create(id(int(next.Add(1)))))
					}
				})
			}
			wg.Wait()
			rates[i] = append(rates[i], float64(next.Load())/time.Since(start).Seconds())
			check(c.close())
			remove()
		}
	}
	table(names, rates)
}

// gets measures how many random records of 100,000 one reader gets per second.
func gets() {
	const n = 100_000
	ids := make([]string, n)
	for i := range ids {
		ids[i] = id(i)
	}
	var names []string
	var open []*candidate
	for _, o := range openers[1:] {
		dir, remove := scratch()
		defer remove()
		c, err := o.open(dir, false, 64)
		check(err)
		var wg sync.WaitGroup
		var next atomic.Int64
		for range 64 { // bbolt's Batch waits for other writers
			wg.Go(func() {
				for {
					i := int(next.Add(1)) - 1
					if i >= n {
						return
					}
					check(c.create(ids[i]))
				}
			})
		}
		wg.Wait()
		names, open = append(names, o.name), append(open, c)
	}
	rates := make([][]float64, len(open))
	for range *rounds {
		for i, c := range open {
			count := 0
			start := time.Now()
			for ; time.Since(start) < *duration; count++ {
				check(c.get(ids[rand.IntN(n)]))
			}
			rates[i] = append(rates[i], float64(count)/time.Since(start).Seconds())
		}
	}
	table(names, rates)
	for _, c := range open {
		check(c.close())
	}
}

// sizes are the numbers of live tasks to measure with.
func sizes() []int {
	s := []int{1_000, 10_000, 100_000}
	if *large {
		s = append(s, 1_000_000)
	}
	return s
}

// cleaning measures how long one writer's updates of random tasks take while the
// store cleans its log all the time, and how large the log gets.
func cleaning() {
	fmt.Println("| live tasks | updates | per second | p50 | p99.9 | longest | log, relative to live records |\n|---:|---:|---:|---:|---:|---:|---:|")
	for _, n := range sizes() {
		dir, remove := scratch()
		s, err := wal.Open(dir, nil)
		check(err)
		ids := make([]string, n)
		for i := range ids {
			ids[i] = id(i)
			check(s.Create(ctx, record(ids[i])))
		}
		// Enough to rewrite the whole log several times.
		updates := max(8*n, 300_000)
		took := make([]time.Duration, 0, updates)
		peak := int64(0)
		begin := time.Now()
		for i := range updates {
			r, err := s.Get(ctx, ids[rand.IntN(n)])
			check(err)
			r.StatusMessage = fmt.Sprintf("page %d of %d", i, updates)
			start := time.Now()
			err = s.Update(ctx, r)
			took = append(took, time.Since(start))
			check(err)
			if i%10_000 == 0 {
				peak = max(peak, logSize(dir))
			}
		}
		total := time.Since(begin)
		check(s.Close())
		report, err := wal.Inspect(ctx, dir)
		check(err)
		remove()
		slices.Sort(took)
		fmt.Printf("| %d | %d | %.0f | %v | %v | %v | %.2f |\n", n, updates, float64(updates)/total.Seconds(),
			took[updates/2].Round(100*time.Nanosecond), took[updates-updates/1000].Round(time.Microsecond), took[updates-1].Round(100*time.Microsecond),
			float64(peak)/float64(report.Live))
	}
}

func logSize(dir string) (n int64) {
	names, err := filepath.Glob(filepath.Join(dir, "0*"))
	check(err)
	for _, name := range names {
		if info, err := os.Stat(name); err == nil {
			n += info.Size()
		}
	}
	return n
}

// reopens measures how long opening takes, and the memory per task.
func reopens() {
	fmt.Println("| tasks | opened in | memory per task |\n|---:|---:|---:|")
	for _, n := range sizes() {
		dir, remove := scratch()
		s, err := wal.Open(dir, nil)
		check(err)
		for i := range n {
			check(s.Create(ctx, record(id(i))))
		}
		check(s.Close())
		var took []time.Duration
		var memory []int64
		for range *rounds {
			s = nil
			before := heap()
			start := time.Now()
			s, err = wal.Open(dir, nil)
			took = append(took, time.Since(start))
			check(err)
			memory = append(memory, int64(heap()-before)/int64(n))
			check(s.Close())
		}
		remove()
		fmt.Printf("| %d | %v | %d B |\n", n, median(took).Round(100*time.Microsecond), median(memory))
	}
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
