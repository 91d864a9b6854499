package doctor

import (
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

func TestLimit(t *testing.T) {
	engine := start(t, quick(sim.VLLM))
	for _, c := range []struct {
		name    string
		status  int
		headers map[string]string
		body    string
		level   Level
		parts   []string
	}{
		{"none", 200, nil, "", Green, []string{"none is told of"}},
		{"far", 200, map[string]string{"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s"}, "", Green, []string{"Requests: 59 of 60 left"}},
		{"near", 200, map[string]string{"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "3"}, "", Yellow, []string{"nearly used up", "tokens: 3 of 1000 left"}},
		{"met", 429, map[string]string{"Retry-After": "7", "x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": "6m0s"},
			`{"error":{"message":"slow down","type":"rate_limit_error"}}`, Yellow, []string{"(429)", "No requests are left of 60", "in 6m0s", "wait 7s"}},
		{"met, Anthropic", 429, map[string]string{"retry-after": "30", "anthropic-ratelimit-input-tokens-limit": "40000", "anthropic-ratelimit-input-tokens-remaining": "0"},
			`{"type":"error","error":{"type":"rate_limit_error","message":"x"}}`, Yellow, []string{"No input-tokens are left of 40000", "wait 30s"}},
		{"met, without a word", 429, nil, `{"error":{"message":"busy"}}`, Yellow, []string{"does not say which limit", "wait a minute"}},
		{"quota", 429, map[string]string{"Retry-After": "7"}, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, Red,
			[]string{"quota is spent", "waiting does not help", "balance"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				for name, value := range c.headers {
					w.Header().Set(name, value)
				}
				if c.status == 200 || r.Method != http.MethodPost {
					engine.ServeHTTP(w, r)
					return
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, c.body)
			})) + "/v1"
			findings := run(t, of(base))
			want(t, findings, "limit", c.level, c.parts...)
			if c.status == 429 {
				want(t, findings, "answer", Grey, "not checked because")
				want(t, findings, "stream", Grey, "not checked because")
			}
		})
	}
}

// TestLimitOnTheWay: the limit is met in the middle of the doctor's calls.
func TestLimitOnTheWay(t *testing.T) {
	cfg := steady(sim.VLLM)
	cfg.FaultScript = first(1, "refuse:2")
	findings := run(t, of(engineAt(t, cfg)))
	want(t, findings, "stream", Grey, "429")
	want(t, findings, "usage", Grey, "not checked because the endpoint answers 429")
	want(t, findings, "keep_alive", Green)
	cfg.FaultScript = first(2, "refuse:2")
	findings = run(t, of(engineAt(t, cfg)))
	want(t, findings, "usage", Grey, "429")
	want(t, findings, "compression", Grey, "429")
	cfg.FaultScript = first(3, "refuse:2")
	want(t, run(t, of(engineAt(t, cfg))), "compression", Grey, "429")
}

func TestReadLimits(t *testing.T) {
	now := time.Date(2026, 1, 31, 8, 0, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		want  time.Duration
		known bool
	}{
		{"6m0s", 6 * time.Minute, true}, {"1.5s", 1500 * time.Millisecond, true}, {"20ms", 20 * time.Millisecond, true}, {"7", 7 * time.Second, true},
		{"2026-01-31T08:00:30Z", 30 * time.Second, true}, {"2026-01-31T07:00:00Z", 0, true},
		{"1769846460", time.Minute, true}, {"1769846460000", time.Minute, true}, {"-3", 0, false}, {"soon", 0, false}, {"", 0, false}, {"1e300", 0, false},
	} {
		if got, known := readReset(c.value, now); got != c.want || known != c.known {
			t.Errorf("reset %q is %v %v, want %v %v", c.value, got, known, c.want, c.known)
		}
	}
	for _, c := range []struct {
		name, value string
		want        time.Duration
		known       bool
	}{
		{"Retry-After", "3", 3 * time.Second, true}, {"Retry-After", "Sat, 31 Jan 2026 08:01:00 GMT", time.Minute, true},
		{"Retry-After-Ms", "250", 250 * time.Millisecond, true}, {"Retry-After", "x", 0, false}, {"Retry-After", "NaN", 0, false}, {"X", "1", 0, false},
	} {
		if got, known := retryAfter(http.Header{c.name: {c.value}}, now); got != c.want || known != c.known {
			t.Errorf("%s: %s is %v %v, want %v %v", c.name, c.value, got, known, c.want, c.known)
		}
	}
	many := http.Header{}
	for _, n := range "abcdefghijklmnop" {
		many.Set("x-ratelimit-limit-"+string(n), "1")
	}
	if got := len(readLimits(many, now)); got != maxLimits {
		t.Errorf("%d limits are kept, want %d", got, maxLimits)
	}
	plain := readLimits(http.Header{"X-Ratelimit-Limit": {"9"}, "X-Ratelimit-Remaining": {"-1"}, "X-Ratelimit-Odd": {"1"}}, now)
	if len(plain) != 1 || plain[0] != (limitState{name: "calls", limit: 9}) {
		t.Errorf("plain limits are %+v", plain)
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		123456 * time.Microsecond: "120ms", 7*time.Second + time.Millisecond: "7s", 2 * time.Minute: "2m0s", 90*time.Minute + 29*time.Second: "1h30m",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}
