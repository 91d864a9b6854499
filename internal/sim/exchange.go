package sim

import (
	"bytes"
	"net/http"
	"strconv"
	"time"
)

// exchange is one request and its answer. It belongs to its handler.
type exchange struct {
	e       *Engine
	manner  *manner // as it was when the call came
	cfg     *Config // the manner's
	api     *api
	ask     *ask
	call    *call
	id      string
	order   uint64
	created int64 // Unix seconds; the engine's start, for the same bytes each time
	faults  Faults
	plans   []plan
	reply   reply

	out     *output
	pending [][]piece // by choice: tokens not yet sent
	sent    []int     // by choice: tokens sent
	led     []bool    // by choice: its lead was sent
	total   int       // tokens sent in all
}

// plan decides all answers and makes their sequences.
func (x *exchange) plan() []*sequence {
	n := len(x.ask.prompts) * x.ask.n
	x.plans = make([]plan, n)
	x.pending, x.sent, x.led = make([][]piece, n), make([]int, n), make([]bool, n)
	sequences := make([]*sequence, n)
	for i := range sequences {
		prompt := x.ask.prompts[i/x.ask.n]
		first := i%x.ask.n == 0
		s := &sequence{choice: i, prompt: prompt, counts: first, order: x.order}
		if first {
			s.hashes = blockHashes(x.ask.model, prompt, x.cfg.BlockTokens)
		} else {
			s.hashes = sequences[i-1].hashes
		}
		if !x.ask.embed {
			seed := hashText(x.cfg.Seed, x.ask.model)
			for _, t := range prompt {
				seed = mix(seed ^ uint64(t))
			}
			p := planAnswer(x.cfg, x.ask, mix(seed+uint64(i%x.ask.n)), x.cfg.ModelLen-len(prompt))
			x.plans[i] = p
			s.length, s.reasoning, s.finish = p.length, p.reasoning, p.finish
		} else {
			s.finish = "stop"
		}
		sequences[i] = s
	}
	return sequences
}

// facts returns the call's truth so far, without its lists.
func (x *exchange) facts() Truth {
	x.e.mu.Lock()
	defer x.e.mu.Unlock()
	t := x.call.truth
	if n := len(t.Tokens); n > 0 {
		t.Tokens = t.Tokens[n-1:] // Decode needs the last
	}
	t.Sent = nil
	return t
}

// stream sends the answer token by token.
func (x *exchange) stream(w http.ResponseWriter, r *http.Request) {
	ctx := r.Context()
	x.out = newOutput(w, x)
	defer x.out.close()
	late := x.cfg.Quirks == LlamaCPP // headers wait for a slot
	if !late && !x.begin() {
		return
	}
	ping, pings := newPing(x.cfg.PingInterval)
	defer ping.Stop()
	scheduled := false
	for {
		p := x.e.take(x.call)
		if p.lost {
			x.out.abort()
		}
		if p.scheduled && !scheduled {
			scheduled = true
			if late && !x.begin() {
				return
			}
			if x.api.leads == leadWhenScheduled && !late && !x.leadAll() {
				return
			}
		}
		for _, token := range p.emitted {
			if ctx.Err() != nil || !x.token(r, token) {
				return
			}
			x.resetPing(ping)
		}
		if p.finished {
			x.finish(r)
			return
		}
		select {
		case <-x.call.signal:
		case <-pings:
			if x.out.started && !x.out.write(x.pingText()) {
				return
			}
			x.resetPing(ping)
		case <-ctx.Done():
			return
		}
	}
}

func newPing(interval time.Duration) (*time.Timer, <-chan time.Time) {
	if interval <= 0 {
		t := time.NewTimer(0)
		t.Stop()
		return t, nil
	}
	t := time.NewTimer(interval)
	return t, t.C
}

func (x *exchange) resetPing(t *time.Timer) {
	if x.cfg.PingInterval > 0 {
		t.Reset(x.cfg.PingInterval)
	}
}

func (x *exchange) pingText() []byte {
	if x.cfg.Quirks == LlamaCPP {
		return []byte(":\n\n")
	}
	return []byte(": keep-alive\n\n")
}

// begin sends the headers, and the lead where it goes with them.
func (x *exchange) begin() bool {
	x.out.start()
	switch {
	case x.cfg.EarlyRole && x.api.leads == leadWithToken:
	case x.cfg.Quirks != LlamaCPP && x.api.leads == leadWhenAccepted:
	default:
		return true
	}
	return x.leadAll()
}

func (x *exchange) leadAll() bool {
	for choice := range x.led {
		if !x.led[choice] {
			x.led[choice] = true
			if !x.out.writeAll(x.reply.lead(choice)) {
				return false
			}
		}
	}
	return true
}

