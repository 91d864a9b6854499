package sse

import (
	"math"
	"time"
)

// retry is the reconnection time a stream asked for.
type retry struct {
	wait  time.Duration
	known bool
}

// set takes the value of a retry field: decimal digits, in milliseconds.
// Anything else leaves the time as it was, as does one beyond time.Duration.
func (r *retry) set(value []byte) {
	const most = int64(math.MaxInt64 / time.Millisecond)
	if len(value) == 0 || len(value) > maxField {
		return
	}
	var ms int64
	for _, c := range value {
		if c < '0' || c > '9' {
			return
		}
		if ms > (most-int64(c-'0'))/10 {
			return
		}
		ms = ms*10 + int64(c-'0')
	}
	r.wait, r.known = time.Duration(ms)*time.Millisecond, true
}

// Retry returns how long the stream's latest valid retry field asks clients to
// wait before they connect again. ok is false if there was none.
func (p *Parser) Retry() (wait time.Duration, ok bool) {
	return p.retry.wait, p.retry.known
}
