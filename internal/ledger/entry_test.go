package ledger

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func startEntry(b []byte, id string) []byte {
	at := len(b)
	b, _ = sealEntry(appendStart(beginEntry(b, kindStart), start(id), time.Now), at)
	return b
}

func endEntry(b []byte, id string) []byte {
	at := len(b)
	b, _ = sealEntry(appendRow(beginEntry(b, kindEnd), ended(id), time.Now), at)
	return b
}

func TestEntry(t *testing.T) {
	whole := endEntry(nil, "x")
	for n := range len(whole) {
		if _, _, _, ok, short := nextEntry(whole[:n]); ok || !short {
			t.Errorf("%d of %d bytes: ok %v, short %v", n, len(whole), ok, short)
		}
	}
	kind, fields, n, ok, _ := nextEntry(append(bytes.Clone(whole), "more"...))
	if id, attempt, err := identity(fields); kind != kindEnd || n != len(whole) || !ok || string(id) != "x" || attempt != 0 || err != nil {
		t.Errorf("%c %q %d %d %v %v", kind, id, attempt, n, ok, err)
	}
	for i := range whole {
		bad := bytes.Clone(whole)
		bad[i] ^= 0x10
		if _, _, _, ok, _ := nextEntry(bad); ok {
			t.Errorf("a changed byte %d goes unnoticed", i)
		}
	}
	if b, ok := sealEntry(append(beginEntry([]byte("kept"), kindEnd), make([]byte, maxEntry)...), 4); ok || string(b) != "kept" {
		t.Error("an entry that is too large is taken")
	}
	if b, ok := sealEntry(append(beginEntry(nil, kindEnd), make([]byte, maxEntry-1)...), 0); !ok {
		t.Error("the largest entry is not taken")
	} else if _, _, n, ok, _ := nextEntry(b); !ok || n != len(b) {
		t.Error("the largest entry cannot be read")
	}
}

// TestNumbers: numbers are written as the package encoding/binary writes them,
// whatever their length, and come back.
func TestNumbers(t *testing.T) {
	var all []int64
	for bit := range 64 {
		n := int64(1) << bit
		all = append(all, n-1, n, n+1, -n-1, -n, 1-n)
	}
	for _, n := range all {
		for _, c := range []column{colAttempt, colClientRetries} {
			want := binary.AppendVarint(binary.AppendUvarint(nil, uint64(c)<<1), n)
			got := appendWhole(nil, c, n)
			column, isText, v, rest, err := nextField(got)
			if !bytes.Equal(got, want) || column != c || isText || v.n != n || len(rest) != 0 || err != nil {
				t.Errorf("%d is written as %x, not %x, and comes back as %d of column %d, %v", n, got, want, v.n, column, err)
			}
			for cut := range got {
				if _, _, _, _, err := nextField(got[:cut]); err == nil {
					t.Errorf("%d of %d bytes of %d are taken for a number", cut, len(got), n)
				}
			}
		}
	}
}

// FuzzSpill: whatever the spill holds, a ledger opens over it, reads what is
// whole, and goes on.
func FuzzSpill(f *testing.F) {
	good := endEntry(startEntry(startEntry(nil, "a"), "b"), "b")
	f.Add(good)
	f.Add(good[:len(good)-3])
	f.Add(append(append(bytes.Clone(good), 0xF5, 'W', 0xFF, 0xFF, 1, 2, 3, 4), good...))
	f.Add([]byte{0xF5, 'W', 1, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		tl := tail{open: make(map[callKey]place), old: true, buf: b}
		for off := 0; ; {
			tl.rows, tl.buf = tl.rows[:0], b[off:]
			n := tl.parse(position{1, int64(off)}, true)
			if n <= 0 && len(tl.buf) > 0 || n > len(tl.buf) {
				t.Fatalf("%d of %d bytes at %d", n, len(tl.buf), off)
			}
			if off += n; off == len(b) {
				break
			}
		}
		for _, r := range tl.rows {
			if _, _, err := identity(r.fields); err != nil {
				t.Fatal(err)
			}
		}
		for b := b; len(b) > 0; { // nor does a field run over
			_, _, v, rest, err := nextField(b)
			if err != nil {
				break
			}
			if len(rest) >= len(b) || len(v.b) > len(b) {
				t.Fatal("a field is longer than what holds it")
			}
			b = rest
		}
	})
}

