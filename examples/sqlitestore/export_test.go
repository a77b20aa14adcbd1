package sqlitestore

import "context"

// Exec runs a statement on the connection that writes.
func Exec(s *Store, statement string) error { return s.exec(statement) }

// LockPath returns the path of the store's lock file.
func LockPath(s *Store) string { return s.lockPath(s.process) }

// CallError returns an error as a caller of the store sees it.
func CallError(err error) error { return callError(context.Background(), "test", err) }
