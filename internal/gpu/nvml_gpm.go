//go:build cgo && linux

package gpu

import (
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// gpm is the state of GPM, the profiling counters of Hopper and newer: each
// figure is a mean between two samples of counters.
type gpm struct {
	ready        bool
	older, newer nvml.GpmSample
	at           time.Time // of newer; zero: none yet
}

// gpmEvery is the least time between two samples: the counters are refreshed
// every 100 ms. gpmStale is the most, after which a mean says nothing of now.
const gpmEvery, gpmStale = 200 * time.Millisecond, 10 * time.Second

// openGPM prepares GPM where library and GPU support it.
func (d *device) openGPM() {
	support, ok := ask(d, askGPM, func() (nvml.GpmSupport, nvml.Return) { return d.handle.GpmQueryDeviceSupport() })
	if !ok || support.IsSupportedDevice == 0 {
		return
	}
	older, ok := ask(d, askGPM, func() (nvml.GpmSample, nvml.Return) { return driver.nvml.GpmSampleAlloc() })
	if !ok {
		return
	}
	newer, ok := ask(d, askGPM, func() (nvml.GpmSample, nvml.Return) { return driver.nvml.GpmSampleAlloc() })
	if !ok {
		older.Free()
		return
	}
	d.gpm = gpm{ready: true, older: older, newer: newer}
}

func (d *device) closeGPM() {
	if d.gpm.ready {
		d.gpm.older.Free()
		d.gpm.newer.Free()
	}
	d.gpm = gpm{}
}

// readGPM fills in the means since the sample before.
func (d *device) readGPM(r *Reading) {
	g := &d.gpm
	if !g.ready || d.lost != nvml.SUCCESS || !g.at.IsZero() && r.Time.Sub(g.at) < gpmEvery {
		return
	}
	g.older, g.newer = g.newer, g.older
	before := g.at
	g.at = time.Time{}
	if ret := d.handle.GpmSampleGet(g.newer); ret != nvml.SUCCESS {
		if fatal(ret) {
			d.lost = ret
		}
		return
	}
	g.at = r.Time
	if before.IsZero() || g.at.Sub(before) > gpmStale {
		return
	}
	const mib = 1 << 20
	wanted := []struct {
		id          nvml.GpmMetricId
		into        *Number
		factor, top float64
	}{
		{nvml.GPM_METRIC_DRAM_BW_UTIL, &r.MemoryBandwidth, 0.01, 1},
		{nvml.GPM_METRIC_PCIE_TX_PER_SEC, &r.PCIeSent, mib, mostRate},
		{nvml.GPM_METRIC_PCIE_RX_PER_SEC, &r.PCIeReceived, mib, mostRate},
		{nvml.GPM_METRIC_NVLINK_TOTAL_TX_PER_SEC, &r.NVLinkSent, mib, mostRate},
		{nvml.GPM_METRIC_NVLINK_TOTAL_RX_PER_SEC, &r.NVLinkReceived, mib, mostRate},
	}
	get := &nvml.GpmMetricsGetType{NumMetrics: uint32(len(wanted)), Sample1: g.older, Sample2: g.newer}
	for i, w := range wanted {
		get.Metrics[i].MetricId = uint32(w.id)
	}
	if ret := driver.nvml.GpmMetricsGet(get); ret != nvml.SUCCESS {
		if fatal(ret) {
			d.lost = ret
		}
		return
	}
	for i, w := range wanted {
		if m := &get.Metrics[i]; nvml.Return(m.NvmlReturn) == nvml.SUCCESS {
			*w.into = figureWithin(m.Value*w.factor, 0, w.top)
		}
	}
}
