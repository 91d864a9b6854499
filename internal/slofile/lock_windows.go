package slofile

import (
	"errors"
	"os"
	"syscall"
)

// errSharingViolation is ERROR_SHARING_VIOLATION.
const errSharingViolation = syscall.Errno(32)

// exclusive is a file that nobody else can open, nor remove.
type exclusive struct{ *os.File }

// lockFile opens a file, which it makes if need be, for this process alone.
func lockFile(name string) (lock, error) {
	path, err := syscall.UTF16PtrFromString(name)
	if err != nil {
		return nil, err
	}
	h, err := syscall.CreateFile(path, syscall.GENERIC_READ|syscall.GENERIC_WRITE, 0, nil,
		syscall.OPEN_ALWAYS, syscall.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, errSharingViolation):
		return nil, errInUse
	case err != nil:
		return nil, os.NewSyscallError("CreateFile", err)
	}
	return exclusive{os.NewFile(uintptr(h), name)}, nil
}

// Held: who has it open cannot lose it.
func (exclusive) Held() bool { return true }

// cannotSync: a directory is never synced here; renaming is written through.
func cannotSync(error) bool { return true }
