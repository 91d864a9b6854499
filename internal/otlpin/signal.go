package otlpin

import (
	"google.golang.org/protobuf/proto"

	logspb "go.opentelemetry.io/proto/otlp/collector/logs/v1"
	metricspb "go.opentelemetry.io/proto/otlp/collector/metrics/v1"
	tracepb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
)

// signal is one kind of telemetry: its path over HTTP, its method over gRPC, and
// its messages.
type signal struct {
	path, method string
	traces       bool
	request      func() proto.Message
	response     func() proto.Message
	// partial is the response that says that items were not taken on, and why; 0
	// items make it a warning.
	partial func(items int64, why string) proto.Message
}

var signals = [...]*signal{
	{
		path: "/v1/traces", method: "/opentelemetry.proto.collector.trace.v1.TraceService/Export", traces: true,
		request:  func() proto.Message { return new(tracepb.ExportTraceServiceRequest) },
		response: func() proto.Message { return new(tracepb.ExportTraceServiceResponse) },
		partial: func(items int64, why string) proto.Message {
			return &tracepb.ExportTraceServiceResponse{PartialSuccess: &tracepb.ExportTracePartialSuccess{RejectedSpans: items, ErrorMessage: why}}
		},
	},
	{
		path: "/v1/metrics", method: "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
		request:  func() proto.Message { return new(metricspb.ExportMetricsServiceRequest) },
		response: func() proto.Message { return new(metricspb.ExportMetricsServiceResponse) },
		partial: func(items int64, why string) proto.Message {
			return &metricspb.ExportMetricsServiceResponse{PartialSuccess: &metricspb.ExportMetricsPartialSuccess{RejectedDataPoints: items, ErrorMessage: why}}
		},
	},
	{
		path: "/v1/logs", method: "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
		request:  func() proto.Message { return new(logspb.ExportLogsServiceRequest) },
		response: func() proto.Message { return new(logspb.ExportLogsServiceResponse) },
		partial: func(items int64, why string) proto.Message {
			return &logspb.ExportLogsServiceResponse{PartialSuccess: &logspb.ExportLogsPartialSuccess{RejectedLogRecords: items, ErrorMessage: why}}
		},
	},
}

// hint is the answer to what is not taken.
const hint = "this receiver takes traces (POST /v1/traces, or TraceService over gRPC); metrics and logs only when it forwards to a collector"

// serves tells whether a signal is taken: traces always, others only to be
// passed on.
func (r *Receiver) serves(s *signal) bool { return s.traces || r.forwarder != nil }
