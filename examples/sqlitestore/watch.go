package sqlitestore

import (
	"context"
	"errors"
	"time"

	"github.com/mcp-durable-tasks/durabletasks"
)

// ErrMissed is why a Watch ends that has not looked for changes for so long
// that the log no longer has them all. The next Watch goes on with those that
// come then; whoever was watching looks at everything once.
var ErrMissed = errors.New("sqlitestore: changes were missed")

// The log of changes is trimmed to its newest keepChanges entries, from time
// to time. Whoever looks at it every WatchInterval is never that far behind,
// unless its process was stopped.
const (
	keepChanges = 1 << 14
	trimEvery   = 1 << 10
)

// changed adds a change to the log. It is part of the transaction that makes
// the change, so no reader sees one without the other, and entries are in the
// order of commits.
func (s *Store) changed(id string) error {
	result, err := s.write.logChange.Exec([]byte(id), s.own)
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

// Watch implements [durabletasks.Watcher]. It calls changed for what other
// stores that have the file open have committed since this one was opened, or
// since an earlier Watch has ended, within [Options].WatchInterval of the
// commit and the time that reading takes. It looks at the log of changes once
// in each interval, which costs some microseconds if there is nothing new.
//
// Errors: [ErrMissed]; [ErrBusy]; [durabletasks.ErrClosed]; ctx's; SQLite's,
// as text.
func (s *Store) Watch(ctx context.Context, changed func(id string)) error {
	// A change that comes between the opening of the store and the first look
	// must not be missed: its task may have been read in between.
	seen := s.seen.Load()
	defer func() { s.seen.Store(seen) }()
	tick := time.NewTicker(s.opts.WatchInterval)
	defer tick.Stop()
	for {
		ids, newest, err := s.news(ctx, seen)
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

// news returns the tasks that others have changed after the entry seen, each
// once, and the newest entry of the log.
func (s *Store) news(ctx context.Context, seen int64) (ids []string, newest int64, err error) {
	if err := s.begin(ctx); err != nil {
		return nil, seen, err
	}
	defer s.end()
	s.reappear(ctx)
	err = s.patiently(ctx, func() (err error) {
		ids, newest, err = s.readLog(ctx, seen)
		return err
	})
	return ids, newest, explained(ctx, "watch", err)
}

func (s *Store) readLog(ctx context.Context, seen int64) (ids []string, newest int64, err error) {
	newest = seen
	found, err := s.read.log.QueryContext(ctx, seen)
	if err != nil {
		return nil, newest, err
	}
	defer found.Close()
	told := make(map[string]bool)
	complete := false
	for found.Next() {
		var id []byte
		var process int64
		if err := found.Scan(&newest, &id, &process); err != nil {
			return nil, seen, err
		}
		if newest == seen {
			complete = true // the log still begins where the last look ended
		} else if process != s.own && !told[string(id)] {
			told[string(id)] = true
			ids = append(ids, string(id))
		}
	}
	switch err := found.Err(); {
	case err != nil:
		return nil, seen, err
	case !complete:
		return nil, newest, ErrMissed
	}
	return ids, newest, nil
}
