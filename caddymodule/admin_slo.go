package caddymodule

import (
	"net/http"
	"time"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/probe"
	"github.com/weirgate/weir/internal/slofile"
	"github.com/weirgate/weir/slo"
)

// theObjectives returns what the running configuration promises and keeps.
func theObjectives() (*objectives, *App, error) {
	s := current()
	if s == nil {
		return nil, nil, notThere("objectives", "no weir runs")
	}
	app := s.rooms.theRunning()
	if app == nil || !app.promises() {
		return nil, nil, notThere("objectives", "they are switched off; take slo off out of the global option weir")
	}
	return s.rooms.objectives, app, nil
}

// sloState answers GET /weir/slo: how all objectives stand.
func sloState(w http.ResponseWriter, _ *http.Request) error {
	o, app, err := theObjectives()
	if err != nil {
		return err
	}
	state := struct {
		Status slo.Status  `json:"status"`
		Alerts alert.State `json:"alerts"`
		// Where the counts, and alerts, outlive the process.
		Kept       *slofile.Status     `json:"kept,omitempty"`
		AlertsKept *alert.KeeperStatus `json:"alerts_kept,omitempty"`
	}{Status: o.tracker.Status(time.Now()), Alerts: o.alerts.State()}
	file, keeper := app.shared.rooms.kept()
	if file != nil {
		at := file.Status()
		state.Kept = &at
	}
	if keeper != nil {
		at := keeper.Status()
		state.AlertsKept = &at
	}
	return respond(w, state)
}

// kept returns what keeps counts and alerts on disk, nil what does not.
func (r *rooms) kept() (*slofile.File, *alert.Keeper) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.objectives.file, r.objectives.keeper
}

// sloConfig answers GET /weir/slo/config: what is promised, completed.
func sloConfig(w http.ResponseWriter, _ *http.Request) error {
	_, app, err := theObjectives()
	if err != nil {
		return err
	}
	return respond(w, struct {
		Config slo.Config `json:"config"`
	}{app.promised})
}

// sloSnapshot answers GET /weir/slo/snapshot: all counts, in the format of slo, for
// who adds up several gateways.
func sloSnapshot(w http.ResponseWriter, _ *http.Request) error {
	o, _, err := theObjectives()
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/octet-stream")
	_, err = w.Write(o.tracker.Copy())
	return err
}

// probesState answers GET /weir/probes.
func probesState(w http.ResponseWriter, _ *http.Request) error {
	state := struct {
		Probes []probe.State `json:"probes"`
	}{Probes: []probe.State{}}
	if s := current(); s != nil {
		if app := s.rooms.theRunning(); app != nil {
			for _, p := range app.probing {
				state.Probes = append(state.Probes, p.State())
			}
		}
	}
	return respond(w, state)
}
