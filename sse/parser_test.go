package sse

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"
)

var tests = []struct {
	name, stream string
	limit        int
	want         []copied
}{
	{name: "nothing", stream: ""},
	{name: "only blank lines", stream: "\n\r\n\r\r"},
	{name: "one event", stream: "data: a\n\n", want: []copied{{Data: "a"}}},
	{name: "CRLF", stream: "data: a\r\n\r\ndata: b\r\n\r\n", want: []copied{{Data: "a"}, {Data: "b"}}},
	{name: "CR", stream: "data: a\r\rdata: b\r\r", want: []copied{{Data: "a"}, {Data: "b"}}},
	{name: "mixed line ends", stream: "data: a\r\n\ndata: b\n\r\ndata: c\r\rdata: d\n\r", want: []copied{{Data: "a"}, {Data: "b"}, {Data: "c"}, {Data: "d"}}},
	{name: "LF CR is two line ends", stream: "data: a\n\rdata: b\n\r", want: []copied{{Data: "a"}, {Data: "b"}}},
	{name: "byte order mark", stream: "\xef\xbb\xbfdata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "byte order mark and blank line", stream: "\xef\xbb\xbf\ndata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "byte order mark later on", stream: "data: a\n\n\xef\xbb\xbfdata: b\n\n", want: []copied{{Data: "a"}}},
	{name: "two byte order marks", stream: "\xef\xbb\xbf\xef\xbb\xbfdata: a\n\ndata: b\n\n", want: []copied{{Data: "b"}}},
	{name: "broken byte order mark", stream: "\xef\xbbdata: a\n\ndata: b\n\n", want: []copied{{Data: "b"}}},
	{name: "byte order mark before a comment", stream: "\xef\xbb\xbf: hello\ndata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "no space", stream: "data:a\n\n", want: []copied{{Data: "a"}}},
	{name: "one of two spaces", stream: "data:  a \n\n", want: []copied{{Data: " a "}}},
	{name: "a tab is no space", stream: "data:\ta\n\n", want: []copied{{Data: "\ta"}}},
	{name: "space before the colon", stream: "data : a\n\ndata: b\n\n", want: []copied{{Data: "b"}}},
	{name: "space before the field", stream: " data: a\n\ndata: b\n\n", want: []copied{{Data: "b"}}},
	{name: "colons in the value", stream: "data::a:b\n\n", want: []copied{{Data: ":a:b"}}},
	{name: "many lines", stream: "data: a\ndata: b\ndata:\ndata: c\n\n", want: []copied{{Data: "a\nb\n\nc"}}},
	{name: "field without a colon", stream: "data\ndata: a\ndata\n\n", want: []copied{{Data: "\na\n"}}},
	{name: "two empty lines of data are a line feed", stream: "data\ndata\n\n", want: []copied{{Data: "\n"}}},
	{name: "empty data", stream: "data\n\ndata:\n\ndata: \n\n"},
	{name: "comments", stream: ":\n: PROCESSING\n:data: x\ndata: a\n: in between\ndata: b\n\n:\n\n", want: []copied{{Data: "a\nb"}}},
	{name: "unknown fields", stream: "dat: x\ndatax: x\ndata2\nevents: x\nid2: x\nretryx: 1\nfoo\n{\"data\": 1}\ndata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "case matters", stream: "Data: x\nDATA: x\nEvent: x\nID: 1\ndata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "type", stream: "event: t\ndata: a\n\ndata: b\n\n", want: []copied{{Type: "t", Data: "a"}, {Data: "b"}}},
	{name: "type after the data", stream: "data: a\nevent: t\n\n", want: []copied{{Type: "t", Data: "a"}}},
	{name: "last type wins", stream: "event: t\nevent: u\ndata: a\n\nevent: t\nevent\ndata: b\n\n", want: []copied{{Type: "u", Data: "a"}, {Data: "b"}}},
	{name: "type without data is forgotten", stream: "event: t\n\ndata: a\n\n", want: []copied{{Data: "a"}}},
	{name: "id stays", stream: "id: 1\ndata: a\n\ndata: b\n\nid: 2\n\ndata: c\n\nid\ndata: d\n\n",
		want: []copied{{Data: "a", ID: "1"}, {Data: "b", ID: "1"}, {Data: "c", ID: "2"}, {Data: "d"}}},
	{name: "id with NUL", stream: "id: 1\nid: 2\x003\ndata: a\n\n", want: []copied{{Data: "a", ID: "1"}}},
	{name: "long id", stream: "id: 1\nid: " + strings.Repeat("x", 257) + "\ndata: a\n\nid: " + strings.Repeat("y", 256) + "\ndata: b\n\n",
		want: []copied{{Data: "a", ID: "1"}, {Data: "b", ID: strings.Repeat("y", 256)}}},
	{name: "long type", stream: "data: a\nevent: " + strings.Repeat("x", 257) + "\n\nevent: " + strings.Repeat("x", 257) + "\n\nevent: " + strings.Repeat("y", 256) + "\ndata: b\n\n",
		want: []copied{{Oversize: true}, {Type: strings.Repeat("y", 256), Data: "b"}}},
	{name: "end within a line", stream: "data: a\n\ndata: [DONE]", want: []copied{{Data: "a"}, {Data: "[DONE]"}}},
	{name: "end after a line", stream: "data: a\n\nevent: t\ndata: b\n", want: []copied{{Data: "a"}, {Type: "t", Data: "b"}}},
	{name: "end after a field that means nothing", stream: "data: a\n: ping", want: []copied{{Data: "a"}}},
	{name: "end without data", stream: "data: a\n\nevent: t\nid: 4", want: []copied{{Data: "a"}}},
	{name: "NUL and bytes that are not UTF-8", stream: "data: \x00\xff\xfe\n\n", want: []copied{{Data: "\x00\xff\xfe"}}},
	{name: "at the limit", limit: 4, stream: "data: abcd\n\ndata: ab\ndata: c\n\n", want: []copied{{Data: "abcd"}, {Data: "ab\nc"}}},
	{name: "over the limit", limit: 4, stream: "data: abcde\n\ndata: ok\n\n", want: []copied{{Oversize: true}, {Data: "ok"}}},
	{name: "over the limit by a second line", limit: 4, stream: "event: t\nid: 1\ndata: abc\ndata: d\ndata: efghijklmnop\nevent: u\n\ndata: ok\n\n",
		want: []copied{{Type: "u", ID: "1", Oversize: true}, {Data: "ok", ID: "1"}}},
	{name: "over the limit by empty lines", limit: 2, stream: "data\ndata\ndata\ndata\n\n", want: []copied{{Oversize: true}}},
	{name: "over the limit at the end", limit: 4, stream: "data: " + strings.Repeat("x", 100), want: []copied{{Oversize: true}}},
	{name: "a long comment is not an event", limit: 4, stream: ":" + strings.Repeat("x", 100) + "\n\ndata: ok\n\n", want: []copied{{Data: "ok"}}},
	{name: "a long first line after a byte order mark", limit: 20, stream: "\xef\xbb\xbfdata: " + strings.Repeat("x", 20) + "\n\n", want: []copied{{Data: strings.Repeat("x", 20)}}},
	{name: "negative limit is the default", limit: -1, stream: "data: a\n\n", want: []copied{{Data: "a"}}},
}

func TestParser(t *testing.T) {
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			stream := []byte(tt.stream)
			limit := tt.limit
			if limit <= 0 {
				limit = DefaultLimit
			}
			if got := reference(stream, limit); !reflect.DeepEqual(got, tt.want) {
				t.Errorf("the reference disagrees:\n got %+v\nwant %+v", got, tt.want)
			}
			check := func(how string, pieces ...[]byte) {
				t.Helper()
				if got := parse(&Parser{Limit: tt.limit}, pieces...); !reflect.DeepEqual(got, tt.want) {
					t.Errorf("%s:\n got %+v\nwant %+v", how, got, tt.want)
				}
			}
			check("whole", stream)
			for n := 1; n < 8; n++ {
				check("cut evenly", pieces(stream, n)...)
			}
			for i := range stream {
				check("cut once", stream[:i], stream[i:])
				check("cut around a byte, and an empty piece", stream[:i], nil, stream[i:i+1], stream[i+1:])
			}
		})
	}
}

