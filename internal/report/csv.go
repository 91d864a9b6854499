package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
)

// CSV writes r as RFC 4180 has it (fields separated by commas, lines ended by CR
// LF, the first line names the columns): a line for each repeat of each load, and
// one for the median of a load's repeats. A figure that is not known is empty.
// Numbers have a decimal point, no grouping and all their digits. Text that a
// spreadsheet would run as a formula begins with an apostrophe. The columns:
//
//   - load; repeat (from 1, or "median"); time (RFC 3339, UTC); channel; api;
//     model; profile; streamed (true or false); interrupted (whether the load ended
//     early); weir, gateway (versions); seed.
//   - arrivals (closed, poisson, constant, burst or replay); set_concurrency;
//     set_rate (calls/s, or the factor of a replay); set_group; set_input and
//     set_output (lengths in words); shared_tokens; shared_groups.
//   - calls, succeeded, failed, without_usage (counts); seconds; calls_per_second,
//     offered_per_second, sent_per_second, achieved_per_second (as in
//     bench.Figures); input_tokens_per_second, output_tokens_per_second,
//     total_tokens_per_second; total_tokens_per_minute; concurrency (mean by time),
//     peak_concurrency; goodput (share, 0–1), goodput_undecided (calls); held_back
//     (calls); gaps_of (token or chunk).
//   - for each of ttft_ms, tpot_ms, itl_ms, gaps_ms, e2e_ms, late_ms (milliseconds),
//     input_tokens, output_tokens (tokens a call) and scheduling_delay_ms: NAME_n, NAME_mean,
//     NAME_p50, NAME_p90, NAME_p95, NAME_p99, NAME_max.
//   - identity_checked, identity_within (calls); distorted (true or false).
//   - failed_KIND (calls) for each kind of failure, and failed_other for kinds that
//     are not among them.
//
// Ladder, staircase and comparisons are not in it; JSON has them. Errors are those of w.
func CSV(w io.Writer, r bench.Result) error {
	out := csv.NewWriter(w)
	out.UseCRLF = true
	var c csvLine
	c.head = true
	c.line(r, bench.Run{}, "", bench.Figures{})
	err := out.Write(c.fields)
	c.head = false
	for _, run := range r.Runs {
		for i, f := range run.Repeats {
			err = firstError(err, out.Write(c.line(r, run, strconv.Itoa(i+1), f)))
		}
		err = firstError(err, out.Write(c.line(r, run, "median", run.Median)))
	}
	out.Flush()
	if err = firstError(err, out.Error()); err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	return nil
}

func firstError(a, b error) error {
	if a != nil {
		return a
	}
	return b
}

// csvLine makes one line of fields; with head, that of their names. Name and
// value are written side by side so that they cannot drift apart.
type csvLine struct {
	head   bool
	fields []string
}

func (c *csvLine) add(name, value string) {
	if c.head {
		value = name
	}
	c.fields = append(c.fields, value)
}

func (c *csvLine) text(name, s string)        { c.add(name, harmless(s)) }
func (c *csvLine) count(name string, n int)   { c.add(name, strconv.Itoa(n)) }
func (c *csvLine) flag(name string, b bool)   { c.add(name, strconv.FormatBool(b)) }
func (c *csvLine) set(name string, v float64) { c.number(name, &v, v != 0) }

// number writes a figure, empty unless it is known and finite.
func (c *csvLine) number(name string, v *float64, known bool) {
	if !known || v == nil || math.IsNaN(*v) || math.IsInf(*v, 0) {
		c.add(name, "")
		return
	}
	c.add(name, strconv.FormatFloat(*v, 'f', -1, 64))
}

func (c *csvLine) maybe(name string, v *float64) { c.number(name, v, true) }

// timed writes a figure that needs time to have passed.
func (c *csvLine) timed(name string, v float64, f bench.Figures) { c.number(name, &v, f.Seconds > 0) }

