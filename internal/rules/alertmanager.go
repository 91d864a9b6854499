package rules

import (
	"io"
	"strings"
)

// The severities of alerts, as the gateway's own alerts have them.
const (
	warning   = "warning"
	ticket    = "ticket"
	freeze    = "freeze"
	exhausted = "exhausted"
	page      = "page"
)

// severities lists them, the loudest last.
var severities = []string{warning, ticket, freeze, exhausted, page}

// The names of alerts, which are the gateway's own where it has such an alert.
const (
	alertPage      = "WeirSLOPage"
	alertTicket    = "WeirSLOTicket"
	alertWarning   = "WeirErrorBudgetWarning"
	alertFreeze    = "WeirErrorBudgetFreeze"
	alertExhausted = "WeirErrorBudgetExhausted"
	// Two that only Prometheus raises.
	alertHang = "WeirFirstTokenOverdue"
	alertDown = "WeirDown"
)

const alertmanagerHead = `Alertmanager configuration for the alerts of Weir, made by weir rules --alertmanager.

It is whole, so that Alertmanager starts with it as it is and tells nobody. Give the three receivers somebody to tell, or merge route, inhibit_rules and receivers into what you have. It fits the rules that weir rules --prometheus writes and, with the same labels, the alerts that the gateway sends itself: where both arrive, Alertmanager takes them for one.`

// Alertmanager writes a configuration for the alerts: who is told what, and which alerts
// are silent while a worse one of the same cause stands. It is the same whatever the
// objectives are. Errors are the writer's.
func Alertmanager(w io.Writer) error {
	var y yaml
	y.comment(0, alertmanagerHead)
	y.line(0, "route:")
	y.line(1, "receiver: nobody")
	y.line(1, "routes:")
	y.line(2, "- matchers: ['service=\"weir\"']")
	y.line(3, "receiver: weir-tickets")
	y.comment(3, "One message for an objective, all its models together.")
	y.line(3, "group_by: [alertname, class, objective]")
	y.line(3, "group_wait: 1m")
	y.line(3, "group_interval: 30m")
	y.line(3, "repeat_interval: 1d")
	y.line(3, "routes:")
	y.comment(4, "Somebody has to look now. The windows have waited long enough: send at once.")
	y.line(4, "- matchers: ['severity=\"page\"']")
	y.line(5, "receiver: weir-pages")
	y.line(5, "group_wait: 10s")
	y.line(5, "group_interval: 5m")
	y.line(5, "repeat_interval: 1h")
	y.line(0, "inhibit_rules:")
	for _, r := range inhibitions() {
		if r.comment != "" {
			y.comment(1, r.comment)
		}
		y.line(1, "- source_matchers: ['service=\"weir\"', %s]", r.source)
		y.line(2, "target_matchers: ['service=\"weir\"', %s]", r.target)
		y.line(2, "equal: [%s]", r.equal)
	}
	y.line(0, "receivers:")
	y.line(1, "- name: nobody")
	y.comment(1, "Page and ticket: for example pagerduty_configs, slack_configs, email_configs or webhook_configs.")
	y.line(1, "- name: weir-pages")
	y.line(1, "- name: weir-tickets")
	return y.writeTo(w)
}

// inhibition is alerts that silence others. Matchers are as YAML has them.
type inhibition struct{ comment, source, target, equal string }

// inhibitions are those that the gateway's own alerts have.
func inhibitions() []inhibition {
	rules := []inhibition{
		{"Of one objective and model the loudest says it all. Freeze and exhausted are said beside a page, as they are for others: who releases.",
			`'severity="page"'`, `'severity="ticket"'`, "class, objective, model"},
		{"", `'severity=~"page|exhausted|freeze"'`, `'severity="warning"'`, "class, objective, model"},
		{"", `'severity="exhausted"'`, `'severity="freeze"'`, "class, objective, model"},
	}
	comment := "What holds for all models of a class, as loud or louder, is not said of each."
	for i, s := range severities {
		louder := `severity=~"` + strings.Join(severities[i:], "|") + `"`
		rules = append(rules, inhibition{comment, "'" + louder + `', 'model=""'`, `'severity="` + s + `"', 'model!=""'`, "class, objective"})
		comment = ""
	}
	return rules
}
