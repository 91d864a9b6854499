package alert

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

const secretMark = "mark-7f3a"

// secretly returns an address with secrets in all places, and headers with more.
func secretly(address string) (string, http.Header) {
	return strings.Replace(address, "://", "://user-"+secretMark+":pass-"+secretMark+"@", 1) + "/path-" + secretMark + "?token=query-" + secretMark,
		http.Header{"X-Api-Key": {"header-" + secretMark}}
}

// TestAnswers: what each answer of a real server means, and that no error repeats a
// secret, whatever the other side does.
func TestAnswers(t *testing.T) {
	var elsewhere atomic.Int32
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { elsewhere.Add(1) }))
	defer other.Close()
	// echo answers with all that came, as debug pages do.
	echo := func(status int) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			user, password, _ := r.BasicAuth()
			w.WriteHeader(status)
			fmt.Fprintln(w, user, password, r.URL, r.Header)
		}
	}
	for name, tt := range map[string]struct {
		serve     http.HandlerFunc
		want      string // in the error; "" is success
		permanent bool
		after     time.Duration
	}{
		"200":            {func(w http.ResponseWriter, r *http.Request) {}, "", false, 0},
		"202":            {func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(202) }, "", false, 0},
		"500":            {echo(500), "500 Internal Server Error", false, 0},
		"503":            {echo(503), "503", false, 0},
		"408":            {echo(408), "408", false, 0},
		"429":            {func(w http.ResponseWriter, r *http.Request) { w.Header().Set("Retry-After", "17"); echo(429)(w, r) }, "429 Too Many Requests", false, 17 * time.Second},
		"400":            {echo(400), "400 Bad Request", true, 0},
		"401":            {echo(401), "password or headers", true, 0},
		"404":            {echo(404), "address", true, 0},
		"a strange code": {echo(799), "799", false, 0},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, other.URL+r.URL.Path, http.StatusTemporaryRedirect)
		}, "redirect is not followed", true, 0},
		"a hostile redirect": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Location", "http://%zz"+r.URL.String())
			w.WriteHeader(302)
		}, "redirect is not followed", true, 0},
		"a huge body": {func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(500)
			for range 1 << 10 {
				if _, err := w.Write([]byte(strings.Repeat("x", 1<<16))); err != nil {
					return // it has read enough
				}
			}
		}, "500", false, 0},
		"a body that is cut": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(200)
			fmt.Fprint(w, "ok")
		}, "", false, 0},
		"no answer": {func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, "closed before an answer", false, 0},
		"an echo of the request": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "POST %s\r\nX-Api-Key: %s\r\n\r\n", r.URL, r.Header.Get("X-Api-Key"))
		}, "no HTTP answer", false, 0},
		"an echo in a header": {func(w http.ResponseWriter, r *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nX Y %s\r\n\r\n", r.Header.Get("X-Api-Key"))
		}, "no HTTP answer", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			s := httptest.NewServer(tt.serve)
			defer s.Close()
			s.Config.ErrorLog = nil
			address, header := secretly(s.URL)
			for _, kind := range []func(string, http.Header, *http.Client) (Receiver, error){NewWebhook, NewAlertmanager} {
				r, err := kind(address, header, nil)
				if err != nil {
					t.Fatal(err)
				}
				defer mannersOf(r).close()
				err = r.Send(t.Context(), Batch{At: time.Now(), Alerts: []Alert{{Status: Firing}}})
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Fatalf("%s: %v, want %q", r.Name(), err, tt.want)
				}
				if strings.Contains(r.Name()+fmt.Sprintf("%v %+v %#v", err, err, errors.Unwrap(err)), secretMark) {
					t.Errorf("it shows a secret: %s: %v", r.Name(), err)
				}
				var f *failure
				if errors.As(err, &f); permanent(err) != tt.permanent || f != nil && f.after != tt.after || f == nil && tt.after != 0 {
					t.Errorf("%v: permanent %v, again after %+v", err, permanent(err), f)
				}
				if len(fmt.Sprint(err)) > 500 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
			}
		})
	}
	if n := elsewhere.Load(); n > 0 {
		t.Errorf("%d requests went elsewhere, with their headers", n)
	}
}

