package ledger

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"

	"github.com/ncruces/go-sqlite3"
)

// TestBackupMovedOver: whoever puts an older database in the place of the one in
// use, and leaves the log of that beside it, gets a sound database of what the
// backup had and what has come since.
func TestBackupMovedOver(t *testing.T) {
	synctest.Test(t, testBackupMovedOver)
}

func testBackupMovedOver(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage.db")
	l := open(t, Options{Path: path})
	pass(t, l, "before", 10)
	flush(t, l)
	backup := path + ".bak"
	conn, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := conn.Exec("VACUUM INTO '" + backup + "'"); err != nil {
		t.Fatal(err)
	}
	// The log begins anew, and has only what the backup has not.
	if _, err := textOf(conn, "PRAGMA wal_checkpoint(RESTART)"); err != nil {
		t.Fatal(err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	pass(t, l, "lost", 300)
	flush(t, l)
	if err := os.Rename(backup, path); err != nil {
		t.Fatal(err)
	}
	pass(t, l, "after", 20)
	flush(t, l)
	if _, err := os.Stat(path + "-wal.replaced"); err != nil {
		t.Errorf("the old log was not set aside: %v", err)
	}
	check, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer check.Close()
	if verdict, err := textOf(check, "PRAGMA integrity_check"); err != nil || verdict != "ok" {
		t.Fatalf("the database is %q, %v", verdict, err)
	}
	healed(t, l, 30)
}
