package storetest

import (
	"sync"
	"time"
)

// Clock is a clock that stands still until it is moved. Give its Now to the
// store that [Subject.New] returns, and both methods to the [Subject]. The zero
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

// Advance moves the clock by d. A negative d sets it back.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.since += d
}
