package sim

import (
	"errors"
	"fmt"
	"time"
)

// Quirks names the engine whose manners are imitated: the shape of its events,
// its headers, its metric names.
type Quirks string

const (
	VLLM     Quirks = "vllm"
	SGLang   Quirks = "sglang"
	LlamaCPP Quirks = "llamacpp"
)

// None stands in a duration of Config for "no time at all", where 0 stands for
// the default.
const None time.Duration = -1

// Config describes an engine. The zero value is a small believable one: 32
// slots, a first token after 50 to 100 ms, then one about every 15 ms.
//
// In every number and duration 0 stands for the default; a duration that is to
// be nothing is None.
type Config struct {
	// Quirks is VLLM by default.
	Quirks Quirks
	// Model is the name that /v1/models lists and that answers bear when the
	// request names none; by default "weir-sim". Any model is served.
	Model string
	// Seed decides all text, lengths and ids.
	Seed uint64

	// Slots is the number of sequences that run at once; 32 by default.
	Slots int
	// QueueLimit is the number of sequences that may wait; 4096 by default.
	// Beyond it calls are answered with 503.
	QueueLimit int
	// BatchTokens is the number of tokens that one step computes; 2048 by default.
	BatchTokens int
	// WholePrefill computes every prompt in one step. By default a prompt that
	// does not fit the step's budget is computed in chunks.
	WholePrefill bool
	// ModelLen is the number of tokens that a prompt and its answer may have
	// together; 32768 by default.
	ModelLen int
	// BlockTokens is the number of tokens in a block of KV cache; 16 by default.
	BlockTokens int
	// KVBlocks is the size of the KV cache in blocks; by default enough for
	// four sequences of ModelLen.
	KVBlocks int
	// NoPrefixCache computes every prompt from its start.
	NoPrefixCache bool

	// FrontendTime passes between the end of the request body and the arrival
	// in the queue (HTTP and tokenizing); none by default.
	FrontendTime time.Duration
	// PrefillBase is what a step costs that computes any part of a prompt; 50 ms by default.
	PrefillBase time.Duration
	// PrefillPerToken is added for each prompt token computed; 100 µs by default.
	PrefillPerToken time.Duration
	// DecodeBase is what a step costs that writes the next token of any
	// sequence; 14 ms by default. A step that does both costs both.
	DecodeBase time.Duration
	// DecodePerSequence is added for each such sequence; 200 µs by default.
	DecodePerSequence time.Duration
	// DecodePerKVToken is added for each token those sequences hold in the KV
	// cache; none by default.
	DecodePerKVToken time.Duration

	// OutputMin and OutputMax bound the length in tokens at which an answer
	// ends by itself; 48 and 192 by default.
	OutputMin, OutputMax int
	// Reasoning makes chat answers think first. A request may ask for it too
	// (reasoning_effort, thinking, chat_template_kwargs.enable_thinking).
	Reasoning bool
	// ReasoningField is the name of reasoning in chat answers; by default
	// "reasoning" for vLLM and "reasoning_content" otherwise.
	ReasoningField string

	// PerRequestMetrics adds the engine's own figures to each answer: vLLM's
	// metrics, SGLang's fields of meta_info. llama.cpp always sends its timings.
	PerRequestMetrics bool
	// ForceUsage sends usage on streams that did not ask for it.
	ForceUsage bool
	// ContinuousUsage sends running usage on every chunk of streams.
	ContinuousUsage bool
	// StreamInterval is the number of tokens in a chunk; 1 by default. The
	// first token always comes alone.
	StreamInterval int
	// EarlyRole sends the role chunk as soon as the call is accepted, long
	// before the first token.
	EarlyRole bool
	// PingInterval is the silence after which a stream gets a comment line;
	// none by default.
	PingInterval time.Duration

	// Fault misleads every call; see ParseFaults for the syntax.
	Fault string
	// FaultScript misleads call number n (from 0, by arrival) by its entry
	// n modulo its length, in place of Fault; "" is a call without fault.
	FaultScript []string

	// Truths is the number of calls whose Truth is kept; 1024 by default.
	Truths int
}

