package caddymodule

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"

	caddycmd "github.com/caddyserver/caddy/v2/cmd"

	"github.com/weirgate/weir/internal/call"
)

// TestMain lets a test start this binary as weir itself.
func TestMain(m *testing.M) {
	if os.Getenv("WEIR_TEST_MAIN") == "1" {
		caddycmd.Main()
		return
	}
	os.Exit(m.Run())
}

// process is weir in a process of its own.
type process struct {
	t      *testing.T
	cmd    *exec.Cmd
	dir    string
	output output
	exited chan error
}

// output collects what a process writes.
type output struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.Write(b)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.all.String()
}

// startProcess runs weir with a Caddyfile and returns when its admin endpoint
// says that it is ready. Everything it writes lands in a directory of its own.
func startProcess(t *testing.T, config, admin string, env ...string) *process {
	t.Helper()
	p := &process{t: t, dir: t.TempDir(), exited: make(chan error, 1)}
	p.cmd = exec.Command(os.Args[0], "run", "--config", config, "--adapter", "caddyfile")
	p.cmd.Env = append(os.Environ(), "WEIR_TEST_MAIN=1", "HOME="+p.dir, "XDG_DATA_HOME="+p.dir, "XDG_CONFIG_HOME="+p.dir)
	p.cmd.Env = append(p.cmd.Env, env...)
	p.cmd.Stdout, p.cmd.Stderr = &p.output, &p.output
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	over := make(chan struct{})
	go func() { p.exited <- p.cmd.Wait(); close(over) }()
	t.Cleanup(func() { _ = p.cmd.Process.Kill(); <-over })
	until(t, "weir is ready", func() bool {
		select {
		case <-over:
			t.Fatalf("weir ended at once:\n%s", &p.output)
		default:
		}
		return status(client(t, "http/1.1"), "http://"+admin+"/weir/ready") == http.StatusOK
	})
	return p
}

// run lets the harness ask the process' admin endpoint.
func (p *process) run(admin string) *run { return &run{t: p.t, admin: admin, dir: p.dir} }

// terminate sends SIGTERM.
func (p *process) terminate() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
}

// status returns the status of a GET, 0 when there is no answer.
func status(c *http.Client, url string) int {
	res, err := c.Get(url)
	if err != nil {
		return 0
	}
	defer res.Body.Close()
	_, _ = io.Copy(io.Discard, res.Body)
	return res.StatusCode
}

// TestShutdown: SIGTERM turns the probes off while the site still answers, a
// stream that ends within the grace period is complete, one that does not is
// recorded as gateway_shutdown, and the process ends well.
func TestShutdown(t *testing.T) {
	up := newScript(t)
	s, admin := newSite(t), freeAddress(t)
	dir := t.TempDir()
	config, accessLog := filepath.Join(dir, "Caddyfile"), filepath.Join(dir, "access.log")
	text := fmt.Sprintf("{\n\tadmin %s\n\tshutdown_delay 700ms\n\tgrace_period 500ms\n}\nhttp://%s {\n\tlog {\n\t\toutput file %s\n\t\tformat json\n\t}\n\tweir {\n\t\tprobes\n\t}\n\treverse_proxy %s\n}\n",
		admin, s.plain, accessLog, up.address)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	p := startProcess(t, config, admin)
	ask := func(run string) (*http.Response, *exchange) {
		res, x := open(t, up, client(t, "http/1.1"), post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), run, streaming))
		expect(t, res.Body, chunk(0))
		return res, x
	}
	short, atShort := ask("short")
	long, atLong := ask("long")
	silent := make(chan error, 1)
	go func() { // in prefill: no header has come yet
		_, err := client(t, "http/1.1").Do(post(context.Background(), t, s.url("http/1.1", "/v1/chat/completions"), "silent", streaming))
		silent <- err
	}()
	atSilent := up.next(t)

	orchestrator := client(t, "http/1.1")
	if live, ready := status(orchestrator, "http://"+s.plain+"/livez"), status(orchestrator, "http://"+s.plain+"/readyz"); live != 200 || ready != 200 {
		t.Errorf("before: livez %d, readyz %d", live, ready)
	}
	p.terminate()
	until(t, "the site's readiness probe says 503", func() bool { return status(orchestrator, "http://"+s.plain+"/readyz") == 503 })
	if live := status(orchestrator, "http://"+s.plain+"/livez"); live != 200 {
		t.Errorf("while shutting down: livez %d", live)
	}
	if ready := status(orchestrator, "http://"+admin+"/weir/ready"); ready != 503 {
		t.Errorf("while shutting down: /weir/ready %d", ready)
	}
	atShort.send(chunk(1) + done)
	atShort.finish()
	expect(t, short.Body, chunk(1)+done)
	if rest, err := io.ReadAll(short.Body); err != nil || len(rest) > 0 {
		t.Errorf("the stream within the grace period: %q, %v", rest, err)
	}
	await(t, atLong.left(), "cancelled upstream of the long stream")
	await(t, atSilent.left(), "cancelled upstream of the call in prefill")
	if _, err := io.ReadAll(long.Body); err == nil {
		t.Error("the stream that was cut ends as if it were whole")
	}
	if err := await(t, p.exited, "end of the process"); err != nil {
		t.Errorf("exit: %v\n%s", err, &p.output)
	}
	await(t, silent, "answer of the call in prefill")

	records := recordsInLog(t, accessLog)
	for run, want := range map[string]call.Outcome{"short": call.Completed, "long": call.GatewayShutdown, "silent": call.GatewayShutdown} {
		rec := records[run]
		if len(rec) != 1 || rec[0].Outcome != want {
			t.Errorf("%s: logged %+v, want one that is %s", run, rec, want)
		}
	}
	var warned []string
	for line := range strings.Lines(p.output.String()) {
		if strings.Contains(line, "calls cut by shutdown") {
			warned = append(warned, line)
		}
	}
	if len(warned) != 1 || !strings.Contains(warned[0], `"cut":2`) && !strings.Contains(warned[0], `"cut": 2`) || !strings.Contains(warned[0], "grace_period") {
		t.Errorf("warnings: %q\n%s", warned, &p.output)
	}
	atLong.finish()
	atSilent.finish()
	long.Body.Close()
	short.Body.Close()
}

// recordsInLog returns the records in an access log by run.
func recordsInLog(t *testing.T, file string) map[string][]*call.Record {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string][]*call.Record)
	for line := range bytes.Lines(b) {
		var entry struct {
			Weir json.RawMessage `json:"weir"`
		}
		if err := json.Unmarshal(line, &entry); err != nil {
			t.Fatalf("access log line %q: %v", line, err)
		}
		if entry.Weir == nil {
			continue
		}
		rec := new(call.Record)
		if err := json.Unmarshal(entry.Weir, rec); err != nil {
			t.Fatalf("%s: %v", entry.Weir, err)
		}
		all[rec.Run] = append(all[rec.Run], rec)
	}
	return all
}
