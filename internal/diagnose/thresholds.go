package diagnose

import "time"

// The thresholds. None of them is a knob: each says what can be claimed of one
// call or one window without an objective, and why there.
const (
	// Noticeable is the least time that is worth a finding. Below a tenth of a
	// second people take an answer as immediate (R. B. Miller, Response time in
	// man-computer conversational transactions, 1968), and no preset objective for
	// a queue or a first token is that strict.
	Noticeable = 100 * time.Millisecond
	// Slow is what stands for long where only an absolute time can say so: the
	// queue objective of interactive calls, half of their objective for TTFT.
	Slow = time.Second
	// QueueShare is the share of TTFT from which on queueing is what the call did:
	// four fifths leave no second cause of weight.
	QueueShare = 0.8
	// Dominant is the share from which on one phase outweighs all others together.
	// Of a call without a first token, or one that is not streamed, it is the
	// threshold of queueing too: the whole time then holds the writing of the
	// answer, of which a queue's share is smaller whatever the fault.
	Dominant = 0.5
	// Large is the share from which on a phase that is next to nothing in a healthy
	// call stands out: writes to a client that reads, the front end's HTTP and
	// tokenizing, and the time after the last token take milliseconds.
	Large = 0.25

	// FreshReading is the age up to which a reading of gauges speaks for a call:
	// gauges are read each second, and within five a queue may come and go.
	FreshReading = 5 * time.Second
	// FewRunning is how many other requests may run for a call to count as alone:
	// one other can at most share each step with it.
	FewRunning = 1
	// SlowToken is the prefill time of one computed token from which on a model is
	// slow in absolute terms. A model of 70 billion parameters takes 140 GFLOP a
	// token, which a data-centre GPU does in less than 1 ms at half of its peak; twice
	// that says that the hardware is not at work, or not of that kind.
	SlowToken = 2 * time.Millisecond
	// Outlier is how many times the median of calls of its size a prefill takes to
	// be slow beside them. Sizes differ by a factor of two at most, so that a
	// proportional cost explains a factor of two and no more.
	Outlier = 3
	// PeerCalls is how many calls of a size have to be there for a median to speak:
	// of eight calls at least five agree with it to one side.
	PeerCalls = 8

	// IdleCalls is how many calls that met an idle engine stand for what a call of
	// their size takes without a queue: their median then is that of no single one.
	IdleCalls = 3
	// IdleShare is the share of the median time to the first token that the quickest
	// call of a size takes at most to stand for the same by itself: calls of one size
	// do work that differs by a factor of two, and five leaves room for noise.
	IdleShare = 0.2

	// FullCache is the share of the KV cache in use from which on nothing of weight
	// fits any more.
	FullCache = 0.95
	// HighCache is the share from which on the cache, and not the cap on
	// sequences, is what most likely keeps calls waiting.
	HighCache = 0.9
	// UnderUsed is the utilisation below which GPUs had room while calls waited.
	UnderUsed = 0.7
	// SamplesPerGPU is how many samples of each GPU a call needs for its mean
	// utilisation to be of the call: one speaks for a second around it.
	SamplesPerGPU = 2
	// ClockLoss is the ratio of SM clock to its maximum at or below which heat or
	// the machine's power brake is a finding: 5 % slower than it could be.
	ClockLoss = 0.95
	// PowerClockLoss is the same where nothing but the power limit, or what the board
	// can bear, holds the clocks down: a busy GPU runs at its power limit every
	// day, some percent below its maximum.
	PowerClockLoss = 0.9
	// SlowTPOT is the time per output token that breaks even the preset for batch.
	SlowTPOT = 100 * time.Millisecond
	// LargeBody is a request body that takes more than one round trip or two on any
	// connection, its initial windows being smaller.
	LargeBody = 64 << 10
	// HugeBody is a request body whose writing upstream can take noticeable time.
	HugeBody = 1 << 20

	// MinCalls is the default of Options.MinCalls. By the rule of three, 20 calls
	// without a fault still allow one in seven to have it, at 95 % confidence.
	MinCalls = 20
	// Worth is the share of calls, or of time, below which something found in a
	// window is listed as rare: it is not what ails the service.
	Worth = 0.05
	// Focus is the share of a finding's calls that have to go to one upstream, model or key
	// for that to be evidence, when it has no more than half of all calls.
	Focus = 0.9
	// FocusCalls is how many calls a finding needs for that: that eight calls fall
	// into one half by chance happens once in 256 times.
	FocusCalls = 8

	// longest is the longest call that is believed, so that sums cannot overflow.
	longest = 24 * time.Hour
)
