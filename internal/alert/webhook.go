package alert

import (
	"context"
	"net/http"
)

// NewWebhook makes a receiver of an address that takes Alertmanager's webhook payload,
// version 4, so that what was written for that works. The header is added to each
// request; it and client may be nil. Of client only the transport is used.
//
// A POST has one alert, when it begins and when it ends: so a receiver that looks at the
// status of the whole payload only, or at groupKey, is right too. The object:
//
//	version            "4"
//	status             "firing" or "resolved", the alert's
//	receiver           "weir"
//	groupKey           the same from an alert's beginning to its end
//	truncatedAlerts    0
//	groupLabels        the alert's labels
//	commonLabels       the same
//	commonAnnotations  the alert's annotations
//	externalURL        the admin endpoint's page of the class, or ""
//	alerts             one alert: status, labels, annotations, startsAt, endsAt (year 1
//	                   while firing), generatorURL, fingerprint
//
// Any answer from 200 to 299 means that it arrived.
func NewWebhook(address string, header http.Header, client *http.Client) (Receiver, error) {
	u, err := parseAddress("the webhook's address", "https://hooks.example.com/weir", address)
	if err != nil {
		return nil, err
	}
	open := u.User == nil && u.RawQuery == "" && len(header) == 0 && (u.Path == "" || u.Path == "/")
	return &webhook{newPost("webhook", u, header, client, open)}, nil
}

type webhook struct{ *post }

func (w *webhook) manners() manners {
	return manners{identity: w.identity(), most: 1, close: w.close}
}

// payload is Alertmanager's webhook message.
type payload struct {
	Version           string            `json:"version"`
	GroupKey          string            `json:"groupKey"`
	TruncatedAlerts   int               `json:"truncatedAlerts"`
	Status            Status            `json:"status"`
	Receiver          string            `json:"receiver"`
	GroupLabels       map[string]string `json:"groupLabels"`
	CommonLabels      map[string]string `json:"commonLabels"`
	CommonAnnotations map[string]string `json:"commonAnnotations"`
	ExternalURL       string            `json:"externalURL"`
	Alerts            []Alert           `json:"alerts"`
}

// Send posts each alert.
func (w *webhook) Send(ctx context.Context, batch Batch) error {
	for _, a := range batch.Alerts {
		body := payload{
			Version: "4", GroupKey: "weir:" + a.Fingerprint, Status: a.Status, Receiver: "weir",
			GroupLabels: a.Labels, CommonLabels: a.Labels, CommonAnnotations: a.Annotations,
			ExternalURL: a.GeneratorURL, Alerts: []Alert{a},
		}
		if err := w.send(ctx, body, nil); err != nil {
			return err
		}
	}
	return nil
}
