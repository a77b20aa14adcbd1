package main

import (
	"flag"
	"fmt"
	"log"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
)

var (
	rounds   = flag.Int("rounds", 5, "how often to run each candidate")
	duration = flag.Duration("for", 300*time.Millisecond, "how long each run takes")
	parent   = flag.String("dir", "", "the directory for the data; default: the system's temporary directory")
	only     = flag.String("only", "", "run only the measurements whose name contains this")
	large    = flag.Bool("large", false, "also measure with a million tasks")
)

func main() {
	flag.Parse()
	log.SetFlags(0)
	fmt.Printf("%s, %s/%s, %d CPUs, medians of %d rounds of %v\n\n", runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU(), *rounds, *duration)
	for _, m := range []struct {
		name string
		run  func()
	}{
		{"create, sync off, 1 writer", func() { creates(false, 1) }},
		{"create, sync off, 64 writers", func() { creates(false, 64) }},
		{"create, sync on, 1 writer", func() { creates(true, 1) }},
		{"create, sync on, 64 writers", func() { creates(true, 64) }},
		{"get", gets},
		{"update while cleaning", cleaning},
		{"reopen", reopens},
	} {
		if strings.Contains(m.name, *only) {
			fmt.Printf("### %s\n\n", m.name)
			m.run()
			fmt.Println()
		}
	}
}

// scratch returns a new directory and a function that removes it.
func scratch() (string, func()) {
	dir, err := os.MkdirTemp(*parent, "durabletasks-bench-")
	if err != nil {
		log.Fatal(err)
	}
	return dir, func() { _ = os.RemoveAll(dir) }
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

func median[T int | int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// table prints rates per second, and their ratios to the first candidate's.
func table(names []string, rates [][]float64) {
	fmt.Printf("| | per second | of %s |\n|---|---:|---:|\n", names[0])
	for i, name := range names {
		var ratios []float64
		for round := range rates[i] {
			ratios = append(ratios, rates[i][round]/rates[0][round])
		}
		fmt.Printf("| %s | %.0f | %.3g |\n", name, median(rates[i]), median(ratios))
	}
}
