package slofile

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
)

const (
	magic     = "weir-slo"
	version   = 1
	headerLen = 24
	frameLen  = 8 // before the payload

	// maxSnapshot is twice what the counts of 10 classes, 20 models and 30 days
	// may take in memory. A longer one is not written, and not read.
	maxSnapshot = 128 << 20
	// maxRecord bounds the changes of one append; more become a snapshot.
	maxRecord = 16 << 20
)

// kind tells the two files of a generation apart.
type kind byte

const (
	snapshots kind = 'S'
	journals  kind = 'J'
)

// limit is the longest payload of a frame.
func (k kind) limit() int64 {
	if k == snapshots {
		return maxSnapshot
	}
	return maxRecord
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// header returns how a file of a generation begins.
func header(k kind, generation uint64) []byte {
	b := make([]byte, headerLen, headerLen+frameLen)
	copy(b, magic)
	b[8], b[9] = version, byte(k)
	binary.BigEndian.PutUint64(b[16:], generation)
	return b
}

// appendFrame appends what stands before the payload of a frame. The checksum
// covers the header and the frame's number, so that a piece of another file, or
// of another place, never passes for this one.
func appendFrame(to, header []byte, number uint64, payload []byte) []byte {
	to = binary.BigEndian.AppendUint32(to, uint32(len(payload)))
	return binary.BigEndian.AppendUint32(to, checksum(header, number, payload))
}

func checksum(header []byte, number uint64, payload []byte) uint32 {
	var place [12]byte
	binary.BigEndian.PutUint64(place[:], number)
	binary.BigEndian.PutUint32(place[8:], uint32(len(payload)))
	sum := crc32.Update(0, castagnoli, header[:headerLen])
	return crc32.Update(crc32.Update(sum, castagnoli, place[:]), castagnoli, payload)
}

var (
	errNoHeader = errors.New("it is not a file of this format and version")
	errDamaged  = errors.New("its checksum does not match, or it is cut")
)

// parse returns the payloads of the good frames that b begins with, which share
// its memory, and whether b goes on after them.
func parse(b []byte, k kind, generation uint64) (payloads [][]byte, torn bool, err error) {
	head := header(k, generation)
	if len(b) < headerLen || string(b[:headerLen]) != string(head) {
		return nil, false, errNoHeader
	}
	rest := b[headerLen:]
	for len(rest) > 0 {
		if len(rest) < frameLen {
			return payloads, true, nil
		}
		n := int64(binary.BigEndian.Uint32(rest))
		if n == 0 || n > k.limit() || n > int64(len(rest)-frameLen) {
			return payloads, true, nil
		}
		payload := rest[frameLen : frameLen+n : frameLen+n]
		if binary.BigEndian.Uint32(rest[4:]) != checksum(head, uint64(len(payloads)), payload) {
			return payloads, true, nil
		}
		payloads = append(payloads, payload)
		rest = rest[frameLen+n:]
	}
	return payloads, false, nil
}

// parseSnapshot returns the one payload of a snapshot.
func parseSnapshot(b []byte, generation uint64) ([]byte, error) {
	payloads, torn, err := parse(b, snapshots, generation)
	switch {
	case err != nil:
		return nil, err
	case torn || len(payloads) != 1:
		return nil, errDamaged
	}
	return payloads[0], nil
}
