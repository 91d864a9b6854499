package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

const (
	// maxGroup is the most rows of one transaction.
	maxGroup = 1000
	// groupWait is how long the first row of a group waits for others, and
	// longWait how long it may while many come: a transaction costs as much as
	// some hundred rows, and the spill holds what waits. Only a loss of power, and
	// readers, can tell the difference.
	groupWait = 5 * time.Millisecond
	longWait  = 100 * time.Millisecond
	// manyRows in a group lengthen the wait, fewRows shorten it.
	manyRows, fewRows = 8, 3
	// forgetEvery is how often rows are looked for that are too old, and
	// forgetFirst when for the first time, so that start-up stays quiet.
	forgetEvery = time.Hour
	forgetFirst = time.Minute
	// readChunk is how much of the spill is read at once: a group of rows, and
	// always more than one entry.
	readChunk = 1 << 20
)

// committer is the one writer of the database: it follows the spill, puts ends
// into the database in groups, and removes the segments that are through. Rows
// of earlier processes come first, since it reads from the oldest segment on.
type committer struct {
	spill     *spill
	path      string
	retention time.Duration
	now       func() time.Time
	log       *logger
	ctx       context.Context // interrupts the database

	stop  chan struct{} // closed: end when all is committed, or at the first failure
	ended chan struct{} // closed when the goroutine has
	hurry chan struct{} // somebody waits in flush

	// Of the committer goroutine.
	db   *database
	tail tail
	wait time.Duration // for a group to fill, from groupWait to longWait

	mu       sync.Mutex
	progress progress
}

// progress is what the committer has done so far.
type progress struct {
	rows     int64     // new rows in the database
	crashed  int64     // of those, calls that had no end
	replayed int64     // of those, from segments of earlier processes
	amended  int64     // amendments that went in
	repeated int64     // entries whose row the database had
	refused  int64     // entries that the database will never take
	damage   int64     // places where the spill was damaged
	torn     int64     // segments that ended within an entry
	deleted  int64     // rows deleted by the retention
	failure  error     // why the last try failed; nil when it did not
	failing  time.Time // since when tries have failed
	busy     time.Time // when the work at hand began; zero when there is none
}

func (c *committer) run() {
	defer close(c.ended)
	defer c.spill.leave()
	defer c.leave()
	select {
	case <-c.spill.prepared:
	case <-c.spill.done: // it could not be, and the ledger is closing
		return
	}
	forget := time.NewTimer(forgetFirst)
	defer forget.Stop()
	backoff := time.Duration(0)
	for {
		err := c.drain()
		c.report(err)
		if err != nil {
			if c.stopping() || !c.pause(&backoff) {
				return
			}
			continue
		}
		backoff = 0
		select {
		case <-c.spill.more:
			c.group()
		case <-c.hurry:
		case <-forget.C:
			c.report(c.forget())
			forget.Reset(forgetEvery)
		case <-c.stop:
			err := c.drain()
			if err == nil {
				err = c.finish()
			}
			c.report(err)
			return
		}
	}
}

// group waits until a whole group has come, the first row of it has waited long
// enough, or somebody is in a hurry.
func (c *committer) group() {
	s := c.spill
	s.mu.Lock()
	if s.ends-s.endsRead >= maxGroup || s.flushing > 0 {
		s.mu.Unlock()
		return
	}
	s.grouping = true
	s.mu.Unlock()
	t := time.NewTimer(c.wait)
	defer t.Stop()
	select {
	case <-t.C:
	case <-s.full:
	case <-c.hurry:
	case <-c.stop:
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.grouping = false
	switch rows := s.ends - s.endsRead; {
	case rows >= manyRows:
		c.wait = min(2*c.wait, longWait)
	case rows <= fewRows:
		c.wait = max(c.wait/2, groupWait)
	}
}

// drain commits all there is.
func (c *committer) drain() (err error) {
	c.spill.mu.Lock()
	c.spill.notified = false
	c.spill.mu.Unlock()
	defer func() {
		// SQLite runs in memory of its own. Should it fault, this connection
		// is lost and nothing else: not the calls, nor what the spill holds.
		if r := recover(); r != nil {
			c.db = nil
			err = fmt.Errorf("the database engine failed: %v", r)
		}
	}()
	for {
		more, err := c.step()
		if err != nil {
			c.drop(err)
			return err
		}
		if !more {
			return nil
		}
	}
}

// step commits one group; more tells whether there may be another.
func (c *committer) step() (more bool, err error) {
	more, err = c.read()
	if err != nil {
		return false, err
	}
	if !more {
		return false, nil
	}
	c.mu.Lock()
	c.progress.busy = time.Now()
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.progress.busy = time.Time{}
		c.mu.Unlock()
	}()
	added, amended, refused := 0, 0, 0
	if len(c.tail.rows) > 0 {
		if err := c.open(); err != nil {
			return false, err
		}
		if added, amended, refused, err = c.db.add(c.tail.rows); err != nil {
			return false, err
		}
	}
	c.account(added, amended, refused)
	return true, c.settle()
}

