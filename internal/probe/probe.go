package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// Defaults of Options, each for a field that is 0.
const (
	// DefaultEvery is often enough that an outage at night is seen within a minute,
	// and costs 1,440 small calls a day.
	DefaultEvery = time.Minute
	// MinEvery keeps a probe from becoming a load.
	MinEvery = time.Second
	// DefaultTimeout is far beyond what a small call takes, and below DefaultEvery.
	DefaultTimeout = 30 * time.Second
	// DefaultOutput is enough tokens for a time per output token.
	DefaultOutput = 8
	// MaxOutput keeps a probe small.
	MaxOutput = 256
)

// prompt is what a probe asks. It holds nothing of anybody's, and its length never
// changes: the number before it has ten digits.
const prompt = "%010d. Count from one to twenty in words, separated by commas."

// Options describe a probe.
type Options struct {
	// Name tells probes apart, in metrics.
	Name string
	// URL is the base URL of the site that the gateway serves, such as
	// http://127.0.0.1:8080.
	URL string
	// Model is asked for; it must not be empty.
	Model string
	// Output is how many tokens are asked for.
	Output int
	// Every is the time from the begin of one call to that of the next, Timeout how long one
	// may take.
	Every, Timeout time.Duration
	// Key goes along as the caller's, where the upstream wants one.
	Key string
	// Header is sent along, such as the mark of the gateway's own calls.
	Header http.Header
	// Report gets the record of each call, as measured from here. It may be nil.
	Report func(name string, rec *call.Record)
	// HTTP sends the calls; nil is a transport of its own.
	HTTP *http.Client
}

func (o *Options) complete() error {
	if o.Name == "" {
		return errors.New("a probe needs a name")
	}
	if o.Model == "" {
		return fmt.Errorf("probe %s needs the name of a model to ask for", o.Name)
	}
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" {
		return fmt.Errorf("probe %s needs the URL of a site of this gateway, such as http://127.0.0.1:8080", o.Name)
	}
	for _, d := range []struct {
		what      string
		value     *time.Duration
		least, or time.Duration
	}{{"every", &o.Every, MinEvery, DefaultEvery}, {"timeout", &o.Timeout, time.Millisecond, DefaultTimeout}} {
		if *d.value == 0 {
			*d.value = d.or
		}
		if *d.value < d.least {
			return fmt.Errorf("probe %s: %s is at least %v, not %v", o.Name, d.what, d.least, *d.value)
		}
	}
	if o.Output == 0 {
		o.Output = DefaultOutput
	}
	if o.Output < 1 || o.Output > MaxOutput {
		return fmt.Errorf("probe %s: a probe writes 1 to %d tokens, not %d", o.Name, MaxOutput, o.Output)
	}
	return nil
}

// Validate tells what is wrong with the options.
func (o Options) Validate() error { return o.complete() }

// State is how a probe stands.
type State struct {
	Name  string `json:"probe"`
	Calls int64  `json:"calls"`
	// Failed counts calls that did not complete, InARow those since the last that did.
	Failed int64 `json:"failed"`
	InARow int64 `json:"failed_in_a_row"`
	// Input and Output are the tokens that the calls used so far, which are in no bill, and
	// NoUsage is how many calls told of none: the engine may have counted some for them.
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
	NoUsage int64 `json:"calls_without_usage"`
	// Latest is the latest call, without what a record would hold of anybody: nil
	// before the first.
	Latest *Result `json:"latest,omitempty"`
}

// Result is one call of a probe.
type Result struct {
	Time    time.Time     `json:"time"`
	Outcome call.Outcome  `json:"outcome"`
	Status  int           `json:"status,omitempty"`
	Error   string        `json:"error,omitempty"`
	TTFT    call.Duration `json:"ttft_ms,omitzero"`
	TPOT    call.Duration `json:"tpot_ms,omitzero"`
	E2E     call.Duration `json:"e2e_ms,omitzero"`
}

// Probe makes the calls.
type Probe struct {
	o      Options
	client *endpoint.Client
	number int64 // of the next call; Run's own

	mu    sync.Mutex
	state State
}

// New makes a Probe; it calls nothing until Run.
func New(o Options) (*Probe, error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	header := o.Header.Clone()
	if header == nil {
		header = make(http.Header)
	}
	header.Set("X-Weir-Run", "probe-"+o.Name)
	base, err := endpoint.ParseBase(o.URL)
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", o.Name, err)
	}
	root := base.URL()
	if len(root.Path) <= 1 { // a path of its own says where the API is
		root.Path = "/v1"
	}
	client, err := endpoint.NewClient(endpoint.Config{Root: root.String(), Key: o.Key, Header: header, Timeout: o.Timeout, HTTP: o.HTTP})
	if err != nil {
		return nil, fmt.Errorf("probe %s: %w", o.Name, err)
	}
	return &Probe{o: o, client: client, number: time.Now().Unix() % 1e10, state: State{Name: o.Name}}, nil
}

// Run makes a call at once and then one every Options.Every until ctx is done. One
// that takes longer than that lets the next ones out.
func (p *Probe) Run(ctx context.Context) {
	defer p.client.Close()
	tick := time.NewTicker(p.o.Every)
	defer tick.Stop()
	for {
		p.call(ctx)
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

func (p *Probe) call(ctx context.Context) {
	cold := 0.0
	ask := endpoint.Ask{API: endpoint.Chat, Model: p.o.Model, Prompt: fmt.Sprintf(prompt, p.number), Stream: true, MaxTokens: p.o.Output, Temperature: &cold, Usage: true}
	p.number++
	body, err := ask.Body()
	if err != nil { // plain strings and numbers always marshal
		return
	}
	begin := time.Now()
	reply := p.client.Call(ctx, endpoint.Chat, body, "probe-"+p.o.Name+"-"+strconv.FormatInt(p.number, 10), nil)
	rec := reply.Record
	if ctx.Err() != nil {
		return // the probe ends, which says nothing of the service
	}
	p.mu.Lock()
	s := &p.state
	s.Calls++
	s.InARow++
	if rec.Outcome == call.Completed {
		s.InARow = 0
	} else {
		s.Failed++
	}
	input, read := rec.Input.Get()
	output, wrote := rec.Output.Get()
	s.Input, s.Output = s.Input+input, s.Output+output
	if !read || !wrote {
		s.NoUsage++
	}
	s.Latest = &Result{Time: begin, Outcome: rec.Outcome, Status: rec.Status, Error: rec.Error, TTFT: rec.TTFT, TPOT: rec.TPOT, E2E: rec.E2E}
	p.mu.Unlock()
	if p.o.Report != nil {
		p.o.Report(p.o.Name, &rec)
	}
}

// State returns how the probe stands. It counts since the configuration was loaded.
func (p *Probe) State() State {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.state
}
