package wal_test

import (
	"errors"
	"fmt"
	"os"
	"reflect"
	"strconv"
	"testing"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
)

// workloadSegment makes the workload fill, clean and drop many segments; in a
// large segment it leaves much in the last one.
const (
	workloadSegment = 512
	largeSegment    = 1 << 20
)

// workload is a script that makes a store do everything it can do: all kinds
// of entries, new segments, copies, removals, a sweep and a compaction.
func workload() script {
	var sc script
	add := func(step func(s *wal.Store) error) { sc.steps = append(sc.steps, step) }
	create := func(r durabletasks.Record) {
		add(func(s *wal.Store) error { return s.Create(ctx, r) })
	}
	for i := range 6 {
		id := fmt.Sprint("task-", i)
		sc.ids = append(sc.ids, id)
		r := task(id)
		if i == 3 {
			r.Payload = text(700)
		}
		create(r)
	}
	sc.ids = append(sc.ids, "short", "late")
	for i := range 80 {
		id := fmt.Sprint("task-", []int{0, 1, 0, 2, 4, 5, 0}[i%7])
		add(func(s *wal.Store) error {
			r, err := s.Get(ctx, id)
			if err != nil {
				return err
			}
			r.StatusMessage = fmt.Sprintf("page %d of a hundred, and it takes its time, as pages of this length do, with all that is written on them", i)
			err = s.Update(ctx, r)
			return err
		})
		if i == 30 {
			short := task("short")
			short.CreatedAt, short.TTL = epoch.Add(-10), 20
			create(short)
			add(func(s *wal.Store) error { _, err := s.Sweep(ctx, epoch.Add(100)); return err })
		}
	}
	add(func(s *wal.Store) error { return s.Compact(ctx) })
	create(task("late"))
	return sc
}

// workloadStates are the contents after each number of the workload's steps.
func workloadStates(t testing.TB) (script, []contents) {
	t.Helper()
	sc := workload()
	dir := ramDir(t)
	s, f := openFaulty(t, dir, nil, workloadSegment)
	states := sc.history(t, s)
	drops := 0
	for _, step := range f.seen {
		if step == "drop" {
			drops++
		}
	}
	if drops < 3 {
		t.Fatalf("the workload has made the store drop segments %d times only", drops)
	}
	mustClose(t, s)
	return sc, states
}

// childWorkload runs the workload from its beginning on the directory and
// prints the number of each step that was acknowledged. After a step that
// fails it checks that the store behaves as it must. Arguments: directory,
// sync, segment size.
func childWorkload(args []string) {
	sync, _ := strconv.ParseBool(args[1])
	segment, _ := strconv.Atoi(args[2])
	s, err := wal.OpenSeam(args[0], fixed(&wal.Options{Sync: sync}), segment, nil)
	if err != nil {
		fmt.Println("not opened")
		if errors.Is(err, wal.ErrCorrupt) {
			exit("a failed system call was taken for corruption: %v", err)
		}
		os.Exit(0)
	}
	sc := workload()
	t := new(testing.T)
	for i, step := range sc.steps {
		before := read(t, s, sc.ids)
		if err := step(s); err == nil {
			fmt.Println(i + 1)
			continue
		} else if !errors.Is(err, wal.ErrFailed) {
			// Compact may fail to give space back; that is no failure.
			if i != len(sc.steps)-2 {
				exit("step %d: %v", i, err)
			}
			continue
		}
		if after := read(t, s, sc.ids); !reflect.DeepEqual(before, after) {
			exit("step %d has failed, but reads have changed", i)
		}
		if err := s.Create(ctx, task("refused")); !errors.Is(err, wal.ErrFailed) || errors.Is(err, wal.ErrOutcomeUnknown) {
			exit("after a failure: %v, want ErrFailed", err)
		}
		break
	}
	_ = s.Close()
	// The directory must be free, whatever has happened.
	if s, err := wal.Open(args[0], fixed(nil)); errors.Is(err, wal.ErrLocked) {
		exit("the directory is still locked after Close")
	} else if err == nil {
		_ = s.Close()
	}
	fmt.Println("closed")
}

// childReopen opens the directory and closes it. Arguments: directory, sync.
func childReopen(args []string) {
	s, err := wal.OpenSeam(args[0], fixed(&wal.Options{Sync: args[1] == "true"}), workloadSegment, nil)
	if err != nil {
		exit("%v", err)
	}
	if err := s.Close(); err != nil {
		exit("%v", err)
	}
}

// recovered is how many tasks childRecover creates.
const recovered = 8

// childRecover opens the directory with sync and creates some tasks, of which
// it prints each. Argument: directory.
func childRecover(args []string) {
	s, err := wal.Open(args[0], fixed(&wal.Options{Sync: true}))
	if err != nil {
		exit("%v", err)
	}
	for i := range recovered {
		r := task(fmt.Sprint("new-", i))
		r.Payload = text(300)
		if err := s.Create(ctx, r); err != nil {
			exit("%v", err)
		}
		fmt.Println(i + 1)
	}
}