// TestEndlessAnswer: no more than 64 KiB of an answer are read, and what buffers hold.
func TestEndlessAnswer(t *testing.T) {
	written := make(chan int64, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		var n int64
		for n < 1<<30 {
			more, err := w.Write(make([]byte, 1<<16))
			if n += int64(more); err != nil {
				break
			}
		}
		written <- n
	}))
	defer s.Close()
	r, err := NewWebhook(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(t.Context(), Batch{Alerts: []Alert{{}}}); err != nil {
		t.Fatal(err)
	}
	if n := <-written; n > 64<<20 {
		t.Errorf("%d bytes were taken", n)
	}
}

// TestCredentials: user and password of the address are sent as a browser would.
func TestCredentials(t *testing.T) {
	var got string
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization") + " " + r.Host
	}))
	defer s.Close()
	r, err := NewWebhook(strings.Replace(s.URL, "://", "://ops:p%40ss@", 1), http.Header{"Host": {"alerts.example.com"}}, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Send(t.Context(), Batch{Alerts: []Alert{{}}}); err != nil {
		t.Fatal(err)
	}
	if want := "Basic " + base64.StdEncoding.EncodeToString([]byte("ops:p@ss")) + " alerts.example.com"; got != want {
		t.Errorf("sent %q, want %q", got, want)
	}
}

// TestReasonIsShown: without secrets that it could repeat, the beginning of an answer is told.
func TestReasonIsShown(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(400)
		fmt.Fprint(w, "\x1b[2J\"start time must be before end time\"\n"+strings.Repeat("y", 1000))
	}))
	defer s.Close()
	a, err := NewAlertmanager(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	err = a.Send(t.Context(), Batch{})
	if err == nil || !strings.Contains(err.Error(), `400 Bad Request: [2J"start time must be before end time" yyy`) || len(err.Error()) > 300 {
		t.Errorf("the error is %v", err)
	}
}

// TestNotAlertmanager: a login page answers 200, and takes no alerts.
func TestNotAlertmanager(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprint(w, "<html>Sign in")
	}))
	defer s.Close()
	a, err := NewAlertmanager(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Send(t.Context(), Batch{}); err == nil || !permanent(err) || !strings.Contains(err.Error(), "login page") {
		t.Errorf("the error is %v", err)
	}
	w, err := NewWebhook(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Send(t.Context(), Batch{Alerts: []Alert{{}}}); err != nil {
		t.Errorf("a webhook may answer as it likes: %v", err)
	}
}

// TestUnreachable: why a receiver cannot be reached is told without its secrets.
func TestUnreachable(t *testing.T) {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + closed.Addr().String()
	closed.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer plain.Close()
	secure := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer secure.Close()
	secure.Config.ErrorLog = nil
	for address, want := range map[string]string{
		nobody:                            "connection refused",
		"https" + plain.URL[len("http"):]: "does not speak TLS",
		secure.URL:                        "certificate",
		"http://nowhere.invalid":          "cannot be resolved",
	} {
		address, header := secretly(address)
		r, err := NewWebhook(address, header, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer mannersOf(r).close()
		err = r.Send(t.Context(), Batch{Alerts: []Alert{{}}})
		if err == nil || !strings.Contains(err.Error(), want) || permanent(err) || strings.Contains(err.Error(), secretMark) {
			t.Errorf("%s: %v, want %q", r.Name(), err, want)
		}
	}
}

// TestSilentServer: a server that takes the request and says nothing is told by the time-out.
func TestSilentServer(t *testing.T) {
	free := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // only then is a lost connection noticed
		select {
		case <-free:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(free)
	r, err := NewWebhook(s.URL, nil, s.Client())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if err := r.Send(ctx, Batch{Alerts: []Alert{{}}}); err == nil || !strings.Contains(err.Error(), "no answer within 10s") {
		t.Errorf("the error is %v", err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Send(gone, Batch{Alerts: []Alert{{}}}); err == nil || !strings.Contains(err.Error(), "cut off") {
		t.Errorf("the error is %v", err)
	}
}

func TestRetryAfterHeader(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "0": 0, "7": 7 * time.Second, " 7 ": 7 * time.Second, "-7": 0, "7.5": 0, "soon": 0,
		"99999999999999999999": maxAsked, "Fri, 01 May 2026 12:00:30 GMT": 30 * time.Second,
		"Fri, 01 May 2026 11:00:00 GMT": 0, "Fri, 01 May 2099 11:00:00 GMT": maxAsked,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("%q is %v, want %v", value, got, want)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	for _, seed := range []string{"", "7", "9223372036854775808", "Fri, 01 May 2026 12:00:30 GMT"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		if got := retryAfter(value, time.Now()); got < 0 || got > maxAsked {
			t.Errorf("%q is %v", value, got)
		}
	})
}
