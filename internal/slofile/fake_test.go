package slofile

import (
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"strings"
	"sync"
	"testing"
)

// tally is a State for tests: it counts, and its changes are what to add.
type tally struct {
	mu     sync.Mutex
	counts map[string]int64
	recent map[string]int64
	bulk   []byte // stands before the snapshot, to make it large
	refuse string // Restore and Merge refuse a snapshot with this in it
}

func newTally() *tally {
	return &tally{counts: map[string]int64{}, recent: map[string]int64{}}
}

func (s *tally) add(name string, n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[name] += n
	s.recent[name] += n
}

// grow makes the snapshot larger.
func (s *tally) grow(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.bulk = make([]byte, n)
}

func (s *tally) get(name string) int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.counts[name]
}

func (s *tally) Snapshot() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.recent)
	b, err := json.Marshal(s.counts)
	if err != nil {
		panic(err)
	}
	return append(bytes.Clone(s.bulk), b...)
}

func (s *tally) Changes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.recent) == 0 {
		return nil
	}
	b, err := json.Marshal(s.recent)
	if err != nil {
		panic(err)
	}
	clear(s.recent)
	return b
}

func (s *tally) Restore(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.counts) > 0 {
		panic("restored into a state that has counted")
	}
	return s.take(b)
}

func (s *tally) Merge(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(b)
}

func (s *tally) Apply(b []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.take(b)
}

// take adds counts. The lock is held.
func (s *tally) take(b []byte) error {
	if s.refuse != "" && strings.Contains(string(b), s.refuse) {
		return errors.New("not of this version")
	}
	var more map[string]int64
	if err := json.Unmarshal(bytes.TrimLeft(b, "\x00"), &more); err != nil {
		return err
	}
	for name, n := range more {
		s.counts[name] += n
	}
	return nil
}

// plain is a State that cannot merge.
type plain struct{ State }

// want checks counts.
func (s *tally) want(t *testing.T, want map[string]int64) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !maps.Equal(s.counts, want) {
		t.Errorf("counts are %v, want %v", s.counts, want)
	}
}

// told is what people were told.
type told struct {
	mu    sync.Mutex
	lines []string
}

func (r *told) report(text string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		text += ": " + err.Error()
	}
	r.lines = append(r.lines, text)
}

// want checks that just these were told, each by a piece of it.
func (r *told) want(t *testing.T, pieces ...string) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	ok := len(r.lines) == len(pieces)
	for i := 0; ok && i < len(pieces); i++ {
		ok = strings.Contains(r.lines[i], pieces[i])
	}
	if !ok {
		t.Errorf("told were %q, want %q", r.lines, pieces)
	}
	r.lines = nil
}
