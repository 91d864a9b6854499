package gpu

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
)

// The metrics of dcgm-exporter that are read, by what they fill. Its file
// etc/dcp-metrics-included.csv lists those that are on by default; the others are
// used where somebody switched them on. Of two that say the same the first wins.
// https://docs.nvidia.com/datacenter/dcgm/latest/dcgm-api/dcgm-api-field-ids.html
var figures = []struct {
	names     []string
	field     func(*Reading) *Number
	factor    float64 // to the unit of Reading
	low, high float64 // of Reading; what lies outside is unknown
}{
	{[]string{"DCGM_FI_PROF_GR_ENGINE_ACTIVE"}, utilization, 1, 0, 1},
	{[]string{"DCGM_FI_DEV_GPU_UTIL"}, utilization, 0.01, 0, 1},
	{[]string{"DCGM_FI_PROF_DRAM_ACTIVE"}, func(r *Reading) *Number { return &r.MemoryBandwidth }, 1, 0, 1},
	{[]string{"DCGM_FI_DEV_MEM_COPY_UTIL"}, func(r *Reading) *Number { return &r.MemoryBusy }, 0.01, 0, 1},
	{[]string{"DCGM_FI_DEV_SM_CLOCK"}, func(r *Reading) *Number { return &r.Clock }, 1, 0, mostMHz},
	{[]string{"DCGM_FI_DEV_MAX_SM_CLOCK"}, func(r *Reading) *Number { return &r.MaxClock }, 1, 1, mostMHz},
	{[]string{"DCGM_FI_DEV_POWER_USAGE"}, func(r *Reading) *Number { return &r.Power }, 1, 0, mostWatts},
	{[]string{"DCGM_FI_DEV_ENFORCED_POWER_LIMIT", "DCGM_FI_DEV_POWER_MGMT_LIMIT"}, func(r *Reading) *Number { return &r.PowerLimit }, 1, 1, mostWatts},
	{[]string{"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"}, func(r *Reading) *Number { return &r.Energy }, 0.001, 0, mostJoules},
	{[]string{"DCGM_FI_DEV_FB_USED"}, func(r *Reading) *Number { return &r.MemoryUsed }, 1 << 20, 0, mostBytes},
	{[]string{"DCGM_FI_DEV_FB_TOTAL"}, func(r *Reading) *Number { return &r.MemoryTotal }, 1 << 20, 1, mostBytes},
	{[]string{"DCGM_FI_DEV_GPU_TEMP"}, func(r *Reading) *Number { return &r.Temperature }, 1, -50, mostDegrees},
	{[]string{"DCGM_FI_PROF_PCIE_TX_BYTES"}, func(r *Reading) *Number { return &r.PCIeSent }, 1, 0, mostRate},
	{[]string{"DCGM_FI_PROF_PCIE_RX_BYTES"}, func(r *Reading) *Number { return &r.PCIeReceived }, 1, 0, mostRate},
	{[]string{"DCGM_FI_PROF_NVLINK_TX_BYTES"}, func(r *Reading) *Number { return &r.NVLinkSent }, 1, 0, mostRate},
	{[]string{"DCGM_FI_PROF_NVLINK_RX_BYTES"}, func(r *Reading) *Number { return &r.NVLinkReceived }, 1, 0, mostRate},
	{[]string{"DCGM_FI_DEV_ECC_DBE_VOL_TOTAL"}, func(r *Reading) *Number { return &r.Uncorrected }, 1, 0, mostCount},
	{[]string{"DCGM_FI_DEV_XID_ERRORS"}, func(r *Reading) *Number { return &r.XID }, 1, 0, 100_000},
}

func utilization(r *Reading) *Number { return &r.Utilization }

// The mask of reasons under its name since DCGM 3.3, and before.
var reasonMetrics = []string{"DCGM_FI_DEV_CLOCKS_EVENT_REASONS", "DCGM_FI_DEV_CLOCK_THROTTLE_REASONS"}

// eventMetric counts, by the label clock_event, how often each reason was seen in
// the exporter's last minutes.
const eventMetric = "DCGM_EXP_CLOCK_EVENTS_COUNT"

var events = map[string]Reasons{
	"gpu_idle": Idle, "clocks_setting": AppClocks, "power_cap": PowerCap, "sw_power_cap": PowerCap, "hw_slowdown": HWSlowdown,
	"sync_boost": SyncBoost, "sw_thermal": SWThermal, "hw_thermal": HWThermal, "hw_power_brake": PowerBrake, "display_clocks": DisplayClock,
}

