package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// bench is one run: the upstream and the three gateways.
type bench struct {
	ctx   context.Context
	opts  options
	dir   string
	core  string // the gateways' core; "" when nothing is pinned
	weir  bool   // whether the binary has the weir handler
	up    *upstream
	files uint64 // limit of open files

	pacedEvents, lateEvents int64  // over all slices
	unrecorded              uint64 // starts and ends of calls that a ledger lost, or did not record at once

	gateways trio // bare, weir, bare again
}

// trio is the gateways that a figure compares, in the order of their places.
type trio [3]*gateway

func (t *trio) stop() {
	for _, g := range t {
		if g != nil {
			g.stop()
		}
	}
}

// The places in a trio.
const (
	bareOne = iota
	weirOne
	bareTwo
)

func newBench(ctx context.Context, o options, core string) (b *bench, err error) {
	b = &bench{ctx: ctx, opts: o, core: core}
	defer func() {
		if err != nil {
			b.close()
		}
	}()
	if b.files, err = openFilesLimit(); err != nil {
		return b, err
	}
	if b.weir, err = hasWeir(ctx, o.binary); err != nil {
		return b, err
	}
	if b.dir, err = os.MkdirTemp("", "weir-bench-"); err != nil {
		return b, fmt.Errorf("make a folder to work in: %w", err)
	}
	if b.up, err = newUpstream(); err != nil {
		return b, err
	}
	for i, name := range []string{"bare", "weir", "bare-again"} {
		if b.gateways[i], err = b.start(name, i == weirOne); err != nil {
			return b, err
		}
	}
	return b, nil
}

func (b *bench) start(name string, measured bool) (*gateway, error) {
	s := site{}
	if measured {
		s.directive = b.opts.directive
	}
	return b.startSite(name, s)
}

// startSite starts a gateway; without the weir handler in the binary it is bare.
func (b *bench) startSite(name string, s site) (*gateway, error) {
	if !b.weir {
		s = site{}
	}
	return startGateway(b.ctx, b.opts.binary, b.dir, name, s, b.up.listener.Addr().String(), b.core)
}

func (b *bench) close() {
	if b.up != nil {
		b.up.close()
	}
	b.gateways.stop()
	if b.dir != "" {
		_ = os.RemoveAll(b.dir)
	}
}

// notes are what a reader must know before believing the figures.
func (b *bench) notes(loadBefore float64) []string {
	var notes []string
	if b.lateEvents*1000 > b.pacedEvents {
		notes = append(notes, fmt.Sprintf("%d of %d paced events came late: this machine, not a gateway, could not keep the pace", b.lateEvents, b.pacedEvents))
	}
	if b.unrecorded > 0 {
		notes = append(notes, fmt.Sprintf("%d starts and ends of calls were not recorded at once: the ledger did less than its work for them", b.unrecorded))
	}
	if loadBefore > 0.5 {
		notes = append(notes, "other work was running: expect wide quartiles, and run again on a quiet machine")
	}
	if !b.weir {
		notes = append(notes, "the binary has no weir handler: bare Caddy is compared with itself; build cmd/weir with the module to measure it")
	}
	if b.core == "" {
		notes = append(notes, "not pinned (two cores and taskset are needed): load and gateway disturb each other")
	}
	if b.opts.rounds < 20 {
		notes = append(notes, fmt.Sprintf("%d rounds are a look, not a result: use at least 20", b.opts.rounds))
	}
	return notes
}

// progress tells a waiting person what is being measured.
func (b *bench) progress(format string, args ...any) {
	fmt.Fprintf(os.Stderr, "bench: "+format+"\n", args...)
}

// load is traffic through one gateway that can be run slice by slice.
type load interface {
	run(time.Duration) (traffic, error)
	close()
}

// traffic is what one slice of a load did.
type traffic struct {
	units  int64 // calls or tokens
	delays []time.Duration
	late   int64 // events of a paced load that fell behind by more than one interval
}

// slice is what was measured over one slice.
type slice struct {
	cpu      float64 // µs of the gateway's CPU per unit
	mallocs  float64 // allocations of the gateway per unit
	rate     float64 // units a second
	p50, p99 float64 // delay of a chunk in µs, of paced loads
}

// round is one slice of each gateway, in the order of a trio.
type round [3]slice

// rounds runs a load through the run's own gateways in turn.
func (b *bench) rounds(open func(*upstream, *gateway) (load, error)) ([]round, error) {
	return b.roundsOf(b.gateways, open)
}