func (c Config) withDefaults() Config {
	setDefault(&c.Quirks, VLLM)
	setDefault(&c.Model, "weir-sim")
	setDefault(&c.Slots, 32)
	setDefault(&c.QueueLimit, 4096)
	setDefault(&c.BatchTokens, 2048)
	setDefault(&c.ModelLen, 32768)
	setDefault(&c.BlockTokens, 16)
	if c.BlockTokens > 0 {
		setDefault(&c.KVBlocks, 4*((c.ModelLen+c.BlockTokens-1)/c.BlockTokens))
	}
	setDuration(&c.FrontendTime, 0)
	setDuration(&c.PrefillBase, 50*time.Millisecond)
	setDuration(&c.PrefillPerToken, 100*time.Microsecond)
	setDuration(&c.DecodeBase, 14*time.Millisecond)
	setDuration(&c.DecodePerSequence, 200*time.Microsecond)
	setDuration(&c.DecodePerKVToken, 0)
	setDuration(&c.PingInterval, 0)
	setDefault(&c.OutputMin, min(48, c.OutputMax))
	setDefault(&c.OutputMin, 48)
	setDefault(&c.OutputMax, max(192, c.OutputMin))
	setDefault(&c.StreamInterval, 1)
	setDefault(&c.Truths, 1024)
	if c.ReasoningField == "" {
		c.ReasoningField = "reasoning_content"
		if c.Quirks == VLLM {
			c.ReasoningField = "reasoning"
		}
	}
	return c
}

func setDefault[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

func setDuration(field *time.Duration, value time.Duration) {
	switch {
	case *field == 0:
		*field = value
	case *field < 0:
		*field = 0
	}
}

// Validate says what is wrong with the configuration, all of it at once, and
// what would be right.
func (c Config) Validate() error {
	c = c.withDefaults()
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	switch c.Quirks {
	case VLLM, SGLang, LlamaCPP:
	default:
		wrong("unknown quirks %q: choose %s, %s or %s", c.Quirks, VLLM, SGLang, LlamaCPP)
	}
	for _, f := range []struct {
		name  string
		value int
		most  int
	}{
		{"slots", c.Slots, 4096},
		{"queue limit", c.QueueLimit, 1 << 20},
		{"batch tokens", c.BatchTokens, 1 << 20},
		{"model length", c.ModelLen, 1 << 20},
		{"block tokens", c.BlockTokens, 4096},
		{"KV blocks", c.KVBlocks, 1 << 24},
		{"least output", c.OutputMin, 1 << 20},
		{"most output", c.OutputMax, 1 << 20},
		{"stream interval", c.StreamInterval, 1 << 16},
		{"number of truths", c.Truths, 1 << 20},
	} {
		if f.value < 1 || f.value > f.most {
			wrong("%s is %d: give 1 to %d, or leave it out for the default", f.name, f.value, f.most)
		}
	}
	if c.OutputMin > c.OutputMax {
		wrong("least output (%d tokens) is above the most (%d): swap them", c.OutputMin, c.OutputMax)
	}
	if c.BlockTokens > 0 && c.KVBlocks*c.BlockTokens < c.ModelLen {
		wrong("%d KV blocks of %d tokens cannot hold one sequence of %d tokens: give at least %d blocks or a smaller model length",
			c.KVBlocks, c.BlockTokens, c.ModelLen, (c.ModelLen+c.BlockTokens-1)/c.BlockTokens)
	}
	if c.BatchTokens < c.Slots {
		wrong("a step of %d tokens cannot serve %d slots: give at least as many batch tokens as slots", c.BatchTokens, c.Slots)
	}
	for i, text := range append([]string{c.Fault}, c.FaultScript...) {
		if _, err := ParseFaults(text); err != nil {
			if i > 0 {
				err = fmt.Errorf("entry %d of the fault script: %w", i, err)
			}
			errs = append(errs, err)
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("configure simulated engine: %w", err)
	}
	return nil
}
