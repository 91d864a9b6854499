package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
	"github.com/weirgate/weir/internal/engine"
)

// isProbe tells whether an answer to GET /weir/ready is that of Weir's admin
// endpoint: two letters, or a line that says why not. A web server that answers
// everything answers otherwise.
func isProbe(x exchange) bool {
	body := string(bytes.TrimSpace(x.body))
	return x.err == nil && (x.status == http.StatusOK && body == "ok" ||
		x.status == http.StatusServiceUnavailable && strings.HasPrefix(body, "shutting down"))
}

// notAdmin tells whether an answer shows that no admin endpoint of Caddy gave it:
// that knows neither keys nor redirects nor web pages, and its errors are a text.
func notAdmin(x exchange) bool {
	switch {
	case isProbe(x):
		return false
	case x.status < http.StatusBadRequest || x.status == http.StatusUnauthorized || isPage(x):
		return true
	}
	var told struct {
		Error  json.RawMessage `json:"error"`
		Detail json.RawMessage `json:"detail"` // of FastAPI, which vLLM and SGLang use
	}
	return json.Unmarshal(x.body, &told) == nil && (bytes.HasPrefix(told.Error, []byte("{")) || told.Detail != nil)
}

// isPage tells whether an answer is a web page.
func isPage(x exchange) bool {
	return strings.HasPrefix(x.header.Get("Content-Type"), "text/html") || bytes.HasPrefix(bytes.TrimSpace(x.body), []byte("<"))
}

// noAdmin says what answers where the admin endpoint should be.
func (v *visit) noAdmin(x exchange) Finding {
	const give = "give the admin endpoint's address: what admin says among Caddy's global options, --admin http://127.0.0.1:2019 by default"
	what := fmt.Sprintf("It answers %d to GET /weir/ready, and not as Weir does.", x.status)
	if isPage(x) {
		what = fmt.Sprintf("It answers GET /weir/ready with a web page (%d).", x.status)
	}
	if v.sameHost(v.gate.admin) {
		return red("the admin address is that of the endpoint itself: "+v.gate.admin, "Calls go there; the admin endpoint has an address of its own. "+what, give)
	}
	return red("what answers at "+v.gate.admin+" is not the gateway's admin endpoint", what, give)
}

// sameHost tells whether a URL has the endpoint's own host and port.
func (v *visit) sameHost(address string) bool {
	u, err := url.Parse(address)
	if err != nil || v.base == nil || portOf(u) != portOf(v.base) {
		return false
	}
	return strings.EqualFold(u.Hostname(), v.base.Hostname()) || isLoopback(u.Hostname()) && isLoopback(v.base.Hostname())
}

// adminAsBase tells whether the base URL is that of a gateway's admin endpoint.
func (v *visit) adminAsBase(ctx context.Context) bool {
	at := url.URL{Scheme: v.base.Scheme, Host: v.base.Host, Path: "/weir/ready"}
	return isProbe(v.request(ctx, http.MethodGet, at.String(), nil))
}

// gatewaysEngines takes the engine's state from the gateway, which keeps paths
// that it does not know closed; status is what the endpoint answered instead.
func (v *visit) gatewaysEngines(ctx context.Context, at *url.URL, status int) Finding {
	closed := grey(fmt.Sprintf("not seen through the gateway (%d at %s): paths that it does not know are closed", status, shownURL(at)),
		"Give --metrics with the engine's own URL, or name the engine to the gateway (engine among the global options).")
	base, err := endpoint.ParseBase(v.Admin)
	if err != nil {
		return closed // the check of the gateway says it
	}
	x := v.request(ctx, http.MethodGet, base.String()+"/weir/engines", nil)
	var told struct {
		Engines []engine.State `json:"engines"`
	}
	if !x.ok() || json.Unmarshal(x.body, &told) != nil || len(told.Engines) == 0 {
		return closed
	}
	var works, fails []string
	for _, e := range told.Engines {
		if name := v.foreign(e.Address); !e.Working || e.Latest == nil {
			fails = append(fails, name)
			continue
		} else if v.engine == "" {
			switch e.Latest.Kind {
			case engine.VLLM, engine.SGLang, engine.LlamaCPP:
				v.engine = e.Latest.Kind
			}
		}
		busy := v.foreign(string(e.Latest.Kind))
		if n, known := e.Latest.Running.Get(); known {
			busy += fmt.Sprintf(", running %d", n)
		}
		if n, known := e.Latest.Waiting.Get(); known {
			busy += fmt.Sprintf(", waiting %d", n)
		}
		works = append(works, busy)
	}
	works, fails = works[:min(len(works), 5)], fails[:min(len(fails), 5)]
	if len(fails) > 0 {
		return yellow("the gateway cannot read the gauges of every engine", "Not of: "+strings.Join(fails, ", ")+".",
			"see last_error in GET "+base.String()+"/weir/engines, and the address that the option engine has")
	}
	return green("the gateway reads the engine's gauges: " + strings.Join(works, "; "))
}
