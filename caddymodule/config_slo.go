package caddymodule

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/caddyserver/caddy/v2"
	"go.uber.org/zap"

	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/slo"
)

// ClassConfig is a service class with its objectives. The presets interactive,
// completion and batch are there without being named; naming one changes it.
type ClassConfig struct {
	Name string `json:"name"`
	// From is the preset that the class begins with. Default: the one of its name,
	// else none.
	From string `json:"from,omitempty"`
	// Objectives are lines such as "ttft p99 <= 2s". One replaces the preset's
	// objective on the same number and the same calls.
	Objectives []string `json:"objectives,omitempty"`
	// Without names numbers of the preset that are no objective here.
	Without []string `json:"without,omitempty"`
	// Valid is the traffic for which the objectives are promised, such as
	// "input_tokens p95 <= 8000, rate <= 2/s". Default: any.
	Valid string `json:"valid_while,omitempty"`
	// Weight orders classes: a header may ask for one of less weight. Default: that
	// of the class in the queue of the same name, else that of the preset it is made
	// from, else that of batch.
	Weight int `json:"weight,omitempty"`
}

// class returns what objectives are kept by.
func (c *ClassConfig) class() (slo.Class, error) {
	from := c.From
	if from == "" {
		from = c.Name
	}
	class, found := slo.Preset(from)
	if !found && c.From != "" {
		return class, fmt.Errorf("class %s: there is no preset %q; there are interactive, completion and batch", c.Name, c.From)
	}
	class.Name = c.Name
	for _, name := range c.Without {
		n, err := slo.ParseNumber(name)
		if err != nil {
			return class, fmt.Errorf("class %s: no %s: %w", c.Name, name, err)
		}
		class = class.Without(n)
	}
	objectives := make([]slo.Objective, len(c.Objectives))
	for i, line := range c.Objectives {
		var err error
		if objectives[i], err = slo.ParseObjective(line); err != nil {
			return class, fmt.Errorf("class %s: %w", c.Name, err)
		}
	}
	class = class.With(objectives...) // at once: two about one number stand beside each other
	if c.Valid != "" {
		var err error
		if class.Valid, err = slo.ParseEnvelope(c.Valid); err != nil {
			return class, fmt.Errorf("class %s: valid while: %w", c.Name, err)
		}
	}
	return class, nil
}

// SLOConfig says how objectives are kept. All of it has defaults.
type SLOConfig struct {
	// Off keeps none. What lies on disk stays there for when it is left out again.
	Off bool `json:"off,omitempty"`
	// Period is what error budgets are for: "rolling 30d" (default) or
	// "calendar_month Europe/Berlin".
	Period string `json:"period,omitempty"`
	// Burn replaces the pairs of windows that alert: 1h and 5m by 14.4, and 6h and
	// 30m by 6, page; 3d and 6h by 1 make a ticket.
	Burn []BurnConfig `json:"burn,omitempty"`
	// MinBad is how many bad calls the short window of a pair needs, MinCalls how many
	// calls the period needs before a budget can freeze. Defaults: see `weir slo --help`.
	MinBad   int64 `json:"min_bad,omitempty"`
	MinCalls int64 `json:"min_calls,omitempty"`
	// Warn and Freeze are shares of the budget. Defaults: 0.5 and 0.8.
	Warn   float64 `json:"warn,omitempty"`
	Freeze float64 `json:"freeze,omitempty"`
	// State is the directory in which counts outlive the process; "off" keeps them in
	// memory. Default: weir/slo in Caddy's data directory.
	State string `json:"state,omitempty"`
}

// BurnConfig is one pair of windows.
type BurnConfig struct {
	Long   caddy.Duration `json:"long"`
	Short  caddy.Duration `json:"short"`
	Factor float64        `json:"factor"`
	Page   bool           `json:"page,omitempty"` // else a ticket
}

