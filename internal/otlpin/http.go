package otlpin

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"log"
	"mime"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
)

const (
	typeProtobuf = "application/x-protobuf"
	typeJSON     = "application/json"
)

func (r *Receiver) newHTTPServer() *http.Server {
	return &http.Server{
		Handler:           http.HandlerFunc(r.serveHTTP),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       bodyTime,
		WriteTimeout:      bodyTime + gateWait + 15*time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		// What goes wrong on a connection is the exporter's to say.
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

// fault is why an export is not taken, as HTTP and gRPC say it.
type fault struct {
	http int
	grpc codes.Code
	text string
}

func (f *fault) Error() string { return f.text }

var (
	errBusy     = &fault{http.StatusServiceUnavailable, codes.Unavailable, "too many exports at once: send it again later"}
	errTooLarge = &fault{http.StatusRequestEntityTooLarge, codes.InvalidArgument, "the export is larger than 16 MiB: send smaller batches"}
	errBroken   = &fault{http.StatusBadRequest, codes.InvalidArgument, "the body broke off"}
	errGzip     = &fault{http.StatusBadRequest, codes.InvalidArgument, "the body is not what gzip writes, as Content-Encoding says"}
	errEncoding = &fault{http.StatusUnsupportedMediaType, codes.InvalidArgument, "Content-Encoding may be gzip or none"}
	errPanic    = &fault{http.StatusInternalServerError, codes.Internal, "the receiver has a mistake: see its state"}
	errType     = &fault{http.StatusUnsupportedMediaType, codes.InvalidArgument, "Content-Type must be " + typeProtobuf + " or " + typeJSON}
)

func (r *Receiver) serveHTTP(w http.ResponseWriter, q *http.Request) {
	r.handlers.RLock() // Close waits
	defer r.handlers.RUnlock()
	var what *signal
	for _, s := range signals {
		if q.URL.Path == s.path {
			what = s
		}
	}
	if what == nil || !r.serves(what) {
		http.Error(w, hint, http.StatusNotFound)
		return
	}
	if q.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		http.Error(w, "an export is a POST", http.StatusMethodNotAllowed)
		return
	}
	// The answer is in the encoding of the question.
	contentType, _, err := mime.ParseMediaType(q.Header.Get("Content-Type"))
	if err != nil || contentType != typeProtobuf && contentType != typeJSON {
		r.count.refused.Add(1)
		answer(w, typeJSON, errType.http, status.New(errType.grpc, errType.text).Proto())
		return
	}
	response, err := r.exportHTTP(w, q, what, contentType == typeJSON)
	if err == nil {
		answer(w, contentType, http.StatusOK, response)
		return
	}
	var f *fault
	if !errors.As(err, &f) {
		f = &fault{http.StatusBadRequest, codes.InvalidArgument, err.Error()}
	}
	if f.http == http.StatusServiceUnavailable {
		w.Header().Set("Retry-After", "1")
	}
	answer(w, contentType, f.http, status.New(f.grpc, f.text).Proto())
}

// exportHTTP takes one export and returns the response.
func (r *Receiver) exportHTTP(w http.ResponseWriter, q *http.Request, what *signal, isJSON bool) (proto.Message, error) {
	encoding := strings.ToLower(strings.TrimSpace(q.Header.Get("Content-Encoding")))
	if encoding != "" && encoding != "identity" && encoding != "gzip" {
		r.count.refused.Add(1)
		return nil, errEncoding
	}
	if q.ContentLength > maxBody {
		r.count.refused.Add(1)
		return nil, errTooLarge
	}
	if !r.enter(q.Context()) {
		r.count.refused.Add(1)
		return nil, errBusy
	}
	defer r.leave()
	raw, err := readBody(http.MaxBytesReader(w, q.Body, maxBody), q.ContentLength)
	if err != nil {
		r.count.refused.Add(1)
		return nil, err
	}
	b := &batch{what: what, header: q.Header, body: raw, json: isJSON, gzip: encoding == "gzip"}
	plain := raw
	// Only what reads the body needs it unpacked: the joiner, and a collector that
	// speaks gRPC.
	if b.gzip && (what.traces || r.forwarder.overGRPC()) {
		if plain, err = inflate(raw); err != nil {
			r.count.refused.Add(1)
			return nil, err
		}
		if r.forwarder.overGRPC() {
			b.body, b.gzip = plain, false
		}
	}
	return r.export(b, plain)
}

// readBody reads a body of a known or unknown (−1) length.
func readBody(from io.Reader, length int64) ([]byte, error) {
	var b bytes.Buffer
	if length > 0 { // its claim is believed up to a point
		b.Grow(int(min(length, 1<<20)) + bytes.MinRead)
	}
	_, err := b.ReadFrom(from)
	var tooLarge *http.MaxBytesError
	if errors.As(err, &tooLarge) {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, errBroken
	}
	return b.Bytes(), nil
}

var unzippers sync.Pool // of *gzip.Reader

// inflate unpacks a gzip body, at most maxBody of it.
func inflate(raw []byte) ([]byte, error) {
	z, _ := unzippers.Get().(*gzip.Reader)
	if z == nil {
		z = new(gzip.Reader)
	}
	defer unzippers.Put(z)
	if err := z.Reset(bytes.NewReader(raw)); err != nil {
		return nil, errGzip
	}
	var b bytes.Buffer
	n, err := b.ReadFrom(io.LimitReader(z, maxBody+1))
	if n > maxBody {
		return nil, errTooLarge
	}
	if err != nil {
		return nil, errGzip
	}
	return b.Bytes(), nil
}

// answer writes a message in the given encoding.
func answer(w http.ResponseWriter, contentType string, code int, m proto.Message) {
	var body []byte
	var err error
	if contentType == typeJSON {
		body, err = protojson.Marshal(m)
	} else {
		body, err = proto.Marshal(m)
	}
	if err != nil { // cannot be: the messages are our own
		http.Error(w, "the answer cannot be written", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", contentType)
	w.WriteHeader(code)
	_, _ = w.Write(body) // a client that has gone needs no answer
}
