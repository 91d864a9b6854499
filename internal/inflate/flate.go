package inflate

import (
	"bufio"
	"encoding/binary"
	"errors"
	"hash"
	"hash/adler32"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// Bits of a gzip header's flag byte (RFC 1952, section 2.3.1).
const (
	gzipHeaderCRC = 1 << 1
	gzipExtra     = 1 << 2
	gzipName      = 1 << 3
	gzipComment   = 1 << 4
	gzipReserved  = 0xe0
)

// newFlate returns a decoder that hands on each block as soon as it is whole.
// By default the library does so only for a sync flush, and what another kind
// of flush sent would come out with a later event. Reset would lose that
// setting, which is why these decoders are not pooled.
func newFlate(r *bufio.Reader) io.Reader {
	return flate.NewReaderOpts(r, flate.WithPartialBlock())
}

// gunzip decodes gzip members until what follows is not one.
func gunzip(l *layer) error {
	r := getReader(l)
	var blocks io.Reader
	for {
		if err := gzipHeader(r); err != nil {
			if blocks != nil && !l.aborted {
				err = nil // the end, or bytes that only trail
			}
			putReader(r)
			return err
		}
		if blocks == nil {
			blocks = newFlate(r)
		} else if err := blocks.(flate.Resetter).Reset(r, nil); err != nil {
			// From the second member on only sync flushes count: a decoder for
			// each would let a body of tiny members waste memory.
			return err
		}
		sum := crc32.NewIEEE()
		size, err := copySummed(l, blocks, sum)
		if err != nil {
			return err
		}
		var trailer [8]byte
		if _, err := io.ReadFull(r, trailer[:]); err != nil {
			return err
		}
		if binary.LittleEndian.Uint32(trailer[:4]) != sum.Sum32() ||
			binary.LittleEndian.Uint32(trailer[4:]) != uint32(size) {
			return errors.New("checksum or length of a gzip member does not match")
		}
	}
}

// gzipHeader reads the header of a member.
func gzipHeader(r *bufio.Reader) error {
	var h [10]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return err
	}
	flags := h[3]
	if h[0] != 0x1f || h[1] != 0x8b || h[2] != 8 || flags&gzipReserved != 0 {
		return errors.New("no gzip header")
	}
	if flags&gzipExtra != 0 {
		var n [2]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return err
		}
		if _, err := r.Discard(int(binary.LittleEndian.Uint16(n[:]))); err != nil {
			return err
		}
	}
	for _, text := range []byte{gzipName, gzipComment} {
		for c := flags & text; c != 0; {
			var err error
			if c, err = r.ReadByte(); err != nil {
				return err
			}
		}
	}
	if flags&gzipHeaderCRC != 0 {
		if _, err := r.Discard(2); err != nil {
			return err
		}
	}
	return nil
}

// inflateAny decodes what goes by the name of deflate: by the standard blocks
// with a zlib header and a checksum (RFC 1950), with some servers bare blocks.
// No encoder makes bare blocks that look like a zlib header: they would begin
// with a stored block whose padding is not zero.
func inflateAny(l *layer) error {
	r := getReader(l)
	head, err := r.Peek(2)
	if err != nil {
		return err
	}
	zlib := head[0]&0x0f == 8 && head[0]>>4 <= 7 && binary.BigEndian.Uint16(head)%31 == 0
	if !zlib {
		_, err := io.Copy(l, newFlate(r))
		if err == nil {
			putReader(r)
		}
		return err
	}
	if head[1]&0x20 != 0 {
		return errors.New("zlib stream asks for a preset dictionary")
	}
	if _, err := r.Discard(2); err != nil {
		return err
	}
	sum := adler32.New()
	if _, err := copySummed(l, newFlate(r), sum); err != nil {
		return err
	}
	var trailer [4]byte
	if _, err := io.ReadFull(r, trailer[:]); err != nil {
		return err
	}
	if binary.BigEndian.Uint32(trailer[:]) != sum.Sum32() {
		return errors.New("checksum of the zlib stream does not match")
	}
	putReader(r)
	return nil
}

// copySummed copies all of r to w and adds it to sum.
func copySummed(w io.Writer, r io.Reader, sum hash.Hash32) (int64, error) {
	return r.(io.WriterTo).WriteTo(summed{w, sum})
}

type summed struct {
	w   io.Writer
	sum hash.Hash32
}

func (s summed) Write(b []byte) (int, error) {
	s.sum.Write(b) // a hash never fails
	return s.w.Write(b)
}
