//go:build unix

package ledger

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
	"sync"
	"testing"
	"time"

	"github.com/weirgate/weir/internal/call"
)

// childEnv names the database of the child process.
const childEnv = "WEIR_LEDGER_CHILD"

func TestMain(m *testing.M) {
	if path := os.Getenv(childEnv); path != "" {
		child(path)
	}
	os.Exit(m.Run())
}

// child records calls from several goroutines until it is killed, and says on
// its standard output what has returned.
func child(path string) {
	l, err := Open(Options{Path: path, Breaker: time.Hour, FailClosed: true, MaxSpill: 64 << 20})
	if err != nil {
		panic(err)
	}
	var mu sync.Mutex
	say := func(what, id string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Printf("%s %s\n", what, id)
	}
	say("opened", "-")
	for g := range 8 {
		go func() {
			r := rand.New(rand.NewPCG(uint64(os.Getpid()), uint64(g)))
			var open []string
			for i := 0; ; i++ {
				if len(open) < 5 || r.IntN(2) == 0 {
					id := fmt.Sprintf("%d-%d-%d", os.Getpid(), g, i)
					if err := l.Start(start(id)); err != nil {
						panic(err)
					}
					say("started", id)
					open = append(open, id)
					continue
				}
				at := r.IntN(len(open))
				id := open[at]
				open = append(open[:at], open[at+1:]...)
				l.End(ended(id))
				say("ended", id)
			}
		}()
	}
	select {}
}

// TestKill kills the gateway's process at random points under load. After each,
// no row is lost whose end had returned, no call is unrecorded whose start had,
// nothing is there twice, and the sums are those of the rows.
func TestKill(t *testing.T) {
	rounds := 200 / underRace
	if testing.Short() {
		rounds = 20
	}
	r := rand.New(rand.NewPCG(1, uint64(time.Now().UnixNano())))
	path := filepath.Join(t.TempDir(), "usage.db")
	want := make(map[string]call.Outcome) // by what had returned
	total := 0
	for round := range rounds {
		started, ended := killed(t, path, r)
		for id := range started {
			want[id] = call.Crashed
		}
		for id := range ended {
			want[id] = call.Completed
		}
		total += len(started) + len(ended)
		if round%10 < 9 && round < rounds-1 {
			continue // the next process replays what this one left, and is killed
		}
		l := open(t, Options{Path: path})
		flush(t, l)
		got := rows(t, l)
		for id, outcome := range want {
			switch row := got[id]; {
			case row == nil:
				t.Fatalf("round %d: %s is lost, should be %s; %+v", round, id, outcome, l.State())
			case row.Outcome != outcome && outcome == call.Completed:
				t.Fatalf("round %d: %s is %s, and its end had returned", round, id, row.Outcome)
			}
		}
		all := make([]*call.Record, 0, len(got))
		for _, row := range got {
			all = append(all, row)
		}
		q := Query{By: []Grouping{ByKey, ByHour}}
		usage, err := l.Usage(context.Background(), q)
		if err != nil || usageJSON(t, usage) != usageJSON(t, brute(q, all)) {
			t.Fatalf("round %d: sums %s are not those of the rows %s, %v", round, usageJSON(t, usage), usageJSON(t, brute(q, all)), err)
		}
		if st := l.State(); st.Damaged+st.Refused != 0 || st.Dropped != 0 {
			t.Errorf("round %d: %+v", round, st)
		}
		if err := l.Close(soon(t)); err != nil {
			t.Fatal(err)
		}
		// Rows that were checked need not be checked again.
		path, want = filepath.Join(t.TempDir(), "usage.db"), make(map[string]call.Outcome)
	}
	t.Logf("%d rounds, %d starts and ends had returned", rounds, total)
}

// killed lets a child run for a random time, kills it, and returns what it said.
func killed(t *testing.T, path string, r *rand.Rand) (started, ended map[string]bool) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), childEnv+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewReader(out)
	if line, err := lines.ReadString('\n'); err != nil || line != "opened -\n" {
		t.Fatal(line, err)
	}
	timer := time.AfterFunc(time.Duration(r.Int64N(int64(60*time.Millisecond))), func() { cmd.Process.Kill() })
	defer timer.Stop()
	started, ended = make(map[string]bool), make(map[string]bool)
	for {
		line, err := lines.ReadString('\n')
		if err != nil { // the line is cut: it had not been said
			if !errors.Is(err, io.EOF) {
				t.Fatal(err)
			}
			break
		}
		what, id, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		switch what {
		case "started":
			started[id] = true
		case "ended":
			ended[id] = true
		default:
			t.Fatalf("the child says %q", line)
		}
	}
	if err := cmd.Wait(); err == nil || cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the child ended by itself: %v", err)
	}
	return started, ended
}
