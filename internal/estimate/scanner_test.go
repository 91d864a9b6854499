package estimate

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/weirgate/weir/internal/estimate/testdata/corpus"
)

// scan looks at a body that comes in the given pieces.
func scan(pieces ...string) Features {
	var s Scanner
	for _, p := range pieces {
		s.Write([]byte(p))
	}
	return s.Features()
}

// saying is a body with one string in it, which is written as it is.
func saying(s string) string { return `{"p":"` + s + `"}` }

// counted are the features of a text that are not 0; values and one left out.
func counted(f Features) map[int]int64 {
	of := map[int]int64{}
	for i, x := range f.x {
		if x != 0 && i != one && i != values {
			of[i] = int64(x)
		}
	}
	return of
}

type wanted = map[int]int64

func TestFeaturesOfText(t *testing.T) {
	for _, test := range []struct {
		text  string // as it stands in the JSON
		bytes int64
		want  wanted
	}{
		{"", 0, wanted{}},
		{"a", 1, wanted{words: 1}},
		{"Hello, wide world", 17, wanted{words: 3, longer: 2, signs: 1}},
		{"internationally", 15, wanted{words: 1, longer: 11}},
		{"getUserName", 11, wanted{words: 3, joins: 2}},
		{"XML HTTPServer", 14, wanted{words: 2, capitals: 6, longer: 2}},
		{"x2y 12345 7", 11, wanted{words: 2, joins: 2, digits: 7, figures: 3}},
		{"snake_case_v2", 13, wanted{words: 3, longer: 1, signs: 2, joins: 1, digits: 1, figures: 1}},
		{"a  b    c d", 11, wanted{words: 4, spaces: 2}},
		{`a\n\n\nb\r\nc`, 8, wanted{words: 3, newlines: 2}},
		{`\tif x {\n\t\t}`, 11, wanted{words: 2, spaces: 2, signs: 2, newlines: 1}},
		{`a \"b\" \\ \/`, 9, wanted{words: 2, signs: 4}},
		{"(); =>", 6, wanted{signs: 2}},
		{"Straße über", 13, wanted{words: 2, longer: 2, accented: 2}},
		{"Привет, мир", 20, wanted{cyrillic: 9, apart: 2, signs: 1}},
		{"γειά σου", 15, wanted{greek: 7, apart: 2}},
		{"שלום עולם", 17, wanted{hebrew: 8, apart: 2}},
		{"مرحبا بك", 15, wanted{arabic: 7, apart: 2}},
		{"नमस्ते", 18, wanted{devanagari: 6, apart: 1}},
		{"বাংলা", 15, wanted{indic: 5, apart: 1}},
		{"ภาษาไทย", 21, wanted{thai: 7}},
		{"안녕 세계", 13, wanted{hangul: 4, apart: 2}},
		{"東京タワーへ。", 21, wanted{han: 2, kana: 4, others: 1}},
		{"𠀀", 4, wanted{han: 1}},
		{"🙂–€", 10, wanted{others: 3}},
		{"a\xffb\xc3(", 5, wanted{words: 2, others: 2, signs: 1}},
		{"\xe4\xb8", 2, wanted{others: 1}}, // a character broken off by the quote
		{`\ud83d\ude42`, 4, wanted{others: 1}},
		{`\ud83dx`, 7, wanted{others: 1, words: 1}},
		{`\ude42`, 6, wanted{others: 1}},
		{`\ud83d\n`, 7, wanted{others: 1, newlines: 1}},
		{`\u00e9t\u00e9`, 5, wanted{words: 1, accented: 2}},
		{`\u12`, 4, wanted{others: 1}},
		{`\u12zz`, 6, wanted{others: 1, words: 1}},
		{`\u0041b\u0020\u0020c`, 5, wanted{words: 2, spaces: 1}},
		{`\b\f`, 2, wanted{others: 2}},
	} {
		f := scan(saying(test.text))
		if got := counted(f); !maps.Equal(got, test.want) {
			t.Errorf("%q: %v, want %v", test.text, got, test.want)
		}
		if f.Bytes() != test.bytes || f.x[values] != 1 {
			t.Errorf("%q: %d bytes in %v strings, want %d in 1", test.text, f.Bytes(), f.x[values], test.bytes)
		}
	}
}

