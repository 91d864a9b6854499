package diagnose

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// clockChange is what the SM clock of a GPU lost against the healthy window.
type clockChange struct {
	gpu           string // "" is all of them, by the records
	loss          float64
	before, after call.Number // MHz or, by the records, share of the maximum
	unit          Unit
	reasons       []string // in the new window
	power         call.Number
	limit         call.Number
	temperature   call.Number
	since         time.Time
}

// The clock event reasons of heat (0x60) and of power (0x84), by the names that
// records bear.
var (
	heatReasons  = []string{"sw_thermal", "hw_thermal"}
	powerReasons = []string{"power_cap", "power_brake"}
)

// clocksOf compares the clocks of each GPU or, where GPUs were not watched over the
// windows, the lowest clock ratio of calls.
func clocksOf(list [2][]sample, sig [2]*Signals) []clockChange {
	var out []clockChange
	for i := range sig[1].GPUs {
		g := &sig[1].GPUs[i]
		at := slices.IndexFunc(sig[0].GPUs, func(h GPUFigures) bool { return h.Name == g.Name })
		if at < 0 {
			continue
		}
		before, known := sig[0].GPUs[at].Clock.Get()
		after, too := g.Clock.Get()
		if known && too && before > 0 {
			out = append(out, clockChange{gpu: g.Name, loss: 1 - after/before, before: sig[0].GPUs[at].Clock, after: g.Clock, unit: InMegahertz,
				reasons: g.Reasons, power: g.Power, limit: g.PowerLimit, temperature: g.Temperature, since: g.Since})
		}
	}
	if len(out) > 0 {
		return out
	}
	var ratios [2]numbers
	seen, sampled := make(map[string]int), 0
	for i := range list {
		for j := range list[i] {
			g := &list[i][j].rec.GPU
			if g.IsZero() {
				continue
			}
			ratios[i].number(g.ClockRatio)
			if i == 0 {
				continue
			}
			sampled++
			for k, r := range g.Reasons[:min(len(g.Reasons), maxReasons)] {
				if !slices.Contains(g.Reasons[:k], r) {
					note(seen, r)
				}
			}
		}
	}
	before, known := ratios[0].mean().Get()
	after, too := ratios[1].mean().Get()
	if !known || !too || before <= 0 || len(ratios[0]) < FocusCalls || len(ratios[1]) < FocusCalls {
		return nil
	}
	c := clockChange{loss: 1 - after/before, before: ratios[0].mean(), after: ratios[1].mean(), unit: InShare}
	for r, n := range seen {
		if 2*n >= sampled {
			c.reasons = append(c.reasons, r)
		}
	}
	slices.Sort(c.reasons)
	return []clockChange{c}
}

func (c *clockChange) has(reasons []string) bool {
	return slices.ContainsFunc(c.reasons, func(r string) bool { return slices.Contains(reasons, r) })
}

// words say how the clock changed.
func (c *clockChange) words() string {
	text := "SM clock"
	if c.gpu != "" {
		text += " of GPU " + clean(c.gpu)
	} else {
		text += ", of its maximum, lowest while a call ran"
	}
	return compared{label: text, unit: c.unit, before: c.before, after: c.after}.arrow()
}

// slowedAlike tells whether tokens come slower at the same batch by at least half
// of what the clock lost: less would mean that the clock is not what slows them.
func (p *pair) slowedAlike(loss float64) (each time.Duration, ok bool) {
	d := &p.decode
	if d.calls == 0 || d.before <= 0 {
		return 0, false
	}
	slower, within := d.residual, d.within
	if !d.known && !d.sameLoad {
		return 0, false
	}
	if slower < Sure*within || slower < loss/2*d.before {
		return 0, false
	}
	return time.Duration(slower * float64(time.Second)), true
}

