package jsonscan

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
)

// seen keeps all that was reported, as text.
type seen struct{ values []string }

func (s *seen) Value(v Value) {
	s.values = append(s.values, fmt.Sprintf("%d %d %q %d @%d empty=%t", v.Field, v.Kind, v.Raw, v.Len, v.Offset, v.Empty))
}

// scan reads doc in pieces of the given size; 0 is one piece.
func scan(shape *Shape, doc []byte, size int) (*seen, *Scanner) {
	h, s := &seen{}, &Scanner{}
	s.Reset(shape)
	if size == 0 {
		size = max(len(doc), 1)
	}
	for piece := range chunks(doc, size) {
		s.Write(piece, h)
	}
	return h, s
}

func chunks(b []byte, size int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			n := min(size, len(b))
			if !yield(bytes.Clone(b[:n])) {
				return
			}
			b = b[n:]
		}
	}
}

var chat = Compile(
	"id",
	"choices",
	"choices[]",
	"choices[].index",
	"choices[].delta.content|choices[].message.content",
	"choices[].delta.content[].text",
	"choices[].finish_reason",
	"usage",
	"usage.prompt_tokens|x.usage.prompt_tokens",
	"$",
	"[]",
	"[].id",
)

func TestReportsWantedValues(t *testing.T) {
	tests := []struct {
		doc  string
		want []string
	}{
		{`{}`, []string{`9 5 "" 0 @0 empty=false`, `9 6 "" 0 @1 empty=true`}},
		{`{"choices":[]}`, []string{`9 5 "" 0 @0 empty=false`, `1 7 "" 0 @11 empty=false`,
			`1 8 "" 0 @12 empty=true`, `9 6 "" 0 @13 empty=false`}},
		{`{"id":"a\"b","ID":"no"}`, []string{`9 5 "" 0 @0 empty=false`, `0 4 "a\\\"b" 4 @7 empty=false`,
			`9 6 "" 0 @22 empty=false`}},
		{`{"\u0069d":"a"}`, []string{`9 5 "" 0 @0 empty=false`, `0 4 "a" 1 @12 empty=false`, `9 6 "" 0 @14 empty=false`}},
		{`{"choices":[{"finish_reason":null,"delta":{"content":""},"index":1}]}`, []string{
			`9 5 "" 0 @0 empty=false`, `1 7 "" 0 @11 empty=false`, `2 5 "" 0 @12 empty=false`,
			`6 0 "" 0 @29 empty=false`, `4 4 "" 0 @54 empty=false`, `3 3 "1" 1 @65 empty=false`,
			`2 6 "" 0 @66 empty=false`, `1 8 "" 0 @67 empty=false`, `9 6 "" 0 @68 empty=false`}},
		{`{"choices":[{"delta":{"content":[{"text":"x"},7]}}]}`, []string{
			`9 5 "" 0 @0 empty=false`, `1 7 "" 0 @11 empty=false`, `2 5 "" 0 @12 empty=false`,
			`4 7 "" 0 @32 empty=false`, `5 4 "x" 1 @42 empty=false`, `4 8 "" 0 @47 empty=false`,
			`2 6 "" 0 @49 empty=false`, `1 8 "" 0 @50 empty=false`, `9 6 "" 0 @51 empty=false`}},
		{`{"skip":{"id":"no","usage":{"prompt_tokens":9}},"x":{"usage":{"prompt_tokens":3}}}`, []string{
			`9 5 "" 0 @0 empty=false`, `8 3 "3" 1 @78 empty=false`, `9 6 "" 0 @81 empty=false`}},
		{`[{"id":"a"},{"id":-1.5e3}]`, []string{`9 7 "" 0 @0 empty=false`, `10 5 "" 0 @1 empty=false`,
			`11 4 "a" 1 @8 empty=false`, `10 6 "" 0 @10 empty=false`, `10 5 "" 0 @12 empty=false`,
			`11 3 "-1.5e3" 6 @18 empty=false`, `10 6 "" 0 @24 empty=false`, `9 8 "" 0 @25 empty=false`}},
		{`{"usage":true,"id":false}`, []string{`9 5 "" 0 @0 empty=false`, `7 2 "" 0 @9 empty=false`,
			`0 1 "" 0 @19 empty=false`, `9 6 "" 0 @24 empty=false`}},
		{`{"id":[NaN,Infinity,-Infinity,{}],"usage":-Infinity}`, []string{`9 5 "" 0 @0 empty=false`,
			`0 7 "" 0 @6 empty=false`, `0 8 "" 0 @32 empty=false`, `7 3 "" 0 @42 empty=false`, `9 6 "" 0 @51 empty=false`}},
	}
	for _, tt := range tests {
		for _, size := range []int{0, 1, 2, 3, 7} {
			h, s := scan(chat, []byte(tt.doc), size)
			if !s.Done() || s.Err() != nil || s.Offset() != int64(len(tt.doc)) {
				t.Errorf("%s in pieces of %d: done %t at %d, %v", tt.doc, size, s.Done(), s.Offset(), s.Err())
			}
			if !reflect.DeepEqual(h.values, tt.want) {
				t.Errorf("%s in pieces of %d\n got %q\nwant %q", tt.doc, size, h.values, tt.want)
			}
		}
	}
}

