// Package sse parses event streams byte by byte.
//
// It reads the text/event-stream format of the WHATWG HTML standard from
// pieces of any size, as they arrive from a network, without a goroutine, a
// reader or a channel of its own:
//
//	var p sse.Parser
//	for {
//		n, err := body.Read(buf)
//		for b := buf[:n]; ; {
//			ev, used, ok := p.Next(b)
//			if !ok {
//				break
//			}
//			b = b[used:]
//			handle(ev)
//		}
//		if err != nil {
//			break
//		}
//	}
//	if ev, ok := p.Flush(); ok {
//		handle(ev)
//	}
//
// However the stream is cut into pieces, the events are the same.
//
// The package departs from the standard in four places, each because it is
// made to watch streams and not only to obey them:
//
//   - An event that the end of the stream leaves open is not lost: [Parser.Flush]
//     returns it, an unterminated last line included.
//   - An event whose data is empty is not dispatched, even if it had a data field.
//   - Bytes are not decoded: what is not valid UTF-8 passes through unchanged.
//   - Memory is bounded: an event longer than [Parser.Limit] is reported without
//     its data, and event, id and retry fields over 256 bytes are not kept.
//
// A Parser keeps at most 4 KiB between events. Once it has grown to that, it
// allocates only for an event of more than about 3 KiB that comes in several
// pieces or has several lines of data. It is not safe for concurrent use.
package sse
