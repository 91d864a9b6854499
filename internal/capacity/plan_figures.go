package capacity

import (
	"fmt"
	"math/big"
	"strings"
	"time"
)

// planList collects figures.
type planList struct {
	unit    Unit
	figures []PlanFigure
}

func (l *planList) add(name, label string, v *big.Rat, unit, shown, formula string) {
	l.figures = append(l.figures, PlanFigure{Name: name, Label: label, Value: planFloat(v), Unit: unit, Shown: shown, Formula: formula})
}

// size adds a number of bytes, as a number of the plan's unit.
func (l *planList) size(name, label string, bytes *big.Rat, formula string) {
	v := l.unit.of(bytes)
	l.add(name, label, v, string(l.unit), planSigned(v)+" "+string(l.unit), formula)
}

// number adds a number of things.
func (l *planList) number(name, label string, v *big.Rat, unit, formula string) {
	l.add(name, label, v, unit, planNumber(v, planNearest)+" "+unit, formula)
}

// whole adds a whole number of things; of one of them the unit loses its s.
func (l *planList) whole(name, label string, n *big.Int, unit, formula string) {
	shown := planGroups(n.String()) + " " + unit
	if n.Cmp(big.NewInt(1)) == 0 {
		shown = strings.TrimSuffix(shown, "s")
	}
	l.add(name, label, new(big.Rat).SetInt(n), unit, shown, formula)
}

// figures lists every figure in the order in which they follow from each other.
func (in *PlanInput) figures(b memoryBound, load planLoad, a planAnswer) []PlanFigure {
	l := &planList{unit: in.Unit}
	in.memoryFigures(l, b)
	if a.group != nil {
		in.sequenceFigures(l, b, a)
	}
	in.loadFigures(l, load)
	if a.gpus == nil {
		return l.figures
	}
	needed := planNumber(load.needed, planUp)
	formula := fmt.Sprintf("ceiling of %s ÷ %s", needed, planGroups(a.each.String()))
	if a.atLeast == a.gpus {
		formula = "the same as with whole groups"
	}
	l.whole("gpus_at_least", "GPUs at least", a.atLeast, "GPUs", formula)
	groups := planMany(a.groups.Int64(), "group", "groups") // at most as many as GPUs
	l.whole("groups", "groups", a.groups, "groups", fmt.Sprintf("ceiling of %s ÷ %s", needed, planGroups(a.group.String())))
	l.whole("gpus", "GPUs", a.gpus, "GPUs", fmt.Sprintf("%s × TP %d", groups, in.TP))
	batch := planQuo(load.mean, new(big.Rat).SetInt(a.groups))
	l.number("mean_batch", "mean batch of a group", batch, "sequences",
		fmt.Sprintf("%s ÷ %s", planNumber(load.mean, planNearest), groups))
	return l.figures
}

func (in *PlanInput) memoryFigures(l *planList, b memoryBound) {
	m, u := in.Model, in.Unit
	l.size("weights", "weights", b.weights, in.weightsFormula())
	l.size("weights_per_gpu", "weights on each GPU", b.onGPU, fmt.Sprintf("%s ÷ TP %d", u.show(b.weights), in.TP))
	stated := planCount(in.GPU.Bytes) + " bytes as given"
	if in.GPU.Bytes == 0 {
		stated = fmt.Sprintf("%s as the vendor states it, of %s each", planCount(in.GPU.Stated), u.power())
	}
	l.size("memory_per_gpu", "memory of each GPU", b.memory, stated)
	l.size("usable_per_gpu", "of it for the engine", b.usable, fmt.Sprintf("%s × share %s", u.show(b.memory), planShort(in.MemoryShare)))
	l.size("room_per_gpu", "room for KV cache on each", b.room, fmt.Sprintf("%s − %s", u.show(b.usable), u.show(b.onGPU)))
	if in.KVPerCall > 0 {
		l.size("kv_per_call", "KV cache of a call", b.call, planCount(in.KVPerCall)+" bytes as given, in the whole group")
		return
	}
	full := new(big.Rat).Mul(planInt(m.Layers-m.WindowLayers), m.perLayer())
	if m.Layers > m.WindowLayers {
		l.number("kv_per_token", "KV cache of a token", full, "bytes", m.tokenFormula(m.Layers-m.WindowLayers))
	}
	windowed := new(big.Rat).Mul(planInt(m.WindowLayers), m.perLayer())
	if m.WindowLayers > 0 {
		l.number("kv_per_token_in_window", "and in layers with a window", windowed, "bytes",
			fmt.Sprintf("%s; the last %s", m.tokenFormula(m.WindowLayers), planMany(m.Window, "token", "tokens")))
	}
	copies := ""
	if b.copies.Cmp(planInt(1)) != 0 {
		copies = planNumber(b.copies, planNearest)
		formula := fmt.Sprintf("TP %d × %d a GPU ÷ %s; a head is not divided", in.TP, m.headsPerGPU(in.TP), planMany(m.KVHeads, "KV head", "KV heads"))
		if m.KVRank > 0 {
			formula = fmt.Sprintf("TP %d; each GPU holds the whole latent vector", in.TP)
		}
		l.number("kv_copies", "copies of it in a group", b.copies, "copies", formula)
	}
	l.size("kv_per_call", "KV cache of a call", b.call, in.callFormula(full, windowed, copies))
}

