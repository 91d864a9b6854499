package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Signals are what was watched beside the calls of one window. The zero value is
// that nothing was: whatever is unknown here is taken from the records where they
// have it, and is unknown else.
type Signals struct {
	// MaxSeqs is how many sequences one engine runs at once (vLLM --max-num-seqs).
	// Of engines with different caps leave it unknown.
	MaxSeqs call.Count `json:"max_num_seqs,omitzero"`
	// Preemptions is how many sequences lost their place within the window: the
	// difference of the engines' counters, not their values.
	Preemptions call.Count `json:"preemptions,omitzero"`
	// CachedShare is what the prefix cache gave of all prompt tokens in the window,
	// 0–1, by the engines' counters. It stands in where records do not tell.
	CachedShare call.Number `json:"cached_share,omitzero"`
	// InFlight is the mean number of calls that were in flight here, from being
	// sent upstream to their last token.
	InFlight call.Number `json:"calls_in_flight,omitzero"`
	// Engine is the history of the engines' gauges, in any order. Where it is empty
	// the readings that the records bear stand in.
	Engine []EngineReading `json:"engine,omitempty"`
	// GPUs are the figures of each GPU over the window.
	GPUs []GPUFigures `json:"gpus,omitempty"`
}

// EngineReading is one reading of an engine's gauges.
type EngineReading struct {
	Time     time.Time   `json:"time"`
	Upstream string      `json:"upstream,omitempty"` // host:port as in the records; "" is any
	Running  call.Count  `json:"running,omitzero"`   // requests being worked on
	Waiting  call.Count  `json:"waiting,omitzero"`   // requests in the engine's queue
	KVUse    call.Number `json:"kv_use,omitzero"`    // share of the KV cache in use, 0–1
}

// GPUFigures are what one GPU did over a window. Each figure may be unknown.
type GPUFigures struct {
	Name            string      `json:"gpu"`                       // tells it from its siblings: an index or UUID
	Utilization     call.Number `json:"utilization,omitzero"`      // mean share of time in which a kernel was resident, 0–1
	MemoryBandwidth call.Number `json:"memory_bandwidth,omitzero"` // mean traffic of device memory, of the most, 0–1
	Clock           call.Number `json:"sm_clock_mhz,omitzero"`     // mean SM clock while at work, MHz
	Power           call.Number `json:"power_watts,omitzero"`      // mean while at work, W
	PowerLimit      call.Number `json:"power_limit_watts,omitzero"`
	Temperature     call.Number `json:"temperature_celsius,omitzero"` // highest
	// Reasons are those for which clocks were held down for a good part of the
	// window, benign ones left out; names as in call.GPUWindow.
	Reasons []string `json:"clock_reasons,omitempty"`
	// XID is the number of the last error that the driver reported within the
	// window; a known 0 is none.
	XID call.Count `json:"xid,omitzero"`
	// Uncorrected is how many memory errors came within the window that ECC could
	// not correct.
	Uncorrected call.Count `json:"ecc_uncorrected,omitzero"`
	// Since is when a reason, or else an error, was first seen in the window; zero
	// is unknown.
	Since time.Time `json:"since,omitzero"`
}
