//go:build !unix

package keys

import (
	"io/fs"
	"os"
)

// keepOwner has nothing to do: files here inherit who may read them from their
// directory.
func keepOwner(*os.File, fs.FileInfo) error { return nil }

// syncDirectory has nothing to do: a directory cannot be synced here.
func syncDirectory(string) error { return nil }
