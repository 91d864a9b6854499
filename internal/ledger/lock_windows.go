package ledger

import (
	"errors"
	"io"
	"os"
	"syscall"
)

// errSharingViolation is ERROR_SHARING_VIOLATION.
const errSharingViolation = syscall.Errno(32)

// lockFile opens a file, which it makes if need be, such that nobody else can
// open it until it is closed or the process ends.
func lockFile(name string) (io.Closer, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		if errors.Is(err, errSharingViolation) {
			return nil, errInUse
		}
		return nil, os.NewSyscallError("CreateFile", err)
	}
	return os.NewFile(uintptr(h), name), nil
}
