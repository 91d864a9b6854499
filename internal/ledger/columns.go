package ledger

// column numbers one column of the table calls. The numbers are what the spill
// writes and the parameters of the one INSERT, so they are part of a format on
// disk: never change or reuse one, append new ones at the end.
type column int

const (
	colID column = iota + 1
	colAttempt
	colTime
	colKey
	colModel
	colResponseModel
	colClass
	colDialect
	colPath
	colStream
	colUpstream
	colRequestID
	colResponseID
	colTraceID
	colRun
	colStatus
	colOutcome
	colError
	colFinish
	colTerminated
	colDegraded
	colInput
	colOutput
	colCached
	colCacheWrite
	colReasoning
	colUsageSource
	colEstimatedInput
	colEstimatedOutput
	colReserved
	colRefusedBy
	colWouldRefuse
	colContentEvents
	colFirstContentEvent
	colParseErrors
	colTTFT
	colTTFTUpstream
	colTTFB
	colTTFTVisible
	colTPOT
	colE2E
	colICLP50
	colICLMax
	colClientRTT
	colUpstreamRTT
	colPhaseUpload
	colPhaseQueueGateway
	colPhaseConnect
	colPhaseUpstreamRTT
	colPhaseQueueEngine
	colPhaseFrontend
	colPhasePrefill
	colPhaseEngine
	colPhaseDecode
	colPhaseTail
	colPhaseDelivery
	colPhaseSources
	colEngineQueue
	colEngineLoad
	colEnginePrefill
	colEngineDecode
	colEngineTotal
	colEngineE2E
	colAttempts
	colReplayed
	colBytesIn
	colBytesOut
	colClientProtocol
	colBench
	colClientRetries
	colSurroundings
	colJoules
	colEnd // one past the last
)

// numColumns is the number of columns, seq and the generated one left out.
const numColumns = int(colEnd) - 1

// kind says how a column's value is written: text as it is; whole as an
// integer; millis as nanoseconds in the spill and as milliseconds, a REAL, in
// the database: there a million is 1.
type kind byte

const (
	text kind = iota
	whole
	millis
)

// columns names every column, by number. schema.sql tells what they mean.
var columns = [colEnd]struct {
	name string
	kind kind
}{
	colID:                {"id", text},
	colAttempt:           {"attempt", whole},
	colTime:              {"time_ns", whole},
	colKey:               {"key", text},
	colModel:             {"model", text},
	colResponseModel:     {"response_model", text},
	colClass:             {"class", text},
	colDialect:           {"dialect", text},
	colPath:              {"path", text},
	colStream:            {"stream", whole},
	colUpstream:          {"upstream", text},
	colRequestID:         {"request_id", text},
	colResponseID:        {"response_id", text},
	colTraceID:           {"trace_id", text},
	colRun:               {"run", text},
	colStatus:            {"status", whole},
	colOutcome:           {"outcome", text},
	colError:             {"error", text},
	colFinish:            {"finish_reason", text},
	colTerminated:        {"terminated", whole},
	colDegraded:          {"degraded", text},
	colInput:             {"input_tokens", whole},
	colOutput:            {"output_tokens", whole},
	colCached:            {"cached_tokens", whole},
	colCacheWrite:        {"cache_write_tokens", whole},
	colReasoning:         {"reasoning_tokens", whole},
	colUsageSource:       {"usage_source", text},
	colEstimatedInput:    {"estimated_input_tokens", whole},
	colEstimatedOutput:   {"estimated_output_tokens", whole},
	colReserved:          {"reserved_tokens", whole},
	colRefusedBy:         {"refused_by", text},
	colWouldRefuse:       {"would_refuse", text},
	colContentEvents:     {"content_events", whole},
	colFirstContentEvent: {"first_content_event", whole},
	colParseErrors:       {"parse_errors", whole},
	colTTFT:              {"ttft_ms", millis},
	colTTFTUpstream:      {"ttft_upstream_ms", millis},
	colTTFB:              {"ttfb_ms", millis},
	colTTFTVisible:       {"ttft_visible_ms", millis},
	colTPOT:              {"tpot_ms", millis},
	colE2E:               {"e2e_ms", millis},
	colICLP50:            {"icl_p50_ms", millis},
	colICLMax:            {"icl_max_ms", millis},
	colClientRTT:         {"client_rtt_ms", millis},
	colUpstreamRTT:       {"upstream_rtt_ms", millis},
	colPhaseUpload:       {"phase_upload_ms", millis},
	colPhaseQueueGateway: {"phase_queue_gateway_ms", millis},
	colPhaseConnect:      {"phase_connect_ms", millis},
	colPhaseUpstreamRTT:  {"phase_upstream_rtt_ms", millis},
	colPhaseQueueEngine:  {"phase_queue_engine_ms", millis},
	colPhaseFrontend:     {"phase_frontend_ms", millis},
	colPhasePrefill:      {"phase_prefill_ms", millis},
	colPhaseEngine:       {"phase_engine_ms", millis},
	colPhaseDecode:       {"phase_decode_ms", millis},
	colPhaseTail:         {"phase_tail_ms", millis},
	colPhaseDelivery:     {"phase_delivery_ms", millis},
	colPhaseSources:      {"phase_sources", text},
	colEngineQueue:       {"engine_queue_ms", millis},
	colEngineLoad:        {"engine_load_ms", millis},
	colEnginePrefill:     {"engine_prefill_ms", millis},
	colEngineDecode:      {"engine_decode_ms", millis},
	colEngineTotal:       {"engine_total_ms", millis},
	colEngineE2E:         {"engine_e2e_ms", millis},
	colAttempts:          {"attempts", whole},
	colReplayed:          {"replayed", whole},
	colBytesIn:           {"bytes_in", whole},
	colBytesOut:          {"bytes_out", whole},
	colClientProtocol:    {"client_protocol", text},
	colBench:             {"bench", whole},
	colClientRetries:     {"client_retries", whole},
	colSurroundings:      {"surroundings", text},
	colJoules:            {"gpu_joules", millis}, // a millionth of it in the spill
}
