package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/slo"
)

var update = flag.Bool("update", false, "write the golden files of testdata anew")

// golden compares JSON with a file.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, got, "", "  "); err != nil {
		t.Fatalf("%s: %v in %s", name, err, got)
	}
	pretty.WriteByte('\n')
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, pretty.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pretty.Bytes(), want) {
		t.Errorf("%s: got\n%s", name, pretty.Bytes())
	}
}

// posted is a request that a server in a bubble has taken.
type posted struct {
	at     time.Time
	url    string
	header http.Header
	body   []byte
}

// server answers POSTs within a bubble, where there are no sockets.
type server struct {
	answer func(n int) *http.Response // nil is 200 without a body
	mu     sync.Mutex
	posts  []posted
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.posts = append(s.posts, posted{time.Now(), r.URL.String(), r.Header, body})
	n := len(s.posts)
	s.mu.Unlock()
	if s.answer != nil {
		return s.answer(n), nil
	}
	return answers(200, "", nil), nil
}

func answers(status int, body string, header http.Header) *http.Response {
	return &http.Response{StatusCode: status, Header: header, Body: io.NopCloser(strings.NewReader(body))}
}

func (s *server) take() []posted {
	s.mu.Lock()
	defer s.mu.Unlock()
	posts := s.posts
	s.posts = nil
	return posts
}

func (s *server) client() *http.Client { return &http.Client{Transport: s} }

// story is what the golden files tell: an outage with blame and a freeze, then the end.
func story(t *testing.T, r *rig) {
	t.Helper()
	hot := standing{class: "interactive", model: "llama-3", page: true, outage: true, ticket: true, consumed: 0.857}
	r.see(hot)
	pass(12 * time.Minute)
	cold := standing{class: "interactive", model: "llama-3", consumed: 0.857}
	r.see(cold)
	pass(5 * time.Minute)
	r.see(cold)
}

func storyOptions(r Receiver) Options {
	return Options{
		Receivers: []Receiver{r}, Labels: map[string]string{"env": "prod"}, AdminURL: "http://ops:secret@gw.example.com:2019/?key=secret",
		Blame: func(string, string, string, slo.Number, time.Time) Blame {
			time.Sleep(time.Millisecond) // each alert's comes in its turn
			return Blame{Phase: "queue_engine", Text: "Calls wait in the engine's own queue", Share: call.Figure(0.914), Evidence: []string{"queue share of TTFT 91 %", "waiting rose from 0 to 31"}}
		},
	}
}

