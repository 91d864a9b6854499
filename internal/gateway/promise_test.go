package gateway

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/alert"
	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/sim"
	"github.com/weirgate/weir/slo"
)

// keeper is a gateway that keeps the presets' promises in virtual time: calls are looked at
// each second and alerts decided every five, as the app does.
type keeper struct {
	*Gateway
	tracker *slo.Tracker
	counted *counted
	begun   time.Time
	calls   sync.WaitGroup
	ctx     context.Context // of all calls; ends with the test's traffic
	leave   context.CancelFunc

	mu   sync.Mutex
	told []notice
}

// notice is one thing that people were told, and when.
type notice struct {
	alert.Alert
	at time.Time
}

// keep runs a test with a keeper, and ends all of it.
func keep(t *testing.T, test func(t *testing.T, k *keeper)) {
	synctest.Test(t, func(t *testing.T) {
		k := &keeper{tracker: slo.New(), counted: new(counted), begun: time.Now()}
		k.ctx, k.leave = context.WithCancel(t.Context())
		var classes []slo.Class
		for _, name := range []string{slo.Interactive, slo.Completion, slo.Batch} {
			class, _ := slo.Preset(name)
			classes = append(classes, class)
		}
		cfg, _, err := slo.Config{Classes: classes}.Complete()
		if err != nil {
			t.Fatal(err)
		}
		if err := k.tracker.Configure(cfg, time.Now()); err != nil {
			t.Fatal(err)
		}
		k.Gateway = New(k.counted)
		k.Judge(k.tracker)
		alerts := alert.New(alert.Options{Receivers: []alert.Receiver{alert.Func("test", k.tell)}})
		ctx, cancel := context.WithCancel(context.Background())
		var behind sync.WaitGroup
		behind.Go(func() { alerts.Run(ctx) })
		behind.Go(func() {
			tick := time.NewTicker(time.Second)
			defer tick.Stop()
			for n := 1; ; n++ {
				select {
				case <-tick.C:
				case <-ctx.Done():
					return
				}
				now := time.Now()
				k.tracker.Tick(now)
				if n%5 == 0 {
					alerts.Observe(now, k.tracker.Status(now))
				}
			}
		})
		test(t, k)
		k.leave()
		k.calls.Wait()
		cancel()
		behind.Wait()
	})
}

// ends returns how many calls have ended, by how.
func (k *keeper) ends() map[call.Outcome]int {
	synctest.Wait()
	k.counted.mu.Lock()
	defer k.counted.mu.Unlock()
	all := make(map[call.Outcome]int)
	for _, rec := range k.counted.records {
		all[rec.Outcome]++
	}
	return all
}

// notices returns what people were told.
func (k *keeper) notices() []notice {
	synctest.Wait()
	k.mu.Lock()
	defer k.mu.Unlock()
	return slices.Clone(k.told)
}

func (k *keeper) tell(_ context.Context, a alert.Alert) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.told = append(k.told, notice{a, time.Now()})
	return nil
}

// page returns the first page that was told about an objective.
func (k *keeper) page(objective string) (notice, bool) {
	told := k.notices()
	i := slices.IndexFunc(told, func(a notice) bool { return a.Severity == alert.Page && a.Objective == objective })
	if i < 0 {
		return notice{}, false
	}
	return told[i], true
}

// traffic sends n calls of a class, one every interval, and returns after the last has
// begun and its interval is over.
func (k *keeper) traffic(class string, n int, interval time.Duration, next NextFunc) {
	k.leaving(class, n, interval, 0, next)
}

// leaving is traffic of clients that go after a while; 0 is never.
func (k *keeper) leaving(class string, n int, interval, after time.Duration, next NextFunc) {
	o := &Options{Class: class}
	for i := range n {
		k.calls.Go(func() {
			ctx, cancel := context.WithCancel(k.ctx)
			defer cancel()
			if after > 0 {
				defer time.AfterFunc(after, cancel).Stop()
			}
			r := chat(fmt.Sprint(class, i, time.Since(k.begun)), 4, "").WithContext(ctx)
			_ = k.Begin(r, o, &Surroundings{}).Serve(httptest.NewRecorder(), next)
		})
		time.Sleep(interval)
	}
}

// quick is an engine that keeps all presets.
var quick = sim.Config{PrefillBase: 20 * time.Millisecond, OutputMin: 4, OutputMax: 4}

// TestHangPages: an engine that falls silent pages before any call has ended, also
// where nothing is known of the time before.
func TestHangPages(t *testing.T) {
	keep(t, func(t *testing.T, k *keeper) {
		e := simulated(t, sim.Config{Fault: "hang"})
		k.traffic(slo.Interactive, 60, time.Second, direct(e))
		page, paged := k.page("ttft_p99")
		if !paged {
			t.Fatalf("no page in a minute; told %v", k.summaries())
		}
		if after := page.at.Sub(k.begun); after > 20*time.Second {
			t.Errorf("paged after %v", after)
		}
		if ends := k.ends(); len(ends) > 0 {
			t.Errorf("calls have ended by then: %v", ends)
		}
		t.Logf("paged %v after the first call: %s", page.at.Sub(k.begun), page.Annotations["summary"])
	})
}

