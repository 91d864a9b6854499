package capacity

import (
	"math"
	"slices"
)

// liveItem is one call of the recorded mix.
type liveItem struct {
	gap      float64 // before it, in mean gaps
	before   float64 // from received to the engine, s
	input    float64 // tokens
	uncached float64
	output   float64
	judged   bool // the goal is for it
}

// liveEngine is the engine of the replay. Limits that are infinite do not bind.
type liveEngine struct {
	cost    liveCost
	slots   int     // sequences at once; 0 is no limit
	kv      float64 // tokens; +Inf is no limit
	kvScale float64 // KV tokens for each token of a call
	tokens  float64 // in a step
}

// liveGoal is what the replay is held to; a limit of 0 is none.
type liveGoal struct {
	ttft, ttftShare float64 // s, and the share of calls that may take longer
	tpot, tpotShare float64
}

// liveOutcome is what a replay showed.
type liveOutcome struct {
	missedTTFT, missedTPOT bool
	// Only of replays that were to measure:
	inFlight     float64 // calls, mean by time
	ttfts, tpots []float64
}

func (o *liveOutcome) missed() bool { return o.missedTTFT || o.missedTPOT }

// liveSeq is a call within the replay.
type liveSeq struct {
	received, arrival, first float64
	left                     float64 // tokens of its prompt still to compute
	held                     float64 // KV tokens when it began to decode, or so far
	done                     int64   // the decoding step that writes its last token
	out                      int32   // tokens still to write, when it was last taken in
	wrote                    bool
	decoding                 bool
}

// liveReplay runs the model; its memory is used again.
type liveReplay struct {
	seqs    []liveSeq
	waiting []int32 // preempted first, then by arrival
	head    int
	running []int32 // oldest first
	heap    []liveDue
	work    []int32 // prompts in this step

	next int     // the first call that has not arrived
	kv   float64 // held
	step int64   // decoding steps so far
	dec  int     // sequences that decode

	exhausted bool // a replay was given up after maxTurns
}

// maxTurns is how many turns a replay may take for each call, on average: figures of which some
// cannot be true (prompts of a million tokens, a cache for one) would keep it for hours. A
// prompt takes a turn for each step, an answer a few in all.
const maxTurns = 500

// liveDue is a sequence's last step; stale when the sequence was preempted meanwhile.
type liveDue struct {
	step int64
	seq  int32
}

