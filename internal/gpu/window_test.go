package gpu

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"sync"
	"testing"
	"time"
)

// none is a source for samplers that are fed by hand.
type none struct{ Source }

func (none) Name() string { return "none" }

// at is so many seconds after the epoch.
func (s *Sampler) at(seconds float64) time.Time {
	return s.epoch.Add(time.Duration(math.Round(seconds * 1e9)))
}

// busy is a reading of a GPU at work.
func busy(s *Sampler, index int, seconds, util, watts float64) Reading {
	return Reading{Time: s.at(seconds), Index: index, Utilization: Figure(util), Power: Figure(watts)}
}

func TestWindow(t *testing.T) {
	s := NewSampler(none{}, Options{})
	for i := 1; i <= 20; i++ {
		a := busy(s, 0, float64(i), float64(i)/100, 100)
		a.MemoryBandwidth, a.MemoryBusy = Figure(0.5), Figure(0.25)
		a.Clock, a.MaxClock, a.ReasonsKnown = Figure(2000-float64(i)*50), Figure(2000), true
		if i == 10 {
			a.Reasons = PowerCap | AppClocks
		}
		if i == 12 {
			a.Reasons, a.Utilization, a.Clock = Idle, Figure(0), Figure(300) // no throttling
		}
		b := busy(s, 1, float64(i), 0.5, 200)
		if i == 15 {
			b.Reasons, b.ReasonsKnown = HWThermal|1<<20, true
		}
		s.keep([]Reading{a, b})
	}
	for _, tt := range []struct {
		name     string
		from, to float64
		want     Window
	}{
		{"two seconds of samples", 4, 6, Window{GPUs: 2, Samples: 6, // those at 4 only touch it
			Utilization: Figure((0.055 + 0.5) / 2), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25), ClockRatio: Figure(0.85), Energy: Figure(600)}},
		{"ends within samples", 4.5, 6.25, Window{GPUs: 2, Samples: 6,
			Utilization: Figure(((0.5*5+1*6+0.25*7)/100 + 1.75*0.5) / 3.5), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(1 - 7*0.025), Energy: Figure(525)}},
		{"a reason", 9.5, 9.6, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.3), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(0.75), Reasons: PowerCap, Energy: Figure(30)}},
		{"idle", 11.2, 11.8, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.25), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25), Energy: Figure(180)}},
		{"reasons of the other", 14.5, 14.5, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.325), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(1 - 15*0.025), Reasons: HWThermal | 1<<20, Energy: Figure(0)}},
		{"the next sample is not there yet", 19.5, 20.5, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.35), MemoryBandwidth: Figure(0.5),
			MemoryBusy: Figure(0.25), ClockRatio: Figure(0.5), Energy: Figure(300)}},
		{"after the last sample", 20.2, 20.4, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.35), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(0.5), Energy: Figure(60)}},
		{"longer than samples speak", 20, 25, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.35), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(0.5)}},
		{"before the first", -0.5, 1, Window{GPUs: 2, Samples: 2, Utilization: Figure(0.255), MemoryBandwidth: Figure(0.5), MemoryBusy: Figure(0.25),
			ClockRatio: Figure(0.975)}},
		{"long before", -9, -5, Window{}},
		{"long after", 30, 31, Window{}},
		{"backwards", 6, 5, Window{}},
	} {
		got := s.Window(s.at(tt.from), s.at(tt.to))
		if !alike(got, tt.want) {
			t.Errorf("%s:\n got %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
	if w := (*Sampler)(nil).Window(noon, noon); !w.IsZero() {
		t.Errorf("nil: %+v", w)
	}
}

// alike compares windows; a sample that only touches one weighs a billionth.
func alike(a, b Window) bool {
	same := func(x, y Number) bool {
		return x.IsKnown() == y.IsKnown() && math.Abs(x.Or(0)-y.Or(0)) < 1e-7*max(1, y.Or(0))
	}
	return a.GPUs == b.GPUs && a.Samples == b.Samples && a.Reasons == b.Reasons && same(a.Utilization, b.Utilization) &&
		same(a.MemoryBandwidth, b.MemoryBandwidth) && same(a.MemoryBusy, b.MemoryBusy) && same(a.ClockRatio, b.ClockRatio) && same(a.Energy, b.Energy)
}

// TestWindowGPUsComeAndGo: energy is that of all GPUs or unknown.
func TestWindowGPUsComeAndGo(t *testing.T) {
	s := NewSampler(none{}, Options{})
	for i := 1; i <= 40; i++ {
		readings := []Reading{busy(s, 0, float64(i), 1, 100)}
		if i <= 20 { // is lost then
			readings = append(readings, busy(s, 1, float64(i), 0, 50))
		}
		if i >= 30 { // shows no power
			readings = append(readings, Reading{Time: s.at(float64(i)), Index: 2, Utilization: Figure(0)})
		}
		s.keep(readings)
	}
	for _, tt := range []struct {
		from, to float64
		gpus     int
		joules   float64
	}{{5, 15, 2, 1500}, {15, 21, 2, 900}, {15, 25, 2, -1}, {23, 27, 1, 400}, {25, 35, 2, -1}, {35, 36, 2, -1}} {
		w := s.Window(s.at(tt.from), s.at(tt.to))
		if joules, known := w.Energy.Get(); w.GPUs != tt.gpus || known != (tt.joules >= 0) || known && !near(joules, tt.joules) {
			t.Errorf("%v to %v: %+v", tt.from, tt.to, w)
		}
	}
}

// TestWindowIsAnyCut: whatever is cut out, the figures lie within those of the
// samples.
func TestWindowIsAnyCut(t *testing.T) {
	s := NewSampler(none{}, Options{})
	for i := range 2 * ring {
		r := busy(s, 0, float64(i)+rand.Float64()/2, rand.Float64(), 100+rand.Float64()*100)
		r.Clock, r.MaxClock = Figure(1000+rand.Float64()*900), Figure(2000)
		s.keep([]Reading{r})
	}
	end := float64(2 * ring)
	for range 2000 {
		from := end - rand.Float64()*900
		to := min(end, from+math.Pow(10, -3+6*rand.Float64()))
		w := s.Window(s.at(from), s.at(to))
		util, known := w.Utilization.Get()
		clock, alsoKnown := w.ClockRatio.Get()
		watts := w.Energy.Or(0) / (to - from)
		if !known || util < 0 || util > 1 || !alsoKnown || clock < 0.5 || clock > 0.95 || w.GPUs != 1 ||
			math.Abs(float64(w.Samples)-(to-from)) > 3 || !w.Energy.IsKnown() || to-from > 1e-2 && (watts < 99.9 || watts > 200.1) {
			t.Fatalf("%v to %v: %+v", from, to, w)
		}
	}
}

func TestManyGPUs(t *testing.T) {
	s := NewSampler(none{}, Options{})
	fill := func(seconds float64, first, n int) int {
		var readings []Reading
		for i := range n {
			readings = append(readings, busy(s, first+i, seconds, 1, 1))
		}
		return s.keep(readings)
	}
	if left := fill(1, 0, 100); left != 36 || len(s.tracks) != maxGPUs || len(s.Latest()) != maxGPUs {
		t.Errorf("left out %d, kept %d", left, len(s.tracks))
	}
	if left := fill(1.5+keep.Seconds(), 60, 10); left != 0 { // the old ones make room
		t.Errorf("left out %d", left)
	}
	if w := s.Window(s.at(keep.Seconds()+1), s.at(keep.Seconds()+2)); w.GPUs != 10 || len(s.tracks) != maxGPUs {
		t.Errorf("%+v of %d", w, len(s.tracks))
	}
	if fill(1, 60, 1) != 0 || s.Window(s.at(0), s.at(2)).GPUs != 58 { // goes back in time: dropped
		t.Errorf("%+v", s.Window(s.at(0), s.at(2)))
	}
}

func TestReasons(t *testing.T) {
	for r, want := range map[Reasons][]string{
		0: nil, Idle | AppClocks: nil, PowerCap: {"power_cap"}, Idle | PowerCap | HWSlowdown: {"power_cap", "hw_slowdown"},
		SyncBoost | SWThermal | HWThermal | PowerBrake:  {"sync_boost", "sw_thermal", "hw_thermal", "power_brake"},
		DisplayClock | BoardLimit | Reliability | 1<<60: {"display_clock", "board_limit", "reliability", "other"},
	} {
		if got := r.Names(); !reflect.DeepEqual(got, want) {
			t.Errorf("%x: %q", uint64(r), got)
		}
	}
	for r := range Reasons(1 << 12) {
		b, err := json.Marshal(r)
		var back Reasons
		if err != nil || json.Unmarshal(b, &back) != nil || back != r {
			t.Fatalf("%x was written as %s (%v) and read as %x", uint64(r), b, err, uint64(back))
		}
	}
	if err := new(Reasons).UnmarshalJSON([]byte("3")); err == nil {
		t.Error("a number was read as names")
	}
}

func TestNumbers(t *testing.T) {
	for _, x := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		if Figure(x).IsKnown() || figureWithin(x, -math.MaxFloat64, math.MaxFloat64).IsKnown() {
			t.Errorf("%v is known", x)
		}
	}
	r := Reading{Power: Figure(0), Clock: Figure(1.5)}
	b, err := json.Marshal(r)
	if want := `{"time":"0001-01-01T00:00:00Z","index":0,"sm_clock_mhz":1.5,"power_watts":0,"clock_reasons_known":false}`; err != nil || string(b) != want {
		t.Errorf("%s (%v)", b, err)
	}
	var back Reading
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, r) {
		t.Errorf("%+v (%v)", back, err)
	}
	if err := json.Unmarshal([]byte(`{"power_watts":null,"sm_clock_mhz":"x"}`), &back); err == nil || back.Power.IsKnown() {
		t.Errorf("%+v (%v)", back, err)
	}
}