func samples(t testing.TB) map[string][]byte {
	t.Helper()
	names, err := filepath.Glob("testdata/*.sse")
	if err != nil || len(names) == 0 {
		t.Fatalf("no samples in testdata: %v", err)
	}
	out := make(map[string][]byte)
	for _, name := range names {
		b, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(name)] = b
	}
	return out
}

func TestSamples(t *testing.T) {
	// The number of events in each sample, and the data of the last.
	want := map[string]struct {
		events int
		last   string
	}{
		"bom.sse":                 {5, "[DONE]"},
		"crlf.sse":                {5, "[DONE]"},
		"mixed_eol.sse":           {5, "[DONE]"},
		"nospace.sse":             {5, "[DONE]"},
		"two_spaces.sse":          {5, " [DONE]"},
		"multiline_data.sse":      {5, "[DONE]"},
		"event_id_retry.sse":      {5, "[DONE]"},
		"no_trailing_blank.sse":   {5, "[DONE]"},
		"done_trailing_ws.sse":    {5, "[DONE] "},
		"utf8_split.sse":          {5, "[DONE]"},
		"nul.sse":                 {5, "[DONE]"},
		"big_line.sse":            {5, "[DONE]"},
		"llama_done_no_blank.sse": {4, "[DONE]"},
	}
	for name, stream := range samples(t) {
		t.Run(name, func(t *testing.T) {
			whole := parse(new(Parser), stream)
			w, known := want[name]
			if !known {
				t.Fatalf("no expectation for this sample")
			}
			if len(whole) != w.events || whole[len(whole)-1].Data != w.last {
				t.Fatalf("got %d events, the last %q; want %d, %q", len(whole), whole[len(whole)-1].Data, w.events, w.last)
			}
			if ref := reference(stream, DefaultLimit); !reflect.DeepEqual(whole, ref) {
				t.Fatalf("the reference disagrees: %+v", ref)
			}
			for _, n := range []int{1, 2, 3, 7, 64, 1000} {
				if got := parse(new(Parser), pieces(stream, n)...); !reflect.DeepEqual(got, whole) {
					t.Fatalf("in pieces of %d bytes: %+v", n, got)
				}
			}
			step := max(1, len(stream)/1000)
			for i := 0; i < len(stream); i += step {
				if got := parse(new(Parser), stream[:i], stream[i:]); !reflect.DeepEqual(got, whole) {
					t.Fatalf("cut at %d: %+v", i, got)
				}
			}
		})
	}
}

