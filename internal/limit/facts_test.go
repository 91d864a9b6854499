package limit

import (
	"testing"
	"time"

	"golang.org/x/time/rate"
)

// TestRateFacts pins what this package relies on of golang.org/x/time/rate and what
// it works around, documented there or not.
func TestRateFacts(t *testing.T) {
	start := newClock().now()
	// at returns a limiter of one a second and a burst of 10 that has n left.
	at := func(n int) *rate.Limiter {
		l := rate.NewLimiter(1, 10)
		l.ReserveN(start, 10-n)
		return l
	}
	want := func(t *testing.T, l *rate.Limiter, now time.Time, level float64) {
		t.Helper()
		if got := l.TokensAt(now); !near(got, level) {
			t.Errorf("level %v, want %v", got, level)
		}
	}
	t.Run("ReserveN goes into debt, and TokensAt is signed", func(t *testing.T) {
		l := at(2)
		l.ReserveN(start, 5)
		want(t, l, start, -3)
	})
	t.Run("debt blocks even AllowN(0)", func(t *testing.T) {
		l := at(2)
		l.ReserveN(start, 5)
		if l.AllowN(start, 0) {
			t.Error("allowed")
		}
		if !l.AllowN(start.Add(3*time.Second), 0) {
			t.Error("not allowed when the debt was repaid")
		}
	})
	t.Run("ReserveN of less than 0 gives back, to the burst at most", func(t *testing.T) {
		l := at(2)
		l.ReserveN(start, 5)
		l.ReserveN(start, -4)
		want(t, l, start, 1)
		l.ReserveN(start, -100)
		want(t, l, start, 10)
		l.ReserveN(start, 10)
		want(t, l, start, 0)
	})
	t.Run("ReserveN above the burst books nothing", func(t *testing.T) {
		l := at(2)
		if l.ReserveN(start, 11).OK() {
			t.Error("OK")
		}
		want(t, l, start, 2)
	})
	t.Run("a burst raised for the moment books it, and keeps the level", func(t *testing.T) {
		l := at(2)
		l.SetBurstAt(start, 25)
		want(t, l, start, 2)
		l.ReserveN(start, 25)
		l.SetBurstAt(start, 10)
		want(t, l, start, -23)
	})
	t.Run("SetLimit and SetBurst keep debt", func(t *testing.T) {
		l := at(0)
		l.ReserveN(start, 7)
		l.SetLimitAt(start, 2)
		l.SetBurstAt(start, 40)
		want(t, l, start, -7)
		want(t, l, start.Add(time.Second), -5)
	})
	t.Run("a time that runs back mints", func(t *testing.T) { // golang/go#56287: why Pool.now does not
		l := at(0)
		l.AllowN(start.Add(5*time.Second), 5)
		l.AllowN(start, 0)
		want(t, l, start.Add(5*time.Second), 5)
	})
}

func TestBucketBook(t *testing.T) {
	now := newClock().now()
	b := newBucket(size{applies: true, limit: 60, burst: 100, perSecond: 1})
	for _, step := range []struct {
		n     int64
		level float64
	}{{30, 70}, {100, -30}, {1_000_001, -1_000_031}, {-1_000_031, 0}, {0, 0}, {-500, 100}, {101, -1}} {
		if b.book(now, step.n); !near(b.level(now), step.level) {
			t.Errorf("after %d: level %v, want %v", step.n, b.level(now), step.level)
		}
	}
	b.book(now, -101)
	for level, whole := range map[float64]int64{50: 50, 50 - 1e-12: 50, 50 - 1e-8: 49, -1e-12: 0, -0.5: -1} {
		if got := b.whole(level); got != whole {
			t.Errorf("%v is %d in whole, want %d", level, got, whole)
		}
	}
	b.book(now, 101)
	b.resize(now, size{applies: true})
	b.book(now, 50) // a limit that has become 0 keeps what is owed
	if got := b.level(now.Add(time.Hour)); got != -51 {
		t.Errorf("level %v, want -51", got)
	}
}

func TestBucketResize(t *testing.T) {
	now := newClock().now()
	z := func(n int64) size { return size{true, n, n, float64(n) / 60} }
	for _, tt := range []struct {
		name     string
		from, to int64
		taken    int64
		level    float64
	}{
		{"raised, full", 100, 1000, 0, 1000},
		{"raised, in part", 100, 1000, 40, 60},
		{"raised, in debt", 100, 1000, 150, -50},
		{"lowered, full", 1000, 100, 0, 100},
		{"lowered, above", 1000, 100, 500, 100},
		{"lowered, below", 1000, 100, 950, 50},
		{"lowered, in debt", 1000, 100, 1200, -200},
		{"from nothing", 0, 100, 0, 100},
		{"to nothing", 100, 0, 40, 0},
	} {
		b := newBucket(z(tt.from))
		b.book(now, tt.taken)
		if b.resize(now, z(tt.to)); !near(b.level(now), tt.level) {
			t.Errorf("%s: level %v, want %v", tt.name, b.level(now), tt.level)
		}
	}
}
