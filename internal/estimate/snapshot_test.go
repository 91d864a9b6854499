package estimate

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// learnt returns an estimator with several models and keys in it.
func learnt(t testing.TB) *Estimator {
	e := New(0, 0)
	for i, s := range mixed(samples(t, corpus.Test), 9, false) {
		k := i % len(tokenizers)
		e.Learn(tokenizers[k], s.key, &s.features, s.tokens[k])
		e.LearnOutput(tokenizers[k], s.key, s.tokens[3]/2)
	}
	return e
}

func TestSnapshotRoundTrip(t *testing.T) {
	a, b := learnt(t), New(0, 0)
	b.LearnOutput("gone", "k", 1)
	snapshot := a.Snapshot()
	if err := b.Restore(snapshot); err != nil {
		t.Fatal(err)
	}
	if again := b.Snapshot(); !bytes.Equal(again, snapshot) {
		t.Error("what was restored gives another snapshot")
	}
	// They answer alike, also after learning more.
	for i, s := range mixed(samples(t, corpus.Fit), 9, false) {
		m := tokenizers[i%len(tokenizers)]
		if x, y := a.Predict(m, s.key, &s.features), b.Predict(m, s.key, &s.features); x != y {
			t.Fatalf("%s: predicted %d, restored %d", s.Name, x, y)
		}
		x, known := a.Output(m, s.key)
		if y, also := b.Output(m, s.key); x != y || known != also {
			t.Fatalf("%s: output %d, %v, restored %d, %v", s.Name, x, known, y, also)
		}
		a.Learn(m, s.key, &s.features, s.tokens[0])
		b.Learn(m, s.key, &s.features, s.tokens[0])
	}
	if b.models.entries["gone"] != nil {
		t.Error("what was there before was kept")
	}
}

func TestSnapshotOfNothing(t *testing.T) {
	e := learnt(t)
	if err := e.Restore(New(0, 0).Snapshot()); err != nil {
		t.Fatal(err)
	}
	if len(e.models.entries) != 0 || len(e.pairs.entries) != 0 {
		t.Error("something was kept")
	}
	e.LearnOutput("m", "k", 1)
	e.LearnOutput("m", "l", 1)
	if len(e.models.entries) != 1 || len(e.pairs.keys()) != 2 {
		t.Error("the tables are broken")
	}
}

// TestSnapshotLargerThanRoom keeps the most recently used.
func TestSnapshotLargerThanRoom(t *testing.T) {
	big, small := New(10, 10), New(3, 4)
	for i := range 10 {
		big.LearnOutput(fmt.Sprint("m", i), "k", 1)
	}
	if err := small.Restore(big.Snapshot()); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(small.models.keys(), small.pairs.keys()); got != "[m7 m8 m9] [{m6 k} {m7 k} {m8 k} {m9 k}]" {
		t.Errorf("kept %s", got)
	}
	small.LearnOutput("m10", "k", 1)
	if got := fmt.Sprint(small.models.keys()); got != "[m8 m9 m10]" {
		t.Errorf("then kept %s", got)
	}
}

func TestSnapshotSize(t *testing.T) {
	e := New(0, 0)
	f := scan(saying("some text"))
	for i := range DefaultPairs {
		model, key := fmt.Sprintf("organisation/model-name-%03d", i%DefaultModels), fmt.Sprintf("key-%08d", i)
		e.Learn(model, key, &f, 5)
		for j := range int64(30) {
			e.LearnOutput(model, key, j*j*j)
		}
	}
	if n := len(e.Snapshot()); n > DefaultModels*4096+DefaultPairs*1024 {
		t.Errorf("a full snapshot has %d bytes", n)
	}
}

