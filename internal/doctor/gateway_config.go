package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sort"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/engine"
)

// checkConfig looks through the gateway's running configuration for what gets in
// the way of streams, connections and keys. It shows none of its values.
func checkConfig(ctx context.Context, v *visit) Finding {
	x := v.request(ctx, http.MethodGet, v.gate.admin+"/config/apps/http/servers", nil)
	if x.err != nil || x.status != http.StatusOK {
		return grey("not looked at because the admin endpoint does not show the configuration")
	}
	var servers any
	if json.Unmarshal(x.body, &servers) != nil || servers == nil {
		return grey("not looked at because there is no configuration of servers")
	}
	var c configuration
	c.walk(servers, 0)
	return v.judgeConfig(c)
}

// configuration is what is looked for in Caddy's.
type configuration struct {
	weir, proxies int
	buffers       bool            // a reverse_proxy buffers answers
	flushes       bool            // a reverse_proxy flushes at intervals
	keepAlive     []time.Duration // idle time of each reverse_proxy; 0 is the default, negative is off
	noBearer      bool            // a reverse_proxy sets Authorization without Bearer
}

// maxDepth bounds the walk; routes of Caddy lie some dozen levels deep.
const maxDepth = 100

func (c *configuration) walk(node any, depth int) {
	if depth > maxDepth {
		return
	}
	switch n := node.(type) {
	case []any:
		for _, child := range n {
			c.walk(child, depth+1)
		}
	case map[string]any:
		switch n["handler"] {
		case "weir":
			c.weir++
		case "reverse_proxy":
			c.proxy(n)
		}
		names := make([]string, 0, len(n))
		for name := range n {
			names = append(names, name)
		}
		sort.Strings(names)
		for _, name := range names {
			c.walk(n[name], depth+1)
		}
	}
}

func (c *configuration) proxy(n map[string]any) {
	c.proxies++
	if size, is := n["response_buffers"].(float64); is && size != 0 {
		c.buffers = true
	}
	if every, known := nanoseconds(n["flush_interval"]); known && every > 0 {
		c.flushes = true
	}
	idle := time.Duration(0)
	transport, _ := n["transport"].(map[string]any)
	keep, _ := transport["keep_alive"].(map[string]any)
	if enabled, said := keep["enabled"].(bool); said && !enabled {
		idle = -1
	} else if d, known := nanoseconds(keep["idle_timeout"]); known {
		idle = d
	}
	c.keepAlive = append(c.keepAlive, idle)
	headers, _ := n["headers"].(map[string]any)
	request, _ := headers["request"].(map[string]any)
	for _, how := range []string{"set", "add"} {
		fields, _ := request[how].(map[string]any)
		for name, values := range fields {
			if !strings.EqualFold(name, "Authorization") {
				continue
			}
			list, _ := values.([]any)
			for _, value := range list {
				if text, is := value.(string); is && strings.HasPrefix(text, "{env.") {
					c.noBearer = true
				}
			}
		}
	}
}

// nanoseconds reads a duration of Caddy: a number of nanoseconds, or a text.
func nanoseconds(value any) (time.Duration, bool) {
	switch d := value.(type) {
	case float64:
		return time.Duration(d), true
	case string:
		parsed, err := time.ParseDuration(d)
		return parsed, err == nil
	}
	return 0, false
}

// closesIdle tells after how long an engine closes idle connections.
func closesIdle(kind engine.Kind) (time.Duration, string) {
	switch kind {
	case engine.VLLM, engine.SGLang:
		return 5 * time.Second, "vLLM and SGLang (uvicorn) close idle connections after 5 s"
	case engine.LlamaCPP:
		return 5 * time.Second, "llama.cpp closes idle connections after 5 s"
	}
	return 0, ""
}

func (v *visit) judgeConfig(c configuration) Finding {
	limit, why := closesIdle(v.engineKind())
	long := ""
	for _, idle := range c.keepAlive {
		if idle == 0 {
			idle = 2 * time.Minute // Caddy's default
		}
		if limit > 0 && idle >= limit {
			long = fmt.Sprintf("A reverse_proxy keeps them for %s; %s.", roughly(idle), why)
		}
	}
	switch {
	case c.weir == 0:
		return red("no site of the gateway has the directive weir", "", "write weir before reverse_proxy in the site")
	case c.noBearer:
		return yellow("the gateway sends a variable as the whole Authorization header", "Unless the variable's value begins with it, the word Bearer is missing, and the upstream answers 401.",
			`write header_up Authorization "Bearer {env.NAME}"`)
	case c.buffers:
		return yellow("a reverse_proxy of the gateway buffers answers", "Streams are held back until the buffer is full.", "take response_buffers out of the reverse_proxy")
	case c.flushes:
		return yellow("a reverse_proxy of the gateway flushes at intervals", "Streams other than text/event-stream come in clumps.", "take flush_interval out, or set it to -1")
	case long != "":
		return yellow("the gateway keeps idle connections for longer than the engine does", long+" A call sent at that very moment fails, and is sent again, once.",
			"write transport http { keepalive 4s } within reverse_proxy")
	}
	return green(fmt.Sprintf("nothing in the gateway's configuration gets in the way (%d reverse_proxy)", c.proxies))
}