func TestRandomStreams(t *testing.T) {
	words := []string{"data", "data:", "data: ", "event: ", "event", "id:", "id: 7", "retry: 10", ":", " ", "\n", "\n", "\r", "\r\n", "\n\n",
		"x", "{\"a\":1}", "\x00", "\xef\xbb\xbf", strings.Repeat("y", 9), strings.Repeat("z", 300)}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		var stream []byte
		for range rnd.IntN(40) {
			stream = append(stream, words[rnd.IntN(len(words))]...)
		}
		limit := []int{1, 12, 310, DefaultLimit}[rnd.IntN(4)]
		want := reference(stream, limit)
		for range 4 {
			var cut [][]byte
			for rest := stream; len(rest) > 0; {
				n := 1 + rnd.IntN(min(len(rest), 1+rnd.IntN(30)))
				cut, rest = append(cut, rest[:n]), rest[n:]
			}
			if got := parse(&Parser{Limit: limit}, cut...); !reflect.DeepEqual(got, want) {
				t.Fatalf("%q with limit %d, cut into %q:\n got %+v\nwant %+v", stream, limit, cut, got, want)
			}
		}
	}
}

func TestDispatchAtCarriageReturn(t *testing.T) {
	var p Parser
	ev, n, ok := p.Next([]byte("data: a\r\r"))
	if !ok || n != 9 || string(ev.Data) != "a" {
		t.Fatalf("the event must not wait for a line feed: %q %d %t", ev.Data, n, ok)
	}
	ev, n, ok = p.Next([]byte("\ndata: b\r\n\r"))
	if !ok || n != 11 || string(ev.Data) != "b" {
		t.Fatalf("the late line feed must be swallowed: %q %d %t", ev.Data, n, ok)
	}
}

func TestConsumedBytes(t *testing.T) {
	var p Parser
	b := []byte("data: a\n\n: ping\n\ndata: b\r\n\r\ndata")
	for _, want := range []struct {
		data string
		n    int
		ok   bool
	}{{"a", 9, true}, {"b", 19, true}, {"", 4, false}, {"", 0, false}} {
		ev, n, ok := p.Next(b)
		if string(ev.Data) != want.data || n != want.n || ok != want.ok {
			t.Fatalf("got %q, %d, %t; want %+v", ev.Data, n, ok, want)
		}
		b = b[n:]
	}
}

