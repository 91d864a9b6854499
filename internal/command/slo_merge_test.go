package command

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// service is some gateways with their own counts, and one that saw all calls.
type service struct {
	admins []*sloAdmin
	each   []*slo.Tracker
	all    *slo.Tracker
	config slo.Config
}

func newService(t *testing.T, n int, now time.Time) *service {
	t.Helper()
	interactive, _ := slo.Preset(slo.Interactive)
	batch, _ := slo.Preset(slo.Batch)
	zone, err := time.LoadLocation("Pacific/Auckland")
	if err != nil {
		t.Fatal(err)
	}
	config, _, err := slo.Config{Classes: []slo.Class{interactive, batch}, Period: slo.Period{Zone: zone}}.Complete()
	if err != nil {
		t.Fatal(err)
	}
	s := &service{config: config, all: slo.New()}
	if err := s.all.Configure(config, now); err != nil {
		t.Fatal(err)
	}
	for range n {
		tracker := slo.New()
		if err := tracker.Configure(config, now); err != nil {
			t.Fatal(err)
		}
		s.each = append(s.each, tracker)
	}
	return s
}

// call counts one call in a gateway, and in the one that sees all.
func (s *service) call(r *rand.Rand, gateway int, at time.Time) {
	class := []string{slo.Interactive, slo.Batch}[r.IntN(2)]
	model := fmt.Sprint("model-", r.IntN(3))
	ms := func(max int) slo.Value { return slo.Exactly(time.Duration(r.IntN(max)) * time.Millisecond) }
	f := slo.Facts{Received: at, Ended: at.Add(time.Duration(r.IntN(6000)) * time.Millisecond), Input: 100, Output: 10}
	f.Values[slo.TTFT], f.Values[slo.TPOT], f.Values[slo.Network] = ms(3000), ms(60), ms(30)
	f.Values[slo.Queue] = slo.Unknown()
	if r.IntN(20) == 0 {
		f.Ending = slo.Failed
	}
	for _, tracker := range []*slo.Tracker{s.each[gateway], s.all} {
		p, facts := new(slo.Pending), f
		tracker.Watch(p, class, model, at, false, nil)
		tracker.End(p, &facts)
	}
}

// serve answers as the gateways do, at a moment.
func (s *service) serve(t *testing.T, now time.Time, configs ...slo.Config) {
	t.Helper()
	for i, tracker := range s.each {
		config := s.config
		if i < len(configs) {
			config = configs[i]
		}
		a := newSLOAdmin(t, slo.Status{})
		a.answer = func(w http.ResponseWriter, path string) bool {
			switch path {
			case "/weir/slo":
				status := tracker.Status(now.Add(-time.Duration(i) * time.Second))
				b, err := json.Marshal(status)
				if err != nil {
					t.Error(err)
				}
				fmt.Fprintf(w, `{"status":%s,"alerts":{"alerts":[]}}`, b)
			case "/weir/slo/config":
				b, err := json.Marshal(map[string]any{"config": config})
				if err != nil {
					t.Error(err)
				}
				if i == 1 { // written in another way
					b = []byte(strings.ReplaceAll(string(b), ",", " ,\n"))
				}
				w.Write(b)
			case "/weir/slo/snapshot":
				w.Write(tracker.Snapshot())
			default:
				return false
			}
			return true
		}
		s.admins = append(s.admins, a)
	}
}

func (s *service) urls() string {
	var all []string
	for _, a := range s.admins {
		all = append(all, a.URL)
	}
	return strings.Join(all, ",")
}

