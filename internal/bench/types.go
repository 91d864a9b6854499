package bench

import (
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/workload"
)

// Sample is one call as the client saw it, and one line of the raw data. Times
// are milliseconds in JSON; what is unknown is absent.
type Sample struct {
	Run    string `json:"run"`              // the X-Weir-Run header it went out with
	Load   string `json:"load,omitempty"`   // the load step, such as "concurrency 8"
	Repeat int    `json:"repeat"`           // from 1
	Index  int    `json:"index"`            // within the repeat, by order of sending
	Warmup bool   `json:"warmup,omitempty"` // left out of all figures

	ID    string    `json:"id"` // the X-Request-Id header
	Start time.Time `json:"start"`
	// At is Start since the beginning of the repeat, exact where Start may jump.
	At call.Duration `json:"at_ms"`
	// Late is how long after its due time an open loop sent the call.
	Late call.Duration `json:"late_ms,omitzero"`
	// InFlight is how many calls were in flight when it was sent, itself included.
	InFlight int `json:"in_flight"`

	Outcome call.Outcome  `json:"outcome"`
	Failed  endpoint.Kind `json:"failed,omitempty"`
	Status  int           `json:"status,omitempty"`

	InputAsked  int              `json:"input_asked,omitempty"`
	OutputAsked int              `json:"output_asked,omitempty"`
	Input       call.Count       `json:"input_tokens,omitzero"`
	Cached      call.Count       `json:"cached_tokens,omitzero"`
	Output      call.Count       `json:"output_tokens,omitzero"`
	Reasoning   call.Count       `json:"reasoning_tokens,omitzero"`
	UsageSource call.UsageSource `json:"usage_source,omitempty"`

	// The figures by the definitions of the profile; see Profile.
	TTFT call.Duration `json:"ttft_ms,omitzero"`
	TPOT call.Duration `json:"tpot_ms,omitzero"`
	ITL  call.Duration `json:"itl_ms,omitzero"` // the call's mean, where the profile has one
	E2E  call.Duration `json:"e2e_ms,omitzero"`
	// Gaps are those of the profile, in milliseconds, and GapsOf says between what.
	Gaps   []float32 `json:"gaps_ms,omitempty"`
	GapsOf GapsOf    `json:"gaps_of,omitempty"`
	// Tail is E2E − (TTFT + (n − 1)·TPOT) by our definitions: what the identity
	// leaves over, which is what came after the last token.
	Tail call.Duration `json:"tail_ms,omitzero"`
	// Connected is how long name, connection and TLS took, of a new connection.
	Connected call.Duration `json:"connected_ms,omitzero"`

	// ours are the figures by our definitions, where those above follow another
	// profile.
	ours *Values
}

// own returns the figures by our definitions.
func (s *Sample) own() Values {
	if s.ours != nil {
		return *s.ours
	}
	return Values{TTFT: s.TTFT, TPOT: s.TPOT, E2E: s.E2E}
}

// GapsOf says what gaps lie between.
type GapsOf string

// What gaps may lie between.
const (
	// Tokens: gaps between events divided by the tokens they brought, once per
	// token (ITL).
	Tokens GapsOf = "token"
	// Chunks: gaps between events (ICL).
	Chunks GapsOf = "chunk"
)

// Quantiles describes one figure over many calls or gaps; Unit says of what.
// Values of durations are milliseconds.
type Quantiles struct {
	N    int     `json:"n"`
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P95  float64 `json:"p95"`
	P99  float64 `json:"p99"`
	Max  float64 `json:"max"`
}

// Objectives bound the figures of a call that is good; 0 is no objective.
type Objectives struct {
	TTFT time.Duration `json:"ttft,omitempty"`
	TPOT time.Duration `json:"tpot,omitempty"`
	E2E  time.Duration `json:"e2e,omitempty"`
}

