package alert

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// picky is a receiver that fails now and then, by what it is told alone, so that two
// of them that are told the same fail at the same.
type picky struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (p *picky) answer(_ context.Context, b Batch) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, a := range b.Alerts {
		subject := a.Class + a.Objective + a.Model + string(a.Severity)
		switch sum := fingerprint(map[string]string{subject: string(a.Status)}); {
		case sum[0] < '3':
			return Permanent(errDead) // of this it never hears
		case a.Severity == Page && a.Objective == "success" && !p.seen[sum+a.StartsAt.String()]:
			p.seen[sum+a.StartsAt.String()] = true
			return errDead // and of this at the second try; not of so much that it would take a step
		}
	}
	return nil
}

// pair are two receivers of one kind: of the process that never ends, and of those that
// are restarted.
type pair struct{ steady, restarted *scribe }

func pairs() (all []pair, steady, restarted []Receiver) {
	add := func(name string, manner manners, fails bool) {
		var p pair
		for _, s := range []**scribe{&p.steady, &p.restarted} {
			*s = &scribe{name: name, manner: manner}
			if fails {
				(*s).answer = (&picky{seen: make(map[string]bool)}).answer
			}
		}
		all, steady, restarted = append(all, p), append(steady, p.steady), append(restarted, p.restarted)
	}
	add("webhook", manners{most: 1}, false)
	add("batches", manners{}, false)
	add("picky webhook", manners{most: 1}, true)
	return all, steady, restarted
}

// heardOf is what a receiver heard of each alert, told twice is once. began is whether the
// beginnings count.
func heardOf(s *scribe, began bool) map[string]string {
	all := make(map[string]string)
	s.mu.Lock()
	defer s.mu.Unlock()
	last := make(map[string]string)
	for _, a := range s.alerts {
		news := string(a.Status)
		if began {
			news += " of " + a.StartsAt.Format(time.RFC3339Nano)
		}
		if subject := headline(a)[:1] + a.Fingerprint; last[subject] != news {
			last[subject] = news
			all[subject] += news + "; "
		}
	}
	return all
}

// onlyEnded fails if a receiver heard of another beginning of an alert and not of the end of
// the one before.
func onlyEnded(t *testing.T, s *scribe) {
	t.Helper()
	last := make(map[string]Alert)
	for _, a := range s.alerts {
		if before := last[a.Fingerprint]; before.Status == Firing && !before.StartsAt.Equal(a.StartsAt) {
			t.Errorf("%s heard of %s since %v, and before it of one since %v without an end", s.name, headline(a), a.StartsAt, before.StartsAt)
		}
		last[a.Fingerprint] = a
	}
}

// TestRestartsGoUnnoticed: what a receiver hears of processes that end at random moments is
// what it hears of one that never ends. When they are killed, it may hear something twice;
// and when nothing holds any more after that, it need not have heard of what held before, but
// where it did, it hears of the end.
func TestRestartsGoUnnoticed(t *testing.T) {
	for seed := range uint64(9) {
		kill, over := seed%3 > 0, seed%3 == 2
		t.Run(fmt.Sprintf("%d, killed: %v, then over: %v", seed, kill, over), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				random := newRandom(seed)
				all, steady, restarted := pairs()
				hold := 40 * time.Second
				if kill {
					hold = 10 * time.Second // within a step: how long something was away may not have been written
				}
				o := func(receivers []Receiver) Options {
					return Options{Receivers: slices.Clone(receivers), Hold: hold, Labels: map[string]string{"site": "here"}}
				}
				d, other := newDisk(), newDisk()
				d.delay = 20 * time.Millisecond
				for i, r := range restarted {
					restarted[i] = mortal{scribe: r.(*scribe), delay: 10 * time.Millisecond}
				}
				reference, subject := born(t, other, o(steady)), born(t, d, o(restarted))
				restarts, lives := 0, []*life{}
				step := func(stand []standing) {
					look := func() {
						st := statusAt(time.Now(), stand...)
						reference.Observe(st.At, st)
						subject.Observe(st.At, st)
					}
					look()
					if random.IntN(4) == 0 {
						restarts++
						if kill {
							time.Sleep(time.Duration(random.IntN(120)) * time.Millisecond)
							subject.killed()
							lives = append(lives, subject)
						} else {
							pass(3 * time.Second) // everything is told, or waits to be tried again
							subject.dies(t)
						}
						subject = born(t, d, o(restarted))
						if over {
							stand = nil
						}
						look()
					}
					pass(10 * time.Second)
				}
				for range 150 {
					var stand []standing
					for _, model := range []string{"", "a"} {
						for _, objective := range []string{"ttft_p99", "success"} {
							stand = append(stand, standing{objective: objective, model: model, page: random.IntN(6) == 0,
								ticket: !kill && random.IntN(8) == 0, consumed: float64(random.IntN(3)) * 0.45})
						}
					}
					step(stand[:random.IntN(len(stand)+1)])
				}
				for range 40 {
					step(nil)
				}
				if a, b := reference.State().Alerts, subject.State().Alerts; len(a) != 0 || len(b) != 0 {
					t.Errorf("at the end %d and %d alerts are left", len(a), len(b))
				}
				for i, p := range all {
					if i < 2 {
						onlyEnded(t, p.restarted)
					}
					if over {
						for subject, news := range heardOf(p.restarted, false) {
							if i < 2 && !strings.HasSuffix(news, "resolved; ") { // the others may refuse to hear it
								t.Errorf("%s never heard of the end of %s: %s", p.restarted.name, subject, news)
							}
						}
						continue
					}
					want, got := heardOf(p.steady, !kill), heardOf(p.restarted, !kill)
					for subject := range want {
						if got[subject] != want[subject] {
							t.Errorf("%s should have heard of %s\n%s, and heard\n%s", p.steady.name, subject,
								strings.ReplaceAll(want[subject], "; ", "\n"), strings.ReplaceAll(got[subject], "; ", "\n"))
						}
					}
					if len(got) != len(want) || len(want) < 4 {
						t.Errorf("%s heard of %d alerts, and not of %d", p.steady.name, len(got), len(want))
					}
					if !kill && len(p.restarted.alerts) != len(p.steady.alerts) {
						t.Errorf("%s heard %d times, not %d", p.steady.name, len(p.restarted.alerts), len(p.steady.alerts))
					}
				}
				t.Logf("%d restarts; %d and %d told", restarts, len(all[0].steady.alerts), len(all[0].restarted.alerts))
				reference.dies(t)
				subject.dies(t)
				for _, l := range lives {
					<-l.ended
					<-l.keeper.done
				}
			})
		})
	}
}
