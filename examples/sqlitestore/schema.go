package sqlitestore

import "strings"

// The file's header holds these, so that no other program's database is taken
// for a store. formatVersion changes when older programs can no longer read the
// tables.
const (
	applicationID = 0x6d637473
	formatVersion = 1
)

// schema makes the tables of a new database. The columns of task are ordered by
// size: SQLite reads a row from its start, so a query that needs only the small
// columns reads no page of the large ones.
const schema = `
CREATE TABLE task (
	row               INTEGER PRIMARY KEY,
	id                BLOB    NOT NULL UNIQUE,
	version           INTEGER NOT NULL,
	process           INTEGER NOT NULL, -- the store that runs the task; see process.go
	expires_at        INTEGER NOT NULL, -- created_at + ttl, or the largest integer
	status            TEXT    NOT NULL,
	created_at        INTEGER NOT NULL, -- milliseconds since 1970
	last_updated_at   INTEGER NOT NULL, -- milliseconds since 1970
	ttl               INTEGER NOT NULL, -- nanoseconds, -1 for none
	poll_interval     INTEGER NOT NULL, -- nanoseconds, -1 for none
	cancel_requested  INTEGER NOT NULL,
	unsupported_input INTEGER NOT NULL, -- the bits of wire.InputKinds
	status_message    BLOB    NOT NULL,
	owner             BLOB    NOT NULL,
	tool              BLOB    NOT NULL,
	questions         BLOB    NOT NULL, -- these three are encoded as record.go says
	input_requests    BLOB    NOT NULL,
	input_responses   BLOB    NOT NULL,
	error             TEXT    NOT NULL, -- these four are JSON, empty if absent
	checkpoint        TEXT    NOT NULL,
	payload           TEXT    NOT NULL,
	result            TEXT    NOT NULL
) STRICT;
CREATE INDEX task_expiry ON task (expires_at);
CREATE INDEX task_unfinished ON task (process) WHERE ` + unfinished + `;

-- Every commit adds to this log, which Watch reads; see watch.go. The newest
-- entry always stays, so that no number is used twice.
CREATE TABLE change (
	number  INTEGER PRIMARY KEY,
	id      BLOB    NOT NULL,
	process INTEGER NOT NULL -- the store that made the change
) STRICT;
INSERT INTO change (number, id, process) VALUES (1, x'', 0);

-- The stores that are open; see process.go.
CREATE TABLE process (
	number INTEGER PRIMARY KEY AUTOINCREMENT -- never reused
) STRICT;
`

const unfinished = `status NOT IN ('completed', 'failed', 'cancelled')`

// fields are the columns of task that hold a record's own fields, in the order
// that encodeFields and readRecord use.
var fields = []string{
	"expires_at", "status", "created_at", "last_updated_at", "ttl", "poll_interval", "cancel_requested", "unsupported_input",
	"status_message", "owner", "tool", "questions", "input_requests", "input_responses",
	"error", "checkpoint", "payload", "result",
}

// The statements. The comments list the parameters in order.
var (
	// fields..., id, process
	insertTask = `INSERT INTO task (` + strings.Join(fields, ", ") + `, id, version, process)
		VALUES (` + strings.Repeat("?, ", len(fields)) + `?, 0, ?) ON CONFLICT (id) DO NOTHING`

	// fields..., id, expected version, now
	updateTask = `UPDATE task SET ` + strings.Join(fields, " = ?, ") + ` = ?, version = version + 1
		WHERE id = ? AND version = ? AND expires_at > ?`

	selectRecord = `SELECT id, version, ` + strings.Join(fields, ", ") + ` FROM task `
	selectByID   = selectRecord + `WHERE id = ? AND expires_at > ?` // id, now

	// row, process, now. SQLite uses a row's number again when its task is
	// gone, perhaps for a task of another store; hence the process.
	selectByRow = selectRecord + `WHERE row = ? AND process = ? AND expires_at > ?`
)

const (
	selectVersion   = `SELECT version FROM task WHERE id = ? AND expires_at > ?`                                             // id, now
	deleteExpired   = `DELETE FROM task WHERE expires_at <= ?`                                                               // now
	selectOwn       = `SELECT row FROM task WHERE process = ? AND ` + unfinished                                             // process
	takeOverOrphans = `UPDATE task SET process = ? WHERE ` + unfinished + ` AND process NOT IN (SELECT number FROM process)` // process

	logChange     = `INSERT INTO change (id, process) VALUES (?, ?)`                                // id, process
	logExpired    = `INSERT INTO change (id, process) SELECT id, ? FROM task WHERE expires_at <= ?` // process, now
	trimLog       = `DELETE FROM change WHERE number <= (SELECT max(number) FROM change) - ?`       // how many to keep
	selectNewest  = `SELECT max(number) FROM change`
	selectChanges = `SELECT number, id, process FROM change WHERE number >= ? ORDER BY number` // number

	addProcess    = `INSERT INTO process DEFAULT VALUES`
	insertProcess = `INSERT INTO process (number) VALUES (?) ON CONFLICT DO NOTHING` // process
	deleteProcess = `DELETE FROM process WHERE number = ?`                           // process
	selectOthers  = `SELECT number FROM process WHERE number <> ?`                   // process
)