// token takes one token and sends it, alone or with the ones that waited for
// company; false when the stream is over.
func (x *exchange) token(r *http.Request, em emission) bool {
	if x.total == 0 && !x.trip(r) { // faults after 0 tokens
		return false
	}
	c, p := em.choice, &x.plans[em.choice]
	x.pending[c] = append(x.pending[c], p.at(em.index))
	last := em.index+1 == p.length
	if em.index > 0 && !last && len(x.pending[c]) < x.cfg.StreamInterval {
		return true
	}
	tokens := x.pending[c]
	if x.faults.slow > 0 && !pause(r.Context(), x.faults.slow*time.Duration(len(tokens))) {
		return false
	}
	x.pending[c] = nil
	finish := ""
	if last {
		finish = p.finish
	}
	var lead [][]byte
	if !x.led[c] {
		x.led[c] = true
		lead = x.reply.lead(c)
	}
	x.sent[c] += len(tokens)
	x.total += len(tokens)
	writes := x.reply.delta(c, tokens, finish)
	if x.faults.bigLine > 0 && len(writes) > 0 && hasText(tokens) {
		writes[0] = lengthen(writes[0], x.faults.bigLine)
		x.faults.bigLine = 0
	}
	if x.cfg.Quirks == LlamaCPP && len(lead) > 0 && len(writes) > 0 {
		writes[0] = append(bytes.Join(lead, nil), writes[0]...)
		lead = nil
	}
	if !x.out.writeAll(lead) || !x.out.writeAll(writes) {
		return false
	}
	if hasText(tokens) {
		x.e.note(x.call, func(t *Truth) { t.Sent = appendInstant(t.Sent, time.Now()) })
	}
	return x.trip(r)
}

func hasText(tokens []piece) bool {
	for _, t := range tokens {
		if t.text != "" {
			return true
		}
	}
	return false
}

// lengthen puts padding before the last brace of an event.
func lengthen(event []byte, by int) []byte {
	end := bytes.LastIndexByte(event, '}')
	if end < 0 {
		return event
	}
	long := append([]byte(nil), event[:end]...)
	long = append(long, `,"padding":"`...)
	long = append(long, bytes.Repeat([]byte("x"), by)...)
	long = append(long, '"')
	return append(long, event[end:]...)
}

// trip plays the faults whose time has come; false when the stream is over.
func (x *exchange) trip(r *http.Request) bool {
	f := &x.faults
	due := func(after int) bool { return after >= 0 && x.total >= after }
	if due(f.badJSONAfter) {
		f.badJSONAfter = -1
		if !x.out.write([]byte("data: {\"id\":\"" + x.id + "\",\"choices\":[{\"index\":0,\"delta\":{\"con\n\n")) {
			return false
		}
	}
	switch {
	case due(f.errorAfter):
		x.out.write(x.reply.failed())
	case due(f.errorDoneAfter):
		if x.out.write(x.reply.failed()) {
			x.out.write(x.reply.done())
		}
	case due(f.truncateAfter):
	case due(f.abortAfter):
		x.out.abort()
	case due(f.hangAfter):
		x.silence(r)
	default:
		return true
	}
	return false
}

// silence waits until the client leaves, or the engine closes.
func (x *exchange) silence(r *http.Request) {
	select {
	case <-r.Context().Done():
	case <-x.e.stop:
		x.out.abort()
	}
}

// finish sends what follows the last token.
func (x *exchange) finish(r *http.Request) {
	if x.total == 0 && !x.trip(r) {
		return
	}
	if x.out.writeAll(x.reply.end()) {
		streamed(r)
	}
}

// answer waits for the whole answer and sends it as JSON.
func (x *exchange) answer(w http.ResponseWriter, r *http.Request) {
	for {
		p := x.e.take(x.call)
		if p.lost {
			panic(http.ErrAbortHandler)
		}
		if p.finished {
			break
		}
		select {
		case <-x.call.signal:
		case <-r.Context().Done():
			return
		}
	}
	for i := range x.plans {
		x.sent[i] = x.plans[i].length
		x.total += x.plans[i].length
	}
	f := &x.faults
	if f.slow > 0 && !pause(r.Context(), f.slow*time.Duration(x.total)) {
		return
	}
	x.out = newOutput(w, x)
	defer x.out.close()
	body := x.reply.whole()
	if f.bigLine > 0 {
		body = lengthen(body, f.bigLine)
	}
	half := body[:len(body)/2]
	switch {
	case f.errorAfter >= 0 || f.errorDoneAfter >= 0:
		body = x.api.fail(x.e, failure{500, "internal_server_error", faultMessage, 0})
	case f.truncateAfter >= 0 || f.badJSONAfter >= 0:
		body = half
	case f.abortAfter >= 0:
		x.out.start()
		x.out.write(half)
		x.out.abort()
	case f.hangAfter >= 0:
		x.out.start()
		x.out.write(half)
		x.silence(r)
		return
	case !f.gzip:
		w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	}
	x.out.start()
	if x.out.write(body) {
		x.e.note(x.call, func(t *Truth) { t.Sent = appendInstant(t.Sent, time.Now()) })
	}
}

// faultMessage is the message of errors that come by fault.
const faultMessage = "simulated fault"
