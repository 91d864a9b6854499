package ledger

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// schema makes an empty database one of the newest version. It is public.
//
//go:embed schema.sql
var schema string

// steps are the migrations, of which there are as many as versions: the first
// makes an empty database one of the newest version, and step n leads from
// version n to n+1.
var steps = []string{
	schema,
	// Two indexes became one, and the committer adds to usage_days itself. The
	// index costs a second or two for each million rows, and calls go on meanwhile.
	`DROP INDEX IF EXISTS calls_by_key;
	DROP INDEX IF EXISTS calls_by_time;
	CREATE INDEX calls_by_time ON calls (time_ns, key);
	DROP TRIGGER IF EXISTS usage_hours_new;
	DROP TRIGGER IF EXISTS usage_hours_more`,
}

const (
	// applicationID marks a ledger among SQLite files: "Weir".
	applicationID = 0x57656972
	// busyTimeout is how long the writer waits for a lock before it says that
	// the database is locked, and tries again later.
	busyTimeout = 250 * time.Millisecond
	// pageSize is that of a new database, in bytes. Rows take some 500: with half
	// of it a group of them costs a tenth more; but a commit of one row writes half
	// a dozen pages, so that it should not be large.
	pageSize = 8 << 10
	// pageCache is the connection's, in KiB: it holds the upper pages of the
	// indexes of some tens of millions of rows.
	pageCache = 16 << 10
	// walLimit is the size to which the write-ahead log is cut back after a
	// reader has held it up.
	walLimit = 64 << 20
	// maxDelete is the most rows that one transaction of the retention deletes.
	maxDelete = 5000
)

// errGone is returned when the file under an open database has been removed or
// replaced: what was written since went nowhere.
var errGone = errors.New("the database file was removed or replaced under the ledger: it is opened again")

// database is the writer's connection. It belongs to one goroutine.
type database struct {
	path string
	conn *sqlite3.Conn
	file os.FileInfo // of the file that is open
	wal  os.FileInfo // of its write-ahead log, once there is one

	one, many inserter // of one row, and of rowsAtOnce
	sums      rollUp
	ends      []pending // of a transaction, kept for the next

	among, amend, watermark, advance, forget *sqlite3.Stmt
}

// openDatabase opens the ledger at path and brings its schema up to date; an
// empty or missing file becomes one. ctx interrupts whatever is done with it.
func openDatabase(ctx context.Context, path string) (d *database, err error) {
	conn, err := sqlite3.OpenContext(ctx, path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			closeConn(conn) // the error that is returned came first
		}
	}()
	conn.SetInterrupt(ctx)
	if err := conn.BusyTimeout(busyTimeout); err != nil {
		return nil, err
	}
	version, err := schemaVersion(conn)
	if err != nil {
		return nil, err
	}
	if version > len(steps) {
		return nil, newerError(version)
	}
	if version == 0 {
		if err := conn.Exec(fmt.Sprintf(`PRAGMA page_size = %d`, pageSize)); err != nil {
			return nil, err
		}
	}
	mode, err := textOf(conn, `PRAGMA journal_mode = WAL`)
	if err != nil {
		return nil, err
	}
	if mode != "wal" {
		return nil, fmt.Errorf("the database cannot use a write-ahead log (journal mode %s): put it on a local disk", mode)
	}
	err = conn.Exec(fmt.Sprintf(`PRAGMA synchronous = FULL; PRAGMA cache_size = -%d; PRAGMA journal_size_limit = %d`, pageCache, walLimit))
	if err != nil {
		return nil, err
	}
	if err := migrate(conn, steps); err != nil {
		return nil, err
	}
	d = &database{path: path, conn: conn}
	if err := d.prepare(); err != nil {
		return nil, fmt.Errorf("the tables are not those of schema.sql: %w", err)
	}
	if d.file, err = os.Stat(path); err != nil {
		return nil, err
	}
	return d, nil
}

