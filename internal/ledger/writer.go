package ledger

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"time"
)

func (s *spill) path(g segment) string { return filepath.Join(s.dir, g.name()) }

// run is the writer goroutine: the only one that writes to the spill. It ends
// when the spill is closing and all is written, or at abandon.
func (s *spill) run() {
	defer close(s.done)
	defer s.leave()
	defer s.giveUp()
	backoff := time.Duration(0)
	for {
		err := s.prepare()
		if err == nil {
			break
		}
		s.mu.Lock()
		s.trip(err)
		closing := s.closing
		s.mu.Unlock()
		s.tried()
		if closing || !s.pause(&backoff) {
			return
		}
	}
	close(s.prepared)
	s.tried()
	for s.take() {
		if !s.put() {
			return
		}
	}
}

// tried tells Open, once, that it need not wait any longer.
func (s *spill) tried() {
	select {
	case <-s.attempted:
	default:
		close(s.attempted)
	}
}

// prepare takes the directory and finds what earlier processes left in it.
func (s *spill) prepare() error {
	if err := s.disk.Prepare(s.dir); err != nil {
		return fmt.Errorf("make spill directory: %w", err)
	}
	if s.lock == nil {
		lock, err := s.disk.Lock(s.dir)
		if errors.Is(err, errInUse) {
			return fmt.Errorf("spill directory %s is %w: each gateway needs its own; this one waits until it is free", s.dir, err)
		}
		if err != nil {
			return fmt.Errorf("lock spill directory: %w", err)
		}
		s.lock = lock
	}
	files, err := s.disk.List(s.dir)
	if err != nil {
		return fmt.Errorf("list spill directory: %w", err)
	}
	var segments []segment
	var bytes int64
	for _, f := range files {
		g := segment{size: f.size, old: true}
		digits, is := strings.CutSuffix(f.name, ".spill")
		if !is || len(digits) != 16 {
			continue
		}
		if _, err := fmt.Sscanf(digits, "%d", &g.n); err != nil || g.n == 0 || g.name() != f.name {
			continue
		}
		segments = append(segments, g)
		bytes += g.size
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segments, s.bytes = segments, bytes // named such that their order is that of their names
	s.nextSeg = 1
	if len(segments) > 0 {
		s.nextSeg = segments[len(segments)-1].n + 1
		s.replaying = true
	}
	if s.tripped {
		s.untrip()
	}
	notify(s.more)
	return nil
}

// take waits for a batch and takes it. It reports false when there is none and
// the spill is closing.
func (s *spill) take() bool {
	for {
		s.mu.Lock()
		if len(s.current.buf) > 0 {
			s.inflight, s.current = s.current, s.inflight.empty()
			s.mu.Unlock()
			return true
		}
		if s.closing {
			s.mu.Unlock()
			return false
		}
		s.idle = true
		s.mu.Unlock()
		<-s.wake
	}
}

// empty returns a batch that uses the space of b again, unless that is large.
func (b *batch) empty() batch {
	if cap(b.buf) > 1<<20 {
		b.buf = nil
	}
	return batch{buf: b.buf[:0], waiters: b.waiters[:0]}
}

// put writes the batch in flight, however often it has to try. It reports
// false when it was told to give up.
func (s *spill) put() bool {
	backoff := time.Duration(0)
	for {
		began := time.Now()
		err := s.write()
		took := time.Since(began)
		s.mu.Lock()
		if err == nil {
			s.wrote(began.Add(took))
			s.inflight.release(true)
			s.inflight = s.inflight.empty()
			s.ease()
			if s.tripped && took < s.breaker {
				s.untrip()
			}
			// What has gathered meanwhile is the better probe.
			slow := s.tripped && len(s.current.buf) == 0
			s.mu.Unlock()
			return !slow || s.probe()
		}
		s.trip(err)
		s.mu.Unlock()
		if !s.pause(&backoff) {
			return false
		}
	}
}

// write puts the bytes in flight behind those of the last segment, or into a new
// one. A try that failed may have left some of them, which the next overwrites.
// Only the writer reads inflight.buf without the lock: nobody else changes it.
func (s *spill) write() error {
	size, gone := s.last()
	if gone {
		if err := s.disk.Prepare(s.dir); err != nil {
			return fmt.Errorf("make spill directory: %w", err)
		}
	}
	if s.out != nil && (gone || size >= s.segment) {
		s.seal()
	}
	if s.out == nil {
		g := segment{n: s.nextSeg}
		f, err := s.disk.Create(s.path(g))
		if errors.Is(err, fs.ErrExist) {
			s.nextSeg++ // made, it seems, by a try that was reported as failed
		}
		if err != nil {
			return fmt.Errorf("begin a segment of the spill: %w", err)
		}
		s.out = f
		s.nextSeg++
		s.mu.Lock()
		s.segments = append(s.segments, g)
		s.gone = false
		s.mu.Unlock()
		size = 0
	}
	if _, err := s.out.WriteAt(s.inflight.buf, size); err != nil {
		return fmt.Errorf("write to the spill: %w", err)
	}
	return nil
}

// seal ends the last segment: the next write begins another.
func (s *spill) seal() {
	s.out.Close() // all of it is in the page cache or was reported as lost
	s.out = nil
}

// last returns the size of the last segment, and whether the committer has
// found that its file is gone.
func (s *spill) last() (size int64, gone bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.segments); n > 0 {
		size = s.segments[n-1].size
	}
	return size, s.gone
}

// probe puts an empty entry on its way when calls do not wait and there is
// nothing else to write, so that a disk that is quick again is noticed. It
// reports false when it was told to give up.
func (s *spill) probe() bool {
	backoff := 10 * backoffMin
	if !s.pause(&backoff) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.closing && len(s.current.buf) == 0 {
		s.current.buf, _ = sealEntry(beginEntry(s.current.buf, kindProbe), len(s.current.buf))
	}
	return true
}

// pause waits a while, twice as long as the time before, up to backoffMax. It
// reports false when the writer is to give up.
func (s *spill) pause(backoff *time.Duration) bool {
	*backoff = min(max(2**backoff, backoffMin), backoffMax)
	t := time.NewTimer(*backoff)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-s.abandon:
		return false
	}
}

// giveUp closes the last segment and counts what could not be written.
func (s *spill) giveUp() {
	if s.out != nil {
		s.seal()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := s.inflight.entries + s.current.entries
	s.dropped += lost
	if lost > 0 {
		s.log.warn("spill was closed before all was written", "starts and ends of calls that the disk did not take are lost",
			"dir", s.dir, "entries", lost)
	}
	s.inflight.release(false)
	s.current.release(false)
	s.inflight, s.current = batch{}, batch{}
	if s.timer != nil {
		s.timer.Stop()
	}
	s.signal()
}

// leave is called at the end by each of the goroutines that use the directory.
func (s *spill) leave() {
	if s.users.Add(-1) == 0 && s.lock != nil {
		if err := s.lock.Close(); err != nil {
			s.log.warn("lock of the spill could not be given up", "it ends with the process", "dir", s.dir, "error", err)
		}
	}
}

// sync makes what is in the last segment survive a loss of power. It is for
// times when the database, which is synced with every commit, takes nothing.
func (s *spill) sync() error {
	s.mu.Lock()
	if len(s.segments) == 0 {
		s.mu.Unlock()
		return nil
	}
	last := s.path(s.segments[len(s.segments)-1])
	s.mu.Unlock()
	return s.disk.Sync(last)
}
