package keys

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// TestBrokenFiles: each mistake is refused with an error that says what it is and
// where.
func TestBrokenFiles(t *testing.T) {
	entry := func(fields string) string { return document(t, `"alias":"ok"`, fields) }
	hash := hashed(t, 0)
	for name, c := range map[string]struct {
		text string
		want []string
	}{
		"empty":               {"", []string{"file is empty", `{"version": 1, "keys": []}`}},
		"blank":               {"\n \n", []string{"file is empty"}},
		"cut off":             {document(t, `"alias":"a"`)[:60], []string{"not JSON", "unexpected end"}},
		"not JSON":            {"{\n\"version\":1,\n'keys':[]}", []string{"line 3: this is not JSON"}},
		"two documents":       {`{"version":1,"keys":[]}{}`, []string{"not JSON", "after top-level value"}},
		"a list":              {`[]`, []string{"line 1", "object"}},
		"a number":            {`7`, []string{"line 1", "object"}},
		"no version":          {`{"keys":[]}`, []string{`version is missing`, `"version": 1`}},
		"null":                {`null`, []string{`version is missing`}},
		"newer":               {`{"version":2,"keys":[]}`, []string{"version is 2", "reads version 1"}},
		"version text":        {`{"version":"1","keys":[]}`, []string{"line 1: version: want a whole number"}},
		"unknown at the top":  {`{"version":1,"keys":[],"extra":1}`, []string{`line 1: unknown field "extra"`, "possible are version, keys"}},
		"unknown in a key":    {entry(`"alias":"a","tpm":5`), []string{`line 3: keys[1]: unknown field "tpm"`, "alias, owner, hashes, limits"}},
		"unknown in limits":   {entry(`"alias":"a","limits":{"tokens":5}`), []string{`line 3: keys[1].limits: unknown field "tokens"`, "tokens_per_minute"}},
		"unknown in a hash":   {entry(`"alias":"a","hashes":[{"sha":"#"}]`), []string{`keys[1].hashes[0]: unknown field "sha"`}},
		"unknown in a budget": {entry(`"alias":"a","budget":{"token":1}`), []string{`keys[1].budget: unknown field "token"`}},
		"other case":          {entry(`"Alias":"a"`), []string{`unknown field "Alias"`}},
		"field twice":         {entry(`"alias":"a","revoked":"2026-01-01","revoked":null`), []string{`line 3: keys[1]: field "revoked" comes twice`}},
		"keys an object":      {`{"version":1,"keys":{}}`, []string{"keys: want a list"}},
		"key a text":          {`{"version":1,"keys":["a"]}`, []string{"keys[0]: want an object"}},
		"alias a number":      {entry(`"alias":5`), []string{"keys[1].alias: want a text in quotes"}},
		"bench a text":        {entry(`"alias":"a","bench":"yes"`), []string{"keys[1].bench: want true or false"}},
		"weight a text":       {entry(`"alias":"a","weight":"2"`), []string{"keys[1].weight: want a number"}},
		"models a text":       {entry(`"alias":"a","models":"llama"`), []string{"keys[1].models: want a list"}},
		"limit no count":      {entry(`"alias":"a","limits":{"concurrency":"lots"}`), []string{`line 3: keys[1].limits.concurrency: "lots" is not a count`, "200k"}},
		"limit negative":      {entry(`"alias":"a","limits":{"concurrency":-1}`), []string{`limits.concurrency: "-1" is not a count`}},
		"expires no time":     {entry(`"alias":"a","expires":"soon"`), []string{`keys[1].expires: "soon" is not a time`, "2027-01-01"}},
		"expires a number":    {entry(`"alias":"a","expires":1`), []string{`keys[1].expires: this is not a time`}},

		"no alias":                    {entry(`"owner":"a"`), []string{"keys[1]: alias is missing"}},
		"alias with a blank":          {entry(`"alias":"team a"`), []string{`alias "team a" is not 1 to 64`}},
		"alias too long":              {entry(`"alias":"` + strings.Repeat("a", 65) + `"`), []string{`alias "aaaaaaaaaaaaaaaa"… is not`}},
		"alias like an id":            {entry(`"alias":"zrtiftszyf"`), []string{`"zrtiftszyf" looks like the short id`, "same place in logs", `"zrtiftszyf-1"`}},
		"alias like a word and an id": {entry(`"alias":"production"`), []string{"looks like the short id"}},
		"alias like a key":            {entry(`"alias":"SK-weir-abc"`), []string{"begins like a key"}},
		"alias twice":                 {document(t, `"alias":"a"`, `"alias":"b"`, `"alias":"a"`), []string{`key "a" comes twice`}},
		"no hashes":                   {entry(`"alias":"a","hashes":[]`), []string{`key "a": hashes is missing or empty`}},
		"too many hashes":             {entry(`"alias":"a","hashes":[` + strings.Repeat(`{"sha256":"#"},`, 64) + `{"sha256":"#"}]`), []string{"65 hashes"}},
		"hash null":                   {entry(`"alias":"a","hashes":[null]`), []string{"hashes[0].sha256 is not a SHA-256"}},
		"hash short":                  {entry(`"alias":"a","hashes":[{"sha256":"` + hash[2:] + `"}]`), []string{"hashes[0].sha256 is not a SHA-256", "64 hexadecimal"}},
		"hash long":                   {entry(`"alias":"a","hashes":[{"sha256":"#00"}]`), []string{"hashes[0].sha256 is not a SHA-256"}},
		"hash not hex":                {entry(`"alias":"a","hashes":[{"sha256":"` + strings.Repeat("x", 64) + `"}]`), []string{"is not a SHA-256"}},
		"hash twice":                  {entry(`"alias":"a","hashes":[{"sha256":"#"},{"sha256":"#"}]`), []string{`key "a": hashes[1] comes twice`, `key "a"`}},
		"hash of another":             {entry(`"alias":"a","hashes":[{"sha256":"` + strings.ToUpper(hash) + `"}]`), []string{`key "a": hashes[0] comes twice`, `in key "ok"`}},
		"owner too long":              {entry(`"alias":"a","owner":"` + strings.Repeat("o", 257) + `"`), []string{"owner is longer"}},
		"owner with escapes":          {entry(`"alias":"a","owner":"\u001b[31m"`), []string{"cannot be printed"}},
		"class":                       {entry(`"alias":"a","class":"very fast"`), []string{`class "very fast" is not a name`}},
		"too many models":             {entry(`"alias":"a","models":[` + strings.Repeat(`"m",`, 256) + `"m"]`), []string{"257 models"}},
		"model empty":                 {entry(`"alias":"a","models":["a",""]`), []string{"models[1] is empty"}},
		"model with a tab":            {entry(`"alias":"a","models":["a\tb"]`), []string{"models[0]", "cannot be printed"}},
		"model too long":              {entry(`"alias":"a","models":["` + strings.Repeat("m", 257) + `"]`), []string{"models[0]"}},
		"weight 0":                    {entry(`"alias":"a","weight":0`), []string{"weight 0 is not from 0.001 to 1000"}},
		"weight too large":            {entry(`"alias":"a","weight":1000.5`), []string{"weight 1000.5"}},
		"budget of nothing":           {entry(`"alias":"a","budget":{}`), []string{"neither tokens nor money"}},
		"budget of no money":          {entry(`"alias":"a","budget":{"money":0}`), []string{"budget: money is 0", "leave it out"}},
		"budget too large":            {entry(`"alias":"a","budget":{"money":1e16}`), []string{"money is 1e+16"}},
		"budget per week":             {entry(`"alias":"a","budget":{"tokens":1,"per":"week"}`), []string{`per is "week"`, `"day" and "month"`}},
		"budget warn 0":               {entry(`"alias":"a","budget":{"tokens":1,"warn":0}`), []string{"warn is 0"}},
		"budget warn 80":              {entry(`"alias":"a","budget":{"tokens":1,"warn":80}`), []string{"warn is 80", "at most 1"}},
		"budget nowhere":              {entry(`"alias":"a","budget":{"tokens":1,"zone":"Middle/Earth"}`), []string{`zone "Middle/Earth" is not`, "Europe/Berlin"}},
		"budget local":                {entry(`"alias":"a","budget":{"tokens":1,"zone":"Local"}`), []string{`zone "Local" is not`}},
		"budget elsewhere":            {entry(`"alias":"a","budget":{"tokens":1,"zone":"../../etc/passwd"}`), []string{`is not a time zone`}},
	} {
		f, err := Parse([]byte(c.text))
		if f != nil {
			t.Errorf("%s: it was read", name)
		}
		wantError(t, name, err, c.want...)
	}
}

