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
		switch r.URL.Query().Get("id") {
		case "page":
			http.Error(w, "<!DOCTYPE html><title>404</title>", http.StatusNotFound)
			return
		case "plain":
			http.Error(w, "nothing\x1b[2J here", http.StatusNotFound)
			return
		case "empty":
			w.WriteHeader(http.StatusBadGateway)
			return
		case "gone":
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
		"page":     {[]string{"--admin", server.URL, "--id", "page"}, "/weir/diagnose?format=text&id=page", "", "answers 404: a web page; name the gateway's admin endpoint with --admin"},
		"plain":    {[]string{"--admin", server.URL, "--id", "plain"}, "/weir/diagnose?format=text&id=plain", "", "answers 404: nothing [2J here"},
		"empty":    {[]string{"--admin", server.URL, "--id", "empty"}, "/weir/diagnose?format=text&id=empty", "", "answers 502: no reason is given"},
		"gone":     {[]string{"--admin", server.URL, "--id", "gone"}, "/weir/diagnose?format=text&id=gone", "", "the gateway answers 404: this configuration has no call with that id"},
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
			cmd.SetArgs(append([]string{}, c.args...))
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
