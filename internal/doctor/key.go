package doctor

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/weirgate/weir/internal/endpoint"
)

// checkKey says whether the endpoint takes the key, and what is wrong with it.
func checkKey(ctx context.Context, v *visit) Finding {
	flaw := flawOf(v.Key)
	if flaw.fatal {
		return red("the key in "+v.KeyName+" "+flaw.what, "No header can carry it.", flaw.next(v.KeyName))
	}
	reply := v.plain(ctx)
	status := reply.Status
	if status == 0 || status >= http.StatusInternalServerError {
		// The call says nothing of the key; the list of models may.
		if status = v.modelsStatus(); status == 0 || status >= http.StatusInternalServerError {
			v.goOn()
			return grey("not judged because no request was answered properly")
		}
	}
	header := ""
	if status == http.StatusUnauthorized && bareKey(v.Key) != "" {
		header = v.otherHeader(ctx)
	}
	return judgeKey(keyFacts{
		key: v.Key, name: v.KeyName, unnamed: v.KeyName == unnamedKey, flaw: flaw, api: v.API, status: status, header: header,
		code: v.foreign(codeOf(reply.Body)), gateway: v.Admin != "",
	})
}

// keyFacts is what the verdict on a key rests on.
type keyFacts struct {
	key, name string
	unnamed   bool // no variable was named
	flaw      flaw
	api       endpoint.API
	status    int    // of a request with the key, freed of its flaw
	header    string // another header in which the endpoint takes the key, "" is none
	code      string // the error's, cleaned
	gateway   bool
}

func judgeKey(k keyFacts) Finding {
	refused := k.status == http.StatusUnauthorized || k.status == http.StatusForbidden
	given := strings.TrimSpace(k.key) != ""
	whole := bareKey(k.key)
	code := ""
	if k.code != "" {
		code = "Its code is " + k.code + "."
	}
	switch {
	case k.flaw.what != "" && !refused && k.flaw.mild:
		return yellow("the key in "+k.name+" "+k.flaw.what, "The endpoint takes it without; some clients refuse to send it as it is.", k.flaw.next(k.name))
	case k.flaw.what != "" && !refused:
		return red("the key in "+k.name+" "+k.flaw.what, "The endpoint takes it without, and the checks below go on like that; a client that sends it as it is gets 401, or cannot send it.", k.flaw.next(k.name))
	case k.flaw.what != "":
		return red("the key in "+k.name+" "+k.flaw.what, "The endpoint does not take it without, either.", k.flaw.next(k.name)+"; then check that it is of this endpoint")
	case !refused && given:
		return green("the endpoint takes the key")
	case !refused:
		return green("the endpoint asks for no key")
	case !given && k.status == http.StatusUnauthorized:
		return red("the endpoint wants a key, and none is given (401)", code, k.give())
	case !given:
		return red("the endpoint refuses calls without a key (403)", code, k.give()+"; if it needs none, see who may reach it")
	case isPlaceholder(whole):
		return red("the key in "+k.name+" is a placeholder from an example", "The endpoint does not take it.", "set "+k.name+" to a key of this endpoint")
	case k.header != "":
		return red("the endpoint wants the key in the header "+k.header, "With the header that the "+string(k.api)+" API has for it the answer is 401.",
			"have clients send "+k.header+"; or check that the API is the right one (--api)")
	case isOAuth(whole):
		return red("the key in "+k.name+" is an OAuth token, where an API key is wanted", "The endpoint does not take it. "+code,
			"make an API key at the provider's console; tokens of a log-in serve its own applications, and expire")
	case k.status == http.StatusForbidden:
		return red("the endpoint knows the key but does not allow the call (403)", code, "check what the key may use (models, projects, addresses), and whether the account is in good order")
	}
	detail := code
	if of := vendorOf(whole); of != "" {
		detail = sentences(detail, "By its beginning it is a key of "+of+".")
	}
	next := "check that the key is of this endpoint, whole, and not revoked or expired"
	if k.gateway {
		next += "; a gateway of ours that requires keys knows those of its keys file (weir keys list)"
	}
	return red("the endpoint does not take the key (401)", sentences(detail, "It was sent as "+headerOf(k.api)+"."), next)
}

// give says how to give a key where none is.
func (k *keyFacts) give() string {
	if k.unnamed {
		return "put a key of this endpoint into an environment variable, and name the variable: --key-env VARIABLE"
	}
	return "set " + k.name + " to a key of this endpoint (it is named by --key-env " + k.name + ")"
}

func headerOf(api endpoint.API) string {
	if api == endpoint.Messages {
		return "x-api-key: <key>"
	}
	return "Authorization: Bearer <key>; without the word Bearer the answer is 401, too"
}

// otherHeader looks for another header in which the endpoint takes the key.
func (v *visit) otherHeader(ctx context.Context) string {
	body, err := v.ask(callOf{}).Body()
	if err != nil {
		return ""
	}
	key := bareKey(v.Key)
	others := map[string]string{"X-Api-Key": key, "Api-Key": key}
	order := []string{"X-Api-Key", "Api-Key"}
	if v.API == endpoint.Messages {
		others, order = map[string]string{"Authorization": "Bearer " + key}, []string{"Authorization"}
	}
	for _, name := range order {
		h := http.Header{"Content-Type": {"application/json"}, name: {others[name]}}
		if v.API == endpoint.Messages {
			h.Set("Anthropic-Version", anthropicVersion)
		}
		if v.run != "" {
			h.Set("X-Weir-Run", v.run)
		}
		if x := v.send(ctx, http.MethodPost, v.root+"/"+endpoint.Path(v.API), h, body); x.ok() {
			if name == "Authorization" {
				return "Authorization: Bearer"
			}
			return strings.ToLower(name)
		}
	}
	return ""
}

