package slo

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// MaxSeries is how many models have counts of their own, over all classes.
	MaxSeries = 200
	// OtherModel is the model of calls whose own has none: in each class one more series.
	OtherModel = "_other"
	// MaxModel is the longest name of a model that has counts of its own, in bytes.
	MaxModel = 128
)

// Tracker counts the calls of classes and says how their objectives stand. Its
// methods may be called by many goroutines at once. None reads a clock: the time that
// Configure, Tick and Status are told is what is known of it.
//
// # Models
//
// Names of models come from clients, so a model gets counts of its own only when a call with this name
// has been answered, by a first token in time or to its end (Ending Answered), in any class;
// from then on its calls count by themselves, in each class. Until then they count under
// OtherModel. Which of the two it is for a call is looked up once, when the first of its
// objectives is judged (after what judges it has proven its model), and does not
// change. So a name that nothing answers to makes no series. At most MaxSeries models have counts; when there
// are as many, one of which nothing is kept any more gives way, and else the calls
// of further models count under OtherModel, and in Status.Lost.
//
// # Minutes
//
// Counts are kept by the minute for three days and an hour, and by the hour for 34 days, all by
// UTC. A decision counts in the minute of the instant at which it fell, whenever the
// Tracker is told of it. If its minute is more than a day ahead of the
// newest that Configure, Tick or Status was told, or is older than what is kept, then the clock was
// set meanwhile, and it counts in the current minute. In the same way a time that
// differs from the one before by more than a day is believed only when it has been told for five
// minutes; until then time stands still. Configure alone is believed at once. So a clock
// that goes wrong for a moment does no harm, and one that stays wrong costs minutes
// of their resolution, but no count, as long as it is off by less than what is kept.
type Tracker struct {
	// mu is held by whatever changes which classes there are, or reads all: Configure,
	// Restore, Apply, Merge, Snapshot, Changes. Classes' locks come after it.
	mu      sync.Mutex
	clock   clock
	classes atomic.Pointer[map[string]*class]
	few     atomic.Pointer[[]*class] // the same where they are few, and a look at each is quicker; else nil
	config  atomic.Pointer[Config]   // nil judges nothing
	dropped []string
	// reshaped is whether the columns have changed since the last Snapshot or Changes.
	reshaped bool

	models models
}

// class is a class by name. It outlives reloads that keep it.
type class struct {
	name string
	mu   sync.Mutex
	// def is nil for one that is not configured: then it only keeps what was restored.
	def    *definition
	layout *layout
	began  []int64 // of each column: when its counts began, in nanoseconds since 1970
	since  int64   // the first minute for which its envelope holds
	series map[string]*series
	recent *series // the one that at has returned last
	// decisions is room for End and Correct.
	decisions [MaxObjectives]decision
	// waiting is a ring of calls that have not ended, through their next and prev. It is
	// the start and the end, and no call.
	waiting Pending
}

func newClass(name string, l *layout) *class {
	c := &class{name: name, layout: l, began: make([]int64, len(l.keys)), since: longAgo, series: make(map[string]*series)}
	c.waiting.next, c.waiting.prev = &c.waiting, &c.waiting
	return c
}

// New returns a Tracker that judges nothing until it is configured.
func New() *Tracker {
	t := new(Tracker)
	t.publish(map[string]*class{})
	return t
}

// fewClasses is how many names are compared before a map is quicker.
const fewClasses = 8

// publish makes these the classes that there are. t.mu is held.
func (t *Tracker) publish(classes map[string]*class) {
	t.classes.Store(&classes)
	if len(classes) > fewClasses {
		t.few.Store(nil)
		return
	}
	few := slices.Collect(maps.Values(classes))
	t.few.Store(&few)
}

// class returns the class of a name, nil if it is not known.
func (t *Tracker) class(name string) *class {
	few := t.few.Load()
	if few == nil {
		return (*t.classes.Load())[name]
	}
	for _, c := range *few {
		if c.name == name {
			return c
		}
	}
	return nil
}