// account counts what has been committed.
func (c *committer) account(added, amended, refused int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p, t := &c.progress, &c.tail
	p.rows += int64(added)
	p.amended += int64(amended)
	p.repeated += int64(len(t.rows) - added - amended - refused)
	p.refused += int64(refused)
	if t.orphans {
		p.crashed += int64(added)
	}
	if t.old {
		p.replayed += int64(added)
	}
	p.damage += t.damaged
	p.torn += t.cut
}

// open opens the database if it is not.
func (c *committer) open() error {
	if c.db != nil {
		return nil
	}
	db, err := openDatabase(c.ctx, c.path)
	if err != nil {
		return err
	}
	c.db = db
	return nil
}

// drop closes the database after an error, unless it is merely locked: a new
// connection finds a file that was replaced, repaired or mounted again.
func (c *committer) drop(err error) {
	if c.db == nil || isLocked(err) {
		return
	}
	db := c.db
	c.db = nil
	if errors.Is(err, errGone) {
		if err := db.setAside(); err != nil {
			c.log.warn("database was replaced, and its log is still there", "move its -wal and -shm files away", "path", c.path, "error", err)
		}
	}
	if err := db.close(); err != nil {
		c.log.warn("database could not be closed", "it is opened again", "path", c.path, "error", err)
	}
}

// report keeps the result of a try, and says when it differs from the last.
func (c *committer) report(err error) {
	if err != nil {
		err = explain(c.path, err)
	}
	c.mu.Lock()
	was := c.progress.failure
	if c.progress.failure = err; err != nil && was == nil {
		c.progress.failing = time.Now()
	}
	since := c.progress.failing
	c.mu.Unlock()
	switch {
	case err != nil && was == nil:
		c.log.warn("database takes no rows", "calls go on, and rows are kept in the spill until it does", "error", err)
	case err == nil && was != nil:
		c.log.info("database takes rows again", "path", c.path, "after", time.Since(since).Round(time.Millisecond))
	}
}

// forget deletes the rows that are too old, a chunk at a time, and commits what
// has come in between.
func (c *committer) forget() error {
	if c.retention <= 0 {
		return nil
	}
	for !c.stopping() {
		n, err := c.forgetSome()
		if err != nil {
			return err
		}
		if n < maxDelete {
			return nil
		}
		if err := c.drain(); err != nil {
			return err
		}
	}
	return nil
}

func (c *committer) forgetSome() (n int64, err error) {
	defer func() {
		if r := recover(); r != nil {
			c.db = nil
			err = fmt.Errorf("the database engine failed: %v", r)
		}
	}()
	if err := c.open(); err != nil {
		return 0, err
	}
	n, err = c.db.forgetBefore(c.now().Add(-c.retention))
	if err != nil {
		c.drop(err)
		return 0, err
	}
	c.mu.Lock()
	c.progress.deleted += n
	c.mu.Unlock()
	return n, nil
}

func (c *committer) stopping() bool {
	select {
	case <-c.stop:
		return true
	default:
		return false
	}
}

// pause waits before another try, twice as long as the time before. What is in
// the spill is synced meanwhile, since only the database would survive a loss
// of power. It reports false when the ledger closes.
func (c *committer) pause(backoff *time.Duration) bool {
	*backoff = min(max(2**backoff, backoffMin), backoffMax)
	if *backoff == backoffMax {
		if err := c.spill.sync(); err != nil {
			c.log.warn("spill cannot be synced", "a loss of power would lose what the database has not taken", "error", err)
		}
	}
	t := time.NewTimer(*backoff)
	defer t.Stop()
	select {
	case <-t.C:
	case <-c.stop:
		// One last try follows.
	}
	return true
}

// leave closes what the goroutine has open.
func (c *committer) leave() {
	c.tail.close()
	if c.db == nil {
		return
	}
	defer func() {
		if r := recover(); r != nil {
			c.report(fmt.Errorf("the database engine failed: %v", r))
		}
	}()
	if err := c.db.close(); err != nil {
		c.report(fmt.Errorf("close: %w", err))
	}
}
