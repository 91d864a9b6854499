package doctor

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

var some = []Finding{
	{Check: "tcp", Level: Green, Title: "port 8000 accepts connections"},
	{Check: "usage", Level: Yellow, Title: "only on request", Detail: "Why.", Next: "do this"},
	{Check: "compression", Level: Red, Title: "broken", Next: "do that"},
	{Check: "gpu", Level: Grey, Title: "not looked for because it is elsewhere"},
}

func TestText(t *testing.T) {
	list := append(slices.Clone(some),
		Finding{Check: "stream", Level: Grey, Title: "not checked because broken", Cause: "compression"},
		Finding{Check: "usage", Level: Grey, Title: "not checked because broken", Cause: "compression"},
		Finding{Check: "record", Level: Grey, Title: "not checked because there is no gateway at the address that was given, whatever it is", Cause: "gateway"})
	var out bytes.Buffer
	if err := Text(&out, list, 0, false); err != nil {
		t.Fatal(err)
	}
	want := `ok    tcp          port 8000 accepts connections
warn  usage        only on request
                   Why.
                   Next: do this
FAIL  compression  broken
                   Next: do that
--    gpu          not looked for because it is elsewhere
--    2 checks not made because broken: stream, usage
--    1 check not made because there is no gateway at the address that was
      given, whatever it is: record
1 ok, 1 warn, 1 FAIL, 4 not known
`
	if out.String() != want {
		t.Errorf("the text is\n%swant\n%s", out.String(), want)
	}
	var coloured bytes.Buffer
	if err := Text(&coloured, list, 0, true); err != nil {
		t.Fatal(err)
	}
	plain := coloured.String()
	for _, m := range marks {
		plain = strings.ReplaceAll(plain, m.colour, "")
	}
	if plain = strings.ReplaceAll(plain, "\x1b[0m", ""); plain != want {
		t.Errorf("without its colours the text is\n%s", plain)
	}
	if strings.Count(coloured.String(), "\x1b[") != 2*(len(some)+2) {
		t.Error("not every mark has a colour")
	}
}

// TestTextWraps: no line is wider than the page, but for words that are, and no
// word is lost.
func TestTextWraps(t *testing.T) {
	long := strings.Repeat("some words and http://127.0.0.1:8000/v1/chat/completions ", 6)
	list := []Finding{{Check: "path", Level: Red, Title: long, Detail: long, Next: long}, {Check: "stream", Level: Grey, Title: "not checked because " + long, Cause: "path"}}
	for width, most := range map[int]int{0: 80, -1: 80, 80: 80, 120: 120, 200: 200, 3: 61} {
		var out bytes.Buffer
		if err := Text(&out, list, width, false); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := len(strings.TrimRight(line, "\n")); n > most {
				t.Errorf("width %d: a line of %d: %s", width, n, line)
			}
		}
		if n := strings.Count(out.String(), "/v1/chat/completions"); n != 24 {
			t.Errorf("width %d: %d addresses, want 24", width, n)
		}
	}
}

// TestPage: findings come out at once, but for checks that were not made.
func TestPage(t *testing.T) {
	var out bytes.Buffer
	p := NewPage(&out, 0, false)
	if err := p.Add(some[0]); err != nil || !strings.Contains(out.String(), "port 8000") {
		t.Errorf("%v: %s", err, out.String())
	}
	before := out.String()
	if err := p.Add(Finding{Check: "x", Level: Grey, Title: "not checked because y", Cause: "y"}); err != nil || out.String() != before {
		t.Errorf("%v: %s", err, out.String())
	}
}

// TestUnmade: after a fault at the root the checks that need it are one line.
func TestUnmade(t *testing.T) {
	findings := run(t, of("http://127.0.0.1:1/v1"))
	var out bytes.Buffer
	if err := Text(&out, findings, 0, false); err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(out.String(), "127.0.0.1 port 1"); n != 2 {
		t.Errorf("the fault is told %d times:\n%s", n, out.String())
	}
	if f := find(t, findings, "stream"); f.Cause != "tcp" || f.Level != Grey {
		t.Errorf("%+v", f)
	}
}

func TestJSON(t *testing.T) {
	var out bytes.Buffer
	if err := JSON(&out, some); err != nil {
		t.Fatal(err)
	}
	var got Report
	if err := json.Unmarshal(out.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Worst != Red || !slices.Equal(got.Findings, some) {
		t.Errorf("%+v", got)
	}
	out.Reset()
	if err := JSON(&out, nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), `"findings": []`) {
		t.Errorf("no findings are %s", out.String())
	}
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, errors.New("disk full") }

func TestWriteFails(t *testing.T) {
	if err := Text(broken{}, some, 0, false); err == nil {
		t.Error("Text passes over an error")
	}
	if err := JSON(broken{}, some); err == nil {
		t.Error("JSON passes over an error")
	}
}

func TestWorst(t *testing.T) {
	for _, c := range []struct {
		levels []Level
		want   Level
	}{
		{nil, Grey}, {[]Level{Grey}, Grey}, {[]Level{Grey, Green}, Green}, {[]Level{Green, Yellow, Grey}, Yellow}, {[]Level{Red, Green, Yellow}, Red},
	} {
		var findings []Finding
		for _, l := range c.levels {
			findings = append(findings, Finding{Level: l})
		}
		if got := Worst(findings); got != c.want {
			t.Errorf("the worst of %v is %s, want %s", c.levels, got, c.want)
		}
	}
}

// TestChecks: names are stable, unlike, and fit their column; what a check needs
// comes before it.
func TestChecks(t *testing.T) {
	seen := map[string]bool{}
	longest := 0
	for _, c := range checks {
		if seen[c.name] {
			t.Errorf("two checks are called %s", c.name)
		}
		for _, need := range c.needs {
			if !seen[need] {
				t.Errorf("%s needs %s, which does not come before it", c.name, need)
			}
		}
		seen[c.name] = true
		longest = max(longest, len(c.name))
	}
	if longest != checkWidth {
		t.Errorf("the column of names is %d wide, the longest has %d", checkWidth, longest)
	}
}
