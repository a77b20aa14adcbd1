package sqlitestore

import "strings"

// What stands in the file's header, so that no other program's database is
// taken for a store. formatVersion changes when an older program could no
// longer read the tables.
const (
	applicationID = 0x6d637473
	formatVersion = 1
)

// schema makes the tables of a new database. The order of task's columns is
// that of their size: SQLite reads a row from its start, and a query that
// stops at the small columns touches no page of the large ones.
const schema = `
CREATE TABLE task (
	row               INTEGER PRIMARY KEY,
	id                BLOB    NOT NULL UNIQUE,
	version           INTEGER NOT NULL,
	process           INTEGER NOT NULL, -- whose task it is to run, see process.go
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
	questions         BLOB    NOT NULL, -- see record.go, as for the two that follow
	input_requests    BLOB    NOT NULL,
	input_responses   BLOB    NOT NULL,
	error             TEXT    NOT NULL, -- JSON, empty if absent, as what follows
	checkpoint        TEXT    NOT NULL,
	payload           TEXT    NOT NULL,
	result            TEXT    NOT NULL
) STRICT;
CREATE INDEX task_expiry ON task (expires_at);
CREATE INDEX task_unfinished ON task (process) WHERE ` + unfinished + `;

-- Every commit adds to this log, for Watch. The newest entry always stays, so
-- that numbers are never used twice; see watch.go.
CREATE TABLE change (
	number  INTEGER PRIMARY KEY,
	id      BLOB    NOT NULL,
	process INTEGER NOT NULL -- who made the change
) STRICT;
INSERT INTO change (number, id, process) VALUES (1, x'', 0);

-- The instances of the store that are open; see process.go.
CREATE TABLE process (
	number INTEGER PRIMARY KEY AUTOINCREMENT -- never used twice
) STRICT;
`

const unfinished = `status NOT IN ('completed', 'failed', 'cancelled')`

// fields are the columns of task that hold a record's own fields, in the order
// of fieldsOf and of readRecord.
var fields = []string{
	"expires_at", "status", "created_at", "last_updated_at", "ttl", "poll_interval", "cancel_requested", "unsupported_input",
	"status_message", "owner", "tool", "questions", "input_requests", "input_responses",
	"error", "checkpoint", "payload", "result",
}

// The statements, with what is to be bound to them in order.
var (
	// fields..., id, process
	insertTask = `INSERT INTO task (` + strings.Join(fields, ", ") + `, id, version, process)
		VALUES (` + strings.Repeat("?, ", len(fields)) + `?, 0, ?) ON CONFLICT (id) DO NOTHING`

	// fields..., id, expected version, now
	updateTask = `UPDATE task SET ` + strings.Join(fields, " = ?, ") + ` = ?, version = version + 1
		WHERE id = ? AND version = ? AND expires_at > ?`

	selectRecord = `SELECT id, version, ` + strings.Join(fields, ", ") + ` FROM task `
	taskByID     = selectRecord + `WHERE id = ? AND expires_at > ?` // id, now

	// row, process, now. A row's number is used again when its task is gone,
	// perhaps for another store's.
	taskByRow = selectRecord + `WHERE row = ? AND process = ? AND expires_at > ?`
)

const (
	storedVersion = `SELECT version FROM task WHERE id = ? AND expires_at > ?` // id, now

	logChange  = `INSERT INTO change (id, process) VALUES (?, ?)`                                // id, process
	logSweep   = `INSERT INTO change (id, process) SELECT id, ? FROM task WHERE expires_at <= ?` // process, now
	sweepTasks = `DELETE FROM task WHERE expires_at <= ?`                                        // now
	trimLog    = `DELETE FROM change WHERE number <= (SELECT max(number) FROM change) - ?`       // how many to keep
	newest     = `SELECT max(number) FROM change`                                                //
	changes    = `SELECT number, id, process FROM change WHERE number >= ? ORDER BY number`      // number

	addProcess    = `INSERT INTO process DEFAULT VALUES`
	isEntered     = `SELECT count(*) FROM process WHERE number = ?`
	enterAgain    = `INSERT INTO process (number) VALUES (?)`
	dropProcess   = `DELETE FROM process WHERE number = ?`
	otherProcess  = `SELECT number FROM process WHERE number <> ?` // own number
	adoptOrphans  = `UPDATE task SET process = ? WHERE ` + unfinished + ` AND process NOT IN (SELECT number FROM process)`
	ownUnfinished = `SELECT row FROM task WHERE process = ? AND ` + unfinished
)
