package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/workload"
)

func TestLoadDefaults(t *testing.T) {
	for _, c := range []struct {
		in   Load
		want Load
	}{
		{Load{Calls: 10}, Load{Label: "concurrency 1", Arrivals: atOnce(1), Calls: 10, Repeats: 3, Pause: DefaultPause, Warmup: 5}},
		{Load{Arrivals: atOnce(64), Calls: 10, Pause: None, Warmup: None, Discard: None}, Load{Label: "concurrency 64", Arrivals: atOnce(64), Calls: 10, Repeats: 3}},
		{Load{Arrivals: atRate(workload.Poisson, 2), Thermal: true}, Load{Label: "poisson 2/s", Arrivals: atRate(workload.Poisson, 2),
			Duration: ThermalDuration, Window: ThermalWindow, Thermal: true, Repeats: 1, Pause: DefaultPause, Warmup: 5}},
	} {
		c.in.Input, c.want.Input = fixed(20), fixed(20)
		got, err := c.in.filled()
		if err != nil || got.Label != c.want.Label || got.Arrivals != c.want.Arrivals || got.Repeats != c.want.Repeats || got.Pause != c.want.Pause ||
			got.Warmup != c.want.Warmup || got.Duration != c.want.Duration || got.Window != c.want.Window || got.Discard != c.want.Discard {
			t.Errorf("%v: %+v, want %+v", err, got, c.want)
		}
	}
}

func TestLoadRefuses(t *testing.T) {
	good := Load{Arrivals: atOnce(1), Input: fixed(20), Calls: 1}
	for hint, change := range map[string]func(*Load){
		"no end":       func(l *Load) { l.Calls = 0 },
		"input length": func(l *Load) { l.Input = workload.Length{} },
		"rate":         func(l *Load) { l.Arrivals = workload.Arrivals{Shape: workload.Poisson} },
		"negative":     func(l *Load) { l.Calls = -1 },
		"share":        func(l *Load) { l.Discard = 1 },
		"repeats":      func(l *Load) { l.Repeats = -1 },
		"two windows":  func(l *Load) { l.Thermal, l.Duration = true, 9*time.Minute },
		"above 0":      func(l *Load) { l.Thermal, l.Window = true, -1 },
		"out of a numbe": func(l *Load) {
			l.Calls, l.Discard, l.Arrivals.Shape, l.Trace = 0, 0.1, workload.Replay, []workload.Row{{Input: 1}}
		},
	} {
		l := good
		change(&l)
		if _, err := l.filled(); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v does not say %q", err, hint)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for hint, change := range map[string]func(*Config){
		"caller":  func(c *Config) { c.Caller = nil },
		"name":    func(c *Config) { c.Run = "" },
		"1 to 64": func(c *Config) { c.Run = strings.Repeat("x", 65) },
		"header":  func(c *Config) { c.Run = "a b" },
		"profile": func(c *Config) { c.Profile = "x" },
		"model":   func(c *Config) { c.Ask.Model = "" },
	} {
		c := config(&fake{})
		change(&c)
		if _, err := New(c); err == nil || !strings.Contains(err.Error(), hint) {
			t.Errorf("%v does not say %q", err, hint)
		}
	}
}

func TestSlug(t *testing.T) {
	for in, want := range map[string]string{
		"concurrency 8": "concurrency-8", "poisson 2.5/s": "poisson-2.5-s", "": "", "世界": "", "--A--b!": "a-b", strings.Repeat("ab ", 30): "ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-ab-a",
	} {
		if got := slug(in); got != want {
			t.Errorf("%q is %q, want %q", in, got, want)
		}
	}
}
