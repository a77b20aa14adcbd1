package wal_test

import (
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// id is as long as those that the engine makes.
func id(i int) string { return fmt.Sprintf("%08x-0000-4000-8000-%012x", i, i) }

func fill(b testing.TB, dir string, n int, update bool) {
	s := mustOpen(b, dir, nil)
	for i := range n {
		r := task(id(i))
		mustCreate(b, s, r)
		if update {
			r.StatusMessage = "page 7 of 100"
			mustUpdate(b, s, r)
		}
	}
	mustClose(b, s)
}

func BenchmarkCreate(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, writers := range []int{1, 64} {
			b.Run(fmt.Sprintf("sync=%v/writers=%d", sync, writers), func(b *testing.B) {
				s := mustOpen(b, b.TempDir(), &wal.Options{Sync: sync})
				var next atomic.Int64
				b.SetParallelism((writers + runtime.GOMAXPROCS(0) - 1) / runtime.GOMAXPROCS(0))
				b.ReportAllocs()
				if writers == 1 {
					for b.Loop() {
						mustCreate(b, s, task(id(int(next.Add(1)))))
					}
					return
				}
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						mustCreate(b, s, task(id(int(next.Add(1)))))
					}
				})
			})
		}
	}
}

func BenchmarkGet(b *testing.B) {
	for _, n := range []int{1, 100_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			dir := b.TempDir()
			fill(b, dir, n, false)
			s := mustOpen(b, dir, nil)
			i := 0
			key := make([]string, 1024)
			for i := range key {
				key[i] = id(i * 7919 % n)
			}
			b.ReportAllocs()
			for b.Loop() {
				mustGet(b, s, key[i&1023])
				i++
			}
		})
	}
}

func BenchmarkReopen(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		b.Run(fmt.Sprintf("tasks=%d", n), func(b *testing.B) {
			if n > 10_000 && rounds(0, 1) == 0 {
				b.Skip("takes minutes; set DURABLETASKS_LONG=1")
			}
			dir := b.TempDir()
			fill(b, dir, n, true)
			var before, after runtime.MemStats
			var total time.Duration
			for b.Loop() {
				runtime.GC()
				runtime.ReadMemStats(&before)
				start := time.Now()
				s := mustOpen(b, dir, nil)
				total += time.Since(start)
				b.StopTimer()
				runtime.GC()
				runtime.ReadMemStats(&after)
				mustClose(b, s)
				b.StartTimer()
			}
			b.ReportMetric(float64(total.Milliseconds())/float64(b.N), "ms/open")
			b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/float64(n), "B/task")
		})
	}
}