// TestErrorsShowNoSecret: whoever puts a key into the wrong place of the file
// does not find it in the log. At most 16 characters of it may show, where the
// value is of a kind that people mistype.
func TestErrorsShowNoSecret(t *testing.T) {
	const secret = "sk-weir-0123456789abcdefghijABCDEFGHIJ"
	for _, pattern := range []string{
		`{"%s":1}`, `%s`, `"%s"`, `{"version":"%s"}`, `{"version":1,"keys":"%s"}`, `{"version":1,"keys":["%s"]}`, `{"version":1,"keys":[{"%s":1}]}`,
		`{"version":1,"keys":[{"alias":"%s"}]}`, `{"version":1,"keys":[{"alias":"x%s "}]}`, `{"version":1,"keys":[{"alias":"a","hashes":"%s"}]}`,
		`{"version":1,"keys":[{"alias":"a","hashes":["%s"]}]}`, `{"version":1,"keys":[{"alias":"a","hashes":[{"sha256":"%s"}]}]}`,
		`{"version":1,"keys":[{"alias":"a","hashes":[{"created":"%s"}]}]}`, `{"version":1,"keys":[{"alias":"a","key":"%s"}]}`,
		`{"version":1,"keys":[{"alias":"a","limits":"%s"}]}`, `{"version":1,"keys":[{"alias":"a","limits":{"concurrency":"%s"}}]}`,
		`{"version":1,"keys":[{"alias":"a","limits":{"%s":1}}]}`, `{"version":1,"keys":[{"alias":"a","weight":"%s"}]}`,
		`{"version":1,"keys":[{"alias":"a","class":"%s/"}]}`, `{"version":1,"keys":[{"alias":"a","budget":{"tokens":1,"per":"%s"}}]}`,
		`{"version":1,"keys":[{"alias":"a","budget":{"tokens":1,"zone":"%s"}}]}`, `{"version":1,"keys":[{"alias":"a","owner":"%s\n"}]}`,
	} {
		text := fmt.Sprintf(pattern, secret)
		_, err := Parse([]byte(text))
		if err == nil {
			t.Errorf("%s was read", text)
		} else if strings.Contains(err.Error(), secret[:17]) {
			t.Errorf("%s: the error is %q", text, err)
		}
	}
}

