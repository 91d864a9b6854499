//go:build !cgo || !linux

package gpu

import "errors"

// OpenNVML returns an error: NVML needs a build with cgo for Linux.
func OpenNVML() (Source, error) {
	return nil, errors.New("this build has no NVML (built without cgo): use gpu dcgm URL")
}
