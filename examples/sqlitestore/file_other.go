//go:build !unix

package sqlitestore

import (
	"io/fs"
	"os"
)

// isLinked reports whether a file has several names. Here it cannot tell.
func isLinked(fs.FileInfo) bool { return false }

// giveTo does nothing: files get their permissions from their directory.
func giveTo(*os.File, fs.FileInfo) {}
