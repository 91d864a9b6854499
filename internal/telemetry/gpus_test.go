package telemetry

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/gpu"
)

// gpus is a state in which everything of one GPU is known.
func gpus() []GPUState {
	f := call.Figure
	return []GPUState{{GPU: "GPU-1", Host: "node-a", Utilization: f(0.9), MemoryBandwidth: f(0.4), Clock: f(1.2e9), MaxClock: f(1.98e9),
		Reasons: []string{"power_cap", "sw_thermal"}, ReasonsKnown: true, Power: f(650), PowerLimit: f(700), Energy: f(123_456.5), Temperature: f(71),
		MemoryUsed: f(7e10), MemorySize: f(8e10), XID: f(0), Uncorrected: f(2)}}
}

func TestGPUs(t *testing.T) {
	m := New()
	m.GPUs(gpus)
	all := gather(t, m)
	for name, want := range map[string]float64{
		"weir_gpu_utilization_ratio": 0.9, "weir_gpu_memory_bandwidth_ratio": 0.4, "weir_gpu_sm_clock_hertz": 1.2e9, "weir_gpu_sm_clock_max_hertz": 1.98e9,
		"weir_gpu_power_watts": 650, "weir_gpu_power_limit_watts": 700, "weir_gpu_energy_joules_total": 123_456.5, "weir_gpu_temperature_celsius": 71,
		"weir_gpu_memory_used_bytes": 7e10, "weir_gpu_memory_size_bytes": 8e10, "weir_gpu_xid": 0, "weir_gpu_ecc_uncorrected_errors_total": 2,
	} {
		got := find(t, all, name, "gpu", "GPU-1", "host", "node-a")
		if got == nil || got.GetGauge().GetValue()+got.GetCounter().GetValue() != want {
			t.Errorf("%s is %v, want %v", name, got, want)
		}
	}
	for _, reason := range throttleReasons {
		want := 0.0
		if reason == "power_cap" || reason == "sw_thermal" {
			want = 1
		}
		if got := find(t, all, "weir_gpu_throttled", "reason", reason); got == nil || got.GetGauge().GetValue() != want {
			t.Errorf("throttled by %s: %v, want %v", reason, got, want)
		}
	}
	m.GPUs(nil)
	for name := range gather(t, m) {
		if strings.HasPrefix(name, "weir_gpu_") {
			t.Errorf("%s after its source was taken away", name)
		}
	}
}

// TestUnknownOfGPUs: no reason is 0 only when reasons are known.
func TestUnknownOfGPUs(t *testing.T) {
	m := New()
	m.GPUs(func() []GPUState {
		return []GPUState{{GPU: "0", Reasons: []string{"power_cap"}}, {GPU: "1", ReasonsKnown: true}, {GPU: "2", ReasonsKnown: true, Reasons: []string{"of the future"}}}
	})
	all := gather(t, m)
	if got := find(t, all, "weir_gpu_throttled", "gpu", "0", "reason", "power_cap"); got != nil {
		t.Errorf("reasons of a GPU that does not tell: %v", got)
	}
	if got := find(t, all, "weir_gpu_throttled", "gpu", "1", "reason", "other"); got == nil || got.GetGauge().GetValue() != 0 {
		t.Errorf("a GPU without reasons: %v", got)
	}
	if got := find(t, all, "weir_gpu_throttled", "gpu", "2", "reason", "other"); got.GetGauge().GetValue() != 1 {
		t.Errorf("a GPU with a reason nobody knows: %v", got)
	}
	for name := range all {
		if strings.HasPrefix(name, "weir_gpu_") && name != "weir_gpu_throttled" {
			t.Errorf("%s is shown, and unknown", name)
		}
	}
}

// TestGPUsTakeAnyState: no state costs the scrape, and labels are bounded.
func TestGPUsTakeAnyState(t *testing.T) {
	m := New()
	m.GPUs(func() []GPUState {
		all := []GPUState{{GPU: "\xff", Power: call.Figure(1), ReasonsKnown: true}, {Power: call.Figure(1)}, {Power: call.Figure(2)}}
		for i := range 1000 {
			all = append(all, GPUState{GPU: fmt.Sprint(i), Host: fmt.Sprint(i), Power: call.Figure(1), ReasonsKnown: true, Reasons: []string{fmt.Sprint(i)}})
		}
		return all
	})
	all := gather(t, m)
	if got := len(all["weir_gpu_power_watts"].GetMetric()); got == 0 || got > GPUCap {
		t.Errorf("%d GPUs, want some and at most %d", got, GPUCap)
	}
	if got := len(all["weir_gpu_throttled"].GetMetric()); got > GPUCap*len(throttleReasons) {
		t.Errorf("%d series of reasons", got)
	}
}

// TestThrottleReasons: every name that a sample can have is shown as itself.
func TestThrottleReasons(t *testing.T) {
	for i := range bits.UintSize {
		for _, name := range gpu.Reasons(1 << i).Names() {
			if !slices.Contains(throttleReasons[:], name) {
				t.Errorf("reason %s is not shown", name)
			}
		}
	}
}

// TestEnergyOfCalls: parts of a joule add up.
func TestEnergyOfCalls(t *testing.T) {
	m := New()
	rec := streamed()
	for range 1000 {
		rec.GPU.Joules = call.Figure(0.1)
		observe(m, rec)
	}
	for _, odd := range []call.Number{{}, call.Figure(-1), call.Figure(math.MaxFloat64)} {
		rec.GPU.Joules = odd
		observe(m, rec)
	}
	if got := find(t, gather(t, m), "weir_gpu_call_joules_total", "model", "llama", "class", "interactive").GetCounter().GetValue(); got != 100 {
		t.Errorf("a thousand calls of 0.1 J each took %v J, want 100", got)
	}
	m = New()
	rec.GPU.Joules = call.Number{}
	observe(m, rec)
	if f := gather(t, m)["weir_gpu_call_joules_total"]; f != nil {
		t.Errorf("energy that is unknown: %v", f)
	}
}