func TestMalformed(t *testing.T) {
	tests := []struct {
		doc string
		at  int64
		err error
	}{
		{`<html>`, 0, ErrSyntax},
		{`{"a":1}x`, 7, ErrSyntax},
		{`{"a" 1}`, 5, ErrSyntax},
		{`{"a":1,}`, 7, ErrSyntax},
		{`{,}`, 1, ErrSyntax},
		{`[1,]`, 3, ErrSyntax},
		{`[1}`, 2, ErrSyntax},
		{`{"a":[1]]`, 8, ErrSyntax},
		{`{a:1}`, 1, ErrSyntax},
		{`{"a":nul}`, 8, ErrSyntax},
		{`{"a":truE}`, 8, ErrSyntax},
		{"{\"a\":\x01}", 5, ErrSyntax},
		{`{"a":1 2}`, 7, ErrSyntax},
		{strings.Repeat("[", MaxDepth+1), MaxDepth, ErrDepth},
		{`{"id":` + strings.Repeat(`{"a":`, MaxDepth), 6 + 5*(MaxDepth-1), ErrDepth},
	}
	for _, tt := range tests {
		for _, size := range []int{0, 1, 3} {
			_, s := scan(chat, []byte(tt.doc), size)
			if s.Err() != tt.err || s.Done() || s.Offset() != tt.at {
				t.Errorf("%.40q in pieces of %d: error %v at %d, done %t; want %v at %d", tt.doc, size, s.Err(), s.Offset(),
					s.Done(), tt.err, tt.at)
			}
		}
	}
}

func TestIncomplete(t *testing.T) {
	whole := `{"id":"a\\","choices":[{"index":12,"finish_reason":null}],"usage":{"prompt_tokens":1.5}}`
	for n := range len(whole) {
		if _, s := scan(chat, []byte(whole[:n]), 0); s.Done() || s.Err() != nil {
			t.Errorf("%s: done %t, error %v", whole[:n], s.Done(), s.Err())
		}
	}
	if _, s := scan(chat, []byte(whole+" \n"), 0); !s.Done() {
		t.Error("white space after the end is an error")
	}
	if _, s := scan(chat, []byte(strings.Repeat("[", MaxDepth)+strings.Repeat("]", MaxDepth)), 0); !s.Done() {
		t.Error("the deepest nesting is refused")
	}
	if _, s := scan(chat, []byte("12"), 1); !s.Done() {
		t.Error("a bare number is not a document")
	}
}

func TestTolerates(t *testing.T) {
	for _, doc := range []string{"{\"id\":\"\xff\xfe\"}", `{"id":"\ud800"}`, "{\"id\":\"a\nb\x00\"}", `{"id":"\q"}`, `{"id":01}`} {
		if _, s := scan(chat, []byte(doc), 0); !s.Done() {
			t.Errorf("%q: %v", doc, s.Err())
		}
	}
}

func TestLongValuesAreCut(t *testing.T) {
	long := strings.Repeat("x", 3*MaxRaw)
	doc := []byte(`{"` + long + `":1,"id":"` + long + `"}`)
	shape := Compile("id")
	for _, size := range []int{0, 1, 100, MaxRaw, MaxRaw + 1} {
		h, s := scan(shape, doc, size)
		want := fmt.Sprintf("0 4 %q %d @%d empty=false", long[:MaxRaw], len(long), len(doc)-2-len(long))
		if len(h.values) != 1 || h.values[0] != want || !s.Done() {
			t.Errorf("in pieces of %d: got %.80q", size, h.values)
		}
		if cap(s.token) > 2*MaxRaw {
			t.Errorf("in pieces of %d: %d bytes were kept", size, cap(s.token))
		}
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, path := range []string{"a|", "a.", ".a", "a..b", "a[]b", "a.[]", "a[0]", "[].", strings.Repeat("a.", maxPath) + "a"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%q was taken", path)
				}
			}()
			Compile(path)
		}()
	}
	defer func() {
		if recover() == nil {
			t.Error("one path was given two fields")
		}
	}()
	Compile("a", "b|a")
}

