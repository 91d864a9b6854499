package spend

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/weirgate/weir/internal/watch"
)

// PriceFile is a price list on disk that people edit while it is used. All its
// methods may be called at any time by any goroutine.
type PriceFile struct {
	path   string
	prices atomic.Pointer[Prices]

	mu      sync.Mutex // guards the rest, and is held while the file is read
	seen    watch.Seen
	content []byte // as last read, good or bad; nil when it could not be read
	err     error  // what is wrong with it
}

// OpenPrices reads a price list. One that is missing or wrong is an error here,
// since there is no earlier one to go on with.
func OpenPrices(path string) (*PriceFile, error) {
	f := &PriceFile{path: path}
	if _, err := f.Reload(time.Now()); err != nil {
		return nil, err
	}
	return f, nil
}

// Prices returns the last price list that was good. It is never nil.
func (f *PriceFile) Prices() *Prices { return f.prices.Load() }

// Err returns what was wrong with the file when it was last looked at; nil when
// Prices is what it says.
func (f *PriceFile) Err() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.err
}

// Reload looks at the file, takes it up if its content is new, and tells whether
// the price list is another one. A file that is gone, unreadable or wrong changes
// nothing: the last good list stays, and the error says so, at every look until
// the file is good again. A file that did not change costs one stat call.
func (f *PriceFile) Reload(now time.Time) (changed bool, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := os.Stat(f.path)
	if err == nil && f.seen.Unchanged(info) {
		return false, f.err
	}
	f.seen = watch.Seen{}
	var content []byte
	if err == nil {
		content, err = readPrices(f.path, info)
	}
	if err != nil {
		f.content = nil
		return false, f.broken(err)
	}
	f.seen.Note(info, now)
	if f.content != nil && bytes.Equal(content, f.content) {
		return false, f.err
	}
	f.content = content
	prices, err := ParsePrices(content)
	if err != nil {
		return false, f.broken(err)
	}
	f.err = nil
	f.prices.Store(prices)
	return true, nil
}

// broken keeps and returns what is wrong. The caller holds mu.
func (f *PriceFile) broken(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err // the file is named below
	}
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf(`%w; create it, for example with {"version":1,"currency":"USD","prices":[{"model":"*","input":1,"output":2}]}`, err)
	}
	f.err = fmt.Errorf("price list %s: %w", f.path, err)
	if f.prices.Load() != nil {
		f.err = fmt.Errorf("%w; the last good list stays in use", f.err)
	}
	return f.err
}

// Watch calls Reload every interval (0 is two seconds) until ctx is done. It calls
// onChange, which may be nil, with nil when another list came into use or the file is right again,
// and with the error when the file cannot be used, once for each error. Whoever
// starts it in a goroutine waits for its return.
func (f *PriceFile) Watch(ctx context.Context, interval time.Duration, onChange func(error)) {
	watch.Changes(ctx, interval, f.Err(), f.Reload, onChange)
}

// readPrices reads a file that must be one, and not larger than a price list
// can be. To open a named pipe would wait for a writer.
func readPrices(path string, info fs.FileInfo) ([]byte, error) {
	if !info.Mode().IsRegular() {
		return nil, errors.New("it is not a regular file")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxPriceFile+1))
	if err != nil {
		return nil, err
	}
	if len(content) > maxPriceFile {
		return nil, fmt.Errorf("it is larger than %d MiB", maxPriceFile>>20)
	}
	return content, nil
}