// refused is an upstream that nobody listens at.
func refused() NextFunc {
	return func(http.ResponseWriter, *http.Request) error {
		return fmt.Errorf("dial tcp: %w", syscall.ECONNREFUSED)
	}
}

// outages are the ways in which an engine is gone.
func outages(t *testing.T) map[string]NextFunc {
	down, silent := quick, quick
	down.Fault, silent.Fault = "status:503", "hang"
	return map[string]NextFunc{
		"503": direct(simulated(t, down)), "hang": direct(simulated(t, silent)), "refused connection": refused(),
	}
}

// TestOutagePages: after an hour of good traffic an outage at one call a second pages
// within a minute, by the objective that it is about. At one in five seconds an engine that
// falls silent pages by the burn rate alone, which takes longer.
func TestOutagePages(t *testing.T) {
	for _, interval := range []time.Duration{time.Second, 5 * time.Second} {
		for _, class := range []string{slo.Interactive, slo.Completion} {
			for name, objective := range map[string]string{"503": "success", "refused connection": "success", "hang": "ttft_p99"} {
				within := time.Minute
				if name == "hang" && interval > time.Second {
					within = 4 * time.Minute
				}
				t.Run(fmt.Sprint(class, " every ", interval, " ", name), func(t *testing.T) {
					keep(t, func(t *testing.T, k *keeper) {
						k.traffic(class, int(time.Hour/interval), interval, direct(simulated(t, quick)))
						if len(k.notices()) > 0 {
							t.Fatalf("told in the good hour: %v", k.summaries())
						}
						down := time.Now()
						k.traffic(class, int(within/interval), interval, outages(t)[name])
						page, paged := k.page(objective)
						if !paged {
							t.Fatalf("no page within %v; told %v", within, k.summaries())
						}
						t.Logf("paged %v after the outage began: %s", page.at.Sub(down), page.Annotations["summary"])
					})
				})
			}
		}
	}
}

func (k *keeper) summaries() (all []string) {
	for _, a := range k.notices() {
		all = append(all, fmt.Sprintf("%v %s %s: %s", a.at.Sub(k.begun), a.Severity, a.Status, a.Annotations["summary"]))
	}
	return all
}

// TestPageEnds: an outage is told once for each objective that pages, and its end once,
// when the trouble has been away for long enough.
func TestPageEnds(t *testing.T) {
	keep(t, func(t *testing.T, k *keeper) {
		good := direct(simulated(t, quick))
		k.traffic(slo.Interactive, 600, time.Second, good)
		down := time.Now()
		k.traffic(slo.Interactive, 60, time.Second, refused())
		back := time.Now()
		k.traffic(slo.Interactive, 2700, time.Second, good)
		began, ended := make(map[string]int), make(map[string]int)
		for _, a := range k.notices() {
			if a.Severity != alert.Page {
				continue
			}
			if a.Status == alert.Firing {
				began[a.Objective]++
				continue
			}
			ended[a.Objective]++
			if away := a.at.Sub(back); away < 5*time.Minute {
				t.Errorf("%s is over %v after the engine came back", a.Objective, away)
			}
			t.Logf("%s lasted until %v after the engine came back", a.Objective, a.at.Sub(back))
		}
		if began["success"] != 1 || ended["success"] != 1 {
			t.Errorf("from %v on told %v", down.Sub(k.begun), k.summaries())
		}
		for objective, n := range began {
			if n != 1 || ended[objective] != 1 {
				t.Errorf("%s began %d times and ended %d times", objective, n, ended[objective])
			}
		}
	})
}

// TestHealthyPagesNobody: an hour of good traffic in all classes, with clients that make
// mistakes, or leave before and after the first token, tells nobody anything.
func TestHealthyPagesNobody(t *testing.T) {
	keep(t, func(t *testing.T, k *keeper) {
		e := simulated(t, quick)
		mistake := quick
		mistake.Fault = "status:400"
		bad := direct(simulated(t, mistake))
		var senders sync.WaitGroup
		for _, class := range []string{slo.Interactive, slo.Completion, slo.Batch} {
			senders.Go(func() { k.traffic(class, 3600, time.Second, direct(e)) })
			senders.Go(func() { k.traffic(class, 720, 5*time.Second, bad) })
			for _, after := range []time.Duration{5 * time.Millisecond, 40 * time.Millisecond} {
				senders.Go(func() { k.leaving(class, 720, 5*time.Second, after, direct(e)) })
			}
		}
		senders.Wait()
		if len(k.notices()) > 0 {
			t.Errorf("told %v", k.summaries())
		}
		judged := 0
		for _, o := range k.tracker.Status(time.Now()).Objectives {
			if o.State != slo.StateOK || o.Bad > 0 {
				t.Errorf("%s %s: %s, %+v", o.Class, o.Text, o.State, o.Counts)
			}
			if o.Objective.Number == slo.Success && o.Model == slo.AllModels {
				judged++
				if o.Good != 3600 {
					t.Errorf("%s: %d calls are good for success, 3600 were answered", o.Class, o.Good)
				}
			}
		}
		if judged != 3 {
			t.Errorf("%d classes are judged", judged)
		}
		if ends := k.ends(); ends[call.ClientGone] != 3*2*720 || ends[call.UpstreamError] != 3*720 || ends[call.Completed] != 3*3600 {
			t.Errorf("outcomes %v", ends)
		}
	})
}
