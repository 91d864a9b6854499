package report

import (
	"bytes"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/bench"
)

// barOf is a bar whose clock the test moves.
func barOf(tty bool, width int) (*Bar, *bytes.Buffer, *time.Time) {
	var out bytes.Buffer
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	b := NewBar(&out, tty, width)
	b.now = func() time.Time { return at }
	return b, &out, &at
}

func TestBarOnTerminal(t *testing.T) {
	b, out, at := barOf(true, 140)
	p := bench.Progress{Load: "concurrency 8", Repeat: 2, Repeats: 3, Calls: 200, Ended: 50, Failed: 2, InFlight: 8, Elapsed: 65 * time.Second, OutputTokens: 6500}
	b.Show(p)
	want := "\r[█████░░░░░░░░░░░░░░░░░░]   25 %  concurrency 8 2/3  50/200 calls  2 FAILED  1:05  8 in flight  0.769 calls/s  100.0 out tok/s\x1b[K"
	if got := out.String(); got != want {
		t.Errorf("shown\n%q\nwant\n%q", got, want)
	}
	for range 100 { // within one second
		*at = at.Add(10 * time.Millisecond)
		b.Show(p)
	}
	if n := strings.Count(out.String(), "\r"); n != 5 {
		t.Errorf("drawn %d times in a second and at its beginning, want 5", n)
	}
	out.Reset()
	if err := b.Close(); err != nil || out.String() != "\r\x1b[K" {
		t.Errorf("closed with %q, %v", out.String(), err)
	}
	out.Reset()
	if err := b.Close(); err != nil || out.Len() != 0 {
		t.Errorf("closed again with %q, %v", out.String(), err)
	}
}

func TestBarWithoutEnd(t *testing.T) {
	b, out, at := barOf(true, 80)
	for range 4 {
		b.Show(bench.Progress{Load: "2 calls/s", Warmup: true, Ended: 3, Elapsed: 3661 * time.Second})
		*at = at.Add(time.Second)
	}
	want := ""
	for _, turn := range `/-\|` {
		want += "\r[" + string(turn) + "]  2 calls/s warm-up  3 calls  1:01:01  0 in flight  0.001 calls/s\x1b[K"
	}
	if got := out.String(); got != want {
		t.Errorf("shown\n%q\nwant\n%q", got, want)
	}
}

func TestBarInLog(t *testing.T) {
	b, out, at := barOf(false, 0)
	p := bench.Progress{Load: "a\x1b[2J\nb", Repeat: 1, Repeats: 1, Duration: time.Minute}
	for i := range 61 { // a minute
		p.Elapsed = time.Duration(i) * time.Second
		b.Show(p)
		*at = at.Add(time.Second)
	}
	lines := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d lines in a minute and at its beginning, want 7: %q", len(lines), lines)
	}
	if want := " 50 %  a�[2J b  0 calls  0:30  0 in flight  0 calls/s"; lines[3] != want {
		t.Errorf("line %q, want %q", lines[3], want)
	}
	if strings.ContainsAny(out.String(), "\r\x1b") {
		t.Errorf("escapes in a log: %q", out.String())
	}
	if out.Reset(); b.Close() != nil || out.Len() != 0 {
		t.Errorf("closing a log wrote %q", out.String())
	}
}

// TestBarFits: whatever is shown fits into the terminal's line, or the line would wrap
// and drawing it again would fill the screen.
func TestBarFits(t *testing.T) {
	for _, load := range append(hostile, "concurrency 8") {
		for _, width := range []int{40, 61, 80, 200} {
			b, out, _ := barOf(true, width)
			b.Show(bench.Progress{Load: load, Repeat: 12, Repeats: 30, Calls: 1e9, Ended: 2e9, Failed: 1e6, InFlight: 1e5, Elapsed: 1e6 * time.Second, OutputTokens: 1e15})
			line := strings.TrimSuffix(strings.TrimPrefix(out.String(), "\r"), "\x1b[K")
			if cells(line) >= width || strings.ContainsAny(line, "\n\r\x1b\x07") {
				t.Errorf("%d columns of %d: %q", cells(line), width, line)
			}
		}
	}
}

type brokenWriter struct{ left int }

var errBroken = errors.New("broken")

func (w *brokenWriter) Write(b []byte) (int, error) {
	if w.left -= len(b); w.left < 0 {
		return 0, errBroken
	}
	return len(b), nil
}

func TestBarKeepsError(t *testing.T) {
	b := NewBar(&brokenWriter{}, true, 80)
	b.Show(bench.Progress{})
	if err := b.Close(); !errors.Is(err, errBroken) {
		t.Errorf("closed with %v", err)
	}
}

func TestBarTogether(t *testing.T) {
	var out bytes.Buffer
	b := NewBar(&out, true, 80)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 100 {
				b.Show(bench.Progress{Load: "x", Calls: 100, Ended: i})
			}
		})
	}
	all.Wait()
	if err := b.Close(); err != nil || !strings.HasPrefix(out.String(), "\r[") {
		t.Errorf("shown %q, %v", out.String(), err)
	}
}
