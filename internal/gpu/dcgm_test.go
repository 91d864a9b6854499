package gpu

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// exporter serves what text says at the moment.
func exporter(t *testing.T, text *string) Source {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/metrics" || !strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
			t.Errorf("asked for %s as %q", r.URL, r.Header.Get("Accept"))
		}
		_, _ = io.WriteString(w, *text)
	}))
	t.Cleanup(server.Close)
	source, err := NewDCGM(server.URL, server.Client())
	if err != nil {
		t.Fatal(err)
	}
	return source
}

const two = `
# HELP DCGM_FI_DEV_SM_CLOCK SM clock frequency (in MHz).
# TYPE DCGM_FI_DEV_SM_CLOCK gauge
DCGM_FI_DEV_SM_CLOCK{gpu="1",UUID="GPU-b",device="nvidia1",modelName="NVIDIA H100",Hostname="node1"} 345
DCGM_FI_DEV_SM_CLOCK{gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA H100",Hostname="node1"} 1410
# TYPE DCGM_FI_DEV_MAX_SM_CLOCK gauge
DCGM_FI_DEV_MAX_SM_CLOCK{gpu="0",UUID="GPU-a"} 1980
# TYPE DCGM_FI_DEV_GPU_TEMP gauge
DCGM_FI_DEV_GPU_TEMP{gpu="0",UUID="GPU-a"} 61
# TYPE DCGM_FI_DEV_POWER_USAGE gauge
DCGM_FI_DEV_POWER_USAGE{gpu="0",UUID="GPU-a"} 412.687
DCGM_FI_DEV_POWER_USAGE{gpu="1",UUID="GPU-b"} 140737488355328
# TYPE DCGM_FI_DEV_POWER_MGMT_LIMIT gauge
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="0",UUID="GPU-a"} 650
DCGM_FI_DEV_POWER_MGMT_LIMIT{gpu="1",UUID="GPU-b"} 650
# TYPE DCGM_FI_DEV_ENFORCED_POWER_LIMIT gauge
DCGM_FI_DEV_ENFORCED_POWER_LIMIT{gpu="0",UUID="GPU-a"} 700
# TYPE DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION counter
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="0",UUID="GPU-a"} 3.19159391e+08
DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION{gpu="1",UUID="GPU-b"} 9223372036854775794
# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-a"} 100
DCGM_FI_DEV_GPU_UTIL{gpu="1",UUID="GPU-b"} 0
# TYPE DCGM_FI_PROF_GR_ENGINE_ACTIVE gauge
DCGM_FI_PROF_GR_ENGINE_ACTIVE{gpu="0",UUID="GPU-a"} 0.985
# TYPE DCGM_FI_DEV_MEM_COPY_UTIL gauge
DCGM_FI_DEV_MEM_COPY_UTIL{gpu="0",UUID="GPU-a"} 44
# TYPE DCGM_FI_PROF_DRAM_ACTIVE gauge
DCGM_FI_PROF_DRAM_ACTIVE{gpu="0",UUID="GPU-a"} 0.62
# TYPE DCGM_FI_DEV_FB_FREE gauge
DCGM_FI_DEV_FB_FREE{gpu="0",UUID="GPU-a"} 1000
DCGM_FI_DEV_FB_FREE{gpu="1",UUID="GPU-b"} 1000
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-a"} 80000
# TYPE DCGM_FI_DEV_FB_RESERVED gauge
DCGM_FI_DEV_FB_RESERVED{gpu="0",UUID="GPU-a"} 559
# TYPE DCGM_FI_DEV_XID_ERRORS gauge
DCGM_FI_DEV_XID_ERRORS{gpu="0",UUID="GPU-a",err_code="79",err_msg="GPU has fallen off the bus"} 79
DCGM_FI_DEV_XID_ERRORS{gpu="1",UUID="GPU-b"} 0
# TYPE DCGM_FI_DEV_ECC_DBE_VOL_TOTAL counter
DCGM_FI_DEV_ECC_DBE_VOL_TOTAL{gpu="0",UUID="GPU-a"} 2
# TYPE DCGM_FI_PROF_PCIE_TX_BYTES gauge
DCGM_FI_PROF_PCIE_TX_BYTES{gpu="0",UUID="GPU-a"} 1.5e+09
# TYPE DCGM_FI_PROF_PCIE_RX_BYTES gauge
DCGM_FI_PROF_PCIE_RX_BYTES{gpu="0",UUID="GPU-a"} 2.5e+09
# TYPE DCGM_FI_PROF_NVLINK_TX_BYTES gauge
DCGM_FI_PROF_NVLINK_TX_BYTES{gpu="0",UUID="GPU-a"} 3e+10
# TYPE DCGM_FI_PROF_NVLINK_RX_BYTES gauge
DCGM_FI_PROF_NVLINK_RX_BYTES{gpu="0",UUID="GPU-a"} 4e+10
# TYPE DCGM_FI_DEV_CLOCKS_EVENT_REASONS gauge
DCGM_FI_DEV_CLOCKS_EVENT_REASONS{gpu="0",UUID="GPU-a"} 68
# TYPE DCGM_FI_DEV_CLOCK_THROTTLE_REASONS gauge
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="0",UUID="GPU-a"} 1
DCGM_FI_DEV_CLOCK_THROTTLE_REASONS{gpu="1",UUID="GPU-b"} 1
# TYPE DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT gauge
DCGM_FI_DEV_NVSWITCH_TEMPERATURE_CURRENT{nvswitch="0"} 40
# TYPE DCGM_FI_DEV_MEMORY_TEMP gauge
DCGM_FI_DEV_MEMORY_TEMP{gpu="0",UUID="GPU-a"} 70
`

