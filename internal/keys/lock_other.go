//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd)

package keys

import (
	"errors"
	"time"
)

// flock does not exist on this system.
func flock(string, time.Time) (lock, error) { return nil, errors.ErrUnsupported }
