package alert

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"time"
	"unicode/utf8"

	"github.com/weirgate/weir/slo"
)

// What is kept of alerts for the next process is one JSON object, on one line:
//
//	kind     "weir alerts"
//	version  of this format, 1
//	sum      CRC-32C of the bytes of body, 8 hexadecimal digits
//	body     salt       16 bytes, 32 hexadecimal digits; see receiverTag
//	         observed   when objectives were last looked at; left out for never
//	         receivers  the tags of those that an alert's told speaks of
//	         alerts     an object for each, the most important first; see keptAlert
//
// Times are RFC 3339 with fractions of a second. There are at most 1000 alerts, each of at
// most 64 KiB, and 8 MiB in all: what does not fit is left out, the least important first.
// No address, header or key of anybody is in there, and nothing of what calls said.
const (
	keptKind    = "weir alerts"
	keptVersion = 1
	maxKept     = 8 << 20
	maxKeptOne  = 64 << 10

	// What an alert in there may have at most; what is more is not taken.
	maxKeptName      = 1 << 10 // bytes of a class, an objective, a model
	maxKeptLabels    = 100
	maxKeptText      = 500 // bytes of an objective's text, of a period's name
	maxKeptRules     = 32  // rules that fired, and windows
	maxKeptReceivers = 1000
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(b []byte) string { return fmt.Sprintf("%08x", crc32.Checksum(b, castagnoli)) }

type keptFile struct {
	Kind    string          `json:"kind"`
	Version int             `json:"version"`
	Sum     string          `json:"sum"`
	Body    json.RawMessage `json:"body"`
}

type keptBody struct {
	Salt      string            `json:"salt"`
	Observed  time.Time         `json:"observed,omitzero"`
	Receivers []string          `json:"receivers"`
	Alerts    []json.RawMessage `json:"alerts"`
}

// keptAlert is one alert.
type keptAlert struct {
	Class     exact    `json:"class"`
	Objective exact    `json:"objective"`
	Model     exact    `json:"model,omitzero"` // left out for all models
	Severity  Severity `json:"severity"`
	// Labels are those that it began with: they make its fingerprint.
	Labels map[string]string `json:"labels"`
	Starts time.Time         `json:"starts"`
	Ends   time.Time         `json:"ends,omitzero"`  // left out while it is firing
	Clear  time.Time         `json:"clear,omitzero"` // since when its condition is away
	// Announced is whether it was to be told, and Stale whether it was taken up after a
	// long gap and has not been seen to hold since.
	Announced bool   `json:"announced,omitzero"`
	Stale     bool   `json:"stale,omitzero"`
	Blame     *Blame `json:"blame,omitempty"`
	// Condition is how the objective stood when it was last missed.
	Condition keptCondition `json:"condition"`
	Told      []keptMark    `json:"told,omitempty"`
}

// keptCondition is what the words of an alert are made of.
type keptCondition struct {
	Text   string           `json:"text"`
	Number slo.Number       `json:"number"`
	Counts slo.Counts       `json:"counts"`
	Firing []slo.Firing     `json:"firing,omitempty"`
	Burn   []slo.Burn       `json:"burn,omitempty"`
	Budget keptBudget       `json:"budget"`
	Period slo.PeriodStatus `json:"period"`
}

type keptBudget struct {
	Allowed          *float64 `json:"allowed_bad,omitempty"`
	AllowedForecast  *float64 `json:"allowed_bad_forecast,omitempty"`
	Left             *float64 `json:"left,omitempty"`
	Consumed         *float64 `json:"consumed,omitempty"`
	ConsumedForecast *float64 `json:"consumed_forecast,omitempty"`
}

// keptMark is what a receiver knows of an alert.
type keptMark struct {
	Receiver int       `json:"receiver"` // index in receivers
	Took     keptNews  `json:"took,omitzero"`
	Refused  keptNews  `json:"refused,omitzero"`
	At       time.Time `json:"at,omitzero"` // when either became so
}

// keptNews is "", nothing, or "firing" or "resolved", or one of those with earlierBegin
// before it. Beginnings have numbers only while a process lives: all that matters
// is whether it is the latest.
type keptNews string

const earlierBegin = "earlier "

func (n news) kept(begin uint64) keptNews {
	if n.status == "" || n.begin == begin {
		return keptNews(n.status)
	}
	return earlierBegin + keptNews(n.status)
}

// news is the other way; no beginning has the number 0.
func (k keptNews) news(begin uint64) (news, error) {
	switch k {
	case "":
		return news{}, nil
	case keptNews(Firing), keptNews(Resolved):
		return news{Status(k), begin}, nil
	case earlierBegin + keptNews(Firing), earlierBegin + keptNews(Resolved):
		return news{Status(k[len(earlierBegin):]), 0}, nil
	}
	return news{}, fmt.Errorf("%.20q is nothing that a receiver is told", string(k))
}

// exact is a text in JSON that stays what it is, be it of UTF-8 or not: as a string, or as
// an object with the base64 of its bytes. Models are named by clients.
type exact string

type exactBytes struct {
	Bytes []byte `json:"base64"`
}

func (e exact) MarshalJSON() ([]byte, error) {
	if utf8.ValidString(string(e)) {
		return json.Marshal(string(e))
	}
	return json.Marshal(exactBytes{[]byte(e)})
}

func (e *exact) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '{' {
		var x exactBytes
		if err := json.Unmarshal(b, &x); err != nil {
			return err
		}
		*e = exact(x.Bytes)
		return nil
	}
	var s string
	if err := json.Unmarshal(b, &s); err != nil {
		return err
	}
	*e = exact(s)
	return nil
}

