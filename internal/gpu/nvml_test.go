//go:build cgo && linux

package gpu

import (
	"os"
	"strings"
	"testing"
	"time"
)

const twoGPUs = `
gpus 2
util 0 73 74 75
util 1 0
memutil 0 41
clock 0 1410
clock 1 345
maxclock * 1980
power 0 350000 360000 370000
power 1 70000
limit * 700000
energy 0 1000000 1351500 1712000
energy 1 5
reasons 0 0x4
reasons 1 0x1
memtotal * 85899345920
memused * 42949672960 1073741824
temp 0 61 62
temp 1 35
pcietx 0 1000 2000
pcierx * 500
ecc * 0 3
processes 0 3
`

func TestNVML(t *testing.T) {
	t.Parallel()
	steps := sampled(t, stub(t, ""), twoGPUs, "sample 14")
	if len(steps) != 14 {
		t.Fatalf("%d steps", len(steps))
	}
	for i, s := range steps {
		if s.Error != "" || len(s.Readings) != 2 {
			t.Fatalf("sample %d: %+v", i, s)
		}
		a, b := s.Readings[0], s.Readings[1]
		at := noon.Add(time.Duration(i) * time.Second)
		if a.Index != 0 || b.Index != 1 || a.UUID != "GPU-0" || b.UUID != "GPU-1" || a.Name != "Stub GPU" ||
			a.Time.Before(at) || a.Time.After(at.Add(time.Second)) {
			t.Errorf("sample %d: %+v", i, s)
		}
		n := min(i, 2)
		if !is(a.Utilization, []float64{0.73, 0.74, 0.75}[n]) || !is(a.Power, []float64{350, 360, 370}[n]) ||
			!is(a.Energy, []float64{1000, 1351.5, 1712}[n]) || !is(a.MemoryBusy, 0.41) || !is(a.Clock, 1410) || !is(a.MaxClock, 1980) ||
			!is(a.PowerLimit, 700) || !a.ReasonsKnown || a.Reasons != PowerCap {
			t.Errorf("sample %d: %+v", i, a)
		}
		if !is(b.Utilization, 0) || !is(b.MemoryBusy, 0) || !is(b.Energy, 0.005) || !b.ReasonsKnown || b.Reasons != Idle {
			t.Errorf("sample %d: %+v", i, b)
		}
		// The slow ones are read at first, and of GPU 0 after one second and nine
		// of GPU 1 after five and thirteen.
		again := func(first int) int { return min(1, max(0, (i+8-first)/8)) }
		temperature := []float64{61, 62}[again(1)]
		if !is(a.Temperature, temperature) || !is(a.MemoryTotal, 80<<30) || !is(a.MemoryUsed, []float64{40 << 30, 1 << 30}[again(1)]) {
			t.Errorf("sample %d: %+v", i, a)
		}
		if !is(b.Temperature, 35) || !is(b.MemoryUsed, []float64{40 << 30, 1 << 30}[again(5)]) || !is(b.Uncorrected, []float64{0, 3}[again(5)]) {
			t.Errorf("sample %d: %+v", i, b)
		}
		switch { // PCIe is put off at first
		case i < 1 && a.PCIeSent.IsKnown(), i >= 1 && i < 9 && !is(a.PCIeSent, 1e6), i >= 9 && !is(a.PCIeSent, 2e6),
			i >= 1 && !is(a.PCIeReceived, 5e5), b.PCIeSent.IsKnown():
			t.Errorf("sample %d: PCIe %+v %+v", i, a, b)
		}
		if len(a.Processes) != 3 || a.Processes[0].PID != 1000 || a.Processes[0].Memory.IsKnown() || !is(a.Processes[2].Memory, 2<<30) || b.Processes != nil {
			t.Errorf("sample %d: processes %+v %+v", i, a.Processes, b.Processes)
		}
		if a.MemoryBandwidth.IsKnown() || a.NVLinkSent.IsKnown() || a.XID.IsKnown() || a.Host != "" {
			t.Errorf("sample %d: what nobody told: %+v", i, a)
		}
	}
}

