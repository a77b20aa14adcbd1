package sqlitestore

// Exec runs a statement on the connection that writes.
func Exec(s *Store, statement string) error { return s.exec(statement) }
