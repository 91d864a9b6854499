package spend

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/ledger"
)

// priceEach is the plain way: each call is priced by itself, and put with those
// that are asked to be together.
func priceEach(f *fake, q ledger.Query, p *Prices) map[group]Line {
	lines := make(map[group]Line)
	for _, r := range f.rows {
		one := fake{rows: []row{r}}
		usage, _ := one.Usage(context.Background(), q)
		if len(usage) == 0 || usage[0].Calls == 0 {
			continue
		}
		u := usage[0]
		l := Line{Usage: u, PricedTokens: call.Known(0), UnpricedTokens: call.Known(0)}
		tokens := Tokens(r.reported) + Tokens(r.estimated)
		if rates, ok := p.At(r.model, r.at); ok {
			l.Cost = &Cost{rates.Cost(r.reported), rates.Cost(r.estimated)}
			l.PricedTokens = call.Known(tokens)
		} else if l.UnpricedTokens = call.Known(tokens); tokens > 0 {
			l.UnpricedModels = []string{r.model}
		}
		sum := lines[groupOf(u)]
		sum.add(l)
		sum.Key, sum.Model, sum.Class, sum.Upstream, sum.From = u.Key, u.Model, u.Class, u.Upstream, u.From
		lines[groupOf(u)] = sum
	}
	for g, l := range lines {
		l.complete()
		lines[g] = l
	}
	if len(q.By) == 0 && len(lines) == 0 {
		lines[groupOf(ledger.Usage{})] = Line{}
	}
	return lines
}

func groupOf(u ledger.Usage) group {
	return group{key: u.Key, model: u.Model, class: u.Class, upstream: u.Upstream, from: u.From.Unix()}
}

// TestReportIsPricingEachCall: whatever the grouping, the period and the changes
// of prices in it, a report is the sum of all calls priced by themselves, and no
// digit is lost.
func TestReportIsPricingEachCall(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 8))
	base := instantOf(t, "2026-10-24T00:00:00Z")
	zones := []*time.Location{nil, zone(t, "Europe/Berlin"), zone(t, "America/Los_Angeles")}
	split, partly := 0, 0
	for trial := range 250 {
		span := time.Duration(1+rng.IntN(72)) * time.Hour
		f := &fake{rows: randomRows(rng, rng.IntN(200), []string{"gpt-4o", "gpt-4o-mini", "llama", "other", ""}, base, span)}
		p := randomPrices(t, rng, base.Add(-12*time.Hour), span+24*time.Hour)
		q := ledger.Query{Zone: zones[rng.IntN(len(zones))]}
		for _, by := range []ledger.Grouping{ledger.ByKey, ledger.ByModel, ledger.ByClass, ledger.ByUpstream} {
			if rng.IntN(3) == 0 {
				q.By = append(q.By, by)
			}
		}
		if rng.IntN(2) == 0 {
			q.By = append(q.By, []ledger.Grouping{ledger.ByHour, ledger.ByDay, ledger.ByMonth}[rng.IntN(3)])
		}
		rng.Shuffle(len(q.By), func(i, j int) { q.By[i], q.By[j] = q.By[j], q.By[i] })
		if rng.IntN(2) == 0 {
			q.Since = base.Add(rand64(rng, span))
		}
		if rng.IntN(2) == 0 {
			q.Until = base.Add(rand64(rng, span))
		}
		if rng.IntN(4) == 0 {
			q.Keys, q.Models = []string{"a", "b"}, []string{"gpt-4o", "llama"}
		}
		want := priceEach(f, q, p)
		got, err := Report(t.Context(), f, q, p, base.Add(span))
		if err != nil {
			t.Fatal(err)
		}
		if len(f.questions) > 2 {
			split++
		}
		if len(got) != len(want) {
			t.Fatalf("trial %d: %d lines, want %d", trial, len(got), len(want))
		}
		var cost Money
		for i, l := range got {
			w := want[groupOf(l.Usage)]
			for _, line := range []*Line{&l, &w} {
				line.From = time.Unix(line.From.Unix(), 0).UTC()
				if len(line.BySource) == 0 {
					line.BySource = nil
				}
			}
			if !reflect.DeepEqual(l, w) {
				g, _ := json.Marshal(l)
				x, _ := json.Marshal(w)
				t.Fatalf("trial %d, by %v:\n got %s\nwant %s", trial, q.By, g, x)
			}
			if l.Cost != nil {
				cost = cost.Plus(l.Cost.Total())
			}
			if share, ok := l.PricedShare(); ok && share > 0 && share < 1 {
				partly++
			}
			if i > 0 && !slices.IsSortedFunc(got[i-1:i+1], func(a, b Line) int {
				for _, by := range q.By {
					if c := compare(by, &a.Usage, &b.Usage); c != 0 {
						return c
					}
				}
				return 0
			}) {
				t.Fatalf("trial %d: line %d is out of order", trial, i)
			}
		}
		if total := Total(got); total.Cost != nil && total.Cost.Total() != cost {
			t.Fatalf("trial %d: lines add up to %s, the total is %s", trial, cost, total.Cost.Total())
		}
	}
	if split < 50 || partly < 50 {
		t.Errorf("only %d trials had a price that changed, %d lines a price in part: the test shows little", split, partly)
	}
}

