package queue

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// model is what a queue should do, done naively: lists, sorted whenever
// somebody is looked for. It never forgets a key.
type model struct {
	cfg        Config // filled
	calls      []*modelCall
	chosen     *modelCall
	closed     bool
	floor      float64
	floors     map[string]float64    // of keys, by class
	ofClass    map[string]float64    // served, by class
	ofKey      map[[2]string]float64 // served, by class and key
	tokensUsed int64
}

type modelCall struct {
	n           int
	ask         Ask
	at, due     time.Time
	state       string // as visit.outcome has it, and "over"
	price       float64
	reserved    int64
	classWeight float64
}

func newModel(cfg Config) *model {
	return &model{cfg: cfg.filled(), floors: map[string]float64{}, ofClass: map[string]float64{}, ofKey: map[[2]string]float64{}}
}

func (m *model) in(state string, match func(*modelCall) bool) (found []*modelCall) {
	for _, c := range m.calls {
		if c.state == state && match(c) {
			found = append(found, c)
		}
	}
	return found
}

func any1(*modelCall) bool { return true }

func (m *model) class(name string) func(*modelCall) bool {
	return func(c *modelCall) bool { return c.ask.Class == name }
}

func (m *model) caller(class, name string) func(*modelCall) bool {
	return func(c *modelCall) bool { return c.ask.Class == class && c.ask.Key == name }
}

func (m *model) classCounter(class string) float64 {
	sum := m.ofClass[class]
	for _, c := range m.in("admitted", m.class(class)) {
		sum += c.price / c.classWeight
	}
	return sum
}

func (m *model) keyCounter(class, name string) float64 {
	sum := m.ofKey[[2]string{class, name}]
	for _, c := range m.in("admitted", m.caller(class, name)) {
		sum += c.price / c.ask.weight()
	}
	return sum
}

func (m *model) tokens() (sum int64) {
	for _, c := range m.in("admitted", any1) {
		sum += c.reserved
	}
	return sum
}

func (m *model) room(c *modelCall) bool {
	n := int64(len(m.in("admitted", any1)))
	return (m.cfg.Calls == 0 || n < m.cfg.Calls) && (m.cfg.Tokens == 0 || n == 0 || m.tokens()+c.reserved <= m.cfg.Tokens)
}

func (m *model) admit(c *modelCall) {
	class, key := c.ask.Class, [2]string{c.ask.Class, c.ask.Key}
	m.floor = max(m.floor, m.ofClass[class])
	m.floors[class] = max(m.floors[class], m.ofKey[key])
	c.classWeight = float64(m.cfg.Classes[class].Weight)
	c.state = "admitted"
	if m.chosen == c {
		m.chosen = nil
	}
}

func (m *model) end(c *modelCall, state string) {
	c.state = state
	if m.chosen == c {
		m.chosen = nil
	}
}

func (m *model) enter(ask Ask, now time.Time) *modelCall {
	if _, known := m.cfg.Classes[ask.Class]; !known {
		ask.Class = Interactive
	}
	c := &modelCall{n: len(m.calls), ask: ask, at: now, due: ask.Deadline, state: "new", reserved: ask.Tokens.Sum(), price: max(1, float64(ask.Tokens.Cost()))}
	if c.due.IsZero() {
		c.due = now.Add(m.cfg.MaxWait)
	}
	m.calls = append(m.calls, c)
	waiting := m.in("waiting", any1)
	var held int64
	for _, w := range waiting {
		held += w.ask.Bytes
	}
	pass := !m.closed && len(waiting) == 0 && m.room(c)
	switch {
	case pass:
	case m.closed:
		c.state = "closed"
	case len(waiting) >= m.cfg.MaxWaiting:
		c.state = "full"
	case len(m.in("waiting", m.class(ask.Class))) >= m.cfg.MaxPerClass:
		c.state = "full_class"
	case len(m.in("waiting", func(w *modelCall) bool { return w.ask.Key == ask.Key })) >= m.cfg.MaxPerKey:
		c.state = "full_key"
	case held+ask.Bytes > m.cfg.MaxBytes:
		c.state = "full_bytes"
	}
	if c.state != "new" {
		return c
	}
	if len(m.in("waiting", m.class(ask.Class))) == 0 {
		m.ofClass[ask.Class] = max(m.ofClass[ask.Class], m.floor)
	}
	if key := [2]string{ask.Class, ask.Key}; len(m.in("waiting", m.caller(ask.Class, ask.Key))) == 0 {
		m.ofKey[key] = max(m.ofKey[key], m.floors[ask.Class])
	}
	if pass {
		m.admit(c)
	} else {
		c.state = "waiting"
		m.dispatch(now)
	}
	return c
}

