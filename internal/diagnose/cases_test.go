package diagnose

import (
	"time"

	"github.com/weirgate/weir/internal/call"
)

// cases are, for each finding, calls that show it and calls that nearly do. A
// question mark stands for a finding that is only possible.
var cases = map[string]struct {
	change func(*call.Record)
	want   []string
}{
	"healthy":                        {func(*call.Record) {}, nil},
	"healthy, nothing but the clock": {func(r *call.Record) { bare(r) }, nil},
	"healthy, not streamed":          {func(r *call.Record) { whole(r, 3*time.Second) }, nil},
	"client left early":              {func(r *call.Record) { r.Outcome = call.ClientGone }, nil},

	"engine queue":                     {func(r *call.Record) { r.Phases.QueueEngine = lasting(3900 * ms); r.AtDispatch.Waiting = known(12) }, []string{"engine_queue"}},
	"engine queue below four fifths":   {func(r *call.Record) { r.Phases.QueueEngine, r.Phases.Prefill = lasting(790*ms), lasting(210*ms) }, nil},
	"engine queue too short to notice": {func(r *call.Record) { r.Phases.QueueEngine, r.Phases.Prefill = lasting(99*ms), lasting(2*ms) }, nil},
	"engine queue, inferred": {func(r *call.Record) {
		r.Phases.QueueEngine = lasting(4 * time.Second)
		r.PhaseSources.QueueEngine = call.Inferred
	}, []string{"engine_queue"}},
	"engine queue, possibly":          {func(r *call.Record) { unsplitBy(r, 4*time.Second); r.AtDispatch.Waiting = known(12) }, []string{"engine_queue?"}},
	"engine queue, nothing waited":    {func(r *call.Record) { unsplitBy(r, 4*time.Second) }, []string{"unattributed?"}},
	"engine queue, waiting not known": {func(r *call.Record) { unsplitBy(r, 4*time.Second); r.AtDispatch.Waiting = call.Count{} }, []string{"unattributed?"}},
	"engine queue, the reading is old": {func(r *call.Record) {
		unsplitBy(r, 4*time.Second)
		r.AtDispatch.Waiting, r.AtDispatch.Age = known(12), lasting(6*time.Second)
	}, []string{"unattributed?"}},
	"engine queue, the reading's age": {func(r *call.Record) {
		unsplitBy(r, 4*time.Second)
		r.AtDispatch.Waiting, r.AtDispatch.Age = known(12), call.Duration{}
	}, []string{"unattributed?"}},
	"engine queue possible, but no wait": {func(r *call.Record) { unsplitBy(r, 900*ms); r.AtDispatch.Waiting = known(12) }, nil},
	"engine queue of half, not streamed": {func(r *call.Record) { split(r); r.Phases.QueueEngine = lasting(3 * time.Second) }, []string{"engine_queue"}},
	"engine queue below half, no stream": {func(r *call.Record) { split(r); r.Phases.QueueEngine = lasting(1900 * ms) }, nil},
	"model load": {func(r *call.Record) {
		r.Phases.QueueEngine, r.Engine.Load = lasting(9*time.Second), lasting(8*time.Second)
	}, []string{"model_load"}},
	"model load, the lesser part": {func(r *call.Record) {
		r.Phases.QueueEngine, r.Engine.Load = lasting(9*time.Second), lasting(4*time.Second)
	}, []string{"engine_queue"}},
	"gateway queue":                  {func(r *call.Record) { r.Phases.QueueGateway = lasting(3 * time.Second) }, []string{"gateway_queue"}},
	"gateway queue, refused at last": {func(r *call.Record) { refused(r, 30*time.Second) }, []string{"refused", "gateway_queue"}},
	"refused at once":                {func(r *call.Record) { refused(r, 0) }, []string{"refused"}},
	"both queues": {func(r *call.Record) {
		r.Phases.QueueGateway, r.Phases.QueueEngine = lasting(3*time.Second), lasting(2*time.Second)
	}, []string{"gateway_queue", "engine_queue"}},
	"both queues, one hardly": {func(r *call.Record) {
		r.Phases.QueueGateway, r.Phases.QueueEngine = lasting(4*time.Second), lasting(200*ms)
	}, []string{"gateway_queue"}},
	"KV cache full":                      {func(r *call.Record) { r.Phases.QueueEngine = lasting(4 * time.Second); full(r, 0.97, 3) }, []string{"engine_queue", "kv_cache_full"}},
	"KV cache full, but the call passed": {func(r *call.Record) { full(r, 0.97, 3) }, nil},
	"KV cache full, and nothing waits":   {func(r *call.Record) { r.Phases.QueueEngine = lasting(4 * time.Second); full(r, 0.97, 0) }, []string{"engine_queue"}},
	"KV cache nearly full":               {func(r *call.Record) { r.Phases.QueueEngine = lasting(4 * time.Second); full(r, 0.94, 3) }, []string{"engine_queue"}},
	"KV cache full, queue not known":     {func(r *call.Record) { unsplitBy(r, 4*time.Second); full(r, 0.97, 3) }, []string{"kv_cache_full", "engine_queue?"}},
	"prefill slow, alone":                {func(r *call.Record) { r.Phases.Prefill = lasting(3 * time.Second); running(r, 1, 2) }, []string{"prefill_slow"}},
	"prefill slow, cached not known": {func(r *call.Record) {
		r.Phases.Prefill = lasting(3 * time.Second)
		running(r, 0, 1)
		r.Cached = call.Count{}
	}, []string{"prefill_slow"}},
	"prefill slow, others came":     {func(r *call.Record) { r.Phases.Prefill = lasting(3 * time.Second); running(r, 1, 3) }, []string{"prefill_long"}},
	"prefill slow, in a crowd":      {func(r *call.Record) { r.Phases.Prefill = lasting(3 * time.Second); running(r, 6, 7) }, []string{"prefill_long"}},
	"prefill slow, crowd not known": {func(r *call.Record) { r.Phases.Prefill = lasting(3 * time.Second); r.AtDispatch = call.EngineLoad{} }, []string{"prefill_long"}},
	"prefill slow, tokens not known": {func(r *call.Record) {
		r.Phases.Prefill = lasting(3 * time.Second)
		running(r, 1, 2)
		r.Input = call.Count{}
	}, []string{"prefill_long"}},
	"prefill long, for a long prompt": {func(r *call.Record) {
		r.Phases.Prefill, r.Input = lasting(3*time.Second), known(60_000)
		running(r, 0, 1)
	}, []string{"prefill_long"}},
	"prefill slow per token, but short": {func(r *call.Record) { r.Phases.Prefill, r.Input = lasting(900*ms), known(20); running(r, 0, 1) }, nil},
	"prefill slow, by a bound":          {func(r *call.Record) { bounded(r, 3*time.Second, 700*ms); running(r, 0, 1) }, []string{"prefill_slow"}},
	"prefill not slow, by a bound":      {func(r *call.Record) { bounded(r, 1600*ms, 700*ms); running(r, 0, 1) }, nil},
	"prefill slow, without a bound":     {func(r *call.Record) { unsplitBy(r, 3*time.Second); running(r, 0, 1) }, []string{"unattributed?"}},
	"front end":                         {func(r *call.Record) { r.Phases.Frontend = lasting(400 * ms) }, []string{"frontend_overhead"}},
	"front end, less than a quarter":    {func(r *call.Record) { r.Phases.Frontend, r.Phases.Prefill = lasting(240*ms), lasting(760*ms) }, nil},
	"tail":                              {func(r *call.Record) { r.Phases.Tail = lasting(2 * time.Second) }, []string{"engine_tail"}},
	"tail, less than a quarter":         {func(r *call.Record) { r.Phases.Tail = lasting(600 * ms) }, nil},
	"tail of an answer not streamed":    {func(r *call.Record) { whole(r, time.Second); r.Phases.Tail = lasting(9 * time.Second) }, nil},
	"fell silent": {func(r *call.Record) {
		r.Phases.Tail = lasting(60 * time.Second)
		r.Terminated, r.Outcome = false, call.ClientGone
	}, []string{"engine_tail"}},
	"upload of a large body":           {func(r *call.Record) { r.Phases.Upload, r.BytesIn = lasting(4*time.Second), known(5e6) }, []string{"upload_slow"}},
	"upload of a body of unknown size": {func(r *call.Record) { r.Phases.Upload, r.BytesIn = lasting(4*time.Second), call.Count{} }, []string{"upload_slow"}},
	"upload of a small body":           {func(r *call.Record) { r.Phases.Upload = lasting(4 * time.Second) }, []string{"upload_stalled"}},
	"upload below half":                {func(r *call.Record) { r.Phases.Upload, r.BytesIn = lasting(120*ms), known(5e6) }, nil},
	"upload cut": {func(r *call.Record) {
		unsent(r, call.Timeout, "upload_stalled")
		r.Phases.Connect = lasting(30 * time.Second)
	}, []string{"upload_stalled"}},
	"reconnects":                      {func(r *call.Record) { r.Phases.Connect, r.Attempts = lasting(2*time.Second), 3 }, []string{"upstream_reconnects"}},
	"left while it connected":         {func(r *call.Record) { unsent(r, call.ClientGone, ""); r.Phases.Connect = lasting(20 * time.Second) }, []string{"upstream_reconnects"}},
	"connect, a large body":           {func(r *call.Record) { r.Phases.Connect, r.BytesIn = lasting(2*time.Second), known(8e6) }, []string{"upstream_reconnects"}},
	"connect below half":              {func(r *call.Record) { r.Phases.Connect = lasting(120 * ms) }, nil},
	"upstream far":                    {func(r *call.Record) { r.Phases.UpstreamRTT, r.UpstreamRTT = lasting(250*ms), lasting(250*ms) }, []string{"upstream_round_trip"}},
	"upstream not so far":             {func(r *call.Record) { r.Phases.UpstreamRTT, r.UpstreamRTT = lasting(110*ms), lasting(110*ms) }, nil},
	"client far":                      {func(r *call.Record) { r.ClientRTT = lasting(300 * ms) }, []string{"client_round_trip"}},
	"client not so far":               {func(r *call.Record) { r.ClientRTT = lasting(110 * ms) }, nil},
	"slow reader":                     {func(r *call.Record) { r.Phases.Delivery = lasting(2 * time.Second) }, []string{"slow_reader"}},
	"reader not so slow":              {func(r *call.Record) { r.Phases.Delivery = lasting(600 * ms) }, nil},
	"reader cut":                      {func(r *call.Record) { r.Outcome, r.Error = call.ReaderStalled, "reader_stalled" }, []string{"slow_reader"}},
	"clock held down by heat":         {func(r *call.Record) { r.GPU.ClockRatio, r.GPU.Reasons = figureOf(0.92), []string{"hw_thermal"} }, []string{"clock_throttled"}},
	"clock at the power limit":        {func(r *call.Record) { r.GPU.ClockRatio, r.GPU.Reasons = figureOf(0.92), []string{"power_cap"} }, nil},
	"clock far below the power limit": {func(r *call.Record) { r.GPU.ClockRatio, r.GPU.Reasons = figureOf(0.7), []string{"power_cap"} }, []string{"clock_throttled"}},
	"clock low without a reason":      {func(r *call.Record) { r.GPU.ClockRatio = figureOf(0.7) }, nil},
	"clock not known":                 {func(r *call.Record) { r.GPU.ClockRatio, r.GPU.Reasons = call.Number{}, []string{"hw_thermal"} }, nil},
	"GPU idle while the engine queues": {func(r *call.Record) {
		r.Phases.QueueEngine = lasting(4 * time.Second)
		r.GPU.Utilization = figureOf(0.3)
	}, []string{"engine_queue", "gpu_under_used"}},
	"GPU idle while the gateway queues": {func(r *call.Record) {
		r.Phases.QueueGateway = lasting(4 * time.Second)
		r.GPU.Utilization = figureOf(0.3)
	}, []string{"gateway_queue", "gpu_under_used"}},
	"GPU idle while it writes slowly": {func(r *call.Record) { r.Phases.Decode = lasting(12 * time.Second); r.GPU.Utilization = figureOf(0.3) }, []string{"gpu_under_used"}},
	"GPU idle, and nothing waits":     {func(r *call.Record) { r.GPU.Utilization = figureOf(0.3) }, nil},
	"GPU idle while the model is loaded": {func(r *call.Record) {
		r.Phases.QueueEngine, r.Engine.Load, r.GPU.Utilization = lasting(9*time.Second), lasting(8*time.Second), figureOf(0)
	}, []string{"model_load"}},
	"GPU utilisation not known": {func(r *call.Record) {
		r.Phases.QueueEngine = lasting(4 * time.Second)
		r.GPU.Utilization = call.Number{}
	}, []string{"engine_queue"}},
	"GPU sampled once": {func(r *call.Record) {
		r.Phases.QueueEngine = lasting(4 * time.Second)
		r.GPU.Utilization, r.GPU.Samples = figureOf(0.3), 1
	}, []string{"engine_queue"}},
	"unattributed, not streamed":      {func(r *call.Record) { whole(r, 12*time.Second) }, []string{"unattributed?"}},
	"unattributed, nothing came":      {func(r *call.Record) { whole(r, 30*time.Second); unanswered(r, call.Timeout, "timeout") }, []string{"upstream_failed", "unattributed?"}},
	"of unknown length, not streamed": {func(r *call.Record) { whole(r, 12*time.Second); r.Output = call.Count{} }, nil},
	"upstream unreachable":            {func(r *call.Record) { unsent(r, call.UpstreamError, "connection_refused") }, []string{"upstream_unreachable"}},
	"upstream failed":                 {func(r *call.Record) { unanswered(r, call.UpstreamError, "status_500") }, []string{"upstream_failed"}},
	"the client's mistake":            {func(r *call.Record) { unanswered(r, call.UpstreamError, "status_400"); r.Status = 400 }, nil},
	"upstream sheds":                  {func(r *call.Record) { unanswered(r, call.UpstreamError, "status_429"); r.Status = 429 }, []string{"upstream_failed"}},
	"broken stream":                   {func(r *call.Record) { r.Outcome, r.Error = call.StreamError, "overloaded_error" }, []string{"upstream_failed"}},
	"gateway stopped":                 {func(r *call.Record) { r.Outcome, r.Error = call.GatewayShutdown, "gateway_shutdown" }, []string{"gateway_fault"}},
	"times that cannot be true":       {func(r *call.Record) { r.Phases.QueueEngine = lasting(-4 * time.Second) }, nil},
}

