package endpoint

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"

	"github.com/weirgate/weir/internal/call"
)

// Model is one entry of an endpoint's list of models.
type Model struct {
	ID string // as calls name it, at most 128 bytes
	// MaxLen is how many tokens prompt and answer may have together, 0 when the
	// list does not tell (vLLM, SGLang and some gateways do).
	MaxLen int
	Owner  string // "" when it does not tell
}

// maxModels is how many models of a list are kept. The largest gateways list
// some hundreds.
const maxModels = 4096

// entry is a model in a list, by the names that lists have for it.
type entry struct {
	ID      string `json:"id"`
	Name    string `json:"name"`
	Model   string `json:"model"`
	OwnedBy string `json:"owned_by"`
	MaxLen  any    `json:"max_model_len"`
	Context any    `json:"context_length"`
	Window  any    `json:"context_window"`
}

func (e *entry) model() (Model, bool) {
	m := Model{Owner: call.NameOf(e.OwnedBy)}
	for _, name := range []string{e.ID, e.Model, e.Name} {
		if name != "" && m.ID == "" {
			m.ID = call.NameOf(name)
		}
	}
	for _, n := range []any{e.MaxLen, e.Context, e.Window} {
		if f, is := n.(float64); is && f >= 1 && f <= 1<<40 && m.MaxLen == 0 {
			m.MaxLen = int(f)
		}
	}
	return m, m.ID != ""
}

// errNoList says that a body is no list of models.
var errNoList = errors.New("not a list of models")

// readModels reads a list of models: {"data": […]} as OpenAI and Anthropic have
// it, {"models": […]}, or the array alone. Of a body that was cut off, or is
// broken at its end, what came before counts.
func readModels(body []byte) ([]Model, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	first, err := d.Token()
	if err != nil {
		return nil, errNoList
	}
	if first == json.Delim('[') {
		return readEntries(d)
	}
	if first != json.Delim('{') {
		return nil, errNoList
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return nil, errNoList
		}
		if key == "data" || key == "models" {
			if open, err := d.Token(); err != nil || open != json.Delim('[') {
				return nil, errNoList
			}
			return readEntries(d)
		}
		var skipped json.RawMessage
		if err := d.Decode(&skipped); err != nil {
			return nil, errNoList
		}
	}
	return nil, errNoList
}

// readEntries reads the array that d stands in. An element that is no model
// makes it something else than a list of models.
func readEntries(d *json.Decoder) ([]Model, error) {
	models := []Model{}
	for d.More() && len(models) < maxModels {
		var e entry
		var shape *json.UnmarshalTypeError
		switch err := d.Decode(&e); {
		case errors.Is(err, io.ErrUnexpectedEOF) && len(models) > 0:
			return models, nil
		case err != nil && !errors.As(err, &shape):
			return nil, errNoList
		}
		m, ok := e.model()
		if !ok {
			return nil, errNoList
		}
		models = append(models, m)
	}
	if len(models) == 0 {
		if _, err := d.Token(); err != nil {
			return nil, errNoList // cut off before the first
		}
	}
	return models, nil
}
