package otlpin

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/known/durationpb"
)

type grpcSender struct{ conn *grpc.ClientConn }

func newGRPCSender(t target) (sender, error) {
	secret := insecure.NewCredentials()
	if t.secure {
		secret = credentials.NewTLS(&tls.Config{MinVersion: tls.VersionTLS12})
	}
	conn, err := grpc.NewClient(t.address, grpc.WithTransportCredentials(secret))
	if err != nil {
		return nil, errTarget
	}
	return &grpcSender{conn: conn}, nil
}

func (s *grpcSender) overGRPC() bool { return true }
func (s *grpcSender) close()         { _ = s.conn.Close() } // says only that it was closed before

func (s *grpcSender) send(ctx context.Context, b *batch) error {
	body := b.body
	if b.json {
		var err error
		if body, err = transcode(b.what, body); err != nil {
			return &refusal{err: err, batch: true}
		}
	}
	var answer []byte
	err := s.conn.Invoke(withHeader(ctx, b.header), b.what.method, &body, &answer, grpc.ForceCodecV2(rawCodec{}))
	if err == nil {
		return nil
	}
	st := status.Convert(err)
	// The message may come from anywhere; the code says enough for a person.
	said := fmt.Errorf("the collector answered %s", st.Code())
	// What may be sent again: https://opentelemetry.io/docs/specs/otlp/#failures
	switch st.Code() {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled, codes.Aborted, codes.OutOfRange, codes.DataLoss:
		after, _ := retryDelay(st)
		return &pause{err: said, after: after}
	case codes.ResourceExhausted: // only if the collector says when; else the batch is too large
		if after, asked := retryDelay(st); asked {
			return &pause{err: said, after: after}
		}
		return &refusal{err: said, batch: true}
	case codes.InvalidArgument:
		return &refusal{err: said, batch: true}
	}
	return &refusal{err: said}
}

// retryDelay finds google.rpc.RetryInfo among the details. It is read by hand, so
// that it does not matter whether the program links that type.
func retryDelay(st *status.Status) (delay time.Duration, asked bool) {
	for _, d := range st.Proto().GetDetails() {
		if !strings.HasSuffix(d.GetTypeUrl(), "/google.rpc.RetryInfo") {
			continue
		}
		asked = true
		_ = each(d.GetValue(), func(f field) error { // what cannot be read asks for no certain delay
			var after durationpb.Duration
			if f.num == 1 && f.typ == protowire.BytesType && proto.Unmarshal(f.data, &after) == nil {
				delay = max(after.AsDuration(), 0)
			}
			return nil
		})
	}
	return delay, asked
}

// maxValues bounds the values of a JSON body that is to be built up in memory:
// each may become a message of some hundred bytes. A batch of 4,000 rich
// spans has as many.
const maxValues = 1 << 18

// transcode makes protobuf of a request in OTLP's JSON.
func transcode(what *signal, body []byte) ([]byte, error) {
	if bytes.Count(body, []byte{'{'})+bytes.Count(body, []byte{','}) > 2*maxValues {
		return nil, errors.New("the JSON holds too much to be made protobuf for a collector over gRPC: send smaller batches, or forward over HTTP")
	}
	m := what.request()
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, m); err != nil {
		return nil, errMalformed // the error quotes the body
	}
	if err := unhexIDs(m.ProtoReflect()); err != nil {
		return nil, err
	}
	out, err := proto.Marshal(m)
	if err != nil {
		return nil, errMalformed // text that is no UTF-8
	}
	return out, nil
}

// unhexIDs puts right the ids of a message: OTLP's JSON writes them in
// hexadecimal, and protojson read them as base64, which can be undone.
func unhexIDs(m protoreflect.Message) (err error) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.Kind() == protoreflect.MessageKind && fd.IsList():
			for i := range v.List().Len() {
				if err = unhexIDs(v.List().Get(i).Message()); err != nil {
					return false
				}
			}
		case fd.Kind() == protoreflect.MessageKind:
			err = unhexIDs(v.Message())
		case fd.Kind() == protoreflect.BytesKind && isID(fd.Name()):
			id, wrong := hex.DecodeString(base64.StdEncoding.EncodeToString(v.Bytes()))
			if wrong != nil {
				err = errMalformed
				break
			}
			m.Set(fd, protoreflect.ValueOfBytes(id))
		}
		return err == nil
	})
	return err
}

func isID(name protoreflect.Name) bool {
	return name == "trace_id" || name == "span_id" || name == "parent_span_id"
}