// Figures are what one repeat, or one load over its repeats, came to. Of
// several repeats each figure is the median of theirs. A nil pointer is a figure that
// is not known, and stands as absent in JSON.
type Figures struct {
	Calls    int                   `json:"calls"`
	Good     int                   `json:"succeeded"`
	Failures map[endpoint.Kind]int `json:"failures,omitempty"`
	Seconds  float64               `json:"seconds"` // from the first send to the last end, warm-up left out

	CallsPerSecond float64 `json:"calls_per_second"` // succeeded
	// Offered is how many calls a second fell due in an open loop while it sent, as
	// drawn: of Poisson arrivals chance makes that more or less than the rate asked for.
	Offered *float64 `json:"offered_per_second,omitempty"`
	Sent    float64  `json:"sent_per_second"` // what it sent
	// Achieved is what an open loop got answers for while it sent: Offered times the
	// share answered of what was due, both counted in the same time, from when the first
	// calls could have ended to the last due one. Unlike CallsPerSecond it does not
	// hold the time in which calls only end. It is absent when calls take longer
	// than half of the time of sending.
	Achieved        *float64 `json:"achieved_per_second,omitempty"`
	InputPerSecond  *float64 `json:"input_tokens_per_second,omitempty"`
	OutputPerSecond *float64 `json:"output_tokens_per_second,omitempty"`
	TotalPerSecond  *float64 `json:"total_tokens_per_second,omitempty"`
	TotalPerMinute  *float64 `json:"total_tokens_per_minute,omitempty"` // TPM
	// WithoutUsage is how many succeeded calls reported no usage; where it is
	// not 0 the token figures are absent.
	WithoutUsage int     `json:"without_usage,omitempty"`
	Concurrency  float64 `json:"concurrency"` // mean by time
	Peak         int     `json:"peak_concurrency"`
	// Goodput is the share of calls that kept all objectives, among those of which
	// that can be said; a failed call kept none.
	Goodput *float64 `json:"goodput,omitempty"`
	// Undecided is how many calls are left out of Goodput because a figure that has
	// an objective is not known of them, and no other objective was missed.
	Undecided int `json:"goodput_undecided,omitempty"`
	// Held is how many calls of an open loop waited for the bound on calls in flight.
	Held int `json:"held_back,omitempty"`

	TTFT *Quantiles `json:"ttft_ms,omitempty"`
	TPOT *Quantiles `json:"tpot_ms,omitempty"`
	ITL  *Quantiles `json:"itl_ms,omitempty"` // of the calls' means
	// Gaps are those of all calls together. Where some calls have gaps between
	// tokens and others between chunks, there is no such figure.
	Gaps   *Quantiles `json:"gaps_ms,omitempty"`
	GapsOf GapsOf     `json:"gaps_of,omitempty"`
	E2E    *Quantiles `json:"e2e_ms,omitempty"`
	Late   *Quantiles `json:"late_ms,omitempty"`
	Input  *Quantiles `json:"input_tokens,omitempty"`
	Output *Quantiles `json:"output_tokens,omitempty"`

	Identity Identity `json:"identity"`
	Client   Client   `json:"client"`
}

// Identity says how well E2E ≈ TTFT + (n − 1)·TPOT held, call by call. What is
// left over is the time after the last token.
type Identity struct {
	Checked  int       `json:"checked"`
	Within   int       `json:"within"`             // within 1 % or 5 ms, whichever is more
	Outliers []Outlier `json:"outliers,omitempty"` // the worst, at most 10
}

// Outlier is a call for which the identity does not hold.
type Outlier struct {
	ID   string  `json:"id"`
	E2E  float64 `json:"e2e_ms"`
	Sum  float64 `json:"sum_ms"`
	Left float64 `json:"left_ms"`
}

// Client says whether the load test itself stood in the way.
type Client struct {
	// Delay is how late this process came to a timer, sampled all along.
	Delay *Quantiles `json:"scheduling_delay_ms,omitempty"`
	// Distorted is whether its p99 was more than 2 ms, so that times are wrong by
	// about as much, or that of Late more than both 2 ms and 5 % of TTFT p50 (of E2E p50
	// where that is not known). What it does to a figure depends on how large that is.
	Distorted bool   `json:"distorted,omitempty"`
	Reason    string `json:"reason,omitempty"`
	// Uneven says that the p99 of Late was more than 2 ms, so that the load was not
	// quite as planned.
	Uneven string `json:"uneven,omitempty"`
}

