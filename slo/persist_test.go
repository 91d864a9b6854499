package slo

import (
	"bytes"
	"encoding/hex"
	"testing"
	"time"
)

// TestFormat holds the format: what an earlier version wrote has to be readable, so
// this changes only together with formatVersion.
func TestFormat(t *testing.T) {
	const written = "77656972736c6f0153a088961c808088ba90adcd0400010163ac020101f0fd39f403ffffffffffffff03030a74746674203c3d2032738080acd2c89b" +
		"82993107737563636573738080acd2c89b8299311b676f6f64707574206f6620626262613733323831646263323261398080acd2c89b82993101016d" +
		"01f88c3c01018a15010101010101bac002ffffff07000000000000000000000000000000000000000000000000000000000000000000000000db0107" +
		"ac0207ac0207ac020000000000000000000000000000000000000000000000000000000000000000000000254283ac"
	class := Class{Name: "c", Objectives: []Objective{
		{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}, {Number: Success, Target: 999_000}, {Number: Goodput, Target: 900_000},
	}, Valid: Envelope{CallsPerMinute: 300, Terms: []Term{{OutputTokens, 950_000, 500}}}}
	tr, _ := configured(t, class)
	many(tr, "c", start.AddDate(0, 0, -5), 7, 300)
	f := simple(start, Answered)
	f.Output, f.Values[TTFT] = 501, Exactly(3*time.Second)
	record(tr, "c", "m", start, f)
	if got := hex.EncodeToString(tr.Snapshot()); got != written {
		t.Errorf("a snapshot is\n%s\nwant\n%s", got, written)
	}
}

// TestRestore checks what survives a restart, whatever is configured before and after.
func TestRestore(t *testing.T) {
	ttft := Objective{Number: TTFT, Target: 990_000, Threshold: 2 * time.Second}
	success := Objective{Number: Success, Target: 999_000}
	network := Objective{Number: Network, Target: 990_000, Threshold: time.Second}
	old, _ := configured(t, Class{Name: "c", Objectives: []Objective{ttft, success}}, Class{Name: "gone", Objectives: []Objective{success}})
	many(old, "c", start.AddDate(0, 0, -10), 100, 1)
	many(old, "gone", start, 3, 3)
	snapshot := old.Snapshot()
	if b := old.Changes(); b != nil {
		t.Errorf("nothing has changed, and there are %d bytes of it", len(b))
	}
	many(old, "c", start.Add(time.Minute), 50, 2)
	old.Tick(start.Add(time.Minute))
	changes := old.Changes()
	if len(changes) == 0 || len(changes) > len(snapshot)+100 {
		t.Fatalf("%d bytes have changed, of %d", len(changes), len(snapshot))
	}
	now := start.Add(time.Hour)
	looser := ttft
	looser.Target = 900_000
	after := []Class{{Name: "c", Objectives: []Objective{network, looser}}, {Name: "new", Objectives: []Objective{success}}}
	for _, configureFirst := range []bool{false, true} {
		tr := New()
		if configureFirst {
			reconfigure(t, tr, now, after...)
		}
		if err := tr.Restore(snapshot); err != nil {
			t.Fatal(err)
		}
		if err := tr.Apply(changes); err != nil {
			t.Fatal(err)
		}
		if !configureFirst {
			if s := tr.Status(now); len(s.Objectives) != 0 {
				t.Errorf("what is not configured is shown: %+v", s.Objectives)
			}
			reconfigure(t, tr, now, after...)
		}
		s := tr.Status(now)
		if o := find(t, s, "c", "m", "ttft_p90"); o.Good != 150 || o.Bad != 3 || !o.Since.Equal(start) || o.Burn[3].Good != 50 {
			t.Errorf("configured first %v: %+v since %s, in six hours %+v", configureFirst, o.Counts, o.Since, o.Burn[3].Counts)
		}
		if o := find(t, s, "c", AllModels, "network_p99"); o.Counts != (Counts{}) || !o.Since.Equal(now) {
			t.Errorf("configured first %v: a new objective has %+v since %s", configureFirst, o.Counts, o.Since)
		}
		if len(find(t, s, "new", AllModels, "success").Burn) != len(burnWindows) || !s.Since.Equal(start) {
			t.Errorf("configured first %v: since %s", configureFirst, s.Since)
		}
	}
}

