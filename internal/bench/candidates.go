package main

import (
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/dgraph-io/badger/v4"
	"go.etcd.io/bbolt"
	_ "modernc.org/sqlite"

	"github.com/mcp-durable-tasks/durabletasks"
	"github.com/mcp-durable-tasks/durabletasks/wal"
	"github.com/mcp-durable-tasks/durabletasks/wire"
)

// candidate keeps records. get is nil if it cannot read them.
type candidate struct {
	create func(id string) error
	get    func(id string) error
	close  func() error
}

// opener opens a candidate in a directory, for a number of concurrent writers.
type opener struct {
	name string
	open func(dir string, sync bool, writers int) (*candidate, error)
}

var openers = []opener{
	{"bare append", openAppend},
	{"wal.Store", openStore},
	{"badger", openBadger},
	{"bbolt", openBolt},
	{"SQLite", openSQLite},
}

var (
	ctx     = context.Background()
	created = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	payload = wire.MustParse(`{"tool":"crawl","arguments":{"url":"https://example.com/start","depth":3,"include":["/docs","/blog"],` +
		`"exclude":["/private","/tmp"],"headers":{"accept":"text/html","user-agent":"crawler/1.0"},"limit":1000}}`)

	// value is the record as the other candidates store it.
	value = make([]byte, 264)
)

func record(id string) durabletasks.Record {
	return durabletasks.Record{
		ID: id, Status: durabletasks.StatusWorking, CreatedAt: created, LastUpdatedAt: created,
		TTL: durabletasks.NoLimit, PollInterval: time.Second, Payload: payload,
	}
}

func openStore(dir string, sync bool, _ int) (*candidate, error) {
	s, err := wal.Open(dir, &wal.Options{Sync: sync})
	if err != nil {
		return nil, err
	}
	return &candidate{
		create: func(id string) error { return s.Create(ctx, record(id)) },
		get:    func(id string) error { _, err := s.Get(ctx, id); return err },
		close:  s.Close,
	}, nil
}

// openAppend appends to a file. With sync, the writers that arrive during a sync
// form a group, which its first member writes and syncs.
func openAppend(dir string, sync_ bool, writers int) (*candidate, error) {
	f, err := os.OpenFile(filepath.Join(dir, "log"), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	entry := make([]byte, 36+len(value))
	var mu sync.Mutex // held during a write
	write := func(b []byte) error {
		if _, err := f.Write(b); err != nil || !sync_ {
			return err
		}
		return f.Sync()
	}
	c := &candidate{close: f.Close}
	if writers == 1 || !sync_ {
		c.create = func(string) error {
			mu.Lock()
			defer mu.Unlock()
			return write(entry)
		}
		return c, nil
	}
	type group struct {
		data []byte
		done chan struct{}
		err  error
	}
	var queue sync.Mutex
	pending := &group{done: make(chan struct{})}
	c.create = func(string) error {
		queue.Lock()
		g := pending
		first := len(g.data) == 0
		g.data = append(g.data, entry...)
		queue.Unlock()
		if first {
			mu.Lock()
			queue.Lock()
			pending = &group{done: make(chan struct{})}
			queue.Unlock()
			g.err = write(g.data)
			mu.Unlock()
			close(g.done)
		}
		<-g.done
		return g.err
	}
	return c, nil
}

func openBadger(dir string, sync bool, _ int) (*candidate, error) {
	db, err := badger.Open(badger.DefaultOptions(dir).WithSyncWrites(sync).WithLogger(nil))
	if err != nil {
		return nil, err
	}
	return &candidate{
		create: func(id string) error {
			return db.Update(func(tx *badger.Txn) error { return tx.Set([]byte(id), value) })
		},
		get: func(id string) error {
			return db.View(func(tx *badger.Txn) error {
				item, err := tx.Get([]byte(id))
				if err != nil {
					return err
				}
				_, err = item.ValueCopy(nil)
				return err
			})
		},
		close: db.Close,
	}, nil
}

func openBolt(dir string, sync bool, writers int) (*candidate, error) {
	db, err := bbolt.Open(filepath.Join(dir, "db"), 0o600, &bbolt.Options{NoSync: !sync})
	if err != nil {
		return nil, err
	}
	bucket := []byte("tasks")
	if err := db.Update(func(tx *bbolt.Tx) error { _, err := tx.CreateBucket(bucket); return err }); err != nil {
		return nil, err
	}
	update := db.Update
	if writers > 1 {
		update = db.Batch
	}
	return &candidate{
		create: func(id string) error {
			return update(func(tx *bbolt.Tx) error { return tx.Bucket(bucket).Put([]byte(id), value) })
		},
		get: func(id string) error {
			return db.View(func(tx *bbolt.Tx) error {
				_ = append([]byte(nil), tx.Bucket(bucket).Get([]byte(id))...)
				return nil
			})
		},
		close: db.Close,
	}, nil
}

func openSQLite(dir string, sync bool, _ int) (*candidate, error) {
	level := "NORMAL"
	if sync {
		level = "FULL"
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "db")+"?_pragma=journal_mode(WAL)&_pragma=synchronous("+level+")")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE tasks (id TEXT PRIMARY KEY, record BLOB) WITHOUT ROWID"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO tasks VALUES (?, ?)")
	if err != nil {
		return nil, err
	}
	query, err := db.Prepare("SELECT record FROM tasks WHERE id = ?")
	if err != nil {
		return nil, err
	}
	return &candidate{
		create: func(id string) error { _, err := insert.Exec(id, value); return err },
		get: func(id string) error {
			var b []byte
			return query.QueryRow(id).Scan(&b)
		},
		close: db.Close,
	}, nil
}
