package alert

import (
	"slices"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Severity is what an alert asks of people.
type Severity string

// The severities, the least urgent first, in the order of slo.States.
const (
	Warning   Severity = "warning"   // half of the error budget is used
	Ticket    Severity = "ticket"    // it burns slowly, all the time: look within days
	Freeze    Severity = "freeze"    // four fifths are used: release nothing risky
	Exhausted Severity = "exhausted" // all is used
	Page      Severity = "page"      // it burns so fast that somebody has to look now
)

// Severities lists them in this order.
var Severities = []Severity{Warning, Ticket, Freeze, Exhausted, Page}

// rank orders severities; the most urgent is the highest.
func (s Severity) rank() int { return slices.Index(Severities, s) }

// budget tells whether it is a state of the error budget and not a burn rate.
func (s Severity) budget() bool { return s == Warning || s == Freeze || s == Exhausted }

// alertname is the label by which routes and silences tell alerts apart.
func (s Severity) alertname() string {
	switch s {
	case Page:
		return "WeirSLOPage"
	case Ticket:
		return "WeirSLOTicket"
	case Freeze:
		return "WeirErrorBudgetFreeze"
	case Exhausted:
		return "WeirErrorBudgetExhausted"
	}
	return "WeirErrorBudgetWarning"
}

// Status is whether an alert holds.
type Status string

// The statuses, written as Alertmanager does.
const (
	Firing   Status = "firing"
	Resolved Status = "resolved"
)

// Alert is what receivers are told. Labels say which alert it is and do not change
// while it lasts; annotations say how it stands. Its JSON form is that of one alert in
// Alertmanager's webhook payload, version 4. Maps are shared: do not change them.
type Alert struct {
	Status      Status            `json:"status"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	// StartsAt and EndsAt are UTC, to the millisecond. EndsAt is the zero time while the
	// alert is firing, which JSON has as 0001-01-01T00:00:00Z.
	StartsAt time.Time `json:"startsAt"`
	EndsAt   time.Time `json:"endsAt"`
	// GeneratorURL is where the admin endpoint shows the class; "" when none is configured.
	GeneratorURL string `json:"generatorURL"`
	// Fingerprint is Alertmanager's own of the labels: 16 hexadecimal digits.
	Fingerprint string `json:"fingerprint"`

	// What the labels say, once more for programs: Model is "" for all models.
	Severity  Severity `json:"-"`
	Class     string   `json:"-"`
	Objective string   `json:"-"`
	Model     string   `json:"-"`
}

// Blame is which phase made calls bad when an alert began. The zero value says nothing.
type Blame struct {
	// Phase is a phase's name such as queue_engine, or "undetermined".
	Phase string `json:"phase,omitempty"`
	// Text is one sentence: what is wrong.
	Text string `json:"text,omitempty"`
	// Share is the phase's part, 0–1, of the time or the calls that Text is about.
	Share call.Number `json:"share,omitzero"`
	// Evidence are the figures for and against, a sentence each.
	Evidence []string `json:"evidence,omitempty"`
}

// key is which alert it is.
type key struct {
	class, objective, model string // model "" is all models
	severity                Severity
}

// of returns the key of the same subject with another severity.
func (k key) of(s Severity) key { k.severity = s; return k }

// allModels returns the key of the alert over all models.
func (k key) allModels(s Severity) key { k.model, k.severity = "", s; return k }

// weight orders alerts by how much they matter: first what is about all models, then
// by severity.
func (k key) weight() int {
	if k.model == "" {
		return len(Severities) + k.severity.rank()
	}
	return k.severity.rank()
}
