package diagnose

import (
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// maker is the engine behind a call, as far as its record tells; "" is unknown.
type maker string

const (
	vllm     maker = "vLLM"
	sglang   maker = "SGLang"
	llamaCPP maker = "llama.cpp"
	ollama   maker = "Ollama"
	tgi      maker = "TGI"
)

// makers in the order in which texts name them.
var makers = [...]maker{vllm, sglang, llamaCPP, ollama, tgi}

// makerOf goes by the dialect, which some engines have to themselves, and by the
// figures that the engine gave.
func makerOf(rec *call.Record) maker {
	switch name, _, _ := strings.Cut(rec.Dialect, "."); name {
	case "sglang":
		return sglang
	case "llamacpp":
		return llamaCPP
	case "ollama":
		return ollama
	case "tgi":
		return tgi
	}
	e := &rec.Engine
	switch {
	case e.E2E.IsKnown() || e.Load.IsKnown() || e.Total.IsKnown():
		return "" // spans have the first of several engines; the others have dialects of their own
	case e.Prefill.IsKnown() && e.Decode.IsKnown() && !e.Queue.IsKnown():
		return llamaCPP
	case e.Prefill.IsKnown() && e.Queue.IsKnown():
		return vllm
	}
	return ""
}

// scene is what the records of some calls show to be configured already, so that
// nobody is told to do it.
type scene struct {
	gauged, sampled bool // engine gauges, GPU windows
	maker           maker
	mixed           bool // there are several makers
}

func (s *scene) add(rec *call.Record) {
	s.gauged = s.gauged || !rec.AtDispatch.IsZero() || !rec.AtFirstToken.IsZero()
	s.sampled = s.sampled || !rec.GPU.IsZero()
	switch m := makerOf(rec); {
	case m == "" || s.mixed:
	case s.maker == "":
		s.maker = m
	case s.maker != m:
		s.maker, s.mixed = "", true
	}
}

// flag says how something is set: in the engine that it is, or in each of them
// where that is not known. "" is that this engine has no such flag.
func (s *scene) flag(of map[maker]string) string {
	var all []string
	for _, m := range makers {
		if of[m] != "" && (s.maker == "" || s.maker == m) {
			all = append(all, string(m)+": "+of[m])
		}
	}
	return strings.Join(all, "; ")
}

// with is the same in brackets after a blank.
func (s *scene) with(of map[maker]string) string {
	if flag := s.flag(of); flag != "" {
		return " (" + flag + ")"
	}
	return ""
}

// The flags of engines by what they do.
var (
	capFlags = map[maker]string{vllm: "--max-num-seqs", sglang: "--max-running-requests", llamaCPP: "--parallel", ollama: "OLLAMA_NUM_PARALLEL", tgi: "--max-batch-total-tokens"}
	kvFlags  = map[maker]string{vllm: "--gpu-memory-utilization, a smaller --max-model-len, an fp8 KV cache", sglang: "--mem-fraction-static, an fp8 KV cache",
		llamaCPP: "--cache-type-k and --cache-type-v, fewer layers on the GPU", ollama: "OLLAMA_KV_CACHE_TYPE, a smaller OLLAMA_CONTEXT_LENGTH", tgi: "--cuda-memory-fraction"}
	chunkFlags    = map[maker]string{vllm: "chunked prefill, --max-num-batched-tokens", sglang: "--chunked-prefill-size", llamaCPP: "--batch-size", tgi: "--max-batch-prefill-tokens"}
	frontendFlags = map[maker]string{vllm: "--api-server-count", sglang: "--tokenizer-worker-num", llamaCPP: "--threads-http", tgi: "--validation-workers"}
	stepFlags     = map[maker]string{vllm: "--max-num-seqs, --max-num-batched-tokens", sglang: "--max-running-requests, --chunked-prefill-size", llamaCPP: "--parallel, --batch-size", ollama: "OLLAMA_NUM_PARALLEL", tgi: "--max-batch-total-tokens"}
)
