//go:build cgo && linux

package gpu

import (
	"errors"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// xidWait is how long one wait for an error takes, and so how long close waits.
const xidWait = time.Second

// xid is an error that the driver reported.
type xid struct {
	number  uint64 // 0 is none so far; 999 is one that NVML does not know
	at      time.Time
	watched bool // the driver would tell
}

// xidWatch waits for errors in one goroutine. nil watches nothing.
type xidWatch struct {
	set  nvml.EventSet
	quit chan struct{}
	done chan struct{}

	of map[nvml.Device]int // the index of each GPU that is watched

	mu   sync.Mutex
	seen []xid // the last of each GPU, by index; guarded by mu
}

// watchXIDs watches the GPUs whose driver reports errors.
func watchXIDs(devices []*device) *xidWatch {
	if driver.lacks&(1<<askXID) != 0 {
		return nil
	}
	set, ret := driver.nvml.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil
	}
	w := &xidWatch{
		set: set, quit: make(chan struct{}), done: make(chan struct{}),
		of: map[nvml.Device]int{}, seen: make([]xid, len(devices)),
	}
	for i, d := range devices {
		if d.handle != nil && d.lost == nvml.SUCCESS && d.handle.RegisterEvents(nvml.EventTypeXidCriticalError, set) == nvml.SUCCESS {
			w.of[d.handle], w.seen[i].watched = i, true
		}
	}
	if len(w.of) == 0 {
		set.Free()
		return nil
	}
	go w.watch()
	return w
}

func (w *xidWatch) watch() {
	defer close(w.done)
	defer w.set.Free()
	for {
		event, ret := w.set.Wait(uint32(xidWait / time.Millisecond))
		if ret == nvml.SUCCESS && event.EventType&nvml.EventTypeXidCriticalError != 0 {
			w.note(event)
		}
		if ret != nvml.SUCCESS && ret != nvml.ERROR_TIMEOUT {
			// Whoever asks a lost GPU gets an answer at once, again and again.
			select {
			case <-w.quit:
			case <-time.After(xidWait):
			}
		}
		select {
		case <-w.quit:
			return
		default:
		}
	}
}

func (w *xidWatch) note(event nvml.EventData) {
	i, ok := w.of[event.Device]
	if !ok {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[i] = xid{event.EventData, time.Now(), true}
}

// last returns the last error of GPU i; ok is false if it is not watched.
func (w *xidWatch) last(i int) (last xid, ok bool) {
	if w == nil {
		return xid{}, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.seen[i], w.seen[i].watched
}

// close ends the goroutine and waits for it, unless the driver hangs.
func (w *xidWatch) close() error {
	if w == nil {
		return nil
	}
	select {
	case <-w.quit:
	default:
		close(w.quit)
	}
	patience := time.NewTimer(3 * xidWait)
	defer patience.Stop()
	select {
	case <-w.done:
		return nil
	case <-patience.C:
		return errors.New("the driver does not end its wait for events; NVML stays open")
	}
}