// roundsOf runs a load through gateways in turn.
func (b *bench) roundsOf(gateways trio, open func(*upstream, *gateway) (load, error)) ([]round, error) {
	var loads [3]load
	for i, g := range gateways {
		l, err := open(b.up, g)
		if err != nil {
			return nil, err
		}
		defer l.close()
		loads[i] = l
	}
	for i, l := range loads { // warm up: pools, buffers, the heap's size
		for range 2 {
			if _, err := b.slice(gateways[i], l); err != nil {
				return nil, err
			}
		}
	}
	result := make([]round, b.opts.rounds)
	for r := range result {
		for _, i := range orders[r%len(orders)] {
			s, err := b.slice(gateways[i], loads[i])
			if err != nil {
				return nil, err
			}
			result[r][i] = s
		}
	}
	return result, nil
}

func (b *bench) slice(g *gateway, l load) (slice, error) {
	if err := b.ctx.Err(); err != nil {
		return slice{}, err
	}
	fail := func(err error) (slice, error) {
		select {
		case <-g.done:
			return slice{}, fmt.Errorf("gateway %s ended: %w; its last words:\n%s", g.name, err, g.lastWords())
		default:
			return slice{}, fmt.Errorf("load through gateway %s: %w", g.name, err)
		}
	}
	before, err := g.memStats()
	if err != nil {
		return fail(err)
	}
	cpu, err := cpuTime(g.cmd.Process.Pid)
	if err != nil {
		return fail(err)
	}
	start := time.Now()
	did, err := l.run(b.opts.slice)
	took := time.Since(start)
	if err != nil {
		return fail(err)
	}
	// What the ledger has yet to write is work of this slice's calls.
	if g.ledger {
		if err := b.drain(g); err != nil {
			return fail(err)
		}
	}
	cpuAfter, err := cpuTime(g.cmd.Process.Pid)
	if err != nil {
		return fail(err)
	}
	after, err := g.memStats()
	if err != nil {
		return fail(err)
	}
	if did.units == 0 {
		return fail(errors.New("nothing went through in a whole slice; use a longer -slice"))
	}
	if did.delays != nil {
		b.pacedEvents += did.units
		b.lateEvents += did.late
	}
	units := float64(did.units)
	s := slice{
		cpu:     float64(cpuAfter-cpu) / 1e3 / units,
		mallocs: float64(after.Mallocs-before.Mallocs) / units,
		rate:    units / took.Seconds(),
	}
	if len(did.delays) > 0 {
		us := make([]float64, len(did.delays))
		for i, d := range did.delays {
			us[i] = float64(d) / 1e3
		}
		s.p50, s.p99 = quantile(us, 0.5), quantile(us, 0.99)
	}
	return s, nil
}

// profiles keeps CPU and allocation profiles of bare and of weir under a part's
// load, and returns the commands that show the difference.
func (b *bench) profiles(p part) ([]string, error) {
	gateways := b.gateways
	if p.gateways != nil {
		var err error
		gateways, err = p.gateways(b)
		defer gateways.stop()
		if err != nil {
			return nil, err
		}
	}
	const seconds = 5
	var cpu, allocs [2]string
	for i, g := range []*gateway{gateways[bareOne], gateways[weirOne]} {
		l, err := p.load(b.up, g)
		if err != nil {
			return nil, err
		}
		got := make(chan error, 2)
		go func() {
			var err error
			cpu[i], err = b.profile(g, "profile", p.name+"-cpu-"+g.name, fmt.Sprintf("?seconds=%d", seconds))
			got <- err
		}()
		go func() {
			var err error
			allocs[i], err = b.profile(g, "allocs", p.name+"-allocs-"+g.name, fmt.Sprintf("?seconds=%d", seconds))
			got <- err
		}()
		_, err = l.run((seconds + 1) * time.Second)
		err = errors.Join(err, <-got, <-got)
		l.close()
		if err != nil {
			return nil, err
		}
	}
	const show = "go tool pprof -top -normalize -diff_base " // normalized: the slower one did less
	return []string{show + cpu[0] + " " + cpu[1], "go tool pprof -top -normalize -sample_index=alloc_objects -diff_base " + allocs[0] + " " + allocs[1]}, nil
}

// profile keeps one profile of a gateway and returns its file.
func (b *bench) profile(g *gateway, kind, name, query string) (string, error) {
	data, err := g.get("/debug/pprof/" + kind + query)
	if err != nil {
		return "", fmt.Errorf("take profile %s of gateway %s: %w", kind, g.name, err)
	}
	if err := os.MkdirAll(b.opts.profile, 0o755); err != nil {
		return "", fmt.Errorf("keep a profile: %w (choose another -profile folder)", err)
	}
	file := filepath.Join(b.opts.profile, name+".pprof")
	if err := os.WriteFile(file, data, 0o644); err != nil {
		return "", fmt.Errorf("keep a profile: %w (choose another -profile folder)", err)
	}
	return file, nil
}
