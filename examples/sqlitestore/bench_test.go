package sqlitestore_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mcp-durable-tasks/durabletasks/examples/sqlitestore"
	"github.com/mcp-durable-tasks/durabletasks/storetest"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

func BenchmarkStore(b *testing.B) { storetest.Benchmark(b, subject()) }

// BenchmarkCreate shows what Sync costs.
func BenchmarkCreate(b *testing.B) {
	for _, sync := range []bool{false, true} {
		for _, parallel := range []bool{false, true} {
			b.Run(fmt.Sprintf("sync=%v/parallel=%v", sync, parallel), func(b *testing.B) {
				s := openStore(b, filepath.Join(b.TempDir(), "tasks.db"), &sqlitestore.Options{Sync: sync})
				var n atomic.Int64
				create := func() {
					if err := s.Create(context.Background(), newRecord(fmt.Sprint(n.Add(1)))); err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				if !parallel {
					for b.Loop() {
						create()
					}
					return
				}
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						create()
					}
				})
			})
		}
	}
}

// BenchmarkProgress changes only the status message of a task with a payload.
func BenchmarkProgress(b *testing.B) {
	for _, size := range []int{100, 64 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("payload=%d", size), func(b *testing.B) {
			s := openStore(b, filepath.Join(b.TempDir(), "tasks.db"), nil)
			r := newRecord("task")
			r.Payload = wire.MustParse(`"` + strings.Repeat("x", size) + `"`)
			if err := s.Create(context.Background(), r); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for version := int64(0); b.Loop(); version++ {
				r.StatusMessage = fmt.Sprint("step ", version)
				r.Version = version
				if err := s.Update(context.Background(), r); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkWatch measures the time from a commit in one store until the Watch of
// another reports it.
func BenchmarkWatch(b *testing.B) {
	path := filepath.Join(b.TempDir(), "tasks.db")
	committing, watching := openStore(b, path, nil), openStore(b, path, nil)
	reported := make(chan struct{})
	ended := make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		defer close(ended)
		_ = watching.Watch(ctx, func(string) { reported <- struct{}{} })
	}()
	r := newRecord("task")
	if err := committing.Create(context.Background(), r); err != nil {
		b.Fatal(err)
	}
	<-reported
	for version := int64(0); b.Loop(); version++ {
		b.StopTimer()
		time.Sleep(time.Duration(version%50) * time.Millisecond) // at any moment between two reads of the log
		b.StartTimer()
		r.Version = version
		if err := committing.Update(context.Background(), r); err != nil {
			b.Fatal(err)
		}
		<-reported
	}
	cancel()
	<-ended
}
