package keys

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/binary"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Store holds the keys of a file and finds the caller of a key. Open makes one.
// It may be used by many goroutines at once. Lookup, All and State take no lock
// and never wait for a disk: they read the latest snapshot, which Reload replaces
// as a whole.
type Store struct {
	path    string
	current atomic.Pointer[snapshot] // never nil

	mu   sync.Mutex // held by one Reload at a time, over its reading of the file
	seen sighting   // guarded by mu
}

// snapshot is the last good content of the file, and what is wrong now. It does
// not change.
type snapshot struct {
	*table
	digest   [sha256.Size]byte // of the content that table was made of
	loadedAt time.Time         // when; zero is never
	err      error             // why the file as it is now cannot be used; nil if it can
	errSince time.Time
}

// State says how a Store stands.
type State struct {
	Path string `json:"path"`
	// Keys is the number of keys in use, expired and revoked ones included.
	Keys int `json:"keys"`
	// LoadedAt is when these were read; zero is never.
	LoadedAt time.Time `json:"loaded_at,omitzero"`
	// Error says why the file as it is now is not in use, and what to do; "" is
	// that it is in use. It shows no secret.
	Error string `json:"error,omitempty"`
	// ErrorSince is when the file was first found so.
	ErrorSince time.Time `json:"error_since,omitzero"`
}

// Open returns a Store of the file at path. It never fails: a file that is missing
// or broken gives a Store without keys, whose State says why, and which takes
// the file up as soon as a Reload finds it right. So a gateway starts, and goes
// on starting, whatever happened to the file.
func Open(path string, now time.Time) *Store {
	s := &Store{path: path}
	s.current.Store(&snapshot{table: new(table)})
	_, _ = s.Reload(now) // State has the error
	return s
}

// State returns how the Store stands.
func (s *Store) State() State {
	c := s.current.Load()
	state := State{Path: s.path, Keys: len(c.keys), LoadedAt: c.loadedAt, ErrorSince: c.errSince}
	if c.err != nil {
		state.Error = c.err.Error()
	}
	return state
}

// All returns the keys in the order of the file, expired and revoked ones
// included. The slice is the caller's.
func (s *Store) All() []*Key { return slices.Clone(s.current.Load().keys) }

// Lookup finds the caller of a key and says whether the key is good at a time.
// The Key is nil when the status is Missing (key is "") or Unknown. With
// Expired and Revoked it is there, so that such calls can be attributed; they
// must not be admitted where keys are enforced.
//
// The key is looked up by its SHA-256, and only then compared in constant time.
// How long a map takes to find a digest, or not to find it, could tell something of
// the digests in it. That is of no use: to learn a digest bit by bit, a caller
// would have to choose digests, but can only choose keys, and finding a key for a
// chosen beginning of a digest costs twice as much with every bit. And a digest known in
// whole would still not give the key, which has more bits than can be tried (see
// Digest). So the search may take its time; the comparison that decides does not
// depend on where two digests differ.
//
// It allocates nothing.
func (s *Store) Lookup(key string, now time.Time) (*Key, Status) {
	switch {
	case key == "":
		return nil, Missing
	case len(key) > maxKey:
		return nil, Unknown
	}
	sum := digest(key)
	e := s.current.Load().find(&sum)
	switch {
	case e == nil:
		return nil, Unknown
	case !e.key.Revoked.IsZero():
		return e.key, Revoked
	case !e.until.IsZero() && !now.Before(e.until):
		return e.key, Expired
	}
	return e.key, Known
}

// find returns the entry of a digest, or nil.
func (t *table) find(sum *[sha256.Size]byte) *entry {
	at, ok := t.first[binary.NativeEndian.Uint64(sum[:8])]
	if !ok {
		return nil
	}
	for ; at >= 0; at = t.entries[at].next {
		if e := &t.entries[at]; subtle.ConstantTimeCompare(e.digest[:], sum[:]) == 1 {
			return e
		}
	}
	return nil
}
