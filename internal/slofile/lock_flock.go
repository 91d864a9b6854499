//go:build darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd

package slofile

import (
	"errors"
	"os"
	"syscall"
)

// flocked is a lock that the kernel keeps with an open file, so that it ends with
// its process however that ends.
type flocked struct{ file *os.File }

// lockFile locks a file, which it makes if need be.
func lockFile(name string) (lock, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if !errors.Is(err, syscall.EINTR) {
			break
		}
	}
	switch {
	case err == nil:
		return flocked{f}, nil
	case errors.Is(err, syscall.EWOULDBLOCK):
		err = errInUse
	case errors.Is(err, errors.ErrUnsupported) || errors.Is(err, syscall.ENOLCK):
		err = errNoLocks
	default:
		err = os.NewSyscallError("flock", err)
	}
	f.Close()
	return nil, err
}

// Held tells whether the locked file is the one that has its name.
func (l flocked) Held() bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	there, err := os.Stat(l.file.Name())
	return err == nil && os.SameFile(mine, there)
}

func (l flocked) Close() error { return l.file.Close() }

// cannotSync tells whether a file system just has no way to sync a directory.
func cannotSync(err error) bool {
	return errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported)
}
