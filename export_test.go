package durabletasks

import "time"

// Held counts what the process-local half of an engine holds: entries for
// tasks, the contexts, listeners and timers in them, and slots of workers.
type Held struct {
	Tasks, Users, Contexts, Listeners, Timers, Running, Slots int
}

// Held returns what is held now.
func (l *TaskLifecycle) Held() Held {
	var h Held
	l.workers.mu.Lock()
	h.Slots = l.workers.slots
	l.workers.mu.Unlock()
	l.local.mu.Lock()
	defer l.local.mu.Unlock()
	for _, t := range l.local.tasks {
		h.Tasks++
		h.Users += t.users
		h.Contexts += len(t.contexts)
		h.Listeners += len(t.listeners)
		if t.timer != nil {
			h.Timers++
		}
		if t.running || t.asking {
			h.Running++
		}
	}
	return h
}

// SetWall sets the wall clock of an engine apart from its steady one.
func (l *TaskLifecycle) SetWall(wall func() time.Time) { l.wall = wall }
