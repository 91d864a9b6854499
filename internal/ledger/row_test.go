package ledger

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// fill gives every field of a struct a value, or leaves it as it is, by chance.
// Fields that the ledger does not hold stay empty.
func fill(r *rand.Rand, v reflect.Value, always bool) {
	for i := range v.NumField() {
		f, field := v.Field(i), v.Type().Field(i)
		if field.Tag.Get("json") == "-" || !field.IsExported() {
			continue
		}
		if f.Kind() == reflect.Struct && f.NumField() > 2 && f.Type() != reflect.TypeFor[time.Time]() {
			fill(r, f, always)
			continue
		}
		if !always && r.IntN(2) == 0 {
			continue
		}
		switch p := f.Addr().Interface().(type) {
		case *string:
			*p = []string{"a", "some text", "ünï\u2028", `{"x":1}`, strings.Repeat("n", call.MaxName)}[r.IntN(5)]
		case *int:
			*p = 1 + r.IntN(600)
		case *int64:
			*p = 1 + r.Int64N(1<<40)
		case *bool:
			*p = true
		case *call.Count:
			*p = call.Known(r.Int64N(1 << r.IntN(30)))
		case *call.Number:
			*p = call.Figure(float64(r.IntN(1<<20)) / 64)
		case *[]string:
			*p = [][]string{{"sw_thermal"}, {"power_cap", "hw_slowdown"}}[r.IntN(2)]
		case *call.Duration:
			*p = call.Lasting(time.Duration(r.Int64N(1 << r.IntN(50))))
		case *call.Finish:
			for range 1 + r.IntN(3) {
				p.Set(r.IntN(3), []string{"stop", "length"}[r.IntN(2)])
			}
		case *call.Outcome:
			*p = call.Outcomes[r.IntN(len(call.Outcomes))]
		case *call.UsageSource:
			*p = []call.UsageSource{call.UsageNone, call.UsageReported, call.UsageTimings, call.UsageCounted, call.UsagePartial}[r.IntN(5)]
		case *call.Source:
			*p = []call.Source{call.Measured, call.FromEngine, call.Inferred, call.Unattributed}[r.IntN(4)]
		case *[]call.Degradation:
			*p = [][]call.Degradation{{call.ParseErrors}, {call.BodyTooLarge, call.UsageHidden}}[r.IntN(2)]
		case *time.Time:
			*p = time.Unix(1e9+r.Int64N(1e9), r.Int64N(1e9)).UTC()
		case *call.PhaseSources: // a struct of strings, filled above
		default:
			panic("no value for " + field.Name)
		}
	}
}

// anyRow returns a row of which everything, or anything, is known.
func anyRow(r *rand.Rand, all bool) *call.Record {
	row := new(call.Record)
	fill(r, reflect.ValueOf(row).Elem(), all)
	// What cannot be: a record without id, time, outcome and source, tokens
	// without a source, a source of a phase that did not happen.
	row.ID = "id" + row.ID
	row.Probe = false // the gateway's own calls are nobody's usage, and in no ledger
	if row.Time.IsZero() {
		row.Time = noon
	}
	if row.Outcome == "" {
		row.Outcome = call.Completed
	}
	if row.UsageSource == "" || row.UsageSource == call.UsageNone {
		row.UsageSource, row.Usage = call.UsageNone, call.Usage{}
	}
	durations := spans(row)
	for i, src := range phaseSources(&row.PhaseSources) {
		switch {
		case !durations[phasesAt+i].IsKnown():
			*src = ""
		case *src == "":
			*src = call.Measured
		}
	}
	return row
}

// decode reads what appendRow wrote.
func decode(t testing.TB, b []byte) *call.Record {
	rec := new(call.Record)
	for len(b) > 0 {
		c, isText, v, rest, err := nextField(b)
		if err != nil || !c.known(isText) {
			t.Fatalf("column %d, text %v: %v", c, isText, err)
		}
		set(rec, c, v)
		b = rest
	}
	measuredSources(rec)
	return rec
}

