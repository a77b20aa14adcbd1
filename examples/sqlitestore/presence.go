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

// presence is the lock by which others know that a store is open. It is that of
// an empty SQLite database in an exclusive transaction, since SQLite's locks
// work on every system that SQLite works on.
type presence struct {
	file    string
	like    fs.FileInfo // the database, whose mode and owner it gets
	is      fs.FileInfo // what is locked, wherever it is now
	entered bool        // the number in its name was committed, and is nobody else's
	db      *sql.DB
	conn    *sql.Conn
}

// show makes the file, unless there is one, and locks it, or fails at once.
// Whoever may write the database must be able to lock it, too.
func show(file string, like fs.FileInfo) (*presence, error) {
	if err := create(file, like); err != nil {
		return nil, err
	}
	is, err := os.Lstat(file)
	if err != nil {
		return nil, err
	}
	p, err := lock(file)
	if err != nil {
		return nil, err
	}
	p.like, p.is = like, is
	if !p.inPlace() {
		return nil, errors.Join(ErrMoved, p.unlock())
	}
	return p, nil
}

// inPlace reports whether the file is where others look for it.
func (p *presence) inPlace() bool { return isAt(p.file, p.is) }

// isAt reports whether this file, and no other, is at the path.
func isAt(path string, is fs.FileInfo) bool {
	found, err := os.Lstat(path)
	return err == nil && os.SameFile(found, is)
}

// renew makes the file anew if it is gone, and young if not: there are programs
// that remove what seems to be of no use any more.
func (p *presence) renew() error {
	if p.inPlace() {
		now := time.Now()
		_ = os.Chtimes(p.file, now, now) // if it stays old and is removed, it comes back
		return nil
	}
	next, err := show(p.file, p.like)
	if hasCode(err, sqlite3.SQLITE_BUSY) {
		return ErrMoved // another store is at this place
	}
	if err != nil {
		return err
	}
	next.entered = p.entered
	last := *p
	*p = *next
	return last.unlock()
}

// lock locks a file that exists, or fails at once. Without a journal in memory,
// SQLite would put one beside the file.
func lock(file string) (*presence, error) {
	db, err := openDatabase(file, "journal_mode(MEMORY)")
	if err != nil {
		return nil, err
	}
	p := &presence{file: file, db: db}
	ctx := context.Background()
	if p.conn, err = db.Conn(ctx); err == nil {
		_, err = p.conn.ExecContext(ctx, "BEGIN EXCLUSIVE")
	}
	if err != nil {
		return nil, errors.Join(err, p.unlock())
	}
	return p, nil
}

// unlock unlocks the file.
func (p *presence) unlock() error {
	var err error
	if p.conn != nil {
		err = p.conn.Close()
	}
	return errors.Join(err, p.db.Close())
}

// Close unlocks the file and removes it, if it is this store's: the number of
// an Open that failed is given again, and at the path of a database that was
// removed there may be another. If another is looking at the file, it may stay;
// then they remove it.
func (p *presence) Close() error {
	// What inPlace compares is unique only as long as the file is open.
	remove := p.entered && p.inPlace()
	err := p.unlock()
	if remove {
		_ = os.Remove(p.file)
	}
	return err
}

// isOpen reports whether a store that has this file is open. In doubt it is:
// that keeps tasks waiting, where the opposite would run them twice.
func isOpen(file string) bool {
	if _, err := os.Lstat(file); errors.Is(err, fs.ErrNotExist) {
		return false
	}
	p, err := lock(file)
	return err != nil || p.unlock() != nil
}
