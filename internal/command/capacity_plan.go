package command

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/internal/capacity"
	"github.com/weirgate/weir/internal/quantity"
)

// capacityPlan is `weir capacity plan`: how many GPUs a load needs, from the figures
// of model and hardware alone. Fields of text are flags that are read only when given.
type capacityPlan struct {
	in capacity.PlanInput

	model, gpu, unit           string
	memory, kvPerCall, weights string
	params, layers, heads      string
	kvHeads, headDim           string
	latent, rotary             string
	window, windowLayers       string
	context, dtype, kvDtype    string
	input, output              string
	ttft, tpot, ttftP95        string
	list, json                 bool
}

const capacityPlanShort = "Counts the GPUs for a load, from model and hardware figures alone"

func configureCapacityPlan(cmd *cobra.Command) {
	p := new(capacityPlan)
	cmd.Long = `Counts the GPUs that a load needs, from the figures of model and hardware alone, and
shows every figure on the way with its formula, so that it can be checked by hand.
One flag changed gives the new answer.

Memory bound: weights on each GPU are parameters × bytes ÷ TP; what is left of the
engine's share of the memory holds the KV cache of so many sequences. Load: Little's
law, rate × (TTFT + output tokens × TPOT), over the safety factor, or with --ttft-p95
the concurrency factor, rate × TTFT p95 × (1 + headroom), where that is more.

TTFT and TPOT are means as measured, at about the batch that the plan ends with; an
objective is not an input. A model without a preset is described by the fields of its
config.json: those flags also change single figures of a preset.

A size has its unit, 80GB (10⁹ bytes each) or 80GiB (2³⁰ bytes each). What a vendor
states as GB is read in --unit.

The status is 1 when the weights, or the weights and one call, do not fit.`
	cmd.Example = `  weir capacity plan --model llama-3.1-70b --gpu h100 --tp 8 --rate 20 \
    --ttft 300ms --tpot 25ms --input 1024 --output 256
  weir capacity plan --params 70e9 --dtype bf16 --memory 80GB --tp 8 --rate 20 \
    --ttft 300ms --tpot 25ms --output 256 --kv-per-call 2.6GB
  weir capacity plan --list`
	cmd.Args = cobra.NoArgs
	f := cmd.Flags()
	f.StringVar(&p.model, "model", "", "a preset, as --list shows them; the figures below go before its own")
	f.StringVar(&p.gpu, "gpu", "", "a preset, as --list shows them")
	f.Int64Var(&p.in.TP, "tp", 1, "GPUs that share each sequence (tensor parallelism)")
	f.Float64Var(&p.in.Rate, "rate", 0, "`calls` a second, mean")
	f.StringVar(&p.ttft, "ttft", "", "mean `time` to the first token, as measured")
	f.StringVar(&p.tpot, "tpot", "", "mean `time` of an output token, as measured")
	f.StringVar(&p.input, "input", "", "mean input `tokens` of a call")
	f.StringVar(&p.output, "output", "", "mean output `tokens` of a call")
	f.Float64Var(&p.in.Safety, "safety", capacity.DefaultSafety, "how full the sequences may be on average; the rest is for bursts")
	f.StringVar(&p.ttftP95, "ttft-p95", "", "p95 of TTFT, for the concurrency factor; left out when empty")
	f.Float64Var(&p.in.Headroom, "headroom", capacity.DefaultHeadroom, "of the concurrency factor, 0.3 to 0.5")
	f.StringVar(&p.unit, "unit", "", "GB or GiB: what a vendor's GB are read as, and sizes shown in; GB unless --memory is in KiB, MiB or GiB")
	f.StringVar(&p.memory, "memory", "", "`size` of a GPU's memory, instead of what the vendor states; nvidia-smi shows it in MiB")
	f.Float64Var(&p.in.MemoryShare, "memory-share", capacity.DefaultMemoryShare, "of a GPU's memory that the engine takes, like vLLM's gpu_memory_utilization")
	f.Int64Var(&p.in.MaxSeqs, "max-num-seqs", 0, "the most sequences that the engine of a group runs at once; 0 is unknown")
	f.StringVar(&p.kvPerCall, "kv-per-call", "", "`size` of a call's KV cache in its whole group; computed when empty")
	f.StringVar(&p.weights, "weights", "", "`size` of all weights, as of the checkpoint's files; computed when empty")
	f.StringVar(&p.dtype, "dtype", "", "`type` of the weights: "+typeNames(capacity.Dtypes))
	f.StringVar(&p.kvDtype, "kv-dtype", "", "`type` of the KV cache: "+typeNames(capacity.KVDtypes))
	f.StringVar(&p.params, "params", "", "parameters, all experts of a mixture included; like 70e9 or 70B")
	f.StringVar(&p.layers, "layers", "", "num_hidden_layers")
	f.StringVar(&p.heads, "heads", "", "num_attention_heads; only to see whether TP divides them")
	f.StringVar(&p.kvHeads, "kv-heads", "", "num_key_value_heads")
	f.StringVar(&p.headDim, "head-dim", "", "head_dim, or hidden_size ÷ num_attention_heads")
	f.StringVar(&p.latent, "kv-lora-rank", "", "kv_lora_rank of multi-head latent attention; 0 is ordinary attention")
	f.StringVar(&p.rotary, "qk-rope-head-dim", "", "qk_rope_head_dim of multi-head latent attention")
	f.StringVar(&p.window, "window", "", "sliding_window, in tokens")
	f.StringVar(&p.windowLayers, "window-layers", "", "layers with that window; 0 for an engine that keeps all tokens in them")
	f.StringVar(&p.context, "context", "", "max_position_embeddings, or the engine's --max-model-len")
	f.BoolVar(&p.list, "list", false, "list the presets and their figures")
	f.BoolVar(&p.json, "json", false, "write one JSON object")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cmd.SilenceUsage = true // what follows is not about flags
		if p.list {
			return writePresets(cmd.OutOrStdout(), p.json)
		}
		return p.run(cmd.OutOrStdout())
	}
}

