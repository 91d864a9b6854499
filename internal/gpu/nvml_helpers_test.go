//go:build cgo && linux

package gpu

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// step is what one thing that a subprocess did brought.
type step struct {
	Readings []Reading `json:"readings"`
	Error    string    `json:"error"`
	NoDriver bool      `json:"no_driver"`
}

func said(readings []Reading, err error) {
	s := step{Readings: readings, NoDriver: errors.Is(err, ErrNoDriver)}
	if err != nil {
		s.Error = err.Error()
	}
	b, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	fmt.Println(string(b))
}

// init says what a subprocess can do. It prints a step for opening, for each
// sample, and for closing.
func init() {
	subprocess = func(task string) {
		source, err := OpenNVML()
		said(nil, err)
		if err != nil {
			return
		}
		ctx := context.Background()
		var times int
		switch {
		case task == "xid": // until one comes
			deadline := time.Now().Add(10 * time.Second)
			for {
				readings, err := source.Sample(ctx, noon)
				if len(readings) == 0 || readings[0].XID.Or(0) != 0 || time.Now().After(deadline) {
					said(readings, err)
					break
				}
				time.Sleep(20 * time.Millisecond)
			}
		case task == "again": // two at a time, then all anew
			other, err := OpenNVML()
			said(nil, err)
			said(nil, source.Close())
			said(source.Sample(ctx, noon))
			said(other.Sample(ctx, noon))
			said(nil, other.Close())
			source, err = OpenNVML()
			said(nil, err)
			said(source.Sample(ctx, noon))
		case task == "hang":
			go func() { _, _ = source.Sample(ctx, noon) }()
			limited, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			time.Sleep(100 * time.Millisecond) // the first is in the driver by now
			said(source.Sample(limited, noon))
		default:
			if _, err := fmt.Sscanf(task, "sample %d", &times); err != nil {
				panic(err)
			}
			for i := range times {
				said(source.Sample(ctx, noon.Add(time.Duration(i)*time.Second)))
			}
		}
		said(nil, source.Close())
	}
}

var building sync.Mutex

// stub builds a stand-in for the driver's library, once, and returns its folder.
func stub(t *testing.T, variant string) string {
	t.Helper()
	building.Lock()
	defer building.Unlock()
	if stubs == "" {
		dir, err := os.MkdirTemp("", "weir-stub-nvml")
		if err != nil {
			t.Fatal(err)
		}
		stubs = dir
	}
	dir := filepath.Join(stubs, "stub"+variant)
	library := filepath.Join(dir, "libnvidia-ml.so.1")
	if _, err := os.Stat(library); err == nil {
		return dir
	}
	compiler := os.Getenv("CC")
	if compiler == "" {
		compiler = "cc"
	}
	if _, err := exec.LookPath(compiler); err != nil {
		t.Skipf("no C compiler to build the stand-in for the driver's library with: %v", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	args := []string{"-shared", "-fPIC", "-O1", "-pthread", "-o", library, filepath.Join("testdata", "stub", "nvml.c")}
	if variant != "" {
		args = append(args, variant)
	}
	if out, err := exec.Command(compiler, args...).CombinedOutput(); err != nil {
		t.Fatalf("build the stand-in: %v\n%s", err, out)
	}
	return dir
}

// inside does a task in a process that finds the library in dir.
func inside(t *testing.T, dir, scenario, task string) []step {
	t.Helper()
	file := filepath.Join(t.TempDir(), "scenario")
	if err := os.WriteFile(file, []byte(scenario), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, os.Args[0])
	c.Env = append(os.Environ(), "WEIR_GPU_TASK="+task, "LD_LIBRARY_PATH="+dir, "WEIR_STUB_NVML="+file)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	out, err := c.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s%s", task, err, out, stderr.Bytes())
	}
	var steps []step
	for line := range strings.Lines(string(out)) {
		var s step
		if err := json.Unmarshal([]byte(line), &s); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		steps = append(steps, s)
	}
	return steps
}

// sampled returns the samples of a task that opened and closed without an error.
func sampled(t *testing.T, dir, scenario, task string) []step {
	t.Helper()
	steps := inside(t, dir, scenario, task)
	if len(steps) < 3 || steps[0].Error != "" || steps[len(steps)-1].Error != "" {
		t.Fatalf("%s: %+v", task, steps)
	}
	return steps[1 : len(steps)-1]
}
