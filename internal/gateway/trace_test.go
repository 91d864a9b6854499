package gateway

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/rtt"
)

// slowConn is a connection whose round trip takes until told to be asked for.
type slowConn struct {
	net.Conn
	asked, answer chan struct{}
}

func (c *slowConn) SyscallConn() (syscall.RawConn, error) {
	close(c.asked)
	<-c.answer
	return nil, errors.New("gone")
}

// TestFreeWhileHookRuns: a trace whose hook is still at work is not given to
// another call, though all its instants are known.
func TestFreeWhileHookRuns(t *testing.T) {
	tr := newTrace(t.Context(), time.Now(), new(rtt.Samples))
	conn := &slowConn{asked: make(chan struct{}), answer: make(chan struct{})}
	tr.getConn("a:1")
	tr.gotConn(httptrace.GotConnInfo{Conn: conn})
	tr.wroteRequest(httptrace.WroteRequestInfo{})
	returned := make(chan struct{})
	go func() { defer close(returned); tr.gotFirstByte() }()
	<-conn.asked
	tr.take()
	tr.free()
	if tr.firstByte.Load() == 0 || tr.conn == nil {
		t.Error("the trace was given back under a hook that runs")
	}
	close(conn.answer)
	<-returned
	tr.free()
	if tr.firstByte.Load() != 0 || tr.conn != nil {
		t.Error("the trace was not given back after its last hook")
	}
}

// TestHTTP2Trail: each attempt over HTTP/2 stands on the trail once, and one that
// failed before it stays.
func TestHTTP2Trail(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }))
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	transport := &http.Transport{Protocols: s.Config.Protocols}
	defer transport.CloseIdleConnections()
	tr := newTrace(t.Context(), time.Now(), new(rtt.Samples))
	for n := 1; n <= 3; n++ { // over a new connection, and over one that has served
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), &tr.hooks), "POST", s.URL, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if res.ProtoMajor != 2 {
			t.Fatalf("spoke %s", res.Proto)
		}
		made := tr.attemptsMade(maxTrail)
		if len(made) != n {
			t.Fatalf("%d attempts on the trail after %d: %+v", len(made), n, made)
		}
		if last := made[n-1]; !last.Connected.IsKnown() || !last.FirstByte.IsKnown() || last.Reused != (n > 1) {
			t.Errorf("attempt %d: %+v", n, last)
		}
	}
}

// TestFold: what is folded is announced twice at once, to one upstream, and served before.
func TestFold(t *testing.T) {
	for name, c := range map[string]struct {
		between  time.Duration
		upstream string
		reused   bool
		want     int
	}{
		"the same attempt":          {0, "a:1", true, 1},
		"one that failed before":    {time.Second, "a:1", true, 2},
		"one at another upstream":   {0, "b:1", true, 2},
		"one over a new connection": {0, "a:1", false, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			tr := newTrace(t.Context(), time.Now(), new(rtt.Samples))
			tr.getConn("a:1")
			time.Sleep(c.between)
			tr.getConn(c.upstream)
			tr.gotConn(httptrace.GotConnInfo{Reused: c.reused})
			made := tr.attemptsMade(maxTrail)
			if len(made) != c.want || !made[len(made)-1].Connected.IsKnown() {
				t.Errorf("%s: %+v", name, made)
			}
		})
	}
}
