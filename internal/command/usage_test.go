package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/ledger"
	"github.com/weirgate/weir/internal/spend"
)

var update = flag.Bool("update", false, "write the golden files anew")

// writeLedger makes a ledger of these calls and returns its file.
func writeLedger(t *testing.T, rows ...*call.Record) string {
	t.Helper()
	db := filepath.Join(t.TempDir(), "usage.db")
	addToLedger(t, db, rows...)
	return db
}

func addToLedger(t *testing.T, db string, rows ...*call.Record) {
	t.Helper()
	l, err := ledger.Open(ledger.Options{Path: db, Retention: ledger.KeepAll})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		l.End(r)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := errors.Join(l.Flush(ctx), l.Close(ctx)); err != nil {
		t.Fatal(err)
	}
}

// used makes the row of a call; change makes it another.
func used(id, at, key, model string, input, output int64, change func(*call.Record)) *call.Record {
	r := new(call.Record)
	when, err := time.Parse(time.RFC3339, at)
	if err != nil {
		panic(err)
	}
	r.ID, r.Time, r.Key, r.Model, r.Class, r.Upstream = id, when, key, model, "interactive", "127.0.0.1:8000"
	r.Outcome, r.Status, r.Attempts = call.Completed, 200, 1
	r.UsageSource, r.Input, r.Output = call.UsageReported, call.Known(input), call.Known(output)
	if change != nil {
		change(r)
	}
	return r
}

// unreported makes a call one whose usage was only estimated.
func unreported(r *call.Record) {
	r.Outcome, r.UsageSource = call.ClientGone, call.UsageNone
	r.EstimatedInput, r.EstimatedOutput = r.Input, r.Output
	r.Usage = call.Usage{}
}

// someUsage is a ledger with a bit of everything.
func someUsage(t *testing.T) string {
	return writeLedger(t,
		used("1", "2026-11-29T22:59:59Z", "team-a", "gpt-4o", 1_200_000, 34_567, func(r *call.Record) { r.Cached, r.Reasoning = call.Known(200_000), call.Known(30_000) }),
		used("2", "2026-11-29T23:00:00Z", "team-a", "gpt-4o", 1_000, 100, nil),
		used("3", "2026-11-30T00:00:00Z", "team-a", "llama", 5_000, 700, unreported),
		used("4", "2026-11-30T01:00:00Z", "team-a", "llama", 4_000, 600, func(r *call.Record) { r.UsageSource = call.UsageTimings }),
		used("5", "2026-11-30T02:00:00Z", "team-b", "gpt-4o", 0, 0, func(r *call.Record) { r.Outcome, r.UsageSource, r.Status, r.Attempts = call.Refused, "", 429, 0 }),
		used("6", "2026-11-30T02:00:00Z", "team-b", "=HYPERLINK(1)", 10, 1, func(r *call.Record) { r.UsageSource = call.UsagePartial }),
		used("7", "2026-11-30T02:10:00Z", "", "", 20, 2, nil),
		used("8", "2026-11-30T02:20:00Z", "team-b", "gpt-4o", 0, 0, func(r *call.Record) { r.Outcome, r.UsageSource, r.Usage = call.Truncated, "", call.Usage{} }),
		used("9", "2026-10-01T00:00:00Z", "team-b", "gpt-4o", 7_000_000, 7, nil),
	)
}

const prices = `{
  "version": 1,
  "currency": "USD",
  "prices": [
    {"model": "gpt-4o", "input": 2.5, "cached_input": 1.25, "output": 10, "reasoning": 12},
    {"model": "gpt-4o", "valid_from": "2026-11-29T23:00:00Z", "input": 2, "output": 8},
    {"model": "llama*", "input": 0.000000001, "output": 0.1}
  ]
}`

func priceFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "prices.json")
	if err := os.WriteFile(file, []byte(prices), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// runUsage runs the command and returns what it printed.
func runUsage(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := build(t, "usage")
	var out bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	cmd.SetArgs(append([]string{}, args...)) // never nil: cobra takes the test's own then
	err := cmd.ExecuteContext(t.Context())
	return out.String(), err
}

// TestUsageGolden: what people and programs are shown, to the letter.
func TestUsageGolden(t *testing.T) {
	db, list := someUsage(t), priceFile(t)
	for name, args := range map[string][]string{
		"usage.txt":            {"--since", "2026-11-01"},
		"usage_costs.txt":      {"--since", "2026-11-01", "--prices", list},
		"usage_costs.json":     {"--since", "2026-11-01", "--prices", list, "--json"},
		"usage_costs.csv":      {"--since", "2026-11-01", "--prices", list, "--csv"},
		"usage.csv":            {"--since", "2026-11-01", "--csv", "--by", "key,class,upstream,day"},
		"usage_days.txt":       {"--since", "2026-11-29", "--until", "2026-11-30", "--zone", "Europe/Berlin", "--by", "day,model", "--prices", list, "--key", "team-a"},
		"usage_hours.json":     {"--since", "2026-11-29T22:00:00Z", "--by", "hour", "--zone", "Europe/Berlin", "--model", "gpt-4o", "--json"},
		"usage_total.txt":      {"--since", "all", "--by", "", "--prices", list},
		"usage_months.txt":     {"--since", "all", "--by", "month,upstream"},
		"usage_nothing.txt":    {"--since", "2027-01-01"},
		"usage_nothing.json":   {"--since", "2027-01-01", "--json"},
		"usage_no_one.txt":     {"--by", "", "--since", "2026-01-01", "--until", "2026-02-01"},
		"usage_one_model.txt":  {"--since", "2026-11-01", "--model", "gpt-4o", "--model", "llama", "--key", "team-a", "--by", "class"},
		"usage_all_priced.txt": {"--since", "2026-11-01", "--model", "llama", "--by", "hour", "--prices", list},
	} {
		got, err := runUsage(t, append([]string{"--db", db}, args...)...)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		golden(t, name, got)
	}
}

// golden compares with a file in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; write it with go test -run %s -update", err, t.Name())
	}
	if got != string(want) {
		t.Errorf("%s is\n%s\nwant\n%s", name, got, want)
	}
}