func (c *csvLine) quantiles(name string, q *bench.Quantiles) {
	known := q != nil && q.N > 0
	if !known {
		q = &bench.Quantiles{}
		c.add(name+"_n", "")
	} else {
		c.count(name+"_n", q.N)
	}
	c.number(name+"_mean", &q.Mean, known)
	c.number(name+"_p50", &q.P50, known)
	c.number(name+"_p90", &q.P90, known)
	c.number(name+"_p95", &q.P95, known)
	c.number(name+"_p99", &q.P99, known)
	c.number(name+"_max", &q.Max, known)
}

// line are the fields of one line. They are valid until the next one.
func (c *csvLine) line(r bench.Result, run bench.Run, repeat string, f bench.Figures) []string {
	c.fields = c.fields[:0]
	e := r.Environment
	c.text("load", run.Load)
	c.add("repeat", repeat)
	at := ""
	if !e.Time.IsZero() {
		at = e.Time.UTC().Format(time.RFC3339)
	}
	c.add("time", at)
	c.text("channel", e.Channel)
	c.text("api", string(e.API))
	c.text("model", e.Model)
	c.text("profile", string(e.Profile))
	c.flag("streamed", r.Streamed)
	c.flag("interrupted", run.Interrupted)
	c.text("weir", e.Weir)
	c.text("gateway", e.Gateway)
	c.add("seed", strconv.FormatUint(r.Seed, 10))

	c.text("arrivals", string(run.Arrivals.Shape))
	c.set("set_concurrency", float64(run.Arrivals.Concurrency))
	c.set("set_rate", run.Arrivals.Rate)
	c.set("set_group", float64(run.Arrivals.Group))
	c.text("set_input", length(run.Input))
	c.text("set_output", length(run.Output))
	c.count("shared_tokens", run.Sharing.Tokens)
	c.set("shared_groups", float64(run.Sharing.Groups))

	c.count("calls", f.Calls)
	c.count("succeeded", f.Good)
	c.count("failed", f.Calls-f.Good)
	c.count("without_usage", f.WithoutUsage)
	c.timed("seconds", f.Seconds, f)
	c.timed("calls_per_second", f.CallsPerSecond, f)
	c.maybe("offered_per_second", f.Offered)
	c.timed("sent_per_second", f.Sent, f)
	c.maybe("achieved_per_second", f.Achieved)
	c.maybe("input_tokens_per_second", f.InputPerSecond)
	c.maybe("output_tokens_per_second", f.OutputPerSecond)
	c.maybe("total_tokens_per_second", f.TotalPerSecond)
	c.maybe("total_tokens_per_minute", f.TotalPerMinute)
	c.timed("concurrency", f.Concurrency, f)
	c.count("peak_concurrency", f.Peak)
	c.maybe("goodput", f.Goodput)
	c.count("goodput_undecided", f.Undecided)
	c.count("held_back", f.Held)
	c.text("gaps_of", string(f.GapsOf))

	c.quantiles("ttft_ms", f.TTFT)
	c.quantiles("tpot_ms", f.TPOT)
	c.quantiles("itl_ms", f.ITL)
	c.quantiles("gaps_ms", f.Gaps)
	c.quantiles("e2e_ms", f.E2E)
	c.quantiles("late_ms", f.Late)
	c.quantiles("input_tokens", f.Input)
	c.quantiles("output_tokens", f.Output)
	c.quantiles("scheduling_delay_ms", f.Client.Delay)
	c.count("identity_checked", f.Identity.Checked)
	c.count("identity_within", f.Identity.Within)
	c.flag("distorted", f.Client.Distorted)
	c.failures(f.Failures)
	return c.fields
}

func (c *csvLine) failures(all map[endpoint.Kind]int) {
	other := 0
	for k, n := range all {
		if !slices.ContainsFunc(kinds, func(known failureKind) bool { return known.kind == k }) {
			other += n
		}
	}
	for _, k := range kinds {
		c.count("failed_"+string(k.kind), all[k.kind])
	}
	c.count("failed_other", other)
}

// harmless is a text of one line that no spreadsheet runs as a formula.
func harmless(s string) string {
	s = strings.TrimSpace(clean(s))
	if s != "" && strings.ContainsRune("=+-@＝＋－＠|%", []rune(s)[0]) {
		return "'" + s
	}
	return s
}
