package alert

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/slo"
)

// standing says how one objective stands, as tests want it.
type standing struct {
	class, objective, model string
	page, ticket, outage    bool
	consumed                float64 // of the budget; its state follows
	tooFew                  bool
}

var (
	fastRule   = slo.BurnRule{Long: time.Hour, Short: 5 * time.Minute, Factor: 14.4, Page: true}
	mediumRule = slo.BurnRule{Long: 6 * time.Hour, Short: 30 * time.Minute, Factor: 6, Page: true}
	slowRule   = slo.BurnRule{Long: 72 * time.Hour, Short: 6 * time.Hour, Factor: 1}
)

func ptr[T any](v T) *T { return &v }

// status makes the status of one.
func (s standing) status() slo.ObjectiveStatus {
	o := slo.ObjectiveStatus{
		Class: s.class, Model: s.model, Text: s.objective + " p99 <= 2s", State: slo.StateOK,
		Objective: slo.Objective{Name: s.objective, Number: slo.TTFT, Target: 990_000, Threshold: 2 * time.Second},
		Counts:    slo.Counts{Good: 10_000 - int64(100*s.consumed), Bad: int64(100 * s.consumed)},
		Burn: []slo.Burn{
			{Window: 5 * time.Minute, Counts: slo.Counts{Good: 168, Bad: 32}, Rate: ptr(16.0)},
			{Window: 30 * time.Minute},
			{Window: time.Hour, Counts: slo.Counts{Good: 3382, Bad: 618}, Rate: ptr(15.45)},
			{Window: 6 * time.Hour, Counts: slo.Counts{Good: 19_700, Bad: 300}, Rate: ptr(1.5)},
			{Window: 72 * time.Hour, Counts: slo.Counts{Good: 197_400, Bad: 2600}, Rate: ptr(1.3)},
		},
		Budget: slo.Budget{Calls: 10_000, Allowed: ptr(100.0), Consumed: ptr(s.consumed), Left: ptr(1 - s.consumed), State: slo.StateOK, TooFew: s.tooFew},
	}
	switch {
	case s.tooFew:
	case s.consumed >= 1:
		o.Budget.State = slo.StateExhausted
	case s.consumed >= 0.8:
		o.Budget.State = slo.StateFreeze
	case s.consumed >= 0.5:
		o.Budget.State = slo.StateWarning
	}
	if s.outage {
		o.Firing = append(o.Firing, slo.Firing{Outage: true, Bad: 58, Total: 60})
	}
	if s.page {
		o.Firing = append(o.Firing, slo.Firing{Rule: fastRule, Page: true, Bad: 32, Total: 200})
	}
	if s.ticket {
		o.Firing = append(o.Firing, slo.Firing{Rule: slowRule, Bad: 300, Total: 20_000})
	}
	return o
}

// statusAt makes a Status of what stands.
func statusAt(now time.Time, all ...standing) slo.Status {
	s := slo.Status{At: now, Since: now.Add(-24 * time.Hour), Period: slo.PeriodStatus{Name: "rolling 30d", From: now.Add(-30 * 24 * time.Hour), To: now}}
	for _, one := range all {
		if one.class == "" {
			one.class = "interactive"
		}
		if one.objective == "" {
			one.objective = "ttft_p99"
		}
		s.Objectives = append(s.Objectives, one.status())
	}
	return s
}

// scribe is a receiver that notes what it is told.
type scribe struct {
	name   string
	manner manners
	// answer may fail an attempt; nil is success.
	answer func(ctx context.Context, b Batch) error

	mu       sync.Mutex
	heard    []string // what was delivered: alertname, subject, status
	alerts   []Alert
	attempts []time.Time
	busy     bool
}

func (s *scribe) Name() string { return s.name }

func (s *scribe) manners() manners {
	m := s.manner
	if m.identity == "" {
		m.identity = s.name
	}
	if m.most == 0 {
		m.most = maxBatch
	}
	return m
}

func (s *scribe) Send(ctx context.Context, b Batch) error {
	s.mu.Lock()
	if s.busy {
		panic("told twice at once")
	}
	s.busy = true
	s.attempts = append(s.attempts, time.Now())
	s.mu.Unlock()
	var err error
	if s.answer != nil {
		err = s.answer(ctx, b)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.busy = false
	if err == nil {
		for _, a := range b.Alerts {
			s.heard = append(s.heard, headline(a))
			s.alerts = append(s.alerts, a)
		}
	}
	return err
}

// headline is an alert in a few words: "page firing interactive/ttft_p99".
func headline(a Alert) string {
	text := fmt.Sprintf("%s %s %s/%s", a.Severity, a.Status, a.Class, a.Objective)
	if a.Model != "" {
		text += "/" + a.Model
	}
	return text
}

// take returns what was heard since the last time.
func (s *scribe) take() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	heard := s.heard
	s.heard = nil
	return strings.Join(heard, ", ")
}

func (s *scribe) tried() []time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.attempts)
}

// rig is a Manager that runs in a bubble.
type rig struct {
	*Manager
	t      *testing.T
	cancel func() // ends Run and waits for it
}

// within runs f beside a Manager in a bubble, which fails the test when a goroutine
// stays behind.
func within(t *testing.T, o Options, f func(t *testing.T, r *rig)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		r := &rig{Manager: New(o), t: t}
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { r.Run(ctx) })
		r.cancel = sync.OnceFunc(func() { cancel(); wg.Wait() })
		defer r.cancel()
		f(t, r)
	})
}

// see shows the Manager how all stand now, and lets receivers hear it.
func (r *rig) see(all ...standing) {
	r.Observe(time.Now(), statusAt(time.Now(), all...))
	synctest.Wait()
}

// pass lets time pass, in which nothing is observed.
func pass(d time.Duration) { time.Sleep(d); synctest.Wait() }

// shows returns the alerts of State in few words, those that are not told in brackets.
func (r *rig) shows() string {
	var all []string
	for _, s := range r.State().Alerts {
		text := headline(s.Alert)
		if s.InhibitedBy != "" {
			text = "[" + text + "]"
		}
		all = append(all, text)
	}
	return strings.Join(all, ", ")
}

// hears fails unless the receiver has just heard this.
func hears(t *testing.T, s *scribe, want string) {
	t.Helper()
	if got := s.take(); got != want {
		t.Errorf("%s heard %q, want %q", s.name, got, want)
	}
}

var errDead = errors.New("dead")

func newRandom(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }
