//go:build unix

package sqlitestore

import (
	"io/fs"
	"os"
	"syscall"
)

// isLinked reports whether a file has several names.
func isLinked(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}

// giveTo gives a file the owner and the group of another, as far as this process
// may: only the superuser may change the owner.
func giveTo(f *os.File, like fs.FileInfo) {
	stat, ok := like.Sys().(*syscall.Stat_t)
	if !ok {
		return
	}
	if f.Chown(int(stat.Uid), int(stat.Gid)) != nil {
		_ = f.Chown(-1, int(stat.Gid))
	}
}
