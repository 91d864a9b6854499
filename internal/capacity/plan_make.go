package capacity

import (
	"errors"
	"fmt"
	"math/big"
	"strconv"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// planLoad is how many sequences a load has at once. Numbers are exact.
type planLoad struct {
	mean    *big.Rat // Little's law: rate × (TTFT + output × TPOT)
	spaced  *big.Rat // mean ÷ safety
	factor  *big.Rat // rate × TTFT p95 × (1 + headroom); nil when it is left out
	needed  *big.Rat // the larger of the two
	byFirst bool     // whether that is the factor
}

func (in *PlanInput) load() planLoad {
	var l planLoad
	rate := planDecimal(in.Rate)
	busy := new(big.Rat).Mul(planInt(in.Output), planSeconds(in.TPOT))
	busy.Add(busy, planSeconds(in.TTFT))
	l.mean = busy.Mul(busy, rate)
	l.spaced = planQuo(l.mean, planDecimal(in.Safety))
	l.needed = l.spaced
	if in.TTFTP95 > 0 {
		l.factor = new(big.Rat).Add(planInt(1), planDecimal(in.Headroom))
		l.factor.Mul(l.factor, planSeconds(in.TTFTP95))
		l.factor.Mul(l.factor, rate)
		if l.factor.Cmp(l.needed) > 0 {
			l.needed, l.byFirst = l.factor, true
		}
	}
	return l
}

func planSeconds(d time.Duration) *big.Rat { return big.NewRat(int64(d), int64(time.Second)) }

// planAnswer is what follows from bound and load: whole numbers, nil where nothing fits.
type planAnswer struct {
	memory  *big.Int // sequences that the memory of a group holds
	group   *big.Int // sequences of a group: memory, or the engine's limit where that is less
	each    *big.Int // sequences of one GPU, whole
	groups  *big.Int
	gpus    *big.Int
	atLeast *big.Int
	binds   Binding
}

// answer decides. ratio is the sequences of a group before they are whole, with the
// engine's limit in it, so that the share of a GPU follows.
func (in *PlanInput) answer(b memoryBound, l planLoad) planAnswer {
	a := planAnswer{memory: b.sequences(), binds: BindsWeights}
	if a.memory.Sign() == 0 {
		return a
	}
	ratio := b.ratio
	a.group = a.memory
	if limit := planInt(in.MaxSeqs); in.MaxSeqs > 0 && limit.Cmp(ratio) < 0 {
		ratio = limit
		a.group = planFloor(ratio)
	}
	tp := big.NewInt(in.TP)
	a.each = planFloor(planQuo(ratio, planInt(in.TP)))
	a.groups = planCeil(planQuo(l.needed, new(big.Rat).SetInt(a.group)))
	a.gpus = new(big.Int).Mul(a.groups, tp)
	a.atLeast = a.gpus
	if a.each.Sign() > 0 {
		if n := planCeil(planQuo(l.needed, new(big.Rat).SetInt(a.each))); n.Cmp(a.gpus) < 0 {
			a.atLeast = n
		}
	}
	switch {
	case a.groups.Cmp(big.NewInt(1)) == 0:
		a.binds = BindsMemory
	case a.group.Cmp(a.memory) < 0 && planCeil(planQuo(l.needed, new(big.Rat).SetInt(a.memory))).Cmp(a.groups) < 0:
		a.binds = BindsEngine
	default:
		a.binds = BindsConcurrency
	}
	return a
}

// Plan computes the plan. An error means that the input makes no sense; that nothing
// fits is not an error but a plan whose Fits is false, with a warning that says what would.
//
// The formulas: weights a GPU = parameters × bytes ÷ TP; room = memory × share − weights
// a GPU; KV cache of a token = 2 × layers × KV heads × head dimension × bytes, or with MLA
// layers × (kv_lora_rank + qk_rope_head_dim) × bytes; of a call, that times input and
// output tokens, where layers with a window hold no more than it, and times the copies that
// the group holds; sequences of a group = TP × room ÷ KV cache of a call; mean concurrency
// = rate × (TTFT + output × TPOT), Little's law; sequences needed = mean concurrency ÷
// safety, or the concurrency factor, rate × TTFT p95 × (1 + headroom), where that is more;
// groups = sequences needed ÷ sequences of a group. All of it is exact until it is shown.
func (in PlanInput) Plan() (Plan, error) {
	if in.Unit == "" {
		in.Unit = GB
	}
	if in.Headroom == 0 {
		in.Headroom = DefaultHeadroom
	}
	if err := in.Validate(); err != nil {
		return Plan{}, err
	}
	b, l := in.boundAt(in.TP), in.load()
	a := in.answer(b, l)
	const most = 1_000_000_000
	if a.gpus != nil && a.gpus.Cmp(big.NewInt(most)) > 0 {
		return Plan{}, errors.New("plan: more than a thousand million GPUs would be needed: look at the rate and at the times, which are per call and per token")
	}
	p := Plan{
		Model: in.Model.Name, GPU: in.GPU.Name, Unit: in.Unit, TP: in.TP, Rate: in.Rate,
		MeanConcurrency: planFloat(l.mean), SequencesNeeded: planFloat(l.needed), Binds: a.binds,
	}
	if tp := in.leastTP(); tp > 0 {
		p.LeastTP = call.Known(tp)
	}
	if a.gpus != nil {
		p.GPUs, p.Groups, p.GPUsAtLeast = planKnown(a.gpus), planKnown(a.groups), planKnown(a.atLeast)
		p.SequencesPerGroup, p.SequencesPerGPU = planKnown(a.group), planKnown(a.each)
	}
	p.Why = in.why(b, l, a)
	p.Figures = in.figures(b, l, a)
	p.Warnings = in.warnings(b, a, p.LeastTP)
	p.Notes = in.notes(l, a)
	return p, nil
}

// planKnown is a number as a count. It is within an int64 because sequences of a group
// are at most 2⁶⁰ bytes × TP over one byte of KV cache in theory; what is more is cut there,
// which no decision rests on.
func planKnown(n *big.Int) call.Count {
	if !n.IsInt64() {
		return call.Known(1<<63 - 1)
	}
	return call.Known(n.Int64())
}

// why says what decides, in a sentence or two.
func (in *PlanInput) why(b memoryBound, l planLoad, a planAnswer) string {
	needed := planSequences(planCeil(l.needed))
	switch a.binds {
	case BindsWeights:
		if b.room.Sign() <= 0 {
			return fmt.Sprintf("the weights do not fit: they take %s a GPU, which has %s for the engine.", in.Unit.show(b.onGPU), in.Unit.show(b.usable))
		}
		return fmt.Sprintf("the weights leave %s in a group, which is less than the %s of one call.",
			in.Unit.show(new(big.Rat).Mul(b.room, planInt(in.TP))), in.Unit.show(b.call))
	case BindsMemory:
		return fmt.Sprintf("one group holds the weights and %s, and the load needs %s. The group is there for the memory, not for the load.",
			planSequences(a.group), needed)
	case BindsEngine:
		return fmt.Sprintf("the engine runs at most %s in a group, where the memory holds %s; the load needs %s.",
			planSequences(a.group), planGroups(a.memory.String()), needed)
	}
	return fmt.Sprintf("the load needs %s at once, and one group holds %s.", needed, planGroups(a.group.String()))
}

func planSequences(n *big.Int) string {
	if n.IsInt64() {
		return planMany(n.Int64(), "sequence", "sequences")
	}
	return planGroups(n.String()) + " sequences"
}

// planShort writes a number that a person gave as that person would.
func planShort(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }
