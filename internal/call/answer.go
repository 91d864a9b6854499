package call

// Answer is what a dialect read from the response. Its zero value is an answer
// of which nothing has been read yet.
type Answer struct {
	ResponseID    string
	ResponseModel string
	Finish        Finish
	Usage         Usage
	UsageSource   UsageSource // "" stands for UsageNone
	Engine        Engine
	// Events is the number of dispatched events: SSE events with data, NDJSON
	// lines that are not blank, or 1 for a JSON body.
	Events int64
	// ContentEvents is the number of those that carried model output.
	ContentEvents int64
	// FirstContent is the number (from 0) of the first content event.
	FirstContent Count
	// FirstVisible is the same for the first that is not reasoning only.
	FirstVisible Count
	ParseErrors  int64
	// Terminated is whether the dialect's terminal event was seen.
	Terminated bool
	// Recognised is whether anything of the dialect's own was seen.
	Recognised bool
	// Error is a short code of an error inside the answer; "" is none. Never
	// the error's message, which may quote the prompt.
	Error string
	// MultipleChoices is whether more than one choice wrote output.
	MultipleChoices bool
}
