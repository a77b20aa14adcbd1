// Package sqlitestore keeps tasks in a SQLite database that any number of
// processes on one machine may have open. Use it for a server that every editor
// window starts anew. It is also the worked example for authors of other stores;
// see README.md.
//
// # Several processes
//
// Every process may create, read, answer and cancel every task. The process that
// created a task runs it. If that process closes its store or dies, another takes
// the task over: [Store.Scan], and with it [durabletasks.TaskLifecycle.Recover],
// shows the tasks of processes that are gone, each to one caller, and never the
// tasks of processes that are alive. An operating system lock tells which
// processes are alive, so none is taken for dead because it is slow, stopped or
// asleep. (Tasks expire all the same, whoever runs them.)
//
// Call Recover when a server starts, and at intervals while it runs. Begin
// workers with [durabletasks.TaskLifecycle.StartTask]: if a host creates a task
// and gets a context for it later, Recover may resume the task in between.
//
// The engine of one process learns what another has committed within
// [Options].WatchInterval, 50 ms by default. So a cancellation that reached the
// wrong window, or an answer, still gets to the worker.
//
// # Rules for the files
//
// The database and the files next to it must stay where they are while a process
// has them open. A store whose database was moved or removed takes nothing over
// and reports [ErrMoved]. A store that misses only its own lock file, because
// another program has cleaned up, makes the file again.
//
// A program that has a store open must not open any of these files itself, not
// even to read or copy them: when a process closes a file, POSIX drops all its
// locks on that file, including SQLite's, and other processes take it for dead.
// Another process may copy a database, with SQLite's VACUUM INTO.
//
// All processes must open the database by one name. Symbolic links are followed.
// A file with hard links is refused, where the system reports them. Do not rename
// the file without the files next to it. Do not mount it alone at another place,
// as containers do with single files: mount its directory.
//
// The processes must run on one machine, with one clock, under users who may all
// write the database and its directory. The file must be on a local file system:
// SQLite's write-ahead log and its locks do not work across a network.
//
// # Durability
//
// What was acknowledged survives the death of every process, and with
// [Options].Sync a loss of power. When the disk fails a commit, the call reports
// it, and this and every other process read the old state. A later crash may
// bring the new state back.
//
// # Cost
//
// There is one writer at a time, over all processes; readers never wait for it. A
// reader that stays in one transaction, such as another program's, lets the
// write-ahead log grow; the log is cut to 8 MiB when the reader has left.
//
// A commit rewrites the task's whole row, so a progress message on a task with a
// payload of 1 MiB writes 1 MiB. Keep payloads and checkpoints small, or store
// what is large elsewhere and its name in them.
//
// New tasks use the space of removed ones; the file itself does not shrink, and
// removed records stay readable in it until they are overwritten. The file
// holds task ids, which are bearer tokens. It is made with mode 0600, and the
// files next to it get its mode and owner.
package sqlitestore
