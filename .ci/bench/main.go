// Command bench measures what Weir costs beside bare Caddy, in one run.
//
// Method. One binary serves as both: without the weir directive in its
// Caddyfile it is plain Caddy. Three gateways run, each with stock time-outs
// and its own admin endpoint: bare, weir, and bare again. All are pinned to one
// core; this program, which is load generator and upstream at once, is pinned
// to the other. Only one gateway has load at a time: short slices alternate
// among the three, in an order that takes every gateway through every place.
//
// Three neighbouring slices make a round. A round yields one paired figure,
// weir against the mean of its two bare slices, and one bare against bare: what
// this machine makes of no difference at all. Shown are medians over the rounds
// with their quartiles. A figure counts with at least 20 rounds.
//
// CPU is the process' own, from its kernel clock in nanoseconds; allocations
// come from the runtime's counters over /debug/vars; memory is measured on a
// fresh process with thousands of streams held open after their first chunk.
// The delay of a chunk is the time from just before the upstream's write to
// just after the client's read, on one monotonic clock.
//
// Streams are driven in lockstep (the upstream writes the next event once the
// client has read the last), so that a slower gateway cannot hide its cost by
// reading several events at once; or paced, 300 streams with an event every
// 20 ms each, evenly spread.
//
// Admission is weir against weir: where the others have bare Caddy it has a site
// with weir alone, and where they have weir one with keys, limits of every kind
// but so high that they refuse nothing, and a ledger. Its CPU includes the
// ledger's whole work: a slice is over when the database has its calls.
//
// Each figure is printed with its target and whether it was met. A target that
// was missed never fails the run: the figure is the result. Only what keeps a
// figure from being measured does.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

// options are the flags of one run.
type options struct {
	binary    string
	directive string
	rounds    int
	slice     time.Duration
	streams   int // idle ones
	memory    int // rounds of the memory figure
	profile   string
	asJSON    bool
	only      string
}

func main() {
	var o options
	short := false
	flag.StringVar(&o.binary, "binary", "", "the weir binary to measure (required; run.sh builds one)")
	flag.StringVar(&o.directive, "directive", "weir", "what the measured site has before reverse_proxy")
	flag.IntVar(&o.rounds, "rounds", 24, "rounds of a figure; each is one slice of every gateway")
	flag.DurationVar(&o.slice, "slice", 800*time.Millisecond, "length of one slice")
	flag.IntVar(&o.streams, "streams", 5000, "idle streams of the memory figure")
	flag.IntVar(&o.memory, "memory-rounds", 3, "rounds of the memory figure")
	flag.StringVar(&o.profile, "profile", "", "folder for profiles of both gateways, taken where a figure misses its target, and of idle streams")
	flag.BoolVar(&o.asJSON, "json", false, "print JSON")
	flag.StringVar(&o.only, "only", "", "measure only these, by comma: "+partNames())
	flag.BoolVar(&short, "short", false, "a look in about one minute: 6 rounds of 250 ms, 1,000 idle streams once")
	flag.Parse()
	if short {
		o.rounds, o.slice, o.streams, o.memory = 6, 250*time.Millisecond, 1000, 1
	}
	if err := run(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

func run(o options) error {
	if o.binary == "" {
		return errors.New("no binary named; use bash .ci/bench/run.sh, or -binary FILE")
	}
	if flag.NArg() > 0 {
		return fmt.Errorf("unexpected argument %q; see -help", flag.Arg(0))
	}
	if o.rounds < 1 || o.memory < 1 || o.streams < 1 || o.streams > 20_000 || o.slice < 50*time.Millisecond || o.slice > 10*time.Second {
		return errors.New("-rounds and -memory-rounds take 1 or more, -streams 1 to 20000, -slice 50ms to 10s")
	}
	wanted, err := selection(o.only)
	if err != nil {
		return err
	}
	core := pinSelf()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	b, err := newBench(ctx, o, core)
	if err != nil {
		return err
	}
	defer b.close()
	// Ctrl-C breaks the connections, and with them whatever waits on one.
	context.AfterFunc(ctx, b.up.close)

	rep := report{Machine: describe(b), Rounds: o.rounds, SliceMS: float64(o.slice) / 1e6}
	for _, part := range parts {
		if !wanted[part.name] {
			continue
		}
		b.progress("%s …", part.what)
		figures, err := part.measure(b)
		if ctx.Err() != nil {
			return errors.New("interrupted")
		}
		if err != nil {
			return fmt.Errorf("measure %s: %w", part.what, err)
		}
		rep.Figures = append(rep.Figures, figures...)
		if o.profile != "" && part.load != nil && anyMissed(figures) {
			commands, err := b.profiles(part)
			if err != nil {
				return fmt.Errorf("profile %s: %w", part.what, err)
			}
			for _, c := range commands {
				rep.Notes = append(rep.Notes, part.what+" fell short; see where: "+c)
			}
		}
	}
	rep.Notes = append(b.notes(rep.Machine.LoadBefore), rep.Notes...)
	return rep.write(os.Stdout, o.asJSON)
}

// partNames lists what -only may name.
func partNames() string {
	var names []string
	for _, p := range parts {
		names = append(names, p.name)
	}
	return strings.Join(names, ", ")
}

// selection reads -only.
func selection(only string) (map[string]bool, error) {
	wanted := make(map[string]bool)
	for _, p := range parts {
		wanted[p.name] = only == ""
	}
	if only != "" {
		for name := range strings.SplitSeq(only, ",") {
			if _, ok := wanted[name]; !ok {
				return nil, fmt.Errorf("-only names %q; there are %s", name, partNames())
			}
			wanted[name] = true
		}
	}
	return wanted, nil
}

// coreEnv carries the gateways' core to this program started again.
const coreEnv = "WEIR_BENCH_GATEWAY_CORE"

// pinSelf starts this program again on a core of its own, when there are two
// to choose from and taskset to do so, and returns the core for the gateways;
// "" when nothing is pinned.
func pinSelf() string {
	if core := os.Getenv(coreEnv); core != "" {
		return core
	}
	taskset, err := exec.LookPath("taskset")
	if err != nil {
		return ""
	}
	self, err := os.Executable()
	if err != nil {
		return ""
	}
	cores, err := allowedCores()
	if err != nil || len(cores) < 2 {
		return ""
	}
	// On success this does not return.
	_ = syscall.Exec(taskset, append([]string{"taskset", "-c", cores[1], self}, os.Args[1:]...),
		append(os.Environ(), coreEnv+"="+cores[0]))
	return ""
}
