package slo

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
	"time"
)

// seeds are a Snapshot and Changes of a tracker that has counted all kinds of things.
func seeds(t testing.TB) (snapshot, changes []byte) {
	t.Helper()
	tr, _ := configured(t, twoClasses()...)
	many(tr, "plain", start.AddDate(0, 0, -20), 1000, 70_000)
	for i := range 16 {
		at := start.Add(time.Duration(i) * 47 * time.Second)
		f := factsFor(at)
		f.Input = int64(i)
		record(tr, []string{"plain", "qualified"}[i%2], []string{"a", "b"}[i%3/2], at, f)
		if i == 12 {
			snapshot = tr.Snapshot()
		}
	}
	return snapshot, tr.Changes()
}

// resealed returns the input with a right checksum, so that what is behind it is read.
func resealed(b []byte) []byte {
	if len(b) < checksumLen {
		return b
	}
	b = bytes.Clone(b[:len(b)-checksumLen])
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// FuzzCounts gives anything to Restore, Apply and Merge. None may panic; an error must change
// nothing; what is taken must be good enough to be shown, snapshotted and restored.
func FuzzCounts(f *testing.F) {
	snapshot, changes := seeds(f)
	f.Add(snapshot)
	f.Add(changes)
	f.Add(New().Snapshot())
	f.Add(seal(begin(kindSnapshot)))
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, b := range [][]byte{b, resealed(b)} {
			for i, take := range []func(*Tracker, []byte) error{(*Tracker).Restore, (*Tracker).Apply, (*Tracker).Merge} {
				for _, empty := range []bool{true, false} {
					tr := New()
					if !empty {
						tr, _ = configured(t, twoClasses()...)
						many(tr, "plain", start, 3, 4)
					}
					before := tr.Snapshot()
					if err := take(tr, b); err != nil {
						if !bytes.Equal(tr.Snapshot(), before) {
							t.Fatalf("operation %d failed, and changed something: %v", i, err)
						}
						continue
					}
					after := tr.Snapshot()
					again := New()
					if err := again.Restore(after); err != nil {
						t.Fatalf("after operation %d the snapshot cannot be restored: %v", i, err)
					}
					if got := again.Snapshot(); !bytes.Equal(got, after) {
						t.Fatalf("after operation %d a restored snapshot differs: %d bytes, want %d", i, len(got), len(after))
					}
					reconfigure(t, tr, start.Add(time.Hour), twoClasses()...)
					tr.Status(start.Add(time.Hour))
					totalsOf(tr)
				}
			}
		}
	})
}

// TestDamaged flips every bit and cuts at every place.
func TestDamaged(t *testing.T) {
	snapshot, changes := seeds(t)
	tr, _ := configured(t, twoClasses()...)
	many(tr, "plain", start, 3, 4)
	before := tr.Snapshot()
	try := func(what string, b []byte, at int) {
		for i, take := range []func([]byte) error{tr.Restore, tr.Apply, tr.Merge} {
			if err := take(b); err == nil {
				t.Fatalf("operation %d took %s at %d", i, what, at)
			}
		}
	}
	for _, b := range [][]byte{snapshot, changes} {
		for i := range b {
			damaged := bytes.Clone(b)
			damaged[i] ^= 1 << (i % 8)
			try("a flipped bit", damaged, i)
			try("what was cut", b[:i], i)
		}
	}
	if !bytes.Equal(tr.Snapshot(), before) {
		t.Error("it has changed something")
	}
	for _, b := range [][]byte{resealed(append(bytes.Clone(snapshot[:len(snapshot)-checksumLen]), 0, 0, 0, 0, 0)), nil, {}} {
		if err := tr.Restore(b); err == nil {
			t.Errorf("%d bytes were restored", len(b))
		}
	}
}
