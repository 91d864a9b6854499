package sim

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// api is one way to ask for an answer and to be told it.
type api struct {
	prefix string // of the response id
	parse  func(cfg *Config, body []byte) (*ask, error)
	reply  func(x *exchange) reply
	leads  leadTime
	fail   func(e *Engine, f failure) []byte // a JSON error
}

// leadTime says when a stream's lead is sent.
type leadTime uint8

const (
	leadWithToken    leadTime = iota // before the choice's first token
	leadWhenAccepted                 // with the headers
	leadWhenScheduled
)

// reply writes one API's answer. Each byte slice it returns is one write.
type reply interface {
	lead(choice int) [][]byte
	// delta carries tokens of a choice; finish is why it ended, with the last ones.
	delta(choice int, tokens []piece, finish string) [][]byte
	end() [][]byte
	// failed is an error inside the stream.
	failed() []byte
	// done ends a stream after an error, where the API has such an end.
	done() []byte
	// whole is the answer that is not streamed.
	whole() []byte
}

// failure is an error answer.
type failure struct {
	status     int
	kind       string
	message    string
	retryAfter int // seconds; 0 sends none
}

func (e *Engine) routes() *http.ServeMux {
	mux := http.NewServeMux()
	for path, a := range map[string]*api{
		"/v1/chat/completions": &chatAPI,
		"/v1/completions":      &completionsAPI,
		"/v1/responses":        &responsesAPI,
		"/v1/messages":         &messagesAPI,
		"/v1/embeddings":       &embeddingsAPI,
		"/generate":            &sglangAPI,
		"/completion":          &llamaAPI,
	} {
		mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) { e.serve(w, r, a) })
	}
	mux.HandleFunc("GET /metrics", e.serveMetrics)
	mux.HandleFunc("GET /v1/models", e.serveModels)
	mux.HandleFunc("GET /health", e.serveHealth)
	mux.HandleFunc("GET /version", func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, []byte(`{"version":"0.12.0+weir-sim"}`))
	})
	return mux
}

// ServeHTTP answers as the imitated engine would. It panics with
// http.ErrAbortHandler where the connection is to break.
func (e *Engine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch e.config().Quirks {
	case LlamaCPP:
		w.Header().Set("Server", "llama.cpp")
	default:
		w.Header().Set("Server", "uvicorn")
	}
	e.mux.ServeHTTP(w, r)
}

// serve answers one request for model output.
func (e *Engine) serve(w http.ResponseWriter, r *http.Request, a *api) {
	received := time.Now()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		if tooLarge := new(http.MaxBytesError); errors.As(err, &tooLarge) {
			e.refuse(w, nil, a, failure{413, "invalid_request_error", fmt.Sprintf("the body has more than %d bytes", maxBody), 0})
		}
		return // else the client left
	}
	x, number := e.receive(r, a, body, received)
	defer e.leave(x.call)
	w.Header().Set("X-Request-Id", x.call.truth.RequestID)
	x.faults, err = x.manner.faultsOf(r.Header.Get("X-Sim-Fault"), number)
	if err != nil {
		e.refuse(w, x.call, a, failure{400, "invalid_request_error", err.Error(), 0})
		return
	}
	e.note(x.call, func(t *Truth) { t.Faults = x.faults.String() })
	if e.misbehave(w, r, x) {
		return
	}
	x.ask, err = a.parse(x.cfg, body)
	if err == nil {
		err = x.ask.check(x.cfg)
	}
	if err != nil {
		e.refuse(w, x.call, a, failure{400, "invalid_request_error", err.Error(), 0})
		return
	}
	e.note(x.call, func(t *Truth) { t.Model, t.Stream = x.ask.model, x.ask.stream })
	if !pause(r.Context(), x.cfg.FrontendTime) {
		return
	}
	if err := e.submit(x.call, x.plan()); err != nil {
		e.refuse(w, x.call, a, failure{503, "service_unavailable_error", err.Error(), 1})
		return
	}
	x.reply = a.reply(x)
	if x.ask.stream {
		x.stream(w, r)
	} else {
		x.answer(w, r)
	}
}

