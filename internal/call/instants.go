package call

import "time"

// Instants are moments of one call on the monotonic clock, each as the time
// since the call was received; what did not happen is unknown.
// The definitions stand in the README under "What is measured".
type Instants struct {
	BodyRead     Duration // the request body was read to its end, or to the cap
	Admitted     Duration // limits and the admission queue let the call through
	Sent         Duration // written upstream, last attempt: the earlier of WroteRequest and FirstByte
	FirstByte    Duration // the first response byte arrived
	FirstToken   Duration // the write that carries the end of the first content-bearing event
	FirstVisible Duration // the same for the first event that is not reasoning only
	LastToken    Duration // the same for the last content-bearing event
	Ended        Duration // the last body byte was handed to the client, or the call broke off
}

// Blocked is the time spent in writes to the client, by where it falls.
type Blocked struct {
	BeforeFirstToken time.Duration // or all of it when no token came
	Decode           time.Duration // between first and last token
	Tail             time.Duration // after the last token
}

// Total is all the time spent in writes to the client.
func (b Blocked) Total() time.Duration { return b.BeforeFirstToken + b.Decode + b.Tail }