func TestGPM(t *testing.T) {
	t.Parallel()
	steps := sampled(t, stub(t, ""), `
gpus 2
gpm 0 1
gpm 1 0
gpm10 0 62500 !3 140737488355328000
gpm20 0 2000
gpm21 0 3000
gpm60 0 5000
pcietx * 7
pcierx * 7
`, "sample 12")
	for i, s := range steps {
		a, b := s.Readings[0], s.Readings[1]
		if known := i > 0; known != is(a.PCIeSent, 2<<20) || known != is(a.PCIeReceived, 3<<20) || known != is(a.NVLinkReceived, 5<<20) {
			t.Errorf("sample %d: %+v", i, a)
		}
		if a.MemoryBandwidth.IsKnown() != (i == 1) || i == 1 && !is(a.MemoryBandwidth, 0.625) || a.NVLinkSent.IsKnown() {
			t.Errorf("sample %d: bandwidth %+v", i, a)
		}
		if b.MemoryBandwidth.IsKnown() || b.PCIeSent.IsKnown() != (i >= 5) {
			t.Errorf("sample %d: %+v", i, b)
		}
	}
}

// TestLibrariesThatLackFunctions: calling one of them would end the process.
func TestLibrariesThatLackFunctions(t *testing.T) {
	t.Parallel()
	for _, s := range sampled(t, stub(t, "-DOLD"), twoGPUs, "sample 10") {
		r := s.Readings[0]
		if s.Error != "" || r.Energy.IsKnown() || !r.Power.IsKnown() || r.Reasons != PowerCap || !r.Temperature.IsKnown() || r.Processes != nil {
			t.Errorf("old: %+v", s)
		}
	}
	steps := sampled(t, stub(t, "-DBARE"), twoGPUs, "sample 10")
	for _, s := range steps {
		r := s.Readings[1]
		r.Time = time.Time{}
		if s.Error != "" || r.Index != 1 || r.UUID != "" || r.key() != "/1" || r.Power.IsKnown() || r.ReasonsKnown || r.MemoryUsed.IsKnown() {
			t.Errorf("bare: %+v", s)
		}
	}
	steps = inside(t, stub(t, "-DBROKEN"), twoGPUs, "sample 1")
	if len(steps) != 1 || !strings.Contains(steps[0].Error, "has no function nvmlInit_v2") || steps[0].NoDriver {
		t.Errorf("broken: %+v", steps)
	}
}

func TestNoDriver(t *testing.T) {
	t.Parallel()
	fails := func(name, dir, scenario, want string, noDriver bool) {
		t.Helper()
		steps := inside(t, dir, scenario, "sample 1")
		if len(steps) != 1 || !strings.Contains(steps[0].Error, want) || steps[0].NoDriver != noDriver {
			t.Errorf("%s: %+v", name, steps)
		}
	}
	broken := t.TempDir()
	if err := os.WriteFile(broken+"/libnvidia-ml.so.1", []byte("this is no library, whatever it is called, and however long it may be"), 0o600); err != nil {
		t.Fatal(err)
	}
	fails("no library", broken, "", "no NVIDIA driver", true)
	dir := stub(t, "")
	fails("no module", dir, "init !9\ngpus 1\n", "no NVIDIA driver: its library is there, but the kernel module is not loaded", true)
	fails("two versions", dir, "init !18\ngpus 1\n", "driver and library are of different versions", false)
	fails("no permission", dir, "init !4\ngpus 1\n", "permission denied", false)
	fails("no GPU", dir, "gpus 0\n", "shows no GPU", false)
	fails("no count", dir, "gpus !999\n", "count the GPUs: error 999 of NVML", false)
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		fails("nothing", t.TempDir(), "", "no NVIDIA driver", true)
	}
}

