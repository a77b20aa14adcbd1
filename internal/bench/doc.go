// Command bench compares the durable store with others that could keep tasks on
// one machine: SQLite in WAL mode (modernc.org/sqlite), bbolt and badger. It also
// measures the limit of all of them, a bare append to a file.
//
//	go run -C internal/bench . [-rounds 5] [-for 300ms] [-dir DIR] [-only NAME] [-large]
//
// Every figure is the median of some rounds. In each round all candidates run one
// after the other, and ratios are medians of the ratios within the rounds. This
// makes them comparable on a machine whose disk is faster in one minute than in
// the next. The directory must be on the disk to measure.
//
// All store the same record of about 300 bytes under a fresh id of 36. "sync
// off" means that a commit survives the death of the process: a plain write,
// SQLite with synchronous=NORMAL, bbolt with NoSync, badger without
// SyncWrites. "sync on" means that it survives a loss of power: the bare append
// with a group commit, SQLite with synchronous=FULL, bbolt and badger synced. The
// candidates are used as their documentation says: many writers use bbolt's Batch,
// and SQLite has one connection.
package main
