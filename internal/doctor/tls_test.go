package doctor

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/sim"
)

func mustURL(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// secure serves a simulated engine behind TLS; with a certificate of its own
// that holds from and until, as given, for the name engine.test.
func secure(t *testing.T, from, until time.Time) *httptest.Server {
	t.Helper()
	engine := start(t, quick(sim.VLLM))
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "engine.test"}, DNSNames: []string{"engine.test"},
		NotBefore: from, NotAfter: until, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(engine)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
	s.Config.ErrorLog = quiet()
	s.StartTLS()
	t.Cleanup(s.Close)
	return s
}

func TestCertificates(t *testing.T) {
	now := time.Now()
	day := 24 * time.Hour
	s := secure(t, now.Add(-30*day), now.Add(60*day))
	for _, c := range []struct {
		name    string
		host    string
		now     time.Time
		trusted bool
		level   Level
		parts   []string
	}{
		{"good", "engine.test", now, true, Green, []string{"TLS 1.3", "holds until"}},
		{"soon", "engine.test", now.Add(58 * day), true, Yellow, []string{"hours", "renew"}},
		{"expired", "engine.test", now.Add(90 * day), true, Red, []string{"expired on", "clock says", "renew"}},
		{"not yet", "engine.test", now.Add(-60 * day), true, Red, []string{"does not hold before", "clock says", "set this machine's clock"}},
		{"wrong name", "other.test", now, true, Red, []string{"not for other.test", "It is for engine.test.", "have it made out for other.test"}},
		{"unknown issuer", "engine.test", now, false, Red, []string{"issuer is not trusted", "CN=engine.test", "SSL_CERT_FILE"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := named(c.host, s.URL)
			cfg.Now = func() time.Time { return c.now.Add(time.Since(now)) }
			cfg.Roots = x509.NewCertPool()
			if c.trusted {
				cfg.Roots = pool(s)
			}
			findings := run(t, cfg)
			want(t, findings, "tls", c.level, c.parts...)
			if c.level == Red {
				want(t, findings, "answer", Grey, "not checked because")
			} else {
				want(t, findings, "answer", Green)
			}
		})
	}
}

func TestSchemes(t *testing.T) {
	t.Run("https to plain HTTP", func(t *testing.T) {
		base := strings.Replace(engineAt(t, quick(sim.VLLM)), "http://", "https://", 1)
		want(t, run(t, of(base)), "tls", Red, "does not speak TLS", "write http://")
	})
	t.Run("http to TLS", func(t *testing.T) {
		s := secure(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		base := strings.Replace(s.URL, "https://", "http://", 1) + "/v1"
		want(t, run(t, of(base)), "tls", Red, "speaks TLS", "an HTTP request to an HTTPS server", "write https://")
	})
	t.Run("http to TLS that answers with an alert", func(t *testing.T) {
		s := secure(t, time.Now().Add(-time.Hour), time.Now().Add(time.Hour))
		l := listen(t, func(c net.Conn) { _ = tls.Server(c, s.TLS).Handshake() })
		want(t, run(t, of("http://"+l+"/v1")), "tls", Red, "speaks TLS", "write https://")
	})
	t.Run("over a public network", func(t *testing.T) {
		v := newVisit(of("http://8.8.8.8/v1"))
		v.base, v.head = mustURL(t, v.Base), &exchange{status: 200}
		v.addresses = append(v.addresses, mustAddr(t, "8.8.8.8"))
		f := checkTLS(t.Context(), v)
		f.Check = "tls"
		want(t, []Finding{f}, "tls", Yellow, "without TLS", "https")
	})
}

func TestNoProtocol(t *testing.T) {
	for _, c := range []struct {
		name, scheme string
		answer       func(net.Conn)
		parts        []string
	}{
		{"not HTTP", "http", func(c net.Conn) { _, _ = c.Write([]byte("SSH-2.0-OpenSSH_9.7\r\n")) }, []string{"does not speak HTTP", "port"}},
		{"closes", "http", func(net.Conn) {}, []string{"closes connections without an answer", "log"}},
		{"is silent", "http", func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)); _, _ = c.Read(make([]byte, 1)) }, []string{"does not answer", "hangs"}},
		{"closes in the handshake", "https", func(c net.Conn) { _, _ = c.Read(make([]byte, 4096)) }, []string{"closed during the TLS handshake", "https"}},
		{"wants a client's certificate", "https", func(c net.Conn) {
			_, _ = c.Read(make([]byte, 4096))
			_, _ = c.Write([]byte{0x15, 3, 3, 0, 2, 2, 40}) // alert: handshake_failure
		}, []string{"refuses TLS", "handshake failure"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := of(c.scheme + "://" + listen(t, c.answer) + "/v1")
			cfg.Timeout = 300 * time.Millisecond
			findings := run(t, cfg)
			want(t, findings, "tls", Red, c.parts...)
			want(t, findings, "path", Grey, "not checked because")
		})
	}
}

// listen answers each connection by a function, and closes it after.
func listen(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler()) // for its listener
	l := s.Listener
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				if c.SetDeadline(time.Now().Add(5*time.Second)) == nil {
					answer(c)
				}
			}()
		}
	}()
	t.Cleanup(func() { _ = l.Close(); <-done })
	return l.Addr().String()
}