// bare leaves nothing but what the gateway's own clock tells.
func bare(r *call.Record) {
	unsplitBy(r, 130*ms)
	r.AtDispatch, r.AtFirstToken, r.GPU = call.EngineLoad{}, call.EngineLoad{}, call.GPUWindow{}
	r.Usage, r.ClientRTT, r.UpstreamRTT, r.BytesIn = call.Usage{}, call.Duration{}, call.Duration{}, call.Count{}
	r.Phases.UpstreamRTT, r.PhaseSources.UpstreamRTT = call.Duration{}, ""
}

// split makes the call one that is not streamed, of which the engine tells all.
func split(r *call.Record) {
	r.Stream = false
	r.PhaseSources.Decode = call.FromEngine
}

func running(r *call.Record, then, later int64) {
	r.AtDispatch.Running, r.AtFirstToken.Running = known(then), known(later)
}

func full(r *call.Record, use float64, waiting int64) {
	r.AtDispatch.KVUse, r.AtDispatch.Waiting = figureOf(use), known(waiting)
}

// bounded is a call whose queue only gauges bound.
func bounded(r *call.Record, prefill, bound time.Duration) {
	unsplitBy(r, prefill)
	r.PhaseSources.Prefill, r.QueueBound = call.Inferred, lasting(bound)
}

// refused is a call that the gateway refused after some time in its queue.
func refused(r *call.Record, wait time.Duration) {
	unsent(r, call.Refused, "overloaded")
	r.Status, r.RefusedBy = 503, "queue waited"
	r.Phases.Connect, r.PhaseSources.Connect = call.Duration{}, ""
	r.Phases.QueueGateway = lasting(wait)
}