func jsonOf(t testing.TB, row *call.Record) string {
	t.Helper()
	b, err := json.Marshal(row)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRowsComeBack: a row read from the spill and one read from the database
// say in JSON what was recorded, all of it, and know nothing more.
func TestRowsComeBack(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	l := open(t, Options{})
	want := make(map[string]string)
	for i := range 500 / underRace {
		row := anyRow(r, i < 100)
		row.ID = string(rune('a'+i%26)) + strings.Repeat("x", i/26)
		if got := jsonOf(t, decode(t, appendRow(nil, row, time.Now))); got != jsonOf(t, row) {
			t.Fatalf("from the spill:\n got %s\nwant %s", got, jsonOf(t, row))
		}
		l.End(row)
		want[row.ID] = jsonOf(t, row)
	}
	flush(t, l)
	got := rows(t, l)
	if len(got) != len(want) {
		t.Fatalf("%d rows, want %d; %+v", len(got), len(want), l.State())
	}
	for _, row := range got {
		if jsonOf(t, row) != want[row.ID] {
			t.Fatalf("from the database:\n got %s\nwant %s", jsonOf(t, row), want[row.ID])
		}
	}
}

// TestEveryColumnIsWritten holds the columns, the record and the schema together.
func TestEveryColumnIsWritten(t *testing.T) {
	row := anyRow(rand.New(rand.NewPCG(3, 4)), true)
	row.UsageSource = call.UsageReported
	row.Usage = call.Usage{Input: call.Known(1), Output: call.Known(2), Cached: call.Known(3), CacheWrite: call.Known(4), Reasoning: call.Known(5)}
	row.PhaseSources.Prefill = call.FromEngine
	written := make(map[column]bool)
	for b := appendRow(nil, row, time.Now); len(b) > 0; {
		c, isText, _, rest, err := nextField(b)
		if err != nil || !c.known(isText) || written[c] {
			t.Fatalf("column %d, text %v: %v", c, isText, err)
		}
		written[c], b = true, rest
	}
	for c := colID; c < colEnd; c++ {
		if !written[c] {
			t.Errorf("%s is never written", columns[c].name)
		}
		if !strings.Contains(schema, "\n\t"+columns[c].name+" ") {
			t.Errorf("schema.sql has no %s", columns[c].name)
		}
	}
}

// TestColumnNumbers: they are a format on disk. If this test fails, an older
// spill is read wrongly: append to it, change nothing.
func TestColumnNumbers(t *testing.T) {
	for c, n := range map[column]int{colID: 1, colTime: 3, colOutcome: 17, colInput: 22, colUsageSource: 27, colTTFT: 36,
		colPhaseUpload: 46, colPhaseSources: 57, colEngineQueue: 58, colAttempts: 64, colClientProtocol: 68, colClientRetries: 70} {
		if int(c) != n {
			t.Errorf("%s has the number %d, was %d", columns[c].name, c, n)
		}
	}
}

// TestNonsenseIsUnknown: an upstream may report anything, and sums must hold.
func TestNonsenseIsUnknown(t *testing.T) {
	l := open(t, Options{})
	for i, n := range []int64{-1, math.MinInt64, math.MaxInt64, maxTokens + 1, maxTokens} {
		row := ended(string(rune('a' + i)))
		row.Input, row.Output = call.Known(n), call.Known(1)
		l.End(row)
	}
	bad := ended("time")
	bad.Time = time.Time{}
	bad.Model, bad.Path = "\xff\xfe", strings.Repeat("ö", 4000)
	l.End(bad)
	l.End(new(call.Record))
	flush(t, l)
	usage, err := l.Usage(soon(t), Query{})
	if err != nil {
		t.Fatal(err)
	}
	if u := usage[0]; u.Calls != 6 || u.Reported.Input != maxTokens+10 || u.Reported.Output != 10 {
		t.Errorf("%+v", u)
	}
	got := rows(t, l)
	if got["a"].Input.IsKnown() || !got["e"].Input.IsKnown() {
		t.Error("what is no number of tokens is one, or the other way round")
	}
	if r := got["time"]; time.Since(r.Time) > time.Hour || r.Model != "\uFFFD" || len(r.Path) > maxText {
		t.Errorf("%+v", r.Identity)
	}
	if st := l.State(); st.Dropped != 1 || st.Degraded {
		t.Errorf("%+v", st)
	}
}