// run replays items at a rate (calls a second). With measure unset it stops as soon as the goal is
// missed for certain. The first tenth of the calls fill the engine and do not count.
//
// Between an arrival, the end of a call and the end of the KV cache all steps are alike, so
// that they are taken at once: the time goes with the calls, not with their tokens.
func (r *liveReplay) run(items []liveItem, e *liveEngine, goal *liveGoal, rate float64, measure bool) (out liveOutcome) {
	n := len(items)
	skip := n / 10
	judged := 0
	for i := range items[skip:] {
		if items[skip+i].judged {
			judged++
		}
	}
	mayTTFT, mayTPOT := int(goal.ttftShare*float64(judged)), int(goal.tpotShare*float64(judged))
	r.reset(items, rate)
	var (
		t           float64
		lateTTFT    int
		lateTPOT    int
		ended       int
		area, began float64
		seconds     float64
	)
	began = math.NaN()
	finish := func(i int32) {
		s := &r.seqs[i]
		ended++
		if int(i) < skip {
			return
		}
		it := &items[i]
		if it.output >= 2 && it.judged {
			tpot := (t - s.first) / (it.output - 1)
			if goal.tpot > 0 && tpot > goal.tpot {
				lateTPOT++
			}
			if measure {
				out.tpots = append(out.tpots, tpot)
			}
		}
		area += t - s.received
	}
	for turn := 0; ended < n; turn++ {
		if turn > maxTurns*n {
			r.exhausted, out.missedTTFT = true, true
			return out
		}
		for r.next < n && r.seqs[r.next].arrival <= t {
			r.waiting = append(r.waiting, int32(r.next))
			r.next++
		}
		if len(r.running) == 0 && r.head == len(r.waiting) {
			t = r.seqs[r.next].arrival
			continue
		}
		prompts := r.compose(items, e)
		if prompts > 0 {
			cost := e.cost.decode(float64(r.dec)) + e.cost.gamma*e.cost.prompt(1, prompts)
			t += cost
			r.advance(1, e)
			for _, i := range r.work {
				s := &r.seqs[i]
				if s.left > 0 {
					continue
				}
				s.out--
				if !s.wrote {
					s.wrote = true
					s.first = t
					it := &items[i]
					// What of its prompt the engine's steps do not take passes beside them.
					ttft := t - s.received + e.cost.front + max(0, 1-e.cost.gamma)*e.cost.prompt(math.Ceil(it.uncached/e.tokens), it.uncached)
					if int(i) >= skip {
						if math.IsNaN(began) {
							began = s.received
						}
						seconds = s.received - began
						if it.judged && ttft > goal.ttft && goal.ttft > 0 {
							lateTTFT++
						}
						if it.judged && measure {
							out.ttfts = append(out.ttfts, ttft)
						}
					}
				}
				if s.out <= 0 {
					r.leave(i, e)
					finish(i)
					continue
				}
				s.decoding = true
				s.done = r.step + int64(s.out)
				r.dec++
				r.push(liveDue{s.done, i})
			}
		} else {
			m := r.steps(t, e)
			t += float64(m) * e.cost.decode(float64(r.dec))
			r.advance(m, e)
		}
		for len(r.heap) > 0 && r.heap[0].step <= r.step {
			d := r.pop()
			s := &r.seqs[d.seq]
			if !s.decoding || s.done != d.step {
				continue
			}
			r.dec--
			r.leave(d.seq, e)
			finish(d.seq)
		}
		out.missedTTFT, out.missedTPOT = lateTTFT > mayTTFT, lateTPOT > mayTPOT
		if !measure && out.missed() {
			return out
		}
	}
	if measure && seconds > 0 {
		out.inFlight = area / seconds
	}
	return out
}

func (r *liveReplay) reset(items []liveItem, rate float64) {
	n := len(items)
	r.seqs = slices.Grow(r.seqs[:0], n)[:n]
	t := 0.0
	for i := range items {
		it := &items[i]
		t += it.gap / rate
		r.seqs[i] = liveSeq{received: t, arrival: t + it.before, left: it.uncached, out: int32(min(it.output, math.MaxInt32))}
		if i > 0 { // a queue in order of arrival; who took longer on the way holds up who came after
			r.seqs[i].arrival = max(r.seqs[i].arrival, r.seqs[i-1].arrival)
		}
	}
	r.waiting, r.running, r.heap = r.waiting[:0], r.running[:0], r.heap[:0]
	r.head, r.next, r.kv, r.step, r.dec = 0, 0, 0, 0, 0
}

// compose decides which prompts the next step computes, and returns how many tokens
// of them: first those under way, then those that wait, as far as slots, tokens and
// KV cache go. When the cache cannot hold one more token of each that decodes, the
// youngest gives up its place.
func (r *liveReplay) compose(items []liveItem, e *liveEngine) (prompts float64) {
	r.work = r.work[:0]
	preempted := false
	for r.dec > 1 && r.kv+float64(r.dec)*e.kvScale > e.kv {
		r.preempt(items, e)
		preempted = true
	}
	budget := e.tokens - float64(r.dec)
	take := func(i int32, s *liveSeq) {
		part := min(s.left, budget)
		s.left -= part
		budget -= part
		prompts += part
		r.work = append(r.work, i)
		s.held += part * e.kvScale
		r.kv += part * e.kvScale
	}
	for r.dec < len(r.running) { // prompts under way
		for _, i := range r.running {
			if s := &r.seqs[i]; !s.decoding && budget >= 1 && (r.kv+min(s.left, budget)*e.kvScale <= e.kv || len(r.running) == 1) {
				take(i, s)
			}
		}
		if prompts > 0 || r.dec > 0 {
			break
		}
		r.preempt(items, e) // none of them fits: fewer will
		preempted = true
	}
	for r.head < len(r.waiting) && budget >= 1 && !preempted && (e.slots == 0 || len(r.running) < e.slots) {
		i := r.waiting[r.head]
		s := &r.seqs[i]
		it := &items[i]
		cached := it.input - it.uncached
		if r.kv+(cached+min(s.left, budget))*e.kvScale > e.kv && len(r.running) > 0 {
			break
		}
		r.head++
		r.running = append(r.running, i)
		s.held = cached * e.kvScale
		r.kv += s.held
		take(i, s)
	}
	if r.head == len(r.waiting) {
		r.waiting, r.head = r.waiting[:0], 0
	}
	return prompts
}

