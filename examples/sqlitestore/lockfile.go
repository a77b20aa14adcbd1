package sqlitestore

import (
	"context"
	"database/sql"
	"errors"
	"io/fs"
	"os"
	"time"

	sqlite3 "modernc.org/sqlite/lib"
)

// lockFile is a locked file that shows others that a store is open. The file is
// an empty SQLite database in an exclusive transaction, since SQLite's locks work
// on every system that SQLite works on.
type lockFile struct {
	path       string
	database   fs.FileInfo // the file gets its mode and owner
	file       fs.FileInfo // the file that is locked, wherever it is now
	registered bool        // the number in its name was committed, so the file is this store's alone
	db         *sql.DB
	conn       *sql.Conn
}

// openLockFile makes the file, unless it exists, and locks it. It does not wait
// for the lock. Whoever may write the database must be able to lock the file.
func openLockFile(path string, database fs.FileInfo) (*lockFile, error) {
	if err := createFile(path, database); err != nil {
		return nil, err
	}
	file, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	l, err := lock(path)
	if err != nil {
		return nil, err
	}
	l.database, l.file = database, file
	if !l.inPlace() {
		return nil, errors.Join(ErrMoved, l.unlock())
	}
	return l, nil
}

// inPlace reports whether the file is where others look for it.
func (l *lockFile) inPlace() bool { return isAt(l.path, l.file) }

// isAt reports whether this very file is at the path.
func isAt(path string, file fs.FileInfo) bool {
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(found, file)
}

// refresh makes the file again if it is gone, and updates its time if not: some
// programs remove old files.
func (l *lockFile) refresh() error {
	if l.inPlace() {
		now := time.Now()
		_ = os.Chtimes(l.path, now, now) // if the file is removed because it is old, it is made again
		return nil
	}
	next, err := openLockFile(l.path, l.database)
	if hasCode(err, sqlite3.SQLITE_BUSY) {
		return ErrMoved // another store is at this place
	}
	if err != nil {
		return err
	}
	next.registered = l.registered
	last := *l
	*l = *next
	return last.unlock()
}

// lock locks a file that exists. It does not wait for the lock. The journal is
// in memory: SQLite would make another file for it.
func lock(path string) (*lockFile, error) {
	db, err := openDatabase(path, "journal_mode(MEMORY)")
	if err != nil {
		return nil, err
	}
	l := &lockFile{path: path, db: db}
	ctx := context.Background()
	if l.conn, err = db.Conn(ctx); err == nil {
		_, err = l.conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err != nil {
		return nil, errors.Join(err, l.unlock())
	}
	return l, nil
}

func (l *lockFile) unlock() error {
	var err error
	if l.conn != nil {
		err = l.conn.Close()
	}
	return errors.Join(err, l.db.Close())
}

// Close unlocks the file and removes it, if it is this store's: the number of an
// Open that failed is used again, and another database's store may be at this
// path. On a system where the file cannot be removed while another process looks
// at it, that process removes it.
func (l *lockFile) Close() error {
	// inPlace must be asked before unlock: the identity that it compares is
	// unique only while the file is open.
	remove := l.registered && l.inPlace()
	err := l.unlock()
	if remove {
		_ = os.Remove(l.path)
	}
	return err
}

// isLocked reports whether an open store holds this file. If that cannot be
// found out, it reports true: tasks then wait, where false would run them twice.
func isLocked(path string) bool {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	l, err := lock(path)
	return err != nil || l.unlock() != nil
}
