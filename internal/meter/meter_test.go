package meter

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
	"github.com/weirgate/weir/internal/dialect"
)

func at(n int) time.Duration { return time.Duration(n) * time.Millisecond }

func stream(mediaType string) http.Header { return http.Header{"Content-Type": {mediaType}} }

func delta(text string) string {
	return `data: {"choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
}

const (
	role  = `data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}` + "\n\n"
	stop  = `data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}` + "\n\n"
	usage = `data: {"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}` + "\n\n"
	done  = "data: [DONE]\n\n"
)

// TestNumbers checks every number of a call against its definition, by hand.
func TestNumbers(t *testing.T) {
	m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
	m.Header(200, stream("text/event-stream"))
	m.Write([]byte(role), at(100), at(101))                                                           // 1 ms blocked before the token
	m.Write([]byte(": ping\n\n"), at(150), at(150))                                                   //
	m.Write([]byte(strings.Replace(delta("T"), "content", "reasoning_content", 1)), at(200), at(203)) // first token, not visible
	m.Write([]byte(delta("a")[:20]), at(250), at(250))                                                // an event in two pieces
	m.Write([]byte(delta("a")[20:]+delta("b")), at(300), at(300))                                     // is there when its end is; two at once
	m.Write([]byte(delta("c")), at(400), at(410))                                                     // last token, then 10 ms blocked
	m.Write([]byte(stop+usage+done), at(420), at(421))
	var rec call.Record
	m.Finish(&rec, End{At: at(450), Status: 200, Instants: call.Instants{BodyRead: call.Lasting(at(2)), Admitted: call.Lasting(at(3)),
		Sent: call.Lasting(at(5)), FirstByte: call.Lasting(at(99))}})
	want := call.Timing{TTFT: ms(200), TTFTUpstream: ms(195), TTFB: ms(99), TTFTVisible: ms(300), TPOT: ms(50), E2E: ms(421), ICLMax: ms(100)}
	got := rec.Timing
	if p50, _ := got.ICLP50.Get(); p50 < at(97) || p50 > at(100) { // gaps 100, 0, 100
		t.Errorf("ICL p50 is %v", p50)
	}
	got.ICLP50 = call.Duration{}
	if got != want {
		t.Errorf("timing\n got %+v\nwant %+v", got, want)
	}
	phases := call.Phases{Upload: ms(2), QueueGateway: ms(1), Connect: ms(2), Prefill: ms(194), Decode: ms(197), Tail: ms(10), Delivery: ms(15)}
	if rec.Phases != phases {
		t.Errorf("phases\n got %s\nwant %+v", text(&rec), phases)
	}
	if rec.Outcome != call.Completed || !rec.Stream || rec.FinishReason.First() != "stop" || rec.Output != call.Known(5) {
		t.Errorf("got %s", text(&rec))
	}
	if len(rec.Degraded) > 0 {
		t.Errorf("degraded: %v", rec.Degraded)
	}
}

func ms(n int) call.Duration { return call.Lasting(at(n)) }

