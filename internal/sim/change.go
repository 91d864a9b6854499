package sim

import (
	"errors"
	"fmt"
	"slices"
	"time"
)

// manner is how an engine behaves: its configuration, with the defaults filled
// in, and the faults that it describes. It is never changed.
type manner struct {
	cfg    Config
	script []Faults // by turns; empty without one
	fault  Faults   // of every call without a script
}

// mannerOf reads a configuration that is valid and has its defaults filled in.
func mannerOf(cfg Config) *manner {
	m := &manner{cfg: cfg}
	// Validate has read them all without error.
	m.fault, _ = ParseFaults(cfg.Fault)
	for _, text := range cfg.FaultScript {
		f, _ := ParseFaults(text)
		m.script = append(m.script, f)
	}
	return m
}

// faultsOf decides what goes wrong with call number n.
func (m *manner) faultsOf(header string, n int) (Faults, error) {
	switch {
	case header != "":
		return ParseFaults(header)
	case len(m.script) > 0:
		return m.script[n%len(m.script)], nil
	}
	return m.fault, nil
}

func (e *Engine) config() *Config { return &e.manner.Load().cfg }

// Change changes an engine while it runs: f gets its configuration with all
// defaults filled in and may alter it. The scheduler follows from its next step
// on, and calls from the next one that comes; what a call under way was told,
// such as its answer and its faults, stays. An error means that nothing has
// changed: the configuration is not valid, or f altered what is fixed once an
// engine has started (quirks, model, seed, model length, block tokens, truths).
//
// A KV cache that shrinks below what sequences hold makes them give up their
// room, the youngest first, as when it is full.
func (e *Engine) Change(f func(*Config)) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	was := *e.config()
	cfg := was
	cfg.FaultScript = slices.Clone(was.FaultScript)
	for _, d := range cfg.durations() {
		if *d == 0 {
			*d = None
		}
	}
	f(&cfg)
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("change simulated engine: %w", err)
	}
	cfg = cfg.withDefaults()
	if cfg.Quirks != was.Quirks || cfg.Model != was.Model || cfg.Seed != was.Seed || cfg.ModelLen != was.ModelLen ||
		cfg.BlockTokens != was.BlockTokens || cfg.Truths != was.Truths {
		return errors.New("change simulated engine: quirks, model, seed, model length, block tokens and truths are fixed: start another engine")
	}
	e.kv.resize(cfg.KVBlocks)
	e.kv.remember(!cfg.NoPrefixCache)
	e.manner.Store(mannerOf(cfg))
	e.nudge()
	return nil
}

// durations are all of them.
func (c *Config) durations() []*time.Duration {
	return []*time.Duration{&c.FrontendTime, &c.PrefillBase, &c.PrefillPerToken, &c.DecodeBase, &c.DecodePerSequence, &c.DecodePerKVToken, &c.PingInterval}
}