// schema checks a body by what Alertmanager's version 2 API asks of postableAlerts: labels
// are needed and not empty, names and values are text, times are RFC 3339, generatorURL is
// an address, and an end is not before its beginning.
func schema(t *testing.T, body []byte) (alerts []map[string]any) {
	t.Helper()
	if err := json.Unmarshal(body, &alerts); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	name := regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_]*$`)
	for _, a := range alerts {
		for field, value := range a {
			switch field {
			case "labels", "annotations":
				set, ok := value.(map[string]any)
				if !ok || len(set) == 0 {
					t.Errorf("%s is %v", field, value)
				}
				for k, v := range set {
					if text, ok := v.(string); !ok || text == "" || !name.MatchString(k) {
						t.Errorf("%s has %q: %v", field, k, v)
					}
				}
			case "startsAt", "endsAt":
				if _, err := time.Parse(time.RFC3339, value.(string)); err != nil {
					t.Error(err)
				}
			case "generatorURL":
				if _, err := url.ParseRequestURI(value.(string)); err != nil {
					t.Error(err)
				}
			default:
				t.Errorf("there is no field %s", field)
			}
		}
		if a["labels"] == nil || a["labels"].(map[string]any)["alertname"] == nil {
			t.Errorf("without its labels: %v", a)
		}
		if starts, ends := a["startsAt"].(string), a["endsAt"].(string); ends < starts {
			t.Errorf("it ends at %s, before it begins at %s", ends, starts)
		}
	}
	return alerts
}

func TestAlertmanagerPayload(t *testing.T) {
	var s server
	a, err := NewAlertmanager("http://am:9093/base/", nil, s.client())
	if err != nil {
		t.Fatal(err)
	}
	within(t, storyOptions(a), func(t *testing.T, r *rig) {
		story(t, r)
		posts := s.take()
		golden(t, "alertmanager_firing.json", posts[0].body)
		golden(t, "alertmanager_reminder.json", posts[2].body)
		golden(t, "alertmanager_resolved.json", posts[len(posts)-1].body)
		var names []string
		for i, p := range posts {
			if p.url != "http://am:9093/base/api/v2/alerts" || p.header.Get("Content-Type") != "application/json" {
				t.Errorf("posted to %s with %v", p.url, p.header)
			}
			alerts := schema(t, p.body)
			for _, one := range alerts {
				labels := one["labels"].(map[string]any)
				names = append(names, labels["alertname"].(string))
				want := p.at.Add(lasting)
				if i == len(posts)-1 && labels["alertname"] == "WeirSLOPage" {
					want = p.at // it ended
				}
				if ends, err := time.Parse(time.RFC3339, one["endsAt"].(string)); err != nil || !ends.Equal(want) {
					t.Errorf("post %d: %v ends at %v, want %v", i, labels["alertname"], ends, want)
				}
			}
		}
		slices.Sort(names)
		// The ticket of the same subject was said by the page, and is clear when that ends.
		if got := slices.Compact(names); !slices.Equal(got, []string{"WeirErrorBudgetFreeze", "WeirSLOPage"}) {
			t.Errorf("posted are %q", got)
		}
	})
}

func TestWebhookPayload(t *testing.T) {
	var s server
	w, err := NewWebhook("http://hook/x", http.Header{"X-Token": {"t"}}, s.client())
	if err != nil {
		t.Fatal(err)
	}
	within(t, storyOptions(w), func(t *testing.T, r *rig) {
		story(t, r)
		posts := s.take()
		if len(posts) != 3 {
			t.Fatalf("%d posts", len(posts))
		}
		golden(t, "webhook_firing.json", posts[0].body)
		golden(t, "webhook_freeze.json", posts[1].body)
		var on, off payload
		for _, p := range posts {
			var one payload
			decoder := json.NewDecoder(bytes.NewReader(p.body))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&one); err != nil {
				t.Fatal(err)
			}
			if one.Version != "4" || len(one.Alerts) != 1 || one.Alerts[0].Status != one.Status || p.header.Get("X-Token") != "t" {
				t.Errorf("posted %s with %v", p.body, p.header)
			}
			if one.CommonLabels["alertname"] == "WeirSLOPage" && one.Status == Resolved {
				off = one
				golden(t, "webhook_resolved.json", p.body)
			}
		}
		if err := json.Unmarshal(posts[0].body, &on); err != nil {
			t.Fatal(err)
		}
		if on.GroupKey != off.GroupKey || on.GroupKey == "" || !maps.Equal(on.GroupLabels, off.GroupLabels) {
			t.Errorf("its beginning and its end do not go together: %q and %q", on.GroupKey, off.GroupKey)
		}
		if a := off.Alerts[0]; a.EndsAt.Sub(a.StartsAt) != 17*time.Minute || !on.Alerts[0].EndsAt.IsZero() {
			t.Errorf("it lasted from %v to %v", a.StartsAt, a.EndsAt)
		}
	})
}

// TestStatePayload is what the admin endpoint shows.
func TestStatePayload(t *testing.T) {
	var s server
	s.answer = func(n int) *http.Response {
		if n == 2 {
			return answers(500, "sk-secret", nil)
		}
		return answers(200, "", nil)
	}
	w, err := NewWebhook("https://u:sk-secret@hook/sk-secret?sk-secret=1", nil, s.client())
	if err != nil {
		t.Fatal(err)
	}
	within(t, storyOptions(w), func(t *testing.T, r *rig) {
		r.see(standing{page: true, ticket: true, consumed: 0.9})
		pass(10 * time.Millisecond)
		r.see(standing{ticket: true, consumed: 0.9})
		body, err := json.Marshal(r.State())
		if err != nil {
			t.Fatal(err)
		}
		golden(t, "state.json", body)
		if bytes.Contains(body, []byte("secret")) {
			t.Error("State shows a secret")
		}
	})
}

// TestManyAlerts: a post has at most 64 alerts, and all arrive.
func TestManyAlerts(t *testing.T) {
	var s server
	a, err := NewAlertmanager("http://am:9093", nil, s.client())
	if err != nil {
		t.Fatal(err)
	}
	within(t, Options{Receivers: []Receiver{a}}, func(t *testing.T, r *rig) {
		r.see(models(300, standing{page: true})...)
		seen := make(map[string]bool)
		for _, p := range s.take() {
			alerts := schema(t, p.body)
			if len(alerts) > maxBatch {
				t.Errorf("a post has %d alerts", len(alerts))
			}
			if len(p.body) > 512<<10 {
				t.Errorf("a post has %d bytes", len(p.body))
			}
			for _, one := range alerts {
				seen[one["labels"].(map[string]any)["model"].(string)] = true
			}
		}
		if len(seen) != 300 {
			t.Errorf("%d arrived", len(seen))
		}
	})
}

// TestAddresses: which addresses are taken, and where is posted to.
func TestAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://am:9093":                    "http://am:9093/api/v2/alerts",
		"http://am:9093/":                   "http://am:9093/api/v2/alerts",
		"https://am/alertmanager":           "https://am/alertmanager/api/v2/alerts",
		"http://am:9093/api/v2/alerts":      "http://am:9093/api/v2/alerts",
		"http://am:9093/x/api/v2/alerts/":   "http://am:9093/x/api/v2/alerts",
		"http://am:9093/api/v2/":            "http://am:9093/api/v2/alerts",
		" http://am:9093?tenant=a#fragment": "http://am:9093/api/v2/alerts?tenant=a",
		"http://am:9093/api/v1/alerts":      "",
		"am:9093":                           "",
		"":                                  "",
		"ftp://am":                          "",
		"http://":                           "",
		"http://u:sk-secret@am:x/":          "",
		"sk-secret":                         "",
	} {
		r, err := NewAlertmanager(address, nil, nil)
		if err != nil {
			if want != "" || strings.Contains(err.Error(), "secret") {
				t.Errorf("%q: %v", address, err)
			}
			if _, err := NewWebhook(address, nil, nil); err == nil && !strings.Contains(address, "v1") {
				t.Errorf("%q is an address for a webhook", address)
			}
			continue
		}
		var s server
		r.(*alertmanager).round = &s
		if err := r.Send(context.Background(), Batch{}); err != nil {
			t.Errorf("%q: %v", address, err)
		} else if got := s.take()[0].url; got != want {
			t.Errorf("%q posts to %s, want %s", address, got, want)
		}
	}
}
