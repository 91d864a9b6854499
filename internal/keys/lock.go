package keys

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"
)

const (
	lockPatience = 10 * time.Second      // an edit takes milliseconds
	lockPause    = 2 * time.Millisecond  // the first, and then twice as long each time
	lockPauseMax = 50 * time.Millisecond // so that a waiting edit comes soon enough
	// lockStale is the age of an exclusive file that nobody can be holding any more.
	lockStale = time.Minute
)

// lock is the right to change one file.
type lock interface {
	// check returns an error if the lock was lost.
	check() error
	release() error
}

// locker waits for the lock of a file, for lockPatience at most.
type locker func(target string, now time.Time) (lock, error)

// errBusy says that somebody else has the lock.
var errBusy = errors.New("another edit is under way")

// acquire takes a lock of the operating system, which ends with its process
// however that ends. Where there is none (a system or a file system without
// flock), a file that is created exclusively stands in.
func acquire(target string, now time.Time) (lock, error) {
	held, err := wait(target+".lock", now, flock)
	if errors.Is(err, errors.ErrUnsupported) {
		return acquireExclusive(target, now)
	}
	return held, err
}

// acquireExclusive takes the lock that works everywhere. Its name is another one, so
// that who tries flock first does not touch it.
func acquireExclusive(target string, now time.Time) (lock, error) {
	return wait(target+".lock-exclusive", now, exclusive)
}

// wait tries until the lock is there. It asks again and again, since a waiting
// system call could not be given up.
func wait(path string, now time.Time, try func(path string, now time.Time) (lock, error)) (lock, error) {
	start, pause := time.Now(), lockPause
	for {
		waited := time.Since(start)
		held, err := try(path, now.Add(waited))
		if !errors.Is(err, errBusy) {
			return held, err
		}
		if waited > lockPatience {
			return nil, fmt.Errorf("%w and has been for %v; look for a weir keys that hangs, and if there is none remove %s", err, lockPatience, path)
		}
		time.Sleep(pause)
		pause = min(2*pause, lockPauseMax)
	}
}

// exclusiveFile is a lock that is held by whoever created a file. What the file
// says tells whose it is: its inode does not, since a removed file's goes to the next one.
type exclusiveFile struct{ path, token string }

// exclusive creates the lock's file. One that is older than lockStale was left
// behind by a process that died, and is taken away.
func exclusive(path string, now time.Time) (lock, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err == nil {
		l := &exclusiveFile{path, rand.Text()}
		_, err := file.WriteString(l.token)
		if err = errors.Join(err, file.Close()); err != nil {
			return nil, errors.Join(err, os.Remove(path))
		}
		return l, nil
	}
	if !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	found, err := os.Stat(path)
	if err != nil || now.Sub(found.ModTime()) < lockStale {
		return nil, errBusy // or just released
	}
	// Two processes may find the same old file, and the slower one the new file of
	// the quicker one. So the file is set aside first, and put back if it is not
	// the old one.
	stale, err := os.ReadFile(path)
	if err != nil {
		return nil, errBusy
	}
	aside := path + "." + rand.Text()
	if err := os.Rename(path, aside); err != nil {
		return nil, errBusy
	}
	if got, err := os.ReadFile(aside); err == nil && string(got) != string(stale) {
		_ = os.Link(aside, path) // if there is a newer one already, the owner's check fails and that edit changes nothing
	}
	if err := os.Remove(aside); err != nil {
		return nil, err
	}
	return nil, errBusy // the next try is like everybody's
}

func (l *exclusiveFile) check() error {
	if token, err := os.ReadFile(l.path); err != nil || string(token) != l.token {
		return fmt.Errorf("the lock file %s was removed during the edit, or the edit took more than %v; try again", l.path, lockStale)
	}
	return nil
}

func (l *exclusiveFile) release() error {
	if l.check() != nil {
		return nil // it is somebody else's
	}
	return os.Remove(l.path)
}
