package slofile

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"sync"
)

// maxBeside bounds a small file beside the counts, in bytes.
const maxBeside = 16 << 20

// ErrNotHeld says that the directory is not this process's own: another one has it, it
// cannot be used, or the File was closed.
var ErrNotHeld = errors.New("the directory of counts is not this process's own")

// Beside is one small file in the directory of a File, for what is to outlive the process
// together with the counts. It is read and written only while the directory is this
// process's own, and the directory is not given up while that goes on. Its methods wait
// for the disk, however long that takes; they may be used by many goroutines, but two
// that Store at once would spoil each other's file.
type Beside struct {
	f    *File
	name string
}

// Beside returns a file of a name, which begins with a letter and is none of the File's own.
func (f *File) Beside(name string) *Beside { return &Beside{f, name} }

// Name is the path of the file.
func (b *Beside) Name() string { return filepath.Join(b.f.dir, b.name) }

// Load returns what was stored last, nil when nothing was, of a file of more than 16 MiB
// no more than its first 16 MiB and a byte. errors.Is(err, ErrNotHeld) says to try again later.
func (b *Beside) Load() ([]byte, error) {
	_, done, err := b.f.use()
	if err != nil {
		return nil, err
	}
	defer done()
	data, err := b.f.disk.Read(b.Name(), maxBeside+1)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("read %s: %w", b.name, err)
	case data == nil:
		return []byte{}, nil // it is there, and empty
	}
	return data, nil
}

// Store replaces the file: after a kill, or a loss of power, it is there as before or as
// it is now, whole. It is for the process's own user alone. More than 16 MiB are refused.
func (b *Beside) Store(data []byte) (err error) {
	if len(data) > maxBeside {
		return fmt.Errorf("write %s: it would have %d bytes, and %d can be kept", b.name, len(data), maxBeside)
	}
	held, done, err := b.f.use()
	if err != nil {
		return err
	}
	defer done()
	d, name := b.f.disk, b.Name()
	fresh := name + ".new"
	if err := d.Remove(fresh); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove %s.new, which an earlier try has left: %w", b.name, err)
	}
	if err := write(d, fresh, data); err != nil {
		_ = d.Remove(fresh) // may free a full disk; else the next try does
		return fmt.Errorf("write %s: %w", b.name, err)
	}
	if !held() { // whoever has the directory by now has a file of this name, too
		_ = d.Remove(fresh)
		return fmt.Errorf("write %s: %w any more", b.name, ErrNotHeld)
	}
	if err := d.Rename(fresh, name); err != nil {
		return fmt.Errorf("name %s: %w", b.name, err)
	}
	if err := d.Sync(b.f.dir); err != nil {
		return fmt.Errorf("sync the directory of %s: %w", b.name, err)
	}
	return nil
}

// write makes a file and forces it to the disk.
func write(d disk, name string, data []byte) error {
	out, err := d.Create(name)
	if err != nil {
		return err
	}
	if _, err = out.Write(data); err == nil {
		err = out.Sync()
	}
	return errors.Join(err, out.Close())
}

// SetAside renames a file that is of no use, and returns where it lies then.
func (b *Beside) SetAside() (string, error) {
	_, done, err := b.f.use()
	if err != nil {
		return "", err
	}
	defer done()
	aside := filepath.Join(b.f.dir, "unreadable."+b.name)
	if err := b.f.disk.Rename(b.Name(), aside); err != nil {
		return "", fmt.Errorf("set %s aside: %w", b.name, err)
	}
	return aside, nil
}

// use keeps the directory this process's own until done is called.
func (f *File) use() (held func() bool, done func(), err error) {
	t := f.tenants.Load()
	if t == nil || !t.enter() {
		return nil, nil, fmt.Errorf("%s: %w", f.dir, ErrNotHeld)
	}
	if !t.Held() {
		t.leave()
		return nil, nil, fmt.Errorf("%s: %w: its lock was removed", f.dir, ErrNotHeld)
	}
	return t.Held, t.leave, nil
}

// hold notes that the directory is this process's own from now on.
func (f *File) hold(l lock) {
	t := &tenants{lock: l}
	f.lock = t
	f.tenants.Store(t)
}

// tenants are those who use a lock. It is given up when Run closes it and nobody is in
// there any more: should somebody's disk hang, Run still ends, and the lock with the process.
type tenants struct {
	lock
	mu     sync.Mutex
	inside int
	closed bool
}

func (t *tenants) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.inside++
	return true
}

func (t *tenants) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.inside--; t.closed && t.inside == 0 {
		t.lock.Close() // as Close does, which nobody waits for any more
	}
}

// Close gives the lock up, as soon as nobody needs it.
func (t *tenants) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil
	}
	if t.closed = true; t.inside > 0 {
		return nil
	}
	return t.lock.Close()
}
