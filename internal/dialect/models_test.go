package dialect

import (
	"slices"
	"testing"
)

func TestModelsNamed(t *testing.T) {
	const form = "multipart/form-data; boundary=b"
	part := func(name, value string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"\r\n\r\n" + value + "\r\n"
	}
	for _, c := range []struct {
		path, kind, body string
		want             []string
		whole            bool
	}{
		{"/v1/chat/completions", "", `{"model":"a"}`, []string{"a"}, true},
		{"/v1/chat/completions", "", `{"model":"large","messages":[{"model":"x"}],"model":"small"}`, []string{"large", "small"}, true},
		{"/v1/chat/completions", "", `{"model":"large","mod\u0065l":"small"}`, []string{"large", "small"}, true},
		{"/api/chat", "", `{"model":"small","Model":"large","MODEL":"x"}`, []string{"small", "large", "x"}, true},
		{"/v1beta/models/large:generateContent", "", `{"model":"small"}`, []string{"large", "small"}, true},
		{"/openai/deployments/large/chat/completions", "", `{"model":"small"}`, []string{"large", "small"}, true},
		{"/v1/chat/completions", "", `{"model":"a",]"model":"b"}`, []string{"a"}, false},
		{"/v1/chat/completions", "", `{"model":"a"`, []string{"a"}, false},
		{"/v1/chat/completions", "", `{"model":"a"}{"model":"b"}`, []string{"a"}, false},
		{"/v1/chat/completions", "", "\ufeff{\"model\":\"a\"}", []string{"a"}, true},
		{"/v1/chat/completions", "", ``, nil, false},
		{"/v1/audio/transcriptions", form, part("model", "a") + part("file", "x") + part("Model", "b") + "--b--\r\n", []string{"a", "b"}, true},
		{"/v1/audio/transcriptions", form, part("model", "a") + "--b\r\nContent-", nil, false},
		{"/openai/deployments/small/chat/completions", form, `{"model":"big"}`, []string{"small"}, false},
		{"/v1/audio/transcriptions", form, "--b\r\nContent-Disposition: form-data; name=\"model\"; x=a b\r\n\r\nbig\r\n--b--\r\n", nil, false},
	} {
		got, err := ModelsNamed(c.path, c.kind, []byte(c.body))
		if !slices.Equal(got, c.want) || (err == nil) != c.whole {
			t.Errorf("%s %s: %q, %v; want %q, whole %v", c.path, c.body, got, err, c.want, c.whole)
		}
	}
}
