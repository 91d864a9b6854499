package doctor

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkLimit looks at what the answer says of rate limits, above all a 429.
func checkLimit(ctx context.Context, v *visit) Finding {
	reply := v.plain(ctx)
	header := reply.Header
	if header == nil {
		return grey("not known because the call had no answer")
	}
	limits := readLimits(header, v.now())
	if reply.Status != http.StatusTooManyRequests {
		return v.standing(limits)
	}
	kind, message := errorOf(reply.Body)
	told := lower(kind + " " + message)
	if strings.Contains(told, "insufficient_quota") || strings.Contains(told, "billing") || strings.Contains(told, "credit") || strings.Contains(told, "arrears") {
		return red("the account's quota is spent (429)", "That is no rate: waiting does not help.", "see the account's plan, balance and budget at the provider")
	}
	detail := v.spent(limits)
	wait, known := retryAfter(header, v.now())
	v.block("limit", "the endpoint answers 429")
	title := "the endpoint refuses calls for now (429)"
	switch {
	case known:
		return yellow(title, detail, fmt.Sprintf("wait %s, as it asks for, and run the doctor again; send less at once, or ask for a higher limit", roughly(wait)))
	case len(limits) > 0:
		return yellow(title, detail, "wait until the limit resets; send less at once, or ask for a higher limit")
	}
	return yellow(title, "It does not say which limit, nor for how long.", "wait a minute, and run the doctor again; a shared key may be in use elsewhere")
}

// limitState is one limit as the header of an answer tells it.
type limitState struct {
	name             string // what is limited: "requests", "input-tokens"
	limit, remaining int64  // -1 is not told
	reset            time.Duration
	resets           bool // reset is known
}

// standing is how limits stand while none is met.
func (v *visit) standing(limits []limitState) Finding {
	if len(limits) == 0 {
		return green("no limit was met, and none is told of")
	}
	var texts []string
	for _, l := range limits {
		if l.remaining >= 0 && l.limit > 0 {
			texts = append(texts, fmt.Sprintf("%s: %d of %d left", v.foreign(l.name), l.remaining, l.limit))
		}
	}
	for _, l := range limits {
		if l.limit > 0 && l.remaining >= 0 && l.remaining*10 < l.limit {
			return yellow("a limit is nearly used up", strings.Join(texts, "; ")+".", "send less, or ask for a higher limit; see who else uses the key")
		}
	}
	detail := ""
	if len(texts) > 0 {
		detail = strings.ToUpper(texts[0][:1]) + strings.Join(texts, "; ")[1:] + "."
	}
	return green("no limit was met", detail)
}

// spent says which limits have nothing left.
func (v *visit) spent(limits []limitState) string {
	var texts []string
	for _, l := range limits {
		if l.remaining != 0 {
			continue
		}
		text := "no " + v.foreign(l.name) + " are left"
		if l.limit >= 0 {
			text += fmt.Sprintf(" of %d", l.limit)
		}
		if l.resets {
			text += ", and they come back in " + roughly(l.reset)
		}
		texts = append(texts, text)
	}
	if len(texts) == 0 {
		return ""
	}
	all := strings.Join(texts, "; ")
	return strings.ToUpper(all[:1]) + all[1:] + "."
}

// maxLimits bounds what an answer's header may say of limits.
const maxLimits = 8

// readLimits reads the x-ratelimit-… headers of OpenAI and those who follow it,
// and the anthropic-ratelimit-… of Anthropic.
func readLimits(h http.Header, now time.Time) []limitState {
	byName := map[string]*limitState{}
	get := func(name string) *limitState {
		if byName[name] == nil && len(byName) < maxLimits {
			byName[name] = &limitState{name: name, limit: -1, remaining: -1}
		}
		return byName[name]
	}
	names := make([]string, 0, len(h))
	for name := range h {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, header := range names {
		value := h.Get(header)
		rest, is := strings.CutPrefix(lower(header), "x-ratelimit-")
		var field, name string
		if is {
			field, name, _ = strings.Cut(rest, "-") // x-ratelimit-remaining-requests
		} else if rest, is = strings.CutPrefix(lower(header), "anthropic-ratelimit-"); is {
			at := strings.LastIndexByte(rest, '-') // anthropic-ratelimit-input-tokens-remaining
			if at < 0 {
				continue
			}
			name, field = rest[:at], rest[at+1:]
		} else {
			continue
		}
		if name == "" {
			name = "calls" // the plain X-RateLimit-Limit of many gateways
		}
		if field != "limit" && field != "remaining" && field != "reset" {
			continue
		}
		l := get(name)
		if l == nil {
			continue
		}
		switch n, err := strconv.ParseInt(value, 10, 64); {
		case field == "limit" && err == nil && n >= 0:
			l.limit = n
		case field == "remaining" && err == nil:
			l.remaining = max(n, 0)
		case field == "reset":
			l.reset, l.resets = readReset(value, now)
		}
	}
	var limits []limitState
	for _, l := range byName {
		limits = append(limits, *l)
	}
	slices.SortFunc(limits, func(a, b limitState) int { return strings.Compare(a.name, b.name) })
	return limits
}

// readReset reads when a limit resets: a Go duration ("6m0s", "1.5s", "20ms"), a
// time (RFC 3339), seconds since 1970, or seconds from now.
func readReset(value string, now time.Time) (time.Duration, bool) {
	if d, err := time.ParseDuration(value); err == nil {
		return max(d, 0), true
	}
	if t, err := time.Parse(time.RFC3339, value); err == nil {
		return max(t.Sub(now), 0), true
	}
	n, err := strconv.ParseFloat(value, 64)
	if err != nil || n < 0 || n > 1e14 {
		return 0, false
	}
	switch {
	case n > 1e11: // milliseconds since 1970
		return max(time.UnixMilli(int64(n)).Sub(now), 0), true
	case n > 1e8:
		return max(time.Unix(int64(n), 0).Sub(now), 0), true
	}
	return time.Duration(n * float64(time.Second)), true
}

// retryAfter reads for how long the endpoint asks to wait.
func retryAfter(h http.Header, now time.Time) (time.Duration, bool) {
	if ms, err := strconv.ParseFloat(h.Get("Retry-After-Ms"), 64); err == nil && ms >= 0 && ms < 1e12 {
		return time.Duration(ms * float64(time.Millisecond)), true
	}
	value := h.Get("Retry-After")
	if s, err := strconv.ParseFloat(value, 64); err == nil && s >= 0 && s < 1e9 {
		return time.Duration(s * float64(time.Second)), true
	}
	if t, err := http.ParseTime(value); err == nil {
		return max(t.Sub(now), 0), true
	}
	return 0, false
}

// roughly writes a wait as people say it.
func roughly(d time.Duration) string {
	switch {
	case d < time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d < 10*time.Minute:
		return d.Round(time.Second).String()
	}
	return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
}
