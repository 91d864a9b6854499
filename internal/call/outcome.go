package call

// Outcome says how a call ended. Exactly one holds.
type Outcome string

const (
	Completed       Outcome = "completed"
	ClientGone      Outcome = "client_gone"
	UpstreamError   Outcome = "upstream_error"   // status >= 400, refused or lost connection
	Timeout         Outcome = "timeout"          // ours or the upstream's
	StreamError     Outcome = "stream_error"     // an error inside a 200 answer
	Truncated       Outcome = "truncated"        // no terminal event, and not both finish and usage
	Unrecognised    Outcome = "unrecognised"     // a 200 answer that is not the dialect's
	ReaderStalled   Outcome = "reader_stalled"   // cut because the client stopped reading
	Refused         Outcome = "refused"          // by our own limits
	GatewayShutdown Outcome = "gateway_shutdown" // cut because the process ended
	InternalError   Outcome = "internal_error"   // a fault inside the gateway's process
	Crashed         Outcome = "crashed"          // found after a restart
)

// Outcomes lists every outcome, in the order of their definition.
var Outcomes = []Outcome{Completed, ClientGone, UpstreamError, Timeout, StreamError, Truncated,
	Unrecognised, ReaderStalled, Refused, GatewayShutdown, InternalError, Crashed}

// Failed tells whether the service broke its promise: every outcome but
// completed, a client that left, and a refusal by our own limits.
func (o Outcome) Failed() bool {
	return o != Completed && o != ClientGone && o != Refused
}
