package slo

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// trace plays random calls to a Tracker and to the reference.
type trace struct {
	t       *testing.T
	rng     *rand.Rand
	tracker *Tracker
	ref     *reference
	now     time.Time
	todo    []event // ascending
	config  Config
	models  []string
	// spread is the longest time between two calls.
	spread time.Duration
	// snapshot and journal are what would be on a disk.
	snapshot []byte
	journal  [][]byte
}

type event struct {
	at   time.Time
	call *trueCall // nil for events that are not a call's
	do   func()
}

func newTrace(t *testing.T, seed uint64, begin time.Time, config Config) *trace {
	t.Helper()
	config, _, err := config.Complete()
	if err != nil {
		t.Fatal(err)
	}
	x := &trace{t: t, rng: rand.New(rand.NewPCG(seed, 1)), tracker: New(), now: begin, config: config,
		models: []string{"a", "b", "junk", "", OtherModel}, spread: time.Minute,
		ref: &reference{proven: make(map[string]bool)}}
	x.ref.configure(config)
	if err := x.tracker.Configure(config, begin); err != nil {
		t.Fatal(err)
	}
	x.snapshot = x.tracker.Snapshot()
	return x
}

func (x *trace) after(at time.Time, c *trueCall, do func()) {
	i, _ := slices.BinarySearchFunc(x.todo, at, func(e event, at time.Time) int {
		if c := e.at.Compare(at); c != 0 {
			return c
		}
		return -1 // behind those of the same time
	})
	x.todo = slices.Insert(x.todo, i, event{at, c, do})
}

// play lets time pass up to some time, with a tick now and then.
func (x *trace) play(until time.Time) {
	for len(x.todo) > 0 && !x.todo[0].at.After(until) {
		e := x.todo[0]
		x.todo = x.todo[1:]
		x.pass(e.at)
		e.do()
	}
	x.pass(until)
	x.tick()
}

// pass moves the time; the clock is told at least every six hours.
func (x *trace) pass(to time.Time) {
	for to.Sub(x.now) > 6*time.Hour {
		x.now = x.now.Add(6 * time.Hour)
		x.tick()
	}
	x.now = to
	if x.rng.IntN(3) == 0 {
		x.tick()
	}
}

func (x *trace) tick() {
	x.tracker.Tick(x.now)
	for _, c := range x.ref.calls {
		if c.pending.class != nil && !c.told.ended {
			x.ref.until(c, x.now)
		}
	}
}

// times are durations that meet edges.
var edges = []time.Duration{0, time.Millisecond, 400 * time.Millisecond, time.Second, time.Second + 1, 2*time.Second - 1, 2 * time.Second,
	2*time.Second + 1, 5 * time.Second, 59 * time.Second, time.Minute, 5 * time.Minute, time.Hour}

func (x *trace) some() time.Duration {
	if x.rng.IntN(2) == 0 {
		return edges[x.rng.IntN(len(edges)-4)]
	}
	if x.rng.IntN(20) == 0 {
		return edges[x.rng.IntN(len(edges))]
	}
	return time.Duration(x.rng.Int64N(int64(3 * time.Second)))
}

func (x *trace) value() Value {
	switch x.rng.IntN(6) {
	case 0:
		return Value{}
	case 1:
		return Unknown()
	case 2:
		return AtLeast(x.some())
	case 3:
		return AtMost(x.some())
	}
	return Exactly(x.some())
}

func (x *trace) tokens() int64 {
	if x.rng.IntN(4) == 0 {
		return -1
	}
	return x.rng.Int64N(200)
}