// read makes readings of a scrape, in the order of host and index.
func (d *dcgm) read(families map[string]*dto.MetricFamily, now time.Time) []Reading {
	found := map[string]*Reading{}
	for _, f := range figures {
		for _, name := range f.names {
			for key, x := range values(families[name], found, now) {
				if field := f.field(found[key]); !field.IsKnown() {
					*field = figureWithin(x*f.factor, f.low, f.high)
				}
			}
		}
	}
	for _, name := range reasonMetrics {
		for key, x := range values(families[name], found, now) {
			if r := found[key]; !r.ReasonsKnown && x >= 0 && x < 1<<32 {
				r.Reasons, r.ReasonsKnown = Reasons(x), true
			}
		}
	}
	d.readEvents(families[eventMetric], found, now)
	reserved := values(families["DCGM_FI_DEV_FB_RESERVED"], found, now)
	for key, x := range values(families["DCGM_FI_DEV_FB_FREE"], found, now) {
		r := found[key]
		if used, known := r.MemoryUsed.Get(); known && !r.MemoryTotal.IsKnown() {
			r.MemoryTotal = figureWithin(used+(x+reserved[key])*(1<<20), 1, mostBytes)
		}
	}
	readings := make([]Reading, 0, len(found))
	for _, r := range found {
		readings = append(readings, *r)
	}
	slices.SortFunc(readings, func(a, b Reading) int {
		return cmp.Or(strings.Compare(a.Host, b.Host), cmp.Compare(a.Index, b.Index), strings.Compare(a.UUID, b.UUID))
	})
	return readings
}

// values returns the value of a metric of each GPU, and adds GPUs that are new to
// found. A GPU may have several samples, one for each of its slices or of the
// containers that share it: where these differ, none is the GPU's.
func values(family *dto.MetricFamily, found map[string]*Reading, now time.Time) map[string]float64 {
	list := map[string]float64{}
	var torn []string
	for _, m := range family.GetMetric() {
		x, ok := value(m)
		if !ok {
			continue
		}
		key, known := identify(m, found, now)
		if !known {
			continue
		}
		if before, twice := list[key]; twice && before != x {
			torn = append(torn, key)
		}
		list[key] = x
	}
	for _, key := range torn {
		delete(list, key)
	}
	return list
}

// identify tells which GPU a sample is of.
func identify(m *dto.Metric, found map[string]*Reading, now time.Time) (key string, ok bool) {
	r := Reading{Time: now, Index: -1}
	for _, l := range m.Label {
		v := l.GetValue()
		switch l.GetName() {
		case "gpu":
			if i, err := strconv.Atoi(v); err == nil && i >= 0 {
				r.Index = i
			}
		case "UUID", "uuid":
			r.UUID = cut(v)
		case "modelName":
			r.Name = cut(v)
		case "Hostname", "hostname":
			r.Host = cut(v)
		}
	}
	if r.Index < 0 && r.UUID == "" {
		return "", false // of a switch, a link or a processor
	}
	key = r.key()
	if found[key] == nil {
		found[key] = &r
	}
	return key, true
}

// cut bounds what an exporter may make us keep.
func cut(s string) string { return strings.ToValidUTF8(s[:min(len(s), 128)], "") }

// value is that of a counter, a gauge or a metric whose type is not said.
func value(m *dto.Metric) (float64, bool) {
	switch {
	case m.Gauge != nil:
		return m.Gauge.GetValue(), true
	case m.Counter != nil:
		return m.Counter.GetValue(), true
	case m.Untyped != nil:
		return m.Untyped.GetValue(), true
	}
	return 0, false
}

// event is what is known of one reason of one GPU: how often the exporter saw it
// in its last minutes, and whether it is taken to be present.
type event struct {
	count   float64
	present bool
}

// readEvents takes a reason for present from when its count in the exporter's
// sliding window has grown until it shrinks. So it misses one that was steadily
// there before the first scrape, but never invents one. An unchanged count mostly
// means that the exporter did not collect since.
func (d *dcgm) readEvents(family *dto.MetricFamily, found map[string]*Reading, now time.Time) {
	counts := map[string]map[string]event{}
	for _, m := range family.GetMetric() {
		x, ok := value(m)
		name := label(m, "clock_event")
		key, known := identify(m, found, now)
		if events[name] == 0 || !ok || !known {
			continue
		}
		if counts[key] == nil {
			counts[key] = map[string]event{}
		}
		counts[key][name] = event{count: max(x, counts[key][name].count)}
	}
	for key, list := range counts {
		r, before := found[key], d.events[key]
		var reasons Reasons
		for name, e := range list {
			was, seen := before[name]
			e.present = before != nil && (e.count > was.count || seen && e.count == was.count && was.present)
			list[name] = e
			if e.present {
				reasons |= events[name]
			}
		}
		if before != nil && !r.ReasonsKnown {
			r.Reasons, r.ReasonsKnown = reasons, true
		}
	}
	d.events = counts
}

func label(m *dto.Metric, name string) string {
	for _, l := range m.Label {
		if l.GetName() == name {
			return l.GetValue()
		}
	}
	return ""
}
