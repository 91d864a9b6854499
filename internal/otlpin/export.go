package otlpin

import (
	"sync/atomic"

	"google.golang.org/protobuf/proto"
)

// receiverCounts are a Receiver's totals.
type receiverCounts struct {
	batches, malformed, refused, spans, panics atomic.Int64
}

// export shows a batch to the joiner and queues it for the collector. plain is its
// body, unpacked if traces are in it. Without an error the batch was taken; the
// response tells whether it could be passed on. A panic in there ends this
// export alone.
func (r *Receiver) export(b *batch, plain []byte) (response proto.Message, err error) {
	defer func() {
		if recover() != nil {
			r.count.panics.Add(1)
			response, err = nil, errPanic
		}
	}()
	if b.what.traces {
		read := readProtobuf
		if b.json {
			read = readJSON
		}
		b.spans, err = read(plain, r)
		if err != nil {
			r.count.malformed.Add(1)
			return nil, err
		}
		r.count.spans.Add(int64(b.spans))
	}
	r.count.batches.Add(1)
	if r.forwarder == nil || r.forwarder.offer(b) {
		return b.what.response(), nil
	}
	// How many metrics or log records there were was not looked at.
	return b.what.partial(int64(b.spans), "not passed on: too much waits for the collector"), nil
}
