package gpu

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

const sec = int64(time.Second)

// absent is a figure that a sample does not have.
var absent = math.NaN()

func TestCurve(t *testing.T) {
	type sample struct{ at, power, counter float64 }
	type span struct {
		from, to, want float64 // want < 0 is unknown
	}
	for name, tt := range map[string]struct {
		samples []sample
		spans   []span
	}{
		"nothing": {nil, []span{{0, 1, -1}}},
		"one sample of power": {[]sample{{10, 100, absent}},
			[]span{{10, 10, 0}, {10, 11, 100}, {10, 12, 200}, {10, 12.5, -1}, {9, 11, -1}}},
		"one sample of the counter alone": {[]sample{{10, absent, 5000}}, []span{{10, 10, 0}, {10, 11, -1}}},
		"power, by trapezoids": {[]sample{{10, 100, absent}, {11, 200, absent}, {12, 400, absent}},
			[]span{{10, 12, 450}, {10.5, 11.5, 75 + 150}, {11, 11.5, 150}, {11.25, 11.75, 150}, {10, 14, 450 + 800}, {10, 14.1, -1}}},
		"the counter is exact": {[]sample{{10, 100, 1000}, {11, 100, 1150}, {12, 100, 1500}},
			[]span{{10, 12, 500}, {10.5, 11.5, 75 + 175}, {11, 13, 450}}},
		"the counter alone": {[]sample{{10, absent, 1000}, {11, absent, 1150}, {12, absent, 1500}},
			[]span{{10, 12, 500}, {12, 13, 350}}},
		"a gap in power is not bridged": {[]sample{{10, 100, absent}, {11, 100, absent}, {17, 100, absent}, {18, 100, absent}},
			[]span{{10, 11, 100}, {17, 18, 100}, {11, 17, -1}, {10, 18, -1}, {10, 14, -1}, {16, 18, -1}}},
		"a short one is":            {[]sample{{10, 100, absent}, {15, 200, absent}}, []span{{10, 15, 750}, {10, 12, 300}}},
		"one reading without power": {[]sample{{10, 100, absent}, {11, absent, absent}, {12, 200, absent}}, []span{{10, 12, 300}}},
		"the counter over a gap":    {[]sample{{10, 100, 0}, {70, 100, 9000}}, []span{{10, 70, 9000}, {10, 40, 4500}}},
		"a gap too long":            {[]sample{{10, 100, 0}, {101, 100, 9000}}, []span{{10, 101, -1}, {101, 102, 100}}},
		"a slow exporter": { // collects every 30 s and shows the same in between
			[]sample{{0, 100, 1000}, {10, 100, 1000}, {20, 100, 1000}, {30, 300, 7000}, {40, 300, 7000}, {60, 200, 13000}, {70, 200, 13000}},
			[]span{{0, 30, 6000}, {10, 20, 2000}, {25, 35, 1000 + 1000}, {60, 70, 2000}, {60, 105, 9000}, {60, 106, -1}}},
		"an exporter that is stuck": {[]sample{{0, 100, 1000}, {50, 100, 1000}, {100, 100, 1000}, {150, 100, 1000}}, []span{{0, 2, -1}, {0, 50, -1}, {100, 102, 200}, {150, 152, -1}}},
		"the driver was loaded anew": {[]sample{{10, 100, 1000}, {11, 100, 1100}, {12, 100, 50}, {13, 100, 150}},
			[]span{{10, 11, 100}, {12, 13, 100}, {11, 12, -1}, {10, 13, -1}}},
		"a counter that leaps": {[]sample{{10, 100, 1000}, {11, 100, 1e9}, {12, 100, 1e9 + 100}}, []span{{10, 11, -1}, {11, 12, 100}}},
		"the counter fails once": {[]sample{{10, 100, 1000}, {11, 100, absent}, {12, 100, 1250}},
			[]span{{10, 12, 250}}},
		"the counter fails for good": {[]sample{{10, 100, 1000}, {11, 100, absent}, {16, 100, absent}, {17, 100, absent}},
			[]span{{10, 16, -1}, {16, 17, 100}}},
		"the counter comes later": {[]sample{{10, 100, absent}, {11, 300, 5000}, {12, 300, 5250}}, []span{{10, 12, 450}}},
	} {
		var c curve
		for _, s := range tt.samples {
			c.add(int64(s.at*1e9), s.power, s.counter)
		}
		for _, s := range tt.spans {
			got, ok := c.between(int64(s.from*1e9), int64(s.to*1e9))
			if ok != (s.want >= 0) || ok && !near(got, s.want) {
				t.Errorf("%s: %v to %v is %v (%v), want %v", name, s.from, s.to, got, ok, s.want)
			}
		}
	}
}

// TestCurveForgets: what fell out of the ring is unknown, the rest is right.
func TestCurveForgets(t *testing.T) {
	var c curve
	const n = 3*ring + 7
	for i := range int64(n) {
		c.add(i*sec, absent, float64(i*i)/100) // 2i/100 W
	}
	oldest := int64(n - ring)
	if _, ok := c.between((oldest-1)*sec, n*sec-sec); ok {
		t.Error("energy of a time that is forgotten")
	}
	for range 1000 {
		a := oldest*sec + rand.Int64N((ring-1)*sec)
		b := a + rand.Int64N((n-1)*sec-a+1)
		at := func(t int64) float64 {
			whole, part := float64(t/sec), seconds(t%sec)
			return (whole*whole + part*(2*whole+1)) / 100
		}
		if got, ok := c.between(a, b); !ok || math.Abs(got-(at(b)-at(a))) > 1e-6*max(1, at(b)) {
			t.Fatalf("%d to %d: %v (%v), want %v", a, b, got, ok, at(b)-at(a))
		}
	}
}

// TestCurveAdds: the energy of neighbouring spans adds up to that of both, and is
// never negative.
func TestCurveAdds(t *testing.T) {
	for range 300 {
		var c curve
		at, counter := int64(0), 0.0
		for range 50 {
			at += 1 + rand.Int64N(3*sec)
			power := rand.Float64() * 700
			counter += rand.Float64() * 700 * 3
			shown := counter
			switch rand.IntN(10) {
			case 0:
				power = absent
			case 1, 2, 3:
				shown = absent
			case 4:
				counter = 0
			}
			c.add(at, power, shown)
		}
		for range 50 {
			x, y, z := rand.Int64N(at+2*sec), rand.Int64N(at+2*sec), rand.Int64N(at+2*sec)
			x, y, z = min(x, y, z), max(min(x, y), min(max(x, y), z)), max(x, y, z)
			whole, ok := c.between(x, z)
			a, ok1 := c.between(x, y)
			b, ok2 := c.between(y, z)
			if whole < 0 || ok && (!ok1 || !ok2 || math.Abs(whole-a-b) > 1e-6) {
				t.Fatalf("%d, %d, %d: %v (%v), %v (%v), %v (%v)", x, y, z, whole, ok, a, ok1, b, ok2)
			}
		}
	}
}
