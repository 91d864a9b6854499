package telemetry

import "time"

const (
	micro  = time.Microsecond
	milli  = time.Millisecond
	second = time.Second
)

// callEdges serve figures of a whole call: the edges that the conventions
// advise for request duration and time to first token, every objective of the
// presets, and long calls.
var callEdges = []time.Duration{
	1 * milli, 5 * milli, 10 * milli, 20 * milli, 40 * milli, 60 * milli, 80 * milli, 100 * milli, 160 * milli, 200 * milli, 250 * milli,
	320 * milli, 500 * milli, 640 * milli, 750 * milli, 1 * second, 1280 * milli, 1500 * milli, 2 * second, 2500 * milli, 2560 * milli, 5 * second,
	5120 * milli, 7500 * milli, 10 * second, 10240 * milli, 20 * second, 20480 * milli, 30 * second, 40960 * milli, 60 * second, 81920 * milli,
	120 * second, 300 * second, 600 * second,
}

// tokenEdges serve figures of one token or chunk: the conventions' edges for
// time per output token, the presets' objectives, and edges below 10 ms for
// engines that are faster than the conventions thought of.
var tokenEdges = []time.Duration{
	250 * micro, 500 * micro, 1 * milli, 2 * milli, 3 * milli, 4 * milli, 5 * milli, 6 * milli, 8 * milli, 10 * milli, 15 * milli, 20 * milli, 25 * milli,
	30 * milli, 40 * milli, 50 * milli, 75 * milli, 100 * milli, 150 * milli, 200 * milli, 300 * milli, 400 * milli, 500 * milli, 750 * milli,
	1 * second, 2 * second, 2500 * milli, 5 * second, 10 * second,
}

// WaitEdges serve waits in the gateway's queue, which counts by them itself. The
// first is for calls that did not wait.
var WaitEdges = []time.Duration{
	0, milli, 5 * milli, 10 * milli, 50 * milli, 100 * milli, 250 * milli, 500 * milli, second, 2500 * milli, 5 * second,
	10 * second, 30 * second, 60 * second,
}

// rttEdges serve round trips: those within a machine and a rack, the presets'
// objectives, and those around the world.
var rttEdges = []time.Duration{
	20 * micro, 50 * micro, 100 * micro, 200 * micro, 500 * micro, 1 * milli, 2 * milli, 5 * milli, 10 * milli, 20 * milli, 50 * milli, 100 * milli,
	200 * milli, 500 * milli, 1 * second, 2 * second,
}

// usageEdges serve the tokens of one call: those that the conventions advise.
var usageEdges = []int64{1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864}

// chunkEdges serve the gateway's own time on one chunk.
var chunkEdges = []time.Duration{
	500 * time.Nanosecond, 1 * micro, 2 * micro, 5 * micro, 10 * micro, 20 * micro, 50 * micro, 100 * micro, 200 * micro, 500 * micro,
	1 * milli, 2 * milli, 5 * milli, 10 * milli, 100 * milli, 1 * second,
}
