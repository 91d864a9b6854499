package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/weirgate/weir/slo"
)

// sloAsk asks one gateway, or several, how their objectives stand.
type sloAsk struct {
	admins []string

	client *http.Client // nil is http.DefaultClient
}

const (
	// sloPatience is how long one answer may take: a page is waited for by a person.
	sloPatience = 10 * time.Second
	// maxCounts bounds what is read of a gateway's counts.
	maxCounts = 128 << 20
	// maxGateways bounds how many are asked, one after the other.
	maxGateways = 64
)

func (a *sloAsk) flags(cmd *cobra.Command) {
	cmd.Flags().StringSliceVar(&a.admins, "admin", []string{"http://127.0.0.1:2019"},
		"admin `URL` of the gateway; several, with commas or given several times, are shown as one service")
}

// sight is how the objectives of a service stand.
type sight struct {
	gateways []string
	status   slo.Status
	// alerts and alertsJSON are those of the one gateway that was asked.
	alerts     []sloAlert
	alertsJSON json.RawMessage
	notes      []string // what people should know about the figures
}

// sloAlert is what matters here of a gateway's alert.
type sloAlert struct {
	Status    string    `json:"status"` // "firing"
	Severity  slo.State `json:"severity"`
	Class     string    `json:"class"`
	Objective string    `json:"objective"`
	Model     string    `json:"model"`
	StartsAt  time.Time `json:"startsAt"`
}

// do asks all gateways. If one does not answer there is no answer: a sum without
// its calls would not say how the service stands.
func (a *sloAsk) do(ctx context.Context) (*sight, error) {
	var admins []*url.URL
	for _, text := range a.admins {
		u, err := url.Parse(strings.TrimRight(text, "/"))
		if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return nil, errors.New("--admin is no URL: write it like http://127.0.0.1:2019")
		}
		if slices.ContainsFunc(admins, func(other *url.URL) bool { return *other == *u }) {
			return nil, fmt.Errorf("--admin has %s twice: its calls would be counted twice", u.Redacted())
		}
		admins = append(admins, u)
	}
	switch {
	case len(admins) == 0:
		return nil, errors.New("--admin is empty: write it like http://127.0.0.1:2019")
	case len(admins) > maxGateways:
		return nil, fmt.Errorf("--admin has %d gateways, and %d can be asked: let Prometheus add them up, with the rules of weir rules", len(admins), maxGateways)
	case len(admins) == 1:
		return a.one(ctx, admins[0])
	}
	return a.merged(ctx, admins)
}

// one asks one gateway.
func (a *sloAsk) one(ctx context.Context, admin *url.URL) (*sight, error) {
	body, err := a.get(ctx, admin, "/weir/slo", maxAnswer)
	if err != nil {
		return nil, err
	}
	s, err := readSight(body)
	if err != nil {
		return nil, fmt.Errorf("read the answer of %s: %w; ask it with the weir that it runs", admin.Redacted(), err)
	}
	s.gateways = []string{admin.Redacted()}
	return s, nil
}

// readSight reads an answer to GET /weir/slo. Alerts, and objectives of a kind that
// only newer gateways know, are left out with a note if they cannot be read.
func readSight(body []byte) (*sight, error) {
	var answer struct {
		Status *struct {
			At         time.Time         `json:"at"`
			Since      time.Time         `json:"since"`
			Period     slo.PeriodStatus  `json:"period"`
			Objectives []json.RawMessage `json:"objectives"`
			Lost       int64             `json:"lost"`
		} `json:"status"`
		Alerts     json.RawMessage `json:"alerts"`
		Kept       json.RawMessage `json:"kept"`
		AlertsKept json.RawMessage `json:"alerts_kept"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		if bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")) {
			return nil, errors.New("it is a web page; name the gateway's admin endpoint with --admin")
		}
		return nil, err
	}
	if answer.Status == nil || answer.Status.At.IsZero() {
		return nil, errors.New("it has no status")
	}
	from := answer.Status
	s := &sight{status: slo.Status{At: from.At, Since: from.Since, Period: from.Period, Lost: from.Lost}, alertsJSON: answer.Alerts}
	strange := 0
	for _, raw := range from.Objectives {
		var o slo.ObjectiveStatus
		if json.Unmarshal(raw, &o) != nil || o.Class == "" || o.Text == "" {
			strange++
			continue
		}
		s.status.Objectives = append(s.status.Objectives, o)
	}
	if strange > 0 {
		s.notes = append(s.notes, fmt.Sprintf("Objectives left out, since only the weir of the gateway's version can read them: %d.", strange))
	}
	s.noteUnkept("Counts", answer.Kept)
	s.noteUnkept("Alerts", answer.AlertsKept)
	var alerts struct {
		Alerts []sloAlert `json:"alerts"`
	}
	if len(answer.Alerts) > 0 && json.Unmarshal(answer.Alerts, &alerts) != nil {
		s.notes = append(s.notes, "The gateway's alerts cannot be read by this version.")
	} else {
		s.alerts = alerts.Alerts
	}
	return s, nil
}

// noteUnkept notes what would not outlive the gateway's process, and why.
func (s *sight) noteUnkept(what string, state json.RawMessage) {
	var kept struct {
		Kept  bool      `json:"kept"`
		Since time.Time `json:"since"`
		Error string    `json:"error"`
	}
	if len(state) > 0 && json.Unmarshal(state, &kept) == nil && !kept.Kept && kept.Error != "" {
		s.notes = append(s.notes, fmt.Sprintf("%s are in memory alone since %s: %s.", what, kept.Since.In(s.status.At.Location()).Format("2006-01-02 15:04"), named(kept.Error)))
	}
}

// get asks a gateway and returns its answer.
func (a *sloAsk) get(ctx context.Context, admin *url.URL, path string, most int64) ([]byte, error) {
	u := *admin
	u.Path += path
	name := admin.Redacted()
	ctx, cancel := context.WithTimeout(ctx, sloPatience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w", err)
	}
	client := a.client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("ask the gateway: %w; name its admin endpoint with --admin", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w", name, err)
	case answer.StatusCode == http.StatusNotFound && !json.Valid(body) && !bytes.HasPrefix(bytes.TrimSpace(body), []byte("<")):
		return nil, fmt.Errorf("%s has no %s (404): it is a weir without objectives of an older version, or not a gateway's admin endpoint", name, path)
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answers %d: %s", name, answer.StatusCode, messageOf(body))
	case int64(len(body)) > most:
		return nil, fmt.Errorf("the answer of %s is longer than %d MiB: it is not that of a gateway", name, most>>20)
	}
	return body, nil
}
