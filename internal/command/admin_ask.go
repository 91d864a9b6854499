package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"
)

// adminAsk is one question to a running gateway's admin endpoint, whose answer is
// passed on as it is: text for people, or JSON for programs.
type adminAsk struct {
	admin, path string
	query       url.Values // format is added for text
	json        bool
	patience    time.Duration // for the answer; 0 is 30 s

	client *http.Client // nil is http.DefaultClient
	out    io.Writer
}

// maxAnswer bounds what is read of the gateway's answer.
const maxAnswer = 16 << 20

func (a adminAsk) do(ctx context.Context) error {
	u, err := url.Parse(strings.TrimSuffix(a.admin, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("--admin is no URL: write it like http://127.0.0.1:2019")
	}
	if !a.json {
		a.query.Set("format", "text")
	}
	u.Path += a.path
	u.RawQuery = a.query.Encode()
	patience := a.patience
	if patience == 0 {
		patience = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w", err)
	}
	client := a.client
	if client == nil {
		client = http.DefaultClient
	}
	answer, err := client.Do(request)
	if err != nil {
		return fmt.Errorf("ask the gateway: %w; name its admin endpoint with --admin", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("read the gateway's answer: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the gateway answers %d: %s", answer.StatusCode, messageOf(body))
	}
	_, err = a.out.Write(body)
	return err
}

// messageOf is what an error answer of the gateway says to people: its field error
// where it is JSON, else its beginning. What a terminal would obey is taken out.
func messageOf(body []byte) string {
	text := string(body)
	var told struct {
		Error string `json:"error"`
	}
	switch {
	case json.Unmarshal(body, &told) == nil && told.Error != "":
		text = told.Error
	case strings.HasPrefix(strings.TrimSpace(text), "<"):
		return "a web page; name the gateway's admin endpoint with --admin"
	}
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 || r == utf8.RuneError {
			return ' '
		}
		return r
	}, text[:min(len(text), 500)])
	if text = strings.TrimSpace(text); text == "" {
		return "no reason is given; name the gateway's admin endpoint with --admin"
	}
	return text
}
