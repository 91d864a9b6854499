package capacity

import (
	"strings"
	"testing"
)

func TestFindGPU(t *testing.T) {
	for name, want := range map[string]int64{
		"h100": 80, "H100": 80, "h100-nvl": 94, "H100 NVL": 94, "a100-80gb": 80, "A100 40GB": 40, "l4": 24, "l40s": 48, "a10": 24,
		"rtx 4090": 24, "RTX4090": 24, "h200": 141, "b200": 180, "mi300x": 192, "MI325X": 256,
	} {
		if g, err := FindGPU(name); err != nil || g.Stated != want || g.Bytes != 0 {
			t.Errorf("%s is %+v, %v; want %d GB", name, g, err, want)
		}
	}
	for name, says := range map[string]string{
		"a100": "which \"a100\" is meant: a100-40gb or a100-80gb?", "rtx": "rtx-4090 or", "": "choose one of l4", "tpu": "how much memory it has",
	} {
		if _, err := FindGPU(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", name, err, says)
		}
	}
	list := GPUs()
	for i, g := range list {
		if i > 0 && g.Stated < list[i-1].Stated {
			t.Errorf("%s is out of order", g.Name)
		}
	}
	list[0].Stated = 1
	if GPUs()[0].Stated == 1 {
		t.Error("the presets can be changed from outside")
	}
}

// TestGPUMemory: the vendor's figure is read in the unit; a figure in bytes is not read
// at all.
func TestGPUMemory(t *testing.T) {
	g := GPU{Stated: 80}
	if got := g.memory(GB); got != 80_000_000_000 {
		t.Errorf("80 GB are %d bytes", got)
	}
	if got := g.memory(GiB); got != 85_899_345_920 {
		t.Errorf("80 GiB are %d bytes", got)
	}
	g.Bytes = 81_559 << 20
	if g.memory(GB) != 81_559<<20 || g.memory(GiB) != 81_559<<20 {
		t.Error("exact bytes are read in a unit")
	}
}
