package sse

import (
	"reflect"
	"testing"
)

// FuzzParser checks that a stream gives the events of the reference parser,
// however it is cut: cuts holds the lengths of its pieces.
func FuzzParser(f *testing.F) {
	for _, tt := range tests {
		f.Add([]byte(tt.stream), []byte{1, 3}, uint16(tt.limit))
	}
	for name, stream := range samples(f) {
		if len(stream) < 2000 {
			f.Add(stream, []byte(name), uint16(0))
		}
	}
	f.Fuzz(func(t *testing.T, stream, cuts []byte, limit uint16) {
		bound := int(limit)
		if bound == 0 {
			bound = DefaultLimit
		}
		want := reference(stream, bound)
		if got := parse(&Parser{Limit: int(limit)}, stream); !reflect.DeepEqual(got, want) {
			t.Fatalf("whole:\n got %+v\nwant %+v", got, want)
		}
		if got := parse(&Parser{Limit: int(limit)}, pieces(stream, 1)...); !reflect.DeepEqual(got, want) {
			t.Fatalf("byte by byte:\n got %+v\nwant %+v", got, want)
		}
		var cut [][]byte
		rest := stream
		for _, n := range cuts {
			n := min(int(n), len(rest))
			cut, rest = append(cut, rest[:n]), rest[n:]
		}
		if got := parse(&Parser{Limit: int(limit)}, append(cut, rest)...); !reflect.DeepEqual(got, want) {
			t.Fatalf("cut into %q:\n got %+v\nwant %+v", append(cut, rest), got, want)
		}
	})
}
