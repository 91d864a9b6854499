package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// maxCallsBody is the most of an answer of the gateway that is read: some
	// 2 KiB for each of 2,000 calls, and room.
	maxCallsBody = 32 << 20
	// fetchLimit asks for more calls than a gateway gives.
	fetchLimit = 5000
	// fetchAge is how far before the first call the gateway's clock may be.
	fetchAge = time.Hour
)

// gatewayCall is what of a gateway's record is compared.
type gatewayCall struct {
	RequestID string        `json:"request_id"`
	TTFT      call.Duration `json:"ttft_ms"`
	TPOT      call.Duration `json:"tpot_ms"`
	E2E       call.Duration `json:"e2e_ms"`
	Input     call.Count    `json:"input_tokens"`
	Output    call.Count    `json:"output_tokens"`
}

// adminURL reads the address of Caddy's admin endpoint; without a scheme it is http.
func adminURL(address string) (*url.URL, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("the gateway's admin address is not a URL: write it like http://127.0.0.1:2019")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/weir")
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// fetchCalls asks the gateway for the calls of a run since a time, the latest
// first. With them comes what it says of those that are missing.
func fetchCalls(ctx context.Context, client *http.Client, admin *url.URL, run string, since time.Time) ([]gatewayCall, string, error) {
	u := admin.JoinPath("weir", "calls")
	u.RawQuery = url.Values{
		"run": {run}, "limit": {strconv.Itoa(fetchLimit)}, "since": {since.UTC().Format(time.RFC3339Nano)},
	}.Encode()
	var answer struct {
		Calls       []gatewayCall `json:"calls"`
		LedgerError string        `json:"ledger_error"`
	}
	if err := getJSON(ctx, client, u, maxCallsBody, &answer); err != nil {
		return nil, "", err
	}
	return answer.Calls, answer.LedgerError, nil
}

// statusError is an answer that is no success.
type statusError int

func (s statusError) Error() string {
	return fmt.Sprintf("it answered %d %s", int(s), http.StatusText(int(s)))
}

// getJSON reads a JSON document of at most limit bytes.
func getJSON(ctx context.Context, client *http.Client, u *url.URL, limit int64, into any) error {
	_, body, err := get(ctx, client, u, nil, limit)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(body, into); err != nil {
		return errors.New("the answer is not the JSON that was expected")
	}
	return nil
}

// get reads a document of at most limit bytes. Its errors do not hold the URL,
// which may have something secret in it.
func get(ctx context.Context, client *http.Client, u *url.URL, header http.Header, limit int64) (http.Header, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, nil, errors.New("the address is not one that can be asked")
	}
	for name, values := range header {
		r.Header[name] = values
	}
	res, err := client.Do(r)
	if err != nil {
		if wrapped, ok := errors.AsType[*url.Error](err); ok {
			err = wrapped.Err
		}
		return nil, nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return res.Header, nil, statusError(res.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, limit+1))
	if err != nil {
		return res.Header, nil, fmt.Errorf("read the answer: %w", err)
	}
	if int64(len(body)) > limit {
		return res.Header, nil, fmt.Errorf("the answer is longer than %d KiB", limit>>10)
	}
	return res.Header, body, nil
}