func TestFeaturesOfStructure(t *testing.T) {
	for body, want := range map[string]wanted{
		`{}`: {},
		// Keys of the body and of messages are the protocol's.
		`{"model":"m","messages":[{"role":"user","content":"hi"}]}`:                {values: 3, words: 3},
		`{"messages":[{"content":[{"type":"text","text":"hi"}]}]}`:                 {values: 2, words: 4, keys: 2},
		`{"tools":[{"function":{"parameters":{"get_it":{"type":"string"}}}}]}`:     {values: 1, words: 5, longer: 8, signs: 1, keys: 3},
		`{"max_tokens":128,"t":-0.5e-3,"stream":true,"x":null}`:                    {numbers: 2},
		`{"input":[1, 22,-333,[4]]}`:                                               {numbers: 4},
		`["a","b"]`:                                                                {values: 2, words: 2},
		`{"a":{"b":"c"},"d":["e",{"f":"g"}]}`:                                      {values: 3, words: 3},
		strings.Repeat("[", 200) + `"x"` + strings.Repeat("]", 300) + `,{"y":"z"}`: {values: 2, words: 2},
		"  \r\n\t{ \"p\" : \"x\" , \"q\" : [ 1 ] }":                                {values: 1, words: 1, numbers: 1},
		`{"p":"never ends`:                                                         {values: 1, words: 2, longer: 1},
		`{"p":"` + strings.Repeat("ab cd ", 100) + `"}`:                            {values: 1, words: 200},
		`{"messages":[{"content":{"0123456789abcdef":"long key"}}]}`:               {values: 1, keys: 1, words: 3, digits: 10, figures: 1, joins: 1, longer: 2},
	} {
		f := scan(body)
		got := counted(f)
		if f.x[values] > 0 {
			got[values] = int64(f.x[values])
		}
		if !f.Known() || !maps.Equal(got, want) {
			t.Errorf("%s: %v, want %v", body, got, want)
		}
	}
}

func TestUnknownBodies(t *testing.T) {
	for _, body := range []string{"", " \n", "--boundary\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n{}", "\x1f\x8b\x08", `"text"`, "7", "model=m&prompt={}", "\xef\xbb\xbf{}"} {
		f := scan(body)
		if f.Known() || f != (Features{}) {
			t.Errorf("%q is known: %+v", body, f)
		}
		if n := New(0, 0).Predict("m", "k", &f); n != 1 {
			t.Errorf("%q: predicted %d, want 1", body, n)
		}
	}
}

