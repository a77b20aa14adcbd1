package wal

import "os"

// On Windows these functions do nothing: the system has no sync for
// directories, and NTFS keeps their names in a journal.

func openDir(string) (*os.File, error) { return nil, nil }

func syncOpenDir(*os.File) error { return nil }

func closeDir(*os.File) error { return nil }

func syncDir(string) error { return nil }
