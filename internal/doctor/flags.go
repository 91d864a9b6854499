package doctor

import (
	"context"
	"strings"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/engine"
)

// seen is what the answers tell of the calls themselves.
type seen struct {
	kind          engine.Kind
	owner         string // of the models, where kind is not known
	queue         bool   // the engine tells its queue
	prefill       bool   // and its prefill
	usage, always bool   // streams tell their usage, when asked or always
	cached        bool   // and what came from the cache
	metrics       bool   // the engine's counters could be read
}

// checkFlags names the engine's flags that would make figures exact which now
// are not, going by what its answers lack.
func checkFlags(ctx context.Context, v *visit) Finding {
	asked, unasked := v.usageStream(ctx), v.stream(ctx)
	s := seen{kind: v.engineKind(), metrics: v.engine != "", always: tellsUsage(unasked)}
	s.usage = s.always || tellsUsage(asked)
	for _, rec := range []*call.Record{&asked.Record, &unasked.Record} {
		s.queue = s.queue || rec.Engine.Queue.IsKnown()
		s.prefill = s.prefill || rec.Engine.Prefill.IsKnown()
		s.cached = s.cached || rec.Cached.IsKnown()
	}
	if len(v.found.Details) > 0 {
		s.owner = strings.ToLower(v.found.Details[0].Owner)
	}
	return judgeFlags(s)
}

func judgeFlags(s seen) Finding {
	var flags, gains []string
	add := func(missing bool, flag, gain string) {
		if missing {
			flags, gains = append(flags, flag), append(gains, gain)
		}
	}
	switch s.kind {
	case engine.VLLM:
		add(!s.queue || !s.prefill, "--enable-per-request-metrics", "queue and prefill of each call (spans of --otlp-traces-endpoint have them, too)")
		add(!s.always, "--enable-force-include-usage", "usage in every stream")
		add(s.usage && !s.cached, "--enable-prompt-tokens-details", "tokens taken from the cache")
	case engine.SGLang:
		add(!s.metrics, "--enable-metrics", "counters, queue and cache")
		add(s.usage && !s.cached, "--enable-cache-report", "tokens taken from the cache")
		if len(flags) == 0 && !s.queue {
			return grey("SGLang's answers of this API tell neither queue nor prefill", "Its own /generate does, with --enable-metrics.")
		}
	case engine.LlamaCPP:
		add(!s.metrics, "--metrics", "counters and queue")
		if len(flags) == 0 && s.prefill {
			return green("llama.cpp tells prefill and decode of each call", "Its queue follows from them; it has no flag that would tell it.")
		}
	default:
		if s.queue && s.prefill {
			return green("the engine tells queue and prefill of each call")
		}
		if s.owner == "library" {
			return grey("Ollama's answers of this API tell no phases", "Its own /api/chat does.")
		}
		if s.prefill {
			return green("the engine tells prefill of each call")
		}
		return grey("not known because nothing tells which engine it is", "Its answers tell neither queue nor prefill.")
	}
	if len(flags) == 0 {
		return green("the engine tells all that it can")
	}
	return yellow("the engine could tell more: "+strings.Join(gains, "; "), "", "start it with "+strings.Join(flags, " "))
}
