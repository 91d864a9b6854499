package alert

import (
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	// resend is how often Alertmanager is told that an alert is still firing: it
	// keeps none over a restart. Prometheus does it as often.
	resend = time.Minute
	// lasting is how far ahead the end of a firing alert is set, so that it ends by
	// itself when the gateway is gone. Three posts may be lost before.
	lasting = 4 * resend
)

// alertsPath is where the version 2 API takes alerts.
const alertsPath = "/api/v2/alerts"

// NewAlertmanager makes a receiver of the Alertmanager at a base URL, or at that of its
// API. Members of a cluster are receivers of their own: each is to be told everything. The
// header is added to each request, such as an Authorization; it and client may be nil. Of
// client only the transport is used.
//
// A POST has an array of alerts, as the version 2 API's postableAlerts have it: labels,
// annotations, startsAt, endsAt, generatorURL. Firing alerts are posted once a minute,
// with an endsAt four minutes ahead.
func NewAlertmanager(address string, header http.Header, client *http.Client) (Receiver, error) {
	u, err := parseAddress("the Alertmanager's address", "http://alertmanager:9093", address)
	if err != nil {
		return nil, err
	}
	path := strings.TrimRight(u.Path, "/")
	switch {
	case strings.HasSuffix(path, "/api/v1/alerts") || strings.HasSuffix(path, "/api/v1"):
		return nil, errors.New("the Alertmanager's address is that of the version 1 API, which is gone: write its base URL, such as http://alertmanager:9093")
	case strings.HasSuffix(path, alertsPath):
	case strings.HasSuffix(path, "/api/v2"):
		path += "/alerts"
	default:
		path += alertsPath
	}
	u.Path, u.RawPath = path, ""
	open := u.User == nil && u.RawQuery == "" && len(header) == 0
	return &alertmanager{newPost("alertmanager", u, header, client, open)}, nil
}

type alertmanager struct{ *post }

func (a *alertmanager) manners() manners {
	return manners{identity: a.identity(), again: resend, most: maxBatch, close: a.close}
}

// postable is one of postableAlerts.
type postable struct {
	Labels       map[string]string `json:"labels"`
	Annotations  map[string]string `json:"annotations"`
	StartsAt     time.Time         `json:"startsAt"`
	EndsAt       time.Time         `json:"endsAt"`
	GeneratorURL string            `json:"generatorURL,omitempty"`
}

// Send posts a batch.
func (a *alertmanager) Send(ctx context.Context, batch Batch) error {
	body := make([]postable, len(batch.Alerts))
	for i, one := range batch.Alerts {
		body[i] = postable{one.Labels, one.Annotations, one.StartsAt, one.EndsAt, one.GeneratorURL}
		if one.Status == Firing {
			// A clock that was set back must not put the beginning behind the end, which is refused.
			body[i].StartsAt = notAfter(one.StartsAt, wall(batch.At))
			body[i].EndsAt = wall(batch.At.Add(lasting))
		}
	}
	return a.send(ctx, body, func(r *http.Response) error {
		// Login pages and wrong addresses answer 200 as well.
		if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "text/html" {
			return Permanent(fmt.Errorf("%s answers with a web page, so that is not Alertmanager's API: look at the address, and for a login page in between", a.url.Host))
		}
		return nil
	})
}

// parseAddress reads a receiver's address, which errors do not show.
func parseAddress(what, example, address string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSpace(address))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%s is no URL: write it like %s", what, example)
	}
	u.Fragment, u.RawFragment = "", ""
	return u, nil
}

// wall is a time as receivers get it.
func wall(t time.Time) time.Time { return t.UTC().Truncate(time.Millisecond) }