// TestSLOMerged: several gateways are shown as the one that saw all their calls.
func TestSLOMerged(t *testing.T) {
	now := time.Now().Truncate(time.Minute).Add(30 * time.Second)
	s := newService(t, 3, now.Add(-5*24*time.Hour))
	r := rand.New(rand.NewPCG(5, 6))
	for at := now.Add(-4 * 24 * time.Hour); at.Before(now.Add(-10 * time.Second)); at = at.Add(time.Duration(r.IntN(120)) * time.Second) {
		s.call(r, r.IntN(3), at)
		s.all.Tick(at)
		for _, tracker := range s.each {
			tracker.Tick(at)
		}
	}
	for i, received := range []time.Time{now.Add(-1500 * time.Millisecond), now.Add(-1200 * time.Millisecond)} { // on their way
		for _, tracker := range []*slo.Tracker{s.each[i], s.all} {
			tracker.Watch(new(slo.Pending), slo.Interactive, "model-1", received, true, nil)
		}
	}
	s.serve(t, now)
	out, _, err := runSLO(t, "--admin", s.urls(), "--json")
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Gateways []string
		Status   slo.Status
	}
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	want := s.all.Status(now)
	if len(got.Status.Objectives) != len(want.Objectives) || len(want.Objectives) < 30 || len(got.Gateways) != 3 || got.Status.Period.Name != "calendar_month Pacific/Auckland" || !got.Status.Period.From.Equal(want.Period.From) {
		t.Fatalf("%d objectives, want %d", len(got.Status.Objectives), len(want.Objectives))
	}
	for i := range want.Objectives {
		g, w := &got.Status.Objectives[i], &want.Objectives[i]
		g.Quantiles, w.Quantiles, g.Quantiles5m, w.Quantiles5m = nil, nil, nil, nil // no gateway tells another
		a, err1 := json.Marshal(g)
		b, err2 := json.Marshal(w)
		if err1 != nil || err2 != nil || string(a) != string(b) {
			t.Errorf("merged is\n%s, one is\n%s", a, b)
		}
	}
	if !got.Status.Since.Equal(want.Since) {
		t.Errorf("since %v, want %v", got.Status.Since, want.Since)
	}
	text, _, err := runSLO(t, "--admin", s.urls())
	if err != nil || !strings.Contains(text, "3 gateways as one: "+s.admins[0].URL) || !strings.Contains(text, "Awaiting their first token: 2, the oldest for 1.5s.") {
		t.Errorf("%v\n%s", err, text)
	}
	one, _, err := runSLO(t, "gate", "--admin", s.urls(), "--fail-on", "warning")
	if statusOf(t, err) != statusStop || !strings.Contains(one, "the burn rate is above ") {
		t.Errorf("%q %v", one, err)
	}
}

// TestSLOMergeErrors: what cannot be added up is not shown.
func TestSLOMergeErrors(t *testing.T) {
	now := time.Now()
	for name, c := range map[string]struct {
		harm func(*service)
		want string
	}{
		"one is away":  {func(s *service) { s.admins[1].Close() }, "connection refused"},
		"an older one": {func(s *service) { s.admins[1].answer = only(s.admins[1].answer, "/weir/slo") }, "has no /weir/slo/config (404)"},
		"no snapshot":  {func(s *service) { s.admins[1].answer = only(s.admins[1].answer, "/weir/slo", "/weir/slo/config") }, "has no /weir/slo/snapshot (404)"},
		"empty counts": {func(s *service) { s.admins[0].answer = instead(s.admins[0].answer, "/weir/slo/snapshot", "") }, "add the counts of http://127.0.0.1"},
		"no config":    {func(s *service) { s.admins[0].answer = instead(s.admins[0].answer, "/weir/slo/config", "{}") }, "it has no field config"},
		"another's": {func(s *service) {
			s.admins[1].answer = instead(s.admins[1].answer, "/weir/slo/config", `{"config":{}}`)
		}, "have different objectives, or periods: give them the same, or ask one at a time"},
		"strange config": {func(s *service) {
			for _, a := range s.admins {
				a.answer = instead(a.answer, "/weir/slo/config", `{"config":7}`)
			}
		}, "ask it with the weir that it runs"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newService(t, 2, now)
			s.serve(t, now)
			if _, _, err := runSLO(t, "--admin", s.urls()); err != nil {
				t.Fatal(err)
			}
			c.harm(s)
			out, _, err := runSLO(t, "--admin", s.urls())
			if err == nil || !strings.Contains(err.Error(), c.want) || out != "" {
				t.Errorf("error %v does not say %q; wrote %q", err, c.want, out)
			}
		})
	}
	// Clocks that are apart are told of.
	s := newService(t, 2, now)
	s.serve(t, now)
	before := s.admins[1].answer
	s.admins[1].answer = func(w http.ResponseWriter, path string) bool {
		if path != "/weir/slo" {
			return before(w, path)
		}
		b, err := json.Marshal(s.each[1].Status(now.Add(time.Minute)))
		if err != nil {
			t.Error(err)
		}
		fmt.Fprintf(w, `{"status":%s}`, b)
		return true
	}
	out, _, err := runSLO(t, "--admin", s.urls())
	if err != nil || !strings.Contains(out, "The gateways' clocks are 1m0s apart") {
		t.Errorf("%v\n%s", err, out)
	}
}

// only answers these paths.
func only(answer func(http.ResponseWriter, string) bool, paths ...string) func(http.ResponseWriter, string) bool {
	return func(w http.ResponseWriter, path string) bool {
		for _, p := range paths {
			if p == path {
				return answer(w, path)
			}
		}
		http.Error(w, "404 page not found", http.StatusNotFound)
		return true
	}
}

// instead answers one path in another way.
func instead(answer func(http.ResponseWriter, string) bool, path, body string) func(http.ResponseWriter, string) bool {
	return func(w http.ResponseWriter, p string) bool {
		if p != path {
			return answer(w, p)
		}
		fmt.Fprint(w, body)
		return true
	}
}
