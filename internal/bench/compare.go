package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
)

const (
	// gatewayKeeps is how many calls a gateway answers with: those in its memory,
	// and as many of its ledger's latest.
	gatewayKeeps = 1000
	// compareWithin is how long missing calls are waited for: a record is made
	// when the gateway has closed the call, a little after the client's end.
	compareWithin = 5 * time.Second
	// farApart is the difference, in milliseconds, from which a call is named.
	farApart = 5.0
	// maxDifferences is how many are.
	maxDifferences = 10
)

// Compare sets the samples beside the records that the gateway at admin (Caddy's
// admin endpoint, such as http://127.0.0.1:2019) has of the same run. Calls of the
// warm-up and calls that failed are left out. It waits a few seconds for records
// that are still missing. A client of nil is http.DefaultClient.
//
// The differences are by our definitions whatever the samples' profile. A call
// that opened a connection has its time in the client's TTFT, and the gateway
// knows nothing of that; Note says how many did.
func Compare(ctx context.Context, client *http.Client, admin string, run string, samples []Sample) (Compared, error) {
	u, err := adminURL(admin)
	if err != nil {
		return Compared{}, fmt.Errorf("compare with the gateway: %w", err)
	}
	if client == nil {
		client = http.DefaultClient
	}
	ours := map[string]*Sample{}
	var begin time.Time
	for i := range samples {
		s := &samples[i]
		if s.Warmup || s.Failed != "" || s.Run != run {
			continue
		}
		ours[s.ID] = s
		if begin.IsZero() || s.Start.Before(begin) {
			begin = s.Start
		}
	}
	c := Compared{Calls: len(ours)}
	if len(ours) == 0 {
		c.Note = "no measured call of this run succeeded, so there is nothing to compare"
		return c, nil
	}
	theirs, missing, err := awaitCalls(ctx, client, u, run, begin.Add(-fetchAge), ours)
	if err != nil {
		return c, fmt.Errorf("compare with the gateway at %s://%s: %w", u.Scheme, u.Host, err)
	}
	c.fill(ours, theirs)
	c.Note = c.note(ours, theirs, missing)
	return c, nil
}

// awaitCalls asks again until all calls are there that can be.
func awaitCalls(ctx context.Context, client *http.Client, u *url.URL, run string, since time.Time, ours map[string]*Sample) (map[string]*gatewayCall, string, error) {
	ctx, cancel := context.WithTimeout(ctx, compareWithin)
	defer cancel()
	found := map[string]*gatewayCall{}
	var note string
	var failure error = errors.New("it did not answer in time")
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		calls, missing, err := fetchCalls(ctx, client, u, run, since)
		switch code, refused := errors.AsType[statusError](err); {
		case refused && code == http.StatusNotFound:
			return nil, "", fmt.Errorf("%w; is this the admin address of a Caddy with weir in its configuration?", err)
		case refused && code < 500:
			return nil, "", err
		case err != nil && ctx.Err() == nil:
			failure = fmt.Errorf("%w; is it the admin address, and reachable from here?", err)
		case err == nil:
			failure, note = nil, missing
			for i := range calls {
				if ours[calls[i].RequestID] != nil {
					found[calls[i].RequestID] = &calls[i]
				}
			}
			if len(found) >= min(len(ours), gatewayKeeps) {
				return found, note, nil
			}
		}
		if !wait(ctx, pause) {
			return found, note, failure
		}
	}
}

// fill compares call by call.
func (c *Compared) fill(ours map[string]*Sample, theirs map[string]*gatewayCall) {
	var ttft, tpot, e2e column
	var far []apart
	for id, g := range theirs {
		s := ours[id]
		c.Found++
		switch equal, differ := tokensEqual(s, g); {
		case differ:
			c.TokensDiffer++
			far = append(far, apart{math.Inf(1), Difference{ID: id, Figure: "tokens in/out", Client: inOut(s.Input, s.Output), Gateway: inOut(g.Input, g.Output)}})
		case equal:
			c.TokensEqual++
		}
		own := s.own()
		for _, one := range [...]struct {
			name            string
			client, gateway call.Duration
			into            *column
		}{{"TTFT", own.TTFT, g.TTFT, &ttft}, {"TPOT", own.TPOT, g.TPOT, &tpot}, {"E2E", own.E2E, g.E2E, &e2e}} {
			d := one.client.Minus(one.gateway)
			if !d.IsKnown() {
				continue
			}
			by := math.Abs(d.MillisecondsFloat())
			one.into.add(by, true)
			if by >= farApart {
				far = append(far, apart{by, Difference{ID: id, Figure: one.name, Client: ms(one.client), Gateway: ms(one.gateway)}})
			}
		}
	}
	c.TTFT, c.TPOT, c.E2E = ttft.quantiles(false), tpot.quantiles(false), e2e.quantiles(false)
	slices.SortFunc(far, func(a, b apart) int {
		return cmp.Or(cmp.Compare(b.by, a.by), strings.Compare(a.ID, b.ID), strings.Compare(a.Figure, b.Figure))
	})
	for _, one := range far[:min(len(far), maxDifferences)] {
		c.Differences = append(c.Differences, one.Difference)
	}
}

type apart struct {
	by float64
	Difference
}

// tokensEqual compares what both sides know; neither holds when that is nothing.
func tokensEqual(s *Sample, g *gatewayCall) (equal, differ bool) {
	for _, one := range [...][2]call.Count{{s.Input, g.Input}, {s.Output, g.Output}} {
		a, ok1 := one[0].Get()
		b, ok2 := one[1].Get()
		if ok1 && ok2 {
			equal = true
			differ = differ || a != b
		}
	}
	return equal && !differ, differ
}

func (c *Compared) note(ours map[string]*Sample, theirs map[string]*gatewayCall, missing string) string {
	var notes []string
	if lost := c.Calls - c.Found; lost > 0 {
		switch {
		case c.Found == 0:
			notes = append(notes, "the gateway has no record of these calls: did they go through it, and did they bear X-Weir-Run?")
		case c.Calls > gatewayKeeps:
			notes = append(notes, fmt.Sprintf("%d calls were not compared: the gateway answers with its latest %d only", lost, gatewayKeeps))
		default:
			notes = append(notes, fmt.Sprintf("the gateway has no record of %d calls", lost))
		}
	}
	if missing != "" {
		notes = append(notes, "of its ledger the gateway says: "+call.NameOf(missing))
	}
	fresh := 0
	for id := range theirs {
		if ours[id].Connected.IsKnown() {
			fresh++
		}
	}
	if fresh > 0 {
		notes = append(notes, fmt.Sprintf("%d calls opened a connection, whose time is in the client's TTFT and E2E alone", fresh))
	}
	return strings.Join(notes, "; ")
}

func inOut(in, out call.Count) string { return count(in) + "/" + count(out) }

func count(c call.Count) string {
	if n, ok := c.Get(); ok {
		return strconv.FormatInt(n, 10)
	}
	return "unknown"
}

func ms(d call.Duration) string {
	return strconv.FormatFloat(d.MillisecondsFloat(), 'f', 3, 64) + " ms"
}
