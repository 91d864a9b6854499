package keys

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Key is what is known of a caller whose key is in the file. It does not change
// once it has been loaded, and may be used by many goroutines at once; a changed
// file makes new ones. It has neither the key nor its hash.
type Key struct {
	// Alias stands for the key in logs, metrics, spans, the ledger and errors.
	Alias string
	// Owner says for people whom the key was given to; "" is not known.
	Owner string
	// Limits are those of this key alone; one that is unknown does not apply.
	Limits call.Limits
	// Models are patterns of the models that may be asked for; none allows all.
	Models []string
	// Class is the service class of the key's calls; "" leaves it to the directive.
	Class string
	// Weight is the key's share of a contended pool in relation to other keys
	// of its class, from 0.001 to 1000. Default: 1.
	Weight float64
	// Budget is what may be spent; nil is no budget.
	Budget *Budget
	// Expires is when the key ends; zero is never.
	Expires time.Time
	// Revoked is when the key was revoked; zero is not at all. It does not matter
	// whether that time has come: whoever revokes a key means now, whatever the
	// clocks of two machines say.
	Revoked time.Time
	// Bench marks load tests and probes: attributed to the key like all calls,
	// but left out of service level objectives.
	Bench bool
}

// Allows tells whether the key may ask for a model. In a pattern of Models each *
// stands for any characters, at any place, and case matters. A call that names
// no model (model is "") is allowed only by an empty list or by a pattern of *
// alone, because what an engine then chooses is not known here.
func (k *Key) Allows(model string) bool {
	if len(k.Models) == 0 {
		return true
	}
	for _, pattern := range k.Models {
		if glob(pattern, model) {
			return true
		}
	}
	return false
}

// Budget is what a key may spend in each period, in tokens or money or both.
type Budget struct {
	// Tokens, input and output together; unknown is no budget in tokens.
	Tokens call.Count
	// Money in the currency of the price table; 0 is no budget in money.
	Money float64
	Per   Period
	// Zone is where the period's day begins at midnight; never nil. Default: UTC.
	Zone *time.Location
	// Warn is the share of the budget, above 0 and at most 1, from which a
	// warning is due. Default: 0.8.
	Warn float64
}

// Period is the span of the calendar that a budget is for.
type Period string

// The periods.
const (
	Daily   Period = "day"
	Monthly Period = "month" // the default
)

// Status is what a Store says of a key that a request brings. The zero value is
// Missing.
type Status uint8

// The statuses. Only Known may be admitted where keys are enforced.
const (
	Missing Status = iota // the request brings no key
	Unknown               // the file does not have it
	Expired               // its time, or the time of this one of its hashes, is over
	Revoked
	Known
)

var statusNames = [...]string{Missing: "missing", Unknown: "unknown", Expired: "expired", Revoked: "revoked", Known: "known"}

// String returns the status as one word in lower case.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return "invalid"
}