// TestReportAsksLittle: where no price changes, one question tells the models and
// one the usage.
func TestReportAsksLittle(t *testing.T) {
	base := instantOf(t, "2026-11-01T00:00:00Z")
	f := &fake{rows: []row{{at: base.Add(time.Hour), model: "a", reported: ledger.Sums{Input: 1}}}}
	p := list(t, `{"model":"a","input":1,"output":1,"valid_from":"2026-10-01"}`, `{"model":"b","input":1,"output":1,"valid_from":"2026-11-01T02:00:00Z"}`,
		`{"model":"a","input":2,"output":2,"valid_from":"2026-11-05"}`)
	q := ledger.Query{Since: base}
	lines, err := Report(t.Context(), f, q, p, base.Add(24*time.Hour))
	if err != nil || len(lines) != 1 || len(f.questions) != 2 {
		t.Errorf("%d questions, lines %+v (%v): want 2 questions", len(f.questions), lines, err)
	}
	// The change lies within the period when now is later, and when it does not matter.
	for _, now := range []time.Time{base.Add(1000 * time.Hour), {}} {
		f.questions = nil
		if _, err := Report(t.Context(), f, q, p, now); err != nil || len(f.questions) != 3 {
			t.Errorf("now %v: %d questions (%v), want 3", now, len(f.questions), err)
		}
	}
}

func TestReportWithoutPrices(t *testing.T) {
	base := instantOf(t, "2026-11-01T00:00:00Z")
	f := &fake{rows: []row{{at: base, key: "b", reported: ledger.Sums{Input: 1}}, {at: base, key: "a", reported: ledger.Sums{Input: 2}}}}
	lines, err := Report(t.Context(), f, ledger.Query{By: []ledger.Grouping{ledger.ByKey}}, nil, time.Time{})
	if err != nil || len(lines) != 2 || lines[0].Key != "a" || len(f.questions) != 1 {
		t.Fatalf("%+v (%v)", lines, err)
	}
	b, _ := json.Marshal(lines[0])
	for _, absent := range []string{"cost", "priced"} {
		if strings.Contains(string(b), absent) {
			t.Errorf("without prices there is %q in %s", absent, b)
		}
	}
	if _, ok := lines[0].PricedShare(); ok {
		t.Error("a priced share without prices")
	}
}

