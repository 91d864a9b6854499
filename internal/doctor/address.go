package doctor

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/weirgate/weir/internal/endpoint"
)

// checkAddress reads the base URL as it was written.
func checkAddress(_ context.Context, v *visit) Finding {
	if endpoint.Path(v.API) == "" {
		return red("there is no API "+v.foreign(string(v.API)), "", fmt.Sprintf("choose one of %v", endpoint.APIs))
	}
	base, err := endpoint.ParseBase(v.Base)
	if err != nil {
		cause, next := reason(err)
		return red("the base URL cannot be read", cause, next)
	}
	v.written, v.base = base, base.URL()
	shown := base.String()
	path := v.Base
	if u, err := url.Parse(v.Base); err == nil {
		path = u.Path
	}
	switch {
	case strings.Contains(strings.TrimRight(path, "/")+"/", "/v1/v1/"):
		v.goOn()
		return red("/v1 stands twice in the base URL", "Clients append the rest of the path themselves, and meet a 404.", "write "+shown)
	case endsInAPI(path):
		v.goOn()
		return red("the base URL is the URL of an API", "Clients append the API's path themselves, and meet a 404.", "write "+shown)
	case len(base.Notes()) > 0:
		return yellow("the base URL is not written in full", strings.Join(base.Notes(), "; ")+".", "write "+shown)
	}
	if a, err := netip.ParseAddr(v.base.Hostname()); err == nil && a.IsUnspecified() {
		return yellow(shown, a.String()+" is an address to listen on, not one to call; some systems take it for this machine, others do not.", "write 127.0.0.1, or the machine's own address")
	}
	return green(shown)
}

// reason parts an error of ParseBase into what is wrong and what to do.
func reason(err error) (cause, next string) {
	text := err.Error()
	if inner := errors.Unwrap(err); inner != nil {
		text = inner.Error()
	}
	cause, next, parted := strings.Cut(text, ": ")
	if !parted {
		next = "write it like https://api.example.com/v1"
	}
	return strings.ToUpper(cause[:1]) + cause[1:] + ".", next
}

func endsInAPI(path string) bool {
	path = strings.TrimRight(path, "/")
	for _, api := range endpoint.APIs {
		if strings.HasSuffix(path, "/"+endpoint.Path(api)) {
			return true
		}
	}
	return strings.HasSuffix(path, "/models")
}

// checkPath finds out where below the base URL the API is.
func checkPath(ctx context.Context, v *visit) Finding {
	limited, cancel := context.WithTimeout(ctx, 3*v.Timeout)
	defer cancel()
	key := bareKey(v.Key)
	if !sendable(key) {
		key = ""
	}
	found, err := endpoint.Find(limited, v.http, v.written, v.API, key)
	v.found, v.root = found, found.Root
	if v.root == "" {
		if v.adminAsBase(limited) {
			return red("the base URL is the admin endpoint of a gateway, which takes no calls", "",
				"give the address of the gateway's site, such as http://127.0.0.1:8080, and this one with --admin")
		}
		return v.notFound(err)
	}
	return v.judgePath(ctx)
}

// judgePath sets what was written beside where the API is.
func (v *visit) judgePath(ctx context.Context) Finding {
	written, root := v.written.String(), v.root
	title := fmt.Sprintf("the %s API is at %s", v.API, root+"/"+endpoint.Path(v.API))
	if v.API == endpoint.Messages {
		// Anthropic's own clients append /v1/messages to their base URL.
		bare := strings.TrimSuffix(root, "/v1")
		switch written {
		case bare:
			return green(title)
		case root:
			return yellow(title, "Anthropic's own clients append /v1/messages to the base URL, and would write /v1 twice; Weir's commands take both.",
				"give Anthropic's clients "+bare)
		}
		v.goOn()
		return red("the base URL has the wrong path: "+title, "Nothing of this API answers below "+written+".", "write "+bare)
	}
	switch written {
	case root:
		return green(title)
	case strings.TrimSuffix(root, "/v1"):
		if v.servedBelow(ctx, written) {
			return green(title + ", and without /v1")
		}
		return yellow(title, "OpenAI's clients append chat/completions and the like to the base URL, and meet a 404 without /v1; Weir's commands take both.",
			"give clients "+root)
	case root + "/v1":
		v.goOn()
		return red("the base URL has a /v1 too many: "+title, "", "write "+root)
	}
	v.goOn()
	return red("the base URL has the wrong path: "+title, "Nothing of this API answers below "+written+".", "write "+root)
}

// servedBelow tells whether the API stands below a URL. An empty object costs
// nothing: where the API is, it is refused for what it lacks.
func (v *visit) servedBelow(ctx context.Context, root string) bool {
	h := v.authorized()
	h.Set("Content-Type", "application/json")
	x := v.send(ctx, http.MethodPost, root+"/"+endpoint.Path(v.API), h, []byte("{}"))
	return x.err == nil && (x.status == http.StatusBadRequest || x.status == http.StatusUnprocessableEntity)
}

// notFound is a search that ended without an API.
func (v *visit) notFound(err error) Finding {
	var saw []string
	status, location, html := 0, "", false
	for _, t := range v.found.Tried {
		if t.Status != 0 {
			saw = append(saw, fmt.Sprintf("%d at %s", t.Status, v.foreign(t.URL)))
		}
		status = max(status, t.Status)
		html = html || strings.Contains(t.Says, "HTML")
		if location == "" {
			location = t.Location
		}
	}
	detail := ""
	if len(saw) > 0 {
		detail = "It answered " + strings.Join(saw, ", ") + "."
	}
	kind := endpoint.KindOf(err)
	switch {
	case location != "":
		return red("the endpoint redirects to another address", detail, "use "+v.foreign(rootOf(location))+" if that is yours: clients do not follow a redirect of a POST")
	case kind == endpoint.FailedServer || status >= http.StatusInternalServerError:
		// The API itself will say more; the most likely place is asked.
		v.root = strings.TrimSuffix(v.written.Candidates(endpoint.Path(v.API))[0], "/"+endpoint.Path(v.API))
		return grey("not certain because the server fails whatever it is asked", detail)
	case status == 0:
		return red("the endpoint gave no answer: "+dialFault(err), "", "see the server's log, and look for a limit or a time-out on the way")
	case html:
		return red(fmt.Sprintf("there is no %s API below %s, but web pages", v.API, v.written), detail,
			"use the address of the API, which is often a name or path of its own (api.…, /api, /api/v1); the provider's documentation names it")
	}
	return red(fmt.Sprintf("there is no %s API below %s", v.API, v.written), detail,
		"check host, port and path; the engine may also lack this API: try another with --api")
}

// rootOf is the base URL that a redirect leads to, without query and such.
func rootOf(location string) string {
	if u, err := url.Parse(location); err == nil {
		u.User, u.RawQuery, u.Fragment = nil, "", ""
		location = u.String()
	}
	if b, err := endpoint.ParseBase(location); err == nil {
		return b.String()
	}
	return location
}
