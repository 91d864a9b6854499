package telemetry

import (
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// EngineState is what one engine said of itself when its metrics were last read.
// What is unknown is not shown.
type EngineState struct {
	// Engine is the address of its metrics, without what may be secret in it.
	Engine string
	// Kind is vllm, sglang, tgi or llamacpp; "" while it is not known.
	Kind string
	// Up tells that the last reading succeeded. The figures of an engine that is
	// not up are old, and not shown.
	Up bool

	Running, Waiting call.Count  // requests being worked on, and in the engine's queue
	MaxSeqs          call.Count  // the most that are worked on at once
	KVUse            call.Number // share of the KV cache in use, 0–1
	KVTokens         call.Count  // tokens that the KV cache holds

	// Totals since the engine's start.
	Preemptions               call.Count
	PrefixQueries, PrefixHits call.Count // tokens looked for in the prefix cache, and found
	Prompt, Generated         call.Count // tokens
}

// engineKinds are the values of the label kind of weir_engine_up beside the empty one.
var engineKinds = [...]string{"vllm", "sglang", "tgi", "llamacpp"}

// Engines sets where figures of engines come from, as Live does for calls. The
// first EngineCap are shown.
func (m *Metrics) Engines(state func() []EngineState) {
	if m != nil {
		m.engines.set(state)
	}
}

func (s sending) engines(all []EngineState) {
	shown := newShown[string](EngineCap)
	for i := range all {
		e := &all[i]
		if !shown.add(e.Engine) {
			continue
		}
		kind := e.Kind
		if kind != "" && !slices.Contains(engineKinds[:], kind) {
			kind = Other
		}
		s.figure(engineUp, flag(e.Up), e.Engine, kind)
		if !e.Up {
			continue
		}
		s.count(engineRunning, e.Running, e.Engine)
		s.count(engineWaiting, e.Waiting, e.Engine)
		s.count(engineMaxSeqs, e.MaxSeqs, e.Engine)
		s.number(engineKVUse, e.KVUse, e.Engine)
		s.count(engineKVTokens, e.KVTokens, e.Engine)
		s.count(enginePreemptions, e.Preemptions, e.Engine)
		s.count(enginePrefixQueries, e.PrefixQueries, e.Engine)
		s.count(enginePrefixHits, e.PrefixHits, e.Engine)
		s.count(enginePrompt, e.Prompt, e.Engine)
		s.count(engineGenerated, e.Generated, e.Engine)
	}
}
