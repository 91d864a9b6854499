package dialect

import "encoding/json"

// refusal makes a dialect's own error body.
type refusal func(status int, code, message string) []byte

// ErrorBody returns an error in the dialect's own form, for answers that the
// gateway gives itself. The code is short and for programs, the message for people.
func (d *Dialect) ErrorBody(status int, code, message string) (contentType string, body []byte) {
	return "application/json", d.refusal(status, code, message)
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

func openAIRefusal(status int, code, message string) []byte {
	type inner struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    string  `json:"code"`
	}
	b, _ := json.Marshal(struct { // strings always marshal
		Error inner `json:"error"`
	}{inner{message, errorType(status), nil, code}})
	return b
}

// textRefusal is {"key": message}, with the code under codeKey when that is not empty.
func textRefusal(key, codeKey string) refusal {
	return func(_ int, code, message string) []byte {
		m := map[string]string{key: message}
		if codeKey != "" {
			m[codeKey] = code
		}
		b, _ := json.Marshal(m)
		return b
	}
}

// statusRefusal is an error object that begins with the HTTP status.
func statusRefusal(key string, name func(status int, code string) string) refusal {
	return func(status int, code, message string) []byte {
		b, _ := json.Marshal(map[string]any{"error": map[string]any{
			"code": status, "message": message, key: name(status, code),
		}})
		return b
	}
}