// TestOutcome walks the ways in which a call can end.
func TestOutcome(t *testing.T) {
	const html = "<html>hi</html>"
	for name, c := range map[string]struct {
		status    int
		mediaType string
		body      string
		end       End
		outcome   call.Outcome
		code      string
	}{
		"whole":                          {200, "text/event-stream", delta("a") + done, End{}, call.Completed, ""},
		"finish and usage, no end":       {200, "text/event-stream", delta("a") + stop + usage, End{}, call.Completed, ""},
		"finish, no usage, no end":       {200, "text/event-stream", delta("a") + stop, End{}, call.Truncated, "truncated"},
		"nothing at all":                 {200, "text/event-stream", "", End{}, call.Truncated, "truncated"},
		"comments only":                  {200, "text/event-stream", ": hi\n\n", End{}, call.Truncated, "truncated"},
		"foreign events":                 {200, "text/event-stream", "data: {\"hello\":1}\n\n", End{}, call.Unrecognised, "unrecognised"},
		"HTML as a stream":               {200, "text/event-stream", html, End{}, call.Unrecognised, "unrecognised"},
		"HTML":                           {200, "text/html", html, End{}, call.Unrecognised, "unrecognised"},
		"foreign JSON":                   {200, "application/json", `{"hello":1}`, End{}, call.Unrecognised, "unrecognised"},
		"JSON cut":                       {200, "application/json", `{"choices":[{"index":0,"mess`, End{}, call.Truncated, "truncated"},
		"JSON cut early":                 {200, "application/json", `{"id":"x","obj`, End{}, call.Truncated, "truncated"},
		"JSON cut at once":               {200, "application/json", `{`, End{}, call.Truncated, "truncated"},
		"JSON error under a stream":      {200, "text/event-stream", `{"error":{"message":"secret text","type":"boom"}}`, End{}, call.StreamError, "boom"},
		"stream under JSON":              {200, "application/json", delta("a") + done, End{}, call.Completed, ""},
		"stream without a type":          {200, "", "event: x\n" + delta("a") + done, End{}, call.Completed, ""},
		"client left":                    {200, "text/event-stream", delta("a"), End{Cause: ClientLeft}, call.ClientGone, ""},
		"client left after the end":      {200, "text/event-stream", delta("a") + done, End{Cause: ClientLeft}, call.Completed, ""},
		"client left before an answer":   {0, "", "", End{Cause: ClientLeft}, call.ClientGone, ""},
		"connection lost":                {200, "text/event-stream", delta("a"), End{Cause: UpstreamLost}, call.UpstreamError, "connection_lost"},
		"lost after the end":             {200, "text/event-stream", delta("a") + done, End{Cause: UpstreamLost}, call.Completed, ""},
		"no answer":                      {0, "", "", End{Cause: UpstreamLost, Status: 502, Error: "connection_refused"}, call.UpstreamError, "connection_refused"},
		"time-out":                       {0, "", "", End{Cause: TimedOut, Status: 504}, call.Timeout, "timeout"},
		"status 429":                     {429, "application/json", `{"error":{"code":"rate_limit_exceeded","message":"m"}}`, End{Status: 429}, call.UpstreamError, "rate_limit_exceeded"},
		"whole, but short of its length": {200, "application/json", `{"choices":[{"index":0,"message":{"content":"x"},"finish_reason":"stop"}]}`, End{Cause: UpstreamLost, Short: true}, call.UpstreamError, "connection_lost"},
		"no content":                     {204, "", "", End{}, call.Unrecognised, "status_204"},
		"redirect":                       {307, "", "", End{}, call.Unrecognised, "status_307"},
		"the upstream's own 499":         {499, "application/json", "{}", End{Cause: ClientLeft, Instants: call.Instants{FirstByte: ms(5)}}, call.UpstreamError, "status_499"},
		"left with its error answer":     {500, "application/json", "{}", End{Cause: ClientLeft, Status: 500}, call.UpstreamError, "status_500"},
		"left, noted by the proxy":       {499, "", "", End{Cause: ClientLeft, Status: 499}, call.ClientGone, ""},
		"status 500, HTML":               {500, "text/html", html, End{Status: 500}, call.UpstreamError, "status_500"},
		"refused":                        {429, "application/json", "{}", End{Cause: TurnedAway, Status: 429, Error: "tokens_per_minute"}, call.Refused, "tokens_per_minute"},
		"shutdown":                       {200, "text/event-stream", delta("a"), End{Cause: ProcessEnds}, call.GatewayShutdown, "gateway_shutdown"},
		"stalled reader":                 {200, "text/event-stream", delta("a"), End{Cause: ReaderCut}, call.ReaderStalled, "reader_stalled"},
		"panic":                          {200, "text/event-stream", delta("a"), End{Cause: Fault}, call.InternalError, "panic"},
		"error, then the client left":    {200, "text/event-stream", delta("a") + "data: {\"error\":{\"type\":\"x\"}}\n\n", End{Cause: ClientLeft}, call.StreamError, "x"},
	} {
		m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
		if c.status != 0 {
			m.Header(c.status, stream(c.mediaType))
		}
		if c.body != "" {
			m.Write([]byte(c.body), at(10), at(11))
		}
		c.end.At = at(20)
		if c.end.Status == 0 {
			c.end.Status = c.status
		}
		var rec call.Record
		m.Finish(&rec, c.end)
		if rec.Outcome != c.outcome || rec.Error != c.code {
			t.Errorf("%s: %s %q, want %s %q", name, rec.Outcome, rec.Error, c.outcome, c.code)
		}
		if rec.Phases.Sum() != rec.Instants.Ended.Or(-1) {
			t.Errorf("%s: phases make %v, the call took %v", name, rec.Phases.Sum(), rec.Instants.Ended)
		}
		if strings.Contains(text(&rec), "secret text") {
			t.Errorf("%s: the record quotes the upstream: %s", name, text(&rec))
		}
		if rec.E2E.IsKnown() == (rec.Outcome == call.ClientGone) {
			t.Errorf("%s: E2E %v", name, rec.E2E)
		}
	}
}

