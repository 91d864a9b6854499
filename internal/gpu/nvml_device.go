//go:build cgo && linux

package gpu

import (
	"fmt"
	"math"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// asks is a set of questions to the driver.
type asks uint32

// The questions. Each needs functions that an older or newer driver may lack.
const (
	askName = iota
	askUUID
	askUtilization
	askClock
	askMaxClock
	askPower
	askPowerLimit
	askEnergy
	askReasons
	askReasonsOld
	askMemory
	askTemperature
	askTemperatureNew
	askPCIe
	askECC
	askProcesses
	askGPM
	askXID
)

// askSymbols are the functions that each question calls, all of them; of those
// with a bar between them one is enough.
var askSymbols = [...][]string{
	askName:           {"nvmlDeviceGetName"},
	askUUID:           {"nvmlDeviceGetUUID"},
	askUtilization:    {"nvmlDeviceGetUtilizationRates"},
	askClock:          {"nvmlDeviceGetClockInfo"},
	askMaxClock:       {"nvmlDeviceGetMaxClockInfo"},
	askPower:          {"nvmlDeviceGetPowerUsage"},
	askPowerLimit:     {"nvmlDeviceGetEnforcedPowerLimit"},
	askEnergy:         {"nvmlDeviceGetTotalEnergyConsumption"},
	askReasons:        {"nvmlDeviceGetCurrentClocksEventReasons"},
	askReasonsOld:     {"nvmlDeviceGetCurrentClocksThrottleReasons"},
	askMemory:         {"nvmlDeviceGetMemoryInfo"},
	askTemperature:    {"nvmlDeviceGetTemperature"},
	askTemperatureNew: {"nvmlDeviceGetTemperatureV"},
	askPCIe:           {"nvmlDeviceGetPcieThroughput"},
	askECC:            {"nvmlDeviceGetTotalEccErrors"},
	askProcesses: {"nvmlDeviceGetComputeRunningProcesses|nvmlDeviceGetComputeRunningProcesses_v2|" +
		"nvmlDeviceGetComputeRunningProcesses_v3"},
	askGPM: {"nvmlGpmQueryDeviceSupport", "nvmlGpmSampleAlloc", "nvmlGpmSampleGet", "nvmlGpmMetricsGet", "nvmlGpmSampleFree"},
	askXID: {"nvmlEventSetCreate", "nvmlDeviceRegisterEvents", "nvmlEventSetWait|nvmlEventSetWait_v2", "nvmlEventSetFree"},
}

// device is one GPU.
type device struct {
	handle     nvml.Device // nil: it could not be opened
	index      int
	uuid, name string
	not        asks        // what the library or the GPU cannot answer
	lost       nvml.Return // why it gives no answers; SUCCESS: it does
	lostAt     time.Time
	gpm        gpm

	slow        Reading // the slow figures as last read
	slowAt      time.Time
	processesAt time.Time
}

// ask puts a question, unless it is known that there is no answer.
func ask[T any](d *device, question int, call func() (T, nvml.Return)) (answer T, ok bool) {
	if d.lost != nvml.SUCCESS || d.not&(1<<question) != 0 {
		return answer, false
	}
	got, ret := call()
	switch {
	case ret == nvml.SUCCESS:
		return got, true
	case ret == nvml.ERROR_NOT_SUPPORTED || ret == nvml.ERROR_FUNCTION_NOT_FOUND:
		d.not |= 1 << question
	case fatal(ret):
		d.lost = ret
	}
	return answer, false
}

// read samples the GPU. offset is when in slowEvery its slow figures are due.
func (d *device) read(now time.Time, offset time.Duration) (Reading, error) {
	if d.lost != nvml.SUCCESS && d.handle != nil && since(d.lostAt, now, lostEvery) {
		d.lost = nvml.SUCCESS
	}
	r := Reading{Time: now, Index: d.index, UUID: d.uuid, Name: d.name}
	d.readFast(&r)
	if d.lost == nvml.SUCCESS {
		d.readSlow(now, offset)
	}
	if d.lost != nvml.SUCCESS {
		if since(d.lostAt, now, lostEvery) {
			d.lostAt = now
		}
		return Reading{}, fmt.Errorf("GPU %d: %w", d.index, explain(d.lost))
	}
	d.lostAt = time.Time{}
	s := &d.slow
	r.MaxClock, r.MemoryUsed, r.MemoryTotal = s.MaxClock, s.MemoryUsed, s.MemoryTotal
	r.Temperature, r.Uncorrected, r.Processes = s.Temperature, s.Uncorrected, s.Processes
	if !r.PCIeSent.IsKnown() {
		r.PCIeSent, r.PCIeReceived = s.PCIeSent, s.PCIeReceived
	}
	return r, nil
}

// readFast reads what is worth a second's resolution.
func (d *device) readFast(r *Reading) {
	// The counter and the power first: their time is that of the reading.
	if mj, ok := ask(d, askEnergy, func() (uint64, nvml.Return) { return d.handle.GetTotalEnergyConsumption() }); ok {
		r.Energy = figureWithin(float64(mj)/1000, 0, mostJoules)
	}
	if mw, ok := ask(d, askPower, func() (uint32, nvml.Return) { return d.handle.GetPowerUsage() }); ok {
		r.Power = figureWithin(float64(mw)/1000, 0, mostWatts)
	}
	if u, ok := ask(d, askUtilization, func() (nvml.Utilization, nvml.Return) { return d.handle.GetUtilizationRates() }); ok {
		r.Utilization = figureWithin(float64(u.Gpu)/100, 0, 1)
		r.MemoryBusy = figureWithin(float64(u.Memory)/100, 0, 1)
	}
	if mhz, ok := ask(d, askClock, func() (uint32, nvml.Return) { return d.handle.GetClockInfo(nvml.CLOCK_SM) }); ok {
		r.Clock = figureWithin(float64(mhz), 0, mostMHz)
	}
	if mw, ok := ask(d, askPowerLimit, func() (uint32, nvml.Return) { return d.handle.GetEnforcedPowerLimit() }); ok {
		r.PowerLimit = figureWithin(float64(mw)/1000, 1, mostWatts)
	}
	mask, ok := ask(d, askReasons, func() (uint64, nvml.Return) { return d.handle.GetCurrentClocksEventReasons() })
	if !ok {
		mask, ok = ask(d, askReasonsOld, func() (uint64, nvml.Return) { return d.handle.GetCurrentClocksThrottleReasons() })
	}
	r.Reasons, r.ReasonsKnown = Reasons(mask), ok
	d.readGPM(r)
}

// readSlow reads the rest, when it is due. At first it reads at once what costs
// little, and puts off what takes the driver 40 ms a GPU.
func (d *device) readSlow(now time.Time, offset time.Duration) {
	first := d.slowAt.IsZero()
	if !since(d.slowAt, now, slowEvery) {
		return
	}
	d.slowAt = now
	if first {
		d.slowAt = now.Add(offset - slowEvery + interval)
	}
	s := &d.slow
	processes := s.Processes
	*s = Reading{Processes: processes}
	if mhz, ok := ask(d, askMaxClock, func() (uint32, nvml.Return) { return d.handle.GetMaxClockInfo(nvml.CLOCK_SM) }); ok {
		s.MaxClock = figureWithin(float64(mhz), 1, mostMHz)
	}
	if m, ok := ask(d, askMemory, func() (nvml.Memory, nvml.Return) { return d.handle.GetMemoryInfo() }); ok {
		s.MemoryUsed = figureWithin(float64(m.Used), 0, mostBytes)
		s.MemoryTotal = figureWithin(float64(m.Total), 1, mostBytes)
	}
	if c, ok := ask(d, askTemperature, func() (uint32, nvml.Return) { return d.handle.GetTemperature(nvml.TEMPERATURE_GPU) }); ok {
		s.Temperature = figureWithin(float64(c), 0, mostDegrees)
	} else if t, ok := ask(d, askTemperatureNew, func() (nvml.Temperature, nvml.Return) { return d.handle.GetTemperatureV().V1() }); ok {
		s.Temperature = figureWithin(float64(t.Temperature), -50, mostDegrees)
	}
	if n, ok := ask(d, askECC, func() (uint64, nvml.Return) {
		return d.handle.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC)
	}); ok {
		s.Uncorrected = figureWithin(float64(n), 0, mostCount)
	}
	if !first && !d.gpm.ready {
		s.PCIeSent, s.PCIeReceived = d.traffic(nvml.PCIE_UTIL_TX_BYTES), d.traffic(nvml.PCIE_UTIL_RX_BYTES)
	}
	if since(d.processesAt, now, processesEvery) {
		d.processesAt = now
		s.Processes = d.processes()
	}
}

// since tells whether it is so long since t, to the nearest sample; since ever,
// if t is zero.
func since(t, now time.Time, long time.Duration) bool {
	return now.Sub(t) >= long-interval/2
}

func (d *device) traffic(direction nvml.PcieUtilCounter) Number {
	kb, ok := ask(d, askPCIe, func() (uint32, nvml.Return) { return d.handle.GetPcieThroughput(direction) })
	if !ok {
		return Number{}
	}
	return figureWithin(float64(kb)*1000, 0, mostRate)
}

// processes lists at most 64.
func (d *device) processes() []Process {
	infos, ok := ask(d, askProcesses, func() ([]nvml.ProcessInfo, nvml.Return) { return d.handle.GetComputeRunningProcesses() })
	if !ok || len(infos) == 0 {
		return nil
	}
	list := make([]Process, 0, min(len(infos), 64))
	for _, info := range infos[:cap(list)] {
		p := Process{PID: int(info.Pid)}
		if info.UsedGpuMemory != math.MaxUint64 { // not known, as in a container
			p.Memory = figureWithin(float64(info.UsedGpuMemory), 0, mostBytes)
		}
		list = append(list, p)
	}
	return list
}
