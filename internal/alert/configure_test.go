package alert

import (
	"context"
	"net/http"
	"slices"
	"testing"
	"time"
)

// TestReload: alerts go on over a reload; who stays knows them, who is new is told.
func TestReload(t *testing.T) {
	stays, goes, comes := &scribe{name: "stays"}, &scribe{name: "goes"}, &scribe{name: "comes"}
	within(t, Options{Receivers: []Receiver{stays, goes}, Labels: map[string]string{"site": "one"}}, func(t *testing.T, r *rig) {
		const on, off = "page firing interactive/ttft_p99", "page resolved interactive/ttft_p99"
		r.see(standing{page: true})
		hears(t, stays, on)
		hears(t, goes, on)
		before := r.State().Alerts[0].Alert
		pass(time.Minute)
		r.Configure(Options{Receivers: []Receiver{comes, stays, stays}, Labels: map[string]string{"site": "two"}})
		pass(0)
		hears(t, stays, "")
		hears(t, goes, "")
		hears(t, comes, on)
		if after := r.State().Alerts[0].Alert; after.Fingerprint != before.Fingerprint || !after.StartsAt.Equal(before.StartsAt) || after.Labels["site"] != "one" {
			t.Errorf("the alert changed from %+v to %+v", before, after)
		}
		if n := len(r.State().Receivers); n != 2 {
			t.Errorf("there are %d receivers", n)
		}
		r.see(standing{})
		pass(5 * time.Minute)
		r.see(standing{})
		hears(t, stays, off)
		hears(t, goes, "")
		hears(t, comes, off)
		r.see(standing{page: true})
		if a := r.State().Alerts[0]; a.Labels["site"] != "two" {
			t.Errorf("a new alert has the labels %v", a.Labels)
		}
	})
}

// TestReloadWhileTelling: a receiver that is gone is let alone at once, and the end of the
// alerts that only it was owed is forgotten.
func TestReloadWhileTelling(t *testing.T) {
	slow := &scribe{name: "slow", answer: func(ctx context.Context, _ Batch) error { <-ctx.Done(); return ctx.Err() }}
	within(t, Options{Receivers: []Receiver{slow}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		r.see(standing{})
		pass(5 * time.Minute)
		r.see(standing{})
		if got := r.shows(); got != "page resolved interactive/ttft_p99" {
			t.Errorf("shown are %q", got)
		}
		n := len(slow.tried())
		r.Configure(Options{})
		pass(time.Hour)
		if got := r.shows(); got != "" || len(slow.tried()) != n {
			t.Errorf("still shown: %q; tried %d more times", got, len(slow.tried())-n)
		}
	})
}

// TestFuncTakesOver: events go to the function of the newest configuration.
func TestFuncTakesOver(t *testing.T) {
	var heard []string
	to := func(who string) Receiver {
		return Func("events", func(_ context.Context, a Alert) error { heard = append(heard, who+" "+headline(a)); return nil })
	}
	within(t, Options{Receivers: []Receiver{to("old")}}, func(t *testing.T, r *rig) {
		r.see(standing{page: true})
		r.Configure(Options{Receivers: []Receiver{to("new")}})
		r.see(standing{page: true, consumed: 0.9})
		if want := []string{"old page firing interactive/ttft_p99", "new freeze firing interactive/ttft_p99"}; !slices.Equal(heard, want) {
			t.Errorf("heard %q, want %q", heard, want)
		}
	})
}

// TestIdentity: which changes make a receiver another one.
func TestIdentity(t *testing.T) {
	make := func(r Receiver, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		return mannersOf(r).identity
	}
	header := http.Header{"X-Scope-Orgid": {"a"}}
	base := make(NewWebhook("https://h/x?token=1", header, nil))
	if again := make(NewWebhook("https://h/x?token=1", header.Clone(), &http.Client{})); again != base {
		t.Error("the same receiver is another one")
	}
	for name, other := range map[string]string{
		"address": make(NewWebhook("https://h/y?token=1", header, nil)),
		"query":   make(NewWebhook("https://h/x?token=2", header, nil)),
		"user":    make(NewWebhook("https://u@h/x?token=1", header, nil)),
		"header":  make(NewWebhook("https://h/x?token=1", http.Header{"X-Scope-Orgid": {"b"}}, nil)),
		"kind":    make(NewAlertmanager("https://h/x?token=1", header, nil)),
	} {
		if other == base {
			t.Errorf("with another %s the receiver is the same", name)
		}
	}
}

// TestSameName: State tells receivers at the same host apart.
func TestSameName(t *testing.T) {
	var all []Receiver
	for _, path := range []string{"/a", "/b", "/a"} {
		r, err := NewWebhook("https://chat.example.com"+path, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	s := New(Options{Receivers: all}).State().Receivers
	if len(s) != 2 || s[0].Name != "webhook https://chat.example.com" || s[1].Name != "webhook https://chat.example.com (2)" {
		t.Errorf("receivers are %+v", s)
	}
}

// TestValidate: what cannot be is told, and left out.
func TestValidate(t *testing.T) {
	for name, tt := range map[string]struct {
		o  Options
		ok bool
	}{
		"nothing":        {Options{}, true},
		"all":            {Options{Labels: map[string]string{"env": "prod", "service": "gateway"}, AdminURL: "https://u:p@h:2019/x?y", Hold: time.Hour, Warn: 0.4, Freeze: 1}, true},
		"a bad name":     {Options{Labels: map[string]string{"a-b": "x"}}, false},
		"a name of ours": {Options{Labels: map[string]string{"class": "x"}}, false},
		"a digit first":  {Options{Labels: map[string]string{"1a": "x"}}, false},
		"__":             {Options{Labels: map[string]string{"__a": "x"}}, false},
		"no name":        {Options{Labels: map[string]string{"": "x"}}, false},
		"no value":       {Options{Labels: map[string]string{"a": ""}}, false},
		"a control code": {Options{Labels: map[string]string{"a": "x\x1b[2J"}}, false},
		"no address":     {Options{AdminURL: "127.0.0.1:2019"}, false},
		"a negative":     {Options{Hold: -1}, false},
		"too long":       {Options{Hold: 25 * time.Hour}, false},
		"above all":      {Options{Warn: 1.1}, false},
		"below nothing":  {Options{Freeze: -0.1}, false},
	} {
		if err := tt.o.Validate(); (err == nil) != tt.ok {
			t.Errorf("%s: %v", name, err)
		}
		if c := tt.o.complete(); c.Validate() != nil && tt.o.AdminURL == "" {
			t.Errorf("%s: completed it is still wrong: %v", name, c.Validate())
		}
	}
}
