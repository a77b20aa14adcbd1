package main

import (
	"fmt"
	"os"
	"testing"
)

// TestMain lets the test binary be the server, which the story starts by
// running its own executable.
func TestMain(m *testing.M) {
	if len(os.Args) == 3 && os.Args[1] == "-serve" {
		if err := runServer(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestStory(t *testing.T) {
	if err := tell(testing.Verbose()); err != nil {
		t.Fatal(err)
	}
}
