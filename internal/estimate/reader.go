package estimate

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/weirgate/weir/internal/call"
)

// reader reads a snapshot. After an error it gives zeros.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf(format, args...)
	}
}

func (r *reader) take(n int) []byte {
	if r.err == nil && len(r.b) < n {
		r.fail("it breaks off")
	}
	if r.err != nil {
		return nil
	}
	taken := r.b[:n]
	r.b = r.b[n:]
	return taken
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 {
		r.fail("it breaks off")
	}
	if r.err != nil {
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) name() string {
	n := r.number()
	if n > call.MaxName {
		r.fail("a name of %d bytes", n)
		return ""
	}
	return string(r.take(int(n)))
}

// float reads a number from low to high.
func (r *reader) float(low, high float64) float64 {
	b := r.take(8)
	if b == nil {
		return 0
	}
	f := math.Float64frombits(binary.LittleEndian.Uint64(b))
	if !(f >= low && f <= high) {
		r.fail("%g is not from %g to %g", f, low, high)
	}
	return f
}

// small reads the count of a bucket.
func (r *reader) small() float32 {
	b := r.take(4)
	if b == nil {
		return 0
	}
	f := math.Float32frombits(binary.LittleEndian.Uint32(b))
	if !(f > 0 && f <= 2*window) {
		r.fail("%g is no count", f)
	}
	return f
}
