package alert

import (
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/weirgate/weir/slo"
)

// Manager keeps alerts and tells receivers. Make it once with New: it outlives
// configurations. All methods may be called from any goroutine.
type Manager struct {
	wake chan struct{} // something for Run to do; room for one

	mu      sync.Mutex // guards all below, and all fields of entries and outlets but those said otherwise
	options Options
	entries map[key]*entry
	outlets []*outlet
	// leftOut is how many conditions held at the last Observe that there was no room for.
	leftOut int
	begun   uint64 // how many times an alert began
	round   uint64 // how many times Observe was called
	// observed is the time of the last Observe, or of that of the process before, and before
	// that of the one before it.
	observed, before time.Time
	// stopping is that Run's context is done: what waits is told at once, or never.
	stopping bool

	unkept chan struct{} // something for a Keeper to do; room for one
	kept   keeping
	tagger tagger
}

// entry is one alert: firing, or at its end and owed to somebody.
type entry struct {
	key         key
	labels      map[string]string // never changed
	fingerprint string
	// begin numbers this beginning among all of the Manager's.
	begin uint64
	// round is the last Observe that had its objective.
	round        uint64
	starts, ends time.Time // ends is zero while it is firing
	clear        time.Time // since when its condition is away; zero while it holds
	// objective and period are the newest with which the condition held.
	objective slo.ObjectiveStatus
	period    slo.PeriodStatus
	// inhibitedBy is the alert for whose sake this one is not told; nil is none.
	inhibitedBy *key
	announced   bool   // this beginning was to be told
	blame       *Blame // nil is not known; never changed
	asked       asked
	marks       map[*outlet]*mark
	// resumed is that it was taken up from an earlier process and not looked at since, and
	// stale that this was after a long gap and it was not seen to hold since.
	resumed, stale bool
	written        written
}

func (e *entry) firing() bool { return e.ends.IsZero() }

// New makes a Manager. What Options.Validate complains of is left out. Nobody is told
// anything until Run.
func New(o Options) *Manager {
	m := &Manager{wake: make(chan struct{}, 1), entries: make(map[key]*entry), unkept: make(chan struct{}, 1), tagger: newTagger()}
	m.Configure(o)
	return m
}

// Configure makes other options hold at once. Active alerts go on, with the labels that
// they began with. A receiver that is new, or whose address or headers changed, is told
// all of them; one that stays the same knows them already; one that is gone is told
// nothing any more, not even that an alert ended: in Alertmanager it ends by itself after
// four minutes.
func (m *Manager) Configure(o Options) {
	o = o.complete()
	m.mu.Lock()
	defer m.mu.Unlock()
	m.options = o
	before := m.outlets
	m.outlets = make([]*outlet, 0, len(o.Receivers))
	names := make(map[string]int)
	for _, r := range o.Receivers {
		manners := mannersOf(r)
		same := func(out *outlet) bool { return out.manners.identity == manners.identity }
		if slices.ContainsFunc(m.outlets, same) {
			continue
		}
		var out *outlet
		if i := slices.IndexFunc(before, same); i >= 0 {
			out = before[i]
			if out.receiver != r {
				out.letGo()
			}
		} else {
			out = newOutlet()
		}
		out.receiver, out.manners, out.name = r, manners, r.Name()
		names[out.name]++
		if n := names[out.name]; n > 1 {
			out.name += " (" + strconv.Itoa(n) + ")"
		}
		m.outlets = append(m.outlets, out)
	}
	for _, out := range before {
		if !slices.Contains(m.outlets, out) {
			m.remove(out)
		}
	}
	m.inhibit()
	m.changed() // whose tags are to be made before there is anything to write
	m.wakeAll()
}

// remove ends an outlet; m.mu is held.
func (m *Manager) remove(out *outlet) {
	out.remove()
	for _, e := range m.entries {
		if e.marks[out] != nil {
			delete(e.marks, out)
			m.changed()
		}
	}
	m.tidy()
}

// tidy forgets alerts that ended and that nobody is owed; m.mu is held.
func (m *Manager) tidy() {
	for k, e := range m.entries {
		if !e.firing() && !m.owed(e) {
			delete(m.entries, k)
			m.changed()
		}
	}
}

// owed tells whether somebody has yet to be told of an alert's end; m.mu is held.
func (m *Manager) owed(e *entry) bool {
	for _, mark := range e.marks {
		if mark.due(e) != nothing {
			return true
		}
	}
	return false
}

// wakeAll wakes Run and all outlets; m.mu is held.
func (m *Manager) wakeAll() {
	nudge(m.wake)
	for _, out := range m.outlets {
		nudge(out.wake)
	}
}

func nudge(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default: // it is awake already
	}
}