// call plans a call that begins soon.
func (x *trace) call() {
	begin := x.now.Add(time.Duration(x.rng.Int64N(int64(x.spread))))
	switch x.rng.IntN(5) {
	case 0:
		begin = begin.Truncate(time.Minute).Add(time.Minute - 1)
	case 1:
		begin = begin.Truncate(time.Hour).Add(time.Hour)
	}
	if begin.Before(x.now) {
		begin = x.now
	}
	class := x.config.Classes[x.rng.IntN(len(x.config.Classes))]
	name := class.Name
	if x.rng.IntN(20) == 0 {
		name = "none"
	}
	c := &trueCall{class: name, model: x.models[x.rng.IntN(len(x.models))], received: begin, streamed: x.rng.IntN(4) > 0,
		noSender: x.rng.IntN(4) == 0, decided: make(map[string]*trueDecision)}
	c.bodyRead = begin.Add(x.some() / 10)
	c.admitted = c.bodyRead.Add(x.some() / 2)
	c.sentAt = c.admitted.Add(x.some() / 10)
	last := c.sentAt
	token, visible := x.rng.IntN(5) > 0 && c.streamed, x.rng.IntN(3) > 0
	if token {
		c.token = last.Add(x.some())
		last = c.token
		c.visible = last
		if visible {
			c.visible = last.Add(x.some() / 2)
			last = c.visible
		}
	}
	ended := last.Add(x.some())
	if x.rng.IntN(15) == 0 {
		ended = c.bodyRead.Add(x.some()) // it breaks off
	}
	ending := []Ending{Answered, Answered, Answered, Failed, Excused, Left}[x.rng.IntN(6)]
	if c.model == "junk" && ending == Answered {
		ending = Failed
	}
	f := &c.facts
	*f = Facts{Received: begin, Ended: ended, Ending: ending, Input: x.tokens(), Output: x.tokens()}
	for n := range f.Values {
		f.Values[n] = x.value()
	}
	f.Values[TTFT], f.Values[TTFTUpstream], f.Values[TTFTVisible] = Value{}, Value{}, Value{}
	f.Values[E2E] = Exactly(ended.Sub(begin))
	if ending == Left {
		f.Values[E2E] = Value{}
	}
	if token && !c.token.After(ended) {
		f.Values[TTFT], f.Values[TTFTUpstream] = Exactly(c.token.Sub(begin)), Exactly(c.token.Sub(c.sentAt))
	}
	if token && visible && !c.visible.After(ended) {
		f.Values[TTFTVisible] = Exactly(c.visible.Sub(begin))
	}
	x.plan(c, token, token && visible)
}

// plan puts what a call tells into its order.
func (x *trace) plan(c *trueCall, token, visible bool) {
	late := func() time.Duration {
		if x.rng.IntN(20) == 0 {
			return x.some()
		}
		return 0
	}
	alive := func(do func()) func() {
		return func() {
			if c.pending.class != nil && !c.told.ended {
				do()
			}
		}
	}
	at := c.bodyRead
	step := func(t time.Time, do func()) {
		if t = t.Add(late()); t.After(at) {
			at = t
		}
		x.after(at, c, alive(do))
	}
	x.after(at, c, func() {
		var sender Sender = c
		if c.noSender {
			sender = nil
		}
		x.tracker.Watch(&c.pending, c.class, c.model, c.received, c.streamed, sender)
		if class, ok := x.ref.class(c.class); ok {
			c.objectives, c.keys, c.envelope = class.Objectives, x.ref.keys[c.class], class.Valid
			x.ref.calls = append(x.ref.calls, c)
		}
	})
	if x.rng.IntN(5) > 0 {
		step(c.bodyRead, func() {
			x.tracker.Queued(&c.pending, c.bodyRead)
			c.told.queued = true
		})
	}
	step(c.admitted, func() {
		x.tracker.Admitted(&c.pending, c.admitted)
		x.ref.until(c, c.admitted)
		c.told.admitted = true
	})
	step(c.sentAt, func() { c.told.sent = true })
	if token {
		step(c.token, func() {
			x.tracker.FirstToken(&c.pending, c.token)
			x.ref.came(c, TTFT, c.token)
			x.ref.came(c, TTFTUpstream, c.token)
			c.told.token = true
		})
	}
	if visible {
		step(c.visible, func() {
			x.tracker.FirstVisible(&c.pending, c.visible)
			x.ref.came(c, TTFTVisible, c.visible)
			c.told.visible = true
		})
	}
	end := c.facts.Ended
	if x.rng.IntN(10) == 0 {
		end = end.Add(time.Duration(x.rng.Int64N(int64(5 * time.Hour))))
	}
	if x.rng.IntN(30) == 0 {
		x.after(end, c, alive(func() {
			x.tracker.Forget(&c.pending)
			x.ref.forget(c)
		}))
		return
	}
	x.after(end, c, alive(func() {
		x.tracker.End(&c.pending, &c.facts)
		x.ref.end(c)
		c.told.ended = true
	}))
	if x.rng.IntN(4) == 0 {
		x.after(end.Add(x.some()), c, func() { x.correct(c) })
	}
}

