package alert

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/slo"
)

// TestSnapshotHoldsNoSecret: neither addresses nor headers are in there, nor what could
// confirm a guess at them without much work.
func TestSnapshotHoldsNoSecret(t *testing.T) {
	hook, err := NewWebhook("https://user:sesame@chat.example.com/hooks/T0K3N?key=quux", http.Header{"Authorization": {"Bearer swordfish"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	manager, err := NewAlertmanager("http://manager.example.com:9093/xyzzy", nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	m := New(Options{Receivers: []Receiver{hook, manager, Func("events", nil)}})
	m.Observe(time.Now(), statusAt(time.Now(), standing{page: true}))
	data := string(m.Snapshot())
	for _, secret := range []string{"user", "sesame", "example", "T0K3N", "quux", "Bearer", "swordfish", "xyzzy", "9093", "http", "events",
		strings.TrimPrefix(mannersOf(hook).identity, "webhook "), strings.TrimPrefix(mannersOf(manager).identity, "alertmanager ")} {
		if strings.Contains(data, secret) {
			t.Errorf("%q is in %s", secret, data)
		}
	}
	if strings.Count(data, `"receiver":`) != 3 {
		t.Errorf("not all receivers are in %s", data)
	}
	if again := New(Options{Receivers: []Receiver{hook}}); again.tagger.salt == m.tagger.salt || again.tagger.rounds != tagRounds || tagRounds < 10_000 {
		t.Error("tags are guessed once for all, or too quickly")
	}
}

// changeKept changes the body of what is kept, and seals it again.
func changeKept(t testing.TB, data []byte, change func(b *keptBody, first *keptAlert)) []byte {
	t.Helper()
	body := openKept(t, data)
	var first keptAlert
	if err := json.Unmarshal(body.Alerts[0], &first); err != nil {
		t.Fatal(err)
	}
	change(&body, &first)
	var err error
	if body.Alerts[0], err = json.Marshal(first); err != nil {
		t.Fatal(err)
	}
	return seal(body)
}

// fired is a Manager with one page that one receiver knows.
func fired(s *scribe) *Manager {
	m := New(Options{Receivers: []Receiver{s}})
	m.tagger.rounds = 1
	m.Observe(time.Now(), statusAt(time.Now(), standing{page: true}))
	for _, e := range m.entries {
		e.marks[m.outlets[0]].told = e.latest()
	}
	return m
}

// TestRestoreRefuses: what is damaged, foreign or newer is refused with a word on what to
// do, and then nothing has changed.
func TestRestoreRefuses(t *testing.T) {
	s := &scribe{name: "webhook"}
	good := fired(s).Snapshot()
	change := func(f func(b *keptBody, first *keptAlert)) []byte { return changeKept(t, good, f) }
	for name, tt := range map[string]struct {
		data []byte
		says string
	}{
		"empty":           {[]byte{}, "it is empty"},
		"nothing":         {nil, "it is empty"},
		"zeros":           {make([]byte, 500), "cut or damaged"},
		"cut":             {good[:len(good)-20], "cut or damaged"},
		"two":             {slices.Concat(good, good), "cut or damaged"},
		"a flipped digit": {bytes.Replace(good, []byte(`"receiver":0`), []byte(`"receiver":1`), 1), "checksum"},
		"another sum":     {bytes.Replace(good, []byte(`"sum":"`), []byte(`"sum":"0`), 1), "checksum"},
		"no JSON object":  {[]byte("[]\n"), "cut or damaged"},
		"foreign":         {[]byte(`{"receivers":[]}`), "something else"},
		"null":            {[]byte("null"), "something else"},
		"newer":           {bytes.Replace(good, []byte(`"version":1`), []byte(`"version":2`), 1), "from a newer Weir"},
		"a list":          {[]byte(fmt.Sprintf(`{"kind":"weir alerts","version":1,"sum":%q,"body":[]}`, checksum([]byte("[]")))), "cannot be read"},
		"too long":        {make([]byte, maxKept+1), "longer than the 8 MiB"},
		"no salt":         {change(func(b *keptBody, _ *keptAlert) { b.Salt = "" }), "salt"},
		"a short salt":    {change(func(b *keptBody, _ *keptAlert) { b.Salt = "00" }), "salt"},
		"a wild receiver": {change(func(_ *keptBody, a *keptAlert) { a.Told[0].Receiver = 1 }), "receiver 1 of 1"},
		"below nothing":   {change(func(_ *keptBody, a *keptAlert) { a.Told[0].Receiver = -1 }), "receiver -1 of 1"},
		"too many":        {change(func(b *keptBody, _ *keptAlert) { b.Receivers = make([]string, maxKeptReceivers+1) }), "1001 receivers"},
		"a wild word":     {change(func(_ *keptBody, a *keptAlert) { a.Told[0].Took = "snored" }), "snored"},
		"a wild refusal":  {change(func(_ *keptBody, a *keptAlert) { a.Told[0].Refused = "earlier" }), "earlier"},
		"a wild severity": {change(func(_ *keptBody, a *keptAlert) { a.Severity = "apocalypse" }), "apocalypse"},
		"no beginning":    {change(func(_ *keptBody, a *keptAlert) { a.Starts = time.Time{} }), "never began"},
		"no labels":       {change(func(_ *keptBody, a *keptAlert) { a.Labels = nil }), "0 labels"},
		"a wild label":    {change(func(_ *keptBody, a *keptAlert) { a.Labels["x"] = "\x1b[2J" }), "label"},
		"a long label":    {change(func(_ *keptBody, a *keptAlert) { a.Labels["x"] = strings.Repeat("x", maxLabel+1) }), "label"},
		"a wild name":     {change(func(_ *keptBody, a *keptAlert) { a.Labels["x-y"] = "x" }), "label"},
		"a long class":    {change(func(_ *keptBody, a *keptAlert) { a.Class = exact(strings.Repeat("x", maxKeptName+1)) }), "1025 bytes"},
		"an absurd text":  {change(func(_ *keptBody, a *keptAlert) { a.Condition.Text = strings.Repeat("x", maxKeptOne) }), "bytes"},
		"a list for one":  {change(func(b *keptBody, _ *keptAlert) { b.Alerts = append(b.Alerts, json.RawMessage("[1]")) }), "alert 1 cannot be read"},
		"a wild condition": {change(func(b *keptBody, _ *keptAlert) {
			b.Alerts = append(b.Alerts, json.RawMessage(`{"condition":{"number":"luck"}}`))
		}), "luck"},
	} {
		m := New(Options{Receivers: []Receiver{s}})
		m.tagger.rounds = 1
		m.Observe(time.Now(), statusAt(time.Now(), standing{ticket: true}))
		before := m.Snapshot()
		err := m.Restore(tt.data, time.Now())
		if err == nil || !strings.Contains(err.Error(), tt.says) || !strings.HasPrefix(err.Error(), "take up the alerts of an earlier process: ") || !strings.Contains(err.Error(), "has to be set there by hand") {
			t.Errorf("%s: %v", name, err)
		}
		if after := m.Snapshot(); !bytes.Equal(before, after) {
			t.Errorf("%s: it changed from\n%s\nto\n%s", name, before, after)
		}
	}
}

// TestRestoreBounds: of what is too much a bounded part is taken up.
func TestRestoreBounds(t *testing.T) {
	s := &scribe{name: "webhook"}
	good := fired(s).Snapshot()
	data := changeKept(t, good, func(b *keptBody, a *keptAlert) {
		a.Condition.Text = strings.Repeat("ä", 2000)
		a.Condition.Period.Name = strings.Repeat("ä", 2000)
		a.Condition.Firing = slices.Repeat(a.Condition.Firing, 50)
		a.Condition.Burn = slices.Repeat(a.Condition.Burn, 50)
		a.Blame = &Blame{Phase: strings.Repeat("p", 1000), Text: "x\ny", Evidence: slices.Repeat([]string{strings.Repeat("e", 500)}, 50)}
		for i := range 2 * maxAlerts {
			c := *a
			c.Condition, c.Blame = keptCondition{}, nil
			c.Model = exact(fmt.Sprint("m", i))
			c.Labels = map[string]string{"alertname": "x", "model": string(c.Model)}
			one, err := json.Marshal(c)
			if err != nil {
				t.Fatal(err)
			}
			b.Alerts = append(b.Alerts, one)
		}
	})
	m := heir(t, data, Options{Receivers: []Receiver{s}})
	if len(m.entries) != maxAlerts {
		t.Errorf("%d alerts", len(m.entries))
	}
	a := m.State().Alerts[0]
	if len(a.Annotations["summary"]) > 1200 || len(a.Annotations["description"]) > 16_000 || len(a.Blame.Phase) != maxPhase || a.Blame.Text != "x y" || len(a.Blame.Evidence) != maxEvidence {
		t.Errorf("%d and %d bytes, %+v", len(a.Annotations["summary"]), len(a.Annotations["description"]), a.Blame)
	}
	if again := m.Snapshot(); len(again) > maxKept {
		t.Errorf("kept again, it has %d bytes", len(again))
	}
}

// TestSnapshotBounds: there are figures that JSON has no words for, and more than fits.
func TestSnapshotBounds(t *testing.T) {
	labels := make(map[string]string)
	for i := range 80 {
		labels[fmt.Sprintf("l%d%s", i, strings.Repeat("x", 90))] = strings.Repeat("<", 20)
	}
	s := &scribe{name: "webhook"}
	m := New(Options{Receivers: []Receiver{s}, Labels: labels})
	m.tagger.rounds = 1
	at := time.Now()
	st := statusAt(at, append(models(maxModels, standing{ticket: true}), standing{page: true})...)
	for i := range st.Objectives {
		o := &st.Objectives[i]
		o.Burn[0].Rate, o.Budget.Consumed, o.Budget.Left, o.Firing[0].Rule.Factor = ptr(math.NaN()), ptr(math.Inf(1)), ptr(math.Inf(-1)), math.Inf(1)
		o.Objective.Number = 200
	}
	st.Period.To = at.AddDate(20_000, 0, 0)
	m.Observe(at, st)
	data := m.Snapshot()
	if len(data) > maxKept || len(data) < maxKept*9/10 {
		t.Errorf("%d bytes", len(data))
	}
	next := heir(t, data, Options{Receivers: []Receiver{s}})
	if n := len(next.entries); n < 100 || n > 751 || next.State().Alerts[0].Severity != Page {
		t.Errorf("%d alerts, the first %+v", n, next.State().Alerts[0].Labels)
	}
}

// TestChanges: what changes nothing of what is kept, but for figures, counts no change, and
// what changes it counts one.
func TestChanges(t *testing.T) {
	s, away := &scribe{name: "well"}, &scribe{name: "away", answer: func(context.Context, Batch) error { return errDead }}
	random := newRandom(7)
	blame := func(string, string, string, slo.Number, time.Time) Blame {
		time.Sleep(blameTime + time.Second)
		return Blame{Phase: "decode"}
	}
	lives(t, Options{Receivers: []Receiver{s, away}, Blame: blame}, func(t *testing.T, r *rig) {
		essence := func() string {
			i := r.image(time.Time{})
			all := ""
			for _, a := range i.alerts {
				a.Condition = keptCondition{}
				for _, k := range a.Told {
					tag := i.body.Receivers[k.Receiver]
					k.Receiver = 0
					all += fmt.Sprintf("%s: %+v\n", tag, k)
				}
				a.Told = nil
				all += fmt.Sprintf("%+v\n", a)
			}
			return all
		}
		count := func() uint64 { r.mu.Lock(); defer r.mu.Unlock(); return r.kept.changes }
		last, n, still := essence(), count(), 0
		for range 2000 {
			switch random.IntN(20) {
			case 0:
				r.Configure(Options{Receivers: []Receiver{s, away}[random.IntN(2):], Blame: blame})
				pass(0)
			default:
				r.see(standing{page: random.IntN(9) == 0, ticket: random.IntN(20) == 0, consumed: random.Float64()}, standing{model: "a", page: random.IntN(5) == 0})
			}
			if now := essence(); (now != last) && count() == n {
				t.Fatalf("not counted: from\n%s\nto\n%s", last, now)
			} else if now == last && count() == n {
				still++
			} else {
				last, n = now, count()
			}
			pass(time.Duration(random.Int64N(int64(4 * time.Minute))))
			if now := essence(); now != last && count() == n {
				t.Fatalf("not counted: from\n%s\nto\n%s", last, now)
			}
			last, n = essence(), count()
		}
		if still < 100 {
			t.Errorf("only %d of 2000 looks changed nothing", still)
		}
	})
}

// FuzzRestore: whatever it is given, it does not panic, and what comes of it is bounded and
// can be kept again.
func FuzzRestore(f *testing.F) {
	s := &scribe{name: "webhook"}
	good := fired(s).Snapshot()
	text, err := json.Marshal(openKept(f, good))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text, true)
	f.Add(good, false)
	f.Add([]byte(`{"salt":"00000000000000000000000000000000","observed":"9999-12-31T23:59:59Z","receivers":["x"],"alerts":[{"class":{"base64":"/w=="},"severity":"freeze","labels":{"a":"b"},"starts":"0001-01-01T00:00:01Z","ends":"0001-01-01T00:00:00Z","clear":"9999-12-31T23:59:59Z","told":[{"receiver":0,"took":"earlier resolved"}]}]}`), true)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			b, err := json.Marshal(keptFile{keptKind, keptVersion, "", data})
			if err != nil {
				return // no JSON, which would be refused before
			}
			var file keptFile
			if err := json.Unmarshal(b, &file); err != nil {
				t.Fatal(err)
			}
			file.Sum = checksum(file.Body)
			if data, err = json.Marshal(file); err != nil {
				t.Fatal(err)
			}
		}
		m := New(Options{Receivers: []Receiver{s}})
		m.tagger.rounds = 1
		now := time.Date(2026, 3, 29, 2, 30, 0, 0, time.UTC)
		if err := m.Restore(data, now); err != nil {
			if len(m.entries) > 0 {
				t.Fatal("refused and taken up")
			}
			return
		}
		if len(m.entries) > maxAlerts {
			t.Fatalf("%d alerts", len(m.entries))
		}
		again := func() {
			m.State()
			for _, e := range m.entries {
				a := e.view().alert(&m.options)
				if n := len(a.Annotations["description"]); n > 32_000 {
					t.Fatalf("a description of %d bytes", n)
				}
			}
			kept := m.Snapshot()
			if len(kept) > maxKept {
				t.Fatalf("kept again, it has %d bytes", len(kept))
			}
			if err := New(Options{}).Restore(kept, now); err != nil {
				t.Fatalf("kept again, it is refused: %v\n%s", err, kept)
			}
		}
		again()
		m.Observe(now, statusAt(now, standing{page: true}))
		again()
		for i := range 3 {
			at := now.Add(time.Duration(i) * time.Hour)
			m.Observe(at, statusAt(at))
		}
		for _, e := range m.entries {
			if e.firing() {
				t.Fatalf("goes on for ever: %+v", e)
			}
		}
		again()
	})
}
