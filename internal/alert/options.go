package alert

import (
	"fmt"
	"net/url"
	"time"

	"github.com/weirgate/weir/slo"
)

const (
	// DefaultHold is the short window of the fastest burn rule: what comes back within
	// it is the same trouble, and an alert that ended and began anew would wake people
	// twice.
	DefaultHold = 5 * time.Minute
	// DefaultWarn and DefaultFreeze are slo's.
	DefaultWarn, DefaultFreeze = 0.5, 0.8
	// maxHold bounds Options.Hold: an alert that ends a day late tells nobody anything.
	maxHold = 24 * time.Hour
	// slower is how much longer than a page a ticket is held: it is about hours, and
	// while the rate hovers around its factor, it would come and go all day.
	slower = 6
	// margin is the share of the budget by which it has to fall below a threshold again. A
	// budget that is judged by a forecast moves with every call.
	margin = 0.05
	// maxAlerts bounds the alerts that are kept. At most all of them are owed to each
	// receiver.
	maxAlerts = 1000
)

// Options say whom to tell, and what. The zero value tells nobody, and keeps State.
type Options struct {
	// Receivers are told all alerts, each on its own. One that is there twice counts once.
	Receivers []Receiver
	// Labels are added to those of every alert. They may replace service, which is
	// "weir", and no other label of an alert.
	Labels map[string]string
	// AdminURL is where people reach the admin endpoint, such as http://10.0.0.5:2019.
	// With "" alerts have no links. What it has of a user, a password and a query is left out.
	AdminURL string
	// Hold is how long the condition of a page has to be away before the alert ends, up
	// to 24 h; a ticket's is six times that. 0 is DefaultHold.
	Hold time.Duration
	// Warn and Freeze are those of slo.Config, 0–1: with them a state of the budget knows
	// when it is clearly below its threshold. 0 is DefaultWarn and DefaultFreeze.
	Warn, Freeze float64
	// Blame finds the phase to blame when an alert is first to be told. It may be nil. It is
	// called outside all locks, one call at a time, while Run runs; the alert waits for it
	// at most two seconds, and takes its answer up whenever that comes. model is "" for
	// all, and now the time of the last Observe.
	Blame func(class, model, objective string, number slo.Number, now time.Time) Blame
	// Report is told when telling a receiver begins to fail, with the error, and when it
	// works again, with nil: once for each, not for every try. It may be nil, and holds up
	// that receiver only.
	Report func(receiver string, err error)
}

// Validate tells what New and Configure would leave out or replace by a default.
func (o Options) Validate() error {
	if err := checkLabels(o.Labels); err != nil {
		return err
	}
	if o.AdminURL != "" && adminBase(o.AdminURL) == nil {
		return fmt.Errorf("alerts: the admin endpoint's address is no URL: write it like http://10.0.0.5:2019")
	}
	if o.Hold < 0 || o.Hold > maxHold {
		return fmt.Errorf("alerts: hold %v: write a time up to %v, or leave it out for %v", o.Hold, maxHold, DefaultHold)
	}
	for _, share := range []float64{o.Warn, o.Freeze} {
		if share != 0 && !(share > 0 && share <= 1) {
			return fmt.Errorf("alerts: a share of the budget is %v: write one above 0 and up to 1, where 1 is all", share)
		}
	}
	return nil
}

// complete puts defaults where nothing, or nothing possible, is set.
func (o Options) complete() Options {
	labels := make(map[string]string, len(o.Labels))
	for name, value := range o.Labels {
		if checkLabels(map[string]string{name: value}) == nil {
			labels[name] = value
		}
	}
	o.Labels = labels
	if o.Hold <= 0 || o.Hold > maxHold {
		o.Hold = DefaultHold
	}
	if !(o.Warn > 0 && o.Warn <= 1) {
		o.Warn = DefaultWarn
	}
	if !(o.Freeze > 0 && o.Freeze <= 1) {
		o.Freeze = DefaultFreeze
	}
	return o
}

// hold is how long a condition has to be away before its alert ends.
func (o *Options) hold(s Severity) time.Duration {
	if s == Ticket {
		return slower * o.Hold
	}
	return o.Hold
}

// threshold is the share of the budget at which a state begins.
func (o *Options) threshold(s Severity) float64 {
	switch s {
	case Warning:
		return o.Warn
	case Freeze:
		return o.Freeze
	}
	return 1
}

// adminBase reads the admin endpoint's address; nil when it is none.
func adminBase(address string) *url.URL {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: u.Path}
}