// correct makes what was unknown known.
func (x *trace) correct(c *trueCall) {
	if c.pending.class == nil || !c.told.ended || c.dead {
		return
	}
	c.corrected = c.facts
	for n, v := range c.facts.Values {
		if v.kind != exact && v.kind != undefined && x.rng.IntN(2) == 0 {
			c.corrected.Values[n] = Exactly(x.some())
		}
	}
	if c.corrected.Input < 0 {
		c.corrected.Input = x.tokens()
	}
	if c.corrected.Output < 0 {
		c.corrected.Output = x.tokens()
	}
	x.tracker.Correct(&c.pending, &c.corrected)
	x.ref.correct(c)
}

func (x *trace) check() {
	x.t.Helper()
	x.ref.check(x.t, x.now, x.tracker.Status(x.now))
}

// persist keeps what a disk would.
func (x *trace) persist() {
	if x.rng.IntN(8) == 0 {
		x.snapshot, x.journal = x.tracker.Snapshot(), nil
		return
	}
	if b := x.tracker.Changes(); b != nil {
		x.journal = append(x.journal, b)
	}
}

// restart begins a new process with what was kept. Calls on their way are lost, but
// not what has been judged of them.
func (x *trace) restart() {
	x.t.Helper()
	if b := x.tracker.Changes(); b != nil {
		x.journal = append(x.journal, b)
	}
	x.tracker = New()
	early := x.rng.IntN(2) == 0
	if early {
		x.configure(x.config)
	}
	if err := x.tracker.Restore(x.snapshot); err != nil {
		x.t.Fatal(err)
	}
	for range 1 + x.rng.IntN(2) { // twice does no harm
		for _, b := range x.journal {
			if err := x.tracker.Apply(b); err != nil {
				x.t.Fatal(err)
			}
		}
	}
	if !early {
		x.configure(x.config)
	}
	x.snapshot, x.journal = x.tracker.Snapshot(), nil
	for _, c := range x.ref.calls {
		c.pending, c.told.ended = Pending{}, true
	}
	// Those that had not begun go on; those without a label have left nothing.
	x.todo = slices.DeleteFunc(x.todo, func(e event) bool { return e.call != nil && slices.Contains(x.ref.calls, e.call) })
	x.ref.proven = make(map[string]bool)
	for _, c := range *x.tracker.classes.Load() {
		for name := range c.series {
			x.ref.proven[name] = name != OtherModel
		}
	}
}

func (x *trace) configure(c Config) {
	x.t.Helper()
	if err := x.tracker.Configure(c, x.now); err != nil {
		x.t.Fatal(err)
	}
}

// reload changes an objective of a class, or drops or adds one.
func (x *trace) reload(options [][]Objective) {
	x.t.Helper()
	c := x.config
	c.Classes = slices.Clone(c.Classes)
	k := &c.Classes[x.rng.IntN(len(c.Classes))]
	k.Objectives = options[x.rng.IntN(len(options))]
	c, _, err := c.Complete()
	if err != nil {
		x.t.Fatal(err)
	}
	x.config = c
	x.configure(c)
	x.ref.reload(c)
}
