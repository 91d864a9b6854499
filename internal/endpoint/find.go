package endpoint

import (
	"context"
	"fmt"
	"net/http"
	"strings"
)

// Found is an API that was found, and how.
type Found struct {
	// Root is the URL below which API paths stand, such as
	// https://api.example.com/v1. "" when none was found.
	Root string
	// Models are the names that the endpoint lists, at most 4096; nil when it
	// gave no list.
	Models []string
	// Details are the same models with what else the list tells.
	Details []Model
	// Header is that of the answer which decided, without the key.
	Header http.Header
	// Tried are all requests that were sent, in order.
	Tried []Try
}

// Find finds out where below a base URL an API stands. It asks for the list of
// models at each candidate: the first that gives one decides, and so does the
// first that refuses the key (401, 403), since the way there exists; that comes
// with an error of kind FailedAuth. An endpoint without a list is found by
// sending an empty object to the API itself, which costs nothing: a refusal in
// JSON (400, 401, 422, 429 and the like) says that the API is there; a 404, a
// 405 or a page of HTML says that it is not.
//
// At most 1 MiB of an answer is read, and redirects are not followed, so that
// the key goes nowhere else. A client of nil is one of Find's own; ctx bounds
// all of it. An error of the connection ends the search, since all candidates
// are of one server. Where none of them fits, the error says which base URL is
// most likely right, what was tried and what came back; its kind is that of the
// most likely one. Errors wrap a *Failure and hold no key; Found holds what was
// tried even then.
func Find(ctx context.Context, client *http.Client, b Base, api API, key string) (Found, error) {
	var f Found
	if Path(api) == "" {
		return f, fmt.Errorf("find the API: %w", unknownAPI(api))
	}
	if b.host == "" {
		return f, fmt.Errorf("find the API: %w", &Failure{Kind: FailedRequest, Text: "there is no base URL: write it like " + baseExample})
	}
	if err := checkKey(key); err != nil {
		return f, fmt.Errorf("find the API: %w", err)
	}
	p, done := newProbe(client, api, key)
	defer done()
	for _, root := range b.roots() {
		t, header, answer := p.send(ctx, http.MethodGet, modelsURL(root, api), nil)
		f.Tried = append(f.Tried, t)
		switch {
		case ends(t):
			return f, fmt.Errorf("find the API: %w", t.failure())
		case t.Kind == FailedAuth:
			return f, f.refused(root, header, t)
		case t.Status == http.StatusOK && t.Says == saysList:
			f.Root, f.Header = root, header
			f.Details, _ = readModels(answer) // says has read it
			f.Models = make([]string, len(f.Details))
			for i, m := range f.Details {
				f.Models[i] = m.ID
			}
			return f, nil
		}
	}
	for _, root := range b.roots() {
		t, header, _ := p.send(ctx, http.MethodPost, root+"/"+Path(api), []byte("{}"))
		f.Tried = append(f.Tried, t)
		switch {
		case ends(t):
			return f, fmt.Errorf("find the API: %w", t.failure())
		case t.Kind == FailedAuth:
			return f, f.refused(root, header, t)
		case (t.Kind == FailedRequest || t.Kind == FailedLimit) && t.Says == saysError:
			f.Root, f.Header = root, header
			return f, nil
		}
	}
	return f, fmt.Errorf("find the API: %w", f.none(b, api))
}

// ends tells whether a try ends the search: no answer will come from there.
func ends(t Try) bool { return t.Status == 0 && t.Kind != FailedReset }

func (t *Try) failure() *Failure {
	return &Failure{Kind: t.Kind, Text: t.String(), Err: t.Err}
}

// refused notes a root at which the key does not hold.
func (f *Found) refused(root string, header http.Header, t Try) error {
	f.Root, f.Header = root, header
	return fmt.Errorf("find the API: %w", &Failure{Kind: FailedAuth, Text: t.String() + ": " + hint(FailedAuth)})
}

// none is the error of a search that found nothing.
func (f *Found) none(b Base, api API) *Failure {
	best, reason := f.likely()
	kind := best.Kind
	if kind == "" {
		kind = FailedShape // an answer of status 2xx that is not the API's
	}
	tried := make([]string, len(f.Tried))
	for i, t := range f.Tried {
		tried[i] = t.String()
	}
	text := fmt.Sprintf("no %s API answers below %s: %s", api, b, reason)
	return &Failure{Kind: kind, Text: text + " (tried " + strings.Join(tried, "; ") + ")", Err: best.Err}
}

// likely picks the try that was nearest to an API, and says what to make of it.
func (f *Found) likely() (best Try, reason string) {
	rank := func(t Try) int {
		switch {
		case t.Kind == FailedServer && t.Says == saysError:
			return 6
		case t.Location != "":
			return 5
		case t.Status == http.StatusMethodNotAllowed && t.Says == saysError:
			return 4
		case t.Kind == FailedServer:
			return 3
		case t.Says == saysError:
			return 2
		case t.Status != 0:
			return 1
		}
		return 0
	}
	best = f.Tried[0]
	for _, t := range f.Tried[1:] {
		if rank(t) > rank(best) {
			best = t
		}
	}
	root := rootOf(best.URL)
	switch rank(best) {
	case 6, 3:
		return best, fmt.Sprintf("%s is most likely right, but the server fails there: %s", root, hint(FailedServer))
	case 5:
		if to, err := ParseBase(best.Location); err == nil && to.cut {
			return best, fmt.Sprintf("it redirects, and %s is most likely right", to)
		}
		return best, fmt.Sprintf("it redirects to %s: check host and path", best.Location)
	case 4, 2:
		return best, fmt.Sprintf("%s is most likely right, since it answers in JSON, but it does not have this API: try another one", root)
	case 1:
		return best, fmt.Sprintf("what answers there does not look like an inference server; %s would be the usual place: check host, port and path", root)
	}
	return best, hint(FailedReset)
}

// Models asks an endpoint for its list of models. root is Found.Root or a URL
// like it; a client of nil is one of its own; ctx bounds the call. Where there
// is no list the error is a *Failure, of kind FailedShape when something else
// was answered, and holds no key.
func Models(ctx context.Context, client *http.Client, root string, api API, key string) ([]Model, error) {
	u, err := parseRoot(root)
	if err == nil {
		err = checkKey(key)
	}
	if err != nil {
		return nil, fmt.Errorf("list the models: %w", err)
	}
	p, done := newProbe(client, api, key)
	defer done()
	t, _, answer := p.send(ctx, http.MethodGet, modelsURL(u.String(), api), nil)
	switch {
	case t.Kind != "":
		return nil, fmt.Errorf("list the models: %w", t.failure())
	case t.Says != saysList:
		t.Kind = FailedShape
		return nil, fmt.Errorf("list the models: %w", t.failure())
	}
	models, _ := readModels(answer) // says has read it
	return models, nil
}

// modelsURL is where the list of models stands. Anthropic shows 20 at a time
// unless it is asked for more.
func modelsURL(root string, api API) string {
	if api == Messages {
		return root + "/models?limit=1000"
	}
	return root + "/models"
}

// rootOf returns the URL below which an API's URL stands.
func rootOf(url string) string {
	b, err := ParseBase(strings.TrimSuffix(url, "?limit=1000"))
	if err != nil {
		return url
	}
	return b.String()
}