// TestJournalOfReloads checks that a journal says what reloads dropped, even if the same objective
// came back between two of its entries.
func TestJournalOfReloads(t *testing.T) {
	one := successClass(990_000)
	two := Class{Name: "c", Objectives: []Objective{{Number: Network, Target: 990_000, Threshold: time.Second}}}
	tr, _ := configured(t, one)
	many(tr, "c", start, 10, 0)
	snapshot := tr.Snapshot()
	var journal [][]byte
	many(tr, "c", start, 1, 0)
	journal = append(journal, tr.Changes())
	reconfigure(t, tr, start.Add(time.Minute), two)
	reconfigure(t, tr, start.Add(2*time.Minute), one)
	many(tr, "c", start.Add(2*time.Minute), 0, 5)
	journal = append(journal, tr.Changes())
	again := New()
	if err := again.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		for _, b := range journal {
			if err := again.Apply(b); err != nil {
				t.Fatal(err)
			}
		}
	}
	reconfigure(t, again, start.Add(3*time.Minute), one)
	if o := find(t, again.Status(start.Add(3*time.Minute)), "c", "m", "success"); o.Counts != (Counts{Bad: 5}) || !o.Since.Equal(start.Add(2*time.Minute)) {
		t.Errorf("%+v since %s", o.Counts, o.Since)
	}
}

// TestSnapshotOverHours checks a snapshot that is taken while an hour ends: what moves
// to days meanwhile is in it once.
func TestSnapshotOverHours(t *testing.T) {
	tr, c := configured(t, successClass(990_000))
	for h := range keptHours {
		many(tr, "c", start.Add(time.Duration(h-keptHours+1)*time.Hour), 1, 0) // all that is kept by minutes
	}
	class := (*tr.classes.Load())["c"]
	series, a := class.series["m"], tr.clock.state.Load()
	pauses := 0
	got, _ := class.encodeSeries(nil, series, a, allOfIt, func() {
		if pauses++; pauses == keptHours/2 {
			tr.clock.tell(start.Add(time.Hour)) // a Tick would wait for the lock
			series.age(tr.clock.state.Load())
		}
	})
	want, _ := class.encodeSeries(nil, series, a, allOfIt, func() {})
	if pauses < keptHours/2 || !bytes.Equal(got, want) {
		t.Errorf("with the hour's end after %d of its parts a series is\n%x\nwant\n%x", pauses, got, want)
	}
	again := New()
	if err := again.Restore(tr.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if err := again.Configure(c, start.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if got := total(again); got != keptHours {
		t.Errorf("%d calls are restored, want %d", got, keptHours)
	}
	if !bytes.Equal(again.Snapshot(), tr.Snapshot()) {
		t.Error("a restored snapshot differs")
	}
}

// TestCopyTakesNothing: whoever reads all counts does not take them from the journal.
func TestCopyTakesNothing(t *testing.T) {
	tr, _ := configured(t, successClass(990_000))
	kept := New()
	if err := kept.Restore(tr.Snapshot()); err != nil {
		t.Fatal(err)
	}
	record(tr, "c", "m", start, simple(start, Failed))
	reader := New()
	if err := reader.Restore(tr.Copy()); err != nil {
		t.Fatal(err)
	}
	changes := tr.Changes()
	if changes == nil {
		t.Fatal("after a copy there are no changes")
	}
	if err := kept.Apply(changes); err != nil {
		t.Fatal(err)
	}
	if tr.Changes() != nil {
		t.Error("changes come twice")
	}
	for _, other := range []*Tracker{kept, reader} {
		if got, want := other.Copy(), tr.Copy(); !bytes.Equal(got, want) {
			t.Errorf("%d bytes, want %d", len(got), len(want))
		}
	}
}