// flaw is what is wrong with a key before anybody has looked at it.
type flaw struct {
	what  string // after "the key in X"; "" is nothing
	fatal bool   // it cannot be sent even so
	mild  bool   // most clients and servers do not mind
	clean string // how to be rid of it
}

func (f flaw) next(name string) string { return "set " + name + " again, " + f.clean }

// flawOf looks at a key as it stands in its variable.
func flawOf(key string) flaw {
	trimmed := strings.TrimSpace(key)
	inner := bareKey(key)
	lowered := lower(trimmed)
	switch {
	case key == "":
		return flaw{}
	case inner == "":
		return flaw{what: "is blank", fatal: true, clean: "to the key itself"}
	case !sendable(inner):
		return flaw{what: "has a line break or another control character within", fatal: true, clean: "as one line"}
	case !ascii(inner):
		return flaw{what: "has a character that belongs to no key, such as a typographic quote", fatal: true, clean: "copied anew"}
	case strings.ContainsAny(key, "\r\n\v\f"):
		return flaw{what: "begins or ends with a line break", clean: `without it, as with export NAME="$(tr -d '\r\n' <file)"`}
	case quoted(trimmed):
		return flaw{what: "stands in quotes that are part of its value", clean: "without them (an env file of Docker takes quotes literally)"}
	case strings.HasPrefix(lowered, "bearer ") || strings.HasPrefix(lowered, "authorization") || strings.HasPrefix(lowered, "x-api-key"):
		return flaw{what: "has the word Bearer or a header's name in its value", clean: "to the key alone: clients add the rest"}
	case trimmed != key:
		return flaw{what: "begins or ends with white space", mild: true, clean: "without it"}
	case inner != trimmed:
		return flaw{what: "begins or ends with an invisible character", clean: "copied anew"}
	case strings.ContainsAny(inner, " \t"):
		return flaw{what: "has a blank within", clean: "copied anew, whole and alone"}
	}
	return flaw{}
}

// bareKey is the key itself, freed of what people put around it.
func bareKey(key string) string {
	for {
		next := strings.TrimFunc(key, func(r rune) bool {
			return unicode.IsSpace(r) || unicode.IsControl(r) || unicode.Is(unicode.Cf, r)
		})
		if quoted(next) {
			next = next[1 : len(next)-1]
		}
		for _, before := range []string{"authorization:", "x-api-key:", "api-key:", "bearer "} {
			if strings.HasPrefix(lower(next), before) {
				next = next[len(before):]
			}
		}
		if next == key {
			return key
		}
		key = next
	}
}

// quoted tells whether a text stands in quotes of one kind.
func quoted(s string) bool {
	return len(s) >= 2 && strings.IndexByte("\"'`", s[0]) >= 0 && s[len(s)-1] == s[0]
}

// sendable tells whether a header can carry a key.
func sendable(key string) bool {
	return strings.IndexFunc(key, unicode.IsControl) < 0
}

func ascii(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) < 0
}

// isPlaceholder tells whether a key is what examples have in place of one.
func isPlaceholder(key string) bool {
	k := strings.Trim(lower(key), "<>[]{}$ ")
	switch k {
	case "empty", "none", "null", "dummy", "test", "changeme", "change-me", "secret", "token", "key", "api-key", "api_key", "apikey",
		"no-key", "nokey", "not-needed", "unused", "fake", "placeholder", "sk", "sk-", "todo":
		return true
	}
	for _, part := range []string{"your-", "your_", "yourkey", "-your", "...", "…", "xxxx", "****", "replace", "insert", "_api_key", "sk-1234", "example"} {
		if strings.Contains(k, part) {
			return true
		}
	}
	return false
}

// isOAuth tells whether a key is a token of a log-in.
func isOAuth(key string) bool {
	if strings.HasPrefix(key, "sk-ant-oat") || strings.HasPrefix(key, "ya29.") {
		return true
	}
	head, rest, dots := strings.Cut(key, ".")
	if !dots || strings.Count(rest, ".") != 1 {
		return false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(head)
	var header struct {
		Algorithm string `json:"alg"`
	}
	return err == nil && json.Unmarshal(decoded, &header) == nil && header.Algorithm != ""
}

// vendorOf is whose key one is by its beginning, "" when that is not known.
func vendorOf(key string) string {
	for _, v := range []struct{ begin, of string }{
		{"sk-ant-", "Anthropic"}, {"sk-or-", "OpenRouter"}, {"sk-proj-", "OpenAI"}, {"sk-svcacct-", "OpenAI"}, {"gsk_", "Groq"},
		{"hf_", "Hugging Face"}, {"AIza", "Google"}, {"nvapi-", "NVIDIA"}, {"xai-", "xAI"}, {"pplx-", "Perplexity"}, {"fw_", "Fireworks"},
	} {
		if strings.HasPrefix(key, v.begin) {
			return v.of
		}
	}
	return ""
}
