package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Faults is what goes wrong with a call. The zero value is nothing.
type Faults struct {
	text string // as ParseFaults read it

	status     int // answer with this status and a JSON error; 0 is none
	retryAfter int // seconds, with a status of 429; 0 is none
	html       bool
	empty      bool
	hang       bool
	noUsage    bool
	gzip       bool
	slow       time.Duration // before each token is sent
	bigLine    int           // bytes added to the first event with output

	// Faults that come once so many tokens have been sent; never when below 0.
	errorAfter     int
	errorDoneAfter int
	truncateAfter  int
	abortAfter     int
	hangAfter      int
	badJSONAfter   int
}

// FaultKinds describes each kind of fault, for help texts.
var FaultKinds = []struct{ Kind, Meaning string }{
	{"status:503", "answer with that status and a JSON error"},
	{"refuse:2", "answer 429 with Retry-After of so many seconds"},
	{"error:5", "send an error event after 5 tokens, then end"},
	{"error_done:5", "send an error event after 5 tokens, then [DONE]"},
	{"truncate:5", "end cleanly after 5 tokens, without a terminal event"},
	{"abort:5", "break the connection after 5 tokens"},
	{"hang", "send nothing at all, not even headers, until the client leaves"},
	{"hang:5", "fall silent after 5 tokens until the client leaves"},
	{"slow:200ms", "wait before each token is sent"},
	{"html", "answer 200 with an HTML page"},
	{"empty", "answer 200 with an empty body"},
	{"bad_json:5", "send a cut-off JSON event after 5 tokens, then go on"},
	{"no_usage", "leave usage out, asked for or not"},
	{"big_line:100000", "make the first event with output longer by so many bytes"},
	{"gzip", "compress the answer, flushed after each event"},
}

const (
	maxFaultTokens  = 1 << 20
	maxFaultLine    = 256 << 20
	maxFaultSeconds = 24 * 60 * 60
)

// ParseFaults reads a comma-separated list of faults, each a kind and, after a
// colon, its number: "truncate:5", "gzip,slow:50ms". FaultKinds lists them. An
// empty text is no fault.
func ParseFaults(text string) (Faults, error) {
	f := Faults{text: text, errorAfter: -1, errorDoneAfter: -1, truncateAfter: -1,
		abortAfter: -1, hangAfter: -1, badJSONAfter: -1}
	if strings.TrimSpace(text) == "" {
		f.text = ""
		return f, nil
	}
	for _, item := range strings.Split(text, ",") {
		kind, arg, _ := strings.Cut(strings.TrimSpace(item), ":")
		if err := f.set(kind, arg); err != nil {
			return Faults{}, fmt.Errorf("read fault %q: %w", strings.TrimSpace(item), err)
		}
	}
	return f, nil
}

func (f *Faults) set(kind, arg string) (err error) {
	flags := map[string]*bool{"html": &f.html, "empty": &f.empty, "no_usage": &f.noUsage, "gzip": &f.gzip}
	after := map[string]*int{"error": &f.errorAfter, "error_done": &f.errorDoneAfter, "truncate": &f.truncateAfter,
		"abort": &f.abortAfter, "bad_json": &f.badJSONAfter}
	switch {
	case flags[kind] != nil:
		if arg != "" {
			return fmt.Errorf("%s takes no number", kind)
		}
		*flags[kind] = true
	case after[kind] != nil:
		*after[kind], err = faultNumber(arg, 0, 0, maxFaultTokens)
	case kind == "status":
		f.status, err = faultNumber(arg, 500, 400, 599)
	case kind == "refuse":
		f.status = 429
		f.retryAfter, err = faultNumber(arg, 1, 1, maxFaultSeconds)
	case kind == "hang" && arg == "":
		f.hang = true
	case kind == "hang":
		f.hangAfter, err = faultNumber(arg, 0, 0, maxFaultTokens)
	case kind == "slow":
		if f.slow, err = time.ParseDuration(arg); err != nil || f.slow <= 0 || f.slow > time.Hour {
			return fmt.Errorf("%q is no time between 1ns and 1h: write it like slow:200ms", arg)
		}
	case kind == "big_line":
		f.bigLine, err = faultNumber(arg, 100_000, 1, maxFaultLine)
	default:
		known := make([]string, len(FaultKinds))
		for i, k := range FaultKinds {
			known[i], _, _ = strings.Cut(k.Kind, ":")
		}
		return fmt.Errorf("unknown kind: choose from %s", strings.Join(slices.Compact(known), ", "))
	}
	return err
}

func faultNumber(arg string, def, least, most int) (int, error) {
	if arg == "" {
		return def, nil
	}
	n, err := strconv.Atoi(arg)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q is no number from %d to %d", arg, least, most)
	}
	return n, nil
}

// String returns the text that ParseFaults read.
func (f Faults) String() string { return f.text }