// TestConcurrent is for the race detector.
func TestConcurrent(t *testing.T) {
	s := NewSampler(none{}, Options{})
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			for j := range 300 {
				now := float64(j) / 10
				switch i {
				case 0:
					s.take(s.at(now), outcome{readings: []Reading{busy(s, 0, now, 1, 100), busy(s, 1, now, 1, 100)}})
				case 1:
					s.Count(s.at(now), 1)
				default:
					s.Window(s.at(now-3), s.at(now))
					s.Share(s.at(now-3), s.at(now), 3)
					s.Latest()
					s.State()
				}
			}
		})
	}
	work.Wait()
	if s.State().GPUs != 2 || s.counted(29) != 10 {
		t.Errorf("%+v, %d", s.State(), s.counted(29))
	}
}

// benchSampler has sampled eight GPUs for twenty minutes.
func benchSampler() *Sampler {
	s := NewSampler(none{}, Options{})
	for i := range 1200 {
		var readings []Reading
		for g := range 8 {
			r := busy(s, g, float64(i), 0.9, 500)
			r.MemoryBandwidth, r.MemoryBusy, r.Energy = Figure(0.6), Figure(0.8), Figure(float64(i)*500)
			r.Clock, r.MaxClock, r.Reasons, r.ReasonsKnown = Figure(1700), Figure(1980), PowerCap, true
			readings = append(readings, r)
		}
		s.keep(readings)
		s.Count(s.at(float64(i)+0.5), 1000)
	}
	return s
}

