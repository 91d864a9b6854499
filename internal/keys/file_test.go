package keys

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// documented returns the example in the comment of File.
func documented(t testing.TB) string {
	t.Helper()
	source, err := os.ReadFile("file.go")
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(source)) {
		if example, is := strings.CutPrefix(line, "//\t"); is {
			b.WriteString(example)
		}
	}
	return b.String()
}

// TestDocumentedFile: the example of the documentation is read as it says, has
// every field there is, and is written as it was.
func TestDocumentedFile(t *testing.T) {
	text := documented(t)
	f, table, err := parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	want := &Key{
		Alias: "team-a", Owner: "Ada Lovelace, analytics", Models: []string{"llama-*", "qwen3-8b"}, Class: "batch", Weight: 2, Bench: true,
		Limits: call.Limits{TokensPerMinute: call.Known(200_000), InputTokensPerMinute: call.Known(150_000), OutputTokensPerMinute: call.Known(50_000),
			RequestsPerMinute: call.Known(600), Concurrency: call.Known(16), TokensInFlight: call.Known(64_000)},
		Budget:  &Budget{Tokens: call.Known(10_000_000), Money: 25, Per: Monthly, Zone: berlin, Warn: 0.8},
		Expires: time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), Revoked: time.Date(2026, 12, 24, 18, 0, 0, 0, time.UTC),
	}
	if got := table.keys[0]; !reflect.DeepEqual(got, want) {
		t.Errorf("read as\n%+v, want\n%+v", got, want)
	}
	if len(table.entries) != 1 || !table.entries[0].until.Equal(time.Date(2026, 11, 9, 9, 30, 0, 0, time.UTC)) {
		t.Errorf("the hash ends at %v", table.entries[0].until)
	}
	again := strings.ReplaceAll(marshal(t, f), "2027-01-01T00:00:00Z", "2027-01-01")
	var got, wanted any
	if json.Unmarshal([]byte(again), &got) != nil || json.Unmarshal([]byte(text), &wanted) != nil || !reflect.DeepEqual(got, wanted) {
		t.Errorf("written as\n%s", again)
	}
	var missing func(v reflect.Value, path string)
	missing = func(v reflect.Value, path string) {
		switch {
		case v.IsZero():
			t.Errorf("the example lacks %s", path)
		case v.Type() == reflect.TypeFor[Moment]():
		case v.Kind() == reflect.Pointer:
			missing(v.Elem(), path)
		case v.Kind() == reflect.Slice:
			missing(v.Index(0), path)
		case v.Kind() == reflect.Struct:
			for i := range v.NumField() {
				missing(v.Field(i), path+"."+jsonName(v.Type().Field(i)))
			}
		}
	}
	missing(reflect.ValueOf(f).Elem(), "")
}

// TestLimitsAreThoseOfCall: every limit there is can be given to a key, under
// the same name.
func TestLimitsAreThoseOfCall(t *testing.T) {
	limits, fields := reflect.TypeFor[call.Limits](), reflect.TypeFor[EntryLimits]()
	if limits.NumField() != fields.NumField() {
		t.Errorf("%d limits, %d in the file", limits.NumField(), fields.NumField())
	}
	for i := range limits.NumField() {
		field := limits.Field(i)
		name := jsonName(field)
		_, table, err := parse([]byte(document(t, fmt.Sprintf(`"alias":"a","limits":{%q:"3k"}`, name))))
		if err != nil {
			t.Error(err)
			continue
		}
		want := call.Limits{}
		reflect.ValueOf(&want).Elem().Field(i).Set(reflect.ValueOf(call.Known(3000)))
		if got := table.keys[0].Limits; got != want {
			t.Errorf("%s is read as %+v", name, got)
		}
	}
}

func TestDefaults(t *testing.T) {
	_, table, err := parse([]byte(document(t, `"alias":"a"`, `"alias":"b","budget":{"tokens":0,"per":null},"weight":null,"limits":null,"expires":null,"models":[]`)))
	if err != nil {
		t.Fatal(err)
	}
	if want := (&Key{Alias: "a", Weight: 1}); !reflect.DeepEqual(table.keys[0], want) {
		t.Errorf("read as %+v", table.keys[0])
	}
	if want := (&Key{Alias: "b", Weight: 1, Budget: &Budget{Tokens: call.Known(0), Per: Monthly, Zone: time.UTC, Warn: 0.8}}); !reflect.DeepEqual(table.keys[1], want) {
		t.Errorf("read as %+v, %+v", table.keys[1], table.keys[1].Budget)
	}
}

func TestStatusAt(t *testing.T) {
	past, future := moment(noon.Add(-time.Hour)), moment(noon.Add(time.Hour))
	for name, c := range map[string]struct {
		entry Entry
		want  Status
	}{
		"plain":                 {Entry{Hashes: []Hash{{}}}, Known},
		"later":                 {Entry{Hashes: []Hash{{}}, Expires: future}, Known},
		"now":                   {Entry{Hashes: []Hash{{}}, Expires: moment(noon)}, Expired},
		"over":                  {Entry{Hashes: []Hash{{}}, Expires: past}, Expired},
		"old hash over":         {Entry{Hashes: []Hash{{Expires: past}, {}}}, Known},
		"all hashes over":       {Entry{Hashes: []Hash{{Expires: past}, {Expires: past}}}, Expired},
		"revoked":               {Entry{Hashes: []Hash{{}}, Revoked: past}, Revoked},
		"revoked in advance":    {Entry{Hashes: []Hash{{}}, Revoked: future}, Revoked},
		"revoked and then over": {Entry{Hashes: []Hash{{}}, Revoked: past, Expires: past}, Revoked},
	} {
		if got := c.entry.StatusAt(noon); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	if got := fmt.Sprint(Missing, Unknown, Expired, Revoked, Known, Status(9)); got != "missing unknown expired revoked known invalid" {
		t.Error(got)
	}
}

func TestMoment(t *testing.T) {
	for in, want := range map[string]time.Time{
		"2027-01-01":                time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC),
		"2027-01-01T08:00:00Z":      time.Date(2027, 1, 1, 8, 0, 0, 0, time.UTC),
		"2027-01-01T08:00:00+02:00": time.Date(2027, 1, 1, 6, 0, 0, 0, time.UTC),
		"2027-01-01T08:00:00.5Z":    time.Date(2027, 1, 1, 8, 0, 0, 5e8, time.UTC),
	} {
		if got, err := ParseMoment(in); !got.Equal(want) || err != nil {
			t.Errorf("%q is %v, %v", in, got, err)
		}
	}
	for _, in := range []string{"", "2027", "01.01.2027", "2027-02-30", "2027-01-01 08:00", "0001-01-01", "1969-12-31T23:59:59Z", "9999-12-31T23:59:59-01:00", "30d"} {
		_, err := ParseMoment(in)
		wantError(t, in, err, "2027-01-01T08:00:00Z")
	}
}
