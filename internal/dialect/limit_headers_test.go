package dialect

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

func TestLimitHeaders(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	windows := []LimitWindow{
		{LimitRequests, 600, 599, call.Lasting(100 * time.Millisecond)},
		{LimitTokens, 200_000, 0, call.Lasting(6*time.Minute + 123456*time.Nanosecond)},
		{LimitInputTokens, 10, 5, call.Duration{}},
	}
	for name, want := range map[string]http.Header{
		"openai.chat": {
			"X-Ratelimit-Limit-Requests": {"600"}, "X-Ratelimit-Remaining-Requests": {"599"}, "X-Ratelimit-Reset-Requests": {"100ms"},
			"X-Ratelimit-Limit-Tokens": {"200000"}, "X-Ratelimit-Remaining-Tokens": {"0"}, "X-Ratelimit-Reset-Tokens": {"6m0s"},
		},
		"anthropic.messages": {
			"Anthropic-Ratelimit-Requests-Limit": {"600"}, "Anthropic-Ratelimit-Requests-Remaining": {"599"},
			"Anthropic-Ratelimit-Requests-Reset": {"2026-11-30T12:00:00Z"},
			"Anthropic-Ratelimit-Tokens-Limit":   {"200000"}, "Anthropic-Ratelimit-Tokens-Remaining": {"0"},
			"Anthropic-Ratelimit-Tokens-Reset":       {"2026-11-30T12:06:00Z"},
			"Anthropic-Ratelimit-Input-Tokens-Limit": {"10"}, "Anthropic-Ratelimit-Input-Tokens-Remaining": {"5"},
		},
	} {
		h := http.Header{}
		ByName(name).LimitHeaders(h, now, windows)
		if !reflect.DeepEqual(h, want) {
			t.Errorf("%s:\n got %v\nwant %v", name, h, want)
		}
		for k := range h {
			if http.CanonicalHeaderKey(k) != k {
				t.Errorf("%s is not canonical", k)
			}
		}
	}
	for _, theirs := range []string{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Project-Tokens", "Anthropic-Ratelimit-Requests-Limit"} {
		h := http.Header{theirs: {"7"}}
		ByName("openai.chat").LimitHeaders(h, now, windows)
		if len(h) != 1 || h.Get(theirs) != "7" {
			t.Errorf("beside the upstream's %s: %v", theirs, h)
		}
	}
}