func TestMedia(t *testing.T) {
	data := strings.Repeat("iVBORw0KGgo/AAA+", 40)
	text := "data: is what we have, and base64, is how"
	for name, test := range map[string]struct {
		body  string
		count int64
		bytes int64
	}{
		"openai":            {`{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,` + data + `"}}]}]}`, 1, 640 + 22},
		"openai, escaped":   {`{"messages":[{"content":[{"image_url":{"url":"data:image\/png;base64,` + data + `\/\/"}}]}]}`, 1, 640 + 22 + 4},
		"openai by address": {`{"messages":[{"content":[{"image_url":{"url":"https://example.org/a.png"}}]}]}`, 1, 25},
		"openai sound":      {`{"messages":[{"content":[{"input_audio":{"data":"` + data + `","format":"wav"}}]}]}`, 1, 640},
		"responses":         {`{"input":[{"content":[{"type":"input_image","image_url":"data:image/jpeg;base64,` + data + `"},{"image_url":"https://x"}]}]}`, 2, 640 + 23 + 9},
		"anthropic":         {`{"messages":[{"content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + data + `"}}]}]}`, 1, 640},
		"anthropic address": {`{"messages":[{"content":[{"source":{"type":"url","url":"https://example.org"}}]}]}`, 1, 19},
		"gemini":            {`{"contents":[{"parts":[{"inline_data":{"mime_type":"image/png","data":"` + data + `"}}]}]}`, 1, 640},
		"ollama":            {`{"messages":[{"images":["` + data + `","` + data + `"]}]}`, 2, 1280},
		"empty data URL":    {`{"image_url":"data:text/plain;base64,"}`, 1, 23},
		"hidden prompt":     {`{"content":"data:x;base64,` + strings.Repeat("read this ", 9) + `"}`, 0, 0},
		"not base64":        {`{"p":"data:text/plain,hello"}`, 0, 0},
		"a text":            {`{"p":"` + text + `"}`, 0, 0},
		"text under data":   {`{"data":"` + strings.Repeat("some words ", 10) + `"}`, 0, 0},
		"short data":        {`{"data":"` + data[:63] + `"}`, 0, 0},
		"base64 as text":    {`{"content":"` + data + `"}`, 0, 0},
		"cited address":     {`{"annotations":[{"url":"https://example.org"}]}`, 0, 0},
		"address as text":   {`{"content":"https://example.org"}`, 0, 0},
		"a long header":     {`{"p":"data:` + strings.Repeat("x", 200) + `;base64,AAAA"}`, 0, 0},
	} {
		for size := 1; size < 40; size += 6 {
			f := scan(slices.Collect(chunks(test.body, size))...)
			if count, bytes := f.Media(); count != test.count || bytes != test.bytes {
				t.Errorf("%s, in pieces of %d: %d media of %d bytes, want %d of %d", name, size, count, bytes, test.count, test.bytes)
			}
			if test.count > 0 && f.Bytes() > 90 {
				t.Errorf("%s: the medium counts as %d bytes of text", name, f.Bytes())
			}
		}
	}
	// What looked like a medium and is none counts like any other text.
	for _, text := range []string{text, "data:" + strings.Repeat("x", 200), "dat", "d", "data:x,y"} {
		if got, want := scan(saying(text)), scan(saying("d"), saying("")); got.Bytes() != int64(len(text)) || got.x[words] < want.x[words] {
			t.Errorf("%q: %v in %d bytes", text, counted(got), got.Bytes())
		}
	}
	plain, under := scan(`{"x":"`+data[:60]+`"}`), scan(`{"data":"`+data[:60]+`"}`)
	if plain != under {
		t.Errorf("text under data: %v, want %v", counted(under), counted(plain))
	}
}

// chunks cuts s into pieces of a size.
func chunks(s string, size int) func(func(string) bool) {
	return func(yield func(string) bool) {
		for len(s) > 0 {
			n := min(size, len(s))
			if !yield(s[:n]) {
				return
			}
			s = s[n:]
		}
	}
}

// TestSplits: it does not matter how a body is cut.
func TestSplits(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, s := range samples(t, corpus.Test) {
		var scanner Scanner
		for b := s.Body; len(b) > 0; {
			n := min(1+rng.IntN(1<<rng.IntN(12)), len(b))
			scanner.Write(b[:n])
			b = b[n:]
		}
		if got := scanner.Features(); got != s.features {
			t.Fatalf("%s: in pieces %v, whole %v", s.Name, got, s.features)
		}
	}
}

// TestEscapesDoNotMatter: a body that is escaped to ASCII has the same text.
func TestEscapesDoNotMatter(t *testing.T) {
	for _, s := range samples(t, corpus.Test) {
		var v any
		if err := json.Unmarshal(s.Body, &v); err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(v) // with <, > and & escaped, and keys in order
		if err != nil {
			t.Fatal(err)
		}
		var escaped strings.Builder
		for _, c := range string(raw) {
			switch {
			case c < 0x80:
				escaped.WriteRune(c)
			case c < 0x10000:
				fmt.Fprintf(&escaped, "\\u%04X", c)
			default:
				t.Fatalf("%s: %q beyond the first plane", s.Name, c)
			}
		}
		a, b := scan(string(raw)), scan(escaped.String())
		if a != b || a.Bytes() != s.features.Bytes() {
			t.Fatalf("%s: %v, escaped %v, as it came %v", s.Name, a, b, s.features)
		}
	}
}

func TestReset(t *testing.T) {
	var s Scanner
	s.Write([]byte(`{"data":"broken \u12`))
	s.Reset()
	s.Write([]byte(saying("x")))
	if s.Features() != scan(saying("x")) {
		t.Errorf("after Reset: %+v", s.Features())
	}
}

// FuzzScanner: no panic, the same figures however the body is cut, and figures
// that fit together.
func FuzzScanner(f *testing.F) {
	for _, body := range []string{saying(`a\ud83d\ude42\n\u00e9`), `{"data":"` + strings.Repeat("QUJD", 20) + `"}`, `{"image_url":{"url":"http://x"}}`,
		saying("data:x;base64,AAAA"), `{"data":"\/` + strings.Repeat("QUJD", 20) + `"}`, saying(`data:x;base64\,AAAA`), saying("日本語 Ünï\xe4\xb8"), `{"a":[1,-2,true,{"b":{"c":{"d\"e":"f"}}}]}`, saying(`\\\"\\`), "--x"} {
		f.Add([]byte(body), uint8(1))
		f.Add([]byte(body), uint8(5))
	}
	f.Fuzz(func(t *testing.T, body []byte, size uint8) {
		var whole, cut Scanner
		whole.Write(body)
		for b := body; len(b) > 0; {
			n := min(int(size)+1, len(b))
			cut.Write(b[:n])
			b = b[n:]
		}
		a, b := whole.Features(), cut.Features()
		if a != b {
			t.Fatalf("whole %+v, in pieces of %d %+v", a, int(size)+1, b)
		}
		_, mediaBytes := a.Media()
		if a.bytes < 0 || a.blank < 0 || a.blank > a.bytes || mediaBytes < 0 || a.bytes+mediaBytes > int64(len(body)) {
			t.Fatalf("%d bytes of text, %d of media and %d blanks in a body of %d", a.bytes, mediaBytes, a.blank, len(body))
		}
		for i, x := range a.x {
			if x < 0 || x > float64(len(body))+1 {
				t.Fatalf("feature %d is %g in a body of %d bytes", i, x, len(body))
			}
		}
	})
}
