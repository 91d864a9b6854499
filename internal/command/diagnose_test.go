package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestDiagnose(t *testing.T) {
	var asked string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.RequestURI()
		if r.URL.Query().Get("id") == "gone" {
			http.Error(w, `{"error":"this configuration has no call with that id"}`, http.StatusNotFound)
			return
		}
		_, _ = w.Write([]byte("the engine's queue\n"))
	}))
	defer server.Close()
	for name, c := range map[string]struct {
		args              []string
		asks, writes, err string
	}{
		"all":      {[]string{"--admin", server.URL}, "/weir/diagnose?format=text", "the engine's queue\n", ""},
		"filtered": {[]string{"--admin", server.URL + "/", "--since", "15m", "--model", "a b", "--key", "k", "--run", "r", "--json"}, "/weir/diagnose?key=k&model=a+b&run=r&since=15m", "the engine's queue\n", ""},
		"gone":     {[]string{"--admin", server.URL, "--id", "gone"}, "/weir/diagnose?format=text&id=gone", "", "answers 404"},
		"no URL":   {[]string{"--admin", "localhost"}, "", "", "write it like http://127.0.0.1:2019"},
		"nobody":   {[]string{"--admin", "http://127.0.0.1:1"}, "", "", "--admin"},
	} {
		t.Run(name, func(t *testing.T) {
			asked = ""
			cmd := build(t, "diagnose")
			var out bytes.Buffer
			cmd.SetOut(&out)
			cmd.SetErr(&out)
			cmd.SilenceErrors = true
			cmd.SetArgs(c.args)
			err := cmd.Execute()
			if (err != nil) != (c.err != "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Fatalf("error %v, want %q", err, c.err)
			}
			if asked != c.asks || out.String() != c.writes {
				t.Errorf("asked %s, wrote %q", asked, out.String())
			}
		})
	}
}
