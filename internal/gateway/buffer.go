package gateway

import "sync"

// buffer is memory for a request body. One that a call has let go of serves
// another: it is still near the processor, and new memory is not, which costs a
// short call more than to read its body does.
type buffer struct{ bytes []byte }

// bufferSizes are those of the buffers that are kept, in bytes. Longer bodies are
// rare, and would hold much memory that nobody has reserved.
var bufferSizes = [...]int64{1 << 10, 4 << 10, 16 << 10, 64 << 10}

var buffers [len(bufferSizes)]sync.Pool

// bufferSize returns the size of the buffer that takeBuffer returns for size bytes.
func bufferSize(size int64) int64 {
	for _, s := range bufferSizes {
		if size <= s {
			return s
		}
	}
	return size
}

// takeBuffer returns a buffer of a size that bufferSize returned. There may be
// something in it.
func takeBuffer(size int64) *buffer {
	for i, s := range bufferSizes {
		if size != s {
			continue
		}
		if b, _ := buffers[i].Get().(*buffer); b != nil {
			return b
		}
	}
	return &buffer{make([]byte, size)}
}

// free gives the buffer to the next call. Nobody may read it any more.
func (b *buffer) free() {
	if b == nil {
		return
	}
	for i, s := range bufferSizes {
		if int64(len(b.bytes)) == s {
			buffers[i].Put(b)
		}
	}
}
