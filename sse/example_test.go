package sse_test

import (
	"fmt"
	"io"
	"strings"

	"github.com/weirgate/weir/sse"
)

func ExampleParser() {
	body := strings.NewReader("id: 1\nevent: delta\ndata: {\"text\":\"Hel\"}\n\n: ping\n\ndata: {\"text\":\"lo\"}\n\ndata: [DONE]")
	show := func(ev sse.Event) {
		fmt.Printf("%q %s %s\n", ev.Type, ev.ID, ev.Data)
	}

	var p sse.Parser
	buf := make([]byte, 16) // pieces end anywhere
	for {
		n, err := body.Read(buf)
		for b := buf[:n]; ; {
			ev, used, ok := p.Next(b)
			if !ok {
				break
			}
			show(ev)
			b = b[used:]
		}
		if err == io.EOF {
			break
		}
	}
	if ev, ok := p.Flush(); ok {
		show(ev)
	}
	// Output:
	// "delta" 1 {"text":"Hel"}
	// "" 1 {"text":"lo"}
	// "" 1 [DONE]
}
