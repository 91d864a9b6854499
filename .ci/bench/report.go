package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report is the result of a run.
type report struct {
	Machine machine  `json:"machine"`
	Rounds  int      `json:"rounds"`
	SliceMS float64  `json:"slice_ms"`
	Notes   []string `json:"notes,omitempty"`
	Figures []figure `json:"figures"`
}

// table prints the report for people.
func (r *report) table() string {
	var b strings.Builder
	m := r.Machine
	pinned := "gateway and load on a core each"
	if !m.Pinned {
		pinned = "not pinned"
	}
	fmt.Fprintf(&b, "%s, %d cores, Linux %s, %s, Caddy %s, load average %.2f before; %s\n",
		m.CPU, m.Cores, m.Kernel, m.Go, m.Caddy, m.LoadBefore, pinned)
	fmt.Fprintf(&b, "%d rounds of %g ms a slice; medians over rounds, quartiles in brackets\n\n", r.Rounds, r.SliceMS)
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "FIGURE\tBARE\tWEIR\tWEIR/BARE\tBARE/BARE\tTARGET\tMET")
	for _, f := range r.Figures {
		met := "no"
		if f.Met {
			met = "yes"
		}
		fmt.Fprintf(t, "%s\t%s %s\t%s %s\t%s\t%s\t%s\t%s\n", f.Name, number(f.Bare), f.Unit, number(f.Weir), f.Unit,
			f.show(f.Effect), f.show(f.BareAgain), f.Target, met)
	}
	t.Flush() // into memory: cannot fail
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "\nnote: %s", n)
	}
	b.WriteString("\n")
	return b.String()
}

func (f *figure) show(s spread) string {
	if f.Difference {
		sign := func(v float64) string {
			if math.Signbit(v) {
				return number(v)
			}
			return "+" + number(v)
		}
		return fmt.Sprintf("%s [%s %s]", sign(s.Median), sign(s.Q1), sign(s.Q3))
	}
	return fmt.Sprintf("%.3fx [%.3f %.3f]", s.Median, s.Q1, s.Q3)
}

// machine says where the figures come from.
type machine struct {
	CPU        string  `json:"cpu"`
	Cores      int     `json:"cores"`
	Kernel     string  `json:"kernel"`
	Go         string  `json:"go"`
	Caddy      string  `json:"caddy"`
	Pinned     bool    `json:"pinned"`
	LoadBefore float64 `json:"load_average_before"` // mean runnable tasks over the last minute
	Time       string  `json:"time"`
}

func describe(b *bench) machine {
	m := machine{Go: runtime.Version(), Pinned: b.core != "", Caddy: "unknown", Time: time.Now().UTC().Format(time.RFC3339)}
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	for line := range strings.Lines(string(cpuinfo)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "model name":
			m.CPU = strings.TrimSpace(value)
		case "processor":
			m.Cores++
		}
	}
	kernel, _ := os.ReadFile("/proc/sys/kernel/osrelease")
	m.Kernel = strings.TrimSpace(string(kernel))
	load, _ := os.ReadFile("/proc/loadavg")
	if f := strings.Fields(string(load)); len(f) > 0 {
		m.LoadBefore, _ = strconv.ParseFloat(f[0], 64)
	}
	info, _ := exec.CommandContext(b.ctx, b.opts.binary, "build-info").Output()
	for line := range strings.Lines(string(info)) {
		if f := strings.Fields(line); len(f) >= 3 && f[0] == "dep" && f[1] == "github.com/caddyserver/caddy/v2" {
			m.Caddy = f[2]
		} else if len(f) >= 2 && f[0] == "go" {
			m.Go = f[1]
		}
	}
	return m
}

// write prints the report for people or for programs.
func (r *report) write(w io.Writer, asJSON bool) error {
	if asJSON {
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		return enc.Encode(r)
	}
	_, err := io.WriteString(w, r.table())
	return err
}

// number prints a figure with as many digits as it deserves.
func number(v float64) string {
	switch a := max(v, -v); {
	case a >= 1000:
		return strconv.FormatFloat(v, 'f', 0, 64)
	case a >= 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	case a >= 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	}
	return strconv.FormatFloat(v, 'f', 3, 64)
}
