package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"
)

// cpuTime returns the CPU time of a process, all its threads together, in
// nanoseconds from the kernel's own accounting.
func cpuTime(pid int) (time.Duration, error) {
	// The kernel's clock ids of processes: the inverted pid, and 2 for the
	// scheduler's clock.
	clock := uintptr(^uint32(pid)<<3 | 2)
	var ts syscall.Timespec
	_, _, errno := syscall.Syscall(syscall.SYS_CLOCK_GETTIME, clock, uintptr(unsafe.Pointer(&ts)), 0)
	if errno != 0 {
		return 0, fmt.Errorf("read the CPU clock of process %d: %w", pid, errno)
	}
	return time.Duration(ts.Nano()), nil
}

// residentBytes returns the anonymous memory of a process that is in RAM:
// without the pages of the binary, which come and go on their own.
func residentBytes(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
	}
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0, fmt.Errorf("read the memory of process %d: %w", pid, err)
			}
			return kb << 10, nil
		}
	}
	return 0, fmt.Errorf("read the memory of process %d: the kernel does not tell RssAnon", pid)
}

// allowedCores returns the cores that this program may run on, two at most.
func allowedCores() ([]string, error) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return nil, fmt.Errorf("read the allowed cores: %w", err)
	}
	var cores []string
	for line := range strings.Lines(string(b)) {
		list, ok := strings.CutPrefix(line, "Cpus_allowed_list:")
		if !ok {
			continue
		}
		for span := range strings.SplitSeq(strings.TrimSpace(list), ",") {
			low, high, _ := strings.Cut(span, "-")
			first, err := strconv.Atoi(low)
			if err != nil {
				return nil, fmt.Errorf("read the allowed cores: %w", err)
			}
			last, err := strconv.Atoi(high)
			if err != nil {
				last = first
			}
			for c := first; c <= last && len(cores) < 2; c++ {
				cores = append(cores, strconv.Itoa(c))
			}
		}
	}
	return cores, nil
}

// openFilesLimit returns how many files this program, and each child, may have open.
func openFilesLimit() (uint64, error) {
	var l syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("read the limit of open files: %w", err)
	}
	l.Cur = l.Max
	if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &l); err != nil {
		return 0, fmt.Errorf("raise the limit of open files: %w", err)
	}
	return l.Max, nil
}
