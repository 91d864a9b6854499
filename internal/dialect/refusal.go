package dialect

import "encoding/json"

// Refusal is an error that the gateway itself answers.
type Refusal struct {
	Status  int    // HTTP status, 4xx or 5xx
	Code    string // short, for programs; not every dialect has a place for it
	Type    string // what OpenAI calls the error's type; "" goes by the status
	Message string // for people
}

// refusal makes a dialect's own error body.
type refusal func(Refusal) []byte

// ErrorBody returns an error in the dialect's own form.
func (d *Dialect) ErrorBody(r Refusal) (contentType string, body []byte) {
	return "application/json", d.refusal(r)
}

// errorType is what OpenAI and Anthropic call errors of a status.
func errorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	}
	if status >= 500 {
		return "server_error"
	}
	return "invalid_request_error"
}

func openAIRefusal(r Refusal) []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	if r.Type == "" {
		r.Type = errorType(r.Status)
	}
	b, _ := json.Marshal(struct { // strings always marshal
		Error inner `json:"error"`
	}{inner{r.Message, r.Type, nil, r.Code}})
	return b
}

// textRefusal is {"key": message}, with the code under codeKey when that is not empty.
func textRefusal(key, codeKey string) refusal {
	return func(r Refusal) []byte {
		m := map[string]string{key: r.Message}
		if codeKey != "" {
			m[codeKey] = r.Code
		}
		b, _ := json.Marshal(m)
		return b
	}
}

// statusRefusal is an error object that begins with the HTTP status.
func statusRefusal(key string, name func(status int, code string) string) refusal {
	return func(r Refusal) []byte {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{
			"code": r.Status, "message": r.Message, key: name(r.Status, r.Code),
		}})
		return b
	}
}
