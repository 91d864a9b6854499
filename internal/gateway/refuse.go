package gateway

import (
	"fmt"
	"math"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/dialect"
	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/internal/limit"
	"github.com/weirgate/weir/internal/queue"
	"github.com/weirgate/weir/internal/spend"
)

// refusal is an answer that the gateway gives in the upstream's place.
type refusal struct {
	dialect.Refusal
	by    string        // for the record and the metrics: a fixed set of words
	retry time.Duration // when to try again; 0 says nothing
	final bool          // trying again is of no use
}

// What Record.RefusedBy says of refusals that are not by a limit. The limits'
// own are scope and dimension, the queue's "queue" and the reason.
const (
	byKey    = "key"
	byModel  = "model"
	byBudget = "budget"
	byLedger = "ledger"
	byPath   = "path"
	byTime   = "site timeout"
	byMemory = "memory"
)

// keyRefusal returns what a caller with such a key is told; nil for a good one.
// It tells nothing of the key itself.
func keyRefusal(s keys.Status) *refusal {
	message := ""
	switch s {
	case keys.Known:
		return nil
	case keys.Missing:
		message = "this endpoint needs an API key: send it as Authorization: Bearer KEY, or x-api-key"
	case keys.Expired:
		message = "this API key has expired; ask whoever gave it to you for a new one"
	case keys.Revoked:
		message = "this API key was revoked; ask whoever gave it to you for a new one"
	default:
		message = "this API key is not known here; check it for missing characters, or ask for a new one"
	}
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusUnauthorized, Code: "invalid_api_key", Message: message}, by: byKey, final: true}
}

func pathRefusal() *refusal {
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusForbidden, Code: "path_not_allowed",
		Message: "this path is not open through the gateway; whoever runs it can add it to allow_paths"}, by: byPath, final: true}
}

func modelRefusal(alias, model string) *refusal {
	message := fmt.Sprintf("key %s may not use the model %q; ask whoever gave it to you which it may", alias, model)
	if model == "" {
		message = fmt.Sprintf("key %s may use certain models only, and the request does not say which it wants, or cannot be read to its end: "+
			"send plain JSON with one model", alias)
	}
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusForbidden, Code: "model_not_allowed", Message: message}, by: byModel, final: true}
}

func budgetRefusal(alias string, s *spend.State) *refusal {
	return &refusal{Refusal: dialect.Refusal{
		Status: http.StatusTooManyRequests, Code: "insufficient_quota", Type: "insufficient_quota",
		Message: fmt.Sprintf("key %s has spent its budget%s; the next period begins at %s, or ask for a larger one",
			alias, spent(s), s.Resets.Format(time.RFC3339)),
	}, by: byBudget, final: true}
}

// spent tells how much of a budget is spent, as far as that is said in tokens.
func spent(s *spend.State) string {
	if limit, known := s.TokenLimit.Get(); known && s.Tokens >= limit {
		return fmt.Sprintf(" of %d tokens, and used %d", limit, s.Tokens)
	}
	return ""
}

// limitRefusal says which limit, what is used of it, what was asked for, and
// when it will do.
func limitRefusal(r *limit.Refusal) *refusal {
	name, kind := strings.ReplaceAll(r.Dimension.String(), "_", " "), "tokens"
	switch r.Dimension {
	case limit.Requests, limit.Concurrency:
		kind = "requests"
	}
	whose := "the pool " + r.Subject
	switch r.Scope {
	case limit.PerKey:
		whose = "key " + r.Subject
	case limit.PerModel:
		whose = "model " + r.Subject
	case limit.PerKeyModel:
		whose = "key and model " + r.Subject
	}
	out := &refusal{by: r.Wall(), retry: r.RetryAfter, final: r.TooLarge}
	out.Refusal = dialect.Refusal{Status: http.StatusTooManyRequests, Code: "rate_limit_exceeded", Type: kind}
	switch {
	case r.TooLarge:
		out.Message = fmt.Sprintf("the request is too large for the limit of %s for %s: limit %d, requested %d; "+
			"lower max_tokens, shorten the prompt, or ask for a higher limit", name, whose, max(r.Limit, r.Burst), r.Requested)
	case r.RetryAfter > 0:
		out.Message = fmt.Sprintf("the limit of %s for %s is reached: limit %d, used %d, requested %d; try again in %s",
			name, whose, r.Limit, r.Used, r.Requested, r.RetryAfter.Round(time.Millisecond))
	default:
		out.Message = fmt.Sprintf("the limit of %s for %s is reached: limit %d, used %d, requested %d; try again when a call has ended",
			name, whose, r.Limit, r.Used, r.Requested)
		out.retry = time.Second // nobody can know when; a client needs a number
	}
	return out
}

func queueRefusal(r *queue.Rejection) *refusal {
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusServiceUnavailable, Code: "overloaded",
		Message: queueWords[r.Reason] + "; try again in " + r.RetryAfter.Round(time.Second).String()},
		by: "queue " + r.Reason.String(), retry: r.RetryAfter}
}

