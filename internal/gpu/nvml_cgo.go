//go:build cgo && linux

package gpu

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/dl"
	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

const (
	// slowEvery is how often memory, temperature, traffic and errors are read:
	// each takes the driver longer than all fast figures together.
	slowEvery = 8 * time.Second
	// processesEvery is how often processes are listed.
	processesEvery = 30 * time.Second
	// lostEvery is how often a lost GPU is asked again.
	lostEvery = 30 * time.Second
	// closing bounds how long Close waits for the driver.
	closing = patience
)

// driver is the driver's library, of which there is one in a process.
//
// Its errors (nvml.Return) are never printed: that calls a function which the
// library may lack, and the text lies in the library's memory. See explain.
var driver struct {
	sync.Mutex
	// opened is the library: once open it stays, so that addresses which the linker has
	// put into this program stay good when NVML is shut down and started again.
	opened *dl.DynamicLibrary
	nvml   nvml.Interface
	lacks  asks // of the questions, those that the library has no function for
}

// nvmlSource implements Source.
type nvmlSource struct {
	gate    chan struct{} // whoever took its one value may use what follows
	devices []*device
	xids    *xidWatch
	broken  bool // NVML must be started anew
	closed  bool
}

// OpenNVML starts NVML, the library of the NVIDIA driver. The error wraps
// ErrNoDriver where there is none. Several may be open.
func OpenNVML() (Source, error) {
	if err := loadDriver(); err != nil {
		return nil, fmt.Errorf("open NVML: %w", err)
	}
	s := &nvmlSource{gate: make(chan struct{}, 1)}
	if err := s.start(); err != nil {
		return nil, fmt.Errorf("open NVML: %w", err)
	}
	s.gate <- struct{}{}
	return s, nil
}

// loadDriver opens the library and learns what it lacks.
func loadDriver() error {
	driver.Lock()
	defer driver.Unlock()
	if driver.opened != nil {
		return nil
	}
	library := dl.New("libnvidia-ml.so.1", dl.RTLD_LAZY|dl.RTLD_GLOBAL)
	if err := library.Open(); err != nil {
		return fmt.Errorf("%w here, or its library is not visible (in a container, start it with the NVIDIA runtime): %w", ErrNoDriver, err)
	}
	has := func(symbols ...string) bool {
		for _, symbol := range symbols {
			if library.Lookup(symbol) == nil {
				return true
			}
		}
		return false
	}
	for _, either := range [][]string{
		{"nvmlInit_v2", "nvmlInit"}, {"nvmlShutdown"}, {"nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"},
		{"nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"},
	} {
		if !has(either...) {
			return errors.Join(fmt.Errorf("the driver's library has no function %s: it is broken, or too old", either[0]), library.Close())
		}
	}
	for ask, symbols := range askSymbols {
		for _, either := range symbols {
			if !has(strings.Split(either, "|")...) {
				driver.lacks |= 1 << ask
			}
		}
	}
	driver.opened = library
	driver.nvml = nvml.New()
	return nil
}

// start starts NVML and finds the GPUs. The caller is alone with s.
func (s *nvmlSource) start() error {
	if ret := driver.nvml.Init(); ret != nvml.SUCCESS {
		err := explain(ret)
		if ret == nvml.ERROR_DRIVER_NOT_LOADED || ret == nvml.ERROR_LIBRARY_NOT_FOUND {
			err = fmt.Errorf("%w: its library is there, but %w", ErrNoDriver, err)
		}
		return err
	}
	count, ret := driver.nvml.DeviceGetCount()
	if ret != nvml.SUCCESS || count <= 0 {
		err := errors.New("the NVIDIA driver shows no GPU to this process")
		if ret != nvml.SUCCESS {
			err = fmt.Errorf("count the GPUs: %w", explain(ret))
		}
		driver.nvml.Shutdown()
		return err
	}
	count = min(count, maxGPUs)
	s.devices = make([]*device, 0, count)
	for i := range count {
		d := &device{index: i, not: driver.lacks}
		var ret nvml.Return
		if d.handle, ret = driver.nvml.DeviceGetHandleByIndex(i); ret != nvml.SUCCESS {
			d.handle = nil
			d.lost = ret
		} else {
			d.name, _ = ask(d, askName, d.handle.GetName)
			d.uuid, _ = ask(d, askUUID, d.handle.GetUUID)
			d.openGPM()
		}
		s.devices = append(s.devices, d)
	}
	s.xids = watchXIDs(s.devices)
	s.broken = false
	return nil
}

// stop undoes start.
func (s *nvmlSource) stop() error {
	if err := s.xids.close(); err != nil {
		return err
	}
	for _, d := range s.devices {
		d.closeGPM()
	}
	s.devices, s.xids = nil, nil
	if ret := driver.nvml.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("shut NVML down: %w", explain(ret))
	}
	return nil
}

