package endpoint

import (
	"time"

	"github.com/weirgate/weir/internal/meter"
	"github.com/weirgate/weir/sse"
)

// pass reads a stream event by event for the definitions of other tools, and
// hands it on to the meter by the same cuts, so that what is content is the
// meter's own word.
type pass struct {
	form    form
	meter   *meter.Meter
	parser  sse.Parser
	events  []Event
	dropped int
	last    time.Duration // when the last piece came
}

func newPass(dialect string, m *meter.Meter, events []Event) pass {
	return pass{form: formOf(dialect), meter: m, events: events[:0]}
}

// write takes the next piece of the body, which came at the given time.
func (p *pass) write(b []byte, at time.Duration) {
	p.last = at
	for len(b) > 0 {
		event, n, whole := p.parser.Next(b)
		before := p.meter.ContentEvents()
		p.meter.Write(b[:n], at, at)
		if whole {
			p.add(event, at, p.meter.ContentEvents() > before)
		}
		b = b[n:]
	}
}

// end returns the events after the meter has been finished; none when the
// answer was no stream. An event that the end of the stream leaves open came
// with the last piece; content is whether the meter took it for such.
func (p *pass) end(streamed, content bool) ([]Event, int) {
	if !streamed {
		return p.events[:0], 0
	}
	if event, ok := p.parser.Flush(); ok {
		p.add(event, p.last, content)
	}
	return p.events, p.dropped
}

func (p *pass) add(event sse.Event, at time.Duration, content bool) {
	if len(p.events) >= maxEvents {
		p.dropped++
		return
	}
	mark, output := p.form.look(event.Type, event.Data)
	const ofOutput = Text | Reasoning | Tool
	if content {
		mark |= Content
	} else {
		mark &^= ofOutput
	}
	p.events = append(p.events, Event{At: at, Mark: mark, Output: output})
}
