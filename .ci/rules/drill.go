// Command rules drives the counts of objectives faster than time, for a Prometheus to scrape.
//
//	rules config NAME            prints the objectives of a check as GET /weir/slo/config would
//	rules drill ADDRESS SCALE    runs the drill, serves /metrics there, prints what the gateway's own alerts do
//
// The drill has the real tracker, alerts and metrics; only calls and time are made up. It prints a line of JSON when
// it begins, one for each alert that begins or ends, and one at its end, and then serves until its standard
// input is closed.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/telemetry"
	"github.com/weirgate/weir/slo"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "rules:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 2 && args[0] == "config":
		c, known := configs()[args[1]]
		if !known {
			return fmt.Errorf("no objectives %q", args[1])
		}
		c, _, err := c.Complete()
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(map[string]any{"config": c})
	case len(args) == 3 && args[0] == "drill":
		scale, err := strconv.ParseFloat(args[2], 64)
		if err != nil {
			return err
		}
		return drill(args[1], scale)
	}
	return errors.New("use: rules config NAME, or rules drill ADDRESS SCALE")
}

// stage is so long a time in which each share of calls is bad.
type stage struct {
	lasts time.Duration
	bad   float64
}

// stages: a healthy past; what the rule of an hour sees; health until the windows of six hours are clean; what
// only the rule of six hours sees; an outage; health.
var stages = []stage{
	{6*time.Hour + 30*time.Minute, 0}, {40 * time.Minute, 0.3}, {8 * time.Hour, 0.001}, {5 * time.Hour, 0.08}, {time.Hour, 0}, {10 * time.Minute, 1}, {40 * time.Minute, 0},
}

const (
	every = 200 * time.Millisecond // from one call to the next, in the drill's time
	looks = 10 * time.Second       // from one look at the objectives to the next, in the drill's time
)

// begun is when the drill begins, in its own time.
var begun = time.Date(2026, 11, 2, 0, 0, 0, 0, time.UTC)

// theater is what the drill is played with.
type theater struct {
	mu      sync.Mutex // guards all
	now     time.Time  // the drill's
	tracker *slo.Tracker
	alerts  *alert.Manager
	firing  map[string]bool
	out     *json.Encoder
	calls   int64
}

func drill(address string, scale float64) error {
	config, _, err := configs()["drill"].Complete()
	if err != nil {
		return err
	}
	d := &theater{now: begun, tracker: slo.New(), alerts: alert.New(alert.Options{}), firing: map[string]bool{}, out: json.NewEncoder(os.Stdout)}
	if err := d.tracker.Configure(config, begun); err != nil {
		return err
	}
	metrics := telemetry.New()
	metrics.SLO(func() telemetry.SLOState {
		d.mu.Lock()
		status := d.tracker.Status(d.now)
		d.mu.Unlock()
		return telemetry.SLOState{Classes: config.Classes, Totals: d.tracker.Totals, Status: &status}
	})
	registry := prometheus.NewRegistry()
	if err := metrics.Register(registry); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: promhttp.HandlerFor(registry, promhttp.HandlerOpts{})}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	start := time.Now()
	if err := d.out.Encode(map[string]any{"start": float64(start.UnixMilli()) / 1000, "scale": scale}); err != nil {
		return err
	}
	if err := d.play(start, scale); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	if err := server.Close(); err != nil {
		return err
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// play makes the calls of all stages, each at its time. It tells how far it was ever behind.
func (d *theater) play(start time.Time, scale float64) error {
	look, behind := begun, time.Duration(0)
	owed := 0.0 // bad calls, so that shares are exact
	for at, i, end := begun, 0, begun.Add(stages[0].lasts); ; at = at.Add(every) {
		for !at.Before(end) {
			if i++; i == len(stages) {
				return d.out.Encode(map[string]any{"end": at.Sub(begun).Seconds(), "calls": d.calls, "behind": behind.Seconds()})
			}
			end = end.Add(stages[i].lasts)
		}
		if wait := time.Until(start.Add(time.Duration(float64(at.Sub(begun)) / scale))); wait > 2*time.Millisecond {
			time.Sleep(wait)
		} else {
			behind = max(behind, -wait)
		}
		owed += stages[i].bad
		bad := owed >= 1
		if bad {
			owed--
		}
		if err := d.step(at, bad, !at.Before(look)); err != nil {
			return err
		}
		if !at.Before(look) {
			look = look.Add(looks)
		}
	}
}

// step makes one call, which ends at the given time, and looks at the objectives if asked to.
func (d *theater) step(at time.Time, bad, look bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = at
	d.calls++
	d.call(at, bad)
	if at.Nanosecond() == 0 {
		d.tracker.Tick(at)
	}
	if !look {
		return nil
	}
	d.alerts.Observe(at, d.tracker.Status(at))
	now := map[string]bool{}
	for _, a := range d.alerts.State().Alerts {
		if a.Status == alert.Firing {
			now[a.Labels["alertname"]+" "+a.Objective+" "+a.Model] = true
		}
	}
	for name := range now {
		if !d.firing[name] {
			if err := d.tell(at, name, "begins"); err != nil {
				return err
			}
		}
	}
	for name := range d.firing {
		if !now[name] {
			if err := d.tell(at, name, "ends"); err != nil {
				return err
			}
		}
	}
	d.firing = now
	return nil
}

func (d *theater) tell(at time.Time, name, what string) error {
	return d.out.Encode(map[string]any{what: name, "at": at.Sub(begun).Seconds()})
}

// none is a call that was never sent upstream.
type none struct{}

func (none) SentAt() (time.Time, bool) { return time.Time{}, false }

// call makes one call of half a second; a bad one gets no token and fails. Every third is to another model.
func (d *theater) call(at time.Time, bad bool) {
	model := "model-a"
	if d.calls%3 == 0 {
		model = "model-b"
	}
	received := at.Add(-500 * time.Millisecond)
	p := new(slo.Pending)
	d.tracker.Watch(p, "drill", model, received, true, none{})
	f := slo.Facts{Received: received, Ended: at, Input: -1, Output: -1}
	if bad {
		f.Ending = slo.Failed
		f.Values[slo.TTFT] = slo.AtLeast(3 * time.Second)
	} else {
		d.tracker.FirstToken(p, at.Add(-100*time.Millisecond))
		f.Values[slo.TTFT] = slo.Exactly(400 * time.Millisecond)
	}
	d.tracker.End(p, &f)
}