// Name implements Source.
func (s *nvmlSource) Name() string { return "nvml" }

// Sample implements Source. When all GPUs are lost, say because the driver was
// loaded anew, the next Sample starts NVML again.
func (s *nvmlSource) Sample(ctx context.Context, now time.Time) ([]Reading, error) {
	select {
	case <-s.gate:
		defer func() { s.gate <- struct{}{} }()
	case <-ctx.Done():
		return nil, fmt.Errorf("sample by NVML: %w", context.Cause(ctx))
	}
	if s.closed {
		return nil, errors.New("sample by NVML: it is closed")
	}
	if s.broken {
		if err := s.restart(); err != nil {
			return nil, fmt.Errorf("start NVML again: %w", err)
		}
	}
	began := time.Now()
	readings := make([]Reading, 0, len(s.devices))
	var missing error
	miss := func(err error) {
		if missing == nil {
			missing = err
		} else {
			missing = fmt.Errorf("%w; %w", missing, err)
		}
	}
	for i, d := range s.devices {
		if err := ctx.Err(); err != nil {
			miss(fmt.Errorf("GPU %d and those after it: %w", i, err))
			break
		}
		r, err := d.read(now.Add(time.Since(began)), slowOffset(i, len(s.devices)))
		if err != nil {
			miss(err)
			continue
		}
		if x, ok := s.xids.last(i); ok {
			r.XID, r.XIDTime = Figure(float64(x.number)), x.at
		}
		readings = append(readings, r)
	}
	s.broken = len(readings) == 0 && ctx.Err() == nil
	if missing != nil {
		return readings, fmt.Errorf("sample by NVML: %w", missing)
	}
	return readings, nil
}

// restart starts NVML anew. The caller holds the gate.
func (s *nvmlSource) restart() error {
	if s.devices != nil {
		if err := s.stop(); err != nil {
			return err
		}
	}
	return s.start()
}

// slowOffset spreads the slow figures of GPU i of n over slowEvery.
func slowOffset(i, n int) time.Duration { return slowEvery * time.Duration(i) / time.Duration(n) }

// Close implements Source. Closing twice is nothing.
func (s *nvmlSource) Close() error {
	patience := time.NewTimer(closing)
	defer patience.Stop()
	select {
	case <-s.gate:
		defer func() { s.gate <- struct{}{} }()
	case <-patience.C:
		return fmt.Errorf("close NVML: a call of the driver has not returned within %v; it stays open", closing)
	}
	if s.closed {
		return nil
	}
	s.closed = true
	if s.devices == nil {
		return nil // it could not be started again
	}
	if err := s.stop(); err != nil {
		return fmt.Errorf("close NVML: %w", err)
	}
	return nil
}

// fatal tells whether a GPU gives no more answers after this one.
func fatal(ret nvml.Return) bool {
	switch ret {
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_UNINITIALIZED, nvml.ERROR_DRIVER_NOT_LOADED,
		nvml.ERROR_LIB_RM_VERSION_MISMATCH, nvml.ERROR_GPU_NOT_FOUND:
		return true
	}
	return false
}

// explain says what an error of NVML means and what to do. It calls no function
// of the library.
func explain(ret nvml.Return) error {
	switch ret {
	case nvml.ERROR_UNINITIALIZED:
		return errors.New("NVML is not started any more: the driver was unloaded")
	case nvml.ERROR_NOT_SUPPORTED:
		return errors.New("the GPU does not support it")
	case nvml.ERROR_NO_PERMISSION:
		return errors.New("permission denied: may this user open /dev/nvidiactl and /dev/nvidia0?")
	case nvml.ERROR_INSUFFICIENT_POWER:
		return errors.New("the GPU's power cables are not attached properly")
	case nvml.ERROR_DRIVER_NOT_LOADED:
		return errors.New("the kernel module is not loaded: does nvidia-smi work?")
	case nvml.ERROR_LIBRARY_NOT_FOUND:
		return errors.New("it could not be loaded")
	case nvml.ERROR_GPU_IS_LOST:
		return errors.New("the GPU is lost: it fell off the bus; reset it or restart the machine")
	case nvml.ERROR_RESET_REQUIRED:
		return errors.New("the GPU must be reset before it can be used again")
	case nvml.ERROR_OPERATING_SYSTEM:
		return errors.New("the operating system keeps the GPU from this process: look at its cgroup's devices")
	case nvml.ERROR_LIB_RM_VERSION_MISMATCH:
		return errors.New("driver and library are of different versions, as after an update: restart the machine, or load the driver anew")
	}
	return fmt.Errorf("error %d of NVML", int(ret))
}
