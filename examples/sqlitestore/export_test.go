package sqlitestore

import "context"

// Exec runs a statement on the connection that writes.
func Exec(s *Store, statement string) error { return s.exec(statement) }

// Presence returns the file by which others know that a store is open.
func Presence(s *Store) string { return s.fileOf(s.own) }

// Explained returns an error as a caller of the store sees it.
func Explained(err error) error { return explained(context.Background(), "test", err) }
