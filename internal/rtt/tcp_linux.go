package rtt

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

func smoothed(raw syscall.RawConn) (rtt time.Duration, known bool) {
	err := raw.Control(func(fd uintptr) {
		info, err := unix.GetsockoptTCPInfo(int(fd), unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil && info.Rtt > 0 { // not TCP, or nothing acknowledged yet
			rtt, known = time.Duration(info.Rtt)*time.Microsecond, true
		}
	})
	return rtt, known && err == nil
}