// TestLostGPU: what is lost is said, the others go on, and it may come back.
func TestLostGPU(t *testing.T) {
	t.Parallel()
	steps := sampled(t, stub(t, ""), `
gpus 3
handle 2 !15
power 0 100000
power 1 50000 51000 !15 !15 52000
util 1 50
`, "sample 66")
	for i, s := range steps {
		there := i < 2 || i >= 62
		if len(s.Readings) != 1 && !there || len(s.Readings) != 2 && there || !is(s.Readings[0].Power, 100) {
			t.Fatalf("sample %d: %+v", i, s)
		}
		if strings.Contains(s.Error, "GPU 1: the GPU is lost") == there || !strings.Contains(s.Error, "GPU 2: the GPU is lost") || strings.Contains(s.Error, "\n") {
			t.Errorf("sample %d: %q", i, s.Error)
		}
		if there && !is(s.Readings[1].Power, []float64{50, 51, 52}[min(i, 2)]) {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
}

// TestDriverLoadedAnew: when every GPU is lost, NVML is started again.
func TestDriverLoadedAnew(t *testing.T) {
	t.Parallel()
	steps := sampled(t, stub(t, ""), "gpus 1\npower 0 100000 101000 !1 102000\ngpm 0 1\ngpm20 0 1000\nxid 0 31 0\n", "sample 5")
	for i, want := range []float64{100, 101, 0, 100, 101} {
		if s := steps[i]; want == 0 && (len(s.Readings) != 0 || !strings.Contains(s.Error, "the driver was unloaded")) ||
			want != 0 && (s.Error != "" || !is(s.Readings[0].Power, want)) {
			t.Errorf("sample %d: %+v", i, s)
		}
	}
}

func TestSlowDriver(t *testing.T) {
	t.Parallel()
	steps := sampled(t, stub(t, ""), "gpus 2\npower * ~150:100000\n", "sample 2")
	for _, s := range steps {
		// The second reading is that much later.
		if len(s.Readings) != 2 || s.Readings[1].Time.Sub(s.Readings[0].Time) < 150*time.Millisecond {
			t.Errorf("%+v", s)
		}
	}
}

// TestHungDriver: nobody waits for it for ever.
func TestHungDriver(t *testing.T) {
	t.Parallel()
	steps := inside(t, stub(t, ""), "gpus 1\npower 0 @\n", "hang")
	if len(steps) != 3 || !strings.Contains(steps[1].Error, "deadline exceeded") || !strings.Contains(steps[2].Error, "has not returned within 3s") {
		t.Errorf("%+v", steps)
	}
}

func TestHungWaitForEvents(t *testing.T) {
	t.Parallel()
	steps := inside(t, stub(t, ""), "gpus 1\npower 0 1000\nxid 0 @ 0\n", "sample 1")
	if len(steps) != 3 || steps[1].Error != "" || !is(steps[1].Readings[0].XID, 0) || !strings.Contains(steps[2].Error, "wait for events") {
		t.Errorf("%+v", steps)
	}
}

func TestXID(t *testing.T) {
	t.Parallel()
	s := sampled(t, stub(t, ""), "gpus 2\npower * 1000\nxid 0 79 40\n", "xid")[0]
	if len(s.Readings) != 2 || !is(s.Readings[0].XID, 79) || s.Readings[0].XIDTime.IsZero() || s.Readings[1].XID.IsKnown() {
		t.Errorf("%+v", s)
	}
	// An error of the wait is no end of it.
	s = sampled(t, stub(t, ""), "gpus 2\npower * 1000\nxid 1 !999 10\nxid 0 48 20\n", "xid")[0]
	if len(s.Readings) != 2 || !is(s.Readings[0].XID, 48) || !is(s.Readings[1].XID, 0) || !s.Readings[1].XIDTime.IsZero() {
		t.Errorf("%+v", s)
	}
}

// TestOpenTwice: on a change of configuration the new one opens NVML before the
// old one closes it.
func TestOpenTwice(t *testing.T) {
	t.Parallel()
	steps := inside(t, stub(t, ""), "gpus 1\npower 0 1000 2000\nxid 0 1 100000\n", "again")
	if len(steps) != 9 {
		t.Fatalf("%+v", steps)
	}
	for i, s := range steps {
		switch i {
		case 3: // of the one that was closed
			if !strings.Contains(s.Error, "it is closed") {
				t.Errorf("step %d: %+v", i, s)
			}
		case 4, 7:
			if s.Error != "" || !is(s.Readings[0].Power, 1) {
				t.Errorf("step %d: %+v", i, s)
			}
		default:
			if s.Error != "" {
				t.Errorf("step %d: %+v", i, s)
			}
		}
	}
}

// TestRealGPU reads the GPUs of this machine, where there are any.
func TestRealGPU(t *testing.T) {
	if _, err := os.Stat("/dev/nvidia0"); err != nil {
		t.Skip("this machine has no NVIDIA GPU")
	}
	source, err := OpenNVML()
	if err != nil {
		t.Fatal(err)
	}
	var before []Reading
	for i := range 3 {
		if i > 0 {
			time.Sleep(1100 * time.Millisecond)
		}
		readings, err := source.Sample(t.Context(), time.Now())
		if err != nil || len(readings) == 0 {
			t.Fatalf("%+v (%v)", readings, err)
		}
		for j, r := range readings {
			t.Logf("sample %d: %+v", i, r)
			power, known := r.Power.Get()
			used, _ := r.MemoryUsed.Get()
			total, _ := r.MemoryTotal.Get()
			if r.UUID == "" || r.Name == "" || known && power <= 0 || used > total || !r.Clock.IsKnown() || !r.ReasonsKnown {
				t.Errorf("sample %d: %+v", i, r)
			}
			if i > 0 && r.Energy.Or(0) < before[j].Energy.Or(0) {
				t.Errorf("energy went from %v to %v", before[j].Energy, r.Energy)
			}
		}
		before = readings
	}
	if err := source.Close(); err != nil {
		t.Error(err)
	}
}
