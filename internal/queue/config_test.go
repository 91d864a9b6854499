package queue

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestConfigValidate(t *testing.T) {
	many := map[string]Class{}
	for i := range maxClasses {
		many[fmt.Sprint(i)] = Class{Weight: 1}
	}
	for name, c := range map[string]struct {
		cfg  Config
		want string // part of the error; "" is none
	}{
		"zero":             {Config{}, ""},
		"no waiting":       {Config{MaxWaiting: NoWaiting}, ""},
		"own class":        {Config{Classes: map[string]Class{"agents": {Weight: 2}}}, ""},
		"built-in default": {Config{Classes: map[string]Class{Batch: {}}}, ""},
		"calls":            {Config{Calls: -1}, "calls in flight -1"},
		"tokens":           {Config{Tokens: -1}, "tokens in flight -1"},
		"waiting":          {Config{MaxWaiting: -2}, "waiting calls -2"},
		"waiting much":     {Config{MaxWaiting: maxWaiting + 1}, "waiting calls"},
		"per class":        {Config{MaxPerClass: -1}, "per class -1"},
		"per key":          {Config{MaxPerKey: -1}, "per key -1"},
		"bytes":            {Config{MaxBytes: -1}, "held bytes -1"},
		"wait":             {Config{MaxWait: -1}, "longest wait"},
		"wait for ever":    {Config{MaxWait: 25 * time.Hour}, "longest wait"},
		"unnamed class":    {Config{Classes: map[string]Class{"": {Weight: 1}}}, "no name"},
		"no weight":        {Config{Classes: map[string]Class{"agents": {}}}, `class "agents" has no weight: state one`},
		"negative weight":  {Config{Classes: map[string]Class{Batch: {Weight: -1}}}, "weight -1"},
		"too heavy":        {Config{Classes: map[string]Class{Batch: {Weight: maxWeight + 1}}}, "want 1 to"},
		"too many classes": {Config{Classes: many}, "67 classes: want at most 64"},
	} {
		err := c.cfg.Validate()
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if q, err := New("p", c.cfg); (err == nil) != (c.want == "") || (q == nil) != (err != nil) {
			t.Errorf("%s: New returned %v, %v", name, q, err)
		}
	}
}

func TestConfigDefaults(t *testing.T) {
	got := Config{}.filled()
	if got.MaxWaiting != 1000 || got.MaxPerClass != 750 || got.MaxPerKey != 250 || got.MaxBytes != 64<<20 || got.MaxWait != 30*time.Second {
		t.Errorf("defaults are %+v", got)
	}
	for class, weight := range map[string]int{Interactive: 16, Completion: 4, Batch: 1} {
		if got.Classes[class].Weight != weight {
			t.Errorf("%s weighs %d, want %d", class, got.Classes[class].Weight, weight)
		}
	}
	if got := (Config{MaxWaiting: 1}).filled(); got.MaxPerClass != 1 || got.MaxPerKey != 1 {
		t.Errorf("one place, yet %d per class and %d per key", got.MaxPerClass, got.MaxPerKey)
	}
	if got := (Config{Classes: map[string]Class{Batch: {Weight: 3}, "x": {Weight: 2}}}).filled(); got.Classes[Batch].Weight != 3 || got.Classes["x"].Weight != 2 || len(got.Classes) != 4 {
		t.Errorf("classes are %v", got.Classes)
	}
}

func TestTokens(t *testing.T) {
	for in, want := range map[Tokens][2]int64{
		{}:                                {0, 0},
		{Input: 100, Output: 10}:          {110, 120},
		{Input: -5, Output: 3}:            {3, 6},
		{Input: 1 << 62, Output: -1}:      {1 << 40, 1 << 40},
		{Input: 1 << 62, Output: 1 << 62}: {1 << 41, 3 << 40},
	} {
		if in.Sum() != want[0] || in.Cost() != want[1] {
			t.Errorf("%+v: sum %d, cost %d, want %v", in, in.Sum(), in.Cost(), want)
		}
	}
	if p := (Tokens{}).price(); p != 1 {
		t.Errorf("a call of unknown size is charged %v", p)
	}
}

func TestReasons(t *testing.T) {
	seen := map[string]bool{}
	for i, r := range Reasons {
		if int(r) != i || r.String() == "" || seen[r.String()] {
			t.Errorf("reason %d is %d, %q", i, r, r)
		}
		seen[r.String()] = true
		text := (&Rejection{Queue: "pool", Class: Batch, Reason: r, Limit: 3, RetryAfter: 2 * time.Second}).Error()
		if !strings.HasPrefix(text, `queue "pool": `) || !strings.HasSuffix(text, ": retry in about 2s") {
			t.Errorf("%s reads %q", r, text)
		}
	}
	if r := Reason(200); r.String() != "reason_200" {
		t.Errorf("an unknown reason is %q", r)
	}
}
