package caddymodule

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/weirgate/weir/internal/keys"
	"github.com/weirgate/weir/slo"
)

// TestClassOfACall: the key's class, else that of the matchers that a call meets, else the
// directive's; a header may only lower it. It is the same whatever else is configured, and
// it is the class whose objectives count the call.
func TestClassOfACall(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	file := keyFile(t, keys.Entry{Alias: "vip", Class: "vip"}, keys.Entry{Alias: "slow", Class: "batch"}, keys.Entry{Alias: "plain"})
	const classes = "class agents batch\nclass vip {\nsuccess 99%\nweight 64\n}\n"
	const directive = "class completion\nclass batch header X-Job *\nclass agents {\npath /v1/chat/*\nheader X-Agent *\n}\n"
	type ask struct {
		key    string
		header []string
		class  string
	}
	everybody := []ask{
		{"", nil, "completion"},
		{"", []string{"X-Job", "1"}, "batch"},
		{"", []string{"X-Agent", "a"}, "agents"},
		{"", []string{"X-Job", "1", "X-Agent", "a"}, "batch"},
		{"", []string{"X-Weir-Class", "batch"}, "batch"},
		{"", []string{"X-Weir-Class", "agents"}, "agents"},
		{"", []string{"X-Weir-Class", "interactive"}, "completion"},
		{"", []string{"X-Weir-Class", "vip"}, "completion"},
		{"", []string{"X-Weir-Class", "unheard"}, "completion"},
		{"", []string{"X-Job", "1", "X-Weir-Class", "completion"}, "batch"},
		{"", []string{"X-Agent", "a", "X-Weir-Class", "batch"}, "agents"},
	}
	known := []ask{
		{"vip", nil, "vip"},
		{"vip", []string{"X-Job", "1"}, "vip"},
		{"vip", []string{"X-Weir-Class", "interactive"}, "interactive"},
		{"slow", []string{"X-Agent", "a"}, "batch"},
		{"slow", []string{"X-Weir-Class", "completion"}, "batch"},
		{"plain", nil, "completion"},
		{"plain", []string{"X-Job", "1"}, "batch"},
		{"plain", []string{"X-Weir-Class", "vip"}, "completion"},
	}
	for name, c := range map[string]struct {
		globals, directives string
		asks                []ask
	}{
		"bare":        {classes, directive, everybody},
		"with keys":   {"keys " + file + "\n" + classes, directive, append(everybody, known...)},
		"with limits": {"keys " + file + "\n" + classes, directive + "limit pool {\nrequests_per_minute 100000\n}\nqueue {\ncalls 64\n}\n", append(everybody, known...)},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t)
			r := start(t, "weir {\n"+c.globals+"}", s.http("weir {\n"+c.directives+"}\nreverse_proxy "+upstream))
			want := make(map[string]int64)
			for i, a := range c.asks {
				run, key := fmt.Sprint("class-", i), ""
				if a.key != "" {
					key = keyOf(a.key)
				}
				r.asks(s, key, run, 1, a.header...)
				if rec := r.record(run); rec.Class != a.class {
					t.Errorf("%s with %v is in class %s, want %s", a.key, a.header, rec.Class, a.class)
				}
				want[a.class]++
			}
			for class, n := range want {
				r.wantCounts("after all", class, map[string]slo.Counts{"success": {Good: n}})
			}
		})
	}
}

// TestQueueKnowsClasses: calls of a class of one's own wait with its weight, and not with
// that of the default class; what the queue itself says of a class comes first.
func TestQueueKnowsClasses(t *testing.T) {
	upstream := serve(t, http.HandlerFunc(telling))
	s := newSite(t)
	r := start(t, "weir {\nclass agents batch\nclass vip {\nsuccess 99%\nweight 64\n}\nclass own interactive\nclass completion {\nweight 5\n}\n}",
		s.http("weir {\nqueue {\ncalls 8\nclass own {\nweight 3\n}\n}\n}\nreverse_proxy "+upstream))
	_, body := r.get("/weir/limits")
	var answer struct {
		Pools []struct {
			Queue struct {
				Classes []struct {
					Class  string
					Weight int
				}
			}
		}
	}
	if err := json.Unmarshal(body, &answer); err != nil || len(answer.Pools) != 1 {
		t.Fatalf("%v: %s", err, body)
	}
	got := make(map[string]int)
	for _, c := range answer.Pools[0].Queue.Classes {
		got[c.Class] = c.Weight
	}
	for class, weight := range map[string]int{"interactive": 16, "completion": 5, "batch": 1, "agents": 1, "vip": 64, "own": 3} {
		if got[class] != weight {
			t.Errorf("class %s waits with weight %d, want %d", class, got[class], weight)
		}
	}
}