// TestTPOTUndefined: each reason for which there is no TPOT.
func TestTPOTUndefined(t *testing.T) {
	two := delta("a") + delta("b")
	for name, c := range map[string]struct {
		body    string
		request call.Request
	}{
		"no usage":     {two + done, call.Request{Stream: true}},
		"one token":    {two + strings.Replace(usage, `5,"total_tokens":12`, `1,"total_tokens":8`, 1) + done, call.Request{Stream: true}},
		"two choices":  {two + usage + done, call.Request{Stream: true, N: call.Known(2)}},
		"other choice": {delta("a") + strings.Replace(delta("b"), `"index":0`, `"index":1`, 1) + usage + done, call.Request{Stream: true}},
	} {
		m := New(dialect.ByName("openai.chat"), &c.request)
		m.Header(200, stream("text/event-stream"))
		m.Write([]byte(c.body), at(10), at(10))
		var rec call.Record
		m.Finish(&rec, End{At: at(20), Status: 200})
		if rec.TPOT.IsKnown() || rec.Outcome != call.Completed {
			t.Errorf("%s: TPOT %v, %s", name, rec.TPOT, rec.Outcome)
		}
	}
}

// TestUsageHidden: a call without usage says what would bring it.
func TestUsageHidden(t *testing.T) {
	m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
	m.Header(200, stream("text/event-stream"))
	m.Write([]byte(delta("a")+stop+done), at(10), at(10))
	var rec call.Record
	m.Finish(&rec, End{At: at(20), Status: 200, UsageOnRequest: true})
	if len(rec.Degraded) != 1 || rec.Degraded[0] != call.UsageHidden {
		t.Errorf("degraded: %v", rec.Degraded)
	}
}

// TestLongEvent: an event past the parser's cap is not read, forwarding is not
// the meter's matter, and the record says so (case 18).
func TestLongEvent(t *testing.T) {
	for dialectName, mediaType := range map[string]string{"openai.chat": "text/event-stream", "ollama.chat": "application/x-ndjson"} {
		m := New(dialect.ByName(dialectName), &call.Request{Stream: true})
		m.Header(200, stream(mediaType))
		long := delta(strings.Repeat("x", 3<<20))
		first, last := delta("a"), delta("b")
		if mediaType != "text/event-stream" {
			line := func(s string) string { return `{"message":{"content":"` + s + `"},"done":false}` + "\n" }
			first, long, last = line("a"), line(strings.Repeat("x", 3<<20)), line("b")
		}
		now := 0
		for _, piece := range []string{first, long[:1<<20], long[1<<20 : 2<<20], long[2<<20:], last} {
			now++
			m.Write([]byte(piece), at(now), at(now))
		}
		var rec call.Record
		m.Finish(&rec, End{At: at(9), Status: 200})
		if rec.ContentEvents.Or(0) != 2 || rec.Instants.LastToken != ms(5) || len(rec.Degraded) != 1 || rec.Degraded[0] != call.EventTooLong {
			t.Errorf("%s: %s", dialectName, text(&rec))
		}
	}
}

