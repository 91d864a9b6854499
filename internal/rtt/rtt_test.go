package rtt

import (
	"crypto/tls"
	"net"
	"runtime"
	"testing"
	"time"
)

// pair returns both ends of a TCP connection over loopback on which a byte has
// gone each way.
func pair(t testing.TB) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	for _, way := range [][2]net.Conn{{a, b}, {b, a}} {
		if _, err := way[0].Write([]byte{1}); err != nil {
			t.Fatal(err)
		}
		if _, err := way[1].Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	return a, b
}

// wrapped is a connection around another, as TLS is.
type wrapped struct {
	net.Conn
	inner net.Conn
}

func (w wrapped) NetConn() net.Conn { return w.inner }

// bare hides what a connection can do beside net.Conn.
type bare struct{ net.Conn }

// unlike cannot be compared with another of its kind.
type unlike struct {
	net.Conn
	_ []byte
}

func (u unlike) NetConn() net.Conn { return u.Conn }

// endless says that it is wrapped around itself.
type endless struct{ net.Conn }

func (e endless) NetConn() net.Conn { return e }

func TestOf(t *testing.T) {
	a, b := pair(t)
	piped, other := net.Pipe()
	defer piped.Close()
	defer other.Close()
	closed, _ := pair(t)
	closed.Close()
	linux := runtime.GOOS == "linux"
	for name, c := range map[string]struct {
		conn  net.Conn
		known bool
	}{
		"client":          {a, linux},
		"server":          {b, linux},
		"tls":             {tls.Client(a, &tls.Config{ServerName: "x"}), linux},
		"wrapped":         {wrapped{bare{a}, wrapped{bare{a}, a}}, linux},
		"no tcp":          {piped, false},
		"closed":          {closed, false},
		"hidden":          {bare{a}, false},
		"not comparable":  {unlike{Conn: a}, linux},
		"nil":             {nil, false},
		"wraps nil":       {wrapped{bare{a}, nil}, false},
		"wrapped in self": {endless{bare{a}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var s Samples
			rtt, known := s.Of(c.conn, time.Now())
			if known != c.known || known != (rtt > 0) {
				t.Errorf("got %v, %v; want known %v", rtt, known, c.known)
			}
			if rtt > time.Second {
				t.Errorf("loopback's round trip is %v", rtt)
			}
		})
	}
}

// TestOncePerSecond: the kernel is asked at most once a second and connection.
func TestOncePerSecond(t *testing.T) {
	a, _ := pair(t)
	var s Samples
	now := time.Unix(1000, 0)
	first, known := s.Of(a, now)
	a.Close() // whoever asks now learns nothing
	for _, after := range []time.Duration{0, time.Millisecond, every - 1} {
		if rtt, still := s.Of(a, now.Add(after)); rtt != first || still != known {
			t.Errorf("after %v: %v, %v; want the sample taken before: %v, %v", after, rtt, still, first, known)
		}
	}
	if _, known := s.Of(a, now.Add(every)); known {
		t.Error("a sample is still used when it is a second old")
	}
	// A clock that was set back must not keep a sample for ever.
	if _, known := s.Of(a, now.Add(-time.Hour)); known {
		t.Error("a sample from the future is used")
	}
}

// TestBounded: however many connections come, memory is bounded, and what is
// not remembered is asked for each time.
func TestBounded(t *testing.T) {
	var s Samples
	now := time.Unix(1000, 0)
	for range most + 100 {
		s.Of(&bare{}, now)
	}
	if len(s.of) != most {
		t.Errorf("%d samples are remembered, want %d", len(s.of), most)
	}
	a, _ := pair(t)
	if _, known := s.Of(a, now); known != (runtime.GOOS == "linux") {
		t.Errorf("beyond the bound: known is %v", known)
	}
	s.Of(a, now.Add(2*every))
	if len(s.of) != 1 {
		t.Errorf("%d samples are remembered after all but one grew old, want 1", len(s.of))
	}
}

func BenchmarkOf(b *testing.B) {
	a, _ := pair(b)
	var s Samples
	now := time.Now()
	b.Run("remembered", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			s.Of(a, now)
		}
	})
	b.Run("asked", func(b *testing.B) {
		b.ReportAllocs()
		at := now
		for b.Loop() {
			at = at.Add(every)
			s.Of(a, at)
		}
	})
}

// faulty is a wrapper that fails when it is asked for what it wraps.
type faulty struct{ net.Conn }

func (*faulty) NetConn() net.Conn { panic("boom") }

// TestFaultyWrapper: a wrapper's panic, on whatever goroutine asks, ends nothing.
func TestFaultyWrapper(t *testing.T) {
	var s Samples
	if trip, known := s.Of(new(faulty), time.Now()); known || trip != 0 {
		t.Errorf("%v is known of a connection that cannot be asked", trip)
	}
}
