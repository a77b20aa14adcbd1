//go:build !unix

package sqlitestore

import (
	"io/fs"
	"os"
)

// isLinked reports whether a file has several names, which is not known here.
func isLinked(fs.FileInfo) bool { return false }

// giveTo does nothing where files get their rights from their directory.
func giveTo(*os.File, fs.FileInfo) {}
