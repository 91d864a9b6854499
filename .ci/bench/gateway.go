package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// gateway is one running Caddy, a child of this program.
type gateway struct {
	name  string
	addr  string // where its site listens
	admin string // base URL of its admin endpoint
	cmd   *exec.Cmd
	log   string // file with its output
	done  chan struct{}

	ledger bool // it has one
}

// site is what a gateway's configuration has beyond the least: lines of the
// global block, and of the site before reverse_proxy. The zero value is bare Caddy.
type site struct {
	global, directive string
	ledger            bool // a ledger is among the global lines
}

// startGateway starts a gateway with the given site, on the given core ("" is
// any), and waits until it answers.
func startGateway(ctx context.Context, binary, dir, name string, s site, upstream, core string) (*gateway, error) {
	ports, err := freePorts(2)
	if err != nil {
		return nil, err
	}
	home := filepath.Join(dir, name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, fmt.Errorf("make a folder for gateway %s: %w", name, err)
	}
	g := &gateway{name: name, ledger: s.ledger, addr: ports[0], admin: "http://" + ports[1], log: filepath.Join(home, "log"), done: make(chan struct{})}
	config := fmt.Sprintf("{\n\tadmin %s\n\tpersist_config off\n\tauto_https off\n%s}\n\nhttp://%s {\n\t%s\n\treverse_proxy %s\n}\n",
		ports[1], s.global, ports[0], s.directive, upstream)
	caddyfile := filepath.Join(home, "Caddyfile")
	if err := os.WriteFile(caddyfile, []byte(config), 0o600); err != nil {
		return nil, fmt.Errorf("write the configuration of gateway %s: %w", name, err)
	}
	args := []string{binary, "run", "--config", caddyfile, "--adapter", "caddyfile"}
	if core != "" {
		args = append([]string{"taskset", "-c", core}, args...)
	}
	out, err := os.Create(g.log)
	if err != nil {
		return nil, fmt.Errorf("create the log of gateway %s: %w", name, err)
	}
	defer out.Close() // the child has its own
	g.cmd = exec.Command(args[0], args[1:]...)
	g.cmd.Env = append(os.Environ(), "HOME="+home, "XDG_DATA_HOME="+home, "XDG_CONFIG_HOME="+home)
	g.cmd.Stdout, g.cmd.Stderr = out, out
	if err := g.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start gateway %s: %w (is -binary an executable of this machine?)", name, err)
	}
	go func() {
		_ = g.cmd.Wait()
		close(g.done)
	}()
	if err := g.await(ctx); err != nil {
		g.stop()
		return nil, err
	}
	return g, nil
}

// await returns when the gateway's site accepts connections.
func (g *gateway) await(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		conn, err := net.Dial("tcp", g.addr)
		if err == nil {
			return conn.Close()
		}
		select {
		case <-g.done:
			return fmt.Errorf("gateway %s ended at once; its last words:\n%s", g.name, g.lastWords())
		case <-ctx.Done():
			return fmt.Errorf("gateway %s did not answer on %s within 15 s; its last words:\n%s", g.name, g.addr, g.lastWords())
		case <-tick.C:
		}
	}
}

func (g *gateway) lastWords() string {
	b, err := os.ReadFile(g.log)
	if err != nil {
		return err.Error()
	}
	b = bytes.TrimSpace(b)
	return string(b[max(0, len(b)-2048):])
}

// stop ends the process and waits for it: politely, then not.
func (g *gateway) stop() {
	_ = g.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-g.done:
	case <-time.After(3 * time.Second):
		_ = g.cmd.Process.Kill()
		<-g.done
	}
}

// memStats is what this program reads of a gateway's runtime counters.
type memStats struct {
	Mallocs    uint64
	HeapInuse  uint64
	StackInuse uint64
}

func (g *gateway) memStats() (memStats, error) {
	var vars struct {
		MemStats memStats `json:"memstats"`
	}
	body, err := g.get("/debug/vars")
	if err == nil {
		err = json.Unmarshal(body, &vars)
	}
	if err != nil {
		return memStats{}, fmt.Errorf("read runtime counters of gateway %s: %w", g.name, err)
	}
	return vars.MemStats, nil
}

// collectGarbage makes the gateway run its garbage collector.
func (g *gateway) collectGarbage() error {
	for range 2 { // the second frees what finalizers and pools held on to
		if _, err := g.get("/debug/pprof/heap?gc=1"); err != nil {
			return fmt.Errorf("collect garbage of gateway %s: %w", g.name, err)
		}
	}
	return nil
}

var adminClient = &http.Client{Timeout: 60 * time.Second}

// get reads a page of the admin endpoint.
func (g *gateway) get(path string) ([]byte, error) {
	resp, err := adminClient.Get(g.admin + path)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	if err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("status %s", resp.Status)
	}
	return body, err
}

// hasWeir tells whether the binary knows the weir directive.
func hasWeir(ctx context.Context, binary string) (bool, error) {
	out, err := exec.CommandContext(ctx, binary, "list-modules").Output()
	if err != nil {
		return false, fmt.Errorf("list the modules of %s: %w (is it a Caddy?)", binary, err)
	}
	for line := range strings.Lines(string(out)) {
		if strings.Fields(line + " .")[0] == "http.handlers.weir" {
			return true, nil
		}
	}
	return false, nil
}

// freePorts returns n loopback addresses that nobody listens on now.
func freePorts(n int) ([]string, error) {
	var addrs []string
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close()
		addrs = append(addrs, l.Addr().String())
	}
	return addrs, nil
}
