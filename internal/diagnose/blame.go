package diagnose

import (
	"fmt"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Blamed says which phase calls that missed an objective lost their time in.
type Blamed struct {
	// Phase is the phase, as in call.Phases without the unit; "" when nothing can
	// be said. For the objective network it is client_rtt, and for success the
	// code of the failure.
	Phase string `json:"phase,omitempty"`
	Layer Layer  `json:"layer,omitempty"`
	// Share is what the phase has of the time that was missed, over all calls,
	// 0–1; for success the share of the calls that failed so.
	Share  call.Number `json:"share,omitzero"`
	Source call.Source `json:"source,omitempty"`
	Calls  int         `json:"calls"` // that were looked at
	// Determined is whether the phase has most of what the calls took longer than
	// those of the reference (of their time, where there is none), and is known to
	// be that phase.
	Determined bool `json:"determined"`
	// Text is one sentence for people.
	Text string `json:"text"`
}

// phaseLayers are the layers that phases belong to.
var phaseLayers = [phases]Layer{upload: Network, queueGateway: Gateway, connect: Network, upstreamRTT: Network, queueEngine: EngineQueue, frontend: EngineFrontend,
	prefill: Model, engine: Model, decode: Model, tail: EngineFrontend, delivery: Client}

// Blame says which phase is to blame for calls that missed an objective: one of
// ttft, ttft_upstream, ttft_visible, tpot, icl_max, e2e, queue, prefill, network
// and success; any other is taken for e2e. bad are the records of such calls, and
// reference those of calls that kept it, of any number. Without records the
// answer is undetermined: a call that hangs has none yet.
func Blame(bad, reference []*call.Record, objective string) Blamed {
	origin := originOf(bad, reference)
	list, _ := samples(bad, origin)
	kept, _ := samples(reference, origin)
	switch objective {
	case "network":
		return blameTrip(list)
	case "success":
		if b, ok := blameFailure(list); ok {
			return b
		}
		return undetermined(len(list), "what broke the calls off")
	}
	m, only := ofE2E, []phase(nil)
	switch objective {
	case "ttft", "ttft_upstream", "ttft_visible":
		m = ofTTFT
	case "tpot", "icl_max":
		m = ofTPOT
	case "queue":
		m, only = ofTTFT, []phase{queueGateway, queueEngine}
	case "prefill":
		m, only = ofTTFT, []phase{frontend, prefill}
	}
	return blamePhase(list, kept, m, only)
}

func undetermined(calls int, what string) Blamed {
	if calls == 0 {
		return Blamed{Text: "Undetermined: no call that missed it has ended yet."}
	}
	return Blamed{Calls: calls, Text: "Undetermined: the records of " + cardinal(calls) + " do not tell " + what + "."}
}

// missed makes a call that broke off count with the time it had: all of it when
// it was to be quick as a whole, or never had a first token.
func (s *sample) missed(m measure) {
	switch {
	case s.has[m]:
	case m == ofE2E:
		s.has[m] = true
	case m == ofTTFT && !s.decoding:
		s.has[m], s.whole[m], s.parts[m] = true, s.whole[ofE2E], s.parts[ofE2E]
	}
}

// blamePhase looks for the phase that grew most; of some phases alone if they are
// named.
func blamePhase(bad, kept []sample, m measure, only []phase) Blamed {
	var now, then sumOf
	for i := range bad {
		bad[i].missed(m)
		now.add(&bad[i], m)
	}
	for i := range kept {
		then.add(&kept[i], m)
	}
	if now.calls == 0 || now.total <= 0 {
		return undetermined(len(bad), "where the time went")
	}
	n := time.Duration(now.calls)
	var excess [phases]time.Duration
	var all time.Duration
	worst, found := upload, false
	for p := range phases {
		excess[p] = now.parts[p] / n
		if then.calls >= FocusCalls {
			excess[p] -= then.parts[p] / time.Duration(then.calls)
		}
		if len(only) > 0 && p != only[0] && p != only[1] {
			continue
		}
		all += max(excess[p], 0)
		if excess[p] > 0 && (!found || excess[p] > excess[worst]) {
			worst, found = p, true
		}
	}
	if !found {
		return undetermined(len(bad), "which phase grew: none did")
	}
	share := float64(now.parts[worst]) / float64(now.total)
	b := Blamed{Phase: phaseNames[worst], Layer: phaseLayers[worst], Share: call.Figure(share), Source: now.source(worst), Calls: now.calls}
	if b.Source == call.Unattributed {
		b.Layer = Unknown
	}
	text := fmt.Sprintf("%s is %s of %s", b.Phase, percent(share), inCapitals[m])
	if then.calls >= FocusCalls {
		text += fmt.Sprintf(" (%s, %s in calls that kept it)", span(now.parts[worst]/n), span(then.parts[worst]/time.Duration(then.calls)))
	} else {
		text += " (" + span(now.parts[worst]/n) + ")"
	}
	switch {
	case b.Source == call.Unattributed:
		b.Text = "Undetermined: " + text + ", which nobody splits; the engine's queue may hide in it."
	case float64(excess[worst]) < Dominant*float64(all):
		b.Text = "Undetermined: no phase has most of it; the largest is that " + text + "."
	default:
		b.Determined = true
		b.Text = "Phase " + text + ", " + knownHow[b.Source] + "."
	}
	return b
}

// blameTrip says how long the round trip to clients is: no phase holds it.
func blameTrip(bad []sample) Blamed {
	var trips numbers
	for i := range bad {
		trips.duration(bad[i].rec.ClientRTT)
	}
	mean, known := trips.mean().Get()
	if !known {
		return undetermined(len(bad), "the round trip to clients")
	}
	return Blamed{Phase: "client_rtt", Layer: Network, Share: call.Figure(1), Source: call.Measured, Calls: len(trips), Determined: true,
		Text: "The round trip to clients is " + spanOf(mean) + ", measured: the way between user and gateway."}
}

// blameFailure says what most calls failed of.
func blameFailure(bad []sample) (Blamed, bool) {
	var l look
	var s sheet
	counts := make(map[string]int)
	for i := range bad {
		if !l.at(bad[i].rec) {
			continue
		}
		s.reset()
		failures(&l, &s)
		if len(s.hits) > 0 {
			counts[string(s.hits[0].code)]++
		}
	}
	name, n := most(counts)
	if n == 0 {
		return Blamed{}, false
	}
	meaning := &meanings[places[Code(name)]]
	share := float64(n) / float64(len(bad))
	b := Blamed{Phase: name, Layer: meaning.Layer, Share: call.Figure(share), Source: call.Measured, Calls: len(bad), Determined: share >= Dominant}
	b.Text = fmt.Sprintf("%s in %s of %s (%s).", meaning.subject, plain(float64(n)), cardinal(len(bad)), name)
	if !b.Determined {
		b.Text = "Undetermined: no kind of failure has most of them; the largest is " + name + ", " + plain(float64(n)) + " of " + cardinal(len(bad)) + "."
	}
	return b, true
}
