package doctor

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

// environs gives a program's variables.
func environs(pairs ...string) func(string) string {
	m := map[string]string{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = pairs[i+1]
	}
	return func(name string) string { return m[name] }
}

// forwards is a proxy that sends every request to one server, whatever its name.
func forwards(t *testing.T, server string) *http.ServeMux {
	t.Helper()
	to := mustURL(t, strings.TrimSuffix(server, "/v1"))
	mux := http.NewServeMux()
	straight := &httputil.ReverseProxy{FlushInterval: -1, ErrorLog: quiet(), Transport: &http.Transport{}, Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		// A server closes the request's body when the answer begins, and where the
		// transport has not met its end by then it breaks the answer off, now and then:
		// https://go.dev/issue/40747
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		straight.ServeHTTP(w, r)
	})
	return mux
}

// tunnels is a proxy that answers CONNECT by a tunnel to one server.
func tunnels(t *testing.T, server string) http.Handler {
	t.Helper()
	to := mustURL(t, server).Host
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusNotImplemented)
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer up.Close()
		conn, rest, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 Connection established\r\n\r\n")
		go func() { _, _ = io.Copy(up, rest); _ = up.Close() }()
		_, _ = io.Copy(conn, up)
	})
}

func TestProxy(t *testing.T) {
	engine := engineAt(t, quick(sim.VLLM))
	good := serve(t, forwards(t, engine))
	status := func(code int) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(code) }))
	}
	dead := func() string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return "http://" + l.Addr().String()
	}()
	local, public := "http://10.1.2.3:8000/v1", "http://api.example.com/v1"
	for _, c := range []struct {
		name, base string
		env        []string
		level      Level
		parts      []string
	}{
		{"none", engine, nil, Green, []string{"no proxy"}},
		{"this machine, unprotected", engine, []string{"HTTP_PROXY", good}, Yellow, []string{"this very machine", "HTTP_PROXY is set", "export NO_PROXY=localhost,127.0.0.1"}},
		{"this machine, ALL_PROXY", engine, []string{"all_proxy", "socks5://127.0.0.1:7890"}, Yellow, []string{"all_proxy is set", "NO_PROXY"}},
		{"this machine, protected", engine, []string{"HTTP_PROXY", good, "no_proxy", "localhost,127.0.0.1"}, Green, []string{"no_proxy names it"}},
		{"of another scheme", engine, []string{"HTTPS_PROXY", good}, Green, []string{"another kind"}},
		{"local proxy failed", local, []string{"HTTP_PROXY", status(502)}, Red, []string{"does not reach the endpoint (502)", "your own network", "add 10.1.2.3 to NO_PROXY"}},
		{"local over the proxy", local, []string{"HTTP_PROXY", good}, Yellow, []string{"your own network", "add 10.1.2.3 to NO_PROXY"}},
		{"dead", public, []string{"http_proxy", dead}, Red, []string{"cannot be reached: connection refused", "unset http_proxy"}},
		{"who is asking", public, []string{"HTTP_PROXY", status(407)}, Red, []string{"407", "user:password"}},
		{"public over the proxy", public, []string{"HTTP_PROXY", good}, Green, []string{"calls go through the proxy"}},
		{"not a proxy", public, []string{"HTTP_PROXY", "http://["}, Red, []string{"does not name a proxy", "unset"}},
		{"of an unknown kind", public, []string{"HTTP_PROXY", "quic://proxy:1"}, Red, []string{"kind", "socks5"}},
		{"ALL_PROXY alone", "http://10.1.2.3:8000/v1", []string{"ALL_PROXY", good}, Yellow, []string{"different ways", "set HTTP_PROXY"}},
		{"misread", engine, []string{"HTTP_PROXY", good, "NO_PROXY", "127.0.0.1 localhost"}, Yellow, []string{"not understood", "127.0.0.1 localhost", "commas"}},
		{"misread, public", public, []string{"HTTP_PROXY", good, "NO_PROXY", "192.168.*"}, Yellow, []string{"192.168.*", "192.168.0.0/16"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := newVisit(of(c.base))
			v.environment = readEnvironment(environs(c.env...))
			v.make(t.Context(), checks[0])
			f := v.make(t.Context(), checks[1])
			want(t, []Finding{f}, "proxy", c.level, c.parts...)
		})
	}
}

// TestThroughProxy: all checks by way of a proxy, plain and with TLS.
func TestThroughProxy(t *testing.T) {
	t.Run("http", func(t *testing.T) {
		cfg := of("http://api.example.com/v1")
		cfg.Environ = environs("HTTP_PROXY", serve(t, forwards(t, engineAt(t, quick(sim.VLLM)))))
		findings := run(t, cfg)
		want(t, findings, "proxy", Green)
		want(t, findings, "name", Grey, "the proxy resolves names")
		want(t, findings, "tcp", Grey, "proxy")
		want(t, findings, "round_trip", Green, "through the proxy")
		want(t, findings, "stream", Green)
	})
	t.Run("https", func(t *testing.T) {
		s := secure(t, time.Now().Add(-time.Hour), time.Now().Add(1000*time.Hour))
		cfg := of("https://engine.test/v1")
		cfg.Roots = pool(s)
		cfg.Environ = environs("HTTPS_PROXY", serve(t, tunnels(t, s.URL)))
		findings := run(t, cfg)
		want(t, findings, "proxy", Green)
		want(t, findings, "tls", Green)
		want(t, findings, "stream", Green)
	})
	t.Run("https refused", func(t *testing.T) {
		cfg := of("https://engine.test/v1")
		cfg.Environ = environs("HTTPS_PROXY", serve(t, http.NotFoundHandler()))
		findings := run(t, cfg)
		want(t, findings, "proxy", Red, "does not reach the endpoint (404)")
		want(t, findings, "answer", Grey, "not checked because the proxy")
	})
}