// queueWords say to a client why the queue refused it.
var queueWords = map[queue.Reason]string{
	queue.Full:      "the service is at its capacity, and as many calls wait as may",
	queue.FullClass: "the service is at its capacity, and as many calls of this class wait as may",
	queue.FullKey:   "as many calls of this key wait already as one key may have",
	queue.FullBytes: "the service is at its capacity, and the calls that wait hold as much memory as they may",
	queue.Waited:    "no place became free for this call in time",
	queue.ShedDoor:  "the service is so busy that the answer would begin too late",
	queue.ShedPop:   "the service was so busy that the answer would have begun too late",
	queue.Closed:    "the service is stopping",
}

func timeRefusal() *refusal {
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusServiceUnavailable, Code: "overloaded",
		Message: "the site's own time for a request was over while the call waited for a free place; try again"},
		by: byTime, retry: time.Second}
}

// busyRefusal is for calls that must be looked at while there is no memory for it.
func busyRefusal() *refusal {
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusServiceUnavailable, Code: "overloaded",
		Message: "the gateway holds as many request bodies as it may, and must read this one before it lets it pass; try again"},
		by: byMemory, retry: time.Second}
}

func ledgerRefusal(error) *refusal {
	return &refusal{Refusal: dialect.Refusal{Status: http.StatusServiceUnavailable, Code: "usage_not_recordable",
		Message: "usage cannot be recorded at the moment, and this service refuses calls that it cannot record; try again"},
		by: byLedger, retry: 5 * time.Second}
}

// window is one limit as headers tell of it.
type window = dialect.LimitWindow

// windows appends to all how the limits stand that apply.
func windows(all []window, st limit.Standing) []window {
	for i, w := range [...]*limit.Window{&st.Requests, &st.Tokens, &st.InputTokens, &st.OutputTokens} {
		if w.Applies {
			kind := [...]dialect.LimitKind{dialect.LimitRequests, dialect.LimitTokens, dialect.LimitInputTokens, dialect.LimitOutputTokens}[i]
			all = append(all, window{Kind: kind, Limit: w.Limit, Remaining: w.Remaining, Reset: w.Reset})
		}
	}
	return all
}

// write answers with the refusal in the dialect's form, and returns how many
// bytes of a body the client got.
func (r *refusal) write(w http.ResponseWriter, d *dialect.Dialect, limits []window) int {
	kind, body := d.ErrorBody(r.Refusal)
	h := w.Header()
	h.Set("Content-Type", kind)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	if r.Status == http.StatusUnauthorized {
		h.Set("Www-Authenticate", "Bearer")
	}
	switch {
	case r.final:
		h.Set("X-Should-Retry", "false") // the SDKs of OpenAI and Anthropic heed it
	case r.retry > 0:
		h.Set("Retry-After", strconv.FormatInt(int64(math.Ceil(r.retry.Seconds())), 10))
		h.Set("Retry-After-Ms", strconv.FormatInt(int64(math.Ceil(float64(r.retry)/float64(time.Millisecond))), 10))
	}
	d.LimitHeaders(h, time.Now(), limits)
	w.WriteHeader(r.Status)
	n, _ := w.Write(body) // a client that is gone needs no answer
	return n
}

// refuse answers the call itself.
func (c *Call) refuse(w http.ResponseWriter, r *refusal) {
	a, e := c.options.Admission, c.entry
	e.refused = r
	var limits []window
	if a.Limits != nil && e.weighed {
		limits = windows(nil, a.Limits.Standing(&e.asked))
	}
	c.refusedBytes = r.write(w, c.dialect, limits)
}

// Bar answers a request that is no inference call where keys are required:
// without a good key, or for a path that is not allowed, the upstream must not
// see it. It returns false for a request that may pass.
func (g *Gateway) Bar(w http.ResponseWriter, r *http.Request, options *Options) bool {
	a := options.Admission
	if a == nil || !a.RequireKey {
		return false
	}
	status := keys.Missing
	if a.Keys != nil {
		_, status = a.Keys.Lookup(keys.FromRequest(r.Header, r.URL.RawQuery), time.Now())
	}
	refused := keyRefusal(status)
	if refused == nil && !a.allows(r.URL.Path) {
		refused = pathRefusal()
	}
	if refused == nil {
		return false
	}
	g.metrics.Barred(refused.by)
	refused.write(w, dialect.ByName("openai.chat"), nil)
	return true
}

// allows tells whether a path that no dialect knows may pass: one of those
// listed, or below one that ends in /*. A path that an upstream may read as
// another (dot segments, double slashes) is none of them.
func (a *Admission) allows(p string) bool {
	if !plainPath(p) {
		return false
	}
	for _, allowed := range a.AllowPaths {
		if p == allowed {
			return true
		}
		if below, ok := strings.CutSuffix(allowed, "*"); ok && strings.HasPrefix(p, below) {
			return true
		}
	}
	return false
}

// plainPath tells whether a path means the same to everybody.
func plainPath(p string) bool {
	clean := path.Clean(p)
	return strings.HasPrefix(p, "/") && (p == clean || p == clean+"/") && !strings.ContainsAny(p, "\\;#?\x00")
}
