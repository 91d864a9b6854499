package sse

import (
	"bytes"
	"strings"
	"testing"
)

// chunk is an event of about 200 bytes, as inference engines send them.
const chunk = `data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":"Ab"},"logprobs":null,"finish_reason":null}],"usage":null}` + "\n\n"

var streams = []struct {
	name  string
	event string
	piece int // bytes given to each call; 0 is one event
}{
	{"Whole", chunk, 0},
	{"Typed", "event: content_block_delta\n" + chunk, 0},
	{"CRLF", strings.ReplaceAll(chunk, "\n", "\r\n"), 0},
	{"Split64", chunk, 64},
	{"Read4096", chunk, 4096},
	{"TwoLines", "data: {\n" + chunk, 0},
}

// feed gives a stream to p in equal pieces and returns the number of events.
func feed(p *Parser, stream []byte, piece int) (events int) {
	for len(stream) > 0 {
		b := stream[:min(piece, len(stream))]
		stream = stream[len(b):]
		for {
			_, n, ok := p.Next(b)
			if !ok {
				break
			}
			events++
			b = b[n:]
		}
	}
	return events
}

func TestNextDoesNotAllocate(t *testing.T) {
	for _, s := range streams {
		piece := s.piece
		if piece == 0 {
			piece = len(s.event)
		}
		stream := bytes.Repeat([]byte(s.event), 50)
		var p Parser
		if n := feed(&p, stream, piece); n != 50 {
			t.Fatalf("%s: %d events", s.name, n)
		}
		if n := testing.AllocsPerRun(20, func() { feed(&p, stream, piece) }); n != 0 {
			t.Errorf("%s: %v allocations for 50 events", s.name, n)
		}
	}
}

func BenchmarkNext(b *testing.B) {
	for _, s := range streams {
		b.Run(s.name, func(b *testing.B) {
			piece := s.piece
			if piece == 0 {
				piece = len(s.event)
			}
			stream := bytes.Repeat([]byte(s.event), 100)
			var p Parser
			events := 0
			b.SetBytes(int64(len(s.event)))
			b.ReportAllocs()
			for events = 0; events < b.N; {
				events += feed(&p, stream, piece)
			}
		})
	}
}
