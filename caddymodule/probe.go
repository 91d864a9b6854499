package caddymodule

import (
	"io"
	"net/http"
)

// probe answers the site's own liveness and readiness probes.
func (h *Handler) probe(w http.ResponseWriter, r *http.Request) bool {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	switch r.URL.Path {
	case h.Probes.Live:
		answerProbe(w, true)
	case h.Probes.Ready:
		answerProbe(w, ready())
	default:
		return false
	}
	return true
}

func answerProbe(w http.ResponseWriter, ok bool) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	if !ok {
		w.WriteHeader(http.StatusServiceUnavailable)
		_, _ = io.WriteString(w, "shutting down or not started\n")
		return
	}
	_, _ = io.WriteString(w, "ok\n")
}