// preempt sends the youngest back to the head of the queue.
func (r *liveReplay) preempt(items []liveItem, e *liveEngine) {
	i := r.running[len(r.running)-1]
	r.running = r.running[:len(r.running)-1]
	s := &r.seqs[i]
	it := &items[i]
	r.kv -= s.holds(r.step, e)
	wrote := 0.0
	if s.decoding {
		r.dec--
		s.out = int32(s.done - r.step)
		wrote = it.output - float64(s.out)
	} else if s.wrote {
		wrote = it.output - float64(s.out)
	}
	s.decoding, s.held, s.left = false, 0, it.uncached+wrote
	if r.head > 0 {
		r.head--
		r.waiting[r.head] = i
		return
	}
	r.waiting = slices.Insert(r.waiting, 0, i)
}

// steps is how many decoding steps are alike from here: until a call ends, one arrives
// that could begin, or the cache is full.
func (r *liveReplay) steps(t float64, e *liveEngine) int64 {
	m := int64(1)
	for len(r.heap) > 0 {
		s := &r.seqs[r.heap[0].seq]
		if s.decoding && s.done == r.heap[0].step {
			m = max(1, r.heap[0].step-r.step)
			break
		}
		r.pop()
	}
	cost := e.cost.decode(float64(r.dec))
	if r.head == len(r.waiting) && r.next < len(r.seqs) && cost > 0 {
		if until := math.Ceil((r.seqs[r.next].arrival - t) / cost); until < float64(m) {
			m = max(1, int64(until))
		}
	}
	if grow := float64(r.dec) * e.kvScale; grow > 0 && r.dec > 1 {
		if until := math.Floor((e.kv - r.kv) / grow); until < float64(m) {
			m = max(1, int64(until))
		}
	}
	return m
}

// advance lets all that decode write m tokens.
func (r *liveReplay) advance(m int64, e *liveEngine) {
	r.step += m
	if r.dec > 0 {
		r.kv += float64(m) * float64(r.dec) * e.kvScale
	}
}

// holds is how many KV tokens a sequence holds: those of its prompt, and one for each
// step since it began to decode.
func (s *liveSeq) holds(step int64, e *liveEngine) float64 {
	if !s.decoding {
		return s.held
	}
	return s.held + float64(step-s.done+int64(s.out))*e.kvScale
}

// leave frees what a call held.
func (r *liveReplay) leave(i int32, e *liveEngine) {
	s := &r.seqs[i]
	r.kv -= s.holds(r.step, e)
	s.decoding = false
	at := slices.Index(r.running, i)
	r.running = slices.Delete(r.running, at, at+1)
}

func (r *liveReplay) push(d liveDue) {
	r.heap = append(r.heap, d)
	i := len(r.heap) - 1
	for i > 0 {
		up := (i - 1) / 2
		if r.heap[up].step <= d.step {
			break
		}
		r.heap[i] = r.heap[up]
		i = up
	}
	r.heap[i] = d
}

func (r *liveReplay) pop() liveDue {
	top := r.heap[0]
	n := len(r.heap) - 1
	d := r.heap[n]
	r.heap = r.heap[:n]
	for i := 0; n > 0; {
		down := 2*i + 1
		if down+1 < n && r.heap[down+1].step < r.heap[down].step {
			down++
		}
		if down >= n || r.heap[down].step >= d.step {
			r.heap[i] = d
			break
		}
		r.heap[i] = r.heap[down]
		i = down
	}
	return top
}
