//go:build unix

package slofile

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// childEnv names the directory of the child process.
const childEnv = "WEIR_SLOFILE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		child(dir)
	}
	os.Exit(m.Run())
}

// saying is a tally that says what is kept, which it knows when it is asked for
// more: then what it gave before has been written.
type saying struct {
	*tally
	file **File
	gave int64
}

func (s *saying) Changes() []byte {
	if f := *s.file; f != nil && f.Status().Kept {
		fmt.Println("kept", s.gave)
	}
	b := s.tally.Changes()
	s.gave = s.get("a") // at least: more may have been counted since
	if b == nil {
		return b
	}
	s.gave -= s.pending()
	return b
}

// pending is what is not in changes yet.
func (s *saying) pending() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.recent["a"]
}

// child counts until it is killed, and says before each count what it will be.
func child(dir string) {
	var f *File
	state := &saying{tally: newTally(), file: &f}
	opened, err := Open(dir, state, Options{every: 2 * time.Millisecond, maxJournal: 1000, Report: func(text string, err error) { panic(fmt.Sprint(text, err)) }})
	if err != nil {
		panic(err)
	}
	f = opened
	fmt.Println("loaded", state.get("a"))
	go f.Run(context.Background())
	for n := state.get("a") + 1; ; n++ {
		fmt.Println("count", n)
		state.add("a", 1)
		time.Sleep(100 * time.Microsecond)
	}
}

// TestKill kills the process again and again. The next one has all that was
// written before, and nothing that was not counted, so nothing twice.
func TestKill(t *testing.T) {
	rounds := 60
	if testing.Short() {
		rounds = 15
	}
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	dir := filepath.Join(t.TempDir(), "counts")
	var kept, counted int64
	for round := range rounds {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childEnv+"="+dir)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(out)
		var timer *time.Timer
		for {
			line, err := lines.ReadString('\n')
			if err != nil { // the line is cut: it had not been said
				if !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
				break
			}
			var n int64
			what, _, _ := strings.Cut(line, " ")
			if _, err := fmt.Sscanf(line, what+" %d\n", &n); err != nil {
				t.Fatalf("the child says %q: %v", line, err)
			}
			switch what {
			case "loaded":
				if n < kept || n > counted {
					t.Fatalf("round %d: %d are there; %d were kept, %d counted", round, n, kept, counted)
				}
				kept, counted = n, n
				timer = time.AfterFunc(time.Duration(r.Int64N(int64(60*time.Millisecond))), func() { cmd.Process.Kill() })
			case "kept":
				kept = max(kept, n)
			case "count":
				counted = n
			default:
				t.Fatalf("the child says %q", line)
			}
		}
		if timer == nil || cmd.Wait() == nil || cmd.ProcessState.ExitCode() != -1 {
			t.Fatalf("the child ended by itself: %v", cmd.ProcessState)
		}
		timer.Stop()
	}
	if kept == 0 {
		t.Error("nothing was ever kept")
	}
	state, told, s := load(t, dir)
	if n := state.get("a"); n < kept || n > counted {
		t.Errorf("%d are there; %d were kept, %d counted", n, kept, counted)
	}
	told.want(t)
	t.Logf("%d kills; %d counted, generation %d", rounds, counted, s.Loaded.Generation)
}
