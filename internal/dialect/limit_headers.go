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

// limitHeaders are a dialect's names of headers, and how it writes resets.
type limitHeaders struct {
	names [limitKinds]limitNames // zero where its clients know none
	reset func(b []byte, now time.Time, reset time.Duration) []byte
}

type limitNames struct{ limit, remaining, reset string }

const (
	openAIPrefix    = "X-Ratelimit-"
	anthropicPrefix = "Anthropic-Ratelimit-"
)

// openAILimits writes resets as Go prints a duration, rounded to milliseconds.
var openAILimits = &limitHeaders{
	names: [limitKinds]limitNames{
		LimitRequests: {openAIPrefix + "Limit-Requests", openAIPrefix + "Remaining-Requests", openAIPrefix + "Reset-Requests"},
		LimitTokens:   {openAIPrefix + "Limit-Tokens", openAIPrefix + "Remaining-Tokens", openAIPrefix + "Reset-Tokens"},
	},
	reset: func(b []byte, _ time.Time, reset time.Duration) []byte {
		return append(b, reset.Round(time.Millisecond).String()...)
	},
}

// anthropicLimits writes resets as moments (RFC 3339).
var anthropicLimits = &limitHeaders{
	names: [limitKinds]limitNames{
		LimitRequests:     anthropicNames("Requests"),
		LimitTokens:       anthropicNames("Tokens"),
		LimitInputTokens:  anthropicNames("Input-Tokens"),
		LimitOutputTokens: anthropicNames("Output-Tokens"),
	},
	reset: func(b []byte, now time.Time, reset time.Duration) []byte {
		return now.Add(reset).UTC().AppendFormat(b, time.RFC3339)
	},
}

func anthropicNames(kind string) limitNames {
	return limitNames{anthropicPrefix + kind + "-Limit", anthropicPrefix + kind + "-Remaining", anthropicPrefix + kind + "-Reset"}
}

// LimitHeaders tells the client in the dialect's own headers how its limits
// stand. An answer that has such headers already keeps them, all of them: they
// are the upstream's, and one of theirs beside one of ours would tell of neither.
func (d *Dialect) LimitHeaders(h http.Header, now time.Time, windows []LimitWindow) {
	if len(windows) == 0 {
		return
	}
	for name := range h {
		if strings.HasPrefix(name, openAIPrefix) || strings.HasPrefix(name, anthropicPrefix) {
			return
		}
	}
	// All values lie in one string and one slice: this runs for each call.
	var space [256]byte
	text := space[:0]
	var ends [3 * int(limitKinds)]int
	names := make([]string, 0, len(ends))
	put := func(name string) {
		ends[len(names)] = len(text)
		names = append(names, name)
	}
	for i := range windows {
		w := &windows[i]
		n := &d.limits.names[w.Kind]
		if n.limit == "" {
			continue
		}
		text = strconv.AppendInt(text, w.Limit, 10)
		put(n.limit)
		text = strconv.AppendInt(text, w.Remaining, 10)
		put(n.remaining)
		if reset, known := w.Reset.Get(); known {
			text = d.limits.reset(text, now, reset)
			put(n.reset)
		}
	}
	all, from := string(text), 0
	values := make([]string, len(names))
	for i, name := range names {
		values[i] = all[from:ends[i]]
		from = ends[i]
		h[name] = values[i : i+1 : i+1]
	}
}
