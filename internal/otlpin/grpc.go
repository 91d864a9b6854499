package otlpin

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	_ "google.golang.org/grpc/encoding/gzip" // lets exporters compress
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
)

// newGRPCServer serves every method through one handler, with messages as bytes:
// they go on as they came, and are read like those of HTTP.
func (r *Receiver) newGRPCServer() *grpc.Server {
	return grpc.NewServer(
		grpc.ForceServerCodecV2(rawCodec{}),
		grpc.UnknownServiceHandler(r.serveGRPC),
		grpc.MaxRecvMsgSize(maxBody),
		grpc.MaxHeaderListSize(maxHeader),
		grpc.MaxConcurrentStreams(16),
		// Fixed windows bound what the transport holds of bodies that wait their turn.
		grpc.StaticStreamWindowSize(64<<10),
		grpc.StaticConnWindowSize(256<<10),
		grpc.ConnectionTimeout(5*time.Second),
		grpc.WaitForHandlers(true),
	)
}

func (r *Receiver) serveGRPC(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	var what *signal
	for _, s := range signals {
		if s.method == method {
			what = s
		}
	}
	if what == nil || !r.serves(what) {
		return status.Error(codes.Unimplemented, hint)
	}
	answer, err := r.exportGRPC(stream, what)
	if err == nil {
		return stream.SendMsg(&answer)
	}
	var f *fault
	if errors.As(err, &f) {
		return status.Error(f.grpc, f.text)
	}
	if s, is := status.FromError(err); is {
		return s.Err()
	}
	return status.Error(codes.InvalidArgument, err.Error())
}

func (r *Receiver) exportGRPC(stream grpc.ServerStream, what *signal) (answer []byte, err error) {
	if !r.enter(stream.Context()) {
		r.count.refused.Add(1)
		return nil, errBusy
	}
	body, err := r.receive(stream)
	defer r.leave()
	if err != nil {
		r.count.refused.Add(1)
		return nil, err
	}
	md, _ := metadata.FromIncomingContext(stream.Context())
	response, err := r.export(&batch{what: what, header: headerOf(md), body: body}, body)
	if err != nil {
		return nil, err
	}
	return proto.Marshal(response)
}

// receive reads the message within bodyTime: a client that sends none must not keep
// its place.
func (r *Receiver) receive(stream grpc.ServerStream) ([]byte, error) {
	type received struct {
		body []byte
		err  error
	}
	got := make(chan received, 1)
	r.running.Go(func() { // ends with the stream, which ends with the handler
		var in received
		in.err = stream.RecvMsg(&in.body)
		got <- in
	})
	timer := time.NewTimer(bodyTime)
	defer timer.Stop()
	select {
	case in := <-got:
		return in.body, in.err
	case <-timer.C:
		return nil, status.Error(codes.DeadlineExceeded, "the message did not arrive in time")
	}
}

// headerOf makes metadata an HTTP header; what belongs to gRPC itself stays behind.
func headerOf(md metadata.MD) http.Header {
	h := http.Header{}
	for name, values := range md {
		if name == "" || name[0] == ':' || strings.HasPrefix(name, "grpc-") {
			continue
		}
		h[http.CanonicalHeaderKey(name)] = values
	}
	return h
}

// metadataOf is the way back. Names that gRPC keeps for itself are left out.
func metadataOf(h http.Header) metadata.MD {
	md := metadata.MD{}
	for name, values := range h {
		name = strings.ToLower(name)
		if strings.HasPrefix(name, "grpc-") || name == "content-type" || name == "content-encoding" || name == "user-agent" ||
			!token(name) || !plain(values) && !strings.HasSuffix(name, "-bin") {
			continue
		}
		md[name] = values
	}
	return md
}

// token tells whether gRPC takes a name of metadata.
func token(name string) bool {
	return name != "" && strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == ""
}

// rawCodec passes messages as bytes, *[]byte.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }

func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, is := v.(*[]byte)
	if !is {
		return nil, fmt.Errorf("marshal %T: only bytes are sent", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, is := v.(*[]byte)
	if !is {
		return fmt.Errorf("unmarshal %T: only bytes are received", v)
	}
	*b = data.Materialize()
	return nil
}

// withHeader adds a header to the outgoing metadata.
func withHeader(ctx context.Context, h http.Header) context.Context {
	return metadata.NewOutgoingContext(ctx, metadataOf(h))
}