func TestMisread(t *testing.T) {
	for value, want := range map[string]string{
		"":                           "",
		"localhost,127.0.0.1,::1":    "",
		"*":                          "",
		"*.example.com,.x.org,y.org": "",
		"10.0.0.0/8, fd00::/8":       "",
		"[::1]:80,host:8000":         "",
		"a;b":                        "a;b",
		"localhost 127.0.0.1":        "localhost 127.0.0.1",
		"x,http://host/":             "http://host/",
		"<local>":                    "<local>",
		"192.168.*":                  "192.168.*",
		"10.*.*.*":                   "10.*.*.*",
		"*example.com":               "*example.com",
		"host?":                      "host?",
		"10.0.0.0/99":                "10.0.0.0/99",
	} {
		entry, instead := readEnvironment(environs("NO_PROXY", value)).misread()
		if entry != want || (want != "") != (instead != "") {
			t.Errorf("of %q %q is misread (%q), want %q", value, entry, instead, want)
		}
	}
}

const (
	askedURLs = "WEIR_TEST_URLS"
	thisHost  = "http://127.0.0.1:8000/v1"
)

// TestSameWayAsGo holds our reading of the variables against that of net/http,
// which reads them once in a process: each environment has a process of its own.
func TestSameWayAsGo(t *testing.T) {
	urls := []string{thisHost, "http://localhost:8000", "http://[::1]:8000", "http://10.1.2.3:8000", "https://10.1.2.3", "http://api.example.com",
		"https://api.example.com", "https://example.com:8443", "http://vllm:8000", "http://a.localhost", "http://[fd00::7]:80", "http://notexample.com"}
	if asked := os.Getenv(askedURLs); asked != "" {
		for _, u := range strings.Fields(asked) {
			p, err := http.ProxyFromEnvironment(&http.Request{URL: mustURL(t, u)})
			fmt.Printf("way %s %v %v\n", u, p, err)
		}
		return
	}
	for _, no := range []string{"", "*", "example.com", ".example.com", "*.example.com", "*example.com", "example.com:443", "api.example.com:80", "10.0.0.0/8",
		"10.1.2.3", "10.1.2.3:8000", "10.1.2.3:1", "fd00::/8", "[fd00::7]:80", "fd00::7", "vllm", " vllm , x", "a;b", "http://vllm", ".", "*.", ":80", "10.*", "::ffff:10.1.2.3", ","} {
		env := []string{"HTTP_PROXY=http://plain:1", "https_proxy=secure:2", "NO_PROXY=" + no, "ALL_PROXY=http://all:3"}
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestSameWayAsGo$", "-test.v")
		command.Env = append(env, askedURLs+"="+strings.Join(urls, " "))
		out, err := command.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		get := func(name string) string {
			for _, e := range env {
				if v, is := strings.CutPrefix(e, name+"="); is {
					return v
				}
			}
			return ""
		}
		var ours bytes.Buffer
		for _, u := range urls {
			p, _ := readEnvironment(get).proxy(mustURL(t, u))
			fmt.Fprintf(&ours, "way %s %v <nil>\n", u, p)
		}
		var theirs bytes.Buffer
		for line := range strings.Lines(string(out)) {
			if strings.HasPrefix(line, "way ") {
				theirs.WriteString(line)
			}
		}
		if ours.String() != theirs.String() {
			t.Errorf("NO_PROXY=%q: we go\n%sbut net/http goes\n%s", no, ours.String(), theirs.String())
		}
	}
}

func TestHosts(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "LOCALHOST.": true, "x.localhost": true, "127.9.9.9": true, "::1": true, "::ffff:127.0.0.1": true,
		"10.0.0.1": true, "192.168.1.1": true, "100.64.0.1": true, "fd00::1": true, "fe80::1": true, "vllm": true, "a.internal": true,
		"8.8.8.8": false, "100.128.0.1": false, "2001:db8::1": false, "api.example.com": false, "localhost.example.com": false,
	} {
		if got := isLocal(host); got != want {
			t.Errorf("isLocal(%q) = %v, want %v", host, got, want)
		}
	}
	for text, want := range map[string]string{"https://x": "443", "http://x": "80", "http://x:8000": "8000", "socks5://x": "1080"} {
		u, err := url.Parse(text)
		if err != nil || portOf(u) != want {
			t.Errorf("portOf(%q) = %q, want %q", text, portOf(u), want)
		}
	}
}
