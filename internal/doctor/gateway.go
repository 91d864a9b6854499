package doctor

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/endpoint"
)

// gate is what is known of the gateway.
type gate struct {
	admin   string // its admin endpoint, without a slash at the end
	records []gateRecord
}

// gateRecord is what the doctor reads of a call's record.
type gateRecord struct {
	RequestID   string             `json:"request_id"`
	Outcome     call.Outcome       `json:"outcome"`
	Status      int                `json:"status"`
	RefusedBy   string             `json:"refused_by"`
	Degraded    []call.Degradation `json:"degraded"`
	TTFT        call.Duration      `json:"ttft_ms"`
	Input       call.Count         `json:"input_tokens"`
	Output      call.Count         `json:"output_tokens"`
	ParseErrors int64              `json:"parse_errors"`
}

// checkGateway looks at the gateway's admin endpoint.
func checkGateway(ctx context.Context, v *visit) Finding {
	base, err := endpoint.ParseBase(v.Admin)
	if err != nil {
		return red("the address of the gateway's admin endpoint cannot be read", "", "write it like http://127.0.0.1:2019")
	}
	v.gate.admin = base.String()
	x := v.request(ctx, http.MethodGet, v.gate.admin+"/weir/ready", nil)
	switch {
	case x.err != nil:
		return red("the gateway's admin endpoint cannot be reached: "+dialFault(x.err), "At "+v.gate.admin+".",
			"start the gateway (weir run), or correct the address; it is what admin says among Caddy's global options, 127.0.0.1:2019 by default, and reachable from that machine only")
	case notAdmin(x), !isProbe(x) && v.sameHost(v.gate.admin):
		return v.noAdmin(x)
	case x.status == http.StatusOK:
		return green("the gateway takes calls")
	case x.status == http.StatusServiceUnavailable:
		return red("the gateway takes no calls (503 at /weir/ready)", "It is being shut down, or no site of its configuration has the directive weir.", "look at its log, and write weir before reverse_proxy in the site")
	case x.status == http.StatusForbidden:
		return red("Caddy's admin endpoint does not allow this address (403)", "It answers only to the names that it knows itself by.", "use the address that admin has among Caddy's global options, or add this one to its origins")
	case x.status == http.StatusNotFound:
		return red("Caddy's admin endpoint answers, but Weir is not in it (404)", "", "run the binary that has Weir built in: weir run; and check that the address is the admin endpoint's, not the site's")
	}
	return red(fmt.Sprintf("the gateway's admin endpoint answers %d", x.status), "", "check that the address is the admin endpoint's, 127.0.0.1:2019 by default")
}

// checkRecord says whether the gateway recorded the doctor's calls.
func checkRecord(ctx context.Context, v *visit) Finding {
	v.stream(ctx)
	want := len(v.calls.order)
	if err := v.fetch(ctx, want); err != nil {
		return red("the gateway does not show its calls", err.Error()+".", "look at the gateway's log; its version may be older than the doctor's")
	}
	got := 0
	for _, c := range v.calls.order {
		if v.record(c) != nil {
			got++
		}
	}
	switch {
	case got == want:
		return green(fmt.Sprintf("the gateway recorded all %d calls of the doctor", want))
	case len(v.gate.records) == 0:
		return red("the calls left no record in the gateway", "They were answered, but not by way of the directive weir of this gateway.",
			"check that the base URL is the gateway's, and that weir stands before reverse_proxy in that site and in the route of the call")
	}
	return yellow(fmt.Sprintf("the gateway recorded %d of %d calls", got, want), "", "ask GET /weir/calls once more; if they stay away, look at the gateway's log, and whether another gateway shares the address")
}

// fetch gets the records of this visit. A record is there as soon as its call
// has ended in the gateway, which may be a moment after its last byte.
func (v *visit) fetch(ctx context.Context, want int) error {
	for try := 0; ; try++ {
		x := v.request(ctx, http.MethodGet, v.gate.admin+"/weir/calls?limit=100&run="+url.QueryEscape(v.run), nil)
		var answer struct {
			Calls []gateRecord `json:"calls"`
		}
		switch {
		case x.err != nil:
			return fmt.Errorf("GET /weir/calls: %s", dialFault(x.err))
		case x.status != http.StatusOK:
			return fmt.Errorf("GET /weir/calls: it answers %d", x.status)
		case json.Unmarshal(x.body, &answer) != nil:
			return fmt.Errorf("GET /weir/calls: its answer cannot be read")
		}
		v.gate.records = answer.Calls
		if len(answer.Calls) >= want || try == 5 || !sleep(ctx, v.grace) {
			return nil
		}
	}
}

