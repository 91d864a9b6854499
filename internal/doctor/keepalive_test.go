package doctor

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/sim"
)

func TestKeepAlive(t *testing.T) {
	engine := start(t, quick(sim.VLLM))
	closing := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close")
		engine.ServeHTTP(w, r)
	})) + "/v1"
	idling := httptest.NewUnstartedServer(engine)
	idling.Config.IdleTimeout = 400 * time.Millisecond
	idling.Start()
	t.Cleanup(idling.Close)
	for _, c := range []struct {
		name  string
		cfg   Config
		level Level
		parts []string
	}{
		{"kept", of(engineAt(t, quick(sim.VLLM))), Green, []string{"kept alive", "--slow"}},
		{"dropped after streams", of(engineAt(t, quick(sim.LlamaCPP))), Yellow, []string{"after a stream without saying so", "502", "Weir"}},
		{"announced", of(closing), Green, []string{"and says so"}},
		{"kept while idle", slowly(of(engineAt(t, quick(sim.VLLM))), 300*time.Millisecond), Green, []string{"also while idle for 300ms"}},
		{"closed while idle", slowly(of(idling.URL+"/v1"), 5*time.Second), Yellow, []string{"idle for 0.", "keepalive 4s", "again, once"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			findings := run(t, c.cfg)
			want(t, findings, "keep_alive", c.level, c.parts...)
			want(t, findings, "compression", Green) // no call was lost over it
		})
	}
}

func slowly(cfg Config, idle time.Duration) Config {
	cfg.Slow, cfg.idle = true, idle
	return cfg
}

func TestJudgeServed(t *testing.T) {
	at := func(ms int) time.Time { return time.Unix(0, int64(ms)*int64(time.Millisecond)) }
	open, dropped, late := &wire{}, &wire{closed: at(105)}, &wire{closed: at(9000)}
	got := judgeServed([]served{
		{wire: dropped, stream: true, ended: at(50)}, {wire: dropped, stream: true, ended: at(100)}, // counts once, by its last answer
		{wire: open, ended: at(1)},
		{wire: late, ended: at(1)}, // closed while idle
		{wire: &wire{closed: at(2)}, announced: true, ended: at(1)},
		{wire: &wire{closed: at(2)}}, // broke off
	}, 100*time.Millisecond)
	if want := (keeping{kept: 2, dropped: 1, announced: 1, streams: 1, slowest: 5 * time.Millisecond}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if soon(0) != "at once after " || soon(5*time.Millisecond) != "within 5.00 ms after " {
		t.Error(fmt.Sprint(soon(0), soon(5*time.Millisecond)))
	}
}

// TestAnnouncedFarAway: a new connection for each call costs where the way is long.
func TestAnnouncedFarAway(t *testing.T) {
	v := newVisit(of("http://10.0.0.1/v1"))
	v.base, v.rtt = mustURL(t, v.Base), 30*time.Millisecond
	v.calls.replies = map[callOf]*endpoint.Reply{{name: "stream", stream: true}: {Status: 200}}
	v.wires.served = []*served{{wire: &wire{}, announced: true, ended: time.Now()}}
	f := checkKeepAlive(t.Context(), v)
	f.Check = "keep_alive"
	want(t, []Finding{f}, "keep_alive", Yellow, "says so", "keep connections alive")
}
