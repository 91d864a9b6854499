//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package keys

import (
	"errors"
	"os"
	"syscall"
	"time"
)

// flockedFile is a lock that the kernel keeps with an open file.
type flockedFile struct {
	path string
	file *os.File
}

// flock takes the lock of the file at path, which is made if need be. The file
// is removed on release, so a lock that was taken on a file that is not at path any more
// counts for nothing.
func flock(path string, _ time.Time) (lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case errors.Is(err, syscall.EWOULDBLOCK):
		return nil, errors.Join(errBusy, file.Close())
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK):
		// Nobody can have a lock on it, so nobody misses it.
		return nil, errors.Join(errors.ErrUnsupported, file.Close(), os.Remove(path))
	case err != nil:
		return nil, errors.Join(&os.PathError{Op: "lock", Path: path, Err: err}, file.Close())
	}
	l := &flockedFile{path, file}
	if l.check() != nil {
		return nil, errors.Join(errBusy, file.Close())
	}
	return l, nil
}

// check returns an error if the locked file is not the one at path: somebody
// released it, or removed it by hand, in the meantime.
func (l *flockedFile) check() error {
	mine, err := l.file.Stat()
	if err != nil {
		return err
	}
	if there, err := os.Stat(l.path); err != nil || !os.SameFile(mine, there) {
		return errors.New("the lock file " + l.path + " was removed during the edit; try again")
	}
	return nil
}

func (l *flockedFile) release() error {
	if l.check() != nil {
		return l.file.Close()
	}
	// Removed while it is locked, so that it is never another's.
	return errors.Join(os.Remove(l.path), l.file.Close())
}
