package storetest

import (
	"sync"
	"time"
)

// Clock is a time that stands still until it is moved. Give its Now to the
// store that [Subject.New] makes, and both methods to the [Subject]. The zero
// value stands at the start of 2026. It is safe for concurrent use.
type Clock struct {
	mu    sync.Mutex
	since time.Duration
}

// Now returns the clock's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Date(2026, time.January, 1, 0, 0, 0, 0, time.UTC).Add(c.since)
}

// Advance moves the clock by d; back, if d is negative.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += d
}
