package slofile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// disk is what a File needs of a file system; tests put faults into it.
type disk interface {
	// Prepare makes the directory, if it is not there.
	Prepare(dir string) error
	// Lock takes the directory for this process; errInUse when another has it,
	// errNoLocks where there are no locks.
	Lock(dir string) (lock, error)
	// List returns the regular files in the directory.
	List(dir string) ([]fileInfo, error)
	// Create makes a file to write to, or empties the one that is there.
	Create(name string) (file, error)
	// Read returns the first max bytes of a file.
	Read(name string, max int64) ([]byte, error)
	// Size is the size of a file, for one that is there.
	Size(name string) (int64, error)
	Rename(from, to string) error
	Remove(name string) error
	// Sync makes the names in a directory survive a loss of power.
	Sync(dir string) error
}

type file interface {
	io.Writer
	Sync() error
	io.Closer
}

type fileInfo struct {
	name string
	size int64
}

// lock is a directory that belongs to this process until it is closed, or the
// process ends.
type lock interface {
	// Held tells whether it still counts: nobody removed the file that is locked.
	Held() bool
	io.Closer
}

var (
	errInUse   = errors.New("in use by another process")
	errNoLocks = errors.New("there are no locks on this system or file system")
)

// lockName is the file that is locked. It stays when the lock is given up:
// removing it would let two processes lock two files.
const lockName = "lock"

// osDisk is the disk of the operating system. What it makes is for the process's
// own user alone: the counts name classes and models, and how much they are used.
type osDisk struct{}

func (osDisk) Prepare(dir string) error { return os.MkdirAll(dir, 0o700) }

func (osDisk) Lock(dir string) (lock, error) { return lockFile(filepath.Join(dir, lockName)) }

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
	f, err := os.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err // not a file that holds a nil *os.File
	}
	return f, nil
}

func (osDisk) Read(name string, max int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, max))
}

func (osDisk) Size(name string) (int64, error) {
	info, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func (osDisk) Rename(from, to string) error { return os.Rename(from, to) }

func (osDisk) Remove(name string) error { return os.Remove(name) }

func (osDisk) Sync(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := f.Sync(); err != nil && !cannotSync(err) {
		return err
	}
	return nil
}
