package caddymodule

import (
	"fmt"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"

	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/queue"
)

// KeysConfig says where callers' keys are kept.
type KeysConfig struct {
	// File is a file that `weir keys` edits. Changes are taken up while the
	// gateway runs.
	File string `json:"file"`
}

// LedgerConfig says where usage is recorded.
type LedgerConfig struct {
	// Path is the SQLite database, made when it is missing.
	Path string `json:"path"`
	// Spill is the directory of the log that keeps calls until the database has
	// them. Default: the path with .spill.
	Spill string `json:"spill,omitempty"`
	// MaxSpill bounds that log, in bytes. Default: 256 MiB.
	MaxSpill int64 `json:"max_spill,omitempty"`
	// Retention is how long single calls are kept; hourly sums stay for ever.
	// Default: 90 days. -1 keeps all.
	Retention caddy.Duration `json:"retention,omitempty"`
	// FailClosed refuses calls that cannot be recorded. Default: they pass, and
	// are counted.
	FailClosed bool `json:"fail_closed,omitempty"`
}

func (c *LedgerConfig) options() ledger.Options {
	o := ledger.Options{Path: c.Path, Spill: c.Spill, MaxSpill: c.MaxSpill, Retention: time.Duration(c.Retention), FailClosed: c.FailClosed}
	if c.Retention < 0 {
		o.Retention = ledger.KeepAll
	}
	return o
}

// RequireKey refuses whoever has no good key.
type RequireKey struct {
	// AllowPaths are paths beside the known inference paths that a caller with a
	// key may use. One that ends in * stands for all that begin like it.
	AllowPaths []string `json:"allow_paths,omitempty"`
}

// QueueConfig says how much fits upstream at once, and who may wait.
type QueueConfig struct {
	// Calls caps the calls upstream at once, Tokens the tokens that they
	// reserve; 0 is no cap.
	Calls  int64 `json:"calls,omitempty"`
	Tokens int64 `json:"tokens_in_flight,omitempty"`
	// MaxWaiting, MaxPerClass and MaxPerKey bound the calls that wait, MaxBytes
	// the request bodies that they hold, MaxWait how long each waits.
	// Defaults: 1000, three quarters of it, a quarter of it, 64 MiB, 30s.
	MaxWaiting  int            `json:"max_waiting,omitempty"`
	MaxPerClass int            `json:"max_per_class,omitempty"`
	MaxPerKey   int            `json:"max_per_key,omitempty"`
	MaxBytes    int64          `json:"max_bytes,omitempty"`
	MaxWait     caddy.Duration `json:"max_wait,omitempty"`
	// Classes gives classes their weights, and their objectives for the first token.
	Classes map[string]QueueClass `json:"classes,omitempty"`
	// Shed refuses calls whose objective is lost, or will be. Default: off.
	Shed bool `json:"shed,omitempty"`
}

// QueueClass is one class of calls.
type QueueClass struct {
	// Weight is the class's share against others that wait. Defaults:
	// interactive 16, completion 4, batch 1; other classes must state theirs.
	Weight int `json:"weight,omitempty"`
	// TTFT is when its first token is due after the call's arrival. It orders
	// calls, and sheds them where that is switched on.
	TTFT caddy.Duration `json:"ttft,omitempty"`
}

func (c *QueueConfig) config() queue.Config {
	if c == nil {
		return queue.Config{}
	}
	q := queue.Config{
		Calls: c.Calls, Tokens: c.Tokens, MaxWaiting: c.MaxWaiting, MaxPerClass: c.MaxPerClass, MaxPerKey: c.MaxPerKey,
		MaxBytes: c.MaxBytes, MaxWait: time.Duration(c.MaxWait), Shed: c.Shed,
	}
	for name, class := range c.Classes {
		if class.Weight == 0 && queue.BuiltIn[name] == 0 {
			continue // validate has told
		}
		if q.Classes == nil {
			q.Classes = make(map[string]queue.Class)
		}
		q.Classes[name] = queue.Class{Weight: class.Weight}
	}
	return q
}

// objectives returns the classes' objectives for the first token.
func (c *QueueConfig) objectives() map[string]time.Duration {
	if c == nil {
		return nil
	}
	all := make(map[string]time.Duration)
	for name, class := range c.Classes {
		if class.TTFT > 0 {
			all[name] = time.Duration(class.TTFT)
		}
	}
	return all
}

func (c *QueueConfig) validate() error {
	if c == nil {
		return nil
	}
	if c.Calls == 0 && c.Tokens == 0 {
		return fmt.Errorf("queue: without calls or tokens_in_flight it never holds anybody back; set one of them, such as calls 64")
	}
	var due bool
	for name, class := range c.Classes {
		if class.Weight == 0 && queue.BuiltIn[name] == 0 {
			return fmt.Errorf("queue: class %s needs a weight; interactive has 16, completion 4 and batch 1", name)
		}
		if class.TTFT < 0 {
			return fmt.Errorf("queue: class %s has a negative ttft", name)
		}
		due = due || class.TTFT > 0
	}
	if c.Shed && !due {
		return fmt.Errorf("queue: shed refuses calls that miss their class's ttft, and no class has one; add class interactive { ttft 2s }")
	}
	return c.config().Validate()
}

// validate tells of paths that can never match.
func (c *RequireKey) validate() error {
	if c == nil {
		return nil
	}
	for _, p := range c.AllowPaths {
		if !strings.HasPrefix(p, "/") || strings.Contains(strings.TrimSuffix(p, "*"), "*") {
			return fmt.Errorf("allow_paths has %q; a path begins with a slash, and a * stands only at its end, as in /v1/files/*", p)
		}
	}
	return nil
}
