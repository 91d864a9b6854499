//go:build !(darwin || dragonfly || freebsd || illumos || linux || netbsd || openbsd || windows)

package slofile

// lockFile does not exist on this system.
func lockFile(string) (lock, error) { return nil, errNoLocks }

// cannotSync: what directories can do is not known here, and the file itself has
// been synced.
func cannotSync(error) bool { return true }