func TestDCGM(t *testing.T) {
	text := two
	got, err := exporter(t, &text).Sample(t.Context(), noon)
	if err != nil {
		t.Fatal(err)
	}
	want := []Reading{
		{Time: noon, Index: 0, UUID: "GPU-a", Utilization: Figure(0.985), MemoryBandwidth: Figure(0.62), MemoryBusy: Figure(0.44),
			Clock: Figure(1410), MaxClock: Figure(1980), Power: Figure(412.687), PowerLimit: Figure(700), Energy: Figure(319159.391),
			Reasons: PowerCap | HWThermal, ReasonsKnown: true, MemoryUsed: Figure(80000 << 20), MemoryTotal: Figure(81559 << 20),
			Temperature: Figure(61), PCIeSent: Figure(1.5e9), PCIeReceived: Figure(2.5e9), NVLinkSent: Figure(3e10), NVLinkReceived: Figure(4e10),
			Uncorrected: Figure(2), XID: Figure(79)},
		{Time: noon, Index: 1, UUID: "GPU-b", Utilization: Figure(0), Clock: Figure(345), PowerLimit: Figure(650), XID: Figure(0),
			Reasons: Idle, ReasonsKnown: true},
	}
	for i := range want {
		want[i].Name, want[i].Host = got[i].Name, got[i].Host // of whichever sample was read first
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestDCGMLabels(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want map[string]Reading // what identifies each, and Power
	}{
		"as the exporter writes": {`DCGM_FI_DEV_POWER_USAGE{gpu="3",UUID="GPU-x",modelName="NVIDIA L4",Hostname="n"} 1`,
			map[string]Reading{"GPU-x": {Index: 3, UUID: "GPU-x", Name: "NVIDIA L4", Host: "n", Power: Figure(1)}}},
		"small letters": {`DCGM_FI_DEV_POWER_USAGE{gpu="3",uuid="GPU-x",hostname="n"} 1`,
			map[string]Reading{"GPU-x": {Index: 3, UUID: "GPU-x", Host: "n", Power: Figure(1)}}},
		"two hosts, no UUID": {"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"a\"} 1\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",Hostname=\"b\"} 2",
			map[string]Reading{"a/0": {Host: "a", Power: Figure(1)}, "b/0": {Host: "b", Power: Figure(2)}}},
		"no number": {`DCGM_FI_DEV_POWER_USAGE{UUID="GPU-x"} 1`,
			map[string]Reading{"GPU-x": {Index: -1, UUID: "GPU-x", Power: Figure(1)}}},
		"slices that agree": {"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-x\",GPU_I_ID=\"3\"} 1\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-x\",GPU_I_ID=\"5\"} 1",
			map[string]Reading{"GPU-x": {UUID: "GPU-x", Power: Figure(1)}}},
		"slices that do not": {"DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-x\",GPU_I_ID=\"3\"} 1\nDCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-x\",GPU_I_ID=\"5\"} 2",
			map[string]Reading{"GPU-x": {UUID: "GPU-x"}}},
		"no figure": {`DCGM_FI_DEV_POWER_USAGE{gpu="0"} NaN`, map[string]Reading{"/0": {}}},
		"negative":  {`DCGM_FI_DEV_POWER_USAGE{gpu="0"} -1`, map[string]Reading{"/0": {}}},
		"a long name": {`DCGM_FI_DEV_POWER_USAGE{gpu="0",modelName="` + strings.Repeat("x", 500) + `"} 1`,
			map[string]Reading{"/0": {Name: strings.Repeat("x", 128), Power: Figure(1)}}},
	} {
		text := tt.text + "\n"
		readings, err := exporter(t, &text).Sample(t.Context(), time.Time{})
		got := map[string]Reading{}
		for _, r := range readings {
			got[r.key()] = r
		}
		if err != nil || len(readings) != len(tt.want) || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: got %+v (%v)", name, readings, err)
		}
	}
}

