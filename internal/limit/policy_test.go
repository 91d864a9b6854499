package limit

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/call"
)

func TestNames(t *testing.T) {
	for d, name := range []string{"requests_per_minute", "tokens_per_minute", "input_tokens_per_minute",
		"output_tokens_per_minute", "concurrency", "tokens_in_flight"} {
		if got := Dimension(d).String(); got != name {
			t.Errorf("dimension %d is %q, want %q", d, got, name)
		}
	}
	for s, name := range []string{"key", "model", "key_model", "pool"} {
		if got := Scope(s).String(); got != name {
			t.Errorf("scope %d is %q, want %q", s, got, name)
		}
	}
	for m, name := range []string{"off", "shadow", "enforce"} {
		if got := Mode(m).String(); got != name {
			t.Errorf("mode %d is %q, want %q", m, got, name)
		}
	}
	if Mode(3).String() != "invalid" || Scope(4).String() != "invalid" || Dimension(6).String() != "invalid" {
		t.Error("a value that does not exist has a name")
	}
	if got := (&Refusal{Scope: PerKeyModel, Dimension: TokensInFlight}).Wall(); got != "key_model tokens_in_flight" {
		t.Errorf("wall %q", got)
	}
	if got := (&Refusal{Scope: 9}).Wall(); got != "invalid" {
		t.Errorf("wall %q", got)
	}
}

