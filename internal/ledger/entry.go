package ledger

import (
	"encoding/binary"
	"hash/crc32"
)

// An entry of the spill is
//
//	0xF5 'W'   2 bytes, so that a reader finds its way back after garbage
//	size       2 bytes, little endian: of what follows the header
//	checksum   4 bytes, little endian: CRC-32C of the size and what follows
//	kind       1 byte
//	fields     see fields.go
//
// Kinds are never reused; a change of the fields' form takes a new kind.
const (
	entryHeader = 8
	maxEntry    = 1<<16 - 1 // bytes after the header

	kindStart = 'S' // a call was admitted
	kindEnd   = 'E' // a call ended: its whole row
	kindAmend = 'A' // what was learnt of a call after its end
	kindCarry = 'C' // a start whose segment is removed while its call goes on
	kindProbe = 'P' // nothing: the breaker tries the disk
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// beginEntry appends a header whose size and checksum sealEntry fills in.
func beginEntry(b []byte, kind byte) []byte {
	return append(b, 0xF5, 'W', 0, 0, 0, 0, 0, 0, kind)
}

// sealEntry completes the entry that begins at b[at] and ends with b. It
// reports false, and takes the entry off, when it is too large.
func sealEntry(b []byte, at int) ([]byte, bool) {
	size := len(b) - at - entryHeader
	if size > maxEntry {
		return b[:at], false
	}
	binary.LittleEndian.PutUint16(b[at+2:], uint16(size))
	binary.LittleEndian.PutUint32(b[at+4:], checksum(b[at:]))
	return b, true
}

func checksum(entry []byte) uint32 {
	return crc32.Update(crc32.Checksum(entry[2:4], castagnoli), castagnoli, entry[entryHeader:])
}

// nextEntry returns the entry at the start of b: its kind, its fields and its
// length with the header. short means that b ends before the entry does, if it
// is one; ok false without short, that no entry begins here.
func nextEntry(b []byte) (kind byte, fields []byte, length int, ok, short bool) {
	if len(b) < entryHeader {
		return 0, nil, 0, false, true
	}
	if b[0] != 0xF5 || b[1] != 'W' {
		return 0, nil, 0, false, false
	}
	size := int(binary.LittleEndian.Uint16(b[2:]))
	if size == 0 {
		return 0, nil, 0, false, false
	}
	length = entryHeader + size
	if len(b) < length {
		return 0, nil, 0, false, true
	}
	if checksum(b[:length]) != binary.LittleEndian.Uint32(b[4:]) {
		return 0, nil, 0, false, false
	}
	return b[entryHeader], b[entryHeader+1 : length], length, true, false
}

// findEntry returns where the next entry begins at or after b[from]; len(b)
// when there is none, which says nothing of an entry that b cuts short.
func findEntry(b []byte, from int) int {
	for i := from; i+entryHeader < len(b); i++ {
		if b[i] == 0xF5 && b[i+1] == 'W' {
			if _, _, _, ok, _ := nextEntry(b[i:]); ok {
				return i
			}
		}
	}
	return len(b)
}