func TestReportPassesErrors(t *testing.T) {
	broken := errors.New("locked")
	p := list(t, `{"model":"*","input":1,"output":1}`)
	for _, prices := range []*Prices{nil, p} {
		if _, err := Report(t.Context(), &fake{err: broken}, ledger.Query{}, prices, time.Time{}); !errors.Is(err, broken) || !strings.Contains(err.Error(), "ask the ledger") {
			t.Errorf("got %v", err)
		}
	}
	f := &fake{rows: []row{{model: "m", at: time.Unix(0, 0)}}}
	f.before = func() {
		if len(f.questions) == 2 {
			f.err = broken
		}
	}
	if _, err := Report(t.Context(), f, ledger.Query{}, p, time.Time{}); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// TestReportOfANewModel: a model that is recorded while a report is made is
// priced by its own changes.
func TestReportOfANewModel(t *testing.T) {
	base := instantOf(t, "2026-11-01T00:00:00Z")
	p := list(t, `{"model":"m","input":1,"output":1}`, `{"model":"m","input":2,"output":1,"valid_from":"2026-11-01T05:00:00Z"}`, `{"model":"free","input":0,"output":0}`)
	f := &fake{rows: []row{{at: base, model: "old", reported: ledger.Sums{Input: 1}}}}
	f.before = func() {
		if len(f.questions) == 2 { // the models have been asked for
			f.rows = append(f.rows, row{at: base.Add(4 * time.Hour), model: "m", reported: ledger.Sums{Input: 1_000_000}},
				row{at: base.Add(5 * time.Hour), model: "m", reported: ledger.Sums{Input: 1_000_000}}, row{at: base, model: "free"})
		}
	}
	lines, err := Report(t.Context(), f, ledger.Query{}, p, time.Time{})
	if err != nil || len(lines) != 1 || lines[0].Cost.Reported.String() != "3" {
		t.Errorf("%+v (%v), want a cost of 3", lines, err)
	}
	n := 0
	f.before = func() {
		if n++; n%2 == 0 {
			f.rows = append(f.rows, row{at: base, model: strings.Repeat("m", n)})
		}
	}
	p = list(t, `{"model":"m*","input":1,"output":1,"valid_from":"2026-10-01"}`)
	if _, err := Report(t.Context(), f, ledger.Query{}, p, time.Time{}); err == nil || !strings.Contains(err.Error(), "keep appearing") {
		t.Errorf("got %v", err)
	}
}

func TestTooManyChanges(t *testing.T) {
	base := instantOf(t, "2026-01-01T00:00:00Z")
	var entries []string
	for h := range maxSegments + 1 {
		price := "1"
		if h%2 == 0 {
			price = "2"
		}
		entries = append(entries, `{"model":"m","input":`+price+`,"output":1,"valid_from":"`+base.Add(time.Duration(h)*time.Hour).Format(time.RFC3339)+`"}`)
	}
	f := &fake{rows: []row{{at: base, model: "m"}}}
	if _, err := Report(t.Context(), f, ledger.Query{}, list(t, entries...), time.Time{}); err == nil || !strings.Contains(err.Error(), "ask for a shorter one") {
		t.Errorf("got %v", err)
	}
}

// TestCostOfNothingKnown: calls of whose usage nothing is known cost something
// unknown, and calls that used nothing cost nothing.
func TestCostOfNothingKnown(t *testing.T) {
	p := list(t, `{"model":"*","input":1,"output":1}`)
	q := ledger.Query{By: []ledger.Grouping{ledger.ByKey}}
	f := &fake{rows: []row{{key: "refused", refused: true}, {key: "unknown", noUsage: true}, {key: "unknown", refused: true},
		{key: "some", noUsage: true}, {key: "some", reported: ledger.Sums{Input: 1_000_000}}}}
	lines, err := Report(t.Context(), f, q, p, time.Time{})
	if err != nil || len(lines) != 3 {
		t.Fatalf("%+v (%v)", lines, err)
	}
	if c := lines[0].Cost; c == nil || !c.Total().IsZero() {
		t.Errorf("refused calls cost %+v, want 0", c)
	}
	if c := lines[1].Cost; c == nil || c.Total().String() != "1" {
		t.Errorf("what is known costs %+v, want 1", c)
	}
	if c := lines[2].Cost; c != nil {
		t.Errorf("what is not known costs %+v", c)
	}
	if c := Total(lines[2:]).Cost; c != nil {
		t.Errorf("what is not known costs %+v in total", c)
	}
}

func TestUnpricedModelsAreBounded(t *testing.T) {
	f := &fake{}
	for i := range 100 {
		f.rows = append(f.rows, row{model: strings.Repeat("x", 1+i), reported: ledger.Sums{Input: 1}})
	}
	lines, err := Report(t.Context(), f, ledger.Query{}, list(t), time.Time{})
	if err != nil || len(lines) != 1 || lines[0].Cost != nil || lines[0].UnpricedTokens != call.Known(100) || len(lines[0].UnpricedModels) != maxUnpriced ||
		!slices.IsSorted(lines[0].UnpricedModels) {
		t.Errorf("%+v (%v)", lines, err)
	}
}

func TestReportOfNothing(t *testing.T) {
	for _, p := range []*Prices{nil, list(t)} {
		lines, err := Report(t.Context(), new(fake), ledger.Query{}, p, time.Time{})
		if err != nil || len(lines) != 1 || !reflect.DeepEqual(lines[0], Line{}) {
			t.Errorf("%+v (%v)", lines, err)
		}
		lines, err = Report(t.Context(), new(fake), ledger.Query{By: []ledger.Grouping{ledger.ByKey}}, p, time.Time{})
		if err != nil || len(lines) != 0 {
			t.Errorf("%+v (%v)", lines, err)
		}
	}
}
