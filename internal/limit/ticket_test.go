package limit

import (
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// everywhere limits all dimensions in all scopes, roomily.
func everywhere() Policy {
	l := six(100, 10_000, 10_000, 10_000, 10, 10_000)
	return enforced(perKey(l), Rule{Scope: PerModel, Limits: l}, Rule{Scope: PerKeyModel, Limits: l}, Rule{Scope: PerPool, Limits: l})
}

// wantUse compares what is used of each dimension, in every scope.
func wantUse(t *testing.T, p *Pool, want [numDimensions]int64) {
	t.Helper()
	uses := spent(p)
	if len(uses) != int(numScopes)*int(numDimensions) {
		t.Fatalf("%d buckets: %+v", len(uses), uses)
	}
	for _, u := range uses {
		if u.Used != want[u.Dimension] || u.InFlight != want[Concurrency] {
			t.Errorf("%s %s: %d used and %d in flight, want %d and %d", u.Scope, u.Dimension, u.Used, u.InFlight,
				want[u.Dimension], want[Concurrency])
		}
	}
}

// TestExits is case 33: however a call ends, and how often, it frees what it held and
// leaves what it should.
func TestExits(t *testing.T) {
	settle := func(in, out call.Count) func(*Ticket) { return func(t *Ticket) { t.Settle(in, out) } }
	unknown := call.Count{}
	charge := func(n int64) func(*Ticket) { return func(t *Ticket) { t.Charge(n) } }
	cancel := (*Ticket).Cancel
	for _, tt := range []struct {
		name  string
		exits []func(*Ticket)
		want  [numDimensions]int64
	}{
		{"running", nil, [...]int64{1, 150, 100, 50, 1, 150}},
		{"running past its reservation", []func(*Ticket){charge(200)}, [...]int64{1, 300, 100, 200, 1, 300}},
		{"settled for less", []func(*Ticket){settle(call.Known(90), call.Known(10))}, [...]int64{1, 100, 90, 10, 0, 0}},
		{"settled for more", []func(*Ticket){settle(call.Known(120), call.Known(500))}, [...]int64{1, 620, 120, 500, 0, 0}},
		{"settled for nothing", []func(*Ticket){settle(call.Known(0), call.Known(0))}, [...]int64{1, 0, 0, 0, 0, 0}},
		{"settled for less than nothing", []func(*Ticket){settle(call.Known(-9), call.Known(-9))}, [...]int64{1, 0, 0, 0, 0, 0}},
		{"input unknown", []func(*Ticket){settle(unknown, call.Known(10))}, [...]int64{1, 110, 100, 10, 0, 0}},
		{"output unknown", []func(*Ticket){settle(call.Known(90), unknown)}, [...]int64{1, 140, 90, 50, 0, 0}},
		{"all unknown", []func(*Ticket){settle(unknown, unknown)}, [...]int64{1, 150, 100, 50, 0, 0}},
		{"all unknown, after charges", []func(*Ticket){charge(200), settle(unknown, unknown)}, [...]int64{1, 300, 100, 200, 0, 0}},
		{"charged, then settled for less", []func(*Ticket){charge(200), settle(call.Known(100), call.Known(60))}, [...]int64{1, 160, 100, 60, 0, 0}},
		{"cancelled", []func(*Ticket){cancel}, [...]int64{0, 0, 0, 0, 0, 0}},
		{"charged, then cancelled", []func(*Ticket){charge(200), cancel}, [...]int64{0, 0, 0, 0, 0, 0}},
		{"settled twice", []func(*Ticket){settle(call.Known(90), call.Known(10)), settle(call.Known(1), call.Known(1))}, [...]int64{1, 100, 90, 10, 0, 0}},
		{"cancelled twice", []func(*Ticket){cancel, cancel}, [...]int64{0, 0, 0, 0, 0, 0}},
		{"settled, then cancelled", []func(*Ticket){settle(call.Known(90), call.Known(10)), cancel}, [...]int64{1, 100, 90, 10, 0, 0}},
		{"cancelled, then settled", []func(*Ticket){cancel, settle(call.Known(90), call.Known(10))}, [...]int64{0, 0, 0, 0, 0, 0}},
		{"charged after the end", []func(*Ticket){cancel, charge(1 << 40)}, [...]int64{0, 0, 0, 0, 0, 0}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, _ := newPool(t, everywhere())
			// One that stays keeps the sets, and shows that only its own is freed.
			admit(t, p, Request{Key: "k", Model: "m", Input: 7, Output: 5})
			ticket := admit(t, p, Request{Key: "k", Model: "m", Input: 100, Output: 50})
			for _, exit := range tt.exits {
				exit(ticket)
			}
			for d, n := range [numDimensions]int64{1, 12, 7, 5, 1, 12} {
				tt.want[d] += n
			}
			wantUse(t, p, tt.want)
			if in, out := ticket.Reserved(); in != call.Known(100) || out != call.Known(50) {
				t.Errorf("reserved %v and %v", in, out)
			}
		})
	}
}

