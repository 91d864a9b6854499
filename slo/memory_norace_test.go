//go:build !race

package slo

import (
	"encoding/binary"
	"runtime"
	"testing"
)

// mostMemory is what ten classes of 20 models, with seven objectives and goodput each, may take after
// 30 days.
const mostMemory = 64 << 20

func TestMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	tr, now := full(t, 8)
	runtime.GC()
	runtime.ReadMemStats(&after)
	used := int64(after.HeapAlloc) - int64(before.HeapAlloc)
	t.Logf("10 classes of 20 models with 8 objectives take %.1f MiB after 30 days", float64(used)/(1<<20))
	if used > mostMemory {
		t.Errorf("they take %d bytes, and at most %d are wanted", used, mostMemory)
	}
	if n := len(tr.Status(now).Objectives); n != 10*21*8 {
		t.Errorf("the status has %d entries", n)
	}
}

// TestBomb checks that a small input cannot make much of itself.
func TestBomb(t *testing.T) {
	b := begin(kindSnapshot)
	b = appendTime(b, &aging{minute: minuteOf(start)})
	b = binary.AppendUvarint(b, MaxClasses)
	text := func(n int) {
		b = appendText(b, string(rune('a'+n%26))+string(rune('a'+n/26%26))+string(rune('a'+n/676)))
	}
	for c := range MaxClasses {
		text(c)
		b = binary.AppendUvarint(b, 0)
		b = binary.AppendUvarint(b, 0)
		b = binary.AppendVarint(b, 0)
		b = binary.AppendUvarint(b, MaxObjectives)
		for o := range MaxObjectives {
			text(o)
			b = binary.AppendVarint(b, 0)
		}
		b = binary.AppendUvarint(b, MaxSeries/MaxClasses)
		for s := range MaxSeries / MaxClasses {
			text(s)
			b = binary.AppendUvarint(b, keptHours)
			for h := range keptHours {
				b = binary.AppendVarint(b, minuteOf(start)/60-keptHours+1+int64(h))
				b = binary.AppendUvarint(b, 1)
				b = binary.AppendUvarint(b, 0)
				b = binary.AppendUvarint(b, 1<<48-1)
				for range 48 {
					b = binary.AppendUvarint(b, maxCell)
				}
			}
			b = binary.AppendUvarint(b, 0)
		}
	}
	b = seal(b)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	err := New().Restore(b)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 2*maxImage {
		t.Errorf("%d bytes made it allocate %d", len(b), took)
	}
	if err == nil {
		t.Errorf("counts of %d MiB were taken", (after.HeapAlloc-before.HeapAlloc)>>20)
	}
}
