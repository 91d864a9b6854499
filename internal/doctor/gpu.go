package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/weirgate/weir/internal/endpoint"
)

// checkGPU looks for a GPU where the engine runs on this very machine.
func checkGPU(_ context.Context, v *visit) Finding {
	host := v.base.Hostname()
	switch {
	case v.Metrics != "":
		m, err := endpoint.ParseBase(v.Metrics)
		if err != nil {
			return grey("not looked for because the engine's address cannot be read")
		}
		host = m.URL().Hostname()
	case v.Admin != "":
		return grey("not looked for because it is not known where the engine runs: --metrics names it")
	}
	if !isLoopback(host) {
		return grey("not looked for because the engine runs on another machine, or in another container")
	}
	m := &v.machine
	count := func(pattern string) []string {
		found, err := m.glob(pattern)
		if err != nil {
			return nil // the patterns are right
		}
		return found
	}
	_, noTool := m.lookPath("nvidia-smi")
	nvidia := count("/dev/nvidia[0-9]*")
	for _, device := range append(nvidia, count("/dev/kfd")...) {
		if err := m.open(device); errors.Is(err, fs.ErrPermission) {
			return yellow(device+" may not be opened by this user", "An engine that runs as this user cannot use the GPU.",
				"add the user to the device's group (ls -l "+device+"), often video or render, and log in again")
		}
	}
	switch {
	case len(nvidia) == 1:
		return green("one NVIDIA GPU can be used on this machine")
	case len(nvidia) > 1:
		return green(fmt.Sprintf("%d NVIDIA GPUs can be used on this machine", len(nvidia)))
	case len(count("/dev/kfd")) > 0:
		return green("an AMD GPU can be used on this machine")
	case noTool == nil:
		return yellow("nvidia-smi is here, but no NVIDIA device", "The driver is not loaded, or this container was not given a GPU.",
			"run nvidia-smi and see what it says; in a container, start it with --gpus all")
	}
	return grey("no GPU is to be seen on this machine", "The engine computes on the CPU, or in a container that has one.")
}
