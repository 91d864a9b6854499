package caddymodule

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
)

// exporter answers as a dcgm-exporter does, with a counter of energy that grows by
// 100 J a second.
func exporter(scrapes *atomic.Int64) http.HandlerFunc {
	began := time.Now()
	return func(w http.ResponseWriter, _ *http.Request) {
		scrapes.Add(1)
		const labels = `{gpu="0",UUID="GPU-1",modelName="H200",Hostname="h"}`
		for name, value := range map[string]float64{
			"DCGM_FI_DEV_GPU_UTIL": 80, "DCGM_FI_DEV_SM_CLOCK": 990, "DCGM_FI_DEV_MAX_SM_CLOCK": 1980, "DCGM_FI_DEV_POWER_USAGE": 100,
			"DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": time.Since(began).Seconds() * 100e3, // mJ
		} {
			fmt.Fprintf(w, "%s%s %g\n", name, labels, value)
		}
	}
}

// TestSurroundings: records say what engine and GPUs were doing, the admin API
// shows both, and metrics do.
func TestSurroundings(t *testing.T) {
	e, err := sim.Start(sim.Config{Slots: 1, PrefillBase: 200 * time.Millisecond, DecodeBase: 20 * time.Millisecond, OutputMin: 20, OutputMax: 20})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	upstream := serve(t, e)
	var scrapes atomic.Int64
	dcgm := serve(t, exporter(&scrapes))
	site := newSite(t)
	globals := fmt.Sprintf("weir {\nengine vllm http://%s {\nevery 100ms\nmax_num_seqs 1\n}\ngpu dcgm http://%s/metrics\n}", upstream, dcgm)
	r := start(t, globals, site.http("weir\nreverse_proxy "+upstream))
	until(t, "readings of engine and GPUs", func() bool {
		status, engines := r.get("/weir/engines")
		_, gpus := r.get("/weir/gpus")
		return status == http.StatusOK && strings.Contains(string(engines), `"working":true`) && strings.Contains(string(gpus), `"GPU-1"`)
	})
	c := client(t, "http/1.1")
	done := make(chan error, 3)
	for n := range 3 { // on one slot: two of them wait
		go func() {
			res, err := c.Do(post(t.Context(), t, site.url("http/1.1", "/v1/chat/completions"), "beside",
				fmt.Sprintf(`{"model":"m","stream":true,"max_tokens":20,"messages":[{"role":"user","content":"%d"}]}`, n)))
			if err == nil {
				_, err = io.Copy(io.Discard, res.Body)
				res.Body.Close()
			}
			done <- err
		}()
	}
	for range 3 {
		if err := <-done; err != nil {
			t.Fatal(err)
		}
	}
	waited := 0
	for _, rec := range r.recordsOf("beside", 3) {
		if !rec.AtDispatch.Running.IsKnown() || !rec.AtFirstToken.Running.IsKnown() || !rec.AtDispatch.Age.IsKnown() {
			t.Errorf("the engine's gauges are missing: %+v, %+v", rec.AtDispatch, rec.AtFirstToken)
		}
		if rec.AtFirstToken.Waiting.Or(0) > 0 || rec.AtFirstToken.Running.Or(0) > 0 {
			waited++
		}
		if rec.GPU.GPUs != 1 || !near(rec.GPU.Utilization, 0.8) || !near(rec.GPU.ClockRatio, 0.5) {
			t.Errorf("GPU window %+v", rec.GPU)
		}
	}
	if waited == 0 {
		t.Error("no record saw the other calls in the engine")
	}
	_, metrics := r.get("/metrics")
	for _, name := range []string{"weir_engine_running", "weir_gpu_utilization_ratio"} {
		if !strings.Contains(string(metrics), name) {
			t.Errorf("no metric %s", name)
		}
	}

	// A reload that says the same goes on with what runs; one that says nothing ends it.
	before := scrapes.Load()
	r.load(globals, site.http("weir\nreverse_proxy "+upstream))
	var state struct {
		Engines []struct {
			Readings int `json:"readings"`
		} `json:"engines"`
	}
	until(t, "the new configuration", func() bool {
		_, body := r.get("/weir/engines")
		return json.Unmarshal(body, &state) == nil && len(state.Engines) == 1
	})
	if state.Engines[0].Readings < 5 {
		t.Errorf("%d readings after a reload: they were forgotten", state.Engines[0].Readings)
	}
	until(t, "more samples of the GPUs", func() bool { return scrapes.Load() > before })
	r.load("", site.http("weir\nreverse_proxy "+upstream))
	until(t, "an end of the watching", func() bool {
		status, _ := r.get("/weir/engines")
		n := 0
		watchers.Range(func(_, _ any) bool { n++; return true })
		return status == http.StatusNotFound && n == 0
	})
	for _, path := range []string{"/weir/gpus", "/weir/traces"} {
		if status, body := r.get(path); status != http.StatusNotFound || !strings.Contains(string(body), "add the global option") {
			t.Errorf("%s answers %d: %s", path, status, body)
		}
	}
}

func near(n call.Number, want float64) bool {
	x, known := n.Get()
	return known && math.Abs(x-want) < 1e-9
}

// TestNoGPU: without a driver there is one clear line, and calls go on.
func TestNoGPU(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	site := newSite(t)
	r := start(t, "weir {\ngpu nvml\n}", site.http("weir\nreverse_proxy "+upstream))
	res, err := client(t, "http/1.1").Do(post(t.Context(), t, site.url("http/1.1", "/v1/chat/completions"), "no-gpu", `{"model":"m","stream":true,"messages":[]}`))
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, res.Body)
	res.Body.Close()
	if rec := r.record("no-gpu"); rec.Outcome != call.Completed {
		t.Errorf("outcome %s", rec.Outcome)
	}
}
