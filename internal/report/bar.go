package report

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/weirgate/weir/internal/bench"
)

// How often a Bar writes at most.
const (
	redrawEvery = 250 * time.Millisecond // on a terminal
	lineEvery   = 10 * time.Second       // elsewhere, such as in a log
)

// Bar shows how far a load test is: on a terminal as one line that is drawn again
// up to 4 times a second, elsewhere as a plain line every 10 s at most. It may be used by
// several goroutines.
type Bar struct {
	w     io.Writer
	tty   bool
	width int
	now   func() time.Time

	mu    sync.Mutex // guards what follows
	last  time.Time  // of the last write
	turns int        // of the spinner
	drawn bool       // whether a line stands on the terminal
	err   error      // the first of w
}

// NewBar returns a Bar that writes to w, which is a terminal of so many columns when
// tty is true; a width of 0 or less stands for 80.
func NewBar(w io.Writer, tty bool, width int) *Bar {
	if width <= 0 {
		width = defaultWidth
	}
	return &Bar{w: w, tty: tty, width: max(width, leastWidth), now: time.Now}
}

// Show shows p, unless something was shown only just now.
func (b *Bar) Show(p bench.Progress) {
	b.mu.Lock()
	defer b.mu.Unlock()
	every := lineEvery
	if b.tty {
		every = redrawEvery
	}
	now := b.now()
	if !b.last.IsZero() && now.Sub(b.last) < every {
		return
	}
	b.last = now
	if !b.tty {
		b.write(strings.Join(b.facts(p), "  ") + "\n")
		return
	}
	b.turns++
	line := cut(strings.Join(append([]string{b.picture(p)}, b.facts(p)...), "  "), b.width-1)
	b.write("\r" + line + "\x1b[K") // and clear what was longer
	b.drawn = true
}

// Close takes the line away from a terminal, so that something else can be written
// there, and returns the first error of the writer. The Bar can still be used.
func (b *Bar) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.drawn {
		b.write("\r\x1b[K")
		b.drawn = false
	}
	b.last = time.Time{}
	if b.err != nil {
		return fmt.Errorf("show progress: %w", b.err)
	}
	return nil
}

// write keeps the first error: a progress bar is no reason to end a load test. The
// lock is held.
func (b *Bar) write(s string) {
	if b.err == nil {
		_, b.err = io.WriteString(b.w, s)
	}
}

// share is how much is done, of the calls or of the time, whichever is further;
// known is false where neither has an end.
func share(p bench.Progress) (done float64, known bool) {
	if p.Calls > 0 {
		done, known = float64(p.Ended)/float64(p.Calls), true
	}
	if p.Duration > 0 {
		done, known = max(done, float64(p.Elapsed)/float64(p.Duration)), true
	}
	return min(max(done, 0), 1), known
}

// picture is a bar, or a spinner where the end is not known.
func (b *Bar) picture(p bench.Progress) string {
	done, known := share(p)
	if !known {
		return "[" + string(`|/-\`[b.turns%4]) + "]"
	}
	width := min(max(b.width/6, 8), 24)
	full := int(done * float64(width))
	return "[" + strings.Repeat("█", full) + strings.Repeat("░", width-full) + "]"
}

// facts are the words and figures of p, the most important first.
func (b *Bar) facts(p bench.Progress) []string {
	var f []string
	if done, known := share(p); known {
		f = append(f, fmt.Sprintf("%3.0f %%", done*100))
	}
	what := named(p.Load)
	if p.Repeats > 1 {
		what += fmt.Sprintf(" %d/%d", p.Repeat, p.Repeats)
	}
	if p.Warmup {
		what += " warm-up"
	}
	f = append(f, what)
	calls := count(p.Ended)
	if p.Calls > 0 {
		calls += "/" + count(p.Calls)
	}
	f = append(f, calls+" calls")
	if p.Failed > 0 {
		f = append(f, count(p.Failed)+" FAILED")
	}
	f = append(f, clock(p.Elapsed), count(p.InFlight)+" in flight")
	if s := p.Elapsed.Seconds(); s > 0 {
		f = append(f, number(float64(p.Ended)/s)+" calls/s")
		if p.OutputTokens > 0 { // 0 may be not known
			f = append(f, number(float64(p.OutputTokens)/s)+" out tok/s")
		}
	}
	return f
}

// clock writes an elapsed time as 1:05 or 1:00:05.
func clock(d time.Duration) string {
	s := int(d / time.Second)
	if s >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", s/3600, s/60%60, s%60)
	}
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}

// cut is the beginning of s that fits into so many columns.
func cut(s string, width int) string {
	used := 0
	for i, r := range s {
		if used += runeCells(r); used > width {
			return s[:i]
		}
	}
	return s
}
