package otlpin

import (
	"context"
	"errors"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/weirgate/weir/internal/call"
)

func TestRetryAfter(t *testing.T) {
	for s, want := range map[string]time.Duration{"": 0, "x": 0, "-1": 0, "0": 0, "7": 7 * time.Second, "99999999": time.Hour,
		"Wed, 21 Oct 2026 07:28:00 GMT": 0} {
		if got := retryAfter(s); got != want {
			t.Errorf("%q is %v, want %v", s, got, want)
		}
	}
}

// TestGRPCVerdicts: what a collector answers over gRPC decides whether a batch is
// sent again, and when.
func TestGRPCVerdicts(t *testing.T) {
	withDelay := func(code codes.Code, d time.Duration) error {
		s, err := status.New(code, "").WithDetails(&errdetails.DebugInfo{Detail: "x"}, &errdetails.RetryInfo{RetryDelay: durationpb.New(d)})
		if err != nil {
			t.Fatal(err)
		}
		return s.Err()
	}
	tests := []struct {
		name   string
		answer error
		again  bool
		after  time.Duration
		batch  bool // the batch's fault
	}{
		{"unavailable", status.Error(codes.Unavailable, ""), true, 0, false},
		{"unavailable for a while", withDelay(codes.Unavailable, 3*time.Second), true, 3 * time.Second, false},
		{"exhausted", status.Error(codes.ResourceExhausted, ""), false, 0, true},
		{"exhausted for a while", withDelay(codes.ResourceExhausted, 2*time.Second), true, 2 * time.Second, false},
		{"exhausted, back in time", withDelay(codes.ResourceExhausted, -time.Second), true, 0, false},
		{"data loss", status.Error(codes.DataLoss, ""), true, 0, false},
		{"invalid", status.Error(codes.InvalidArgument, ""), false, 0, true},
		{"unauthenticated", status.Error(codes.Unauthenticated, ""), false, 0, false},
		{"unimplemented", status.Error(codes.Unimplemented, ""), false, 0, false},
	}
	for _, test := range tests {
		where, err := parseTarget(grpcCollector(t, func(grpc.ServerStream) error { return test.answer }).address)
		if err != nil {
			t.Fatal(err)
		}
		s, err := newSender(where)
		if err != nil {
			t.Fatal(err)
		}
		err = s.send(context.Background(), something(1))
		s.close()
		var again *pause
		var no *refusal
		switch {
		case errors.As(err, &again):
			if !test.again || again.after != test.after {
				t.Errorf("%s: again after %v", test.name, again.after)
			}
		case errors.As(err, &no):
			if test.again || no.batch != test.batch {
				t.Errorf("%s: refused, the batch's fault: %v", test.name, no.batch)
			}
		default:
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

// TestBetterThan: the order is total, so that what comes first does not matter.
func TestBetterThan(t *testing.T) {
	at := begun
	// From the best to the worst.
	order := []EngineSpan{
		{Match: ByParent, Start: at.Add(1), Queue: call.Lasting(1), Prefill: call.Lasting(2)},
		{Match: ByParent, Start: at.Add(1), TTFT: call.Lasting(4), Queue: call.Lasting(1), Prefill: call.Lasting(1)},
		{Match: ByParent, Start: at.Add(1), PrefillWithQueue: call.Lasting(5)},
		{Match: ByParent, Start: at.Add(1), SpanID: spanOf(1), Queue: call.Lasting(1)},
		{Match: ByParent, Start: at.Add(1), SpanID: spanOf(2)},
		{Match: ByParent, Start: at, TTFT: call.Lasting(1)},
		{Match: ByTrace, Start: at.Add(9), TTFT: call.Lasting(0)},
	}
	for i := range order {
		for j := range order {
			if got := order[i].betterThan(&order[j]); got != (i < j) {
				t.Errorf("%d is better than %d: %v", i, j, got)
			}
		}
	}
}