// TestEncodings: what cannot be unpacked is said, and nothing is made up.
func TestEncodings(t *testing.T) {
	for name, c := range map[string]struct {
		encoding string
		body     string
		degraded call.Degradation
		outcome  call.Outcome
	}{
		"unknown":  {"exi", "whatever", call.EncodingUnknown, call.Completed},
		"lying":    {"gzip", delta("a") + done, call.InflateFailed, call.Completed},
		"identity": {"identity", delta("a") + done, "", call.Completed},
	} {
		m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
		h := stream("text/event-stream")
		h.Set("Content-Encoding", c.encoding)
		m.Header(200, h)
		m.Write([]byte(c.body), at(1), at(1))
		m.Write([]byte(c.body), at(2), at(2))
		var rec call.Record
		m.Finish(&rec, End{At: at(3), Status: 200})
		got := call.Degradation("")
		if len(rec.Degraded) > 0 {
			got = rec.Degraded[0]
		}
		if got != c.degraded || rec.Outcome != c.outcome || (c.degraded != "") == rec.ContentEvents.IsKnown() {
			t.Errorf("%s: %s", name, text(&rec))
		}
	}
}

// TestAllocations: the streaming path allocates nothing per event.
func TestAllocations(t *testing.T) {
	m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
	m.Header(200, stream("text/event-stream"))
	event := []byte(delta("a"))
	now := 0
	write := func() {
		now++
		m.Write(event, at(now), at(now))
	}
	write()
	write() // the second event makes the histogram of gaps
	if n := testing.AllocsPerRun(1000, write); n != 0 {
		t.Errorf("%v allocations an event", n)
	}
	half := func() {
		now++
		m.Write(event[:50], at(now), at(now))
		m.Write(event[50:], at(now), at(now))
	}
	half()
	if n := testing.AllocsPerRun(1000, half); n != 0 {
		t.Errorf("%v allocations an event in two pieces", n)
	}
}

func BenchmarkEvent(b *testing.B) {
	m := New(dialect.ByName("openai.chat"), &call.Request{Stream: true})
	m.Header(200, stream("text/event-stream"))
	event := []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1790000000,"model":"m1","choices":[{"index":0,"delta":{"content":" word"},"logprobs":null,"finish_reason":null}]}` + "\n\n")
	b.ReportAllocs()
	b.SetBytes(int64(len(event)))
	now := time.Duration(0)
	for b.Loop() {
		now += time.Millisecond
		m.Write(event, now, now)
	}
}

// TestTranscriptAsText: a transcript may be plain text or subtitles; the same
// answer to a chat is not the dialect's.
func TestTranscriptAsText(t *testing.T) {
	for name, c := range map[string]struct {
		dialect, mediaType, body string
		outcome                  call.Outcome
		events                   int64
	}{
		"text":      {"openai.transcription", "text/plain; charset=utf-8", "hello there", call.Completed, 1},
		"subtitles": {"openai.transcription", "text/vtt", "WEBVTT\n\n00:00.000 --> 00:01.000\nhello\n", call.Completed, 1},
		"HTML":      {"openai.transcription", "text/html", "<html>", call.Unrecognised, 0},
		"chat":      {"openai.chat", "text/plain", "hello there", call.Unrecognised, 0},
	} {
		for _, size := range []int{1, 5, len(c.body)} {
			m := New(dialect.ByName(c.dialect), &call.Request{})
			m.Header(200, stream(c.mediaType))
			for i := 0; i < len(c.body); i += size {
				m.Write([]byte(c.body[i:min(i+size, len(c.body))]), at(i), at(i))
			}
			var rec call.Record
			m.Finish(&rec, End{At: at(20), Status: 200})
			if rec.Outcome != c.outcome || rec.ContentEvents.Or(-1) != c.events || rec.TTFT.IsKnown() {
				t.Errorf("%s in pieces of %d: %s", name, size, text(&rec))
			}
		}
	}
}