// seal makes the file of a body; nil is a body that JSON cannot have, which none of ours is.
func seal(b keptBody) []byte {
	body, err := json.Marshal(b)
	if err != nil {
		return nil
	}
	file, err := json.Marshal(keptFile{keptKind, keptVersion, checksum(body), body})
	if err != nil {
		return nil
	}
	return append(file, '\n')
}

// unseal is the other way.
func unseal(data []byte) (b keptBody, err error) {
	switch {
	case len(data) == 0:
		return b, errors.New("it is empty")
	case len(data) > maxKept:
		return b, fmt.Errorf("it is longer than the %d MiB that alerts take", maxKept>>20)
	}
	var file keptFile
	if err := json.Unmarshal(data, &file); err != nil {
		return b, fmt.Errorf("it is cut or damaged: %w", err)
	}
	switch {
	case file.Kind != keptKind:
		return b, errors.New("it holds something else than alerts")
	case file.Version != keptVersion:
		return b, fmt.Errorf("it is of version %d, and this Weir reads version %d: it is from a newer Weir", file.Version, keptVersion)
	case file.Sum != checksum(file.Body):
		return b, errors.New("it is damaged: its checksum does not match")
	}
	if err := json.Unmarshal(file.Body, &b); err != nil {
		return b, fmt.Errorf("its body cannot be read: %w", err)
	}
	if len(b.Receivers) > maxKeptReceivers {
		return b, fmt.Errorf("it has %d receivers, and %d are the most", len(b.Receivers), maxKeptReceivers)
	}
	return b, nil
}

// condition is what is kept of how an objective stood.
func condition(o *slo.ObjectiveStatus, p slo.PeriodStatus) keptCondition {
	b := &o.Budget
	c := keptCondition{
		Text: cut(o.Text, maxKeptText), Counts: o.Counts, Number: o.Objective.Number,
		Budget: keptBudget{finite(b.Allowed), finite(b.AllowedForecast), finite(b.Left), finite(b.Consumed), finite(b.ConsumedForecast)},
		Period: slo.PeriodStatus{Name: cut(p.Name, maxKeptText), From: dated(p.From), To: dated(p.To)},
	}
	if int(c.Number) >= slo.Numbers {
		c.Number = 0
	}
	for _, f := range o.Firing[:min(len(o.Firing), maxKeptRules)] {
		if finite(&f.Rule.Factor) == nil {
			f.Rule.Factor = math.MaxFloat64
		}
		c.Firing = append(c.Firing, f)
	}
	for _, w := range o.Burn[:min(len(o.Burn), maxKeptRules)] {
		w.Rate = finite(w.Rate)
		c.Burn = append(c.Burn, w)
	}
	return c
}

// stood is the other way, bounded.
func (c *keptCondition) stood() (slo.ObjectiveStatus, slo.PeriodStatus) {
	o := slo.ObjectiveStatus{
		Objective: slo.Objective{Number: c.Number}, Text: cut(c.Text, maxKeptText), Counts: c.Counts,
		Firing: c.Firing[:min(len(c.Firing), maxKeptRules)], Burn: c.Burn[:min(len(c.Burn), maxKeptRules)],
		Budget: slo.Budget{
			Allowed: c.Budget.Allowed, AllowedForecast: c.Budget.AllowedForecast, Left: c.Budget.Left,
			Consumed: c.Budget.Consumed, ConsumedForecast: c.Budget.ConsumedForecast,
		},
	}
	p := c.Period
	p.Name = cut(p.Name, maxKeptText)
	return keep(&o), p
}

// finite returns what JSON can have; else it is unknown.
func finite(x *float64) *float64 {
	if x == nil || math.IsNaN(*x) || math.IsInf(*x, 0) {
		return nil
	}
	return x
}

// dated returns a time that JSON can have, in UTC; another one is none.
func dated(t time.Time) time.Time {
	if t = t.UTC(); t.Year() < 1 || t.Year() > 9999 {
		return time.Time{}
	}
	return t
}