// damaged are snapshots that must be refused, each with a word of the reason.
func TestSnapshotRefused(t *testing.T) {
	good := learnt(t).Snapshot()
	resummed := func(change func(b []byte) []byte) []byte {
		b := change(bytes.Clone(good[:len(good)-4]))
		return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
	}
	// The first model's name, reports, then its running error.
	errorAt := bytes.Index(good, []byte("weirest")) + 8 + 1 + 1 + 1 + int(good[10]) + 2
	for name, test := range map[string]struct {
		snapshot []byte
		reason   string
	}{
		"nothing":        {nil, "not a snapshot"},
		"other file":     {[]byte("SQLite format 3\x00 and much more"), "not a snapshot"},
		"flipped bit":    {append(append(bytes.Clone(good[:500]), good[500]^1), good[501:]...), "checksum"},
		"cut off":        {good[:len(good)/2], "checksum"},
		"newer":          {append([]byte("weirest\x02"), good[8:]...), "version 2"},
		"cut, resummed":  {resummed(func(b []byte) []byte { return b[:len(b)/2] }), "breaks off"},
		"longer":         {resummed(func(b []byte) []byte { return append(b, 0) }), "too many"},
		"other features": {resummed(func(b []byte) []byte { b[8]++; return b }), "features"},
		"many models":    {resummed(func(b []byte) []byte { return append(b[:9], 0xff, 0xff, 0xff, 0xff, 0x0f) }), "breaks off"},
		"a long name":    {resummed(func(b []byte) []byte { b[10] = 0xff; b[11] = 0x7f; return b }), "name"},
		"not a number": {resummed(func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[errorAt:], math.Float64bits(math.NaN()))
			return b
		}), "NaN"},
		"infinite weight": {resummed(func(b []byte) []byte {
			binary.LittleEndian.PutUint64(b[errorAt+8:], math.Float64bits(math.Inf(1)))
			return b
		}), "Inf"},
		"twice": {func() []byte {
			var empty modelState
			empty.begin(&prior)
			b := append([]byte("weirest\x01"), numFeatures, 2)
			for range 2 {
				b = appendFloats(append(b, 1, 'm', 0), append([]float64{0}, empty.weights[:]...)...)
				for i := range empty.covariance {
					b = appendFloats(b, empty.covariance[i][i:]...)
				}
				b = append(b, 0, 0)
			}
			b = append(b, 0)
			return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
		}(), "twice"},
	} {
		e := learnt(t)
		err := e.Restore(test.snapshot)
		if !errors.Is(err, ErrSnapshot) || !strings.Contains(err.Error(), test.reason) {
			t.Errorf("%s: %v, want one about %q", name, err, test.reason)
		}
		if !bytes.Equal(e.Snapshot(), good) {
			t.Errorf("%s: what was refused changed the estimator", name)
		}
	}
}

// FuzzRestore: whatever is restored, nothing panics, and what was taken is kept
// to, predicts within bounds and goes on learning. The checksum is put right, or
// nothing would come behind it.
func FuzzRestore(f *testing.F) {
	small := New(0, 0)
	of := samples(f, corpus.Test)
	for i := range 40 {
		s := &of[i*20]
		small.Learn("m", "k", &s.features, s.tokens[0])
		small.LearnOutput("m", "k", int64(i*i))
	}
	whole := small.Snapshot()
	f.Add(whole[:len(whole)-4])
	empty := New(0, 0).Snapshot()
	f.Add(empty[:len(empty)-4])
	f.Add([]byte("weirest\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		e := New(2, 2)
		if err := e.Restore(binary.LittleEndian.AppendUint32(bytes.Clone(b), crc32.Checksum(b, castagnoli))); err != nil {
			if !errors.Is(err, ErrSnapshot) {
				t.Fatal(err)
			}
			if len(e.models.entries) != 0 || len(e.pairs.entries) != 0 {
				t.Fatal("part of what was refused is there")
			}
			return
		}
		again := New(2, 2)
		if err := again.Restore(e.Snapshot()); err != nil {
			t.Fatalf("what was restored cannot be restored again: %v", err)
		}
		for _, name := range append(e.models.keys(), "m") {
			for i := range 20 {
				s := &of[i*40]
				low, high := s.features.bounds()
				if n := float64(e.Predict(name, "k", &s.features)); n < 1 || n < math.Floor(low) || n > math.Ceil(high) {
					t.Fatalf("predicted %g, which is not from %g to %g", n, low, high)
				}
				e.Learn(name, "k", &s.features, s.tokens[0])
				e.LearnOutput(name, "k", 10)
				if p95, known := e.Output(name, "k"); known && (p95 < 0 || p95 > maxOutput) {
					t.Fatalf("an output of %d", p95)
				}
			}
		}
	})
}
