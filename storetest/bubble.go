package storetest

import (
	"regexp"
	"runtime"
	"testing"
	"testing/synctest"
	"time"
)

// RunInBubble is [Run] for stores that live in the process and get the time
// from [time.Now]. Each check runs in a bubble of [testing/synctest], in which
// time stands still while something runs. RunInBubble finds what Run cannot:
// goroutines that outlive Close, and calls that wait for each other, which it
// reports at once.
//
// The subject's Now and Advance are not used, and checks that set the time back
// are skipped. The store must not wait for anything outside the bubble, such as
// a network, and its calls must not sleep, because the checks of expiry need a
// time that stands still.
func RunInBubble(t *testing.T, s Subject) {
	t.Helper()
	if s.New == nil {
		t.Fatal("storetest: Subject.New is nil")
	}
	var sum summary
	for _, c := range checks {
		t.Run(c.name(), func(t *testing.T) {
			sum.run(newTrial(t, s, testing.Short()), func(trial *trial) { c.runInBubble(t, trial) })
		})
	}
	sum.log(t)
}

// runInBubble runs the check in a bubble of the test bubble and reports the
// result to the trial's test.
func (c check) runInBubble(bubble *testing.T, t *trial) {
	t.tb.Helper()
	if t.elsewhere = t.given; t.elsewhere == nil {
		t.elsewhere = new(Clock).Now
	}
	t.subject.Now, t.subject.Advance = time.Now, time.Sleep
	t.attempt(c, func() { t.performInBubble(bubble, c) })
}

// performInBubble performs the check in a bubble of the test bubble.
func (t *trial) performInBubble(bubble *testing.T, c check) {
	var number string
	performed := false
	defer func() {
		if p := recover(); p != nil && performed {
			t.errorf("goroutines of the store still run after Close, which must end them:\n\n%s", stacks(number))
		} else if p != nil {
			t.errorf("%v; calls that have not returned: %s\n\n%s", p, t.calls.names(), stacks(number))
		}
	}()
	synctest.Test(bubble, func(tb *testing.T) {
		number = bubbleNumber()
		t.tb = tb
		ended := make(chan struct{})
		go func() { // a failure ends this goroutine, and that of a bubble's test must return
			defer close(ended)
			t.perform(c)
		}()
		<-ended
		performed = true
	})
}

// bubbleNumber returns the number of the caller's bubble as it occurs in the
// first line of a goroutine's stack.
func bubbleNumber() string {
	line := make([]byte, 128)
	line = line[:runtime.Stack(line, false)]
	return string(regexp.MustCompile(`synctest bubble \d+\]`).Find(line))
}
