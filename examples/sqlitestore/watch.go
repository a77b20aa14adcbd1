package sqlitestore

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// ErrMissed is returned by a Watch that has not read the log of changes for so
// long that the log no longer has them all. The next Watch continues with later
// changes, and its caller must look at every task once.
var ErrMissed = errors.New("sqlitestore: changes were missed")

// The log of changes is trimmed to its newest keepChanges entries, once for every
// trimEvery. A Watch that reads it every WatchInterval is never that far behind,
// unless its process was stopped.
const (
	keepChanges = 1 << 14
	trimEvery   = 1 << 10
)

// logChanged adds a change to the log. It runs in the transaction that makes the
// change, so no reader sees one without the other, and the entries are in the
// order of the commits.
func (s *Store) logChanged(id string) error {
	result, err := s.write.logChange.Exec([]byte(id), s.process)
	if err != nil {
		return err
	}
	number, err := result.LastInsertId()
	if err != nil || number%trimEvery != 0 {
		return err
	}
	return s.trimLog()
}

func (s *Store) trimLog() error {
	_, err := s.write.trimLog.Exec(keepChanges)
	return err
}

// Watch implements [durabletasks.Watcher]. It calls changed for everything that
// other stores have committed to the file since this store was opened, or since an
// earlier Watch ended, within [Options].WatchInterval of the commit plus the time
// that reading takes. It reads the log of changes once in each interval, which
// takes some microseconds if nothing is new.
//
// Errors: [ErrMissed]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's, as
// text.
func (s *Store) Watch(ctx context.Context, changed func(id string)) error {
	// Changes between the opening of the store and this call count: the engine
	// may have read their tasks before.
	seen := s.seen.Load()
	defer func() { s.seen.Store(seen) }()
	tick := time.NewTicker(s.opts.WatchInterval)
	defer tick.Stop()
	for {
		ids, newest, err := s.changesSince(ctx, seen)
		seen = newest
		if err != nil {
			return err
		}
		for _, id := range ids {
			changed(id)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		case <-s.closing:
			return durabletasks.ErrClosed
		}
	}
}

// changesSince returns the tasks that other stores have changed after the log's
// entry seen, each once, and the log's newest entry.
func (s *Store) changesSince(ctx context.Context, seen int64) (ids []string, newest int64, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, seen, err
	}
	defer s.end()
	s.restoreLockFile(ctx)
	err = s.retryBusy(ctx, func() (err error) {
		ids, newest, err = s.readLog(ctx, seen)
		return err
	})
	return ids, newest, callError(ctx, "watch", err)
}

func (s *Store) readLog(ctx context.Context, seen int64) (ids []string, newest int64, err error) {
	newest = seen
	rows, err := s.read.changes.QueryContext(ctx, seen)
	if err != nil {
		return nil, newest, err
	}
	defer rows.Close()
	listed := make(map[string]bool)
	complete := false
	for rows.Next() {
		var id []byte
		var process int64
		if err := rows.Scan(&newest, &id, &process); err != nil {
			return nil, seen, err
		}
		if newest == seen {
			complete = true // the log still has the entry at which the last call ended
		} else if process != s.process && !listed[string(id)] {
			listed[string(id)] = true
			ids = append(ids, string(id))
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return nil, seen, err
	case !complete:
		return nil, newest, ErrMissed
	}
	return ids, newest, nil
}
