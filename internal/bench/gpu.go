package bench

import (
	"context"
	"encoding/csv"
	"os/exec"
	"strings"

	"github.com/weirgate/weir/internal/call"
)

// gpuFields are what is asked of nvidia-smi, and the names in a snapshot. Clocks
// are MHz, power is watts, memory MiB.
var gpuFields = [...][2]string{
	{"name", "name"}, {"driver_version", "driver"}, {"memory.total", "memory_mib"},
	{"clocks.sm", "clock_sm_mhz"}, {"clocks.max.sm", "clock_sm_max_mhz"}, {"clocks.mem", "clock_memory_mhz"},
	{"power.limit", "power_cap_w"}, {"power.default_limit", "power_default_w"}, {"persistence_mode", "persistence"},
}

// maxGPUs is how many are noted.
const maxGPUs = 64

// readGPUs asks nvidia-smi for this machine's GPUs, nil without one. A field that
// it does not know of a GPU is absent.
func readGPUs(ctx context.Context, run func(context.Context, string, ...string) ([]byte, error)) []map[string]string {
	if run == nil {
		run = runProgram
	}
	names := make([]string, len(gpuFields))
	for i, f := range gpuFields {
		names[i] = f[0]
	}
	out, err := run(ctx, "nvidia-smi", "--query-gpu="+strings.Join(names, ","), "--format=csv,noheader,nounits")
	if err != nil {
		return nil
	}
	reader := csv.NewReader(strings.NewReader(string(out)))
	reader.TrimLeadingSpace = true
	reader.FieldsPerRecord = len(gpuFields)
	rows, err := reader.ReadAll()
	if err != nil {
		return nil // an answer that is not what was asked for says nothing
	}
	var gpus []map[string]string
	for _, row := range rows[:min(len(rows), maxGPUs)] {
		gpu := map[string]string{}
		for i, value := range row {
			if value = strings.TrimSpace(value); value != "" && !strings.HasPrefix(value, "[") {
				gpu[gpuFields[i][1]] = call.NameOf(value)
			}
		}
		if len(gpu) > 0 {
			gpus = append(gpus, gpu)
		}
	}
	return gpus
}

// runProgram runs a program that is on the path and returns what it printed.
func runProgram(ctx context.Context, name string, args ...string) ([]byte, error) {
	return exec.CommandContext(ctx, name, args...).Output()
}
