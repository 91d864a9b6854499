package telemetry

import (
	"math"
	"slices"

	"github.com/weirgate/weir/internal/call"
)

// GPUState is one sample of one GPU. What is unknown is not shown.
type GPUState struct {
	GPU  string // UUID, its number where that is not known
	Host string // as an exporter names it; "" is this machine

	Utilization     call.Number // share of time in which a kernel was resident, 0–1
	MemoryBandwidth call.Number // traffic as a share of the most, 0–1
	Clock, MaxClock call.Number // of the multiprocessors, Hz

	// Reasons hold the clocks down, by their names as in weir_gpu_throttled;
	// ReasonsKnown tells "none" from "unknown".
	Reasons      []string
	ReasonsKnown bool

	Power, PowerLimit      call.Number // W
	Energy                 call.Number // J, since the driver was loaded
	Temperature            call.Number // °C
	MemoryUsed, MemorySize call.Number // bytes
	XID                    call.Number // number of the last error; 0 is none
	Uncorrected            call.Number // memory errors since the driver was loaded
}

// throttleReasons are the values of the label reason of weir_gpu_throttled; the
// last stands for all others.
var throttleReasons = [...]string{"power_cap", "hw_slowdown", "sync_boost", "sw_thermal", "hw_thermal", "power_brake",
	"display_clock", "board_limit", "reliability", "other"}

// GPUs sets where figures of GPUs come from, as Live does for calls. The source
// leaves out GPUs whose last sample is no longer true. The first GPUCap are shown.
func (m *Metrics) GPUs(state func() []GPUState) {
	if m != nil {
		m.gpus.set(state)
	}
}

func (s sending) gpus(all []GPUState) {
	shown := newShown[[2]string](GPUCap)
	for i := range all {
		g := &all[i]
		if !shown.add([2]string{g.GPU, g.Host}) {
			continue
		}
		for _, f := range [...]struct {
			row int
			x   call.Number
		}{
			{gpuUtilization, g.Utilization}, {gpuMemoryBandwidth, g.MemoryBandwidth}, {gpuClock, g.Clock}, {gpuMaxClock, g.MaxClock},
			{gpuPower, g.Power}, {gpuPowerLimit, g.PowerLimit}, {gpuEnergy, g.Energy}, {gpuTemperature, g.Temperature},
			{gpuMemoryUsed, g.MemoryUsed}, {gpuMemorySize, g.MemorySize}, {gpuXID, g.XID}, {gpuUncorrected, g.Uncorrected},
		} {
			s.number(f.row, f.x, g.GPU, g.Host)
		}
		if !g.ReasonsKnown {
			continue
		}
		var on [len(throttleReasons)]bool
		for _, r := range g.Reasons {
			j := slices.Index(throttleReasons[:], r)
			if j < 0 {
				j = len(throttleReasons) - 1
			}
			on[j] = true
		}
		for j, reason := range throttleReasons {
			s.figure(gpuThrottled, flag(on[j]), g.GPU, g.Host, reason)
		}
	}
}

// jouleParts is what the counter of a call's energy counts of one joule: whole
// numbers add up exactly, and a microjoule is below what any GPU can tell.
const jouleParts = 1_000_000

// countEnergy counts a call's share of the GPUs' energy.
func (m *Metrics) countEnergy(s *modelSeries, rec *call.Record) {
	joules, known := rec.GPU.Joules.Get()
	if !known || joules < 0 || joules > maxFigure/jouleParts {
		return
	}
	c := s.joules.Load()
	if c == nil {
		c = m.families[callJoules].counter(&s.joules, s.model, s.class)
	}
	c.add(int64(math.Round(joules * jouleParts)))
}
