package ledger

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// Start is what is known of a call when it has been admitted and before it is
// sent. If nothing more is ever heard of it, it becomes a row with outcome
// crashed, for which the estimates stand in.
type Start struct {
	ID      string    // of the call, ours; must not be empty
	Time    time.Time // received; zero is now
	Key     string    // alias or short id, never the key itself
	Model   string
	Class   string
	Dialect string
	Path    string
	Stream  bool

	RequestID string // the client's
	TraceID   string
	Run       string

	EstimatedInput  call.Count
	EstimatedOutput call.Count
	Reserved        call.Count
}

// onlyAttempt is the attempt of every row. A call makes one row, whatever was
// sent upstream for it; the rows' key leaves room for calls that make several.
const onlyAttempt = 0

// appendStart appends the fields of s.
func appendStart(b []byte, s *Start, now func() time.Time) []byte {
	b = appendText(b, colID, s.ID)
	b = appendWhole(b, colAttempt, onlyAttempt)
	b = appendWhole(b, colTime, nanos(s.Time, now))
	b = appendText(b, colKey, s.Key)
	b = appendText(b, colModel, s.Model)
	b = appendText(b, colClass, s.Class)
	b = appendText(b, colDialect, s.Dialect)
	b = appendText(b, colPath, s.Path)
	b = appendBool(b, colStream, s.Stream)
	b = appendText(b, colRequestID, s.RequestID)
	b = appendText(b, colTraceID, s.TraceID)
	b = appendText(b, colRun, s.Run)
	b = appendTokens(b, colEstimatedInput, s.EstimatedInput)
	b = appendTokens(b, colEstimatedOutput, s.EstimatedOutput)
	return appendTokens(b, colReserved, s.Reserved)
}

// appendCrashed makes the fields of a start those of a row.
func appendCrashed(b []byte) []byte {
	b = appendText(b, colOutcome, string(call.Crashed))
	return appendText(b, colUsageSource, string(call.UsageNone))
}

// appendRow appends the fields of a record. What is unknown is left out.
func appendRow(b []byte, rec *call.Record, now func() time.Time) []byte {
	b = appendText(b, colID, rec.ID)
	b = appendWhole(b, colAttempt, onlyAttempt)
	b = appendWhole(b, colTime, nanos(rec.Time, now))
	b = appendText(b, colKey, rec.Key)
	b = appendText(b, colModel, rec.Model)
	b = appendText(b, colResponseModel, rec.ResponseModel)
	b = appendText(b, colClass, rec.Class)
	b = appendText(b, colDialect, rec.Dialect)
	b = appendText(b, colPath, rec.Path)
	b = appendBool(b, colStream, rec.Stream)
	b = appendText(b, colUpstream, rec.Upstream)
	b = appendText(b, colRequestID, rec.RequestID)
	b = appendText(b, colResponseID, rec.ResponseID)
	b = appendText(b, colTraceID, rec.TraceID)
	b = appendText(b, colRun, rec.Run)
	if rec.Status != 0 {
		b = appendWhole(b, colStatus, int64(rec.Status))
	}
	b = appendText(b, colOutcome, string(rec.Outcome))
	b = appendText(b, colError, rec.Error)
	b = appendText(b, colFinish, finishText(rec.FinishReason))
	b = appendBool(b, colTerminated, rec.Terminated)
	b = appendText(b, colDegraded, degradedText(rec.Degraded))

	if source := rec.UsageSource; source == "" || source == call.UsageNone {
		b = appendText(b, colUsageSource, string(call.UsageNone))
	} else {
		b = appendTokens(b, colInput, rec.Input)
		b = appendTokens(b, colOutput, rec.Output)
		b = appendTokens(b, colCached, rec.Cached)
		b = appendTokens(b, colCacheWrite, rec.CacheWrite)
		b = appendTokens(b, colReasoning, rec.Reasoning)
		b = appendText(b, colUsageSource, string(source))
	}
	b = appendTokens(b, colEstimatedInput, rec.EstimatedInput)
	b = appendTokens(b, colEstimatedOutput, rec.EstimatedOutput)
	b = appendTokens(b, colReserved, rec.Reserved)
	b = appendText(b, colRefusedBy, rec.RefusedBy)
	b = appendText(b, colWouldRefuse, rec.WouldRefuse)
	b = appendCount(b, colContentEvents, rec.ContentEvents)
	b = appendCount(b, colFirstContentEvent, rec.FirstContentEvent)
	b = appendWhole(b, colParseErrors, rec.ParseErrors)

	for i, d := range spans(rec) {
		b = appendSpan(b, spanColumns[i], *d)
	}
	b = appendText(b, colPhaseSources, sourcesText(rec))

	b = appendWhole(b, colAttempts, int64(rec.Attempts))
	b = appendBool(b, colReplayed, rec.Replayed)
	b = appendCount(b, colBytesIn, rec.BytesIn)
	b = appendWhole(b, colBytesOut, rec.BytesOut)
	b = appendText(b, colClientProtocol, rec.ClientProtocol)
	b = appendBool(b, colBench, rec.Bench)
	if rec.ClientRetries != 0 {
		b = appendWhole(b, colClientRetries, int64(rec.ClientRetries))
	}
	return appendSurroundings(b, rec)
}

