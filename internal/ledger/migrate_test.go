package ledger

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// ledgerOfVersion1 makes a ledger as the first version of the schema was, with
// rows of every kind and their sums, and returns how many rows it has.
func ledgerOfVersion1(t *testing.T, path string) (n int) {
	t.Helper()
	first, err := os.ReadFile("testdata/schema1.sql")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer closeConn(conn)
	err = conn.Exec(fmt.Sprintf("PRAGMA journal_mode = WAL; %s; PRAGMA application_id = %d; PRAGMA user_version = 1", first, applicationID))
	if err != nil {
		t.Fatal(err)
	}
	stmt, _, err := conn.Prepare(insertSQL(1))
	if err != nil {
		t.Fatal(err)
	}
	d := &database{conn: conn, one: inserter{parameters: newParameters(stmt)}}
	if d.amend, _, err = conn.Prepare(amendSQL); err != nil {
		t.Fatal(err)
	}
	d.sums.reset()
	r := rand.New(rand.NewPCG(11, 12))
	put := func(p pending) {
		t.Helper()
		n++
		if added, _, err := d.putOne(p, int64(n-1)); err != nil || added != 1 {
			t.Fatal(added, err)
		}
	}
	for i := range 300 / underRace {
		rec := anyRow(r, i%3 == 0)
		rec.ID = fmt.Sprint("old", i)
		rec.Time = noon.Add(time.Duration(r.Int64N(int64(60 * time.Hour))))
		put(pending{fields: appendRow(nil, rec, time.Now)})
		if i%4 == 0 {
			if err := d.change(appendAmendment(nil, amendmentOf(r, rec.ID))); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(pending{fields: appendStart(nil, start("crashed"), time.Now), crashed: true})
	// Its triggers kept the sums by day.
	if err := conn.Exec(fmt.Sprintf("INSERT INTO usage_hours %s; UPDATE usage_watermark SET seq = %d", sumsOf(hour), n)); err != nil {
		t.Fatal(err)
	}
	return n
}

// dump returns all that a query yields, each value with its type.
func dump(t *testing.T, conn *sqlite3.Conn, sql string) string {
	t.Helper()
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		t.Fatal(err)
	}
	defer stmt.Close()
	var all strings.Builder
	for stmt.Step() {
		for i := range stmt.ColumnCount() {
			switch stmt.ColumnType(i) {
			case sqlite3.FLOAT:
				fmt.Fprintf(&all, "%s=real %b ", stmt.ColumnName(i), stmt.ColumnFloat(i))
			case sqlite3.INTEGER:
				fmt.Fprintf(&all, "%s=%d ", stmt.ColumnName(i), stmt.ColumnInt64(i))
			case sqlite3.TEXT:
				fmt.Fprintf(&all, "%s=%q ", stmt.ColumnName(i), stmt.ColumnText(i))
			case sqlite3.NULL:
			default:
				t.Fatalf("%s has a value of type %v", stmt.ColumnName(i), stmt.ColumnType(i))
			}
		}
		all.WriteByte('\n')
	}
	if err := stmt.Err(); err != nil {
		t.Fatal(err)
	}
	return all.String()
}

// allTables are the tables, each with an order of its rows.
var allTables = map[string]string{"calls": "seq", "usage_hours": "1, 2, 3, 4, 5, 6", "usage_days": "1, 2, 3, 4, 5, 6", "usage_watermark": "only"}

func dumpFile(t *testing.T, path string) map[string]string {
	t.Helper()
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	all := make(map[string]string)
	for table, order := range allTables {
		all[table] = dump(t, conn, "SELECT * FROM "+table+" ORDER BY "+order)
	}
	return all
}

// TestFromVersion1: a ledger of the first version keeps every row and sum as it
// was, has the schema of a new one, and goes on.
func TestFromVersion1(t *testing.T) {
	for name, before := range map[string]string{"as it was": "", "without an index": "DROP INDEX calls_by_key"} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "usage.db")
			n := ledgerOfVersion1(t, path)
			old, err := sqlite3.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := old.Exec(before); err != nil {
				t.Fatal(err)
			}
			if err := old.Close(); err != nil {
				t.Fatal(err)
			}
			was := dumpFile(t, path)
			if r, err := OpenReader(path); err == nil || !strings.Contains(err.Error(), "start the gateway once") {
				t.Errorf("a reader of the old file: %v, %v", r, err)
			}

			db, err := openDatabase(context.Background(), path)
			if err != nil {
				t.Fatal(err)
			}
			defer db.close()
			for table, now := range dumpFile(t, path) {
				if now != was[table] || now == "" {
					t.Errorf("%s changed from\n%s\nto\n%s", table, was[table], now)
				}
			}
			fresh, err := openDatabase(context.Background(), filepath.Join(t.TempDir(), "new.db"))
			if err != nil {
				t.Fatal(err)
			}
			defer fresh.close()
			for _, pragma := range []string{"PRAGMA user_version", "PRAGMA application_id"} {
				a, aErr := textOf(db.conn, pragma)
				b, bErr := textOf(fresh.conn, pragma)
				if a != b || aErr != nil || bErr != nil {
					t.Errorf("%s: %s, %v and %s, %v", pragma, a, aErr, b, bErr)
				}
			}
			if a, b := shape(t, db.conn), shape(t, fresh.conn); a != b {
				t.Errorf("the migrated schema is\n%s\nand a new one\n%s", a, b)
			}
			sumsHold(t, db.conn)
			group := []pending{{fields: appendRow(nil, ended("old7"), time.Now)}} // which is there
			for i := range 2 * rowsAtOnce {
				group = append(group, pending{fields: appendRow(nil, ended(fmt.Sprint("new", i)), time.Now)})
			}
			if added, _, refused, err := db.add(group); err != nil || added != 2*rowsAtOnce || refused != 0 {
				t.Fatal(added, refused, err)
			}
			sumsHold(t, db.conn)
			if rows, err := intOf(db.conn, "SELECT count(*) FROM calls"); err != nil || int(rows) != n+2*rowsAtOnce {
				t.Errorf("%d rows, %v", rows, err)
			}
			if verdict, err := textOf(db.conn, "PRAGMA integrity_check"); err != nil || verdict != "ok" {
				t.Errorf("the database is %q, %v", verdict, err)
			}
		})
	}
}

// shape returns the columns, indexes and triggers of a database.
func shape(t *testing.T, conn *sqlite3.Conn) (all string) {
	t.Helper()
	for _, table := range slices.Sorted(maps.Keys(allTables)) {
		all += dump(t, conn, "SELECT *, '"+table+"' AS of FROM pragma_table_xinfo('"+table+"') ORDER BY cid")
	}
	return all + dump(t, conn, "SELECT type, name, tbl_name, iif(type = 'table', '', sql) AS sql FROM sqlite_schema ORDER BY name")
}

// TestCallsWhileALedgerMigrates: the database is locked for its migration as for
// anything else; calls go on, and their rows come after it.
func TestCallsWhileALedgerMigrates(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.db")
	n := ledgerOfVersion1(t, path)
	unlock := lockDatabase(t, path)
	l := open(t, Options{Path: path, Retention: KeepAll})
	for i := range 30 {
		l.Start(start(fmt.Sprint("new", i)))
		l.End(ended(fmt.Sprint("new", i)))
	}
	if st := l.State(); st.Rows != 0 || st.Pending != 30 {
		t.Errorf("%+v", st)
	}
	unlock()
	flush(t, l)
	if got := rows(t, l); len(got) != n+30 {
		t.Errorf("%d rows, want %d", len(got), n+30)
	}
}
