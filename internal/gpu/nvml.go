package gpu

import "errors"

// ErrNoDriver is what OpenNVML says, in the chain of its error, where this
// machine has no NVIDIA driver, or shows none to this process.
var ErrNoDriver = errors.New("no NVIDIA driver")