func TestPolicyJSON(t *testing.T) {
	policy := Policy{Mode: Shadow, Replicas: 3, MaxBuckets: 7, Rules: []Rule{
		{Scope: PerKeyModel, Key: "k", Model: "m", Limits: six(1, 2, 3, 4, 5, 0), Burst: Burst{Tokens: call.Known(9)}},
		{Scope: PerPool, Limits: tpm(5)}}}
	b, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"mode":"shadow"`, `"scope":"key_model"`, `"tokens_in_flight":0`, `"burst":{"tokens":9}`} {
		if !strings.Contains(string(b), part) {
			t.Errorf("%s lacks %s", b, part)
		}
	}
	var back Policy
	if err := json.Unmarshal(b, &back); err != nil || !reflect.DeepEqual(back, policy) {
		t.Errorf("%+v came back as %+v, %v", policy, back, err)
	}
	b, _ = json.Marshal(Refused{Key: "k", Scope: PerModel, Dimension: Concurrency, Mode: Enforce, Calls: 2})
	if want := `{"key":"k","scope":"model","dimension":"concurrency","mode":"enforce","calls":2}`; string(b) != want {
		t.Errorf("got %s, want %s", b, want)
	}
	var r Refused
	if err := json.Unmarshal(b, &r); err != nil || r.Dimension != Concurrency {
		t.Errorf("%+v, %v", r, err)
	}
	for _, bad := range []string{`{"mode":"on"}`, `{"mode":"off","rules":[{"scope":"user"}]}`} {
		if err := json.Unmarshal([]byte(bad), &back); err == nil || !strings.Contains(err.Error(), "is none of") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, tt := range []struct {
		name   string
		policy Policy
		errs   []string // none: valid
	}{
		{"zero", Policy{}, nil},
		{"one of each scope", enforced(perKey(tpm(1)), Rule{Scope: PerModel, Model: "m", Limits: tpm(0)},
			Rule{Scope: PerKeyModel, Key: "k", Model: "m", Limits: rpm(MaxLimit)}, Rule{Scope: PerPool, Limits: atOnce(1)}), nil},
		{"general and specific", enforced(perKey(tpm(1)), Rule{Scope: PerKey, Key: "k", Limits: tpm(2)}), nil},
		{"burst", enforced(Rule{Limits: tpm(1), Burst: Burst{Tokens: call.Known(5)}}), nil},
		{"mode", Policy{Mode: 3}, []string{"mode 3"}},
		{"replicas", Policy{Replicas: -1}, []string{"replicas -1"}},
		{"buckets", Policy{MaxBuckets: -1}, []string{"max_buckets -1"}},
		{"scope", enforced(Rule{Scope: 4, Limits: tpm(1)}), []string{"scope 4"}},
		{"key of a model", enforced(Rule{Scope: PerModel, Key: "k", Limits: tpm(1)}), []string{`rule 1 (model): key "k"`}},
		{"model of a key", enforced(Rule{Scope: PerKey, Model: "m", Limits: tpm(1)}), []string{`rule 1 (key): model "m"`}},
		{"names of a pool", enforced(Rule{Scope: PerPool, Key: "k", Model: "m", Limits: tpm(1)}), []string{`key "k"`, `model "m"`}},
		{"no limits", enforced(Rule{}), []string{"limits nothing"}},
		{"below 0", enforced(perKey(atOnce(-1))), []string{"concurrency -1"}},
		{"too large", enforced(perKey(tpm(MaxLimit + 1))), []string{"tokens_per_minute"}},
		{"burst alone", enforced(Rule{Limits: rpm(1), Burst: Burst{Tokens: call.Known(5)}}), []string{"burst of tokens_per_minute without a limit"}},
		{"burst of 0", enforced(Rule{Limits: rpm(1), Burst: Burst{Requests: call.Known(0)}}), []string{"burst 0 of requests_per_minute"}},
		{"burst too large", enforced(Rule{Limits: rpm(1), Burst: Burst{Requests: call.Known(MaxLimit + 1)}}), []string{"burst"}},
		{"twice", enforced(perKey(tpm(1)), perKey(rpm(1))), []string{"rule 2 (key): there is a rule"}},
		{"all at once", Policy{Mode: 9, Replicas: -1, Rules: []Rule{{}}}, []string{"mode 9", "replicas -1", "rule 1"}},
	} {
		err := tt.policy.Validate()
		if (err == nil) != (len(tt.errs) == 0) {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		for _, part := range tt.errs {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q lacks %q", tt.name, err, part)
			}
		}
	}
}

func TestApplyRejectsAndKeeps(t *testing.T) {
	p, _ := newPool(t, enforced(perKey(tpm(100))))
	err := p.Apply(Policy{Mode: Off, Replicas: -1})
	if err == nil || !strings.HasPrefix(err.Error(), "apply limits to pool test: check limits: ") {
		t.Errorf("got %v", err)
	}
	refuse(t, p, Request{Key: "k", Input: 101})
}

// TestSpecific: each dimension comes from the most specific rule that names it.
func TestSpecific(t *testing.T) {
	p, _ := newPool(t, enforced(
		Rule{Scope: PerKeyModel, Limits: six(1, 1, 1, 1, 1, 1)},
		Rule{Scope: PerKeyModel, Model: "m", Limits: call.Limits{TokensPerMinute: call.Known(2), RequestsPerMinute: call.Known(2), InputTokensPerMinute: call.Known(2)}},
		Rule{Scope: PerKeyModel, Key: "k", Limits: call.Limits{TokensPerMinute: call.Known(3), RequestsPerMinute: call.Known(3)}},
		Rule{Scope: PerKeyModel, Key: "k", Model: "m", Limits: tpm(4)},
		Rule{Scope: PerKey, Limits: tpm(100), Burst: Burst{Tokens: call.Known(500)}},
		Rule{Scope: PerKey, Key: "k", Limits: rpm(7)},
	))
	for _, tt := range []struct {
		scope      Scope
		key, model string
		own        call.Limits
		want       [numDimensions]int64 // -1: does not apply
	}{
		{PerKeyModel, "k", "m", call.Limits{}, [...]int64{3, 4, 2, 1, 1, 1}},
		{PerKeyModel, "k", "n", call.Limits{}, [...]int64{3, 3, 1, 1, 1, 1}},
		{PerKeyModel, "l", "m", call.Limits{}, [...]int64{2, 2, 2, 1, 1, 1}},
		{PerKeyModel, "l", "n", call.Limits{}, [...]int64{1, 1, 1, 1, 1, 1}},
		{PerKeyModel, "", "", call.Limits{}, [...]int64{1, 1, 1, 1, 1, 1}},
		{PerKey, "k", "", call.Limits{}, [...]int64{7, 100, -1, -1, -1, -1}},
		{PerKey, "l", "", atOnce(5), [...]int64{-1, 100, -1, -1, 5, -1}},
		{PerKey, "k", "", six(9, 9, 9, 9, 9, 9), [...]int64{9, 9, 9, 9, 9, 9}},
		{PerModel, "", "m", call.Limits{}, [...]int64{-1, -1, -1, -1, -1, -1}},
		{PerKey, "l", "", call.Limits{TokensPerMinute: call.Known(-5), RequestsPerMinute: call.Known(math.MaxInt64)},
			[...]int64{MaxLimit, 0, -1, -1, -1, -1}},
	} {
		z := p.effective(subject{tt.scope, names{tt.key, tt.model}}, tt.own)
		for d, want := range tt.want {
			got := z[d].limit
			if !z[d].applies {
				got = -1
			}
			if got != want {
				t.Errorf("%s %q %q: %s is %d, want %d", tt.scope, tt.key, tt.model, Dimension(d), got, want)
			}
		}
	}
	general := p.effective(subject{PerKey, names{key: "l"}}, call.Limits{})
	own := p.effective(subject{PerKey, names{key: "l"}}, tpm(300))
	if general[Tokens].burst != 500 || own[Tokens].burst != 300 {
		t.Errorf("bursts %d and %d, want 500 of the rule and 300 of the key's own limit", general[Tokens].burst, own[Tokens].burst)
	}
}

// TestReplicas: each gateway gets its part, and never nothing of something.
func TestReplicas(t *testing.T) {
	for _, tt := range []struct {
		limit, burst int64 // of each dimension
		replicas     int64
		want         size
	}{
		{120, 0, 1, size{true, 120, 120, 2}},
		{120, 0, 4, size{true, 30, 30, 0.5}},
		{100, 0, 3, size{true, 33, 33, 100.0 / 180}},
		{2, 0, 3, size{true, 1, 1, 2.0 / 180}},
		{120, 10, 4, size{true, 30, 2, 0.5}},
		{120, 3, 4, size{true, 30, 1, 0.5}},
		{0, 0, 3, size{true, 0, 0, 0}},
	} {
		l, b := six(tt.limit, tt.limit, tt.limit, tt.limit, tt.limit, tt.limit), Burst{}
		if tt.burst > 0 {
			n := call.Known(tt.burst)
			b = Burst{n, n, n, n}
		}
		z := newSizes(&l, &b, tt.replicas)
		for d := range numRates {
			if z[d] != tt.want {
				t.Errorf("%d, burst %d, over %d: %s is %+v, want %+v", tt.limit, tt.burst, tt.replicas, Dimension(d), z[d], tt.want)
			}
		}
		if z[Concurrency].limit != tt.want.limit || z[TokensInFlight].limit != tt.want.limit {
			t.Errorf("%d over %d: caps are %d and %d, want %d", tt.limit, tt.replicas, z[Concurrency].limit, z[TokensInFlight].limit, tt.want.limit)
		}
	}

	policy := enforced(perKey(atOnce(2)))
	policy.Replicas = 4
	p, _ := newPool(t, policy)
	own := tpm(400)
	admit(t, p, Request{Key: "k", KeyLimits: &own, Input: 100})
	if ref := refuse(t, p, Request{Key: "k", KeyLimits: &own}); ref.Dimension != Concurrency || ref.Limit != 1 {
		t.Errorf("got %+v", ref)
	}
	if got := keyTokens(t, p, "k"); got != 0 {
		t.Errorf("the key's own 400 over 4 gateways left %v of 100 after 100", got)
	}
}
