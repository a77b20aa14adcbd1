package durabletasks

import (
	"sync"
	"sync/atomic"
	"time"
)

// clockPatience is how long a forward jump of the wall clock has to last
// before a [Clock] believes it.
const clockPatience = 10 * time.Minute

// Clock tells the time for decisions that cannot be taken back, such as that a
// task has expired: a wall clock that does not jump ahead. It runs with the
// monotonic clock; it follows the wall clock back within a millisecond, since a
// task that lives longer harms nobody, and forward only after the wall clock has
// stayed ahead for ten minutes. So a clock that is wrong for a moment, or a machine
// that wakes from sleep, makes nothing expire that should not.
//
// What it cannot know is whether the wall clock was right when it began: its
// first reading is believed.
//
// The engine and the stores of this module expire tasks by such a clock, and
// so should other stores. The zero value is ready to use. It is safe for
// concurrent use and must not be copied after first use.
type Clock struct {
	recent atomic.Pointer[belief] // good for a millisecond

	mu     sync.Mutex
	start  time.Time     // the first reading, with its monotonic part
	offset time.Duration // of the wall clock from start + elapsed, as believed
	ahead  bool          // the wall clock is ahead of what is believed,
	since  time.Duration // since this much had elapsed,
	least  time.Duration // by at least this offset
}

// belief is what a Clock believed at some moment.
type belief struct {
	at   time.Time // with its monotonic part
	time time.Time // that was believed
}

// Now returns the time. It compares the wall clock once in a millisecond, so
// that callers on several processors seldom share a lock.
func (c *Clock) Now() time.Time {
	now := time.Now()
	if r := c.recent.Load(); r != nil {
		if elapsed := now.Sub(r.at); elapsed >= 0 && elapsed < time.Millisecond {
			return r.time.Add(elapsed)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.start.IsZero() {
		c.start = now
	}
	believed := c.read(now.Round(0), now.Sub(c.start))
	c.recent.Store(&belief{now, believed})
	return believed
}

// read takes one reading of the wall clock, when elapsed has passed since the
// first by the monotonic clock.
func (c *Clock) read(wall time.Time, elapsed time.Duration) time.Time {
	steady := c.start.Round(0).Add(elapsed)
	offset := wall.Sub(steady)
	switch {
	case offset <= c.offset:
		c.offset, c.ahead = offset, false
	case !c.ahead:
		c.ahead, c.since, c.least = true, elapsed, offset
	default:
		c.least = min(c.least, offset)
		if elapsed-c.since >= clockPatience {
			c.offset, c.ahead = c.least, false
		}
	}
	return steady.Add(c.offset)
}
