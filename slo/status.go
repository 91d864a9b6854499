package slo

import "time"

// State is how an objective stands.
type State string

// The states, the worst last.
const (
	StateOK        State = "ok"
	StateWarning   State = "warning"   // half of the budget is used
	StateTicket    State = "ticket"    // it burns slowly, all the time
	StateFreeze    State = "freeze"    // four fifths are used: stop what is risky
	StateExhausted State = "exhausted" // all is used
	StatePage      State = "page"      // it burns so fast that somebody has to look now
)

// States lists them in this order.
var States = []State{StateOK, StateWarning, StateTicket, StateFreeze, StateExhausted, StatePage}

// Status is how all objectives stand at one moment.
type Status struct {
	At time.Time `json:"at"`
	// Since is when the oldest count began; figures of longer windows cover no more.
	Since  time.Time    `json:"since"`
	Period PeriodStatus `json:"period"`
	// Objectives has one entry for each class, objective and model that calls were
	// counted for, and with AllModels the sum over them, which comes first.
	Objectives []ObjectiveStatus `json:"objectives"`
	// Lost counts, since the process began, corrections that came too late, calls that were answered and count under
	// OtherModel because there are MaxSeries models already, and counts of a clock that was set
	// wrong by more than what is kept.
	Lost int64 `json:"lost,omitempty"`
}

// AllModels is the model of a sum over all models of a class.
const AllModels = ""

// PeriodStatus is the budget's period.
type PeriodStatus struct {
	Name string    `json:"name"` // "calendar_month Europe/Berlin", "rolling 30d"
	From time.Time `json:"from"`
	To   time.Time `json:"to"` // of a rolling one: now
}

// Counts of calls.
type Counts struct {
	Good    int64 `json:"good"`
	Bad     int64 `json:"bad"`
	Unknown int64 `json:"unknown"`
}

// Total is good and bad: what is known.
func (c Counts) Total() int64 { return c.Good + c.Bad }

// All is all that count. Budgets and burn rates go by it, so that a call of which nobody
// knows takes nothing from the budget: often a call can be known to be bad and not to be good
// (the gateway's own queue; goodput), and among the known alone nearly all would then be bad.
func (c Counts) All() int64 { return c.Good + c.Bad + c.Unknown }

// ObjectiveStatus is how one objective of one class stands, for one model or all.
// Pointers are nil where there is nothing to compute from.
type ObjectiveStatus struct {
	Class     string    `json:"class"`
	Model     string    `json:"model,omitempty"`
	Objective Objective `json:"objective"`
	Text      string    `json:"text"` // "ttft p99 <= 2s"
	// Since is when its counts began.
	Since time.Time `json:"since"`
	// Counts of the period, inside the envelope, and those of minutes outside it.
	Counts
	Outside        Counts `json:"outside,omitzero"`
	OutsideMinutes int64  `json:"outside_minutes,omitempty"`
	// Compliance is good / (good + bad), with its 95 % interval by Clopper and Pearson.
	Compliance     *float64 `json:"compliance,omitempty"`
	ComplianceLow  *float64 `json:"compliance_low,omitempty"`
	ComplianceHigh *float64 `json:"compliance_high,omitempty"`
	// UnknownShare is unknown / all that count.
	UnknownShare *float64 `json:"unknown_share,omitempty"`
	Budget       Budget   `json:"budget"`
	// Burn is the rate over 5m, 30m, 1h, 6h and 3d, in this order.
	Burn []Burn `json:"burn"`
	// Firing are the rules that hold right now.
	Firing []Firing `json:"firing,omitempty"`
	// State follows from Budget and Firing at this moment, without hysteresis.
	State State `json:"state"`
	// FirstToken is when the oldest call that awaits its first token was received,
	// and how many do; of TTFT objectives alone.
	Awaiting       int64     `json:"awaiting_first_token,omitempty"`
	OldestReceived time.Time `json:"oldest_received,omitzero"`
	// Quantiles are for display: of the last hour, each within 0.8 %.
	// The hour is of 55 to 60 minutes, Quantiles5m of 5 to 10. They are of all calls of which
	// the number is known, whatever conditions the objective has, that ended since the
	// process began.
	Quantiles   *Quantiles `json:"quantiles_1h,omitempty"`
	Quantiles5m *Quantiles `json:"quantiles_5m,omitempty"`
}

// Budget is the error budget of the period. Allowed is (1 − target) · N.
type Budget struct {
	// Calls is N so far, Forecast N at the end of a calendar period if traffic goes on
	// as it was; a rolling period has none.
	Calls    int64    `json:"calls"`
	Forecast *int64   `json:"calls_forecast,omitempty"`
	Allowed  *float64 `json:"allowed_bad,omitempty"`
	// AllowedForecast is Allowed with the forecast for N.
	AllowedForecast *float64 `json:"allowed_bad_forecast,omitempty"`
	// Consumed is bad / Allowed, and ConsumedForecast bad / AllowedForecast; 1 is all
	// of it. State goes by the forecast where there is one.
	Consumed         *float64 `json:"consumed,omitempty"`
	ConsumedForecast *float64 `json:"consumed_forecast,omitempty"`
	// Left is what is not consumed, by the figure that State goes by; below 0 when overspent.
	Left *float64 `json:"left,omitempty"`
	// State is ok, warning, freeze or exhausted. TooFew says that it is ok only
	// because the period has fewer calls than Config.CallsToFreeze asks for.
	State  State `json:"state"`
	TooFew bool  `json:"too_few_calls,omitempty"`
}

// Burn is the burn rate over one window: the share of bad calls by (1 − target).
type Burn struct {
	Window time.Duration `json:"window_ns"`
	Counts
	Rate *float64 `json:"rate,omitempty"` // nil without calls
}

// Firing is a rule that holds.
type Firing struct {
	// Rule is the pair of windows; Outage is true, and Rule without meaning, for an
	// outage: nearly all calls of the last half minute are bad.
	Rule   BurnRule `json:"rule"`
	Outage bool     `json:"outage,omitempty"`
	Page   bool     `json:"page"`
	// Bad and Total are those of the short window.
	Bad   int64 `json:"bad"`
	Total int64 `json:"total"`
}

// Quantiles of a timed number, for display only.
type Quantiles struct {
	Calls int64         `json:"calls"`
	P50   time.Duration `json:"p50_ns"`
	P90   time.Duration `json:"p90_ns"`
	P95   time.Duration `json:"p95_ns"`
	P99   time.Duration `json:"p99_ns"`
}
