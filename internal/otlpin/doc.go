// Package otlpin takes engines' spans and joins them to calls.
//
// An inference engine that traces its requests exports one span for each, with
// the time that the request spent in its queue, in prefill and in decode. Such a
// span carries the trace id that the gateway sent upstream, so that it can be
// joined to the call: the Receiver takes spans by OTLP (HTTP with protobuf or
// JSON, and gRPC), the Joiner finds the call, and everything that came in is
// passed on unchanged to the real collector.
//
// # What engines send
//
// vLLM (--otlp-traces-endpoint) exports one span llm_request for each request,
// child of the span whose traceparent it was sent, with the attributes
// gen_ai.latency.time_in_queue (scheduled − queued),
// gen_ai.latency.time_in_model_prefill (first token − scheduled),
// gen_ai.latency.time_in_model_decode (last token − first token),
// gen_ai.latency.time_to_first_token and gen_ai.latency.e2e, in seconds. See
// vllm/v1/engine/output_processor.py and vllm/tracing/utils.py. Its exporter waits
// up to 5 s before it sends (OTEL_BSP_SCHEDULE_DELAY, in milliseconds), longer than
// the usual join window of 2 s: set OTEL_BSP_SCHEDULE_DELAY=500 there, or widen the
// window. Spans that come too late are counted, and State says by how much.
//
// SGLang (--enable-trace) exports a span "Req …" with the same names, but
// without a time in queue, and its time_in_model_prefill runs from the dispatch
// of the request to its first token: the queue is in it. The queue is a span
// of its own, named prefill_waiting, a grandchild of the first, which another
// process sends. See python/sglang/srt/observability/req_time_stats.py and trace.py.
// Where both arrive they are put together; where only the first does, prefill is
// not claimed, and stands under EngineSpan.PrefillWithQueue.
//
// Engines record only what the traceparent marks as sampled, unless they are
// told otherwise.
//
// # Bounds
//
// Bodies are read without building them up in memory, at most 16 MiB each and
// eight at a time; the queue to the collector, the table of calls and what is kept
// of each trace are bounded; a span of an unknown trace costs one look into
// a map. No call waits for anything here.
package otlpin
