package main

import (
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"
	"time"
)

func TestQuantile(t *testing.T) {
	values := []float64{4, 1, 3, 2}
	for q, want := range map[float64]float64{0: 1, 0.25: 1.75, 0.5: 2.5, 0.95: 3.85, 1: 4} {
		if got := quantile(values, q); math.Abs(got-want) > 1e-12 {
			t.Errorf("quantile(%v) = %v, want %v", q, got, want)
		}
	}
	if values[0] != 4 {
		t.Error("quantile sorted its argument")
	}
	if got := quantile(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing = %v, want NaN", got)
	}
}

// Drift of the machine hits all three gateways of a round alike and must cancel.
func TestCompareCancelsDrift(t *testing.T) {
	var triples []triple
	for i := range 24 {
		drift := 1 + float64(i)/10
		triples = append(triples, triple{100 * drift, 102 * drift, 100 * drift})
	}
	f := compare("x", "µs", triples, ratioAtMost, 1.03)
	if math.Abs(f.Effect.Median-1.02) > 1e-9 || math.Abs(f.Effect.Q3-f.Effect.Q1) > 1e-9 || f.BareAgain.Median != 1 || !f.Met {
		t.Errorf("%+v: want a ratio of 1.02 without spread, met", f)
	}
	if f := compare("x", "µs", triples, ratioAtMost, 1.01); f.Met {
		t.Error("1.02 meets a target of 1.01")
	}
	if f := compare("x", "1/s", triples, ratioAtLeast, 1.05); f.Met {
		t.Error("1.02 meets a target of at least 1.05")
	}
	if f := compare("x", "µs", triples[:1], differenceAtMost, 2); !f.Met || f.Effect.Median != 2 {
		t.Errorf("%+v: want a difference of 2, met", f)
	}
}

func TestTailIsJudgedByNoise(t *testing.T) {
	var quiet, slow []triple
	for i := range 24 {
		noise := 1 + 0.1*math.Sin(float64(i)) // of the second bare gateway
		quiet = append(quiet, triple{100, 101, 100 * noise})
		slow = append(slow, triple{100, 150, 100 * noise})
	}
	if f := compareTail("p99", quiet); !f.Met {
		t.Errorf("%+v: 1 %% more within 10 %% noise is not met", f)
	}
	if f := compareTail("p99", slow); f.Met {
		t.Errorf("%+v: 50 %% more within 10 %% noise is met", f)
	}
}

func TestOrdersAreBalanced(t *testing.T) {
	var seen [3][3]int
	for _, order := range orders {
		for place, g := range order {
			seen[place][g]++
		}
	}
	for place, by := range seen {
		for g, n := range by {
			if n != 2 {
				t.Errorf("gateway %d stands %d times in place %d, want 2", g, n, place)
			}
		}
	}
}

// The loads against the upstream itself: whatever comes changed is an error.
func TestLoadsAgainstUpstream(t *testing.T) {
	for name, open := range map[string]func(*upstream, *gateway) (load, error){
		"calls": newCalls, "one event a write": newLockstep(1), "eight a write": newLockstep(8), "paced": newPaced,
	} {
		t.Run(name, func(t *testing.T) {
			u, err := newUpstream()
			if err != nil {
				t.Fatal(err)
			}
			defer u.close()
			l, err := open(u, &gateway{name: "none", addr: u.listener.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				did, err := l.run(40 * time.Millisecond)
				if err != nil {
					t.Fatal(err)
				}
				if did.units == 0 {
					t.Error("nothing went through")
				}
				if name == "paced" && (did.units != 600 || len(did.delays) != 600) {
					t.Errorf("%d events and %d delays, want 600 each", did.units, len(did.delays))
				}
				for _, d := range did.delays {
					if d <= 0 {
						t.Fatalf("an event was under way for %v", d)
					}
				}
			}
			l.close()
			u.mu.Lock()
			defer u.mu.Unlock()
			if n := len(u.streams); n != 0 {
				t.Errorf("%d streams are left", n)
			}
		})
	}
}

func TestProcessFigures(t *testing.T) {
	cpu, err := cpuTime(os.Getpid())
	if err != nil || cpu <= 0 {
		t.Errorf("CPU time %v, %v", cpu, err)
	}
	if n, err := residentBytes(os.Getpid()); err != nil || n < 1<<16 {
		t.Errorf("%d bytes resident, %v", n, err)
	}
	if cores, err := allowedCores(); err != nil || len(cores) == 0 {
		t.Errorf("cores %v, %v", cores, err)
	}
	if _, err := cpuTime(1<<22 + 1); err == nil {
		t.Error("no error for a process id beyond the largest")
	}
}

func TestReport(t *testing.T) {
	f := compare("JSON call, CPU", "µs", []triple{{100, 104, 101}}, differenceAtMost, 5)
	r := report{Rounds: 1, Figures: []figure{f}, Notes: []string{"mind the gap"}}
	var text, program strings.Builder
	if err := r.write(&text, false); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"JSON call, CPU", "+3.500", "<= +5 µs", "yes", "note: mind the gap"} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
	if err := r.write(&program, true); err != nil {
		t.Fatal(err)
	}
	var back report
	if err := json.Unmarshal([]byte(program.String()), &back); err != nil || len(back.Figures) != 1 || !back.Figures[0].Met {
		t.Errorf("%v: %s", err, program.String())
	}
}

func TestSelection(t *testing.T) {
	all, err := selection("")
	if err != nil || len(all) != len(parts) || !all["memory"] {
		t.Errorf("%v, %v", all, err)
	}
	some, err := selection("json,paced")
	if err != nil || !some["json"] || !some["paced"] || some["memory"] {
		t.Errorf("%v, %v", some, err)
	}
	if _, err := selection("all"); err == nil {
		t.Error("no error for a name that does not exist")
	}
}
