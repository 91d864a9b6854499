//go:build unix

package alert

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCommands: what people paste into a shell does what it says, whatever a client called
// its model.
func TestCommands(t *testing.T) {
	for _, name := range []string{"llama-3:8b", "org/model@v1.2", "", "-x", "a b", "it's", "$(touch /tmp/x)", "`id`", `"; rm -rf \`, "ä*?", "'''", "#", "~"} {
		v := &view{key: key{"interactive", "ttft_p99", name, Page}}
		commands := v.commands()
		if len(commands) != 2 || commands[0] != "weir slo --class interactive" {
			t.Fatalf("the commands are %q", commands)
		}
		out, err := exec.Command("sh", "-c", `weir() { for a; do printf '%s|' "$a"; done; }; `+commands[1]).Output()
		want := "diagnose|--since|5m|--class|interactive|"
		if name != "" {
			want += "--model|" + name + "|"
		}
		if err != nil || string(out) != want {
			t.Errorf("%s runs as %q (%v), want %q", commands[1], out, err, want)
		}
	}
	long := &view{key: key{"interactive", "ttft_p99", strings.Repeat("x", 300), Page}}
	if strings.Contains(long.commands()[1], "--model") || strings.Contains(long.link(&Options{AdminURL: "http://a"}, "/weir/slo", nil), "model") {
		t.Error("a name that was cut is looked for")
	}
}
