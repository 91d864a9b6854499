package alert

import (
	"bytes"
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// disk is a Shelf for tests, which outlives processes.
type disk struct {
	mu     sync.Mutex
	data   []byte           // nil is nothing
	aside  []byte           // what was set aside
	fault  map[string]error // of load, store, aside
	torn   bool             // a store that fails has stored nevertheless
	delay  time.Duration    // of a store
	hang   chan struct{}    // every step waits until it is closed
	stores []time.Time
	loads  int
}

func newDisk() *disk { return &disk{fault: make(map[string]error)} }

func (d *disk) set(change func(d *disk)) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change(d)
}

func (d *disk) kept() []byte {
	d.mu.Lock()
	defer d.mu.Unlock()
	return bytes.Clone(d.data)
}

func (d *disk) times() []time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stores
}

// step stands in the way of each; the lock is held when it returns.
func (d *disk) step(what string) error {
	d.mu.Lock()
	hang, delay := d.hang, d.delay
	d.mu.Unlock()
	if hang != nil {
		<-hang
	}
	if what == "store" {
		time.Sleep(delay)
	}
	d.mu.Lock()
	return d.fault[what]
}

// handle is the disk as one process has it.
type handle struct {
	*disk
	dead *atomic.Bool // the process was killed
}

func (h handle) Name() string { return "alerts.json" }

func (h handle) Load() ([]byte, error) {
	err := h.step("load")
	defer h.mu.Unlock()
	h.loads++
	return bytes.Clone(h.data), err
}

func (h handle) Store(data []byte) error {
	err := h.step("store")
	defer h.mu.Unlock()
	if h.dead.Load() {
		return errDead
	}
	if err == nil || h.torn {
		h.data = bytes.Clone(data)
	}
	h.stores = append(h.stores, time.Now())
	return err
}

func (h handle) SetAside() (string, error) {
	err := h.step("aside")
	defer h.mu.Unlock()
	if err == nil {
		h.aside, h.data = h.data, nil
	}
	return "unreadable.alerts.json", err
}

// mortal is a scribe as one process tells it.
type mortal struct {
	*scribe
	dead  *atomic.Bool
	delay time.Duration // before it hears, and before it answers
}

func (m mortal) Send(ctx context.Context, b Batch) error {
	time.Sleep(m.delay)
	if m.dead.Load() {
		return Permanent(errDead)
	}
	err := m.scribe.Send(ctx, b)
	time.Sleep(m.delay)
	return err
}

// life is one process.
type life struct {
	*Manager
	keeper *Keeper
	dead   atomic.Bool
	cancel context.CancelFunc
	ended  chan struct{}
	told   *reports
}

// born begins a process with what is on a disk.
func born(t *testing.T, d *disk, o Options) *life {
	t.Helper()
	l := &life{Manager: New(Options{}), ended: make(chan struct{}), told: new(reports)}
	l.tagger.rounds = 1
	for i, r := range o.Receivers {
		if s, ok := r.(*scribe); ok {
			o.Receivers[i] = mortal{scribe: s, dead: &l.dead}
		} else if m, ok := r.(mortal); ok {
			o.Receivers[i] = mortal{scribe: m.scribe, dead: &l.dead, delay: m.delay}
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	l.cancel = cancel
	go func() { defer close(l.ended); l.Run(ctx) }()
	l.Configure(o)
	l.keeper = l.Keep(handle{d, &l.dead}, l.told.add)
	return l
}

// dies ends a process as the user ends it.
func (l *life) dies(t *testing.T) {
	t.Helper()
	l.cancel()
	<-l.ended
	if err := l.keeper.Close(soon(t)); err != nil {
		t.Errorf("close: %v", err)
	}
	l.dead.Store(true)
}

// killed ends a process at once: what it still does, nobody hears, and no disk has.
func (l *life) killed() {
	l.dead.Store(true)
	l.cancel()
	l.keeper.closed.Do(func() { close(l.keeper.stop) })
}

// soon is a context that only a test that hangs sees the end of.
func soon(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Hour)
	t.Cleanup(cancel)
	return ctx
}

// see shows a process how all stand, and lets receivers hear it.
func (l *life) see(all ...standing) {
	l.Observe(time.Now(), statusAt(time.Now(), all...))
	pass(time.Second)
}

// says fails unless just these were told to people, each by a piece of it.
func (l *life) says(t *testing.T, pieces ...string) {
	t.Helper()
	all := l.told.take()
	lines := strings.Split(all, "\n")
	if all == "" {
		lines = nil
	}
	ok := len(lines) == len(pieces)
	for i := 0; ok && i < len(pieces); i++ {
		ok = strings.Contains(lines[i], pieces[i])
	}
	if !ok {
		t.Errorf("people were told %q, want %q", lines, pieces)
	}
}
