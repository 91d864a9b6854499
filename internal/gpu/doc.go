// Package gpu samples GPUs.
//
// A Source reads the GPUs once: NVML through the driver of this machine, DCGM
// through the metrics page of a dcgm-exporter anywhere. A Sampler asks a Source
// once a second, keeps the last quarter of an hour, and answers what the GPUs
// did while a call ran (Window) and which part of their energy was the call's
// (Share). What a GPU, a driver or an exporter does not tell is absent, never 0.
//
// NVML needs cgo. The driver's library is opened while the program runs, and of
// its functions only those are called that it has: to call another one would end
// the process. For the same reason the program must not be linked with -z now,
// nor be started with LD_BIND_NOW set: the linker would then look for all
// functions at start, find no library, and end it.
package gpu
