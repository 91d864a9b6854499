package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
)

// slowBody is a body too large to be read ahead, of which the rest comes a piece
// each step, or not at all.
type slowBody struct {
	first io.Reader
	step  time.Duration
	piece int
	cut   chan struct{}
}

func (b *slowBody) Read(p []byte) (int, error) {
	if n, err := b.first.Read(p); err == nil {
		return n, nil
	}
	select {
	case <-time.After(b.step):
		return copy(p, strings.Repeat(" ", b.piece)), nil
	case <-b.cut:
		return 0, os.ErrDeadlineExceeded
	}
}
func (b *slowBody) Close() error { return nil }

// cuttable is a writer whose read deadline ends the body.
type cuttable struct {
	*httptest.ResponseRecorder
	cut chan struct{}
}

func (w cuttable) SetReadDeadline(time.Time) error { close(w.cut); return nil }

// TestUploadComesAlong: a body that is sent on while it comes cannot hold the
// call's place for as long as its client likes, not even a byte at a time; one that
// is only slow may take its time.
func TestUploadComesAlong(t *testing.T) {
	for name, c := range map[string]struct {
		step  time.Duration
		piece int
		after time.Duration // when it is cut; 0 never
	}{
		"silent":   {time.Hour, 1, time.Minute},
		"trickles": {time.Second, 100, time.Minute},
		"slow":     {time.Second, 4 << 10, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h := newHouse(t, enforced(call.Limits{Concurrency: call.Known(1)}), queue.Config{Calls: 1})
				h.options.Admission.ReaderTimeout = time.Minute
				cut := make(chan struct{})
				body := &slowBody{first: strings.NewReader(strings.Repeat(" ", MaxLook+1)), step: c.step, piece: c.piece, cut: cut}
				r := httptest.NewRequest("POST", "/v1/chat/completions", body)
				start := time.Now()
				rec := h.call(cuttable{httptest.NewRecorder(), cut}, r, func(w http.ResponseWriter, r *http.Request) error {
					buf := make([]byte, 64<<10)
					for n := 0; time.Since(start) < 10*time.Minute; {
						m, err := r.Body.Read(buf)
						if n += m; err != nil {
							return err
						}
					}
					w.WriteHeader(http.StatusOK)
					return nil
				})
				took := time.Since(start)
				if c.after > 0 && (took != c.after || rec.Outcome != call.Timeout || rec.Error != "upload_stalled") {
					t.Errorf("%s (%s) after %v", rec.Outcome, rec.Error, took)
				}
				if c.after == 0 && took < 10*time.Minute {
					t.Errorf("cut after %v: %s (%s)", took, rec.Outcome, rec.Error)
				}
				h.empty(t, name)
			})
		})
	}
}

// TestUploadIsNotWaitedFor: a client is not cut off for the time in which nobody asks it
// for anything: the upstream is late to read, or has read all but the end.
func TestUploadIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHouse(t, enforced(call.Limits{Concurrency: call.Known(1)}), queue.Config{Calls: 1})
		h.options.Admission.ReaderTimeout = time.Minute
		cut := make(chan struct{})
		const length = MaxLook + 5*leastUpload
		body := &slowBody{first: strings.NewReader(strings.Repeat(" ", length)), step: 59 * time.Second, piece: 1, cut: cut}
		r := httptest.NewRequest("POST", "/v1/chat/completions", body)
		r.ContentLength = length + 1
		rec := h.call(cuttable{httptest.NewRecorder(), cut}, r, func(w http.ResponseWriter, r *http.Request) error {
			for _, n := range []int64{MaxLook, 10, 2 * leastUpload, 10, 3*leastUpload - 20, 1} {
				time.Sleep(10 * time.Minute)
				if got, err := io.CopyN(io.Discard, r.Body, n); got != n || err != nil {
					t.Errorf("%d bytes of %d, %v", got, n, err)
				}
			}
			time.Sleep(10 * time.Minute)
			_, err := io.WriteString(w, "{}")
			return err
		})
		if rec.Outcome == call.Timeout || rec.Error == "upload_stalled" {
			t.Errorf("%s (%s)", rec.Outcome, rec.Error)
		}
		h.empty(t, "late")
	})
}

// TestUnreadBodiesAreNotFree: a prompt that cannot be read is charged by its size,
// and its model counts wherever it stands.
func TestUnreadBodiesAreNotFree(t *testing.T) {
	prompt := strings.Repeat("How wide is the river? ", 400) // 9,200 bytes
	plain := `{"model":"big","max_tokens":1,"messages":[{"role":"user","content":"` + prompt + `"}]}`
	for name, c := range map[string]struct {
		body, encoding, kind string
		model                string
	}{
		"plain":           {plain, "", "", "big"},
		"said to be gzip": {plain, "gzip", "", "big"},
		"gzip":            {"\x1f\x8b" + plain, "gzip", "", ""},
		"byte order mark": {"\ufeff" + plain, "", "", "big"},
		"said to be form": {plain, "", "multipart/form-data; boundary=x", ""},
		"capitals":        {strings.Replace(plain, "model", "MODEL", 1), "", "", "big"},
		"hidden":          {strings.Replace(plain, "How", "data:x;base64,How", 1), "", "", "big"},
	} {
		h := newHouse(t, limit.Policy{Mode: limit.Enforce, Rules: []limit.Rule{
			{Scope: limit.PerPool, Limits: call.Limits{TokensPerMinute: call.Known(100_000)}},
			{Scope: limit.PerModel, Model: "big", Limits: call.Limits{RequestsPerMinute: call.Known(1)}},
		}}, queue.Config{})
		var last *call.Record
		for range 2 {
			r := httptest.NewRequest("POST", "/v1/chat/completions", strings.NewReader(c.body))
			if c.encoding != "" {
				r.Header.Set("Content-Encoding", c.encoding)
			}
			if c.kind != "" {
				r.Header.Set("Content-Type", c.kind)
			}
			last = h.call(httptest.NewRecorder(), r, func(w http.ResponseWriter, _ *http.Request) error { w.WriteHeader(200); return nil })
		}
		if in := last.EstimatedInput.Or(0); in < 1200 || in > 4000 {
			t.Errorf("%s: a prompt of 2,000 tokens is expected to have %d", name, in)
		}
		if refused := last.RefusedBy == "model requests_per_minute"; refused != (c.model != "") {
			t.Errorf("%s: refused by %q", name, last.RefusedBy)
		}
	}
}

// TestNoMemoryToLook: where a body must be read before it may pass, and cannot for
// want of memory, the client is told to try again.
func TestNoMemoryToLook(t *testing.T) {
	h := newHouse(t, limit.Policy{}, queue.Config{})
	h.options.Admission.Keys = withKey(t, keys.Entry{Alias: "team-a", Models: []string{"m"}}, aKey)
	h.looks.limit = 1
	r := chat("x", 5, "")
	r.Header.Set("Authorization", "Bearer "+aKey)
	w := httptest.NewRecorder()
	if rec := h.call(w, r, func(http.ResponseWriter, *http.Request) error { t.Error("sent"); return nil }); w.Code != 503 || rec.RefusedBy != "memory" ||
		w.Header().Get("Retry-After") == "" {
		t.Errorf("%d by %q: %s", w.Code, rec.RefusedBy, w.Body)
	}
}
