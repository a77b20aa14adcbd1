package gosdk

// Announced returns how many listens the adapter remembers between a
// connection and the SDK's handling.
func Announced(a *Adapter) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return len(a.announced)
}
