package ledger

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// amendmentOf makes an amendment of a row with other phases than it has.
func amendmentOf(r *rand.Rand, id string) *call.Amendment {
	other := anyRow(r, r.IntN(2) == 0)
	a := &call.Amendment{ID: id, Engine: other.Engine, Phases: other.Phases, PhaseSources: other.PhaseSources, Degraded: other.Degraded}
	return a
}

// TestAmend: a row with its amendment is the amended record, whether both come
// in one transaction or in two, and a second time changes nothing.
func TestAmend(t *testing.T) {
	for name, apart := range map[string]bool{"together": false, "apart": true} {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(3, 4))
			l := open(t, Options{})
			want := make(map[string]string)
			for i := range 60 {
				row := anyRow(r, i%2 == 0)
				row.ID = name + string(rune('A'+i))
				l.End(row)
				if apart {
					flush(t, l)
				}
				want[row.ID] = jsonOf(t, row)
				if i%3 == 0 {
					continue // never amended
				}
				a := amendmentOf(r, row.ID)
				for range 1 + i%2 {
					l.Amend(a)
				}
				want[row.ID] = jsonOf(t, row.Amended(a))
			}
			l.Amend(amendmentOf(r, "of a call that is not there"))
			flush(t, l)
			got, err := l.Calls(t.Context(), Filter{Limit: 100})
			if err != nil {
				t.Fatal(err)
			}
			if len(got) != len(want) {
				t.Fatalf("%d rows, want %d", len(got), len(want))
			}
			for _, row := range got {
				if jsonOf(t, row) != want[row.ID] {
					t.Errorf("got  %s\nwant %s", jsonOf(t, row), want[row.ID])
				}
			}
			if s := l.State(); s.Dropped != 0 || s.Rows != int64(len(want)) || s.Pending != 0 {
				t.Errorf("state: %+v", s)
			}
		})
	}
}

// TestAmendIsReplayed: an amendment that a process left in its spill goes in
// with the next one.
func TestAmendIsReplayed(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	d := new(faultyDisk)
	d.reads = make(chan struct{}) // the committer reads nothing
	dir := t.TempDir()
	o := Options{Path: dir + "/usage.db", disk: d}
	first := open(t, o)
	row := anyRow(r, true)
	a := amendmentOf(r, row.ID)
	first.End(row)
	first.Amend(a)
	copied := filepath.Join(t.TempDir(), "spill")
	if err := os.CopyFS(copied, os.DirFS(o.Path+".spill")); err != nil {
		t.Fatal(err)
	}
	first.interrupt()
	close(d.reads)

	o = Options{Path: t.TempDir() + "/usage.db", Spill: copied}
	second := open(t, o)
	flush(t, second)
	got, err := second.Calls(t.Context(), Filter{Limit: 10})
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || jsonOf(t, got[0]) != jsonOf(t, row.Amended(a)) {
		t.Errorf("got %d rows, want the amended one", len(got))
	}
}

// TestAmendWithoutID is counted, and changes nothing.
func TestAmendWithoutID(t *testing.T) {
	l := open(t, Options{})
	l.Amend(&call.Amendment{Phases: call.Phases{Decode: call.Lasting(time.Second)}})
	flush(t, l)
	if s := l.State(); s.Dropped != 1 {
		t.Errorf("%d are counted as lost, want 1", s.Dropped)
	}
}