// TestDCGMEvents: counts of a sliding window, of which only growth tells of now.
func TestDCGMEvents(t *testing.T) {
	text := ""
	source := exporter(t, &text)
	for i, tt := range []struct {
		power, heat string // counts; "" is not shown
		want        Reasons
		known       bool
	}{
		{"5", "0", 0, false}, // whether that is over nobody knows
		{"5", "0", 0, true},
		{"7", "0", PowerCap, true},
		{"7", "0", PowerCap, true}, // not collected since
		{"8", "1", PowerCap | HWThermal, true},
		{"6", "1", HWThermal, true},
		{"6", "", 0, true},
		{"6", "2", HWThermal, true},
		{"", "", 0, false},
	} {
		text = "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\"} 1\n"
		for event, count := range map[string]string{"power_cap": tt.power, "hw_thermal": tt.heat, "new_in_2030": "1"} {
			if count != "" {
				text += "DCGM_EXP_CLOCK_EVENTS_COUNT{gpu=\"0\",clock_event=\"" + event + "\",window_size_in_ms=\"300000\"} " + count + "\n"
			}
		}
		readings, err := source.Sample(t.Context(), noon)
		if err != nil || len(readings) != 1 || readings[0].Reasons != tt.want || readings[0].ReasonsKnown != tt.known {
			t.Errorf("scrape %d: %+v (%v)", i, readings, err)
		}
	}
}

func TestDCGMErrors(t *testing.T) {
	for name, tt := range map[string]struct {
		status int
		text   string
		want   string
	}{
		"no exporter":   {200, "go_goroutines 7\n", "is this the address of a dcgm-exporter"},
		"empty":         {200, "", "is this the address of a dcgm-exporter"},
		"no GPU":        {200, "DCGM_FI_DEV_POWER_USAGE{nvswitch=\"0\"} 1\n", "is this the address of a dcgm-exporter"},
		"not found":     {404, "", "it answered 404 Not Found"},
		"a page":        {200, "<html>", "not in Prometheus' text format"},
		"no name":       {200, "# TYPE DCGM_FI_DEV_POWER_USAGE gauge\n{} 1\n", "the parser failed on it"},
		"more than all": {200, strings.Repeat("#", maxBody+1), "longer than 8 MiB"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tt.status)
			_, _ = io.WriteString(w, tt.text)
		}))
		source, err := NewDCGM(strings.Replace(server.URL, "http://", "http://user:hunter2@", 1)+"/metrics?key=hunter3", nil)
		if err != nil {
			t.Fatal(err)
		}
		readings, err := source.Sample(t.Context(), noon)
		server.Close()
		if len(readings) != 0 || err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), server.URL) {
			t.Errorf("%s: %+v, error %v does not say %q", name, readings, err, tt.want)
		}
		_, gone := source.Sample(t.Context(), noon)
		if said := err.Error() + gone.Error() + source.Name(); strings.Contains(said, "hunter") || !strings.Contains(gone.Error(), "is it running") {
			t.Errorf("%s: %s", name, said)
		}
		if err := source.Close(); err != nil {
			t.Error(err)
		}
	}
	for address, want := range map[string]string{
		"http://127.0.0.1:9400": "dcgm http://127.0.0.1:9400/metrics", "https://a/b/": "dcgm https://a/b/metrics",
		"http://a/metrics": "dcgm http://a/metrics", "127.0.0.1:9400": "", "ftp://a": "", "": "", "http://u:secret@a:b:c": "",
	} {
		source, err := NewDCGM(address, nil)
		if want == "" {
			if err == nil || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: error %v", address, err)
			}
		} else if err != nil || source.Name() != want {
			t.Errorf("%q: %v (%v)", address, source, err)
		}
	}
}