func typeNames(types []capacity.Dtype) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = string(t)
	}
	return strings.Join(names, ", ")
}

func (p *capacityPlan) run(out io.Writer) error {
	if err := p.read(); err != nil {
		return err
	}
	plan, err := p.in.Plan()
	if err != nil {
		return err
	}
	if p.json {
		err = writeIndented(out, plan)
	} else {
		_, err = io.WriteString(out, plan.Text())
	}
	if err != nil {
		return fmt.Errorf("write the plan: %w", err)
	}
	if !plan.Fits() {
		return errors.New(plan.Why)
	}
	return nil
}

func writeIndented(out io.Writer, v any) error {
	e := json.NewEncoder(out)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// read makes the plan's input of the flags.
func (p *capacityPlan) read() error {
	var missing []string
	for _, flag := range []struct {
		name  string
		given bool
	}{
		{"--model, or --params and the fields of config.json", p.model != "" || p.params != "" || p.weights != ""},
		{"--gpu or --memory", p.gpu != "" || p.memory != ""},
		{"--rate", p.in.Rate != 0}, {"--ttft", p.ttft != ""}, {"--tpot", p.tpot != ""}, {"--output", p.output != ""},
		{"--input or --kv-per-call", p.input != "" || p.kvPerCall != ""},
	} {
		if !flag.given {
			missing = append(missing, flag.name)
		}
	}
	if missing != nil {
		return fmt.Errorf("give %s as well; weir capacity plan --help has examples", strings.Join(missing, "; "))
	}
	return errors.Join(p.readModel(), p.readGPU(), p.readLoad())
}

func (p *capacityPlan) readModel() error {
	m := capacity.Model{Name: "own model", Dtype: capacity.BF16, KVDtype: capacity.BF16}
	if p.model != "" {
		var err error
		if m, err = capacity.FindModel(p.model); err != nil {
			return fmt.Errorf("--model: %w", err)
		}
	}
	if p.params != "" {
		m.Wide = 0 // of other parameters nothing is known
	}
	if p.dtype != "" {
		m.Dtype = capacity.Dtype(strings.ToLower(p.dtype))
	}
	if p.kvDtype != "" {
		m.KVDtype = capacity.Dtype(strings.ToLower(p.kvDtype))
	}
	err := readCounts([]countText{
		{"params", p.params, &m.Params}, {"layers", p.layers, &m.Layers}, {"heads", p.heads, &m.Heads},
		{"kv-heads", p.kvHeads, &m.KVHeads}, {"head-dim", p.headDim, &m.HeadDim},
		{"kv-lora-rank", p.latent, &m.KVRank}, {"qk-rope-head-dim", p.rotary, &m.RopeDim},
		{"window", p.window, &m.Window}, {"window-layers", p.windowLayers, &m.WindowLayers}, {"context", p.context, &m.Context},
	})
	p.in.Model = m
	return err
}

func (p *capacityPlan) readGPU() error {
	p.in.Unit = capacity.Unit(p.unit)
	if p.gpu != "" {
		g, err := capacity.FindGPU(p.gpu)
		if err != nil {
			return fmt.Errorf("--gpu: %w", err)
		}
		p.in.GPU = g
	}
	for _, size := range []struct {
		name, text string
		to         *int64
	}{{"memory", p.memory, &p.in.GPU.Bytes}, {"kv-per-call", p.kvPerCall, &p.in.KVPerCall}, {"weights", p.weights, &p.in.Weights}} {
		if size.text == "" {
			continue
		}
		n, err := sizeInBytes(size.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", size.name, err)
		}
		if n == 0 {
			return fmt.Errorf("--%s is 0: give a size like 80GB or 80GiB", size.name)
		}
		*size.to = n
	}
	if p.unit == "" && strings.Contains(strings.ToLower(p.memory), "ib") {
		p.in.Unit = capacity.GiB
	}
	return nil
}

// sizeInBytes reads a size as package quantity does, but not without a unit, and also a
// fraction of a unit that is no whole number of bytes, like 2.6GiB, which it rounds to the
// nearest.
func sizeInBytes(text string) (int64, error) {
	n, err := quantity.ParseSize(text)
	if err == nil && !strings.ContainsAny(text, "bB") {
		return 0, errors.New("it has no unit; write it like 80GB (80 × 10⁹ bytes) or 80GiB (80 × 2³⁰ bytes)")
	}
	if err == nil {
		return n, nil
	}
	at := strings.IndexFunc(text, func(r rune) bool { return r != '.' && (r < '0' || r > '9') })
	if at <= 0 || len(text) > 32 {
		return 0, err
	}
	unit, unitErr := quantity.ParseSize("1" + text[at:])
	value, ok := new(big.Rat).SetString(text[:at])
	if unitErr != nil || !ok {
		return 0, err
	}
	value.Mul(value, new(big.Rat).SetInt64(unit))
	value.Add(value, big.NewRat(1, 2))
	bytes := new(big.Int).Div(value.Num(), value.Denom())
	if !bytes.IsInt64() {
		return 0, err
	}
	return bytes.Int64(), nil
}

func (p *capacityPlan) readLoad() error {
	for _, span := range []struct {
		name, text string
		to         *time.Duration
	}{{"ttft", p.ttft, &p.in.TTFT}, {"tpot", p.tpot, &p.in.TPOT}, {"ttft-p95", p.ttftP95, &p.in.TTFTP95}} {
		if span.text == "" {
			continue
		}
		d, err := quantity.ParseDuration(span.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", span.name, err)
		}
		*span.to = d
	}
	return readCounts([]countText{{"input", p.input, &p.in.Input}, {"output", p.output, &p.in.Output}})
}

// countText is a flag with a count, which is read only when it is given.
type countText struct {
	name, text string
	to         *int64
}

func readCounts(counts []countText) error {
	for _, c := range counts {
		if c.text == "" {
			continue
		}
		n, err := quantity.ParseCount(c.text)
		if err != nil {
			return fmt.Errorf("--%s: %w", c.name, err)
		}
		*c.to = n
	}
	return nil
}
