// Package corpus makes chat requests in many languages, always the same ones,
// against which the estimate of prompt tokens is measured. All text is
// original: sentences and word lists under text/, and code and data put
// together from templates. It comes in two halves that share no sentence and
// no template, one to fit the prior to and one to test with.
package corpus

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"unicode/utf16"
)

// The halves.
const (
	Fit  = 0
	Test = 1
)

// Languages are the corpora of natural language, Others those of code and data.
var (
	Languages = []string{"ar", "de", "en", "es", "fr", "hi", "ja", "ko", "ru", "vi", "zh"}
	Others    = []string{"base64", "go", "javascript", "json", "log", "python", "sql"}
)

// PerCorpus is the number of samples of each corpus in each half.
const PerCorpus = 48

// Sample is one request.
type Sample struct {
	Name   string // such as "en-017"
	Corpus string
	Body   []byte
}

// bytesPerToken is about how dense each corpus is, to make samples of 50 to
// 2,000 tokens; Latin text and code where it is not named.
var bytesPerToken = map[string]float64{"ar": 4.5, "hi": 6, "ja": 3.6, "ko": 3.2, "ru": 6, "zh": 3.6, "base64": 1.3, "json": 2.8, "log": 2.2}

// Make returns the samples of a half, corpus after corpus.
func Make(half int) []Sample {
	var all []Sample
	for i, name := range append(append([]string{}, Languages...), Others...) {
		r := random(1000*half + i)
		write := writer(name, half)
		density := bytesPerToken[name]
		if density == 0 {
			density = 3.8
		}
		english := read("en", half)
		for k := range PerCorpus {
			size := int(float64(r.spread(40, 1900)) * density)
			all = append(all, Sample{
				Name:   fmt.Sprintf("%s-%03d", name, k),
				Corpus: name,
				Body:   request(&r, write, &english, size, isLanguage(name)),
			})
		}
	}
	return all
}

func isLanguage(name string) bool {
	for _, l := range Languages {
		if l == name {
			return true
		}
	}
	return false
}

// writer returns what writes about size bytes of a corpus.
func writer(name string, half int) func(r *random, size int) string {
	switch name {
	case "base64":
		return packed
	case "json":
		return func(r *random, size int) string { return document(half, r, size) }
	case "log":
		return func(r *random, size int) string { return lines(half, r, size) }
	}
	if pieces[name] != nil {
		return func(r *random, size int) string { return code(name, half, r, size) }
	}
	l := read(name, half)
	return l.text
}

// object keeps the order of its members, as clients do.
type object []member
type member struct {
	name  string
	value any
}

// MarshalJSON writes the members in their order.
func (o object) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	for i, m := range o {
		b.WriteByte("{,"[min(i, 1)])
		b.Write(plain(m.name))
		b.WriteByte(':')
		b.Write(plain(m.value))
	}
	if len(o) == 0 {
		b.WriteByte('{')
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// plain is JSON without the escapes that HTML needs.
func plain(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		panic(err) // strings, numbers and objects of them
	}
	return bytes.TrimSpace(b.Bytes())
}

var systems = []string{
	"You are a helpful assistant.",
	"You are a careful assistant for the customers of a repair shop. Answer in the language of the question, briefly, and say so when you do not know.",
	"Act as a senior engineer. Prefer small changes, name the risks, and never invent an interface that was not shown to you.",
}

// request returns the body of a chat request with about size bytes of the corpus in it.
func request(r *random, write func(*random, int) string, english *language, size int, natural bool) []byte {
	var messages []any
	say := func(role, text string) {
		var content any = text
		if r.chance(20) {
			content = []any{object{{"type", "text"}, {"text", text}}}
		}
		messages = append(messages, object{{"role", role}, {"content", content}})
	}
	switch k := r.below(10); {
	case k < 4:
		say("system", pick(r, systems))
	case k < 6 && natural:
		part := r.between(40, 300)
		say("system", write(r, part))
		size -= part
	}
	turns := 1 + 2*r.below(4)
	if size < 600 {
		turns = 1
	}
	for t := range turns {
		text := write(r, max(size/turns, 30))
		if !natural {
			switch r.below(3) {
			case 0:
				text = english.sentence(r) + "\n\n```\n" + text + "\n```"
			case 1:
				text = english.sentence(r) + "\n" + text
			}
		}
		say([]string{"user", "assistant"}[t%2], text)
	}
	body := object{{"model", "m1"}, {"messages", messages}}
	if r.chance(60) {
		body = append(body, member{"temperature", float64(r.below(10)) / 10})
	}
	if r.chance(50) {
		body = append(body, member{"max_tokens", 64 << r.below(6)})
	}
	if r.chance(50) {
		body = append(body, member{"stream", true}, member{"stream_options", object{{"include_usage", true}}})
	}
	if r.chance(15) {
		var tools []any
		for range r.between(1, 4) {
			tools = append(tools, tool(r))
		}
		body = append(body, member{"tools", tools}, member{"tool_choice", "auto"})
	}
	b := plain(body)
	if r.chance(30) {
		b = ascii(b)
	}
	if r.chance(30) {
		b = spaced(b)
	}
	return b
}

// tool returns the definition of a function.
func tool(r *random) object {
	n := names{r}
	var properties object
	var required []string
	for range r.between(1, 5) {
		name := n.snake()
		p := object{{"type", pick(r, []string{"string", "integer", "boolean"})}, {"description", title(n.note())}}
		if r.chance(25) {
			p = object{{"type", "string"}, {"enum", []string{n.noun(), n.noun(), n.noun()}}}
		}
		properties = append(properties, member{name, p})
		required = append(required, name)
	}
	return object{{"type", "function"}, {"function", object{
		{"name", n.snake()},
		{"description", "Use it to " + pick(r, verbs) + " the " + n.noun() + " of a " + n.noun() + "; " + n.note() + "."},
		{"parameters", object{{"type", "object"}, {"properties", properties}, {"required", required}}},
	}}}
}

// ascii writes everything beyond ASCII as \uXXXX, as Python's json does.
func ascii(b []byte) []byte {
	var out bytes.Buffer
	for _, c := range string(b) {
		switch {
		case c < 0x80:
			out.WriteByte(byte(c))
		case c < 0x10000:
			fmt.Fprintf(&out, "\\u%04x", c)
		default:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&out, "\\u%04x\\u%04x", high, low)
		}
	}
	return out.Bytes()
}

// spaced puts a space after every comma and colon outside strings.
func spaced(b []byte) []byte {
	var out bytes.Buffer
	inside := false
	for i := 0; i < len(b); i++ {
		out.WriteByte(b[i])
		switch {
		case inside && b[i] == '\\':
			i++
			out.WriteByte(b[i])
		case b[i] == '"':
			inside = !inside
		case !inside && strings.IndexByte(",:", b[i]) >= 0:
			out.WriteByte(' ')
		}
	}
	return out.Bytes()
}
