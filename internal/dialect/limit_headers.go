package dialect

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// LimitKind is what a limit counts, as limit headers name it.
type LimitKind uint8

const (
	LimitRequests LimitKind = iota
	LimitTokens             // input and output together
	LimitInputTokens
	LimitOutputTokens
	limitKinds
)

// LimitWindow is how one limit per minute stands.
type LimitWindow struct {
	Kind             LimitKind
	Limit, Remaining int64
	// Reset is the time until nothing of the limit is used; unknown when that
	// will not come.
	Reset call.Duration
}

// limitHeaders are a dialect's header names by kind, "" where clients know none,
// and how a reset is written.
type limitHeaders func(h http.Header, now time.Time, w *LimitWindow)

// LimitHeaders tells the client in the dialect's own headers how its limits
// stand. An answer that has such headers already keeps them, all of them: they
// are the upstream's, and one of theirs beside one of ours would tell of neither.
func (d *Dialect) LimitHeaders(h http.Header, now time.Time, windows []LimitWindow) {
	for name := range h {
		if strings.HasPrefix(name, openAIPrefix) || strings.HasPrefix(name, anthropicPrefix) {
			return
		}
	}
	for i := range windows {
		d.limits(h, now, &windows[i])
	}
}

const (
	openAIPrefix    = "X-Ratelimit-"
	anthropicPrefix = "Anthropic-Ratelimit-"
)

var (
	openAIKinds    = [limitKinds]string{LimitRequests: "Requests", LimitTokens: "Tokens"}
	anthropicKinds = [limitKinds]string{LimitRequests: "Requests", LimitTokens: "Tokens",
		LimitInputTokens: "Input-Tokens", LimitOutputTokens: "Output-Tokens"}
)

// openAILimits writes resets as Go prints a duration, rounded to milliseconds.
func openAILimits(h http.Header, _ time.Time, w *LimitWindow) {
	kind := openAIKinds[w.Kind]
	if kind == "" {
		return
	}
	h[openAIPrefix+"Limit-"+kind] = []string{strconv.FormatInt(w.Limit, 10)}
	h[openAIPrefix+"Remaining-"+kind] = []string{strconv.FormatInt(w.Remaining, 10)}
	if reset, known := w.Reset.Get(); known {
		h[openAIPrefix+"Reset-"+kind] = []string{reset.Round(time.Millisecond).String()}
	}
}

// anthropicLimits writes resets as moments (RFC 3339).
func anthropicLimits(h http.Header, now time.Time, w *LimitWindow) {
	prefix := anthropicPrefix + anthropicKinds[w.Kind]
	h[prefix+"-Limit"] = []string{strconv.FormatInt(w.Limit, 10)}
	h[prefix+"-Remaining"] = []string{strconv.FormatInt(w.Remaining, 10)}
	if reset, known := w.Reset.Get(); known {
		h[prefix+"-Reset"] = []string{now.Add(reset).UTC().Format(time.RFC3339)}
	}
}