// TestUsageFormsAgree: table, JSON and CSV tell the same, and totals are the sum
// of the lines to the last digit.
func TestUsageFormsAgree(t *testing.T) {
	db, list := someUsage(t), priceFile(t)
	args := []string{"--db", db, "--since", "all", "--prices", list, "--by", "key,model,day"}
	js, err := runUsage(t, append(args, "--json")...)
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Lines []struct {
			ledger.Usage
			Cost *struct{ Reported, Estimated json.Number }
		}
		Total struct {
			ledger.Usage
			Cost struct{ Reported, Estimated json.Number }
		}
	}
	if err := json.Unmarshal([]byte(js), &doc); err != nil {
		t.Fatal(err)
	}
	text, err := runUsage(t, append(args, "--csv")...)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
	if err != nil || len(rows) != len(doc.Lines)+1 {
		t.Fatalf("%d rows for %d lines (%v)", len(rows), len(doc.Lines), err)
	}
	at := func(row []string, name string) string {
		for i, n := range rows[0] {
			if n == name {
				return row[i]
			}
		}
		t.Fatalf("no column %s", name)
		return ""
	}
	var reported, estimated spend.Money
	var input int64
	for i, l := range doc.Lines {
		row := rows[i+1]
		if l.Cost == nil {
			if at(row, "cost_reported") != "" || at(row, "cost_estimated") != "" {
				t.Errorf("line %d has a cost in CSV: %q", i, row)
			}
		} else {
			r, err1 := spend.ParseMoney(l.Cost.Reported.String())
			e, err2 := spend.ParseMoney(l.Cost.Estimated.String())
			if errors.Join(err1, err2) != nil || at(row, "cost_reported") != l.Cost.Reported.String() || at(row, "cost_estimated") != l.Cost.Estimated.String() {
				t.Errorf("line %d: %q is not %+v", i, row, l.Cost)
			}
			reported, estimated = reported.Plus(r), estimated.Plus(e)
		}
		input += l.Usage.Reported.Input
	}
	if reported.String() != doc.Total.Cost.Reported.String() || estimated.String() != doc.Total.Cost.Estimated.String() || input != doc.Total.Usage.Reported.Input {
		t.Errorf("lines add up to %s, %s and %d, the total is %+v", reported, estimated, input, doc.Total)
	}
}

func TestUsageErrors(t *testing.T) {
	db := someUsage(t)
	missing := filepath.Join(t.TempDir(), "none.db")
	for _, tt := range []struct {
		args []string
		want string
	}{
		{[]string{"--by", "key,colour"}, "choose from key, model, class, upstream, hour, day, month"},
		{[]string{"--since", "yesterday"}, "write a span like 30d or 12h, a day like 2026-11-01"},
		{[]string{"--zone", "Europe/Atlantis"}, "write it like Europe/Berlin"},
		{[]string{"--json", "--csv"}, "exclude each other"},
		{[]string{"--db", missing}, missing},
		{[]string{"--prices", missing}, "create it, for example"},
		{[]string{"surplus"}, "unknown command"},
	} {
		if out, err := runUsage(t, append([]string{"--db", db}, tt.args...)...); err == nil || !strings.Contains(err.Error(), tt.want) || out != "" && tt.args[0] != "surplus" {
			t.Errorf("%v: error %v does not say %q; printed %q", tt.args, err, tt.want, out)
		}
	}
	u := &usage{out: deaf{}}
	r, err := openLedger(db)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for _, form := range []*bool{new(bool), &u.json, &u.csv} {
		u.json, u.csv = false, false
		*form = true
		if err := u.report(t.Context(), r, ledger.Query{}, nil); err == nil || !strings.Contains(err.Error(), "write the report: gone") {
			t.Errorf("a writer that is gone: %v", err)
		}
	}
}

func TestNumbersForPeople(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", -1: "-1", -999: "-999", -1000: "-1,000", 123456: "123,456", -123456: "-123,456",
		1234567: "1,234,567", -9223372036854775808: "-9,223,372,036,854,775,808"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s, want %s", n, got, want)
		}
	}
	for share, want := range map[float64]string{0: "0.0%", 1: "100.0%", 0.5: "50.0%", 0.0004: "<0.1%", 0.0005: "0.1%", 0.9996: ">99.9%", 0.999: "99.9%"} {
		if got := percent(share); got != want {
			t.Errorf("%v is %s, want %s", share, got, want)
		}
	}
	for name, want := range map[string]string{"gpt": "gpt", "": "-", "a\x1b[31mb\n": "a\uFFFD[31mb\uFFFD", "模型": "模型"} {
		if got := named(name); got != want {
			t.Errorf("%q is shown as %q, want %q", name, got, want)
		}
	}
	for name, want := range map[string]string{"gpt": "gpt", "": "", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "\tx": "'\tx", "a=1": "a=1"} {
		if got := harmless(name); got != want {
			t.Errorf("%q is written as %q, want %q", name, got, want)
		}
	}
}
