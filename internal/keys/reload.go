package keys

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/weirgate/weir/internal/watch"
)

// DefaultInterval is how often Watch looks at the file.
const DefaultInterval = watch.DefaultInterval

// sighting is what Reload last saw of the file.
type sighting struct {
	file   watch.Seen
	read   bool              // there was content
	digest [sha256.Size]byte // of it
}

// Reload looks at the file and takes it up if its content is new. changed says
// that other keys are in use than before. The error says that the file, as it is
// now, cannot be used; it is returned every time until the file is right, and the keys
// that were in use stay in use. A file that was taken away is such an error too: it
// is more often a mistake than the wish to turn all callers away.
//
// A file that did not change costs one stat call.
func (s *Store) Reload(now time.Time) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	current := s.current.Load()
	if info, err := os.Stat(s.path); err == nil && s.seen.file.Unchanged(info) {
		return false, current.err
	}
	text, info, err := readFile(s.path)
	if err != nil {
		s.seen = sighting{}
		if gone := new(fs.PathError); errors.Is(err, fs.ErrNotExist) && errors.As(err, &gone) && !current.loadedAt.IsZero() {
			err = fmt.Errorf("read keys: %w; the keys read last stay in use: put the file back, for a new one replaces them all", gone)
		}
		return false, s.broken(now, err)
	}
	before := s.seen
	s.seen = sighting{read: true, digest: sha256.Sum256(text)}
	s.seen.file.Note(info, now)
	switch {
	case before.read && before.digest == s.seen.digest:
		return false, current.err // touched, or too young before
	case !current.loadedAt.IsZero() && current.digest == s.seen.digest:
		// It was broken or away, and is again what is in use.
		s.current.Store(&snapshot{table: current.table, digest: current.digest, loadedAt: current.loadedAt})
		return false, nil
	}
	_, table, err := parse(text)
	if err != nil {
		return false, s.broken(now, fmt.Errorf("read keys: %s: %w", s.path, err))
	}
	s.current.Store(&snapshot{table: table, digest: s.seen.digest, loadedAt: now})
	return true, nil
}

// broken notes an error beside the keys that stay in use, and returns it. The
// caller holds mu.
func (s *Store) broken(now time.Time, err error) error {
	next := *s.current.Load()
	if next.err == nil {
		next.errSince = now
	}
	next.err = err
	s.current.Store(&next)
	return err
}

// Watch calls Reload every interval (0 is DefaultInterval) until ctx is done. It
// calls onChange, which may be nil, when something happened: with nil when other
// keys came into use or the file is right again, and with the error when the file
// cannot be used, once for each error and not every time. Watch returns when ctx
// is done; whoever starts it in a goroutine waits for that.
func (s *Store) Watch(ctx context.Context, interval time.Duration, onChange func(error)) {
	watch.Changes(ctx, interval, s.current.Load().err, s.Reload, onChange)
}

// Read reads the file at path and checks it, for whoever lists or edits keys.
// errors.Is(err, fs.ErrNotExist) holds when there is none.
func Read(path string) (*File, error) {
	text, _, err := readFile(path)
	if err != nil {
		return nil, err
	}
	f, err := Parse(text)
	if err != nil {
		return nil, fmt.Errorf("read keys: %s: %w", path, err)
	}
	return f, nil
}

// readFile returns the content of the file at path, and what stat said of it
// before it was read, so that a change during the reading shows afterwards.
func readFile(path string) (text []byte, info fs.FileInfo, err error) {
	hint := func(err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("read keys: %w; make the first one with: weir keys add ALIAS --file %s", err, path)
		case errors.Is(err, fs.ErrPermission):
			return fmt.Errorf("read keys: %w; let the user that the gateway runs as read it", err)
		}
		return fmt.Errorf("read keys: %w", err)
	}
	// Before it is opened, since to open a named pipe waits for a writer.
	if info, err = os.Stat(path); err != nil {
		return nil, nil, hint(err)
	}
	if !info.Mode().IsRegular() {
		return nil, nil, fmt.Errorf("read keys: %s is not a file but %s; give the path of a file", path, kind(info.Mode()))
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, nil, hint(err)
	}
	defer file.Close()
	if info, err = file.Stat(); err != nil {
		return nil, nil, hint(err)
	}
	if info.Size() <= maxFile {
		if text, err = io.ReadAll(io.LimitReader(file, maxFile+1)); err != nil {
			return nil, nil, hint(err)
		}
	}
	if max(info.Size(), int64(len(text))) > maxFile {
		return nil, nil, fmt.Errorf("read keys: %s is larger than %d MiB; remove keys that are over", path, maxFile>>20)
	}
	return text, info, nil
}

func kind(m fs.FileMode) string {
	if m.IsDir() {
		return "a directory"
	}
	return "a device, pipe or socket"
}
