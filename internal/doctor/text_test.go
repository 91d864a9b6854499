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
	var out bytes.Buffer
	if err := Text(&out, some, false); err != nil {
		t.Fatal(err)
	}
	want := `ok    tcp          port 8000 accepts connections
warn  usage        only on request
                   Why.
                   Next: do this
FAIL  compression  broken
                   Next: do that
--    gpu          not looked for because it is elsewhere
`
	if out.String() != want {
		t.Errorf("the text is\n%swant\n%s", out.String(), want)
	}
	var coloured bytes.Buffer
	if err := Text(&coloured, some, true); err != nil {
		t.Fatal(err)
	}
	plain := coloured.String()
	for _, m := range marks {
		plain = strings.ReplaceAll(plain, m.colour, "")
	}
	if plain = strings.ReplaceAll(plain, "\x1b[0m", ""); plain != want {
		t.Errorf("without its colours the text is\n%s", plain)
	}
	if strings.Count(coloured.String(), "\x1b[") != 2*len(some) {
		t.Error("not every mark has a colour")
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
	if err := Text(broken{}, some, false); err == nil {
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