// prepare makes the statements.
func (d *database) prepare() error {
	var one, many, hours, days, newHours, newDays *sqlite3.Stmt
	for _, p := range []struct {
		stmt **sqlite3.Stmt
		sql  string
	}{
		{&one, insertSQL(1)}, {&many, insertSQL(rowsAtOnce)},
		{&d.among, `SELECT seq FROM calls WHERE seq > ? AND seq <= ?`},
		{&hours, addSumsSQL("usage_hours", "hour")}, {&newHours, newSumsSQL("usage_hours", "hour")},
		{&days, addSumsSQL("usage_days", "day")}, {&newDays, newSumsSQL("usage_days", "day")},
		{&d.amend, amendSQL},
		{&d.watermark, `SELECT seq FROM usage_watermark`}, {&d.advance, `UPDATE usage_watermark SET seq = ?`},
		{&d.forget, `DELETE FROM calls WHERE seq IN (SELECT seq FROM calls WHERE time_ns < ? ORDER BY time_ns LIMIT ?)`},
	} {
		var err error
		if *p.stmt, _, err = d.conn.PrepareFlags(p.sql, sqlite3.PREPARE_PERSISTENT); err != nil {
			return err
		}
	}
	d.one.parameters, d.many.parameters = newParameters(one), newParameters(many)
	d.sums.hours, d.sums.newHours = newParameters(hours), newParameters(newHours)
	d.sums.days, d.sums.newDays = newParameters(days), newParameters(newDays)
	return nil
}

// schemaVersion returns the schema's version, 0 for an empty file, and an
// error when the file is a database of somebody else's.
func schemaVersion(conn *sqlite3.Conn) (int, error) {
	id, err := intOf(conn, `PRAGMA application_id`)
	if err != nil {
		return 0, err
	}
	version, err := intOf(conn, `PRAGMA user_version`)
	if err != nil {
		return 0, err
	}
	tables, err := intOf(conn, `SELECT count(*) FROM sqlite_schema`)
	if err != nil {
		return 0, err
	}
	if id != applicationID && (id != 0 || version != 0 || tables != 0) {
		return 0, errors.New("the file is an SQLite database, but not a ledger of Weir: name another file")
	}
	return int(version), nil
}

func newerError(version int) error {
	return fmt.Errorf("the ledger has schema version %d, and this program knows versions up to %d: use a newer weir", version, len(steps))
}

// migrate takes the database through the steps that it lacks, each in a
// transaction of its own.
func migrate(conn *sqlite3.Conn, steps []string) error {
	for {
		done, err := migrateStep(conn, steps)
		if done || err != nil {
			return err
		}
	}
}

func migrateStep(conn *sqlite3.Conn, steps []string) (done bool, err error) {
	version, err := intOf(conn, `PRAGMA user_version`)
	if err != nil || int(version) >= len(steps) {
		return true, err
	}
	tx, err := conn.BeginImmediate()
	if err != nil {
		return false, err
	}
	defer tx.End(&err)
	if version, err = intOf(conn, `PRAGMA user_version`); err != nil || int(version) >= len(steps) {
		return true, err // another process was quicker
	}
	to := version + 1
	if version == 0 {
		to = int64(len(steps))
	}
	err = conn.Exec(fmt.Sprintf("%s; PRAGMA application_id = %d; PRAGMA user_version = %d", steps[version], applicationID, to))
	if err != nil {
		return false, fmt.Errorf("migrate the ledger from schema version %d to %d: %w", version, to, err)
	}
	return false, nil
}

// add puts rows into the database, those that it does not have yet, and adds
// them to the hourly and daily sums, all in one transaction that is synced to the
// disk. Amendments come after the rows, which may be theirs. It returns how many
// rows were new, how many were amendments, and how many the database will never
// take.
func (d *database) add(rows []pending) (added, amended, refused int, err error) {
	tx, err := d.conn.BeginImmediate()
	if err != nil {
		return 0, 0, 0, err
	}
	defer func() {
		tx.End(&err)
		if err == nil {
			err = d.present()
		}
	}()
	if !d.watermark.Step() {
		return 0, 0, 0, errors.Join(errors.New("usage_watermark has no row"), d.watermark.Reset())
	}
	mark := d.watermark.ColumnInt64(0)
	if err := d.watermark.Reset(); err != nil {
		return 0, 0, 0, err
	}
	d.sums.reset()
	d.ends = d.ends[:0]
	for _, r := range rows {
		if !r.amends {
			d.ends = append(d.ends, r)
		}
	}
	if added, refused, err = d.put(d.ends, mark); err != nil {
		return 0, 0, 0, err
	}
	for _, r := range rows {
		if !r.amends {
			continue
		}
		switch err := d.change(r.fields); {
		case refusal(err):
			refused++
		case err != nil:
			return 0, 0, 0, err
		default:
			amended++
		}
	}
	if added == 0 {
		return 0, amended, refused, nil
	}
	if err := d.sums.write(); err != nil {
		return 0, 0, 0, err
	}
	if err := d.advance.BindInt64(1, mark+int64(len(d.ends))); err != nil {
		return 0, 0, 0, err
	}
	if err := d.advance.Exec(); err != nil {
		return 0, 0, 0, err
	}
	return added, amended, refused, nil
}

