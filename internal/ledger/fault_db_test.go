package ledger

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/ncruces/go-sqlite3"
)

// lockDatabase takes the one lock that keeps every other writer out, until the
// function it returns is called.
func lockDatabase(t *testing.T, path string) (unlock func()) {
	t.Helper()
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec("BEGIN EXCLUSIVE"); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := conn.Exec("ROLLBACK"); err != nil {
			t.Error(err)
		}
		if err := conn.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestDatabaseFaults: whatever is wrong with the database, calls go on, the
// state says what it is, and when it is well again every row is there once.
func TestDatabaseFaults(t *testing.T) {
	garbage := bytes.Repeat([]byte("this is no database "), 1000)
	for _, c := range []struct {
		name   string
		reason string
		lost   int // rows that went with the file
		fault  func(t *testing.T, path string) (heal func())
	}{
		{"locked", "another program holds a lock on it", 0, lockDatabase},
		{"replaced by garbage", "move it away", 10, func(t *testing.T, path string) func() {
			replace(t, path, garbage)
			return func() { remove(t, path) }
		}},
		{"replaced by garbage, and a backup put back", "move it away", 0, func(t *testing.T, path string) func() {
			backup := path + ".bak"
			if err := os.Rename(path, backup); err != nil {
				t.Fatal(err)
			}
			moveLog(t, path, backup)
			replace(t, path, garbage)
			return func() {
				if err := os.Rename(backup, path); err != nil {
					t.Fatal(err)
				}
				moveLog(t, backup, path)
			}
		}},
		{"replaced by another program's database", "not a ledger of Weir", 10, func(t *testing.T, path string) func() {
			remove(t, path)
			conn, err := sqlite3.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.Exec("CREATE TABLE theirs (x)"); err != nil {
				t.Fatal(err)
			}
			return func() { remove(t, path) }
		}},
		{"replaced by a newer weir's", "use a newer weir", 10, func(t *testing.T, path string) func() {
			remove(t, path)
			conn, err := sqlite3.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := migrate(conn, append(steps[:len(steps):len(steps)], "CREATE TABLE new (x)")); err != nil {
				t.Fatal(err)
			}
			return func() { remove(t, path) }
		}},
		{"a directory", "", 10, func(t *testing.T, path string) func() {
			remove(t, path)
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
			return func() { remove(t, path) }
		}},
		{"without its directory", "check that its directory exists", 10, func(t *testing.T, path string) func() {
			dir := filepath.Dir(path)
			if err := os.RemoveAll(dir); err != nil {
				t.Fatal(err)
			}
			return func() {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
		}},
		{"without its tables", "not those of schema.sql", 10, func(t *testing.T, path string) func() {
			remove(t, path)
			conn, err := sqlite3.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			if err := conn.Exec(fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))); err != nil {
				t.Fatal(err)
			}
			return func() { remove(t, path) }
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				path := filepath.Join(dir, "db", "usage.db")
				if err := os.Mkdir(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				l := open(t, Options{Path: path, Spill: filepath.Join(dir, "spill")})
				pass(t, l, "before", 10)
				flush(t, l)
				heal := c.fault(t, path)
				pass(t, l, "during", many)
				time.Sleep(10 * time.Second)
				pass(t, l, "still", 10)
				degraded(t, l, c.reason)
				if st := l.State(); st.Pending < 10 || st.Lag < time.Second {
					t.Errorf("%+v", st)
				}
				heal()
				healed(t, l, many+20-c.lost)
			})
		})
	}
}

// TestRemovedDatabase: SQLite itself would go on writing to the removed file.
func TestRemovedDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "usage.db")
		l := open(t, Options{Path: path})
		pass(t, l, "before", 10)
		flush(t, l)
		remove(t, path)
		pass(t, l, "during", many)
		healed(t, l, many)
	})
}

// TestFullDatabase: a database that may not grow is full.
func TestFullDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{reads: make(chan struct{})}
		l := open(t, Options{disk: d})
		l.End(ended("first"))
		close(d.reads)
		flush(t, l)
		// The committer is idle now, so that its connection may be used here.
		synctest.Wait()
		if err := l.committer.db.conn.Exec("PRAGMA max_page_count = 1"); err != nil {
			t.Fatal(err)
		}
		pass(t, l, "during", many)
		time.Sleep(groupWait)
		synctest.Wait()
		degraded(t, l, "disk is full")
		healed(t, l, many+1) // by a new connection, without that limit
	})
}

// TestCloseOfALockedDatabase: Close tries once more, says what is left, and the
// next ledger commits it.
func TestCloseOfALockedDatabase(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "usage.db")
		l := open(t, Options{Path: path})
		pass(t, l, "before", 1)
		flush(t, l)
		unlock := lockDatabase(t, path)
		pass(t, l, "during", 10)
		if err := l.Close(soon(t)); err == nil {
			t.Error("Close says that all is well")
		}
		unlock()
		healed(t, open(t, Options{Path: path}), 11)
	})
}

// TestMigration takes a database one step at a time, and leaves a step that
// fails undone.
func TestMigration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.db")
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	version := func() int64 {
		v, err := intOf(conn, "PRAGMA user_version")
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	all := []string{schema, "ALTER TABLE calls ADD COLUMN more INTEGER", "CREATE TABLE x (y); nonsense"}
	for n, want := range []int64{0, 1, 2} {
		if err := migrate(conn, all[:n]); err != nil || version() != want {
			t.Fatalf("%d steps: version %d, %v", n, version(), err)
		}
	}
	if err := migrate(conn, all); err == nil || version() != 2 {
		t.Errorf("a step that fails: version %d, %v", version(), err)
	}
	if _, err := textOf(conn, "SELECT count(*) FROM x"); err == nil {
		t.Error("half of a step was done")
	}
}

func replace(t *testing.T, path string, with []byte) {
	t.Helper()
	remove(t, path)
	if err := os.WriteFile(path, with, 0o600); err != nil {
		t.Fatal(err)
	}
}

// remove takes a database away as an operator would: with its log.
func remove(t *testing.T, path string) {
	t.Helper()
	for _, suffix := range []string{"", "-wal", "-shm"} {
		if err := os.Remove(path + suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}

func moveLog(t *testing.T, from, to string) {
	t.Helper()
	for _, suffix := range []string{"-wal", "-shm"} {
		if err := os.Rename(from+suffix, to+suffix); err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
}
