//go:build unix

package ledger

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// lockFile locks a file, which it makes if need be. The lock belongs to the
// open file, so it ends with the process however that ends, and a second ledger
// of the same process does not get it either.
func lockFile(name string) (io.Closer, error) {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			return nil, errInUse
		}
		return nil, os.NewSyscallError("flock", err)
	}
	return f, nil
}
