package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/engine"
)

// maxInfo is the most of an engine's description that is read. llama.cpp's
// holds the chat template.
const maxInfo = 4 << 20

// fact is one field of an engine's description, and its name in a snapshot. base
// keeps the last part of a path only.
type fact struct {
	at, name string
	base     bool
}

// description is where an engine describes itself. Its name stands in the
// snapshot if must, a field that no other engine has there, is present.
type description struct {
	path, engine, must string
	facts              []fact
}

// descriptions are tried in this order; of two that fit, the first one's word
// counts. The paths stand beside /v1, not below it.
var descriptions = []description{
	{"props", "llama.cpp", "default_generation_settings", []fact{
		{"build_info", "version", false}, {"total_slots", "total_slots", false}, {"model_path", "model_file", true},
		{"default_generation_settings.n_ctx", "n_ctx", false}}},
	{"server_info", "sglang", "tokenizer_path", sglangFacts},
	{"get_server_info", "sglang", "tokenizer_path", sglangFacts},
	{"info", "tgi", "max_input_tokens", []fact{
		{"version", "version", false}, {"model_id", "model", true}, {"model_dtype", "dtype", false},
		{"max_input_tokens", "max_input_tokens", false}, {"max_total_tokens", "max_total_tokens", false},
		{"max_concurrent_requests", "max_concurrent_requests", false}, {"max_batch_total_tokens", "max_batch_total_tokens", false}}},
	{"version", "", "version", []fact{{"version", "version", false}}},
	{"api/version", "ollama", "version", []fact{{"version", "version", false}}},
}

// sglangFacts leave out what else SGLang tells of its arguments, its API key
// among it.
var sglangFacts = []fact{
	{"version", "version", false}, {"model_path", "model_path", true}, {"context_length", "context_length", false},
	{"max_running_requests", "max_running_requests", false}, {"max_total_num_tokens", "max_total_num_tokens", false},
	{"chunked_prefill_size", "chunked_prefill_size", false}, {"dtype", "dtype", false}, {"kv_cache_dtype", "kv_cache_dtype", false},
	{"quantization", "quantization", false}, {"tp_size", "tp_size", false}, {"dp_size", "dp_size", false},
	{"attention_backend", "attention_backend", false}, {"mem_fraction_static", "mem_fraction_static", false},
}

// readEngine asks all that may be asked at once, nil when nothing answered.
func readEngine(ctx context.Context, client *http.Client, root *url.URL, c *Channel) map[string]string {
	beside := *root
	beside.Path = strings.TrimSuffix(root.Path, "/v1")
	found := make([]map[string]string, len(descriptions))
	var listed, scraped, server map[string]string
	var all sync.WaitGroup
	for i := range descriptions {
		all.Go(func() { found[i] = descriptions[i].read(ctx, client, &beside, c.Key) })
	}
	all.Go(func() { listed = readModel(ctx, client, c) })
	all.Go(func() { server = readServer(ctx, client, root, c.Key) })
	all.Go(func() {
		if counters, err := engine.Scrape(ctx, client, beside.String()); err == nil {
			scraped = map[string]string{"name": string(counters.Kind)}
		}
	})
	all.Wait()
	facts := map[string]string{}
	for _, some := range append(found, scraped, listed, server) {
		for name, value := range some {
			if _, ok := facts[name]; !ok && value != "" {
				facts[name] = value
			}
		}
	}
	if facts["name"] == string(engine.LlamaCPP) {
		facts["name"] = "llama.cpp" // as it calls itself
	}
	if len(facts) == 0 {
		return nil
	}
	return facts
}

func (d *description) read(ctx context.Context, client *http.Client, beside *url.URL, key string) map[string]string {
	_, body, err := get(ctx, client, beside.JoinPath(strings.Split(d.path, "/")...), bearer(key), maxInfo)
	if err != nil {
		return nil
	}
	var said map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	decoder.UseNumber()
	if decoder.Decode(&said) != nil || said[d.must] == nil {
		return nil
	}
	facts := map[string]string{"name": d.engine}
	for _, f := range d.facts {
		value := text(said, f.at)
		if f.base && value != "" {
			value = path.Base(strings.ReplaceAll(value, `\`, "/"))
		}
		facts[f.name] = value
	}
	return facts
}

// text returns a plain value at a path of names with points between; "" for
// what is no plain value.
func text(said map[string]any, at string) string {
	name, rest, deeper := strings.Cut(at, ".")
	switch v := said[name].(type) {
	case map[string]any:
		if deeper {
			return text(v, rest)
		}
	case string:
		return call.NameOf(v)
	case json.Number:
		return call.NameOf(v.String())
	case bool:
		if v {
			return "true"
		}
		return "false"
	}
	return ""
}

func bearer(key string) http.Header {
	if key == "" {
		return nil
	}
	return http.Header{"Authorization": {"Bearer " + key}}
}

// readModel is what the list of models tells of the one that is measured.
func readModel(ctx context.Context, client *http.Client, c *Channel) map[string]string {
	models, err := endpoint.Models(ctx, client, c.Root, c.API, c.Key)
	if err != nil {
		return nil
	}
	for _, m := range models {
		if m.ID != c.Model {
			continue
		}
		facts := map[string]string{"owned_by": m.Owner}
		switch m.Owner {
		case "vllm", "sglang":
			facts["name"] = m.Owner
		case "llamacpp":
			facts["name"] = "llama.cpp"
		}
		if m.MaxLen > 0 {
			facts["max_model_len"] = count(call.Known(int64(m.MaxLen)))
		}
		return facts
	}
	return nil
}

// readServer is the Server header of whatever answers at the root.
func readServer(ctx context.Context, client *http.Client, root *url.URL, key string) map[string]string {
	header, _, err := get(ctx, client, root.JoinPath("models"), bearer(key), maxInfo)
	if server := header.Get("Server"); err == nil && server != "" {
		return map[string]string{"server": call.NameOf(server)}
	}
	return nil
}