// throttles finds GPUs that heat or power slows.
func throttles(p *pair) (found []*Finding) {
	for _, kind := range [...]struct {
		code    Code
		reasons []string
		next    string
	}{
		{CodeThermal, heatReasons, "See to cooling: temperature, fans, air flow and neighbours (nvidia-smi -q -d TEMPERATURE,PERFORMANCE)."},
		{CodePower, powerReasons, "Raise the power limit, or place the work elsewhere (nvidia-smi -q -d POWER,PERFORMANCE)."},
	} {
		var worst *clockChange
		for i := range p.clocks {
			c := &p.clocks[i]
			if c.loss >= ClockDrop && c.has(kind.reasons) && (worst == nil || c.loss > worst.loss) {
				worst = c
			}
		}
		if worst == nil {
			continue
		}
		slower, ok := p.slowedAlike(worst.loss)
		if !ok {
			continue
		}
		source := call.Measured
		drawn := by(worst.limit, worst.power)
		if kind.code == CodePower {
			if x, known := drawn.Get(); known && x < AtPowerLimit {
				continue
			} else if !known {
				source = call.Unattributed
			}
		}
		f := p.claim(kind.code, source, ofTPOT, slower)
		f.pro("sm_clock", worst.unit, worst.after, "%s (%s less)", worst.words(), percent(worst.loss))
		for _, r := range worst.reasons {
			if slices.Contains(kind.reasons, r) {
				f.pro("clock_reasons", NoUnit, call.Number{}, "held down by %s", clean(r))
			} else {
				f.con("clock_reasons", NoUnit, call.Number{}, "also held down by %s", clean(r))
			}
		}
		p.sameBatch(f)
		if t, known := worst.temperature.Get(); known && kind.code == CodeThermal {
			f.pro("temperature_celsius", NoUnit, worst.temperature, "%s °C at most", plain(t))
		}
		if x, known := drawn.Get(); known {
			text := "power at " + percent(x) + " of the limit"
			if kind.code == CodePower {
				f.pro("power", InShare, drawn, "%s", text)
			}
		} else if kind.code == CodePower {
			f.con("power", NoUnit, call.Number{}, "how much of its limit it draws is not known")
		}
		p.otherGPUs(f, worst)
		p.lead(f, ofTPOT, "clocks held down", worst.since)
		p.sides(f, true)
		f.Summary = "Tokens take " + span(slower) + " longer at the same batch, and the " + worst.words() + "."
		f.Next = kind.next
		found = append(found, f)
	}
	return found
}

// otherGPUs adds that siblings keep their clocks.
func (p *pair) otherGPUs(f *Finding, worst *clockChange) {
	for i := range p.clocks {
		if c := &p.clocks[i]; c != worst && c.loss < ClockDrop/2 {
			f.pro("sm_clock", c.unit, c.after, "%s, as before", c.words())
			return
		}
	}
}

// sameBatch adds how the change of TPOT divides.
func (p *pair) sameBatch(f *Finding) {
	d := &p.decode
	second := func(s float64) string { return signed(time.Duration(s * float64(time.Second))) }
	switch {
	case d.calls == 0:
	case d.known:
		f.pro("tpot_residual_ms", InMilliseconds, call.Figure(d.residual*1000),
			"per token %s in all: %s by what was written beside it, %s by prompts in between, %s at the same batch (± %s)",
			second(d.change), second(d.batch), second(d.prefill), second(d.residual), span(time.Duration(2*d.within*float64(time.Second))))
	case d.sameLoad:
		f.pro("tpot_residual_ms", InMilliseconds, call.Figure(d.residual*1000), "per token %s, with no more beside it than before", second(d.change))
	}
}

// hardwareErrors finds errors of GPUs.
func hardwareErrors(p *pair) (found []*Finding) {
	for i := range p.sig[1].GPUs {
		g := &p.sig[1].GPUs[i]
		xid, ecc := g.XID.Or(0), g.Uncorrected.Or(0)
		if xid <= 0 && ecc <= 0 {
			continue
		}
		f := p.condition(CodeHardware, call.Measured)
		name := clean(g.Name)
		if xid > 0 {
			f.pro("xid", InPieces, call.Figure(float64(xid)), "GPU %s reported XID %d", name, xid)
		}
		if ecc > 0 {
			f.pro("ecc_uncorrected", InPieces, call.Figure(float64(ecc)), "GPU %s had %s memory errors that ECC could not correct", name, plain(float64(ecc)))
		}
		for j := range p.sig[1].GPUs {
			if o := &p.sig[1].GPUs[j]; j != i && o.XID == call.Known(0) && o.Uncorrected.Or(0) == 0 {
				f.pro("gpu", NoUnit, call.Number{}, "GPU %s reported none", clean(o.Name))
				break
			}
		}
		if !p.slower() {
			f.con("", NoUnit, call.Number{}, "calls are no slower than they were")
		}
		m := ofE2E
		for k := range measures {
			if p.trends[k] == up {
				m = k
				break
			}
		}
		p.lead(f, m, "the error", g.Since)
		p.sides(f, true)
		f.Summary = "GPU " + name + " reported hardware errors."
		f.Next = "Drain the machine of this GPU, and look the error up (dmesg; NVIDIA's list of XID errors): some need a reset, some a replacement."
		found = append(found, f)
		if len(found) >= maxSiblings {
			break
		}
	}
	return found
}
