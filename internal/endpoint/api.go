package endpoint

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/weirgate/weir/internal/dialect"
)

// APIs lists every API, in the order of their definition.
var APIs = []API{Chat, Completions, Responses, Messages}

// Path returns an API's path below the root, without a leading slash, such as
// "chat/completions"; "" for a value that is no API.
func Path(api API) string {
	switch api {
	case Chat:
		return "chat/completions"
	case Completions:
		return "completions"
	case Responses:
		return "responses"
	case Messages:
		return "messages"
	}
	return ""
}

// dialectOf returns how an API's answers are read, nil for a value that is no API.
func dialectOf(api API) *dialect.Dialect {
	switch api {
	case Chat:
		return dialect.ByName("openai.chat")
	case Completions:
		return dialect.ByName("openai.completions")
	case Responses:
		return dialect.ByName("openai.responses")
	case Messages:
		return dialect.ByName("anthropic.messages")
	}
	return nil
}

func unknownAPI(api API) error {
	return &Failure{Kind: FailedRequest, Text: fmt.Sprintf("there is no API %q: choose from %s, %s, %s or %s",
		string(api), Chat, Completions, Responses, Messages)}
}

// anthropicVersion is the version of the Messages API that requests are written in.
const anthropicVersion = "2023-06-01"

// authorize puts the key where the API looks for it. Without a key it only
// tells the version, which the Messages API wants in any case.
func authorize(h http.Header, api API, key string) {
	if api == Messages {
		h.Set("Anthropic-Version", anthropicVersion)
		if key != "" {
			h.Set("X-Api-Key", key)
		}
		return
	}
	if key != "" {
		h.Set("Authorization", "Bearer "+key)
	}
}

// checkKey refuses a key that no header can carry; it does not show it.
func checkKey(key string) error {
	if strings.TrimSpace(key) != key {
		return &Failure{Kind: FailedAuth, Text: "the key begins or ends with white space or a line break: set it again without"}
	}
	for _, c := range []byte(key) {
		if c < ' ' || c == 0x7f {
			return &Failure{Kind: FailedAuth, Text: "the key contains a line break or another control character: set it again without"}
		}
	}
	return nil
}