// forgetBefore deletes rows of calls received before t, at most maxDelete, and
// returns how many. The hourly sums stay.
func (d *database) forgetBefore(t time.Time) (int64, error) {
	if err := errors.Join(d.forget.BindInt64(1, t.UnixNano()), d.forget.BindInt64(2, maxDelete)); err != nil {
		return 0, err
	}
	if err := d.forget.Exec(); err != nil {
		return 0, err
	}
	return d.conn.Changes(), d.present()
}

// present returns errGone when the file that is open is not the one at path.
func (d *database) present() error {
	now, err := os.Stat(d.path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(now, d.file) {
		return errGone
	}
	if d.wal == nil && err == nil {
		if info, err := os.Stat(d.path + "-wal"); err == nil {
			d.wal = info
		}
	}
	return err
}

// setAside moves the write-ahead log of a database that is gone out of the way.
// SQLite would else apply it to the file that has taken its place, and spoil it.
// A log that is not the one that this connection wrote came with the new file.
func (d *database) setAside() error {
	wal := d.path + "-wal"
	now, err := os.Stat(wal)
	if errors.Is(err, fs.ErrNotExist) || err == nil && (d.wal == nil || !os.SameFile(now, d.wal)) {
		return nil
	}
	if err == nil {
		err = os.Rename(wal, wal+".replaced")
	}
	if err != nil {
		return fmt.Errorf("set the log of the replaced database aside: %w", err)
	}
	if err := os.Remove(d.path + "-shm"); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the index of the replaced database's log: %w", err)
	}
	return nil
}

func (d *database) close() error { return closeConn(d.conn) }

// closeConn closes a connection with its statements, which it would else keep.
func closeConn(conn *sqlite3.Conn) error {
	for _, stmt := range slices.Collect(conn.Stmts()) {
		stmt.Close() // repeats the error of its last use
	}
	return conn.Close()
}

// isLocked tells an error that another connection's transaction causes, and
// that ends with it.
func isLocked(err error) bool {
	return errors.Is(err, sqlite3.BUSY) || errors.Is(err, sqlite3.LOCKED)
}

// intOf returns the one number that a query yields.
func intOf(conn *sqlite3.Conn, sql string) (int64, error) {
	s, err := textOf(conn, sql)
	if err != nil {
		return 0, err
	}
	var n int64
	_, err = fmt.Sscan(s, &n)
	return n, err
}

// textOf returns the first value of the first row that a query yields.
func textOf(conn *sqlite3.Conn, sql string) (string, error) {
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return "", err
	}
	defer stmt.Close()
	if !stmt.Step() {
		if err := stmt.Err(); err != nil {
			return "", fmt.Errorf("%s: %w", sql, err)
		}
		return "", errors.New("no answer to " + sql)
	}
	return stmt.ColumnText(0), nil
}

// explain says what an error of the database means and what to do about it.
func explain(path string, err error) error {
	hint := ""
	switch {
	case isLocked(err):
		hint = "another program holds a lock on it: end its transaction"
	case errors.Is(err, sqlite3.READONLY), errors.Is(err, sqlite3.PERM), errors.Is(err, fs.ErrPermission):
		hint = "it may not be written: check owner and mode of the file and its directory, and whether the file system is mounted read-only"
	case errors.Is(err, sqlite3.FULL):
		hint = "the disk is full: make room"
	case errors.Is(err, sqlite3.NOTADB), errors.Is(err, sqlite3.CORRUPT):
		hint = "it is damaged or no SQLite file: move it away and a new one is made, or put a backup in its place, without a -wal and a -shm file of the old one beside it"
	case errors.Is(err, sqlite3.CANTOPEN), errors.Is(err, fs.ErrNotExist):
		hint = "it cannot be opened: check that its directory exists and may be written to"
	case errors.Is(err, sqlite3.IOERR):
		hint = "the disk is full or reports errors: check its space, then the system's log"
	}
	if hint == "" {
		return fmt.Errorf("ledger %s: %w", path, err)
	}
	return fmt.Errorf("ledger %s: %w; %s", path, err, hint)
}
