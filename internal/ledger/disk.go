package ledger

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what the spill needs of a file system; tests put faults into it.
type disk interface {
	// Prepare makes the directory.
	Prepare(dir string) error
	// Lock takes the directory for this process, until the Closer is closed or
	// the process ends; errInUse when another has it.
	Lock(dir string) (io.Closer, error)
	// List returns the files in the directory with their sizes, by name.
	List(dir string) ([]fileInfo, error)
	// Create makes a new file to write to.
	Create(name string) (file, error)
	// Open opens a file to read.
	Open(name string) (file, error)
	Remove(name string) error
	// Sync makes a file survive a loss of power.
	Sync(name string) error
}

type file interface {
	io.WriterAt
	io.ReaderAt
	io.Closer
}

type fileInfo struct {
	name string
	size int64
}

var errInUse = errors.New("in use by another process")

// lockName is the file in the spill's directory that is locked. It stays when
// the lock is given up: removing it would let two processes lock two files.
const lockName = "lock"

// osDisk is the disk of the operating system. What it makes is readable by the
// process's own user alone: rows tell who called what, and when.
type osDisk struct{}

func (osDisk) Prepare(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osDisk) Lock(dir string) (io.Closer, error) {
	return lockFile(filepath.Join(dir, lockName))
}

func (osDisk) List(dir string) ([]fileInfo, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var files []fileInfo
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			files = append(files, fileInfo{e.Name(), info.Size()})
		}
	}
	return files, nil
}

func (osDisk) Create(name string) (file, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err // not a file that holds a nil *os.File
	}
	return f, nil
}

func (osDisk) Open(name string) (file, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	return f, nil
}

func (osDisk) Remove(name string) error { return os.Remove(name) }

func (osDisk) Sync(name string) error {
	f, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
