package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestCapacity: the gateway is asked for what the flags say, and its answer passed on.
func TestCapacity(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		if r.URL.Query().Get("model") == "gone" {
			http.Error(w, `{"error":"no call to that model was seen"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("12 calls/s, interpolated\n"))
	}))
	defer server.Close()
	const answer = "12 calls/s, interpolated\n"
	for name, c := range map[string]struct {
		args              []string
		asks, writes, err string
	}{
		"all": {[]string{"--admin", server.URL}, "/weir/capacity?format=text", answer, ""},
		"filtered": {[]string{"--admin", server.URL + "/", "--since", "6h", "--model", "a b", "--upstream", "10.0.0.7:8000", "--target-rate", "40", "--ttft", "1.5s", "--tpot", "40ms", "--class", "batch", "--json"},
			"/weir/capacity?class=batch&model=a+b&since=6h&target_rate=40&tpot=40ms&ttft=1.5s&upstream=10.0.0.7%3A8000", answer, ""},
		"gone":       {[]string{"--admin", server.URL, "--model", "gone"}, "/weir/capacity?format=text&model=gone", "", "the gateway answers 404: no call to that model was seen"},
		"no URL":     {[]string{"--admin", "localhost"}, "", "", "write it like http://127.0.0.1:2019"},
		"nobody":     {[]string{"--admin", "http://127.0.0.1:1"}, "", "", "--admin"},
		"no rate":    {[]string{"--admin", server.URL, "--target-rate", "fast"}, "", "", "--target-rate is no rate: give calls a second, like 40"},
		"rate 0":     {[]string{"--admin", server.URL, "--target-rate", "0"}, "", "", "--target-rate is no rate"},
		"rate Inf":   {[]string{"--admin", server.URL, "--target-rate", "Inf"}, "", "", "--target-rate is no rate"},
		"rate NaN":   {[]string{"--admin", server.URL, "--target-rate", "NaN"}, "", "", "--target-rate is no rate"},
		"no time":    {[]string{"--admin", server.URL, "--ttft", "300"}, "", "", "--ttft: "},
		"no TPOT":    {[]string{"--admin", server.URL, "--tpot", "soon"}, "", "", "--tpot: "},
		"time 0":     {[]string{"--admin", server.URL, "--ttft", "0"}, "", "", "--ttft is 0"},
		"other word": {[]string{"--admin", server.URL, "plans"}, "", "", "plans"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			out, err := runCapacity(t, c.args...)
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if asked != c.asks || out != c.writes {
				t.Errorf("asked %s, wrote %q", asked, out)
			}
		})
	}
}

// runCapacity runs weir capacity and returns what it wrote.
func runCapacity(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := build(t, "capacity")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append([]string{}, args...)) // never nil: cobra takes the test's own then
	err := cmd.Execute()
	return out.String(), err
}
