package caddymodule

import (
	"net/http"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/otlpin"
	"github.com/weirgate/weir/internal/telemetry"
)

// running returns the app of the configuration that runs.
func running() *App {
	s := current()
	if s == nil {
		return nil
	}
	return s.rooms.theRunning()
}

// enginesState answers GET /weir/engines.
func enginesState(w http.ResponseWriter, _ *http.Request) error {
	a := running()
	if a == nil || a.beside == nil || len(a.beside.Engines) == 0 {
		return notThere("engine", "add the global option: weir { engine auto http://127.0.0.1:8000 }")
	}
	type one struct {
		engine.State
		Upstreams []string `json:"upstreams"` // whose calls it serves
	}
	state := struct {
		Engines []one `json:"engines"`
	}{}
	for _, e := range a.beside.Engines {
		state.Engines = append(state.Engines, one{e.Gauges.State(), e.Upstreams})
	}
	return respond(w, state)
}

// gpusState answers GET /weir/gpus.
func gpusState(w http.ResponseWriter, _ *http.Request) error {
	a := running()
	if a == nil || a.GPU == nil || a.beside == nil {
		return notThere("GPUs", "add the global option: weir { gpu nvml }")
	}
	if a.beside.GPUs == nil {
		return notThere("GPUs that can be sampled", "the log says why")
	}
	readings := a.beside.GPUs.Latest()
	if readings == nil {
		readings = []gpu.Reading{}
	}
	return respond(w, struct {
		gpu.State
		Readings []gpu.Reading `json:"readings"`
	}{a.beside.GPUs.State(), readings})
}

// tracesState answers GET /weir/traces.
func tracesState(w http.ResponseWriter, _ *http.Request) error {
	a := running()
	if a == nil || a.OTLP == nil || a.beside == nil {
		return notThere("spans", "add the global option: weir { otlp http://127.0.0.1:4318 }")
	}
	state := struct {
		Export   telemetry.TracerState         `json:"export"`
		Metrics  *telemetry.MetricsExportState `json:"metrics,omitempty"`
		Receiver *otlpin.State                 `json:"receiver,omitempty"`
	}{Export: a.beside.Tracer.State()}
	if a.metricsExport != nil {
		exported := a.metricsExport.State()
		state.Metrics = &exported
	}
	if a.reception != nil {
		received := a.reception.receiver.State()
		state.Receiver = &received
	}
	return respond(w, state)
}
