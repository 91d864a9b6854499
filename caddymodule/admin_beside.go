package caddymodule

import (
	"net/http"

	"github.com/weirgate/weir/internal/engine"
	"github.com/weirgate/weir/internal/gateway"
	"github.com/weirgate/weir/internal/gpu"
	"github.com/weirgate/weir/internal/otlpin"
	"github.com/weirgate/weir/internal/telemetry"
)

// lookingOn returns the app of the configuration that runs, and what looks on for
// it; neither is nil.
func lookingOn() (*App, *gateway.Beside) {
	s := current()
	if s == nil {
		return new(App), new(gateway.Beside)
	}
	return s.besideNow()
}

// enginesState answers GET /weir/engines.
func enginesState(w http.ResponseWriter, _ *http.Request) error {
	_, b := lookingOn()
	if len(b.Engines) == 0 {
		return notThere("engine", "add the global option: weir { engine auto http://127.0.0.1:8000 }")
	}
	type one struct {
		engine.State
		Upstreams []string `json:"upstreams"` // whose calls it serves
	}
	state := struct {
		Engines []one `json:"engines"`
	}{}
	for _, e := range b.Engines {
		state.Engines = append(state.Engines, one{e.Gauges.State(), e.Upstreams})
	}
	return respond(w, state)
}

// gpusState answers GET /weir/gpus.
func gpusState(w http.ResponseWriter, _ *http.Request) error {
	a, b := lookingOn()
	if a.GPU == nil {
		return notThere("GPUs", "add the global option: weir { gpu nvml }")
	}
	if b.GPUs == nil {
		return notThere("GPUs that can be sampled", "the log says why")
	}
	readings := b.GPUs.Latest()
	if readings == nil {
		readings = []gpu.Reading{}
	}
	return respond(w, struct {
		gpu.State
		Readings []gpu.Reading `json:"readings"`
	}{b.GPUs.State(), readings})
}

// tracesState answers GET /weir/traces.
func tracesState(w http.ResponseWriter, _ *http.Request) error {
	a, b := lookingOn()
	if a.OTLP == nil {
		return notThere("spans", "add the global option: weir { otlp http://127.0.0.1:4318 }")
	}
	state := struct {
		Export   telemetry.TracerState         `json:"export"`
		Metrics  *telemetry.MetricsExportState `json:"metrics,omitempty"`
		Receiver *otlpin.State                 `json:"receiver,omitempty"`
	}{Export: b.Tracer.State()}
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
