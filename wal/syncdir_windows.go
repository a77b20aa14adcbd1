package wal

// syncDir does nothing: Windows has no sync for directories, and NTFS keeps
// its names in a journal.
func syncDir(string) error { return nil }
