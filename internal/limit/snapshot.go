package limit

import (
	"cmp"
	"slices"
	"time"
)

// snapshotChunk is how many sets are read under the lock at a time, so that calls do
// not wait for a snapshot of a pool with many keys.
const snapshotChunk = 64

// Use tells how one bucket stands.
type Use struct {
	Scope     Scope     `json:"scope"`
	Subject   string    `json:"subject"`
	Dimension Dimension `json:"dimension"`
	// Limit is this gateway's part of the limit: per minute for a rate, at once for a cap.
	Limit int64 `json:"limit"`
	// Burst is what a rate's bucket holds; for a cap it is the limit.
	Burst int64 `json:"burst"`
	// Used is what is gone of the burst, more than all of it in debt; or what is in flight.
	Used int64 `json:"used"`
	// InFlight is the number of calls that have yet to settle here.
	InFlight int64 `json:"in_flight"`
}

// fullness is Used as a part of Burst; that of a limit of 0 is above all others.
func (u *Use) fullness() float64 {
	return float64(max(u.Used, 1-min(u.Burst, 1))) / float64(max(u.Burst, 1))
}

// Refused counts the calls of one key that met one limit, the highest of those in
// their way; so the sum over all is the number of calls.
type Refused struct {
	Key       string    `json:"key"`
	Scope     Scope     `json:"scope"`
	Dimension Dimension `json:"dimension"`
	Mode      Mode      `json:"mode"` // Enforce: refused; Shadow: only counted
	Calls     int64     `json:"calls"`
}

// Snapshot is the state of a pool for metrics and people.
type Snapshot struct {
	Pool        string `json:"pool"`
	Mode        Mode   `json:"mode"` // of the policy
	MeasureOnly bool   `json:"measure_only"`
	// Uses are in the order of scope, subject and dimension. Each is of one moment, but
	// not all of the same.
	Uses []Use `json:"uses"`
	// LeftOut is how many more buckets there are, none of them fuller.
	LeftOut int `json:"left_out"`
	// Refused are in the order of key, scope, dimension and mode. Keys beyond the first
	// 1000 without limits of their own are Other.
	Refused []Refused `json:"refused"`
	// Overflowed is the number of times that a call used the shared bucket Other because
	// there was no room for its own.
	Overflowed int64 `json:"overflowed"`
}

// Snapshot returns the state of the pool with at most the given number of buckets:
// the fullest.
func (p *Pool) Snapshot(most int) Snapshot {
	snap, sets := p.snapshotHead()
	most = max(most, 0)
	total := 0
	for chunk := range slices.Chunk(sets, snapshotChunk) {
		n := len(snap.Uses)
		snap.Uses = p.appendUses(snap.Uses, chunk)
		total += len(snap.Uses) - n
		if len(snap.Uses) > 2*most+snapshotChunk*numDimensions {
			snap.Uses = fullest(snap.Uses, most)
		}
	}
	snap.Uses = fullest(snap.Uses, most)
	snap.LeftOut = total - len(snap.Uses)
	slices.SortFunc(snap.Uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.Subject, b.Subject),
			cmp.Compare(a.Dimension, b.Dimension))
	})
	slices.SortFunc(snap.Refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Scope, b.Scope),
			cmp.Compare(a.Dimension, b.Dimension), cmp.Compare(a.Mode, b.Mode))
	})
	return snap
}

// snapshotHead returns all but the uses, and the sets to read them from.
func (p *Pool) snapshotHead() (Snapshot, []*set) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return Snapshot{Pool: p.name, Mode: p.mode, MeasureOnly: p.measureOnly,
		Refused: p.refusals.list(), Overflowed: p.overflowed}, slices.Clone(p.order)
}

// appendUses reads the buckets of some sets. One dropped since may be there anew
// under the same name, and is left to the next snapshot.
func (p *Pool) appendUses(uses []Use, sets []*set) []Use {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := p.now()
	for _, s := range sets {
		if s.dropped {
			continue
		}
		for d := range s.sizes {
			z := &s.sizes[d]
			if !z.applies {
				continue
			}
			uses = append(uses, Use{s.scope, s.text, Dimension(d), z.limit, z.burst,
				s.used(Dimension(d), now), s.calls})
		}
	}
	return uses
}

// used returns what is gone of a dimension that applies. The mutex is held.
func (s *set) used(d Dimension, now time.Time) int64 {
	switch d {
	case Concurrency:
		return s.calls
	case TokensInFlight:
		return s.tokens
	}
	b := s.rates[d]
	return b.burst - b.whole(b.level(now))
}

// fullest keeps the most that are fullest.
func fullest(uses []Use, most int) []Use {
	if len(uses) <= most {
		return uses
	}
	slices.SortFunc(uses, func(a, b Use) int {
		return cmp.Or(cmp.Compare(b.fullness(), a.fullness()), cmp.Compare(a.Scope, b.Scope),
			cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Dimension, b.Dimension))
	})
	return uses[:most]
}
