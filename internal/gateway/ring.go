package gateway

import (
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// ring keeps the latest RingSize records. Its zero value is empty.
type ring struct {
	mu      sync.Mutex
	records [RingSize]*call.Record
	next    int // where the next record goes; the newest is just before it
}

func (r *ring) add(rec *call.Record) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.records[r.next] = rec
	r.next = (r.next + 1) % RingSize
}

// newest returns all records, the newest first.
func (r *ring) newest() []*call.Record {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := make([]*call.Record, 0, RingSize)
	for i := 1; i <= RingSize; i++ {
		rec := r.records[(r.next-i+RingSize)%RingSize]
		if rec == nil {
			break
		}
		all = append(all, rec)
	}
	return all
}

// Filter picks records; empty fields pick all.
type Filter struct {
	Key, Model, Run string
	Class, Upstream string
	ID              string // ours, the client's request id, or the upstream's response id
	Outcome         call.Outcome
	Since           time.Time     // received at or after
	MinTTFT         time.Duration // TTFT known and at least this
	Failed          bool          // from the ring of failed calls
	Limit           int           // at most so many; 0 is all
}

// Calls returns the records that f picks, the newest first.
func (g *Gateway) Calls(f Filter) []*call.Record {
	from := &g.recent
	if f.Failed {
		from = &g.failed
	}
	picked := make([]*call.Record, 0, 16)
	for _, rec := range from.newest() {
		if f.Limit > 0 && len(picked) == f.Limit {
			break
		}
		if f.picks(rec) {
			picked = append(picked, rec)
		}
	}
	return picked
}

func (f *Filter) picks(rec *call.Record) bool {
	is := func(want, got string) bool { return want == "" || want == got }
	if !is(f.Key, rec.Key) || !is(f.Model, rec.Model) || !is(f.Run, rec.Run) ||
		!is(f.Class, rec.Class) || !is(f.Upstream, rec.Upstream) ||
		!is(string(f.Outcome), string(rec.Outcome)) || rec.Time.Before(f.Since) {
		return false
	}
	if f.ID != "" && f.ID != rec.ID && f.ID != rec.RequestID && f.ID != rec.ResponseID {
		return false
	}
	if f.MinTTFT > 0 {
		ttft, known := rec.TTFT.Get()
		return known && ttft >= f.MinTTFT
	}
	return true
}