// Configure sets what is judged from now on. c is what Complete returned; an
// error changes nothing.
//
// Calls that are on their way stay judged by the objectives that were valid when
// they began. The counts of an objective are kept while its class, number, threshold, fallback and conditions are
// unchanged, for they do not depend on target and period; of goodput,
// while this is so for all objectives of the class. All others begin now, and what is not kept is dropped: see
// Dropped. Another envelope holds from this minute on: minutes before stay as
// inside or outside as they were.
func (t *Tracker) Configure(c Config, now time.Time) error {
	if err := c.Validate(); err != nil {
		return fmt.Errorf("configure objectives: %w", err)
	}
	c.Classes = slices.Clone(c.Classes)
	for i := range c.Classes {
		c.Classes[i] = c.Classes[i].clone()
	}
	c.Burn = slices.Clone(c.Burn)
	t.mu.Lock()
	defer t.mu.Unlock()
	a := t.clock.begin(now, c.Period)
	t.dropped, t.reshaped = nil, true
	was := *t.classes.Load()
	classes := make(map[string]*class, len(c.Classes))
	for _, k := range c.Classes {
		d := newDefinition(k)
		x := was[k.Name]
		if x == nil {
			x = newClass(k.Name, d.layout)
			for i := range x.began {
				x.began[i] = now.UnixNano()
			}
			x.def = d
		} else {
			t.drop(x, x.reshape(a, d, d.layout, now.UnixNano()))
		}
		classes[k.Name] = x
	}
	for name, x := range was {
		if classes[name] == nil {
			t.drop(x, t.retire(x))
		}
	}
	slices.Sort(t.dropped)
	t.publish(classes)
	t.config.Store(&c)
	return nil
}

// Dropped returns the objectives whose counts the latest Configure has dropped, as in
// "interactive: ttft <= 2s".
func (t *Tracker) Dropped() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.dropped)
}

func (t *Tracker) drop(c *class, keys []string) {
	for _, key := range keys {
		if i := strings.LastIndex(key, goodputOf); i >= 0 {
			key = key[:i]
		}
		t.dropped = append(t.dropped, c.name+": "+key)
	}
}

// reshape gives a class another definition, which may be nil, and layout, and returns
// the keys of dropped columns that had counts. Columns that are new begin at began.
func (c *class) reshape(a *aging, d *definition, l *layout, began int64) (dropped []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	old := c.layout
	from := l.from(old)
	cols := make([]int, len(l.keys))
	starts := make([]int64, len(l.keys))
	for i, key := range l.keys {
		cols[i], starts[i] = old.index(key), began
		if cols[i] >= 0 {
			starts[i] = c.began[cols[i]]
		}
	}
	for i, key := range old.keys {
		if !slices.Contains(cols, i) && c.has(i) {
			dropped = append(dropped, key)
		}
	}
	same := slices.Equal(old.keys, l.keys) && old.sameEnvelope(l)
	for _, s := range c.series {
		s.age(a)
		if !same {
			s.remap(a, l, from, cols)
		}
		s.layout = l
	}
	if !old.sameEnvelope(l) {
		c.since = a.minute
	}
	c.def, c.layout, c.began = d, l, starts
	return dropped
}

// has tells whether a column has counts. The lock is held.
func (c *class) has(col int) bool {
	for _, s := range c.series {
		for _, h := range s.hours {
			if h != nil && sumOf(h.total[kinds*col:kinds*(col+1)]) != 0 {
				return true
			}
		}
		for _, d := range s.days {
			n := s.layout.counts
			if d != nil && sumOf(d.total[kinds*col:kinds*(col+1)])+sumOf(d.total[n+kinds*col:n+kinds*(col+1)]) != 0 {
				return true
			}
		}
	}
	return false
}

// retire ends a class, and returns the keys of columns that had counts. Its calls that are on
// their way count nowhere.
func (t *Tracker) retire(c *class) (dropped []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, key := range c.layout.keys {
		if c.has(i) {
			dropped = append(dropped, key)
		}
	}
	c.def = nil
	t.empty(c)
	return dropped
}

// empty drops the series of a class, and returns them. The class's lock is held.
func (t *Tracker) empty(c *class) map[string]*series {
	was := c.series
	for name, s := range was {
		s.dead = true
		t.models.leave(name)
	}
	c.series = make(map[string]*series)
	return was
}

// remap gives the counts another layout. from has for each of its columns which one it
// was, -1 for none, cols the same for each key.
func (s *series) remap(a *aging, l *layout, from, cols []int) {
	if !l.sameEnvelope(s.layout) {
		s.settle(a)
	}
	counts := from[:l.counts]
	for _, h := range s.hours {
		if h != nil {
			h.remap(l, from)
		}
	}
	for _, d := range s.days {
		if d != nil {
			d.remap(counts, s.layout.counts)
		}
	}
	s.life, s.lifeOut = pick(s.life, counts), pick(s.lifeOut, counts)
	shown := make([]int64, 4*len(cols))
	for i, o := range cols {
		if o >= 0 {
			copy(shown[4*i:4*i+4], s.shown[4*o:])
		}
	}
	s.shown = shown
	s.seconds.remap(cols)
	s.layout = l
}