func BenchmarkWindow(b *testing.B) {
	s := benchSampler()
	for name, length := range map[string]float64{"1s": 1, "10s": 10, "10min": 600} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			from, to := s.at(1199.4-length), s.at(1199.4)
			for b.Loop() {
				if s.Window(from, to).GPUs != 8 {
					b.Fatal("no window")
				}
			}
		})
	}
}

func BenchmarkShare(b *testing.B) {
	s := benchSampler()
	for name, length := range map[string]float64{"1s": 1, "10s": 10, "10min": 600} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			from, to := s.at(1199.4-length), s.at(1199.4)
			for b.Loop() {
				if _, ok := s.Share(from, to, 100); !ok {
					b.Fatal("no share")
				}
			}
		})
	}
}

func BenchmarkCount(b *testing.B) {
	s := NewSampler(none{}, Options{})
	now := time.Now()
	b.ReportAllocs()
	for b.Loop() {
		s.Count(now, 1)
	}
}

func BenchmarkCountParallel(b *testing.B) {
	s := NewSampler(none{}, Options{})
	now := time.Now()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.Count(now, 1)
		}
	})
}

func TestAllocations(t *testing.T) {
	s := benchSampler()
	from, to := s.at(1189.4), s.at(1199.4)
	if n := testing.AllocsPerRun(100, func() {
		s.Count(to, 1)
		s.Window(from, to)
		s.Share(from, to, 10)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
