package command

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/bench"
	"github.com/weirgate/weir/internal/endpoint"
)

// checkWithin is how long the gateway has to show the record of a call that has
// ended.
const checkWithin = 3 * time.Second

// checkGateway sends one call and looks whether the gateway has a record of it, so
// that a wrong address is noticed before the load. The call goes out as a run of
// its own. Where it fails, the warm-up will say so better.
func (b *benchmark) checkGateway(ctx context.Context, found endpoint.Found, ask endpoint.Ask, there bool, run string) error {
	if !there {
		return errors.New("--admin: no gateway that takes calls answers at /weir/ready there: name the admin address of a Caddy with weir in its configuration, like http://127.0.0.1:2019")
	}
	run += "-check"
	client, err := b.caller(found, run)
	if err != nil {
		return err
	}
	defer client.Close()
	ask.Prompt, ask.MaxTokens = "Say yes.", 16 // less than that some models refuse
	body, err := ask.Body()
	if err != nil {
		return err
	}
	reply := client.Call(ctx, ask.API, body, run+"-1", nil)
	if reply.Failed != "" {
		return nil
	}
	within, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	c, err := bench.Compare(within, b.client, b.admin, run, []bench.Sample{{Run: run, ID: run + "-1", Start: reply.Start}})
	if err != nil {
		return fmt.Errorf("--compare: %w", err)
	}
	if c.Found == 0 && ctx.Err() == nil {
		return errors.New("--compare: the gateway has no record of a call that was sent to --url just now: --url must be an address of the gateway that --admin belongs to")
	}
	return nil
}

// comparedLast calls of a load are kept for the comparison, at least; a gateway
// tells of fewer.
const comparedLast = 50_000

// comparer sets the gateway's records beside the client's, load by load: a gateway
// keeps the latest calls only. It gets each call from one goroutine.
type comparer struct {
	compare func([]bench.Sample) (bench.Compared, error)

	load    string
	samples []bench.Sample
	dropped int
	loads   map[string]*bench.Compared
	err     error // the first one
}

// take keeps a call. When it is the first of another load, those of the one before
// are compared.
func (c *comparer) take(s bench.Sample) {
	if s.Load != c.load {
		c.flush()
		c.load = s.Load
	}
	if s.Warmup {
		return
	}
	if len(c.samples) == 2*comparedLast {
		c.dropped += comparedLast
		c.samples = c.samples[:copy(c.samples, c.samples[comparedLast:])]
	}
	s.Gaps = nil
	c.samples = append(c.samples, s)
}

func (c *comparer) flush() {
	if len(c.samples) == 0 {
		return
	}
	result, err := c.compare(c.samples)
	if err != nil {
		if c.err == nil {
			c.err = fmt.Errorf("--compare: %s: %w", c.load, err)
		}
	} else {
		if c.dropped > 0 {
			result.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d calls before these were not looked up", result.Note, c.dropped), "; ")
		}
		if c.loads == nil {
			c.loads = map[string]*bench.Compared{}
		}
		c.loads[c.load] = &result
	}
	clear(c.samples)
	c.samples, c.dropped = c.samples[:0], 0
}

// fill compares what is left, and puts the comparisons into the runs.
func (c *comparer) fill(runs []bench.Run) error {
	c.flush()
	for i := range runs {
		runs[i].Compared = c.loads[runs[i].Load]
	}
	return c.err
}
