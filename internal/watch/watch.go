package watch

import (
	"context"
	"io/fs"
	"os"
	"time"
)

const (
	// DefaultInterval is how often Changes looks: soon enough for a person who
	// waits for a change, and one stat call in two seconds costs nothing.
	DefaultInterval = 2 * time.Second
	// Settled is the age at which a time of modification can be trusted. File
	// systems keep it in steps of up to two seconds (FAT), so a younger file may
	// change once more without a trace in it.
	Settled = 2 * time.Second
)

// Seen is a file as it was when it was last read. The zero value has seen none.
type Seen struct{ info fs.FileInfo }

// Note keeps what stat said of the file before it was read; a file that is too
// young to be trusted counts as not seen.
func (s *Seen) Note(info fs.FileInfo, now time.Time) {
	if s.info = nil; now.Sub(info.ModTime()) > Settled {
		s.info = info
	}
}

// Unchanged tells whether the file at info is, without reading it, the one seen:
// the same inode with the same size and time of modification.
func (s *Seen) Unchanged(info fs.FileInfo) bool {
	return s.info != nil && os.SameFile(s.info, info) && s.info.Size() == info.Size() && s.info.ModTime().Equal(info.ModTime())
}

// Changes calls reload every interval (0 is DefaultInterval) until ctx is done. It
// calls onChange, which may be nil, when something happened: with nil when reload
// took up new content or the error before, at first last, is gone, and with the
// error when there is another, once for each and not every time. Whoever starts it
// in a goroutine waits for its return.
func Changes(ctx context.Context, interval time.Duration, last error, reload func(now time.Time) (changed bool, err error), onChange func(error)) {
	if interval <= 0 {
		interval = DefaultInterval
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	before := text(last)
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		changed, err := reload(time.Now())
		if (changed || text(err) != before) && onChange != nil {
			onChange(err)
		}
		before = text(err)
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