// Spread is how much a figure varied over repeats: the least and the greatest.
type Spread struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Run is one load over its repeats.
type Run struct {
	Load     string            `json:"load"`
	Arrivals workload.Arrivals `json:"arrivals"`
	Input    workload.Length   `json:"input"`
	Output   workload.Length   `json:"output"`
	Sharing  workload.Sharing  `json:"sharing,omitzero"`
	// Repeats are in the order in which they were measured. Median holds of each
	// figure the median of those repeats that know it: of an even number the
	// mean of the two in the middle, as numpy has it, a count rounded down. Quantiles
	// are the medians of each of their values. Identity is of all their calls
	// together, and Client is distorted when one of them was, by the Reason of the worst.
	Repeats []Figures         `json:"repeats"`
	Median  Figures           `json:"median"`
	Spread  map[string]Spread `json:"spread,omitempty"` // by the names of Headlines
	// Failures are those of all repeats together.
	Failures map[endpoint.Kind]int `json:"failures,omitempty"`
	// Warmup is how many calls were sent before each repeat, Discard the share of
	// its first calls that is left out as well.
	Warmup  int     `json:"warmup,omitempty"`
	Discard float64 `json:"discard,omitempty"`
	// Interrupted is whether it ended early, so that what is here is a part.
	Interrupted bool `json:"interrupted,omitempty"`
	// Raw is what a later comparison needs of each call.
	Raw []Raw `json:"raw,omitempty"`
	// Notes say what the figures do not tell by themselves.
	Notes    []string  `json:"notes,omitempty"`
	Thermal  *Thermal  `json:"thermal,omitempty"`
	Compared *Compared `json:"compared,omitempty"`
}

// Thermal sets the first and the last window of a long run side by side.
type Thermal struct {
	Window  time.Duration `json:"window"`
	First   Figures       `json:"first"`
	Last    Figures       `json:"last"`
	Slower  bool          `json:"slower"` // throughput fell or TPOT p50 rose by more than 3 %
	Verdict string        `json:"verdict"`
}

// Compared sets the client's figures of each call beside the gateway's record
// of it: client minus gateway.
type Compared struct {
	Calls        int        `json:"calls"`
	Found        int        `json:"found"`
	TTFT         *Quantiles `json:"ttft_difference_ms,omitempty"` // of absolute differences
	TPOT         *Quantiles `json:"tpot_difference_ms,omitempty"`
	E2E          *Quantiles `json:"e2e_difference_ms,omitempty"`
	TokensEqual  int        `json:"tokens_equal"`
	TokensDiffer int        `json:"tokens_differ"`
	Note         string     `json:"note,omitempty"`
	// Differences are the calls whose tokens differ or that are far apart, at most 10.
	Differences []Difference `json:"differences,omitempty"`
}

// Difference is one call, the client's figure and the gateway's.
type Difference struct {
	ID      string `json:"id"`
	Figure  string `json:"figure"`
	Client  string `json:"client"`
	Gateway string `json:"gateway"`
}

// Environment says what was measured, as far as it could be read. What HTTP
// cannot tell is merged from a file, under Given.
type Environment struct {
	Time    time.Time           `json:"time"`
	Channel string              `json:"channel"` // base URL without secrets
	API     endpoint.API        `json:"api"`
	Model   string              `json:"model"`
	Profile Profile             `json:"profile"`
	Weir    string              `json:"weir"`              // version of this program
	Gateway string              `json:"gateway,omitempty"` // version of the gateway in between
	Engine  map[string]string   `json:"engine,omitempty"`  // name, version, max model length, max_num_seqs …
	GPU     []map[string]string `json:"gpu,omitempty"`
	Given   map[string]any      `json:"given,omitempty"`
}

// Result is all that a load test found out, and its JSON form.
type Result struct {
	Version     int         `json:"version"` // of this form: 1
	Environment Environment `json:"environment"`
	Objectives  Objectives  `json:"objectives,omitzero"`
	Streamed    bool        `json:"streamed"`
	Seed        uint64      `json:"seed"`
	Interrupted bool        `json:"interrupted,omitempty"` // what follows was measured until then
	Runs        []Run       `json:"runs"`
	Ladder      *Ladder     `json:"ladder,omitempty"`
	Staircase   *Staircase  `json:"staircase,omitempty"`
	Notes       []string    `json:"notes,omitempty"`
}