func (in *PlanInput) weightsFormula() string {
	m := in.Model
	if in.Weights > 0 {
		return planCount(in.Weights) + " bytes as given"
	}
	one := planBytes(m.Dtype)
	if wide := m.wide(); wide > 0 {
		return fmt.Sprintf("%s parameters × %s + %s at 16 bits × 2 bytes", planCount(m.Params-wide), one, planCount(wide))
	}
	return fmt.Sprintf("%s parameters × %s", planCount(m.Params), one)
}

// planBytes names the size of a number.
func planBytes(d Dtype) string {
	text := planNumber(d.bytes(), planNearest) + " bytes"
	if d.bytes().Cmp(planInt(1)) == 0 {
		text = "1 byte"
	}
	return text + " (" + string(d) + ")"
}

// tokenFormula says what a token takes in so many layers.
func (m Model) tokenFormula(layers int64) string {
	if m.KVRank > 0 {
		return fmt.Sprintf("%s × (%s latent + %s rotary) × %s", planMany(layers, "layer", "layers"), planCount(m.KVRank), planCount(m.RopeDim), planBytes(m.KVDtype))
	}
	return fmt.Sprintf("2 × %s × %s × %s dimensions × %s", planMany(layers, "layer", "layers"),
		planMany(m.KVHeads, "KV head", "KV heads"), planCount(m.HeadDim), planBytes(m.KVDtype))
}

func (in *PlanInput) callFormula(full, windowed *big.Rat, copies string) string {
	m, tokens := in.Model, in.Input+in.Output
	sum := fmt.Sprintf("(%s + %s) tokens × %s bytes", planCount(in.Input), planCount(in.Output), planNumber(full, planNearest))
	if m.WindowLayers > 0 {
		sum += fmt.Sprintf(" + %s × %s bytes", planMany(min(tokens, m.Window), "token", "tokens"), planNumber(windowed, planNearest))
		if copies != "" {
			sum = "(" + sum + ")"
		}
	}
	if copies != "" {
		sum += " × " + copies + " copies"
	}
	return sum
}

func (in *PlanInput) sequenceFigures(l *planList, b memoryBound, a planAnswer) {
	u := in.Unit
	ratio := planNumber(b.ratio, planDown)
	l.whole("memory_sequences_per_group", "sequences a group holds", a.memory, "sequences",
		fmt.Sprintf("floor of %s = TP %d × %s ÷ %s", ratio, in.TP, u.show(b.room), u.show(b.call)))
	group := ratio
	if in.MaxSeqs > 0 {
		l.whole("sequences_per_group", "of them the engine runs", a.group, "sequences", fmt.Sprintf("at most its limit of %s", planCount(in.MaxSeqs)))
		if a.group.Cmp(a.memory) < 0 {
			group = planGroups(a.group.String())
		}
	}
	each := planQuo(b.ratio, planInt(in.TP))
	if a.group.Cmp(a.memory) < 0 {
		each = planQuo(new(big.Rat).SetInt(a.group), planInt(in.TP))
	}
	l.whole("sequences_per_gpu", "sequences a GPU holds", a.each, "sequences", fmt.Sprintf("floor of %s = %s ÷ TP %d", planNumber(each, planDown), group, in.TP))
}

func (in *PlanInput) loadFigures(l *planList, load planLoad) {
	rate := planRate(in.Rate)
	l.number("mean_concurrency", "mean concurrency", load.mean, "calls",
		fmt.Sprintf("%s × (%s + %s × %s); Little's law", rate, planSpan(in.TTFT), planMany(in.Output, "token", "tokens"), planSpan(in.TPOT)))
	spaced := fmt.Sprintf("%s ÷ safety %s", planNumber(load.mean, planNearest), planShort(in.Safety))
	if load.factor == nil {
		l.number("sequences_needed", "sequences needed", load.needed, "sequences", spaced)
		return
	}
	l.number("concurrency_factor", "concurrency factor", load.factor, "calls",
		fmt.Sprintf("%s × TTFT p95 %s × (1 + headroom %s)", rate, planSpan(in.TTFTP95), planShort(in.Headroom)))
	l.number("sequences_needed", "sequences needed", load.needed, "sequences",
		fmt.Sprintf("the larger of %s = %s and the concurrency factor", spaced, planNumber(load.spaced, planNearest)))
}

// planSpan writes a time in seconds, exactly.
func planSpan(d time.Duration) string {
	text := planSeconds(d).FloatString(9)
	for text[len(text)-1] == '0' {
		text = text[:len(text)-1]
	}
	if text[len(text)-1] == '.' {
		text = text[:len(text)-1]
	}
	return text + " s"
}
