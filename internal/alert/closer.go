package alert

import (
	"net/url"
	"strings"
	"time"

	"github.com/weirgate/weir/slo"
)

// lately is how far back to look: over the short window of what fired, else over an hour.
func (v *view) lately() string {
	if f := v.fired(); f != nil && !v.key.severity.budget() {
		if f.Outage || f.Rule.Short < 5*time.Minute {
			return "5m"
		}
		return span(f.Rule.Short)
	}
	if v.key.severity == Page {
		return "5m"
	}
	return "1h"
}

// commands are those that show more, a line each, ready for a shell.
func (v *view) commands() []string {
	class := " --class " + shell(labelValue(v.key.class))
	diagnose := "weir diagnose --since " + v.lately() + class
	// A name that had to be changed would find nothing.
	if m := v.key.model; m != slo.AllModels && m != slo.OtherModel && labelValue(m) == m {
		diagnose += " --model " + shell(m)
	}
	return []string{"weir slo" + class, diagnose}
}

// shell quotes a word for a POSIX shell: models are named by clients, and people paste.
func shell(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._/:@-", r)
	}
	if word != "" && strings.IndexFunc(word, func(r rune) bool { return !plain(r) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// link is an address at the admin endpoint about the alert's class, and its model where
// the page takes one; "" when the endpoint's is not configured.
func (v *view) link(o *Options, path string, also map[string]string) string {
	base := adminBase(o.AdminURL)
	if base == nil {
		return ""
	}
	base.Path = strings.TrimRight(base.Path, "/") + path
	query := url.Values{"class": {v.key.class}}
	for name, value := range also {
		query.Set(name, value)
	}
	if m := v.key.model; m != slo.AllModels && m != slo.OtherModel && labelValue(m) == m {
		query.Set("model", m)
	}
	base.RawQuery = query.Encode()
	return base.String()
}