func TestCountAndFloat(t *testing.T) {
	tests := []struct {
		raw   string
		kind  Kind
		count int64
		isInt bool
		float float64
		isNum bool
	}{
		{"0", Number, 0, true, 0, true},
		{"3", Number, 3, true, 3, true},
		{"3.0", Number, 3, true, 3, true},
		{"1e2", Number, 100, true, 100, true},
		{"3", String, 3, true, 3, true},
		{"2.5", String, 2, true, 2.5, true},
		{"9007199254740992", Number, 1 << 53, true, 1 << 53, true},
		{"9007199254740993000", Number, 0, false, 9007199254740993000, true},
		{"-1", Number, 0, false, -1, true},
		{"1e400", Number, 0, false, 0, false},
		{"", Number, 0, false, 0, false},
		{"", String, 0, false, 0, false},
		{"NaN", String, 0, false, 0, false},
		{"0x10", String, 0, false, 0, false},
		{"1_0", String, 0, false, 0, false},
		{"x", String, 0, false, 0, false},
		{"1.2.3", Number, 0, false, 0, false},
		{"", Null, 0, false, 0, false},
		{strings.Repeat("1", 70), Number, 0, false, 0, false},
	}
	for _, tt := range tests {
		v := Value{Kind: tt.kind, Raw: []byte(tt.raw), Len: int64(len(tt.raw))}
		n, ok := v.Count()
		f, okf := v.Float()
		if n != tt.count || ok != tt.isInt || okf != tt.isNum || okf && f != tt.float {
			t.Errorf("%q: count %d %t, float %v %t", tt.raw, n, ok, f, okf)
		}
	}
}

