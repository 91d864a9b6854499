package gpu

import (
	"context"
	"slices"
	"strconv"
	"time"
)

// Reading is one sample of one GPU. Utilisation, clocks, power, energy and
// reasons are of its Time; with NVML the others may be up to 10 s older, Processes
// up to 30 s, and with DCGM all of them as old as the exporter's last collection
// (30 s unless it was told otherwise).
type Reading struct {
	Time  time.Time `json:"time"`
	Index int       `json:"index"`          // the driver's number of the GPU; -1 is unknown
	UUID  string    `json:"uuid,omitempty"` // "" is unknown
	Name  string    `json:"name,omitempty"` // the model, as "NVIDIA H100 80GB HBM3"
	Host  string    `json:"host,omitempty"` // where an exporter says it is; "" with NVML

	// Utilization is the share of the last sample period (1/6 s to 1 s, by
	// product) in which a kernel was resident, 0–1: it does not say how much of
	// the GPU the kernel used.
	Utilization Number `json:"utilization,omitzero"`
	// MemoryBandwidth is the traffic of the device memory as a share of the most
	// that it can carry, 0–1 (NVML: GPM on Hopper and newer; DCGM:
	// DCGM_FI_PROF_DRAM_ACTIVE).
	MemoryBandwidth Number `json:"memory_bandwidth,omitzero"`
	// MemoryBusy is the share of the last sample period in which device memory
	// was read or written, however little, 0–1.
	MemoryBusy Number `json:"memory_busy,omitzero"`

	Clock      Number `json:"sm_clock_mhz,omitzero"`
	MaxClock   Number `json:"max_sm_clock_mhz,omitzero"`
	Power      Number `json:"power_watts,omitzero"`       // NVML: the mean of the last second on Ampere and newer, GA100 excepted
	PowerLimit Number `json:"power_limit_watts,omitzero"` // the one that is enforced
	Energy     Number `json:"energy_joules,omitzero"`     // a counter: since the driver was loaded

	// Reasons are those for which clocks were not at their highest;
	// ReasonsKnown tells "none" from "unknown".
	Reasons      Reasons `json:"clock_reasons,omitempty"`
	ReasonsKnown bool    `json:"clock_reasons_known"`

	MemoryUsed  Number `json:"memory_used_bytes,omitzero"` // NVML: what the driver sets aside included
	MemoryTotal Number `json:"memory_total_bytes,omitzero"`
	Temperature Number `json:"temperature_celsius,omitzero"`

	// PCIe and NVLink traffic in bytes a second as the GPU sees it: Sent leaves
	// it. NVML on GPUs older than Hopper watches PCIe for 20 ms and says KB, which
	// is taken for 1000 bytes; NVLink is absent there.
	PCIeSent       Number `json:"pcie_sent_bytes_per_second,omitzero"`
	PCIeReceived   Number `json:"pcie_received_bytes_per_second,omitzero"`
	NVLinkSent     Number `json:"nvlink_sent_bytes_per_second,omitzero"`
	NVLinkReceived Number `json:"nvlink_received_bytes_per_second,omitzero"`

	// Uncorrected is the memory errors since the driver was loaded that ECC
	// could not correct.
	Uncorrected Number `json:"ecc_uncorrected,omitzero"`
	// XID is the number of the last error that the driver reported; 0 is known
	// to be none. NVML counts from OpenNVML on, and XIDTime is when it came; an
	// exporter shows the last one, however old, and no time.
	XID     Number    `json:"xid,omitzero"`
	XIDTime time.Time `json:"xid_time,omitzero"`

	// Processes are those that compute on the GPU, at most 64; nil is unknown
	// or none. In a container their numbers may be the host's.
	Processes []Process `json:"processes,omitempty"`
}

// Process is a process that uses a GPU.
type Process struct {
	PID    int    `json:"pid"`
	Memory Number `json:"memory_bytes,omitzero"`
}

// Source reads GPUs. It is used by one goroutine at a time, Close excepted.
type Source interface {
	// Sample reads every GPU. now is the instant of the first reading. An error
	// beside readings says which GPUs are missing from them. Sample ends soon
	// after ctx does, unless the driver hangs.
	Sample(ctx context.Context, now time.Time) ([]Reading, error)
	// Close ends the source. It waits for a Sample that is under way.
	Close() error
	// Name says what is read and from where, without secrets.
	Name() string
}

// Ranges that no GPU leaves. What lies outside is a placeholder: DCGM writes
// 2^47 or about 2^63 for "no value".
const (
	mostWatts   = 20_000.0
	mostMHz     = 20_000.0
	mostBytes   = 1 << 46 // 64 TiB of memory
	mostRate    = 1e14    // bytes a second
	mostJoules  = 1e14    // 20 kW for 150 years
	mostCount   = 1 << 46
	mostDegrees = 250.0
)

// key tells one GPU from another.
func (r *Reading) key() string {
	if r.UUID != "" {
		return r.UUID
	}
	return r.Host + "/" + strconv.Itoa(r.Index)
}

// copyReadings returns readings that share nothing with rs.
func copyReadings(rs []Reading) []Reading {
	rs = slices.Clone(rs)
	for i := range rs {
		rs[i].Processes = slices.Clone(rs[i].Processes)
	}
	return rs
}
