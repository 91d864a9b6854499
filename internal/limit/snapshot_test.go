package limit

import (
	"reflect"
	"slices"
	"strconv"
	"testing"
	"time"
)

func TestSnapshot(t *testing.T) {
	p, c := newPool(t, enforced(perKey(six(10, 100, 90, 80, 2, 70)), Rule{Scope: PerPool, Limits: tpm(1000), Burst: Burst{Tokens: tpm(200).TokensPerMinute}}))
	admit(t, p, Request{Key: "b", Input: 30, Output: 40})
	debtor := admit(t, p, Request{Key: "a", Input: 10, Output: 10})
	debtor.Charge(300)
	c.pass(6 * time.Second)
	refuse(t, p, Request{Key: "b", Input: 60})
	snap := p.Snapshot(100)
	want := Snapshot{Pool: "test", Mode: Enforce, Uses: []Use{
		{PerKey, "a", Requests, 10, 10, 0, 1},
		{PerKey, "a", Tokens, 100, 100, 300, 1},
		{PerKey, "a", InputTokens, 90, 90, 1, 1},
		{PerKey, "a", OutputTokens, 80, 80, 292, 1},
		{PerKey, "a", Concurrency, 2, 2, 1, 1},
		{PerKey, "a", TokensInFlight, 70, 70, 310, 1},
		{PerKey, "b", Requests, 10, 10, 0, 1},
		{PerKey, "b", Tokens, 100, 100, 60, 1},
		{PerKey, "b", InputTokens, 90, 90, 21, 1},
		{PerKey, "b", OutputTokens, 80, 80, 32, 1},
		{PerKey, "b", Concurrency, 2, 2, 1, 1},
		{PerKey, "b", TokensInFlight, 70, 70, 70, 1},
		{PerPool, "test", Tokens, 1000, 200, 280, 2},
	}, Refused: []Refused{{"b", PerKey, Tokens, Enforce, 1}}}
	// The key waits 12 s, the pool less.
	if !reflect.DeepEqual(snap, want) {
		t.Errorf("got\n%+v, want\n%+v", snap, want)
	}
}

// TestSnapshotBounded: of more buckets than asked for the fullest are shown.
func TestSnapshotBounded(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(tpm(1000)), Rule{Scope: PerKey, Key: "none", Limits: tpm(0)}))
	const keys = 3000
	for i := range keys {
		n := int64(i*7919%keys) * 1000 / keys
		admit(t, p, Request{Key: strconv.Itoa(i), Input: n}).Settle(known(n, 0))
	}
	refuse(t, p, Request{Key: "none"})
	total := len(p.sets)
	for _, most := range []int{-1, 0, 1, 10, 500, keys + 1} {
		snap := p.Snapshot(most)
		if want := min(max(most, 0), total); len(snap.Uses) != want || snap.LeftOut != total-want {
			t.Fatalf("%d asked for: %d uses, %d left out of %d", most, len(snap.Uses), snap.LeftOut, total)
		}
		if !slices.IsSortedFunc(snap.Uses, func(a, b Use) int { return cmpString(a.Subject, b.Subject) }) {
			t.Errorf("%d asked for: not in order", most)
		}
		if most <= 0 {
			continue
		}
		least := int64(1000)
		for _, u := range snap.Uses {
			if u.Subject != "none" {
				least = min(least, u.Used)
			}
		}
		if want := int64(keys-most+1) * 1000 / keys; most <= keys && least < want {
			t.Errorf("%d asked for: one of %d used is among them, want %d or more", most, least, want)
		}
		if most > 0 && !slices.ContainsFunc(snap.Uses, func(u Use) bool { return u.Subject == "none" }) {
			t.Errorf("%d asked for: the limit of 0 is left out", most)
		}
	}
}

func cmpString(a, b string) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// TestSnapshotDropped: what goes while a snapshot is read is not shown twice.
func TestSnapshotDropped(t *testing.T) {
	p, _ := newPool(t, small(10, perKey(atOnce(5)))) // nothing lies idle
	admit(t, p, Request{Key: "k"}).Cancel()
	admit(t, p, Request{Key: "another"}).Cancel() // an admission spares what it has just found
	_, sets := p.snapshotHead()
	p.sweep(p.now(), 10)
	admit(t, p, Request{Key: "k"})
	_, again := p.snapshotHead()
	if uses := p.appendUses(nil, append(sets, again...)); len(uses) != 1 || uses[0].Used != 1 {
		t.Errorf("got %+v", uses)
	}
}

// TestTallyBounded: keys that nobody configured are counted apart up to a bound, and
// none is lost.
func TestTallyBounded(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(rpm(0))))
	own := rpm(0)
	for i := range 3 * maxTallied {
		refuse(t, p, Request{Key: strconv.Itoa(i)})
		refuse(t, p, Request{Key: "own " + strconv.Itoa(i%5), KeyLimits: &own})
		refuse(t, p, Request{})
	}
	refused := p.Snapshot(0).Refused
	if want := maxTallied + 5 + 2; len(refused) != want { // and Other, and none
		t.Errorf("%d keys, want %d", len(refused), want)
	}
	calls := make(map[string]int64)
	sum := int64(0)
	for _, r := range refused {
		calls[r.Key] += r.Calls
		sum += r.Calls
	}
	if calls[""] != 3*maxTallied || calls[Other] != 2*maxTallied || calls["own 3"] != 3*maxTallied/5 || calls["0"] != 1 || sum != 9*maxTallied {
		t.Errorf("%d, of no key %d, of Other %d", sum, calls[""], calls[Other])
	}
}