// TestDamagedSpill: torn tails are cut, a damaged middle is skipped and counted,
// and everything else is there.
func TestDamagedSpill(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for round := range 30 / underRace {
		path := filepath.Join(t.TempDir(), "usage.db")
		if err := os.MkdirAll(path+".spill", 0o700); err != nil {
			t.Fatal(err)
		}
		n, want := 0, make(map[string]call.Outcome)
		var damaged, torn int64
		for seg := range uint64(3) {
			var b []byte
			var lastAt int
			for range 1 + r.IntN(2*many) {
				id := fmt.Sprint("call", n)
				n++
				b = startEntry(b, id)
				want[id] = call.Crashed
				if r.IntN(10) > 0 {
					lastAt = len(b)
					b = endEntry(b, id)
					want[id] = call.Completed
				}
			}
			// The last entry is an end that is whole, so that damage before it is
			// told from a torn tail.
			lastAt = len(b)
			b = endEntry(b, fmt.Sprint("last", seg))
			want[fmt.Sprint("last", seg)] = call.Completed
			switch r.IntN(4) {
			case 0: // cut within the last entry
				b = b[:lastAt+1+r.IntN(len(b)-lastAt-1)]
				delete(want, fmt.Sprint("last", seg))
				torn++
			case 1: // one entry in the middle is overwritten
				at := 0
				for at < lastAt/2 {
					_, _, length, _, _ := nextEntry(b[at:])
					at += length
				}
				kind, fields, length, _, _ := nextEntry(b[at:])
				id, _, _ := identity(fields)
				name := string(id)
				if name == fmt.Sprint("last", seg) {
					break
				}
				if kind == kindEnd {
					want[name] = call.Crashed // its start is still there
				} else if want[name] == call.Crashed {
					delete(want, name) // nothing of it is left
				}
				for i := range length {
					b[at+i] = byte(r.Uint32())
				}
				damaged++
			case 2: // the file was made longer, and the blocks never written
				b = append(b, make([]byte, 1+r.IntN(3<<20))...)
				torn++
			}
			if err := os.WriteFile(filepath.Join(path+".spill", segment{n: seg + 1}.name()), b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		l := open(t, Options{Path: path})
		flush(t, l)
		st := l.State()
		got := rows(t, l)
		for id, outcome := range want {
			if got[id] == nil || got[id].Outcome != outcome {
				t.Fatalf("round %d: %s is %v, want %s; %+v", round, id, got[id], outcome, st)
			}
		}
		if len(got) != len(want) || st.Replaying || st.Refused != 0 {
			t.Errorf("round %d: %d rows, want %d; %+v", round, len(got), len(want), st)
		}
		// A region of zeros longer than a chunk is counted once for each.
		if st.Damaged < damaged || st.Damaged > damaged+6 || st.Torn != torn {
			t.Errorf("round %d: %d damaged and %d torn, want %d and %d", round, st.Damaged, st.Torn, damaged, torn)
		}
		if err := l.Close(soon(t)); err != nil {
			t.Error(err)
		}
	}
}

// TestTruncatedUnderneath: what is gone is counted, not waited for, and calls go on.
func TestTruncatedUnderneath(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &faultyDisk{reads: make(chan struct{})}
		l := open(t, Options{disk: d})
		l.End(ended("lost"))
		files, err := filepath.Glob(l.spill.dir + "/*.spill")
		if err != nil || len(files) != 1 {
			t.Fatal(files, err)
		}
		if err := os.Truncate(files[0], 10); err != nil {
			t.Fatal(err)
		}
		close(d.reads)
		flush(t, l)
		synctest.Wait()
		if st := l.State(); st.Damaged == 0 || st.Pending != 0 || st.Lag != 0 {
			t.Errorf("%+v", st)
		}
		l.End(ended("after"))
		flush(t, l)
		if got := rows(t, l); len(got) != 1 || got["after"] == nil {
			t.Errorf("%v", got)
		}
		l.Close(soon(t))
	})
}
