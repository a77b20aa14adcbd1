// Package sqlitestore keeps tasks in a SQLite database, which any number of
// processes on one machine may have open: the answer for a server that every
// editor window starts anew. It is also the worked example for authors of
// other stores; README.md tells how it came to be.
//
// # Several processes
//
// Every process may create, read, answer and cancel every task. A task is run
// by the process that created it, or by the one that took it over when that
// process had closed its store or died: [Store.Scan], and with it
// [durabletasks.TaskLifecycle.Recover], shows the tasks of processes that are
// gone, each to one caller, and never those of processes that are alive. An
// operating system lock tells which are alive, so no process is taken for dead
// because it is slow, stopped, or was asleep. (Tasks expire nevertheless, whoever
// runs them.) Call Recover when a server starts, and now and then while it runs,
// and let [durabletasks.TaskLifecycle.Start] begin workers: whoever creates a
// task and gets a context for it later may find that Recover has resumed it.
//
// What one process commits, the engine of another hears within
// [Options].WatchInterval, 50 ms by default: a cancellation that reached the
// wrong window, or the answer that a worker waits for.
//
// The database and the files beside it must stay where they are while anybody
// has them open. A store whose database was moved or removed takes nothing over
// and reports [ErrMoved]; one that misses only its own file, since a program has
// cleaned up, makes it anew at its next look. And the program that has a store
// open must not open any of these files by itself, not even to read or copy
// them: when a process closes a file, POSIX drops all its locks on it, those of
// SQLite included, and others take it for dead. Another process may, so copy a
// database with SQLite's own command and VACUUM INTO.
//
// All must come to the database by one name of its file. Symbolic links are
// followed, and a file with hard links is refused where the system tells of
// them; but the file must not be renamed without those beside it, nor mounted
// alone at another place, as containers do with single files. Mount its
// directory.
//
// The processes must run on one machine, with one clock, under users who may
// all write the database and its directory, and the file must be on a local
// file system: SQLite's write-ahead log and its locks do not work across a
// network.
//
// # Durability
//
// What was acknowledged survives the death of every process, and with
// [Options].Sync a loss of power. When the disk fails a commit, the call
// reports it and this and every other process read the old state; whether a
// crash brings the new one back is not known.
//
// # Cost
//
// One writer at a time, over all processes; readers never wait for it. A reader
// that stays in one transaction, such as another program's, lets the
// write-ahead log grow; it is cut to 8 MiB when the reader has left. A commit
// rewrites the task's whole row, whichever column has changed, so a progress
// message on a task with a payload of a mebibyte writes a mebibyte. Keep
// payloads and checkpoints small, or put what is large elsewhere and its name
// into them. Removed tasks leave free space in the file for new ones; the file
// itself does not shrink, and what was removed stays readable in it until it is
// overwritten. The file is made with mode 0600, and those beside it have its
// mode and owner: they hold task ids, which are bearer tokens.
package sqlitestore
