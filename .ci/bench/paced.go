package main

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"time"
)

// paced is the load of many streams with an event at a fixed interval each,
// their events spread evenly over the interval.
type paced struct {
	up      *upstream
	streams []*stream
}

const (
	pacedStreams  = 300
	pacedInterval = 20 * time.Millisecond
)

func newPaced(u *upstream, g *gateway) (load, error) {
	streams, err := openStreams(u, g, pacedStreams, 4<<10)
	return &paced{up: u, streams: streams}, err
}

func (l *paced) run(d time.Duration) (traffic, error) {
	events := max(int(d/pacedInterval), 1)
	end := time.Now().Add(d + ioLimit)

	// Readers first: each expects its share of events and takes the time of each.
	var wg sync.WaitGroup
	var mu sync.Mutex // guards delays and errs
	var delays []time.Duration
	var errs []error
	for _, s := range l.streams {
		wg.Go(func() {
			own, err := s.readStamped(events, end)
			mu.Lock()
			defer mu.Unlock()
			delays = append(delays, own...)
			if err != nil && len(errs) < 3 {
				errs = append(errs, err)
			}
		})
	}
	// The pace is the clock's, not the sleep's: what one sleep overshoots, the
	// next events make up for.
	start := time.Now()
	step := pacedInterval / time.Duration(len(l.streams))
	giveUp := time.NewTimer(d + ioLimit)
	defer giveUp.Stop()
	did := traffic{units: int64(events * len(l.streams))}
	stuck := false
	for i := 0; i < int(did.units) && !stuck; i++ {
		if wait := time.Until(start.Add(time.Duration(i) * step)); wait > 0 {
			time.Sleep(wait)
		}
		writes := l.streams[i%len(l.streams)].writes
		select {
		case writes <- 1:
		default:
			// The write before has not been taken for a whole interval.
			did.late++
			select {
			case writes <- 1:
			case <-giveUp.C:
				stuck = true
			}
		}
	}
	if stuck {
		for _, s := range l.streams {
			s.client.conn.Close()
		}
		mu.Lock()
		errs = append(errs, errors.New("the upstream could not write for half a minute; is this machine busy with something else?"))
		mu.Unlock()
	}
	wg.Wait()
	did.delays = delays
	return did, errors.Join(errs...)
}

// readStamped reads n content events and returns how long each was under way.
func (s *stream) readStamped(n int, until time.Time) ([]time.Duration, error) {
	if err := s.client.conn.SetDeadline(until); err != nil {
		return nil, err
	}
	if len(s.buf) != len(contentChunk) {
		s.buf = make([]byte, len(contentChunk))
	}
	delays := make([]time.Duration, 0, n)
	for range n {
		if _, err := io.ReadFull(s.body, s.buf); err != nil {
			return delays, fmt.Errorf("read an event: %w", err)
		}
		now := time.Since(epoch)
		var sent time.Duration
		for _, c := range s.buf[stampAt : stampAt+stampLen] {
			if c < '0' || c > '9' {
				return delays, errors.New("an event came changed")
			}
			sent = sent*10 + time.Duration(c-'0')
		}
		delays = append(delays, now-sent)
	}
	return delays, nil
}

func (l *paced) close() { finishAll(l.up, l.streams) }