func TestZeroTicket(t *testing.T) {
	var ticket Ticket
	ticket.Charge(1 << 40)
	ticket.Settle(known(1, 1))
	ticket.Cancel()
	if in, out := ticket.Reserved(); in.IsKnown() || out.IsKnown() || ticket.WouldRefuse() != nil || ticket.Standing() != (Standing{}) {
		t.Error("a zero ticket holds something")
	}
}

// TestTicketAgain: a ticket that is used again leaks nothing of its earlier use.
func TestTicketAgain(t *testing.T) {
	p, _ := newPool(t, everywhere())
	q, _ := newPool(t, everywhere())
	r := Request{Key: "k", Model: "m", Input: 100, Output: 50}
	want := [...]int64{1, 150, 100, 50, 1, 150}
	var ticket Ticket
	for range 20 { // more often than there are places
		if ref := p.Admit(&r, &ticket); ref != nil {
			t.Fatal(*ref)
		}
	}
	wantUse(t, p, want)
	if ref := q.Admit(&r, &ticket); ref != nil {
		t.Fatal(*ref)
	}
	wantUse(t, p, [...]int64{0, 0, 0, 0, 0, 0})
	wantUse(t, q, want)
	large := Request{Key: "k", Model: "m", Input: 20_000}
	if q.Admit(&large, &ticket) == nil {
		t.Fatal("admitted")
	}
	if in, _ := ticket.Reserved(); in.IsKnown() {
		t.Error("a refused ticket has reserved something")
	}
	if ref := q.Admit(&r, &ticket); ref != nil || ticket.WouldRefuse() != nil {
		t.Errorf("%+v, then %+v", ref, ticket.WouldRefuse())
	}
	wantUse(t, q, want)
}

// TestChargeSteps: nothing is booked below a step, and whole steps above.
func TestChargeSteps(t *testing.T) {
	p, _ := newPool(t, everywhere())
	ticket := admit(t, p, Request{Key: "k", Model: "m", Input: 100, Output: 50})
	for _, step := range []struct{ output, booked int64 }{
		{-5, 50}, {0, 50}, {50, 50}, {113, 50}, {114, 114}, {177, 114}, {100, 114}, {178, 178}, {1000, 1000}, {0, 1000}, {1063, 1000}, {1064, 1064},
	} {
		if below := step.output < ticket.next.Load(); below {
			p.mu.Lock() // must not be waited for
			ticket.Charge(step.output)
			p.mu.Unlock()
		} else {
			ticket.Charge(step.output)
		}
		if want := step.booked + chargeStep; ticket.next.Load() != want {
			t.Errorf("after %d the next step is at %d, want %d", step.output, ticket.next.Load(), want)
		}
		wantUse(t, p, [...]int64{1, 100 + step.booked, 100, step.booked, 1, 100 + step.booked})
	}
	ticket.Charge(1 << 62) // is held to MaxLimit, and so is the next
	ticket.Charge(1<<62 + 1000)
	if got := keyTokens(t, p, "k"); got != 10_000-100-MaxLimit {
		t.Errorf("level %v", got)
	}
	ticket.Settle(known(100, 50))
	wantUse(t, p, [...]int64{1, 150, 100, 50, 0, 0})
}

// TestDebt: what a call cost beyond its reservation blocks the next until it is repaid.
func TestDebt(t *testing.T) {
	p, c := newPool(t, enforced(perKey(tpm(60))))
	ticket := admit(t, p, Request{Key: "k", Input: 10, Output: 50, Clamp: true})
	for n := range int64(231) {
		ticket.Charge(n)
	}
	if got := keyTokens(t, p, "k"); got != -128 { // at 50+64 and 50+128
		t.Errorf("level %v while it streams", got)
	}
	ticket.Settle(known(10, 230))
	if ref := refuse(t, p, Request{Key: "k"}); ref.Used != 240 || ref.RetryAfter != 3*time.Minute {
		t.Errorf("got %+v", ref)
	}
	c.pass(3 * time.Minute)
	admit(t, p, Request{Key: "k"})
}

// TestLongCall is case 35: the slot lives as long as the call, however long, and
// whatever else comes and goes.
func TestLongCall(t *testing.T) {
	policy := enforced(perKey(atOnce(1)), Rule{Scope: PerModel, Limits: tpm(60)})
	policy.MaxBuckets = 50
	p, c := newPool(t, policy)
	long := admit(t, p, Request{Key: "k", Model: "m", Input: 60})
	for i := range 2000 {
		c.pass(time.Minute)
		name := string(rune('a'+i%26)) + string(rune('a'+i/26%26))
		admit(t, p, Request{Key: name, Model: name, Input: 30}).Settle(known(1, 0))
		if ref := refuse(t, p, Request{Key: "k", Model: "other"}); ref.Dimension != Concurrency || ref.Used != 1 {
			t.Fatalf("after %d minutes: %+v", i+1, ref)
		}
	}
	long.Settle(known(60, 0))
	admit(t, p, Request{Key: "k", Model: "m"})
}
