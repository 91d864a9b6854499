//go:build unix

package keys

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// ownedBy is a file of another user and group.
type ownedBy struct {
	fs.FileInfo
	uid, gid uint32
}

func (o ownedBy) Sys() any { return &syscall.Stat_t{Uid: o.uid, Gid: o.gid} }

// TestKeepOwner: a new file gets the owner of the old one, or there is no new
// file. Which of the two depends on who runs the test.
func TestKeepOwner(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	owner := func() (uid, gid uint32) {
		info, err := file.Stat()
		if err != nil {
			t.Fatal(err)
		}
		stat := info.Sys().(*syscall.Stat_t)
		return stat.Uid, stat.Gid
	}
	uid, gid := owner()
	if err := keepOwner(file, ownedBy{uid: uid, gid: gid}); err != nil {
		t.Errorf("its own owner: %v", err)
	}
	err = keepOwner(file, ownedBy{uid: uid + 4321, gid: gid + 4322})
	newUID, newGID := owner()
	if os.Getuid() == 0 {
		if err != nil || newUID != uid+4321 || newGID != gid+4322 {
			t.Errorf("root cannot give it away: %v; it is of %d and %d", err, newUID, newGID)
		}
		return
	}
	wantError(t, "not root", err, "keep the owner (uid ", "run this as the user whose file it is")
	if newUID != uid || newGID != gid {
		t.Errorf("it is of %d and %d", newUID, newGID)
	}
}