func (m *model) dispatch(now time.Time) {
	for {
		waiting := m.in("waiting", any1)
		if len(waiting) == 0 || m.cfg.Calls != 0 && int64(len(m.in("admitted", any1))) >= m.cfg.Calls {
			return
		}
		if m.chosen == nil {
			head := func(w *modelCall) (due time.Time, n int) { // of its key
				mates := m.in("waiting", m.caller(w.ask.Class, w.ask.Key))
				first := slices.MinFunc(mates, func(a, b *modelCall) int { return cmp.Or(a.due.Compare(b.due), a.n-b.n) })
				return first.due, first.n
			}
			m.chosen = slices.MinFunc(waiting, func(a, b *modelCall) int {
				aDue, aN := head(a)
				bDue, bN := head(b)
				return cmp.Or(
					cmp.Compare(m.classCounter(a.ask.Class), m.classCounter(b.ask.Class)),
					cmp.Compare(m.cfg.Classes[b.ask.Class].Weight, m.cfg.Classes[a.ask.Class].Weight),
					cmp.Compare(a.ask.Class, b.ask.Class),
					cmp.Compare(m.keyCounter(a.ask.Class, a.ask.Key), m.keyCounter(b.ask.Class, b.ask.Key)),
					aDue.Compare(bDue), aN-bN, // between keys
					a.due.Compare(b.due), a.n-b.n, // within one
				)
			})
		}
		c := m.chosen
		switch {
		case m.cfg.Shed && !c.ask.Deadline.IsZero() && now.Add(c.ask.PredictedTTFT).After(c.ask.Deadline):
			m.end(c, "shed_pop")
		case m.room(c):
			m.admit(c)
		default:
			return
		}
	}
}

func (m *model) release(c *modelCall, now time.Time) {
	m.ofClass[c.ask.Class] += c.price / c.classWeight
	m.ofKey[[2]string{c.ask.Class, c.ask.Key}] += c.price / c.ask.weight()
	m.end(c, "over")
	m.dispatch(now)
}

// advance lets the waits run out that end by now, one after the other.
func (m *model) advance(now time.Time) {
	for {
		waiting := m.in("waiting", func(c *modelCall) bool { return !c.at.Add(m.cfg.MaxWait).After(now) })
		if len(waiting) == 0 {
			return
		}
		m.end(waiting[0], "waited") // in order of arrival
		m.dispatch(waiting[0].at.Add(m.cfg.MaxWait))
	}
}