// objectives returns what the configuration promises, completed, and what is odd
// about it. Without classes nothing is judged.
func (a *App) objectives() (slo.Config, []slo.Warning, error) {
	var c slo.Config
	s := a.SLO
	if s == nil {
		s = new(SLOConfig)
	}
	if s.Off {
		if len(a.Classes) > 0 {
			return c, nil, errors.New("slo is off, and there are classes with objectives; take out one or the other")
		}
		return c.Complete()
	}
	named := make(map[string]bool)
	for _, cc := range a.Classes {
		switch {
		case strings.HasPrefix(cc.Name, "_"):
			return c, nil, fmt.Errorf("class %s: names that begin with _ are Weir's own", cc.Name)
		case named[cc.Name]:
			return c, nil, fmt.Errorf("class %s is given twice", cc.Name)
		case cc.Weight < 0:
			return c, nil, fmt.Errorf("class %s: a weight is above 0", cc.Name)
		}
		class, err := cc.class()
		if err != nil {
			return c, nil, err
		}
		named[cc.Name] = true
		c.Classes = append(c.Classes, class)
	}
	for _, name := range presets {
		if !named[name] {
			class, _ := slo.Preset(name)
			c.Classes = append(c.Classes, class)
		}
	}
	if s.Period != "" {
		var err error
		if c.Period, err = slo.ParsePeriod(s.Period); err != nil {
			return c, nil, fmt.Errorf("slo: %w", err)
		}
	}
	for _, b := range s.Burn {
		c.Burn = append(c.Burn, slo.BurnRule{Long: time.Duration(b.Long), Short: time.Duration(b.Short), Factor: b.Factor, Page: b.Page})
	}
	c.MinBad, c.MinCalls, c.Warn, c.Freeze = s.MinBad, s.MinCalls, s.Warn, s.Freeze
	c, warnings, err := c.Complete()
	if err != nil {
		return c, nil, fmt.Errorf("slo: %w", err)
	}
	return c, warnings, nil
}

// presets are the classes that are there without being named.
var presets = []string{DefaultClass, "completion", "batch"}

// weights returns the weight of every class, for those who ask for a lower one.
func (a *App) weights(q *QueueConfig) map[string]int {
	all := maps.Clone(queue.BuiltIn)
	for _, c := range a.Classes {
		switch {
		case c.Weight > 0:
			all[c.Name] = c.Weight
		case queue.BuiltIn[c.From] > 0:
			all[c.Name] = queue.BuiltIn[c.From]
		case all[c.Name] == 0:
			all[c.Name] = queue.BuiltIn["batch"]
		}
	}
	if q != nil {
		for name, class := range q.Classes {
			if class.Weight > 0 {
				all[name] = class.Weight
			}
		}
	}
	return all
}

// queueOf returns what a queue is configured by: calls of a class that it does not name
// wait with that class's own weight, and not as interactive ones.
func (a *App) queueOf(q *QueueConfig) queue.Config {
	c := q.config()
	if q == nil || len(a.Classes) == 0 {
		return c
	}
	if c.Classes == nil {
		c.Classes = make(map[string]queue.Class)
	}
	weights := a.weights(q)
	for _, class := range a.Classes {
		c.Classes[class.Name] = queue.Class{Weight: weights[class.Name]}
	}
	return c
}

// warnOfClass tells of a class whose calls nothing judges.
func (a *App) warnOfClass(log *zap.Logger, class string, who ...zap.Field) {
	if a.promises() && class != "" && !a.knowsClass(class) {
		log.Warn("calls of this class are counted for no objective; add it to the global options, as in: weir { class "+class+" interactive }",
			append(who, zap.String("class", class))...)
	}
}

// AlertConfig says whom alerts go to. They are events of Caddy's too, whatever it says.
type AlertConfig struct {
	// Kind is alertmanager or webhook.
	Kind string `json:"kind"`
	// URL is an Alertmanager's base URL, or where a webhook is posted. Placeholders such as
	// {env.TOKEN} are replaced.
	URL string `json:"url"`
	// Headers are sent along. Placeholders are replaced.
	Headers map[string]string `json:"headers,omitempty"`
	// Labels are added to each alert.
	Labels map[string]string `json:"labels,omitempty"`
}

// The kinds of AlertConfig.
const (
	alertmanager = "alertmanager"
	webhook      = "webhook"
)

// target returns the URL and the headers with placeholders replaced.
func (c *AlertConfig) target() (address string, header http.Header) {
	repl := caddy.NewReplacer()
	header = make(http.Header)
	for name, value := range c.Headers {
		header.Set(name, repl.ReplaceAll(value, ""))
	}
	return repl.ReplaceAll(c.URL, ""), header
}

func (c *AlertConfig) validate() error {
	if c.Kind != alertmanager && c.Kind != webhook {
		return fmt.Errorf("alert %q is not known; use alertmanager or webhook", c.Kind)
	}
	address, _ := c.target()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return fmt.Errorf("alert %s needs a URL, such as http://127.0.0.1:9093", c.Kind)
	}
	return nil
}

// validateAlerts tells of alerts that would go nowhere, or say nothing.
func (a *App) validateAlerts() error {
	for _, c := range a.Alerts {
		if err := c.validate(); err != nil {
			return err
		}
	}
	o, err := a.alertOptions()
	if err != nil {
		return err
	}
	return o.Validate()
}

// knowsClass tells whether calls of a class are judged.
func (a *App) knowsClass(name string) bool {
	return slices.Contains(presets, name) || slices.ContainsFunc(a.Classes, func(c *ClassConfig) bool { return c.Name == name })
}