func TestDataIsNotCopied(t *testing.T) {
	b := []byte("event: t\ndata: abc\nid: 1\n\n")
	var p Parser
	ev, _, ok := p.Next(b)
	if !ok || &ev.Data[0] != &b[bytes.IndexByte(b, 'b')-1] {
		t.Fatal("data that lies in one piece must be returned where it lies")
	}
	if p.buf != nil {
		t.Fatalf("a buffer of %d bytes was made for it", cap(p.buf))
	}
}

func TestIdleParserIsSmall(t *testing.T) {
	held := func(p *Parser) int { return cap(p.buf) + cap(p.typ) + cap(p.id) }
	field := strings.Repeat("f", maxField)
	var p Parser
	for _, size := range []int{10, 500, 3000, 5000, 70_000, 900_000, 3 << 20, 2000} {
		stream := []byte("event: " + field + "\nid: " + field + "\ndata: " + strings.Repeat("x", size) + "\ndata: y\n\n: " + strings.Repeat("c", 100_000) + "\n\n")
		most := 0
		events := 0
		for _, piece := range pieces(stream, 1000) {
			for {
				_, n, ok := p.Next(piece)
				piece = piece[n:]
				most = max(most, held(&p))
				if !ok {
					break
				}
				events++
			}
		}
		if events != 1 {
			t.Fatalf("%d events", events)
		}
		if most > DefaultLimit+4096 {
			t.Errorf("an event of %d bytes made the parser hold %d", size, most)
		}
		if got := held(&p); got > 4096 {
			t.Errorf("idle after an event of %d bytes the parser holds %d", size, got)
		}
	}
}

func TestOversizeHoldsNothing(t *testing.T) {
	p := Parser{Limit: 100_000}
	piece := bytes.Repeat([]byte("x"), 10_000)
	p.Next([]byte("data: "))
	for range 100 {
		p.Next(piece)
	}
	if cap(p.buf) > keepBuffer {
		t.Errorf("the parser still holds %d bytes of an event it gave up", cap(p.buf))
	}
	ev, _, ok := p.Next([]byte("\n\n"))
	if !ok || !ev.Oversize || ev.Data != nil {
		t.Errorf("got %+v, %t", ev, ok)
	}
}

func TestRetry(t *testing.T) {
	for _, tt := range []struct {
		stream string
		want   time.Duration
		ok     bool
	}{
		{"data: a\n\n", 0, false},
		{"retry: 3000\n\n", 3 * time.Second, true},
		{"retry:0\n", 0, true},
		{"retry: 007\n", 7 * time.Millisecond, true},
		{"retry: 10\nretry: 20", 20 * time.Millisecond, true},
		{"retry\nretry:\nretry: \nretry: -1\nretry: 1.5\nretry: 1 \nretry: 1s\nretry: ١\nretry: +1\n", 0, false},
		{"retry: 5\nretry: 99999999999999999999999999\n", 5 * time.Millisecond, true},
		{"retry: 9223372036854\nretry: 9223372036855\n", 9223372036854 * time.Millisecond, true},
		{"retry: " + strings.Repeat("0", 300) + "\n", 0, false},
		{"Retry: 5\n", 0, false},
	} {
		for n := 1; n < 9; n += 7 {
			var p Parser
			parse(&p, pieces([]byte(tt.stream), n)...)
			if got, ok := p.Retry(); got != tt.want || ok != tt.ok {
				t.Errorf("%q: got %v, %t; want %v, %t", tt.stream, got, ok, tt.want, tt.ok)
			}
		}
	}
}

func TestReset(t *testing.T) {
	p := Parser{Limit: 5}
	parse(&p, []byte("retry: 1\nid: 1\nevent: t\ndata: ab\r"), []byte("data: c"))
	p.Next([]byte("id: 9\nevent: t\ndata: ab\r"))
	p.Reset()
	want := []copied{{Data: "b"}, {Oversize: true}}
	if got := parse(&p, []byte("\xef\xbb\xbfdata: b\n\ndata: 123456\n\n")); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if _, ok := p.Retry(); ok {
		t.Error("the reconnection time outlived Reset")
	}
}

func TestFlushTwice(t *testing.T) {
	var p Parser
	p.Next([]byte("data: a"))
	if ev, ok := p.Flush(); !ok || string(ev.Data) != "a" {
		t.Fatalf("got %q, %t", ev.Data, ok)
	}
	if ev, ok := p.Flush(); ok {
		t.Fatalf("flushed twice: %q", ev.Data)
	}
}