// receive gives a request its ids and begins its truth. number counts calls.
func (e *Engine) receive(r *http.Request, a *api, body []byte, received time.Time) (x *exchange, number int) {
	m := e.manner.Load()
	requestID := r.Header.Get("X-Request-Id")
	if !plain(requestID) {
		requestID = ""
	}
	print := hashText(hashText(hashText(m.cfg.Seed, r.URL.Path), string(body)), requestID)
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.repeats) >= 4*m.cfg.Truths {
		clear(e.repeats) // ids repeat only after all that bore them are forgotten
	}
	id := fmt.Sprintf("%016x%08x", mix(print+uint64(e.repeats[print])), uint32(mix(print^1)))
	e.repeats[print]++
	responseID := id
	if requestID == "" {
		requestID = id
	} else if m.cfg.Quirks == VLLM {
		responseID = requestID
	}
	c := &call{signal: make(chan struct{}, 1), truth: Truth{
		ID: a.prefix + responseID, RequestID: requestID, Path: r.URL.Path, Received: received,
	}}
	e.history.add(c)
	e.arrivals++
	return &exchange{e: e, manner: m, cfg: &m.cfg, api: a, call: c, id: c.truth.ID, order: print, created: e.started.Unix()}, e.arrivals - 1
}

// plain tells whether an id may stand in headers, JSON and labels as it is.
func plain(id string) bool {
	for _, c := range []byte(id) {
		if c <= ' ' || c >= 0x7f || c == '"' || c == '\\' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// note changes a call's truth.
func (e *Engine) note(c *call, change func(*Truth)) {
	e.mu.Lock()
	defer e.mu.Unlock()
	change(&c.truth)
}

// misbehave plays the faults that come instead of an answer; false when there is none.
func (e *Engine) misbehave(w http.ResponseWriter, r *http.Request, x *exchange) bool {
	f := &x.faults
	switch {
	case f.hang:
		select {
		case <-r.Context().Done():
			e.note(x.call, func(t *Truth) { t.Aborted, t.End = true, time.Now() })
		case <-e.stop:
			panic(http.ErrAbortHandler)
		}
	case f.status != 0:
		kind := "internal_server_error"
		switch {
		case f.status == 429:
			kind = "rate_limit_error"
		case f.status < 500:
			kind = "invalid_request_error"
		}
		e.refuse(w, x.call, x.api, failure{f.status, kind, "simulated fault " + f.text, f.retryAfter})
	case f.html:
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		e.note(x.call, func(t *Truth) { t.Status = 200 })
		_, _ = io.WriteString(w, "<!doctype html><title>Welcome</title><p>This is not the API.\n")
	case f.empty:
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		e.note(x.call, func(t *Truth) { t.Status = 200 })
		w.WriteHeader(http.StatusOK)
	default:
		return false
	}
	return true
}

// refuse answers with an error.
func (e *Engine) refuse(w http.ResponseWriter, c *call, a *api, f failure) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(f.retryAfter))
	}
	if c != nil {
		e.note(c, func(t *Truth) { t.Status = f.status })
	}
	writeJSON(w, f.status, a.fail(e, f))
}

func writeJSON(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	// The client may have left; there is nobody to tell.
	_, _ = w.Write(body)
}

// pause waits; false when the client left first.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func (e *Engine) serveModels(w http.ResponseWriter, _ *http.Request) {
	owner := strings.ToLower(string(e.config().Quirks))
	writeJSON(w, http.StatusOK, fmt.Appendf(nil,
		`{"object":"list","data":[{"id":%s,"object":"model","created":%d,"owned_by":"%s","max_model_len":%d}]}`,
		quote(e.config().Model), e.started.Unix(), owner, e.config().ModelLen))
}

func (e *Engine) serveHealth(w http.ResponseWriter, _ *http.Request) {
	select {
	case <-e.stop:
		w.WriteHeader(http.StatusServiceUnavailable)
	default:
		w.WriteHeader(http.StatusOK)
	}
}