// record returns the gateway's record of a call, nil when there is none.
func (v *visit) record(c callOf) *gateRecord {
	for i := range v.gate.records {
		if id := v.calls.ids[c]; id != "" && v.gate.records[i].RequestID == id {
			return &v.gate.records[i]
		}
	}
	return nil
}

// agreed is how far the two sides' TTFT may be apart beside the round trip: what
// a busy machine takes to wake two processes.
const agreed = 50 * time.Millisecond

// checkTTFT sets the gateway's time to the first token beside ours.
func checkTTFT(_ context.Context, v *visit) Finding {
	best, known := time.Duration(0), false
	for _, c := range v.calls.order {
		rec := v.record(c)
		if rec == nil {
			continue
		}
		reply := v.calls.replies[c]
		ours, ok := reply.Record.TTFT.Get()
		theirs, both := rec.TTFT.Get()
		if !ok || !both {
			continue
		}
		diff := ours - reply.Connected.Or(0) - theirs
		if !known || abs(diff) < abs(best) {
			best, known = diff, true
		}
	}
	if !known {
		return grey("not compared because no streamed call has both figures")
	}
	allowed := agreed + v.rtt
	if abs(best) <= allowed {
		return green("TTFT here and in the gateway agree within " + shortMS(abs(best)))
	}
	if best < 0 {
		return yellow("the gateway saw a later first token than we did, by "+shortMS(-best), "That cannot be of one and the same call.", "check that the base URL leads to this gateway, and to no other before it")
	}
	return yellow("the first token takes "+shortMS(best)+" from the gateway to here", fmt.Sprintf("The round trip is %s.", shortMS(v.rtt)),
		"look for what stands between the gateway and here and holds streams back; see buffering above")
}

func abs(d time.Duration) time.Duration { return max(d, -d) }

// checkMeter says what the gateway could not measure of the doctor's calls.
func checkMeter(_ context.Context, v *visit) Finding {
	var reasons []call.Degradation
	hiddenUsage, refused := false, ""
	var differ []string
	for _, c := range v.calls.order {
		rec := v.record(c)
		if rec == nil {
			continue
		}
		for _, d := range rec.Degraded {
			if d == call.UsageHidden {
				hiddenUsage = true
			} else if !slices.Contains(reasons, d) {
				reasons = append(reasons, d)
			}
		}
		if rec.RefusedBy != "" {
			refused = rec.RefusedBy
		}
		ours := &v.calls.replies[c].Record
		if rec.Output != ours.Output || rec.Input != ours.Input {
			differ = append(differ, c.name)
		}
	}
	switch {
	case refused != "":
		return yellow("the gateway itself refused a call", "By its limit "+v.foreign(refused)+".", "see weir keys list and GET /weir/limits")
	case len(reasons) > 0:
		why, next := explain(reasons[0])
		more := ""
		if len(reasons) > 1 {
			var others []string
			for _, r := range reasons[1:] {
				others = append(others, v.foreign(string(r)))
			}
			more = "Also: " + strings.Join(others, ", ") + "."
		}
		return yellow("the gateway could not measure all: "+v.foreign(string(reasons[0])), sentences(why, more), next)
	case len(differ) > 0:
		return yellow("the gateway counts other tokens than the answers say", "For the calls: "+strings.Join(differ, ", ")+".",
			"see usage_policy: with inject the gateway knows more than its client asked for; else report it as a fault")
	case hiddenUsage:
		return green("the gateway measures all that there is", "Calls that do not ask for usage have no tokens in their record; see usage above.")
	}
	return green("the gateway measures all that there is, and counts the same tokens")
}

// explain says what a reason for incomplete measuring means, and what to do.
func explain(d call.Degradation) (why, next string) {
	switch d {
	case call.BodyTooLarge, call.BodyBudget:
		return "The request was not looked at whole.", "see what makes requests so large; of each 10 MiB are looked at, of all together 256 MiB"
	case call.BodyMalformed, call.BodyEncoded:
		return "The request could not be read.", "see what changes requests on the way to the gateway"
	case call.EventTooLong:
		return "An event has more than 1 MiB.", "see what the engine puts into it (logprobs, token ids)"
	case call.ParseErrors:
		return "Some events are no proper JSON.", "see what stands between gateway and engine and writes into streams"
	case call.EncodingUnknown, call.InflateFailed, call.InflateLimit:
		return "The answer is compressed in a way that could not be unpacked.", "have the engine, or what stands before it, send answers uncompressed or by gzip, br or zstd"
	case call.PhaseClamped:
		return "The engine reports more time than passed.", "check the clock of the engine's machine, and its version; phases of such calls are cut to fit"
	case call.MeterFault:
		return "The meter failed; the call did not.", "look at the gateway's log, and report the fault"
	}
	return "This doctor does not know that reason.", "see degraded in the README of the gateway's version"
}