// script runs operations on a queue and on the model and compares after each.
// Weights and tokens are such that all sums are exact.
func script(t *testing.T, ops []byte) {
	cfg := Config{Calls: 3, Tokens: 400, MaxWaiting: 12, MaxPerClass: 8, MaxPerKey: 5, MaxBytes: 100, MaxWait: 500 * time.Millisecond,
		Classes: map[string]Class{"own": {Weight: 4}}}
	q, err := New("pool", cfg)
	if err != nil {
		t.Fatal(err)
	}
	m := newModel(cfg)
	var visits []*visit
	next := func() int {
		if len(ops) == 0 {
			return 0
		}
		b := ops[0]
		ops = ops[1:]
		return int(b)
	}
	pickOne := func(state string) *modelCall {
		if all := m.in(state, any1); len(all) > 0 {
			return all[next()%len(all)]
		}
		return nil
	}
	for step := 0; len(ops) > 0 && step < 300; step++ {
		time.Sleep(time.Millisecond) // so that no two calls wait equally long
		synctest.Wait()
		m.advance(time.Now())
		q.mu.Lock()
		q.flow.samples = 0 // no forecast: the door sheds nothing
		q.mu.Unlock()
		op := next()
		switch op % 8 {
		case 0, 1, 2:
			b := next()
			ask := Ask{
				Key:       []string{"a", "b", "c", "d"}[b%4],
				Class:     []string{Interactive, Completion, Batch, "own", "", "unknown"}[b/4%6],
				KeyWeight: []float64{1, 1, 1, 2}[b%4],
				Tokens:    Tokens{Input: int64(next()), Output: int64(next() / 4)},
				Bytes:     int64(next() % 32),
			}
			if b := next(); b%2 == 0 {
				ask.Deadline = time.Now().Add(time.Duration(b) * time.Millisecond)
				ask.PredictedTTFT = 20 * time.Millisecond
			}
			visits = append(visits, enter(t, q, ask))
			m.enter(ask, time.Now())
		case 3, 4:
			if c := pickOne("admitted"); c != nil {
				visits[c.n].slot.Release()
				m.release(c, time.Now())
			}
		case 5:
			if c := pickOne("admitted"); c != nil {
				used := Tokens{Input: int64(next()), Output: int64(next())}
				visits[c.n].slot.Settle(used)
				c.price, c.reserved = max(1, float64(used.Cost())), max(c.reserved, used.Sum())
			}
		case 6:
			if c := pickOne("waiting"); c != nil {
				visits[c.n].cancel()
				synctest.Wait()
				m.end(c, "left")
				m.dispatch(time.Now())
			}
		case 7:
			switch b := next(); b % 8 {
			case 0, 1, 2:
				d := time.Duration(next()) * time.Millisecond
				time.Sleep(d)
				synctest.Wait()
				m.advance(time.Now())
			case 7:
				if b == 255 && next() == 255 {
					q.Close()
					m.closed = true
					for _, c := range m.in("waiting", any1) {
						m.end(c, "closed")
					}
				}
			default:
				b := next()
				cfg.Calls = int64(b % 6)
				cfg.Tokens = []int64{0, 100, 400, 1000}[b/8%4]
				cfg.Shed = b >= 128
				cfg.Classes = map[string]Class{"own": {Weight: 1 << (b % 3)}}
				if err := q.Configure(cfg); err != nil {
					t.Fatal(err)
				}
				m.cfg = cfg.filled()
				m.dispatch(time.Now())
			}
		}
		synctest.Wait()
		for i, v := range visits {
			want := m.calls[i].state
			if want == "over" {
				want = "admitted"
			}
			if got := v.outcome(t); got != want {
				t.Fatalf("step %d, operation %d: call %d (%+v) is %q, want %q", step, op%8, i, m.calls[i].ask, got, want)
			}
		}
		if st := q.State(); st.Tokens != m.tokens() || st.InFlight != int64(len(m.in("admitted", any1))) || st.Waiting != len(m.in("waiting", any1)) {
			t.Fatalf("step %d: state is %+v", step, st)
		}
		check(t, q)
		if t.Failed() {
			t.Fatalf("at step %d, operation %d", step, op%8)
		}
	}
	for _, v := range visits {
		v.cancel()
		synctest.Wait()
	}
	for i, v := range visits {
		if m.calls[i].state == "admitted" || v.outcome(t) == "admitted" {
			v.slot.Release()
		}
	}
	if st := q.State(); st.InFlight != 0 || st.Waiting != 0 || st.Tokens != 0 || st.Bytes != 0 {
		t.Fatalf("all have gone, yet %+v", st)
	}
	counted := int64(0)
	for _, c := range q.State().Classes {
		counted += c.Waits.Count + c.Left
		for _, n := range c.Rejected {
			counted += n
		}
	}
	if counted != int64(len(visits)) {
		t.Fatalf("%d calls, %d are counted", len(visits), counted)
	}
}

func FuzzQueue(f *testing.F) {
	for seed := range uint64(4) {
		f.Add(randomOps(seed, 600))
	}
	f.Fuzz(func(t *testing.T, ops []byte) {
		synctest.Test(t, func(t *testing.T) { script(t, ops) })
	})
}

// TestModel compares queue and model over random scripts.
func TestModel(t *testing.T) {
	for seed := range uint64(100) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { script(t, randomOps(seed, 800)) })
		})
	}
}

func randomOps(seed uint64, n int) []byte {
	rng := rand.New(rand.NewPCG(seed, 3))
	ops := make([]byte, n)
	for i := range ops {
		ops[i] = byte(rng.Uint32())
	}
	return ops
}
