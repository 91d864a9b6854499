package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/weirgate/weir/slo"
)

// clockNote is how far gateways' clocks may be apart before people are told. Burn
// rates go by whole minutes, so less does no harm.
const clockNote = 10 * time.Second

// merged adds up the counts of several gateways, as if one had seen all calls.
func (a *sloAsk) merged(ctx context.Context, admins []*url.URL) (*sight, error) {
	s := new(sight)
	var readers []*sight // of each gateway
	var counts [][]byte
	var config []byte
	var ahead, behind time.Duration // of the gateways' clocks to this machine's
	for i, admin := range admins {
		one, err := a.one(ctx, admin)
		if err != nil {
			return nil, err
		}
		offset := one.status.At.Sub(time.Now())
		if i == 0 {
			ahead, behind = offset, offset
		}
		ahead, behind = max(ahead, offset), min(behind, offset)
		c, err := a.config(ctx, admin)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			config = c
		} else if !bytes.Equal(config, c) || one.status.Period.Name != readers[0].status.Period.Name {
			return nil, fmt.Errorf("%s and %s have different objectives, or periods: give them the same, or ask one at a time", s.gateways[0], admin.Redacted())
		}
		b, err := a.get(ctx, admin, "/weir/slo/snapshot", maxCounts)
		if err != nil {
			return nil, err
		}
		readers, counts = append(readers, one), append(counts, b)
		s.gateways = append(s.gateways, one.gateways...)
		if one.status.At.After(s.status.At) {
			s.status.At = one.status.At
		}
	}
	tracker, err := readerOf(config, readers[0].status.Period.Name, s.status.At)
	if err != nil {
		return nil, fmt.Errorf("read the objectives of %s: %w; ask it with the weir that it runs", s.gateways[0], err)
	}
	for i, b := range counts {
		if err := tracker.Merge(b); err != nil {
			return nil, fmt.Errorf("add the counts of %s: %w; ask it with the weir that it runs", s.gateways[i], err)
		}
	}
	s.status = tracker.Status(s.status.At)
	for i := range s.status.Objectives {
		await(&s.status.Objectives[i], readers)
	}
	// What pages at one gateway is wrong, though in the sum it may not show: outages are
	// of seconds, which are not in the counts. Budgets are those of the sum.
	for _, reader := range readers {
		for _, alert := range reader.alerts {
			if alert.Severity == slo.StatePage {
				s.alerts = append(s.alerts, alert)
			}
		}
	}
	if apart := ahead - behind; apart > clockNote {
		s.notes = append(s.notes, fmt.Sprintf("The gateways' clocks are %v apart, so burn rates are rough; set them by NTP.", apart.Round(time.Second)))
	}
	return s, nil
}

// await adds up the calls that await their first token: they are in no count yet.
func await(o *slo.ObjectiveStatus, readers []*sight) {
	for _, reader := range readers {
		for _, x := range reader.status.Objectives {
			if x.Class != o.Class || x.Model != o.Model || x.Objective.Name != o.Objective.Name {
				continue
			}
			o.Awaiting += x.Awaiting
			if at := x.OldestReceived; !at.IsZero() && (o.OldestReceived.IsZero() || at.Before(o.OldestReceived)) {
				o.OldestReceived = at
			}
		}
	}
}

// config asks for the objectives of a gateway, in a form that can be compared.
func (a *sloAsk) config(ctx context.Context, admin *url.URL) ([]byte, error) {
	body, err := a.get(ctx, admin, "/weir/slo/config", maxAnswer)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Config json.RawMessage `json:"config"`
	}
	var compact bytes.Buffer
	if err = json.Unmarshal(body, &answer); err == nil && len(answer.Config) == 0 {
		err = errors.New("it has no field config")
	}
	if err == nil {
		err = json.Compact(&compact, answer.Config)
	}
	if err != nil {
		return nil, fmt.Errorf("read the objectives of %s: %w; ask it with the weir that it runs", admin.Redacted(), err)
	}
	return compact.Bytes(), nil
}

// readerOf makes a Tracker that only adds up. The period comes by its name, which has the
// zone in it.
func readerOf(config []byte, period string, now time.Time) (*slo.Tracker, error) {
	var c slo.Config
	if err := json.Unmarshal(config, &c); err != nil {
		return nil, err
	}
	var err error
	if c.Period, err = slo.ParsePeriod(period); err != nil {
		return nil, err
	}
	tracker := slo.New()
	return tracker, tracker.Configure(c, now)
}