func TestUnescapeAgreesWithEncodingJSON(t *testing.T) {
	for _, raw := range []string{``, `abc`, `\"\\\/\b\f\n\r\t`, `\u0041\u00e9\u4e2d`, `\ud83d\ude00`, `\ud83d`, `\ude00x`,
		`\ud83d\ud83d\ude00`, `\ud83dx`, `日本`} {
		var want string
		if err := json.Unmarshal([]byte(`"`+raw+`"`), &want); err != nil {
			t.Fatal(err)
		}
		if got := Unescape(nil, []byte(raw)); string(got) != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
	for _, raw := range []string{`a\`, `\u12`, `\u12g4`, `\q`} {
		if got := string(Unescape(nil, []byte(raw))); got != raw {
			t.Errorf("%s: got %q", raw, got)
		}
	}
}

func TestStringEnd(t *testing.T) {
	for in, want := range map[string]int{`"`: 0, `a"b`: 1, `\"`: -1, `\\"`: 2, `a\"b"`: 4, `\\\"`: -1, ``: -1, `\"\"\""`: 6} {
		if got := StringEnd([]byte(in)); got != want {
			t.Errorf("%s: got %d, want %d", in, got, want)
		}
	}
}

func TestScansWholeDocumentsWithoutAllocating(t *testing.T) {
	doc := []byte(`{"id":"c","choices":[{"index":0,"delta":{"content":"a"},"finish_reason":null,"x":[1,{"y":"z"}]}],"usage":{"prompt_tokens":3}}`)
	var s Scanner
	h := &count{}
	if n := testing.AllocsPerRun(100, func() {
		s.Reset(chat)
		s.Write(doc, h)
	}); n != 0 || !s.Done() {
		t.Errorf("%v allocations, done %t", n, s.Done())
	}
}

type count struct{ n int }

func (c *count) Value(Value) { c.n++ }

func FuzzAnySplitSameResult(f *testing.F) {
	f.Add([]byte(`{"id":"a\"b","choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}`), 3)
	f.Add([]byte(`[{"id":"\\"},-Infinity,1e5,"\u0041"]`), 1)
	f.Add([]byte(`{"\u0069d":tru`), 2)
	f.Fuzz(func(t *testing.T, doc []byte, size int) {
		whole, s := scan(chat, doc, 0)
		for _, n := range []int{1, max(1, size%(len(doc)+1))} {
			split, p := scan(chat, doc, n)
			if !reflect.DeepEqual(whole.values, split.values) || s.Done() != p.Done() || s.Err() != p.Err() || s.Offset() != p.Offset() {
				t.Fatalf("pieces of %d:\n%q %v %d\nwhole:\n%q %v %d", n, split.values, p.Err(), p.Offset(), whole.values, s.Err(), s.Offset())
			}
		}
		if s.Done() || s.Err() != nil {
			return
		}
		if json.Valid(doc) {
			t.Fatalf("a valid document is not done: %q", doc)
		}
	})
}

func FuzzAgreesWithEncodingJSON(f *testing.F) {
	f.Add([]byte(`{"id":"a","id":"b\u0020","choices":[1,[2]]}`))
	f.Add([]byte(` [ {"id" : -1.5E+3 } ] `))
	shape := Compile("id")
	f.Fuzz(func(t *testing.T, doc []byte) {
		if !json.Valid(doc) {
			return
		}
		h := &lastID{}
		var s Scanner
		s.Reset(shape)
		s.Write(doc, h)
		if deep := bytes.Count(doc, []byte("{"))+bytes.Count(doc, []byte("[")) > MaxDepth; !s.Done() && !deep {
			t.Fatalf("valid, but %v at %d", s.Err(), s.Offset())
		}
		var m map[string]json.RawMessage
		if json.Unmarshal(doc, &m) != nil {
			return
		}
		raw, ok := m["id"]
		if !ok {
			if h.any {
				t.Fatalf("an id that is not there: %q", h.raw)
			}
			return
		}
		if !h.any {
			t.Fatal("id was missed")
		}
		var text string
		if raw[0] == '"' && json.Unmarshal(raw, &text) == nil && len(h.raw) < MaxRaw {
			if got := string(Unescape(nil, h.raw)); got != text && string(bytes.ToValidUTF8([]byte(got), []byte("\ufffd"))) != text &&
				json.Valid(raw) && strings.ToValidUTF8(text, "") == text && strings.ToValidUTF8(got, "") == got {
				t.Fatalf("id is %q, want %q", got, text)
			}
		}
	})
}

type lastID struct {
	any bool
	raw []byte
}

func (l *lastID) Value(v Value) {
	l.any = true
	if v.Kind == String {
		l.raw = bytes.Clone(v.Raw)
	}
}

// FuzzTrail: what follows the trail of another document is reported as a
// scanner reports it.
func FuzzTrail(f *testing.F) {
	f.Add([]byte(`{"id":"a","n":1,"choices":[{"index":0,"delta":{"content":"x"}}],"usage":null}`), []byte(`y\"z`), uint16(60), uint16(61))
	f.Add([]byte(`[{"id":"a"},12,[],{}] `), []byte(`3`), uint16(12), uint16(14))
	f.Add([]byte(`{"x":[1,2, 3],"id":"a","y":[[1],[2]],"choices":[1,2]}`), []byte(`,4`), uint16(7), uint16(7))
	f.Fuzz(func(t *testing.T, doc, change []byte, from, to uint16) {
		from, to = min(from, uint16(min(len(doc), 1<<15))), min(to, uint16(min(len(doc), 1<<15)))
		if to < from {
			from, to = to, from
		}
		next := append(append(bytes.Clone(doc[:from]), change...), doc[to:]...)
		var trail Trail
		var s Scanner
		laid := &seen{}
		trail.Lay(&s, chat, doc, laid)
		if want, _ := scan(chat, doc, 0); !reflect.DeepEqual(laid.values, want.values) {
			t.Fatalf("laying reports\n%q, want\n%q", laid.values, want.values)
		}
		got := &seen{}
		if !trail.Follow(next, got) {
			if len(got.values) > 0 {
				t.Fatal("reports, but did not follow")
			}
			return
		}
		want, p := scan(chat, next, 0)
		if !p.Done() || !reflect.DeepEqual(got.values, want.values) {
			t.Fatalf("%q then %q: got\n%q, want\n%q, done %t", doc, next, got.values, want.values, p.Done())
		}
	})
}

func TestTrail(t *testing.T) {
	var trail Trail
	var s Scanner
	h := &seen{}
	if trail.Follow([]byte(`{}`), h) {
		t.Error("followed nothing")
	}
	trail.Lay(&s, chat, []byte(`{"id":"a","n":12,"choices":[{"index":0,"finish_reason":null}],"usage":true}`), h)
	for doc, want := range map[string]bool{
		`{"id":"bc\"","n":7,"choices":[{"index":10,"finish_reason":null}],"usage":true}`: true,
		`{"id":"","n":-1e5,"choices":[{"index":0,"finish_reason":null}],"usage":true}`:   true,
		`{"id":"a","n":12,"choices":[{"index":0,"finish_reason":null}],"usage":true} `:   false,
		`{"id":"a","n":12,"choices":[{"index":0,"finish_reason":null}],"usage":false}`:   false,
		`{"id":"a","n":12,"choices":[{"index":0,"finish_reason":"x"}],"usage":true}`:     false,
		`{"id":"a","n":12,"choices":[{"index":,"finish_reason":null}],"usage":true}`:     false,
		`{"id":"a","n":"12","choices":[{"index":0,"finish_reason":null}],"usage":true}`:  false,
		`{"id":"a","n":12,"choices":[{"index":0,"finish_reason":null}],"usage":true`:     false,
		`{"id":"a\","n":12,"choices":[{"index":0,"finish_reason":null}],"usage":true}`:   false,
		`{"id":"a`: false,
	} {
		h := &seen{}
		if got := trail.Follow([]byte(doc), h); got != want {
			t.Errorf("%s: followed %t", doc, got)
		}
		if all, _ := scan(chat, []byte(doc), 0); want && !reflect.DeepEqual(h.values, all.values) {
			t.Errorf("%s: got\n%q, want\n%q", doc, h.values, all.values)
		}
	}
	laid := 0
	for range 200 { // documents of ever another form are not worth remembering
		if trail.Lay(&s, chat, []byte(`[]`), h); trail.laid {
			laid++
		}
	}
	if laid < giveUp || laid > giveUp+200/retry {
		t.Errorf("%d of 200 trails were laid in vain", laid)
	}
	trail = Trail{}
	trail.Lay(&s, chat, []byte(`["`+strings.Repeat("x", maxTrail)+`"]`), h)
	trail.Lay(&s, chat, []byte(`[`+strings.Repeat("1,", maxMarks)+`1]`), h)
	if trail.laid || cap(trail.doc) > 0 || cap(trail.marks) > maxMarks {
		t.Error("remembers what is past the bounds")
	}
	trail.Lay(&s, chat, []byte(`[1`), h)
	if trail.laid {
		t.Error("remembers a document that is not whole")
	}
}

func TestTrailOfNumbers(t *testing.T) {
	var trail Trail
	var s Scanner
	trail.Lay(&s, chat, []byte(`{"ids":[5],"x":{"y":[],"z":[1, 2]},"id":"a"}`), &seen{})
	for doc, want := range map[string]bool{
		`{"ids":[5,6,7],"x":{"y":[-1],"z":[]},"id":"bcd"}`: true,
		`{"ids":[],"x":{"y":[1e5, 7],"z":[3]},"id":""}`:    true,
		`{"ids":[5,],"x":{"y":[],"z":[]},"id":"a"}`:        false,
		`{"ids":[5,"6"],"x":{"y":[],"z":[]},"id":"a"}`:     false,
		`{"ids":[+5],"x":{"y":[],"z":[]},"id":"a"}`:        false,
		`{"ids":[5`: false,
	} {
		h := &seen{}
		if got := trail.Follow([]byte(doc), h); got != want {
			t.Errorf("%s: followed %t", doc, got)
		}
		if all, _ := scan(chat, []byte(doc), 0); want && !reflect.DeepEqual(h.values, all.values) {
			t.Errorf("%s: got\n%q, want\n%q", doc, h.values, all.values)
		}
	}
}

func BenchmarkTrail(b *testing.B) {
	doc := []byte(`{"id":"chatcmpl-3MaKZUN0KsMHl1bq0rruyhNPuwH7P6wT","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" fox"},"finish_reason":null}],"usage":null,"obfuscation":"qq7"}`)
	var s Scanner
	var trail Trail
	h := &count{}
	trail.Lay(&s, chat, doc, h)
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		if !trail.Follow(doc, h) {
			b.Fatal("lost")
		}
	}
}

func BenchmarkChatEvent(b *testing.B) {
	doc := []byte(`{"id":"chatcmpl-3MaKZUN0KsMHl1bq0rruyhNPuwH7P6wT","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" fox"},"finish_reason":null}],"usage":null,"obfuscation":"qq7"}`)
	var s Scanner
	h := &count{}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(chat)
		s.Write(doc, h)
	}
}

func BenchmarkSkippedNumbers(b *testing.B) {
	doc := []byte(`{"data":[` + strings.Repeat("0.0123456789,", 20000) + `0],"usage":{"prompt_tokens":1}}`)
	var s Scanner
	h := &count{}
	b.SetBytes(int64(len(doc)))
	b.ReportAllocs()
	for b.Loop() {
		s.Reset(chat)
		s.Write(doc, h)
	}
}
