//go:build unix

package keys

import (
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner and the group of the old one. It fails if
// they cannot be kept: a gateway that runs as another user could then not
// read the file any more.
func keepOwner(file *os.File, old fs.FileInfo) error {
	info, err := file.Stat()
	if err != nil {
		return err
	}
	is, hasIs := info.Sys().(*syscall.Stat_t)
	was, hasWas := old.Sys().(*syscall.Stat_t)
	if !hasIs || !hasWas || (is.Uid == was.Uid && is.Gid == was.Gid) {
		return nil
	}
	if err := file.Chown(int(was.Uid), int(was.Gid)); err != nil {
		return fmt.Errorf("keep the owner (uid %d, gid %d): %w; run this as the user whose file it is", was.Uid, was.Gid, err)
	}
	return nil
}

// syncDirectory makes a rename in a directory outlast a loss of power.
func syncDirectory(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
