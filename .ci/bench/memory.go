package main

import (
	"fmt"
	"runtime"
	"time"
)

// measureMemory holds streams open after their first chunk, on a fresh gateway
// each time, and divides what the process grew by.
func measureMemory(b *bench) ([]figure, error) {
	streams := b.opts.streams
	// This program holds both ends of a stream, a gateway two; and some.
	if most := int(b.files)/2 - 200; streams > most {
		return nil, fmt.Errorf("%d idle streams need %d open files, the limit is %d; raise it (ulimit -Hn), or use -streams %d",
			streams, 2*streams+400, b.files, max(most, 1))
	}
	resident, inUse := make([]triple, b.opts.memory), make([]triple, b.opts.memory)
	for r := range b.opts.memory {
		for _, i := range orders[r%len(orders)] {
			var err error
			if resident[r][i], inUse[r][i], err = b.idle(fmt.Sprintf("idle-%d-%d", r, i), i == weirOne, streams); err != nil {
				return nil, err
			}
		}
	}
	return []figure{
		compare(fmt.Sprintf("idle stream of %d, resident memory", streams), "KiB", resident, differenceAtMost, 8),
		compare(fmt.Sprintf("idle stream of %d, heap and stacks", streams), "KiB", inUse, differenceAtMost, 8),
	}, nil
}

// idle returns what one idle stream takes of a fresh gateway, in KiB: resident
// memory, and heap and stacks in use after a collection.
func (b *bench) idle(name string, measured bool, n int) (resident, inUse float64, err error) {
	if err := b.ctx.Err(); err != nil {
		return 0, 0, err
	}
	g, err := b.start(name, measured)
	if err != nil {
		return 0, 0, err
	}
	defer g.stop()
	// What the first calls alone need is not a stream's.
	warm, err := openStreams(b.up, g, 32, 4<<10)
	if err != nil {
		return 0, 0, err
	}
	finishAll(b.up, warm)
	rss, heap, err := g.memory()
	if err != nil {
		return 0, 0, err
	}
	open, err := openStreams(b.up, g, n, 512)
	if err != nil {
		return 0, 0, err
	}
	defer func() {
		for _, s := range open {
			s.abandon(b.up)
		}
		runtime.GC() // here, rather than in the next measurement
	}()
	fullRSS, fullHeap, err := g.memory()
	if err != nil {
		return 0, 0, err
	}
	if b.opts.profile != "" {
		kind := "bare"
		if measured {
			kind = "weir"
		}
		if _, err := b.profile(g, "heap", "memory-"+kind, ""); err != nil {
			return 0, 0, err
		}
	}
	return float64(fullRSS-rss) / 1024 / float64(n), float64(fullHeap-heap) / 1024 / float64(n), nil
}

// memory returns resident memory, and heap and stacks in use, once the gateway
// is at rest.
func (g *gateway) memory() (resident, inUse int64, err error) {
	if err := g.rest(); err != nil {
		return 0, 0, err
	}
	// Resident memory first, as the streams left it; a collection does not
	// return pages at once anyway.
	if resident, err = residentBytes(g.cmd.Process.Pid); err != nil {
		return 0, 0, err
	}
	if err := g.collectGarbage(); err != nil {
		return 0, 0, err
	}
	stats, err := g.memStats()
	return resident, int64(stats.HeapInuse + stats.StackInuse), err
}

// rest waits until the gateway uses less than a hundredth of its core, 5 s at most.
func (g *gateway) rest() error {
	const look = 250 * time.Millisecond
	before, err := cpuTime(g.cmd.Process.Pid)
	for range 20 {
		if err != nil {
			return err
		}
		time.Sleep(look)
		var now time.Duration
		now, err = cpuTime(g.cmd.Process.Pid)
		if now-before < look/100 {
			return err
		}
		before = now
	}
	return err
}