// set gives a record the value of one column, which is known.
func set(rec *call.Record, c column, v value) {
	switch c {
	case colID:
		rec.ID = v.text()
	case colAttempt: // is no part of a record
	case colTime:
		rec.Time = time.Unix(0, v.n).UTC()
	case colKey:
		rec.Key = v.text()
	case colModel:
		rec.Model = v.text()
	case colResponseModel:
		rec.ResponseModel = v.text()
	case colClass:
		rec.Class = v.text()
	case colDialect:
		rec.Dialect = v.text()
	case colPath:
		rec.Path = v.text()
	case colStream:
		rec.Stream = v.n != 0
	case colUpstream:
		rec.Upstream = v.text()
	case colRequestID:
		rec.RequestID = v.text()
	case colResponseID:
		rec.ResponseID = v.text()
	case colTraceID:
		rec.TraceID = v.text()
	case colRun:
		rec.Run = v.text()
	case colStatus:
		rec.Status = int(v.n)
	case colOutcome:
		rec.Outcome = call.Outcome(v.text())
	case colError:
		rec.Error = v.text()
	case colFinish:
		rec.FinishReason = finishOf(v.text())
	case colTerminated:
		rec.Terminated = v.n != 0
	case colDegraded:
		rec.Degraded = degradedOf(v.text())
	case colInput:
		rec.Input = call.Known(v.n)
	case colOutput:
		rec.Output = call.Known(v.n)
	case colCached:
		rec.Cached = call.Known(v.n)
	case colCacheWrite:
		rec.CacheWrite = call.Known(v.n)
	case colReasoning:
		rec.Reasoning = call.Known(v.n)
	case colUsageSource:
		rec.UsageSource = call.UsageSource(v.text())
	case colEstimatedInput:
		rec.EstimatedInput = call.Known(v.n)
	case colEstimatedOutput:
		rec.EstimatedOutput = call.Known(v.n)
	case colReserved:
		rec.Reserved = call.Known(v.n)
	case colRefusedBy:
		rec.RefusedBy = v.text()
	case colWouldRefuse:
		rec.WouldRefuse = v.text()
	case colContentEvents:
		rec.ContentEvents = call.Known(v.n)
	case colFirstContentEvent:
		rec.FirstContentEvent = call.Known(v.n)
	case colParseErrors:
		rec.ParseErrors = v.n
	case colPhaseSources:
		setSources(rec, v.text())
	case colAttempts:
		rec.Attempts = int(v.n)
	case colReplayed:
		rec.Replayed = v.n != 0
	case colBytesIn:
		rec.BytesIn = call.Known(v.n)
	case colBytesOut:
		rec.BytesOut = v.n
	case colClientProtocol:
		rec.ClientProtocol = v.text()
	case colBench:
		rec.Bench = v.n != 0
	case colClientRetries:
		rec.ClientRetries = int(v.n)
	case colSurroundings:
		rec.Surroundings = surroundingsOf(v.b)
	case colJoules: // is part of the surroundings
	default:
		for i, d := range spans(rec) {
			if spanColumns[i] == c {
				*d = call.Lasting(time.Duration(v.n))
			}
		}
	}
}

// nanos returns t in nanoseconds since 1970, UTC. A time that such a number
// cannot hold, or before it, is no time at which a call was received: now
// stands in for it.
func nanos(t time.Time, now func() time.Time) int64 {
	if y := t.Year(); y < 1971 || y > 2261 {
		t = now()
	}
	return t.UnixNano()
}