// TestByteOrderMark: some editors put one before the text.
func TestByteOrderMark(t *testing.T) {
	if _, err := Parse([]byte("\xef\xbb\xbf" + document(t, `"alias":"a"`))); err != nil {
		t.Error(err)
	}
}

// FuzzParse: whatever is read is what encoding/json reads, and is written and
// read again as the same.
func FuzzParse(f *testing.F) {
	f.Add([]byte(documented(f)))
	f.Add([]byte(document(f, `"alias":"a","expires":"2027-01-01"`, `"alias":"b","owner":"R&D <x>","weight":0.5`)))
	f.Add([]byte(`{"version":1,"keys":[]}`))
	f.Add([]byte(document(f, ` "ali\u0061s" : "\u0061" , "owner":"\"}]" , "models" : [ "\\" , "[{" ] , "bench":true , "weight" : 1e0`)))
	f.Add([]byte(document(f, `"alias":"a","owner":"\ud800","limits":null,"models":[],"budget":{ "money" :1 }`)))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := Parse(text)
		if err != nil {
			return
		}
		std := new(File)
		if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), std); err != nil || !reflect.DeepEqual(std, file) {
			t.Fatalf("read as\n%+v, by encoding/json as\n%+v, %v", file, std, err)
		}
		once := marshal(t, file)
		again, err := Parse([]byte(once))
		if err != nil {
			t.Fatalf("written as\n%s\nand then refused: %v", once, err)
		}
		if twice := marshal(t, again); !bytes.Equal([]byte(once), []byte(twice)) {
			t.Fatalf("written as\n%s\nand then as\n%s", once, twice)
		}
	})
}

func BenchmarkParse10k(b *testing.B) {
	text := []byte(many(b, 10_000))
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := parse(text); err != nil {
			b.Fatal(err)
		}
	}
}