// stuck is an exporter that does not answer.
type stuck struct{}

func (stuck) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// TestDCGMStuck: an exporter that hangs is given up after three seconds, and asked
// again ever more rarely.
func TestDCGMStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, err := NewDCGM("http://exporter", &http.Client{Transport: stuck{}})
		if err != nil {
			t.Fatal(err)
		}
		var states []State
		s := NewSampler(source, Options{Report: func(s State) { states = append(states, s) }})
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		began := time.Now()
		s.Run(ctx)
		if took := time.Since(began); took != time.Hour {
			t.Errorf("ended after %v", took)
		}
		if len(states) != 1 || !strings.Contains(states[0].Error, "deadline exceeded") || states[0].Since.Sub(began) != patience {
			t.Errorf("reported %+v", states)
		}
	})
}

func FuzzDCGM(f *testing.F) {
	f.Add(two, two)
	f.Add("DCGM_EXP_CLOCK_EVENTS_COUNT{gpu=\"0\",clock_event=\"power_cap\"} 1\n", "DCGM_EXP_CLOCK_EVENTS_COUNT{gpu=\"0\",clock_event=\"power_cap\"} 2\n")
	f.Add("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 1e308\n# TYPE DCGM_FI_DEV_FB_FREE histogram\nDCGM_FI_DEV_FB_FREE_sum{gpu=\"0\"} 1\n", "\x00")
	f.Fuzz(func(t *testing.T, first, then string) {
		texts := []string{first, then}
		source, err := NewDCGM("http://exporter", &http.Client{Transport: says{&texts}})
		if err != nil {
			t.Fatal(err)
		}
		s := NewSampler(source, Options{})
		for i := range 2 {
			now := s.epoch.Add(time.Duration(i+1) * time.Second)
			readings, err := source.Sample(t.Context(), now)
			if (len(readings) == 0) != (err != nil) {
				t.Fatalf("%d readings, error %v", len(readings), err)
			}
			seen := map[string]bool{}
			for _, r := range readings {
				if seen[r.key()] {
					t.Errorf("%s twice", r.key())
				}
				seen[r.key()] = true
				for name, n := range map[string]Number{"util": r.Utilization, "bandwidth": r.MemoryBandwidth, "busy": r.MemoryBusy} {
					if x, known := n.Get(); known && !(x >= 0 && x <= 1) {
						t.Errorf("%s is %v", name, x)
					}
				}
			}
			s.keep(readings)
		}
		w := s.Window(s.epoch, s.epoch.Add(2*time.Second))
		if w.GPUs > maxGPUs {
			t.Errorf("%+v", w)
		}
		for name, n := range map[string]Number{"util": w.Utilization, "bandwidth": w.MemoryBandwidth, "busy": w.MemoryBusy, "clock": w.ClockRatio} {
			if x, known := n.Get(); known && !(x >= 0 && x <= 1+1e-9) {
				t.Errorf("%s is %v", name, x)
			}
		}
		if joules, known := w.Energy.Get(); known && !(joules >= 0 && joules <= 3*mostWatts*maxGPUs) {
			t.Errorf("%v J", joules)
		}
	})
}

// says answers with one text after another.
type says struct{ texts *[]string }

func (s says) RoundTrip(*http.Request) (*http.Response, error) {
	text := (*s.texts)[0]
	*s.texts = (*s.texts)[1:]
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(text))}, nil
}
